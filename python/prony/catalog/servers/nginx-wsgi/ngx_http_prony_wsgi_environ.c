/*
 * What the application is given (PEP 3333, "environ Variables" and "Input and Error Streams").
 *
 * Text of the request becomes str by Latin-1, byte by byte, as the PEP has it for Python 3.
 */

#include "ngx_http_prony_wsgi.h"


/* nginx cuts a record at 2,048 bytes, of which the time, the client and the request line take their part. */
#define PRONY_WSGI_RECORD  1024

/* Longer names of header fields are beyond all use; nginx itself has 8 kB for the whole line. */
#define PRONY_WSGI_NAME  256


typedef struct {
    PyObject_HEAD
    PyObject  *partial;  /* bytes: the line that has no end yet */
} prony_wsgi_errors_t;


static PyObject  *prony_wsgi_template;  /* dict: what is the same in every environ */
static PyObject  *prony_wsgi_errors;
static PyObject  *prony_wsgi_bytes_io;
static PyObject  *prony_wsgi_print_exception;


/* wsgi.errors: one record in nginx's error log for each line, under the request that runs */


static void
prony_wsgi_log_line(const char *text, size_t length)
{
    ngx_log_t  *log = prony_wsgi_current ? prony_wsgi_current->connection->log : ngx_cycle->log;
    size_t      part;

    do {
        part = ngx_min(length, PRONY_WSGI_RECORD);
        ngx_log_error(NGX_LOG_ERR, log, 0, "prony_wsgi: %*s", part, text);
        text += part;
        length -= part;
    } while (length > 0);
}


static int
prony_wsgi_errors_append(prony_wsgi_errors_t *self, PyObject *text)
{
    PyObject    *encoded = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    PyObject    *lines;
    const char  *start, *end, *newline;

    if (encoded == NULL) {
        return -1;
    }

    lines = self->partial;
    self->partial = NULL;
    PyBytes_ConcatAndDel(&lines, encoded);

    if (lines == NULL) {
        self->partial = PyBytes_FromStringAndSize(NULL, 0);
        return -1;
    }

    start = PyBytes_AS_STRING(lines);
    end = start + PyBytes_GET_SIZE(lines);

    while ((newline = memchr(start, '\n', (size_t) (end - start))) != NULL) {
        prony_wsgi_log_line(start, (size_t) (newline - start));
        start = newline + 1;
    }

    self->partial = PyBytes_FromStringAndSize(start, end - start);
    Py_DECREF(lines);

    return self->partial == NULL ? -1 : 0;
}


static PyObject *
prony_wsgi_errors_write(PyObject *self, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        return PyErr_Format(PyExc_TypeError, "wsgi.errors takes str, not %.100s", Py_TYPE(text)->tp_name);
    }

    if (prony_wsgi_errors_append((prony_wsgi_errors_t *) self, text) < 0) {
        return NULL;
    }

    return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}


static PyObject *
prony_wsgi_errors_writelines(PyObject *self, PyObject *lines)
{
    PyObject  *iterator = PyObject_GetIter(lines);
    PyObject  *line, *written;

    if (iterator == NULL) {
        return NULL;
    }

    while ((line = PyIter_Next(iterator)) != NULL) {
        written = prony_wsgi_errors_write(self, line);
        Py_DECREF(line);

        if (written == NULL) {
            break;
        }

        Py_DECREF(written);
    }

    Py_DECREF(iterator);

    if (PyErr_Occurred()) {
        return NULL;
    }

    Py_RETURN_NONE;
}


static PyObject *
prony_wsgi_errors_flush(PyObject *self, PyObject *Py_UNUSED(unused))
{
    prony_wsgi_errors_t  *errors = (prony_wsgi_errors_t *) self;
    PyObject             *empty;

    if (PyBytes_GET_SIZE(errors->partial) > 0) {
        empty = PyBytes_FromStringAndSize(NULL, 0);
        if (empty == NULL) {
            return NULL;
        }

        prony_wsgi_log_line(PyBytes_AS_STRING(errors->partial), (size_t) PyBytes_GET_SIZE(errors->partial));
        Py_SETREF(errors->partial, empty);
    }

    Py_RETURN_NONE;
}


