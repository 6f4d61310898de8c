/*
 * ngx_http_prony_wsgi_module: CPython embedded in nginx, for measurement.
 *
 * It stands in for nginx's mod_wsgi of 2007, which is dead, was for Python 2 and whose source is not to be found.
 * It is written anew and keeps what made that one: an interpreter in each worker process, and an application that
 * is called synchronously on the event loop, so that a request blocks its worker while the application runs. A
 * worker is free between two blocks of a reply that the client is slow to take, and only then.
 *
 * This file: the directives, the interpreter's life in the worker, and an exchange from request to end.
 */

#include "ngx_http_prony_wsgi.h"


typedef struct {
    char                 *module;
    char                 *attribute;
    PyObject             *callable;    /* NULL when it could not be imported */
} prony_wsgi_application_t;

typedef struct {
    ngx_str_t             python;
    ngx_array_t           folders;       /* of ngx_str_t */
    ngx_array_t           applications;  /* of prony_wsgi_application_t * */
} prony_wsgi_main_conf_t;

typedef struct {
    prony_wsgi_application_t  *application;
} prony_wsgi_location_conf_t;


static void *prony_wsgi_create_main_conf(ngx_conf_t *cf);
static void *prony_wsgi_create_location_conf(ngx_conf_t *cf);
static char *prony_wsgi_merge_location_conf(ngx_conf_t *cf, void *parent, void *child);
static char *prony_wsgi_set_application(ngx_conf_t *cf, ngx_command_t *command, void *conf);
static char *prony_wsgi_set_python(ngx_conf_t *cf, ngx_command_t *command, void *conf);
static char *prony_wsgi_add_folders(ngx_conf_t *cf, ngx_command_t *command, void *conf);
static ngx_int_t prony_wsgi_init_worker(ngx_cycle_t *cycle);
static void prony_wsgi_exit_worker(ngx_cycle_t *cycle);
static ngx_int_t prony_wsgi_handler(ngx_http_request_t *r);
static void prony_wsgi_run(ngx_http_request_t *r);
static void prony_wsgi_writable(ngx_http_request_t *r);
static void prony_wsgi_end(prony_wsgi_exchange_t *exchange);
static void prony_wsgi_cleanup(void *data);


