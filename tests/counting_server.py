"""A server of threads that keeps each head that it is sent, and counts its connections."""

import socket
import threading
from contextlib import contextmanager

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def head_of(connection):
    """Return the head of the next request on a connection; empty at its end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if not (piece := connection.recv(1)):
            return ""
        head += piece
    return head.decode()


@contextmanager
def listening(handle, host="127.0.0.1", port=0):
    """A server that counts its connections, and hands each to ``handle`` with a list of what was asked."""
    with socket.create_server((host, port)) as listener:
        seen = []

        def guarded(connection):
            with connection:
                try:
                    handle(connection, seen)
                except OSError:
                    return

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                seen.append("")
                threading.Thread(target=guarded, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1], seen
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def answering(connection, seen):
    while head := head_of(connection):
        seen.append(head)
        connection.sendall(OK)


def requests(seen):
    return [one for one in seen if one]


def connections(seen):
    return seen.count("")


def header(request, name):
    lines = (line.partition(": ") for line in request.split("\r\n"))
    return next((value for given, _, value in lines if given.lower() == name), None)
