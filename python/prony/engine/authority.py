"""The authority of a server's certificates on its way to another machine: its text crosses, not its place.

>>> text_of({"target": {"host": "192.0.2.1"}}) is None
True
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from prony.errors import EngineError
from prony.model.shapes import Json


def text_of(spec: Json) -> str | None:
    """Return the text of the file that a specification names; null: it names none.

    *Errors*: EngineError when it cannot be read.
    """
    file = (spec["target"].get("tls") or {}).get("ca_file")
    try:
        return file and Path(file).read_text()
    except OSError as error:
        raise EngineError(f"`{file}`: cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def with_authority(spec: Json, text: str | None) -> Iterator[Json]:
    """Yield a specification that names a file of this text, for this process and its children of one user.

    The file is in no folder, so that no kill leaves it.
    """
    if text is None:
        yield spec
        return
    with os.fdopen(os.memfd_create("prony-authority"), "wb", buffering=0) as file:
        file.write(text.encode())
        place = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        target = spec["target"]
        yield {**spec, "target": {**target, "tls": {**target["tls"], "ca_file": place}}}
