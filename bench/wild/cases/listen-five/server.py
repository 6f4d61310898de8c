"""Tickets for the transfer of images, on the standard library's server."""
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b'{"transferred": 1048576}\n'


class Server(ThreadingHTTPServer):
    request_queue_size = int(os.environ.get("LISTEN", "5"))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.1)  # the storage
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
