"""A server of one odd behaviour: it counts what it was asked, and what class each of its replies is of."""

import select
import socket
import struct
import threading
from collections import Counter
from contextlib import contextmanager


class Peer:
    """One connection, as a behaviour sees it."""

    def __init__(self, connection, server):
        self.connection, self.server = connection, server
        self.body_left = 0

    def ask(self):
        """Read the head of the next request."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.exactly(1)
        self.count("requests")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        self.body_left = int(length[0][15:]) if length else 0

    def line(self):
        """Read a line without its end, such as the size of a chunk."""
        line = b""
        while not line.endswith(b"\r\n"):
            line += self.exactly(1)
        return line[:-2]

    def waits(self, seconds):
        """Whether the other side has sent something within so long."""
        return bool(select.select([self.connection], [], [], seconds)[0])

    def read_body(self):
        while self.body_left:
            self.body_left -= len(self.take(self.body_left))

    def count(self, name, more=1):
        with self.server.lock:
            self.server.counts[name] += more
            return self.server.counts[name]

    def counted(self, kind, body=0):
        """Count a reply of a class, with a body of so many bytes."""
        with self.server.lock:
            self.server.classes[kind] += 1
            self.server.counts["body_bytes"] += body

    def reply(self, text, body=0, kind="ok", cut=0):
        """Send a reply with a body of so many bytes, which is of a class; ``cut``: in pieces of so many."""
        self.counted(kind, body)
        self.send(text, cut)

    def send(self, text, cut=0):
        for start in range(0, len(text), cut or len(text) or 1):
            self.connection.sendall(text[start : start + (cut or len(text))])

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def end(self):
        """Say that nothing more comes, and wait until the other side ends."""
        self.connection.shutdown(socket.SHUT_WR)
        while self.connection.recv(65536):
            pass

    def exactly(self, count):
        taken = b""
        while len(taken) < count:
            taken += self.take(count - len(taken))
        return taken

    def take(self, count):
        if not (piece := self.connection.recv(min(count, 65536))):
            raise ConnectionError
        return piece


class Server:
    """A server of threads.

    ``classes``: its replies by the class that an account has for such (of bad statuses with the status).
    ``counts``: connections, requests, bytes of the bodies of replies, and what else a behaviour counts.
    """

    def __init__(self, handle):
        self.handle, self.lock = handle, threading.Lock()
        self.classes, self.counts = Counter(), Counter()
        self.faults = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.port = self.listener.getsockname()[1]

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        # Pieces are sent one by one: none waits for the word that the one before has come.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(connection, self)
        peer.count("connections")
        try:
            with connection:
                self.handle(peer)
        except OSError:
            return
        except Exception as fault:
            self.faults.append(repr(fault))


@contextmanager
def serving(handle):
    server = Server(handle)
    thread = threading.Thread(target=server.accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        thread.join()
