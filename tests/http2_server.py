"""A small server of HTTP/2, which answers as a test wants."""

import socket
import ssl
import struct
import threading
from contextlib import contextmanager
from pathlib import Path

CERTIFICATES = Path(__file__).parent / "certificates"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE = 0, 1, 3, 4, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
MOST_STREAMS, INTERNAL_ERROR = 3, 2


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def settings(**values):
    names = {"most_streams": MOST_STREAMS}
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", names[key], values[key]) for key in values))


def ok(stream):
    return frame(HEADERS, END_HEADERS, stream, b"\x88") + frame(DATA, END_STREAM, stream, b"hi")


def reset(stream):
    return frame(RST_STREAM, 0, stream, INTERNAL_ERROR.to_bytes(4))


def exactly(connection, count):
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            raise ConnectionError
        found += piece
    return found


class Server:
    """A server of HTTP/2 without and with TLS: the n-th request, from 0, gets `answer(n, stream)`."""

    def __init__(self, answer, opening):
        self.answer, self.opening = answer, opening
        self.connections = self.requests = self.body_bytes = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def accept(self, context):
        threads = []
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                break
            self.connections += 1
            threads.append(threading.Thread(target=self.serve, args=(connection, context)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def serve(self, connection, context):
        try:
            # Frames are written one by one: none waits for the word that the one before has come.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            with connection:
                self.speak(connection)
        except OSError:
            connection.close()

    def speak(self, connection):
        assert exactly(connection, len(PREFACE)) == PREFACE
        connection.sendall(self.opening)
        while True:
            header = exactly(connection, 9)
            kind, flags, stream = header[3], header[4], int.from_bytes(header[5:9])
            length = int.from_bytes(header[:3])
            exactly(connection, length)
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK))
            if kind == DATA and length:
                self.body_bytes += length
                more = length.to_bytes(4)
                connection.sendall(frame(WINDOW_UPDATE, 0, 0, more) + frame(WINDOW_UPDATE, 0, stream, more))
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                with self.lock:
                    number, self.requests = self.requests, self.requests + 1
                connection.sendall(self.answer(number, stream))


@contextmanager
def serving(answer=lambda _number, stream: ok(stream), opening=None, protocols=None):
    server = Server(answer, opening or settings())
    context = None
    if protocols is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
        context.set_alpn_protocols(protocols)
    thread = threading.Thread(target=server.accept, args=(context,))
    thread.start()
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        thread.join()
