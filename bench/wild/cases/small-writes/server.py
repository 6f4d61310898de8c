"""A controller's page, on the standard library's server: server.py PORT."""
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b'{"valve": "open", "pressure": 1.2}\n'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = os.environ.get("NO_DELAY") == "1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *args) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
