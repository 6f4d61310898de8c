"""The smallest WSGI application."""

BODY = b"Hello, world!\n"
HEADERS = [("Content-Type", "text/plain"), ("Content-Length", str(len(BODY)))]


def app(environ, start_response):
    start_response("200 OK", list(HEADERS))
    return [BODY]