static ngx_command_t  prony_wsgi_commands[] = {

    { ngx_string("prony_wsgi"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      prony_wsgi_set_application,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("prony_wsgi_path"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      prony_wsgi_add_folders,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("prony_wsgi_python"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      prony_wsgi_set_python,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  prony_wsgi_context = {
    .create_main_conf = prony_wsgi_create_main_conf,
    .create_loc_conf = prony_wsgi_create_location_conf,
    .merge_loc_conf = prony_wsgi_merge_location_conf,
};


ngx_module_t  ngx_http_prony_wsgi_module = {
    NGX_MODULE_V1,
    &prony_wsgi_context,
    prony_wsgi_commands,
    NGX_HTTP_MODULE,
    NULL,                          /* init master */
    NULL,                          /* init module */
    prony_wsgi_init_worker,        /* init process */
    NULL,                          /* init thread */
    NULL,                          /* exit thread */
    prony_wsgi_exit_worker,        /* exit process */
    NULL,                          /* exit master */
    NGX_MODULE_V1_PADDING
};


ngx_http_request_t     *prony_wsgi_current;

static ngx_queue_t      prony_wsgi_open;    /* exchanges that have not ended */
static PyThreadState   *prony_wsgi_thread;  /* of this, the only nginx thread, while it does not hold the GIL */
static ngx_uint_t       prony_wsgi_runs;    /* whether there is an interpreter */


/* The application's own threads run whenever nginx waits or works for itself: it holds the GIL for Python alone. */

static void
prony_wsgi_enter(ngx_http_request_t *r)
{
    PyEval_RestoreThread(prony_wsgi_thread);
    prony_wsgi_current = r;
}


static void
prony_wsgi_leave(void)
{
    prony_wsgi_flush_errors();
    prony_wsgi_current = NULL;
    prony_wsgi_thread = PyEval_SaveThread();
}


/* Directives */


static void *
prony_wsgi_create_main_conf(ngx_conf_t *cf)
{
    prony_wsgi_main_conf_t  *conf = ngx_pcalloc(cf->pool, sizeof(prony_wsgi_main_conf_t));

    if (conf == NULL
        || ngx_array_init(&conf->folders, cf->pool, 4, sizeof(ngx_str_t)) != NGX_OK
        || ngx_array_init(&conf->applications, cf->pool, 4, sizeof(prony_wsgi_application_t *)) != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static void *
prony_wsgi_create_location_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(prony_wsgi_location_conf_t));
}


static char *
prony_wsgi_merge_location_conf(ngx_conf_t *cf, void *parent, void *child)
{
    prony_wsgi_location_conf_t  *above = parent;
    prony_wsgi_location_conf_t  *conf = child;
    ngx_http_core_loc_conf_t    *core;

    /* Only `if` and `limit_except` blocks are the location that they stand in; a nested location is another one. */
    core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if ((core->noname || core->lmt_excpt) && conf->application == NULL && above->application != NULL) {
        conf->application = above->application;
        core->handler = prony_wsgi_handler;
    }

    return NGX_CONF_OK;
}


static char *
prony_wsgi_set_application(ngx_conf_t *cf, ngx_command_t *Py_UNUSED(command), void *conf)
{
    prony_wsgi_location_conf_t  *location = conf;
    prony_wsgi_main_conf_t      *main_conf;
    prony_wsgi_application_t    *application, **slot;
    ngx_http_core_loc_conf_t    *core;
    ngx_str_t                   *words = cf->args->elts;
    char                        *colon = ngx_strchr(words[1].data, ':');

    if (location->application != NULL) {
        return "is duplicate";
    }

    if (colon == NULL || (u_char *) colon == words[1].data || colon[1] == '\0') {
        return "needs `MODULE:ATTRIBUTE`";
    }

    main_conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_prony_wsgi_module);
    application = ngx_pcalloc(cf->pool, sizeof(prony_wsgi_application_t));
    slot = ngx_array_push(&main_conf->applications);

    if (application == NULL || slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *colon = '\0';
    application->module = (char *) words[1].data;
    application->attribute = colon + 1;
    location->application = *slot = application;

    core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    core->handler = prony_wsgi_handler;

    return NGX_CONF_OK;
}


static char *
prony_wsgi_set_python(ngx_conf_t *cf, ngx_command_t *Py_UNUSED(command), void *conf)
{
    prony_wsgi_main_conf_t  *main_conf = conf;
    ngx_str_t               *words = cf->args->elts;

    if (main_conf->python.data != NULL) {
        return "is duplicate";
    }

    main_conf->python = words[1];

    if (ngx_conf_full_name(cf->cycle, &main_conf->python, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
prony_wsgi_add_folders(ngx_conf_t *cf, ngx_command_t *Py_UNUSED(command), void *conf)
{
    prony_wsgi_main_conf_t  *main_conf = conf;
    ngx_str_t               *words = cf->args->elts, *folder;
    ngx_uint_t               i;

    for (i = 1; i < cf->args->nelts; i++) {
        folder = ngx_array_push(&main_conf->folders);
        if (folder == NULL) {
            return NGX_CONF_ERROR;
        }

        *folder = words[i];

        if (ngx_conf_full_name(cf->cycle, folder, 0) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* The interpreter */


static PyStatus
prony_wsgi_initialize(prony_wsgi_main_conf_t *conf)
{
    PyStatus  status;
    PyConfig  config;

    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;
    config.install_signal_handlers = 0;  /* signals are nginx's */

    /*
     * The standard library is that of libpython, never that of the interpreter the environment was made with: its
     * compiled parts belong together. `site` finds the environment from the name of its interpreter.
     */
    status = PyConfig_SetBytesString(&config, &config.home, PRONY_WSGI_HOME);

    if (!PyStatus_Exception(status) && conf->python.len) {
        status = PyConfig_SetBytesString(&config, &config.executable, (char *) conf->python.data);
    }

    if (!PyStatus_Exception(status) && conf->python.len) {
        status = PyConfig_SetBytesString(&config, &config.program_name, (char *) conf->python.data);
    }

    if (!PyStatus_Exception(status)) {
        status = Py_InitializeFromConfig(&config);
    }

    PyConfig_Clear(&config);

    return status;
}


static int
prony_wsgi_extend_path(prony_wsgi_main_conf_t *conf)
{
    PyObject    *path = PySys_GetObject("path");  /* borrowed */
    PyObject    *text;
    ngx_str_t   *folders = conf->folders.elts;
    ngx_uint_t   i;
    int          failed;

    if (path == NULL || !PyList_Check(path)) {
        PyErr_SetString(PyExc_RuntimeError, "sys.path is lost");
        return -1;
    }

    for (i = 0; i < conf->folders.nelts; i++) {
        text = PyUnicode_DecodeFSDefaultAndSize((char *) folders[i].data, (Py_ssize_t) folders[i].len);
        if (text == NULL) {
            return -1;
        }

        failed = PyList_Insert(path, (Py_ssize_t) i, text);
        Py_DECREF(text);

        if (failed) {
            return -1;
        }
    }

    return 0;
}


static void
prony_wsgi_import(prony_wsgi_application_t *application, ngx_log_t *log)
{
    PyObject  *module, *callable = NULL;

    module = PyImport_ImportModule(application->module);

    if (module != NULL) {
        callable = PyObject_GetAttrString(module, application->attribute);
        Py_DECREF(module);
    }

    if (callable != NULL && !PyCallable_Check(callable)) {
        PyErr_Format(PyExc_TypeError, "`%s:%s` cannot be called", application->module, application->attribute);
        Py_CLEAR(callable);
    }

    if (callable == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "prony_wsgi: `%s:%s` cannot be imported; its requests are answered 500",
                      application->module, application->attribute);
        prony_wsgi_log_exception();
    }

    application->callable = callable;
}


/*
 * A worker that cannot import its application lives and answers 500: one that refused to start would leave the
 * listening socket open with nobody behind it, and clients that wait instead of being told.
 */
static ngx_int_t
prony_wsgi_init_worker(ngx_cycle_t *cycle)
{
    prony_wsgi_application_t  **applications;
    prony_wsgi_main_conf_t     *conf;
    PyStatus                    status;
    ngx_uint_t                  i;

    ngx_queue_init(&prony_wsgi_open);
    conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_prony_wsgi_module);

    /* The processes that look after caches are initialised as workers are. */
    if (conf == NULL || conf->applications.nelts == 0
        || (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    status = prony_wsgi_initialize(conf);

    if (PyStatus_Exception(status)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "prony_wsgi: Python does not start: %s",
                      status.err_msg ? status.err_msg : "no reason given");
        return NGX_OK;
    }

    applications = conf->applications.elts;

    if (prony_wsgi_environ_ready(cycle) == 0 && prony_wsgi_reply_ready() == 0 && prony_wsgi_extend_path(conf) == 0) {
        for (i = 0; i < conf->applications.nelts; i++) {
            prony_wsgi_import(applications[i], cycle->log);
        }

    } else {
        PyErr_Print();
    }

    prony_wsgi_runs = 1;
    prony_wsgi_leave();

    return NGX_OK;
}


static void
prony_wsgi_exit_worker(ngx_cycle_t *cycle)
{
    prony_wsgi_exchange_t  *exchange;

    if (!prony_wsgi_runs) {
        return;
    }

    prony_wsgi_enter(NULL);

    while (!ngx_queue_empty(&prony_wsgi_open)) {
        exchange = ngx_queue_data(ngx_queue_head(&prony_wsgi_open), prony_wsgi_exchange_t, queue);
        prony_wsgi_current = exchange->request;
        prony_wsgi_end(exchange);
    }

    prony_wsgi_flush_errors();
    prony_wsgi_current = NULL;
    prony_wsgi_runs = 0;

    if (Py_FinalizeEx() < 0) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0, "prony_wsgi: Python could not write all its output at the end");
    }
}


/* An exchange */


static ngx_int_t
prony_wsgi_handler(ngx_http_request_t *r)
{
    prony_wsgi_location_conf_t  *conf = ngx_http_get_module_loc_conf(r, ngx_http_prony_wsgi_module);
    ngx_int_t                    rc;

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "prony_wsgi answers no subrequests");
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (conf->application->callable == NULL) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "prony_wsgi: `%s:%s` was not imported when the worker started",
                      conf->application->module, conf->application->attribute);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_read_client_request_body(r, prony_wsgi_run);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static prony_wsgi_exchange_t *
prony_wsgi_create_exchange(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t     *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(prony_wsgi_exchange_t));
    prony_wsgi_exchange_t  *exchange;

    if (cleanup == NULL) {
        return NULL;
    }

    exchange = cleanup->data;
    ngx_memzero(exchange, sizeof(prony_wsgi_exchange_t));
    exchange->request = r;
    exchange->content_length = -1;
    ngx_queue_insert_tail(&prony_wsgi_open, &exchange->queue);
    cleanup->handler = prony_wsgi_cleanup;
    ngx_http_set_ctx(r, exchange, ngx_http_prony_wsgi_module);

    return exchange;
}


/* Calls the application and sets `iterable`, and `iterator` for one that cannot be indexed. */
static int
prony_wsgi_call(prony_wsgi_exchange_t *exchange, PyObject *callable)
{
    PyObject  *environ;

    exchange->start_response = prony_wsgi_start_response(exchange);
    exchange->input = prony_wsgi_input(exchange->request);

    if (exchange->start_response == NULL || exchange->input == NULL) {
        return -1;
    }

    environ = prony_wsgi_environ(exchange->request, exchange->input);
    if (environ == NULL) {
        return -1;
    }

    exchange->iterable = PyObject_CallFunctionObjArgs(callable, environ, exchange->start_response, NULL);
    Py_DECREF(environ);

    if (exchange->iterable == NULL) {
        return -1;
    }

    if (!PyList_CheckExact(exchange->iterable) && !PyTuple_CheckExact(exchange->iterable)) {
        exchange->iterator = PyObject_GetIter(exchange->iterable);
        return exchange->iterator == NULL ? -1 : 0;
    }

    return 0;
}


/* Calls close() and lets go of all but the blocks that nginx still has to send. */
static void
prony_wsgi_end(prony_wsgi_exchange_t *exchange)
{
    static const char  *close = "close";
    PyObject           *objects[] = { exchange->iterable, exchange->input };
    PyObject           *result;
    ngx_uint_t          i;

    for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        if (objects[i] != NULL && PyObject_HasAttrString(objects[i], close)) {
            result = PyObject_CallMethod(objects[i], close, NULL);
            if (result == NULL) {
                prony_wsgi_log_exception();
            }
            Py_XDECREF(result);
        }
    }

    prony_wsgi_forget_exchange(exchange->start_response);
    Py_CLEAR(exchange->start_response);
    Py_CLEAR(exchange->input);
    Py_CLEAR(exchange->iterator);
    Py_CLEAR(exchange->iterable);
    Py_CLEAR(exchange->status);
    Py_CLEAR(exchange->headers);

    exchange->ended = 1;
    ngx_queue_remove(&exchange->queue);
}


/* Lets the event loop call again when the client takes more, as nginx does for a reply of its own. */
static void
prony_wsgi_wait(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    ngx_event_t               *event = r->connection->write;

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = prony_wsgi_writable;

    if (!event->delayed) {
        ngx_add_timer(event, core->send_timeout);
    }

    if (ngx_handle_write_event(event, core->send_lowat) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
    }
}


/* Leaves Python: nginx may destroy the request in what follows, and its cleanup enters Python again. */
static void
prony_wsgi_leave_exchange(prony_wsgi_exchange_t *exchange, ngx_int_t rc)
{
    ngx_http_request_t  *r = exchange->request;

    if (rc != NGX_AGAIN) {
        prony_wsgi_end(exchange);
    }

    prony_wsgi_leave();

    if (rc == NGX_AGAIN) {
        prony_wsgi_wait(r);
    } else {
        ngx_http_finalize_request(r, rc);
    }
}


/* The request's body is there. */
static void
prony_wsgi_run(ngx_http_request_t *r)
{
    prony_wsgi_location_conf_t  *conf = ngx_http_get_module_loc_conf(r, ngx_http_prony_wsgi_module);
    prony_wsgi_exchange_t       *exchange = prony_wsgi_create_exchange(r);
    ngx_int_t                    rc;

    if (exchange == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    prony_wsgi_enter(r);

    if (prony_wsgi_call(exchange, conf->application->callable) == 0) {
        rc = prony_wsgi_reply(exchange);
    } else {
        rc = prony_wsgi_failed(exchange);
    }

    prony_wsgi_leave_exchange(exchange, rc);
}


/* The client takes more. */
static void
prony_wsgi_writable(ngx_http_request_t *r)
{
    prony_wsgi_exchange_t  *exchange = ngx_http_get_module_ctx(r, ngx_http_prony_wsgi_module);
    ngx_connection_t       *c = r->connection;

    if (c->write->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT, "client timed out");
        c->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (c->write->delayed) {
        prony_wsgi_wait(r);
        return;
    }

    if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (r->buffered || c->buffered) {
        prony_wsgi_wait(r);
        return;
    }

    /* With limit_rate the timer is that of the delay, which nothing else would end. */
    if (c->write->timer_set && !c->write->delayed) {
        ngx_del_timer(c->write);
    }

    prony_wsgi_enter(r);
    prony_wsgi_sent(exchange);
    prony_wsgi_leave_exchange(exchange, prony_wsgi_reply(exchange));
}


/* The request's pool goes: the client broke off, or the last blocks are sent. */
static void
prony_wsgi_cleanup(void *data)
{
    prony_wsgi_exchange_t  *exchange = data;

    if (!prony_wsgi_runs || (exchange->ended && exchange->held == NULL)) {
        return;
    }

    prony_wsgi_enter(NULL);

    if (!exchange->ended) {
        prony_wsgi_end(exchange);
    }

    Py_CLEAR(exchange->held);
    prony_wsgi_leave();
}