static void
prony_wsgi_errors_free(PyObject *self)
{
    Py_XDECREF(((prony_wsgi_errors_t *) self)->partial);
    PyObject_Free(self);
}


static PyMethodDef  prony_wsgi_errors_methods[] = {
    { "write", prony_wsgi_errors_write, METH_O, NULL },
    { "writelines", prony_wsgi_errors_writelines, METH_O, NULL },
    { "flush", prony_wsgi_errors_flush, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL }
};


static PyTypeObject  prony_wsgi_errors_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "prony_wsgi.Errors",
    .tp_basicsize = sizeof(prony_wsgi_errors_t),
    .tp_dealloc = prony_wsgi_errors_free,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "nginx's error log, line by line",
    .tp_methods = prony_wsgi_errors_methods,
};


static PyObject *
prony_wsgi_errors_new(void)
{
    prony_wsgi_errors_t  *errors;

    if (PyType_Ready(&prony_wsgi_errors_type) < 0) {
        return NULL;
    }

    errors = PyObject_New(prony_wsgi_errors_t, &prony_wsgi_errors_type);
    if (errors == NULL) {
        return NULL;
    }

    errors->partial = PyBytes_FromStringAndSize(NULL, 0);
    if (errors->partial == NULL) {
        Py_CLEAR(errors);
    }

    return (PyObject *) errors;
}


void
prony_wsgi_flush_errors(void)
{
    PyObject  *done;

    if (prony_wsgi_errors != NULL) {
        done = prony_wsgi_errors_flush(prony_wsgi_errors, NULL);
        if (done == NULL) {
            PyErr_Clear();
        }
        Py_XDECREF(done);
    }
}


/* Writes the exception that is set, with its traceback, to the error log, and clears it. */
void
prony_wsgi_log_exception(void)
{
    PyObject  *type, *value, *traceback, *keywords, *arguments, *done = NULL;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);

    if (traceback != NULL && value != NULL) {
        PyException_SetTraceback(value, traceback);
    }

    prony_wsgi_flush_errors();

    arguments = Py_BuildValue("(O)", value ? value : Py_None);
    keywords = Py_BuildValue("{s:O}", "file", prony_wsgi_errors);

    if (arguments != NULL && keywords != NULL) {
        done = PyObject_Call(prony_wsgi_print_exception, arguments, keywords);
    }

    if (done == NULL) {
        PyErr_Clear();
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "prony_wsgi: an exception could not be printed");
    }

    Py_XDECREF(done);
    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}


/* What is prepared once */


static PyObject *
prony_wsgi_attribute(const char *module_name, const char *name)
{
    PyObject  *module = PyImport_ImportModule(module_name);
    PyObject  *attribute = module == NULL ? NULL : PyObject_GetAttrString(module, name);

    Py_XDECREF(module);

    return attribute;
}


int
prony_wsgi_environ_ready(ngx_cycle_t *cycle)
{
    ngx_core_conf_t  *core = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    PyObject         *many;

    many = ngx_process == NGX_PROCESS_WORKER && core->worker_processes > 1 ? Py_True : Py_False;

    prony_wsgi_errors = prony_wsgi_errors_new();
    prony_wsgi_bytes_io = prony_wsgi_attribute("io", "BytesIO");
    prony_wsgi_print_exception = prony_wsgi_attribute("traceback", "print_exception");

    if (prony_wsgi_errors == NULL || prony_wsgi_bytes_io == NULL || prony_wsgi_print_exception == NULL) {
        return -1;
    }

    prony_wsgi_template = Py_BuildValue("{s:s, s:s, s:(ii), s:O, s:O, s:O, s:O, s:O}",
                                        "SERVER_SOFTWARE", NGINX_VER " prony_wsgi",
                                        "SCRIPT_NAME", "",
                                        "wsgi.version", 1, 0,
                                        "wsgi.errors", prony_wsgi_errors,
                                        "wsgi.multithread", Py_False,
                                        "wsgi.multiprocess", many,
                                        "wsgi.run_once", Py_False,
                                        "wsgi.input_terminated", Py_True);

    return prony_wsgi_template == NULL ? -1 : 0;
}


/* wsgi.input: nginx has read the whole body; both kinds of object end where it ends */


