/*
 * What the application gives (PEP 3333, "The start_response() Callable" and "Handling ... Buffering and Streaming").
 *
 * A block is handed to nginx at once, with a flush. The next one is asked for when the client's socket has taken it
 * whole; until then the worker does other work. What the application write()s is never waited for: what the socket
 * does not take is kept in memory. No block is copied: nginx sends from the bytes object, which is held meanwhile.
 */

#include "ngx_http_prony_wsgi.h"


typedef struct {
    PyObject_HEAD
    prony_wsgi_exchange_t  *exchange;  /* NULL when it has ended */
} prony_wsgi_start_t;

typedef struct {
    ngx_str_t   name;
    size_t      offset;  /* of the pointer by which nginx's filters find the field */
} prony_wsgi_known_t;


/* nginx adds a field of its own where these are NULL, or changes them when it compresses. */
static prony_wsgi_known_t  prony_wsgi_known[] = {
    { ngx_string("Server"), offsetof(ngx_http_headers_out_t, server) },
    { ngx_string("Date"), offsetof(ngx_http_headers_out_t, date) },
    { ngx_string("Last-Modified"), offsetof(ngx_http_headers_out_t, last_modified) },
    { ngx_string("ETag"), offsetof(ngx_http_headers_out_t, etag) },
    { ngx_string("Content-Encoding"), offsetof(ngx_http_headers_out_t, content_encoding) },
    { ngx_null_string, 0 }
};

/* PEP 3333 leaves these to the server; they end at the next hop. */
static ngx_str_t  prony_wsgi_hop_by_hop[] = {
    ngx_string("Connection"), ngx_string("Keep-Alive"), ngx_string("Proxy-Authenticate"),
    ngx_string("Proxy-Authorization"), ngx_string("TE"), ngx_string("Trailer"), ngx_string("Trailers"),
    ngx_string("Transfer-Encoding"), ngx_string("Upgrade"), ngx_null_string
};


static ngx_uint_t
prony_wsgi_is(const ngx_str_t *name, const ngx_str_t *text)
{
    return text->len == name->len && ngx_strncasecmp(text->data, name->data, name->len) == 0;
}


/* start_response(): the checks */


