"""Servers of each wire in a few lines: read one request, answer it, close."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from prony.model.address import Address, AddressKind, Wire

__all__ = ["END", "READERS", "answering", "as_output"]

END = struct.pack(">BBHHxx", 1, 3, 1, 8) + bytes(8)


def read_fastcgi(stream: BinaryIO) -> tuple[dict[str, str], bytes]:
    streams = {4: b"", 5: b""}
    while True:
        _, kind, _, length, padding = struct.unpack(">BBHHBx", stream.read(8))
        content = stream.read(length + padding)[:length]
        if kind == 5 and not content:
            return _pairs(streams[4]), streams[5]
        if kind in streams:
            streams[kind] += content


def _pairs(data: bytes) -> dict[str, str]:
    found = {}
    while data:
        lengths = []
        for _ in range(2):
            size = 4 if data[0] & 0x80 else 1
            lengths.append(int.from_bytes(data[:size], "big") & 0x7FFFFFFF)
            data = data[size:]
        name, value, data = data[: lengths[0]], data[lengths[0] : sum(lengths)], data[sum(lengths) :]
        found[name.decode()] = value.decode()
    return found


def read_uwsgi(stream: BinaryIO) -> tuple[dict[str, str], bytes]:
    _, size, _ = struct.unpack("<BHB", stream.read(4))
    data, texts = stream.read(size), []
    while data:
        (length,) = struct.unpack("<H", data[:2])
        texts.append(data[2 : 2 + length].decode())
        data = data[2 + length :]
    found = dict(zip(texts[::2], texts[1::2], strict=True))
    return found, stream.read(int(found.get("CONTENT_LENGTH", "0")))


def read_scgi(stream: BinaryIO) -> tuple[dict[str, str], bytes]:
    length = b""
    while (byte := stream.read(1)) != b":":
        length += byte
    *texts, last = stream.read(int(length) + 1).decode().split("\0")
    assert last == ","
    found = dict(zip(texts[::2], texts[1::2], strict=True))
    assert (texts[0], found["SCGI"]) == ("CONTENT_LENGTH", "1")
    return found, stream.read(int(found["CONTENT_LENGTH"]))


READERS: dict[Wire, Callable[[BinaryIO], tuple[dict[str, str], bytes]]] = {
    Wire.FASTCGI: read_fastcgi,
    Wire.UWSGI: read_uwsgi,
    Wire.SCGI: read_scgi,
}


def as_output(wire: Wire, reply: bytes) -> bytes:
    """Return a reply of CGI as the wire carries it: FastCGI in records of three bytes."""
    if wire is not Wire.FASTCGI:
        return reply
    pieces = [reply[at : at + 3] for at in range(0, len(reply), 3)]
    return b"".join(struct.pack(">BBHHBx", 1, 6, 1, len(piece), 1) + piece + b"x" for piece in pieces) + END


@contextmanager
def answering(
    wire: Wire, reply: bytes, path: str = ""
) -> Iterator[tuple[Address, list[tuple[dict[str, str], bytes]]]]:
    """Yield the address of a server that answers one request so, and the list that takes what it was asked.

    ``path``: of a Unix socket; TCP without it.
    """
    asked: list[tuple[dict[str, str], bytes]] = []
    family, name = (socket.AF_UNIX, path) if path else (socket.AF_INET, ("127.0.0.1", 0))
    with socket.socket(family) as server:
        server.bind(name)
        server.listen()

        def answer() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as stream:
                asked.append(READERS[wire](stream))
                connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        if path:
            yield Address(path, 0, AddressKind.UNIX, wire=wire), asked
        else:
            yield Address("127.0.0.1", server.getsockname()[1], wire=wire), asked
        thread.join()
