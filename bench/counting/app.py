"""A WSGI and an ASGI app that count their requests, and tell how many at /counts."""

import json
import threading
from collections import Counter
from typing import Any

_counts: Counter[str] = Counter()
_lock = threading.Lock()
_REPLY = b"counted\n"


def _answer(path: str, body: bytes) -> bytes:
    if path == "/counts":
        return json.dumps(_counts).encode()
    with _lock:
        _counts["requests"] += 1
        _counts["body_bytes"] += len(body)
    return _REPLY


def wsgi(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Count a request."""
    reply = _answer(environ["PATH_INFO"], environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(reply)))])
    return [reply]


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Count a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    reply = _answer(scope["path"], body)
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(reply)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": reply})
