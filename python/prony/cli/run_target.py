"""`prony run --target`: what of a command goes to the target, and what stays here.

``prony run --target``: servers on another machine, the load from this one, the archive here.
"""

import contextlib
import io
import os
import re
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prony.cli.talk import say, show
from prony.core.atomic_files import write_whole_pieces
from prony.core.errors import EngineError, PronyError, UsageError
from prony.core.safe_text import escaped_lines, shortened
from prony.core.units import MIB, format_bytes
from prony.core.version import prony_version
from prony.engine.answers import (
    MOST_LINE_BYTES,
    MOST_MESSAGES,
    Cancel,
    Hello,
    LoadOrder,
    Message,
    RunEnd,
    checked_spec,
    read_message,
    with_authority,
)
from prony.engine.child_process import Child
from prony.engine.fleet.hosts import TargetHost, command_there, end_of, started_process, target_host
from prony.engine.fleet.member import facts
from prony.engine.pipe import Pipe
from prony.model.json_codec import Json
from prony.model.sandbox import EngineSeat
from prony.sandbox.watch.sock_diag import SockDiag

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.cli.run_options import RunOptions


# What an app is not made of, or what is built again there.
_NOT_SENT = {".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".prony", ".tox", ".mypy_cache"}
_MODULE = "prony.engine.target_side"
_MOST_BYTES = 200 * MIB
_BEAT_EVERY_S = 3.0
_SSH_ENDS_S, _SSH_OF_NO_TARGET_ENDS_S = 10.0, 0.5
# A child that is asked to end is killed after less.
_ENDING_S = 20.0
# It has said that it sends now.
_ARCHIVE_SILENCE_S = 60.0
# Of an honest study no load is refused, or each of its trials'.
_MOST_REFUSED = 100


@dataclass(frozen=True, slots=True)
class StudyThere:
    """What the target is to run. ``words``: the command's options; ``folder``: the app's, null: none is sent;
    ``file``: a study's file that is sent; ``variables``: of this side's environment, which the app gets.
    """

    words: Sequence[str]
    out: Path
    folder: Path | None = None
    file: Path | None = None
    variables: Mapping[str, str] | None = None


def typed_words(context: typer.Context, left_out: Sequence[str]) -> list[str]:
    """Return the typed arguments and options as words, without those of these parameters."""
    found: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in left_out or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        values = value if isinstance(value, list | tuple) else [value]
        if parameter.param_type_name == "argument":
            found += [str(one) for one in values]
        elif value is True:
            found.append(parameter.opts[0])
        else:
            found += [word for one in values for word in (parameter.opts[0], str(getattr(one, "value", one)))]
    return found


def run_on_target(target: TargetHost, asked: StudyThere) -> int:
    """Run the study there, with loads from here; its archive is ``asked.out``. Return the status there.

    *Errors*: EngineError when the target does not answer, or has another Prony; HostError without ssh.
    """
    packed = _packed(asked)
    with _reached(target) as there, there.beating():
        return there.run(target, asked, packed)


@contextlib.contextmanager
def _reached(target: TargetHost) -> "Iterator[_There]":
    process = started_process(command_there(target, target.ssh_config, _MODULE), subprocess.PIPE)
    patience_s = _SSH_ENDS_S
    try:
        yield _There(process)
    except EngineError:
        # Whoever says what it may not is not waited for.
        patience_s = _SSH_OF_NO_TARGET_ENDS_S
        raise
    finally:
        with contextlib.suppress(OSError):
            end_of(process.stdin).close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
        process.kill()
        process.wait()
        end_of(process.stdout).close()


class _There:
    """The other side of a run."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        ends = end_of(process.stdout).fileno(), end_of(process.stdin).fileno()
        # Who asks and does not listen must not make this side wait.
        os.set_blocking(ends[1], False)
        self._pipe = Pipe(*ends, peer="the target", longest=MOST_LINE_BYTES)
        self._refused = 0
        self._lock = threading.Lock()
        self._load: _Load | None = None
        self._taken: frozenset[int] = frozenset()

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Within the block the other side hears that somebody waits."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(_BEAT_EVERY_S):
                self._say({"beat": True})

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()

    def run(self, target: TargetHost, asked: StudyThere, packed: bytes) -> int:
        listen = self._greeted(target)
        own = {"127.0.0.1", "::1", *_addresses(socket.gethostname())}
        self._taken = _ports_of_others() if listen in own else frozenset()
        order = {"words": asked.words, "variables": dict(asked.variables or {}), "listen": target.listen}
        self._say({**order, "bytes": len(packed)}, packed)
        is_interrupted = False
        while True:
            try:
                return self._followed(listen, asked.out)
            except EngineError:
                self._end_load()
                raise
            except KeyboardInterrupt:
                if is_interrupted:
                    raise
                is_interrupted = True
                say("interrupted: waiting for the target to stop and to send what it has")
                self._say({"interrupt": True})

    def _greeted(self, target: TargetHost) -> str:
        """Return the address at which servers there will take the load.

        *Errors*: EngineError when nobody answers, or with another Prony; UsageError for an address that was
        not named.
        """
        message = self._heard()
        if message is None:
            status = self._process.wait(10)
            raise EngineError(
                f"the target `{target.address}` did not start Prony (ssh ended with status {status})",
                hint=f"try: ssh {target.name} {target.python} -m prony --version",
            )
        if not isinstance(message, Hello):
            raise EngineError("the target sent no greeting of Prony's first")
        if message.hello != prony_version():
            raise EngineError(
                f"this is Prony {prony_version()}, and the target has {shortened(message.hello)}",
                hint="install the same version there",
            )
        listen = target.listen or shortened(message.listen)
        if target.listen is None and listen not in _addresses(target.address):
            raise UsageError(
                f"`{target.address}` was reached at `{listen}`, which is not an address of that name here",
                hint=f"name the address there that servers listen on: --listen {listen}",
            )
        return listen

    def _followed(self, listen: str, out: Path) -> int:
        for _ in range(MOST_MESSAGES):
            if (message := self._heard()) is None:
                raise _cut()
            match message:
                case RunEnd(status, said, length):
                    self._take_archive(length, out)
                    if not length:
                        show(escaped_lines(said), end="")
                    return status
                case Cancel(number):
                    if self._load is not None and self._load.number == number:
                        self._load.cancel()
                case LoadOrder():
                    self._begin(message, listen)
                case Hello():
                    raise EngineError("the target greeted twice")
        raise EngineError(f"the target sent more than {MOST_MESSAGES} messages")

    def _heard(self) -> Message | None:
        found = self._pipe.message()
        return None if found is None else read_message(found)

    def _begin(self, order: LoadOrder, listen: str) -> None:
        """Begin a load, one at a time: an earlier one has ended, or was asked to."""
        if self._load is not None and not self._load.is_over():
            raise EngineError("the target asked for a load while another one ran")
        try:
            spec = checked_spec(order, listen, self._taken)
        except EngineError as error:
            self._refused += 1
            if self._refused > _MOST_REFUSED:
                raise
            self._say({"load": order.load, "error": error.message})
            return
        self._load = _Load(order, spec, self._say)
        self._load.start()

    def _end_load(self) -> None:
        if self._load is not None:
            self._load.cancel()
            self._load.is_over()

    def _take_archive(self, length: int, out: Path) -> None:
        if length:
            write_whole_pieces(out, self._archive(length))
        self._say({"taken": True})

    def _archive(self, length: int) -> Iterator[bytes]:
        for piece in self._pipe.lines.pieces(length, _ARCHIVE_SILENCE_S):
            length -= len(piece)
            yield piece
        if length:
            raise _cut()

    def _say(self, message: Json, block: bytes = b"") -> None:
        with self._lock, contextlib.suppress(OSError):
            try:
                self._pipe.send(message)
                self._pipe.send_block(block)
            except TimeoutError:
                # What it says after that is not heard.
                self._process.kill()


def _cut() -> EngineError:
    return EngineError(
        "the connection to the target was cut", hint="what it has measured is kept there, in its home"
    )


class _Load:
    """One load, sent from here in a thread of its own; ``number``: the target's name for it."""

    def __init__(self, order: LoadOrder, spec: Json, answer: Callable[[Json], None]) -> None:
        self.number = order.load
        self._order, self._spec, self._answer = order, spec, answer
        self._child = Child("prony.engine.child")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ending = threading.Event()

    def start(self) -> None:
        """Send it, and answer with its events and its Recording."""
        self._thread.start()

    def cancel(self) -> None:
        """End it."""
        self._ending.set()
        self._child.cancel()

    def is_over(self) -> bool:
        """Return whether it has ended, or ends now, which is waited for."""
        if self._ending.is_set():
            self._thread.join(_ENDING_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        seat = EngineSeat(cpus=tuple(sorted(os.sched_getaffinity(0))))
        try:
            with with_authority(self._spec, self._order.authority) as whole:
                order = {"spec": whole, "seat": asdict(seat)}
                result = self._child.run(order, self._order.limit_ns, self._pass_on)
            answer: Json = {"recording": result.said, "machine": facts()}
        except PronyError as error:
            answer = {"error": shortened(error.message, 400)}
        self._ending.set()
        self._say(answer)

    def _pass_on(self, event: Json) -> None:
        self._say({"event": event})

    def _say(self, message: Json) -> None:
        self._answer({"load": self.number, **message})


def _ports_of_others() -> frozenset[int]:
    """Return the ports of this machine at which programs listen already: none is a server of the study."""
    try:
        with SockDiag() as kernel:
            return frozenset(one.port for one in kernel.tcp_listeners())
    except OSError:
        return frozenset()


def _addresses(host: str) -> set[str]:
    """Return the addresses of a name; nothing for one that only ssh knows."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError:
        return set()


def _packed(asked: StudyThere) -> bytes:
    """Return what is sent: the app's folder without what is built again, or a study's file.

    *Errors*: UsageError when that is too much.
    """
    if asked.folder is None and asked.file is None:
        return b""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as files:
        if asked.file is not None:
            files.add(asked.file, asked.file.name)
        if asked.folder is not None:
            files.add(asked.folder, ".", filter=_wanted)
    if packed.tell() > _MOST_BYTES:
        raise UsageError(
            f"`{asked.folder}` has {format_bytes(packed.tell())}, packed; "
            f"expected at most {format_bytes(_MOST_BYTES)}",
            hint="start in the app's own folder, or name it: --dir FOLDER",
        )
    return packed.getvalue()


def _wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = set(member.name.split("/"))
    return None if parts & _NOT_SENT or member.name.endswith((".prony", ".prony-journal")) else member


# What this side does with the result, or what is typed otherwise there.
_STAYS = ("target", "study", "directories", "out", "json_to", "full", "no_html", "strict", "env", "listen")
# What would run there, and send the load from there.
_REFUSED = ("groups", "engine", "cross_check", "fleet", "fleet_certificates", "python")
_FILES = ("requirements", "env_file", "catalog")


def run_there(context: "typer.Context", options: "RunOptions", known: "Catalog") -> tuple[int, Path]:
    """Run the command on the target; return its status, and where its archive is, if it has sent one.

    *Errors*: UsageError for options that do not apply, and as `run_on_target`.
    """
    for name in _REFUSED:
        if name in options.typed:
            raise UsageError(f"`{options.typed[name]}` does not work with `--target`")
    if len(options.own.folders) > 1:
        raise UsageError("`--target` gets one folder; expected one `--dir`")
    target = target_host(options.what.target or "")
    if options.load.listen is not None:
        target = target.model_copy(update={"listen": options.load.listen})
    is_own = options.study is None and (bool(options.own.commands) or options.own.app not in known.apps)
    folder = options.own.folder if is_own else None
    file = Path(options.study) if options.study and options.study.endswith(".toml") else None
    _check_files(context, options, folder)
    variables = [word for pair in options.own.env or () for word in ("--env", pair)]
    asked = StudyThere(
        words=[*_study(options, file), *typed_words(context, _STAYS), *variables],
        out=_archive(options),
        folder=folder,
        file=file,
        variables={name: os.environ[name] for name in _passed(options)},
    )
    return run_on_target(target, asked), asked.out


def _study(options: "RunOptions", file: Path | None) -> list[str]:
    from prony.study.task import read_source

    own = next(iter(read_source(str(file)).document.apps), None) if file is not None else None
    if own is not None:
        raise UsageError(
            f"`{file}` has an app of yours, `[apps.{own}]`: with `--target` a study's file is sent alone",
            hint="send the app's folder: prony run --app module:attribute --target ...",
        )
    return [file.name] if file else [options.study] if options.study else []


def _passed(options: "RunOptions") -> list[str]:
    """Return the variables whose values are those of this side.

    *Errors*: UsageError for one that is not set here.
    """
    names = [pair for pair in options.own.env or () if "=" not in pair]
    for name in names:
        if name not in os.environ:
            raise UsageError(f"`--env {name}`: no such variable is set here; expected `{name}=value`")
    return names


def _check_files(context: "typer.Context", options: "RunOptions", folder: Path | None) -> None:
    """Refuse files that the target would not find: it has the app's folder alone.

    *Errors*: UsageError naming the option.
    """
    for name in _FILES:
        value = context.params.get(name)
        for path in value if isinstance(value, list) else [value] if value else []:
            # Where the target's Prony is started, relative paths are those of the folder.
            if folder is None or Path(path).is_absolute() or not (folder / path).exists():
                raise UsageError(
                    f"`{options.typed[name]} {path}`: expected a path in the app's folder; only that is sent",
                    hint="start Prony in that folder, and name the file by its place in it",
                )


def _archive(options: "RunOptions") -> Path:
    """Return the file to write.

    *Errors*: UsageError for a file that exists.
    """
    own = options.study or options.own.app or "app"
    name = re.sub(r"[^a-z0-9]+", "-", Path(own).stem.lower()).strip("-") or "app"
    out = options.output.out or Path(f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.prony")
    if out.exists():
        raise UsageError(f"`{out}` exists already", hint="name another file with `--out`, or move this one")
    if not (out.absolute().parent.is_dir() and os.access(out.absolute().parent, os.W_OK | os.X_OK)):
        raise UsageError(f"`{out}`: `{out.parent}` is not a writable folder")
    return out
