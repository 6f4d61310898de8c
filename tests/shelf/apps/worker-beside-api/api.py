import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"api\n")


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(os.environ.get("PORT", "80"))), Page).serve_forever()
