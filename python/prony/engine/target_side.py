"""``prony run --target``, on the target: an ordinary `prony run`, whose loads are sent from elsewhere.

``python -m prony.engine.target_side``. On stdin a line of JSON: ``words`` of the command, ``variables``,
``listen``, and ``bytes``, the length of the archive of the app's folder (tar) that follows; then the lines of
`prony.engine.pipe`, ``{"interrupt": true}``, and ``{"beat": true}`` every few seconds. On stdout first
``{"hello": VERSION, "listen": ADDRESS}``, then the lines of `prony.engine.pipe`; at the end ``{"ended":
STATUS, "said": TEXT, "bytes": N}``, and N bytes: the archive of the study, which is kept here unless
``{"taken": true}`` comes. When stdin ends or is silent, the study ends.

>>> main.__name__
'main'
"""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

from prony.core.temporary import temporary_folder
from prony.core.version import own_command, prony_version
from prony.engine.fleet import PIPE
from prony.engine.fleet.hosts import reached_address
from prony.engine.pipe import Pipe
from prony.model.json_codec import Json

# In the home folder here: the archive of a study whose asker was gone when it ended.
_KEPT = "prony-kept.prony"
# Several beats.
_SILENCE_S = 20.0
_LOOK_EVERY_S = 0.1


def main() -> int:
    """Say who is here, run what is asked, and send the archive."""
    found = reached_address()
    asker = Pipe(0, 1)
    asker.send({"hello": prony_version(), "listen": found})
    order = asker.message(_SILENCE_S)
    while order is not None and "words" not in order:
        order = asker.message(_SILENCE_S)  # that was a beat: to pack the app's folder may take long
    packed = None if order is None else asker.lines.block(order["bytes"], _SILENCE_S)
    if order is None or packed is None:
        return 1
    with temporary_folder("target") as place:
        # Servers run as another user.
        place.chmod(0o755)
        _unpack(packed, place / "app")
        _run({**order, "listen": order["listen"] or found}, place, asker)
    return 0


def _unpack(packed: bytes, folder: Path) -> None:
    folder.mkdir()
    if packed:
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")


def _run(order: Json, place: Path, asker: Pipe) -> None:
    heard, to_prony = os.pipe()
    from_prony, said = os.pipe()
    out = place / "study.prony"
    more = ("--fleet", f"{PIPE}{heard}:{said}", "--listen", order["listen"], "--out", str(out), "--no-html")
    with TemporaryFile() as shown:
        process = subprocess.Popen(
            own_command("run", *order["words"], *more),
            cwd=place / "app",
            env={**os.environ, **order["variables"]},
            stdin=subprocess.DEVNULL,
            stdout=shown,
            pass_fds=(heard, said),
            start_new_session=True,
        )
        os.close(heard)
        os.close(said)
        taken = threading.Event()
        orders = _begun(_take_orders, asker, process, to_prony, taken)
        answers = _begun(_pass_on, from_prony, asker)
        status = process.wait()
        # What is written to nobody may block for long.
        while answers.is_alive() and orders.is_alive():
            answers.join(_LOOK_EVERY_S)
        if orders.is_alive():
            shown.seek(0)
            _send(asker, status, shown.read().decode(errors="replace"), out)
            orders.join()
    if out.is_file() and not taken.is_set():
        shutil.move(out, Path.home() / _KEPT)


def _begun(work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _take_orders(
    asker: Pipe, process: "subprocess.Popen[bytes]", to_prony: int, taken: threading.Event
) -> None:
    """Pass on what comes for the engine; end the run as Ctrl-C does, or when nobody waits for it any more."""
    prony = Pipe(to_prony, to_prony)
    while (line := asker.lines.line(_SILENCE_S)) is not None:
        match line:
            case b'{"beat": true}':
                pass
            case b'{"interrupt": true}':
                process.send_signal(signal.SIGINT)
            case b'{"taken": true}':
                taken.set()
                return
            case _:
                with contextlib.suppress(OSError):
                    prony.send_block(line + b"\n")
    os.close(to_prony)
    process.send_signal(signal.SIGTERM)


def _pass_on(from_prony: int, asker: Pipe) -> None:
    with os.fdopen(from_prony, "rb") as lines, contextlib.suppress(OSError):
        for line in lines:
            asker.send_block(line)


def _send(asker: Pipe, status: int, text: str, out: Path) -> None:
    """Send how it ended, and the archive."""
    data = out.read_bytes() if out.is_file() else b""
    with contextlib.suppress(OSError):
        asker.send({"ended": status, "said": text, "bytes": len(data)})
        asker.send_block(data)


if __name__ == "__main__":
    sys.exit(main())