static PyObject *
prony_wsgi_memory_input(ngx_chain_t *chain)
{
    ngx_chain_t  *link;
    PyObject     *bytes, *input;
    Py_ssize_t    length = 0;
    char         *to;

    for (link = chain; link != NULL; link = link->next) {
        length += link->buf->last - link->buf->pos;
    }

    bytes = PyBytes_FromStringAndSize(NULL, length);
    if (bytes == NULL) {
        return NULL;
    }

    to = PyBytes_AS_STRING(bytes);

    for (link = chain; link != NULL; link = link->next) {
        to = (char *) ngx_cpymem(to, link->buf->pos, link->buf->last - link->buf->pos);
    }

    input = PyObject_CallOneArg(prony_wsgi_bytes_io, bytes);
    Py_DECREF(bytes);

    return input;
}


static PyObject *
prony_wsgi_file_input(ngx_fd_t file)
{
    PyObject  *input;
    int        fd = dup(file);

    /* nginx reads by pread(2): the offset, which both descriptors share, is nobody else's. */
    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        input = NULL;

    } else {
        input = PyFile_FromFd(fd, NULL, "rb", -1, NULL, NULL, NULL, 1);
    }

    if (input == NULL && fd >= 0) {
        (void) close(fd);
    }

    return input;
}


PyObject *
prony_wsgi_input(ngx_http_request_t *r)
{
    ngx_chain_t  *chain = r->request_body ? r->request_body->bufs : NULL;
    ngx_chain_t  *link;

    for (link = chain; link != NULL; link = link->next) {
        if (link->buf->in_file) {
            /* What went to a file went there as a whole, and the file holds nothing else. */
            if (link != chain || link->next != NULL || link->buf->file_pos != 0) {
                PyErr_SetString(PyExc_RuntimeError, "nginx left a part of the request's body out of its file");
                return NULL;
            }

            return prony_wsgi_file_input(link->buf->file->fd);
        }
    }

    return prony_wsgi_memory_input(chain);
}


/* environ */


static int
prony_wsgi_put(PyObject *environ, const char *key, const void *data, size_t length)
{
    PyObject  *value = PyUnicode_DecodeLatin1(data, (Py_ssize_t) length, NULL);
    int        failed;

    if (value == NULL) {
        return -1;
    }

    failed = PyDict_SetItemString(environ, key, value);
    Py_DECREF(value);

    return failed;
}


static int
prony_wsgi_put_number(PyObject *environ, const char *key, off_t number)
{
    u_char  text[NGX_OFF_T_LEN];

    return prony_wsgi_put(environ, key, text, (size_t) (ngx_sprintf(text, "%O", number) - text));
}


static int
prony_wsgi_put_request(PyObject *environ, ngx_http_request_t *r)
{
    ngx_str_t  protocol = ngx_string("HTTP/0.9");
    int        failed;

    if (r->http_protocol.len) {
        protocol = r->http_protocol;
    }

    failed = prony_wsgi_put(environ, "REQUEST_METHOD", r->method_name.data, r->method_name.len)
        || prony_wsgi_put(environ, "PATH_INFO", r->uri.data, r->uri.len)
        || prony_wsgi_put(environ, "QUERY_STRING", r->args.data, r->args.len)
        || prony_wsgi_put(environ, "REQUEST_URI", r->unparsed_uri.data, r->unparsed_uri.len)
        || prony_wsgi_put(environ, "SERVER_PROTOCOL", protocol.data, protocol.len);

    return failed ? -1 : 0;
}


static int
prony_wsgi_put_connection(PyObject *environ, ngx_http_request_t *r)
{
    u_char                     address[NGX_SOCKADDR_STRLEN];
    ngx_str_t                  local = { NGX_SOCKADDR_STRLEN, address };
    ngx_str_t                  name;
    ngx_connection_t          *c = r->connection;
    ngx_http_core_srv_conf_t  *server = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    const char                *scheme = "http";
    int                        failed;

#if (NGX_HTTP_SSL)
    scheme = c->ssl ? "https" : "http";
#endif

    if (ngx_connection_local_sockaddr(c, &local, 0) != NGX_OK) {
        PyErr_SetString(PyExc_OSError, "the address of the listening socket cannot be read");
        return -1;
    }

    name = r->headers_in.server.len ? r->headers_in.server : server->server_name;
    if (name.len == 0) {
        name = local;
    }

    failed = prony_wsgi_put(environ, "SERVER_NAME", name.data, name.len)
        || prony_wsgi_put_number(environ, "SERVER_PORT", ngx_inet_get_port(c->local_sockaddr))
        || prony_wsgi_put(environ, "REMOTE_ADDR", c->addr_text.data, c->addr_text.len)
        || prony_wsgi_put_number(environ, "REMOTE_PORT", ngx_inet_get_port(c->sockaddr))
        || prony_wsgi_put(environ, "wsgi.url_scheme", scheme, ngx_strlen(scheme));

    return failed ? -1 : 0;
}


