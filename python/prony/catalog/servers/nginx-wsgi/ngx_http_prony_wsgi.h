/*
 * What the files of ngx_http_prony_wsgi_module share. Which one does what:
 *
 *   ngx_http_prony_wsgi_module.c   directives, the interpreter's life, an exchange from request to end
 *   ngx_http_prony_wsgi_environ.c  what the application is given: environ, wsgi.input, wsgi.errors
 *   ngx_http_prony_wsgi_reply.c    what it gives: start_response(), write() and the blocks it yields
 *
 * All functions declared here need the GIL.
 */

#ifndef NGX_HTTP_PRONY_WSGI_H
#define NGX_HTTP_PRONY_WSGI_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


extern ngx_module_t  ngx_http_prony_wsgi_module;

/* The request whose application runs right now, NULL between two; for the log. */
extern ngx_http_request_t  *prony_wsgi_current;


/* One request, from the moment its body has arrived until its reply is handed to nginx; in the request's pool. */
typedef struct {
    ngx_queue_t          queue;           /* among those whose iterable is still to be closed */
    ngx_http_request_t  *request;

    PyObject            *start_response;  /* knows this exchange until it has ended */
    PyObject            *input;
    PyObject            *iterable;        /* what the application returned */
    PyObject            *iterator;        /* NULL for a list or tuple, which `next` indexes */
    Py_ssize_t           next;

    PyObject            *status;          /* NULL until start_response() is called */
    PyObject            *headers;
    off_t                content_length;  /* as the application said, or -1 */
    off_t                sent;            /* bytes of its body */

    PyObject            *held;            /* list of the blocks that nginx has not sent yet, or NULL */
    ngx_chain_t         *free;
    ngx_chain_t         *busy;

    unsigned             headers_sent:1;
    unsigned             bodyless:1;      /* HEAD, 204, 304 */
    unsigned             last_sent:1;
    unsigned             pending:1;       /* nginx waits for the client to take more */
    unsigned             excess:1;        /* the application gave more than its Content-Length */
    unsigned             gone:1;          /* the client, or nginx gave up on it */
    unsigned             ended:1;
} prony_wsgi_exchange_t;


/* ngx_http_prony_wsgi_environ.c */

int prony_wsgi_environ_ready(ngx_cycle_t *cycle);
PyObject *prony_wsgi_environ(ngx_http_request_t *r, PyObject *input);
PyObject *prony_wsgi_input(ngx_http_request_t *r);
void prony_wsgi_log_exception(void);
void prony_wsgi_flush_errors(void);

/* ngx_http_prony_wsgi_reply.c */

int prony_wsgi_reply_ready(void);
PyObject *prony_wsgi_start_response(prony_wsgi_exchange_t *exchange);
void prony_wsgi_forget_exchange(PyObject *start_response);

/* NGX_OK: the reply is complete; NGX_AGAIN: go on when `pending` is over; else the status to finalize with. */
ngx_int_t prony_wsgi_reply(prony_wsgi_exchange_t *exchange);
ngx_int_t prony_wsgi_failed(prony_wsgi_exchange_t *exchange);
void prony_wsgi_sent(prony_wsgi_exchange_t *exchange);


#endif