/* Sets `text` to the str's Latin-1; it lives as long as the object. */
static int
prony_wsgi_text(PyObject *object, const char *what, ngx_str_t *text)
{
    size_t  i;

    if (!PyUnicode_CheckExact(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %.100s", what, Py_TYPE(object)->tp_name);
        return -1;
    }

    if (PyUnicode_READY(object) < 0) {
        return -1;
    }

    if (PyUnicode_KIND(object) != PyUnicode_1BYTE_KIND) {
        PyErr_Format(PyExc_ValueError, "%s holds a character beyond Latin-1: %R", what, object);
        return -1;
    }

    text->data = PyUnicode_1BYTE_DATA(object);
    text->len = (size_t) PyUnicode_GET_LENGTH(object);

    for (i = 0; i < text->len; i++) {
        if ((text->data[i] < 0x20 && text->data[i] != '\t') || text->data[i] == 0x7f) {
            PyErr_Format(PyExc_ValueError, "%s holds a control character: %R", what, object);
            return -1;
        }
    }

    return 0;
}


static int
prony_wsgi_check_status(PyObject *status)
{
    ngx_str_t  text;
    ngx_int_t  code;

    if (prony_wsgi_text(status, "the status", &text) < 0) {
        return -1;
    }

    code = text.len >= 4 && text.data[3] == ' ' ? ngx_atoi(text.data, 3) : NGX_ERROR;

    if (code < NGX_HTTP_OK) {
        PyErr_Format(PyExc_ValueError, "the status must be as `200 OK`, from 200 on, not %R", status);
        return -1;
    }

    return 0;
}


static int
prony_wsgi_check_name(PyObject *object, const ngx_str_t *name)
{
    ngx_str_t  *forbidden;
    size_t      i;

    for (i = 0; i < name->len; i++) {
        if (name->data[i] <= ' ' || name->data[i] >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", name->data[i]) != NULL) {
            break;
        }
    }

    if (name->len == 0 || i < name->len) {
        PyErr_Format(PyExc_ValueError, "not the name of a header field: %R", object);
        return -1;
    }

    for (forbidden = prony_wsgi_hop_by_hop; forbidden->len; forbidden++) {
        if (prony_wsgi_is(forbidden, name)) {
            PyErr_Format(PyExc_ValueError, "the header field %R is the server's", object);
            return -1;
        }
    }

    return 0;
}


static int
prony_wsgi_check_header(PyObject *header, off_t *content_length)
{
    static const ngx_str_t  length_name = ngx_string("Content-Length");
    ngx_str_t               name, value;
    off_t                   length;

    if (!PyTuple_CheckExact(header) || PyTuple_GET_SIZE(header) != 2) {
        PyErr_Format(PyExc_TypeError, "a header must be a tuple of name and value, not %R", header);
        return -1;
    }

    if (prony_wsgi_text(PyTuple_GET_ITEM(header, 0), "a header's name", &name) < 0
        || prony_wsgi_text(PyTuple_GET_ITEM(header, 1), "a header's value", &value) < 0
        || prony_wsgi_check_name(PyTuple_GET_ITEM(header, 0), &name) < 0)
    {
        return -1;
    }

    if (prony_wsgi_is(&length_name, &name)) {
        length = ngx_atoof(value.data, value.len);

        if (length == NGX_ERROR || (*content_length >= 0 && *content_length != length)) {
            PyErr_Format(PyExc_ValueError, "not a Content-Length, or a second one: %R", header);
            return -1;
        }

        *content_length = length;
    }

    return 0;
}


/* Returns the headers as a tuple that nobody else can change. */
static PyObject *
prony_wsgi_check_headers(PyObject *headers, off_t *content_length)
{
    PyObject    *tuple;
    Py_ssize_t   i;

    if (!PyList_CheckExact(headers)) {
        return PyErr_Format(PyExc_TypeError, "the headers must be a list, not %.100s", Py_TYPE(headers)->tp_name);
    }

    tuple = PyList_AsTuple(headers);

    for (i = 0; tuple != NULL && i < PyTuple_GET_SIZE(tuple); i++) {
        if (prony_wsgi_check_header(PyTuple_GET_ITEM(tuple, i), content_length) < 0) {
            Py_CLEAR(tuple);
        }
    }

    return tuple;
}


/*
 * Whether the request's application runs. If not, the request is over, or a thread that the application left behind
 * calls while nginx works: it must not touch the request then.
 */
static int
prony_wsgi_is_running(prony_wsgi_exchange_t *exchange, const char *what)
{
    if (exchange == NULL || exchange->request != prony_wsgi_current) {
        PyErr_Format(PyExc_RuntimeError, "%s was called when the application of its request did not run", what);
        return 0;
    }

    return 1;
}


/* Returns whether the application may set status and headers now, else with the exception that PEP 3333 asks for. */
static int
prony_wsgi_may_start(prony_wsgi_exchange_t *exchange, PyObject *exc_info)
{
    PyObject  *type, *value, *traceback;

    if (!prony_wsgi_is_running(exchange, "start_response()")) {
        return 0;
    }

    if (exc_info == Py_None) {
        if (exchange->status != NULL) {
            PyErr_SetString(PyExc_AssertionError, "start_response() was called again, without exc_info");
            return 0;
        }

        return 1;
    }

    if (!PyTuple_Check(exc_info) || PyTuple_GET_SIZE(exc_info) != 3
        || !PyExceptionInstance_Check(PyTuple_GET_ITEM(exc_info, 1)))
    {
        PyErr_Format(PyExc_TypeError, "exc_info must be as sys.exc_info() returns it, not %R", exc_info);
        return 0;
    }

    if (exchange->headers_sent) {
        value = PyTuple_GET_ITEM(exc_info, 1);
        type = (PyObject *) Py_TYPE(value);
        traceback = PyTuple_GET_ITEM(exc_info, 2);
        PyErr_Restore(Py_NewRef(type), Py_NewRef(value), traceback == Py_None ? NULL : Py_NewRef(traceback));
        return 0;
    }

    return 1;
}


/* start_response() and write(): the objects */


static PyObject *
prony_wsgi_start_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char            *names[] = { "status", "headers", "exc_info", NULL };
    prony_wsgi_exchange_t  *exchange = ((prony_wsgi_start_t *) self)->exchange;
    PyObject               *status, *headers, *checked, *exc_info = Py_None;
    off_t                   content_length = -1;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|O:start_response", names, &status, &headers, &exc_info)
        || !prony_wsgi_may_start(exchange, exc_info)
        || prony_wsgi_check_status(status) < 0)
    {
        return NULL;
    }

    checked = prony_wsgi_check_headers(headers, &content_length);
    if (checked == NULL) {
        return NULL;
    }

    Py_XSETREF(exchange->status, Py_NewRef(status));
    Py_XSETREF(exchange->headers, checked);
    exchange->content_length = content_length;

    return PyObject_GetAttrString(self, "write");
}