/* Joins with what an earlier field of the same name left. */
static int
prony_wsgi_put_field(PyObject *environ, const char *key, size_t key_length, ngx_str_t *value)
{
    PyObject    *name = PyUnicode_DecodeLatin1(key, (Py_ssize_t) key_length, NULL);
    PyObject    *text = PyUnicode_DecodeLatin1((char *) value->data, (Py_ssize_t) value->len, NULL);
    PyObject    *earlier, *joined;
    const char  *format = key_length == 11 && ngx_strncmp(key, "HTTP_COOKIE", 11) == 0 ? "%U; %U" : "%U, %U";
    int          failed = -1;

    if (name != NULL && text != NULL) {
        earlier = PyDict_GetItemWithError(environ, name);  /* borrowed */

        if (earlier != NULL) {
            joined = PyUnicode_FromFormat(format, earlier, text);
            Py_SETREF(text, joined);
        }

        failed = text == NULL || PyErr_Occurred() ? -1 : PyDict_SetItem(environ, name, text);
    }

    Py_XDECREF(name);
    Py_XDECREF(text);

    return failed;
}


static int
prony_wsgi_put_header(PyObject *environ, ngx_table_elt_t *header)
{
    char        key[sizeof("HTTP_") - 1 + PRONY_WSGI_NAME];
    ngx_uint_t  i;

    /* CONTENT_LENGTH is what nginx counted, and the body is no longer in chunks. */
    if ((header->key.len == 14 && ngx_strncasecmp(header->key.data, (u_char *) "Content-Length", 14) == 0)
        || (header->key.len == 17 && ngx_strncasecmp(header->key.data, (u_char *) "Transfer-Encoding", 17) == 0)
        || header->key.len > PRONY_WSGI_NAME)
    {
        return 0;
    }

    if (header->key.len == 12 && ngx_strncasecmp(header->key.data, (u_char *) "Content-Type", 12) == 0) {
        return prony_wsgi_put(environ, "CONTENT_TYPE", header->value.data, header->value.len);
    }

    ngx_memcpy(key, "HTTP_", 5);

    for (i = 0; i < header->key.len; i++) {
        key[5 + i] = header->key.data[i] == '-' ? '_' : (char) ngx_toupper(header->key.data[i]);
    }

    return prony_wsgi_put_field(environ, key, 5 + header->key.len, &header->value);
}


static int
prony_wsgi_put_headers(PyObject *environ, ngx_http_request_t *r)
{
    ngx_list_part_t  *part;
    ngx_table_elt_t  *headers;
    ngx_uint_t        i;

    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        headers = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (prony_wsgi_put_header(environ, &headers[i]) < 0) {
                return -1;
            }
        }
    }

    /* After the body was read this is its length, for one in chunks too; without a body it is -1. */
    if (r->headers_in.content_length_n >= 0) {
        return prony_wsgi_put_number(environ, "CONTENT_LENGTH", r->headers_in.content_length_n);
    }

    return 0;
}


PyObject *
prony_wsgi_environ(ngx_http_request_t *r, PyObject *input)
{
    PyObject  *environ = PyDict_Copy(prony_wsgi_template);

    if (environ == NULL) {
        return NULL;
    }

    if (PyDict_SetItemString(environ, "wsgi.input", input) < 0
        || prony_wsgi_put_request(environ, r) < 0
        || prony_wsgi_put_connection(environ, r) < 0
        || prony_wsgi_put_headers(environ, r) < 0)
    {
        Py_DECREF(environ);
        return NULL;
    }

    return environ;
}