static ngx_int_t prony_wsgi_emit(prony_wsgi_exchange_t *exchange, PyObject *block, ngx_uint_t is_last);


static PyObject *
prony_wsgi_write(PyObject *self, PyObject *block)
{
    prony_wsgi_exchange_t  *exchange = ((prony_wsgi_start_t *) self)->exchange;

    if (!prony_wsgi_is_running(exchange, "write()")) {
        return NULL;
    }

    if (exchange->gone) {
        PyErr_SetString(PyExc_BrokenPipeError, "the client is gone");
        return NULL;
    }

    if (prony_wsgi_emit(exchange, block, 0) != NGX_OK) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_BrokenPipeError, "the client is gone");
        }
        return NULL;
    }

    if (exchange->excess) {
        PyErr_SetString(PyExc_ValueError, "write() was given more than the Content-Length");
        return NULL;
    }

    Py_RETURN_NONE;
}


static void
prony_wsgi_start_free(PyObject *self)
{
    PyObject_Free(self);
}


static PyMethodDef  prony_wsgi_start_methods[] = {
    { "write", prony_wsgi_write, METH_O, NULL },
    { NULL, NULL, 0, NULL }
};


static PyTypeObject  prony_wsgi_start_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "prony_wsgi.StartResponse",
    .tp_basicsize = sizeof(prony_wsgi_start_t),
    .tp_dealloc = prony_wsgi_start_free,
    .tp_call = prony_wsgi_start_call,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "start_response(status, headers, exc_info=None) -> write",
    .tp_methods = prony_wsgi_start_methods,
};


int
prony_wsgi_reply_ready(void)
{
    return PyType_Ready(&prony_wsgi_start_type);
}


PyObject *
prony_wsgi_start_response(prony_wsgi_exchange_t *exchange)
{
    prony_wsgi_start_t  *start = PyObject_New(prony_wsgi_start_t, &prony_wsgi_start_type);

    if (start != NULL) {
        start->exchange = exchange;
    }

    return (PyObject *) start;
}


/* The application may keep the object for longer than the exchange lasts. */
void
prony_wsgi_forget_exchange(PyObject *start_response)
{
    if (start_response != NULL) {
        ((prony_wsgi_start_t *) start_response)->exchange = NULL;
    }
}


/* Headers, into nginx's own form: copied, for the access log reads them after the application's are gone */


static ngx_int_t
prony_wsgi_copy(ngx_pool_t *pool, PyObject *text, ngx_str_t *copy)
{
    ngx_str_t  original;

    original.data = PyUnicode_1BYTE_DATA(text);
    original.len = (size_t) PyUnicode_GET_LENGTH(text);
    copy->len = original.len;
    copy->data = ngx_pstrdup(pool, &original);

    return copy->data == NULL ? NGX_ERROR : NGX_OK;
}


static void
prony_wsgi_set_content_type(ngx_http_request_t *r, ngx_str_t *value)
{
    u_char  *semicolon = ngx_strlchr(value->data, value->data + value->len, ';');

    r->headers_out.content_type = *value;
    r->headers_out.content_type_len = semicolon ? (size_t) (semicolon - value->data) : value->len;
    r->headers_out.content_type_lowcase = NULL;
}


static ngx_int_t
prony_wsgi_push_header(ngx_http_request_t *r, ngx_str_t *name, ngx_str_t *value)
{
    ngx_table_elt_t     *header = ngx_list_push(&r->headers_out.headers);
    prony_wsgi_known_t  *known;

    if (header == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(header, sizeof(ngx_table_elt_t));
    header->hash = 1;
    header->key = *name;
    header->value = *value;

    for (known = prony_wsgi_known; known->name.len; known++) {
        if (prony_wsgi_is(&known->name, name)) {
            *(ngx_table_elt_t **) ((char *) &r->headers_out + known->offset) = header;
        }
    }

    return NGX_OK;
}


static ngx_int_t
prony_wsgi_set_header(ngx_http_request_t *r, PyObject *header)
{
    static const ngx_str_t  content_length = ngx_string("Content-Length");
    static const ngx_str_t  content_type = ngx_string("Content-Type");
    ngx_str_t               name, value;

    if (prony_wsgi_copy(r->pool, PyTuple_GET_ITEM(header, 0), &name) != NGX_OK
        || prony_wsgi_copy(r->pool, PyTuple_GET_ITEM(header, 1), &value) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (prony_wsgi_is(&content_length, &name)) {
        return NGX_OK;
    }

    if (prony_wsgi_is(&content_type, &name)) {
        prony_wsgi_set_content_type(r, &value);
        return NGX_OK;
    }

    return prony_wsgi_push_header(r, &name, &value);
}


/* Returns NGX_OK, or NGX_ERROR when the client is gone or nginx has no memory. */
static ngx_int_t
prony_wsgi_send_headers(prony_wsgi_exchange_t *exchange, ngx_uint_t is_empty)
{
    ngx_http_request_t  *r = exchange->request;
    ngx_int_t            rc = prony_wsgi_copy(r->pool, exchange->status, &r->headers_out.status_line);
    Py_ssize_t           i;

    for (i = 0; rc == NGX_OK && i < PyTuple_GET_SIZE(exchange->headers); i++) {
        rc = prony_wsgi_set_header(r, PyTuple_GET_ITEM(exchange->headers, i));
    }

    if (rc == NGX_OK) {
        r->headers_out.status = ngx_atoi(r->headers_out.status_line.data, 3);
        r->headers_out.content_length_n = exchange->content_length;
        r->disable_not_modified = 1;  /* conditions are the application's to judge */

        if (r->headers_out.status == NGX_HTTP_NO_CONTENT) {
            r->headers_out.content_length_n = -1;
        }

        if (r->headers_out.status == NGX_HTTP_NO_CONTENT || r->headers_out.status == NGX_HTTP_NOT_MODIFIED) {
            r->header_only = 1;
        }

        /* Without a length a body that is known to be empty is chunked; the length of a GET is not known to HEAD. */
        if (is_empty && exchange->content_length < 0 && !r->header_only && r->method != NGX_HTTP_HEAD) {
            r->headers_out.content_length_n = 0;
        }

        exchange->headers_sent = 1;
        rc = ngx_http_send_header(r);
    }

    exchange->bodyless = r->header_only;
    exchange->gone = rc == NGX_ERROR || rc > NGX_OK;

    return exchange->gone ? NGX_ERROR : NGX_OK;
}


/* Body */


static ngx_int_t
prony_wsgi_hold(prony_wsgi_exchange_t *exchange, PyObject *block)
{
    if (exchange->held == NULL) {
        exchange->held = PyList_New(0);
    }

    return exchange->held == NULL || PyList_Append(exchange->held, block) < 0 ? NGX_ERROR : NGX_OK;
}


/* nginx has sent all that it was given. */
void
prony_wsgi_sent(prony_wsgi_exchange_t *exchange)
{
    exchange->pending = 0;
    Py_CLEAR(exchange->held);
}


/* A small block must not wait for the client's acknowledgement of the one before it. */
static void
prony_wsgi_no_delay(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (core->tcp_nodelay && r->connection->tcp_nodelay == NGX_TCP_NODELAY_UNSET) {
        (void) ngx_tcp_nodelay(r->connection);
    }
}


static ngx_int_t
prony_wsgi_output(prony_wsgi_exchange_t *exchange, PyObject *block, size_t length, ngx_uint_t is_last)
{
    ngx_http_request_t  *r = exchange->request;
    ngx_chain_t         *chain = ngx_chain_get_free_buf(r->pool, &exchange->free);
    ngx_int_t            rc;

    /* Held before it is handed over: if that fails, nothing points to it yet. */
    if (chain == NULL || prony_wsgi_hold(exchange, block) != NGX_OK) {
        exchange->gone = 1;
        return NGX_ERROR;
    }

    chain->buf->pos = (u_char *) PyBytes_AS_STRING(block);
    chain->buf->last = chain->buf->pos + length;
    chain->buf->start = chain->buf->pos;
    chain->buf->end = chain->buf->last;
    chain->buf->tag = (ngx_buf_tag_t) &ngx_http_prony_wsgi_module;
    chain->buf->memory = 1;
    chain->buf->flush = !is_last;
    chain->buf->last_buf = is_last;
    chain->buf->last_in_chain = is_last;

    if (!is_last) {
        prony_wsgi_no_delay(r);
    }

    exchange->sent += (off_t) length;
    exchange->last_sent = is_last;

    rc = ngx_http_output_filter(r, chain);
    ngx_chain_update_chains(r->pool, &exchange->free, &exchange->busy, &chain, (ngx_buf_tag_t) &ngx_http_prony_wsgi_module);

    if (rc == NGX_ERROR) {
        exchange->gone = 1;
        return NGX_ERROR;
    }

    if (r->buffered || r->connection->buffered) {
        exchange->pending = 1;
    } else {
        prony_wsgi_sent(exchange);
    }

    return NGX_OK;
}


/* Sends a block. Returns NGX_ERROR with an exception set, or with `gone`. */
static ngx_int_t
prony_wsgi_emit(prony_wsgi_exchange_t *exchange, PyObject *block, ngx_uint_t is_last)
{
    off_t  length, left;

    if (!PyBytes_Check(block)) {
        PyErr_Format(PyExc_TypeError, "a block of the body must be bytes, not %.100s", Py_TYPE(block)->tp_name);
        return NGX_ERROR;
    }

    if (PyBytes_GET_SIZE(block) == 0) {
        return NGX_OK;
    }

    if (exchange->status == NULL) {
        PyErr_SetString(PyExc_AssertionError, "a block of the body came before start_response() was called");
        return NGX_ERROR;
    }

    if (!exchange->headers_sent && prony_wsgi_send_headers(exchange, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    if (exchange->bodyless) {
        return NGX_OK;
    }

    length = PyBytes_GET_SIZE(block);

    if (exchange->content_length >= 0) {
        left = exchange->content_length - exchange->sent;

        if (length > left) {
            exchange->excess = 1;
            length = left;
        }

        is_last = is_last && length == left;
    }

    return length > 0 ? prony_wsgi_output(exchange, block, (size_t) length, is_last) : NGX_OK;
}


/* Returns a new reference, or NULL at the end and with an exception. */
static PyObject *
prony_wsgi_next(prony_wsgi_exchange_t *exchange, ngx_uint_t *is_last)
{
    PyObject  *block;

    if (exchange->iterator != NULL) {
        *is_last = 0;
        return PyIter_Next(exchange->iterator);
    }

    if (exchange->next >= PySequence_Fast_GET_SIZE(exchange->iterable)) {
        return NULL;
    }

    block = PySequence_Fast_GET_ITEM(exchange->iterable, exchange->next++);
    *is_last = exchange->next >= PySequence_Fast_GET_SIZE(exchange->iterable);

    return Py_NewRef(block);
}


/* The application has no more. */
static ngx_int_t
prony_wsgi_finish(prony_wsgi_exchange_t *exchange)
{
    ngx_http_request_t  *r = exchange->request;

    if (exchange->status == NULL) {
        PyErr_SetString(PyExc_AssertionError, "the application ended without a call of start_response()");
        return prony_wsgi_failed(exchange);
    }

    if (!exchange->headers_sent) {
        if (prony_wsgi_send_headers(exchange, 1) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (exchange->bodyless || exchange->last_sent) {
        return NGX_OK;
    }

    if (exchange->content_length > exchange->sent) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "prony_wsgi: the application sent %O bytes of a Content-Length of %O; the connection is cut",
                      exchange->sent, exchange->content_length);
        return NGX_ERROR;
    }

    return ngx_http_send_special(r, NGX_HTTP_LAST) == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


/* An exception is set: it goes to the error log. Returns 500, or the cut of the connection that tells the client. */
ngx_int_t
prony_wsgi_failed(prony_wsgi_exchange_t *exchange)
{
    if (exchange->gone && PyErr_ExceptionMatches(PyExc_BrokenPipeError)) {
        PyErr_Clear();

    } else {
        prony_wsgi_log_exception();
    }

    return exchange->headers_sent ? NGX_ERROR : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/* Sends block after block, until the end or until the client's socket is full. */
ngx_int_t
prony_wsgi_reply(prony_wsgi_exchange_t *exchange)
{
    PyObject    *block;
    ngx_uint_t   is_last = 0;
    ngx_int_t    rc;

    for ( ;; ) {
        if (exchange->gone) {
            return NGX_ERROR;
        }

        if (exchange->excess) {
            ngx_log_error(NGX_LOG_ERR, exchange->request->connection->log, 0,
                          "prony_wsgi: the application gave more than its Content-Length of %O; the rest is not sent",
                          exchange->content_length);
            return prony_wsgi_finish(exchange);
        }

        if (exchange->last_sent || exchange->bodyless) {
            return NGX_OK;
        }

        if (exchange->pending) {
            return NGX_AGAIN;
        }

        block = prony_wsgi_next(exchange, &is_last);

        if (block == NULL) {
            return PyErr_Occurred() ? prony_wsgi_failed(exchange) : prony_wsgi_finish(exchange);
        }

        rc = prony_wsgi_emit(exchange, block, is_last);
        Py_DECREF(block);

        if (rc != NGX_OK && !exchange->gone) {
            return prony_wsgi_failed(exchange);
        }
    }
}
