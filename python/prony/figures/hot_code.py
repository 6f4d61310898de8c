"""Which code uses a server's CPU, from sampled stacks: the app's, its packages', or the server's own.

*Definition*: a share is that of the samples: stacks of threads that ran, as often as each was seen. A sample
counts for the function of the app that is nearest to its end, with all that this one calls; without one for
the module of a package that is; for the server where its own code is nearer to the end than both.
*Assumptions*: samples are even in time. What an app gives away (``await call_next(request)``) is not the
app's where it runs in another task. The standard library's code is of whom calls it, and so is what a Go or
Node.js function allocates; who collects garbage beside them is the runtime.
*Source*: py-spy's manual, `record --format raw --full-filenames`: frames from the outermost on, and a count;
`prony.sandbox.watch.inspector` and `prony.sandbox.watch.native_stacks` write the same.

>>> server, app = "run (/x/site-packages/waitress/task.py:8)", "page (/app/shop.py:12)"
>>> found = hot_code([f"{server};{app};dumps (/lib/python3.12/json/__init__.py:9) 99"])
>>> found.samples, found.hottest[0].function, found.hottest[0].place, found.hottest[0].share
(99, 'json.dumps', 'shop.py:12', 1.0)
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prony.figures.resources import window_length_ns, window_samples
from prony.model.facts import CodeKind, HotCode, HotSpot
from prony.model.observation import Sample

_MOST_SPOTS = 3
# A function below which nearly all of a spot's samples are says more than the one that calls it.
_NEARLY_ALL = 0.8
# Of a core, or of all CPUs: less is not at the limit of its CPU. Of a process: less is not worth a look.
_BUSY, _LEAST = 0.8, 0.2
_SERVING = ("server", "worker")

_PACKAGE = re.compile(r".*/(?:site|dist)-packages/(.*)")
_STANDARD = re.compile(r"(?:.*/lib(?:64)?/python3\.\d+t?/|.*/python3\d+\.zip/|<frozen )([^>]*)>?")
_OF_SERVERS = frozenset(
    (
        *("bjoern", "cheroot", "daphne", "eventlet", "flup", "gevent", "granian", "gunicorn", "h11", "h2"),
        *("httptools", "hypercorn", "meinheld", "socketify", "tornado", "twisted", "uvicorn", "uvloop"),
        *("waitress", "wsproto", "werkzeug.serving", "django.core.servers", "aiohttp.web_protocol"),
        *("http.server", "socketserver", "wsgiref"),
    )
)
# Node.js's own modules and Go's functions that are a server's; clients use the others of these, too.
_OF_NODE = re.compile(r"_http_(?:server|incoming|outgoing|common)|internal/http2/.*")
_OF_GO = re.compile(
    r"net/http\.(?:\(\*)?(?:conn|[sS]erver\w*|response|chunkWriter|check\w+Writer|connReader|http2[sS]erver\w*|"
    r"http2response\w*|ListenAndServe\w*|Serve(?:TLS)?)\b.*|github\.com/valyala/fasthttp\..*"
)
_GO_COLLECTOR = frozenset(("runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"))
# *Source*: Go, folders below src; an app's package has a dot in its first part, or is named by its module.
_GO_STANDARD = frozenset(
    (
        *("archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto"),
        *("database", "debug"),
        *("embed", "encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index"),
        *("internal", "io", "iter", "log", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect"),
        *("regexp", "runtime", "slices", "sort", "strconv", "strings", "structs", "sync", "syscall"),
        *("testing",),
        *("text", "time", "unicode", "unique", "unsafe", "vendor", "weak"),
    )
)
_SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_C_LIBRARY = re.compile(r"library:(?:libc|libm|libpthread|ld-linux[^.]*|ld-musl[^.]*)\b.*")
# An app calls other functions of these.
_STARTERS = frozenset(
    (
        *("threading._bootstrap", "threading._bootstrap_inner", "threading.run", "asyncio.events._run"),
        *("asyncio.runners.run", "asyncio.base_events.run_forever", "asyncio.base_events._run_once"),
        *("concurrent.futures.thread._worker", "concurrent.futures.thread.run"),
    )
)


@dataclass(frozen=True, slots=True)
class _Frame:
    """A function that was on a stack. ``module``: of a file that is not the app's; ``kind`` null: of the
    standard library.
    """

    function: str
    file: str
    line: int
    module: str
    kind: CodeKind | None

    @property
    def name(self) -> str:
        function = self.function.rpartition(".<locals>.")[2]
        return ".".join(one for one in (self.module, function) if one)


_Stack = tuple[_Frame, ...]


def hot_code(texts: Iterable[str]) -> HotCode:
    """Return where the CPU went, by the stacks of several processes; no sample: nothing was seen."""
    spots: dict[tuple[CodeKind, str, str], Counter[_Stack]] = defaultdict(Counter)
    kinds: Counter[CodeKind] = Counter()
    for text in texts:
        for stack, count in _stacks(text):
            if all(frame.kind is None for frame in stack):
                # Read while it changed: nothing says who called the standard library.
                continue
            kind, place = _owner(stack)
            kinds[kind] += count
            if kind is not CodeKind.SERVER:
                # Of the collector nobody asks for more than its name.
                below = stack[place:] if kind is not CodeKind.RUNTIME else stack[place : place + 1]
                spots[kind, below[0].file, _spot_of(below[0])][below] += count
    total = kinds.total()
    found = sorted(spots.items(), key=lambda pair: -pair[1].total())[:_MOST_SPOTS]
    root = _root([file for kind, file, _ in spots if kind is CodeKind.APP])
    return HotCode(
        samples=total,
        shares={kind: count / total for kind, count in kinds.most_common()},
        hottest=tuple(_spot(kind, below, total, root) for (kind, *_), below in found),
    )


def of_thread(text: str, thread: int) -> str:
    """Return the stacks of one thread, by its number in the process's own namespace (``--threads``).

    >>> of_thread("thread (2): a;f (b.py:1) 3\\nthread (21): c;f (b.py:1) 4\\n", 2)
    'thread (2): a;f (b.py:1) 3\\n'
    """
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith(f"thread ({thread})"))


def busy_processes(samples: Sequence[Sample], cpus: int) -> tuple[int, ...]:
    """Return the serving processes that used the CPU of the window, the busiest first; none where neither
    one of them nor all together were at the limit of theirs.
    """
    window = window_samples(samples)
    if len(window) < 2 or not cpus:
        return ()
    length_ns = window_length_ns(window)
    before = {one.identity: one.cpu_ns for one in window[0].processes}
    used = {
        one.pid: (one.cpu_ns - before.get(one.identity, 0)) / max(length_ns, 1)
        for one in window[-1].processes
        if one.role in _SERVING
    }
    if max(used.values(), default=0.0) < _BUSY and sum(used.values()) < _BUSY * cpus:
        return ()
    return tuple(sorted((pid for pid in used if used[pid] >= _LEAST), key=lambda pid: -used[pid]))


# --- stacks -----------------------------------------------------------------------------------------------


def _stacks(text: str) -> Iterator[tuple[_Stack, int]]:
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        # A name may hold the end of a line.
        if frames and count.isdecimal():
            parts = (_parts(one) for one in frames.split(";"))
            yield tuple(_frame(*one) for one in parts if one), int(count)


def _parts(frame: str) -> tuple[str, str, str] | None:
    """Return function, file and line. In linear time: a server chooses its names.

    >>> _parts("page (/srv/shop (old)/app.py:12)"), _parts("thread (2): main")
    (('page (/srv/shop', 'old)/app.py', '12'), None)
    """
    place, _, line = frame.removesuffix(")").rpartition(":")
    function, opened, file = place.rpartition(" (")
    return (function, file, line) if opened and line.isdecimal() and frame.endswith(")") else None


def _frame(function: str, file: str, line: str) -> _Frame:
    if file == "runtime":
        return _Frame(function, "", 0, "", CodeKind.RUNTIME)
    if not file or file.startswith(("library:", "program:")):
        module, kind = _of_native(file)
    elif file.endswith((".go", ".s")):
        return _of_go(function, file, int(line))
    elif file.startswith("node:") or file.endswith(_SCRIPTS):
        module, kind = _of_node(file)
    else:
        module, kind = _of_python(function, file)
    return _Frame(function, file, int(line), module, kind)


def _of_python(function: str, file: str) -> tuple[str, CodeKind | None]:
    package, standard = _PACKAGE.fullmatch(file), _STANDARD.fullmatch(file)
    found = package or standard
    module = found[1].removesuffix(".py").removesuffix("/__init__").replace("/", ".") if found else ""
    if _is_of_server(module) or f"{module}.{function}" in _STARTERS:
        return module, CodeKind.SERVER
    if package:
        return module, CodeKind.LIBRARY
    return module, None if standard or file.startswith("<") else CodeKind.APP


def _of_node(file: str) -> tuple[str, CodeKind | None]:
    """Of a module of Node.js itself, of a package in ``node_modules``, else of the app.

    >>> _of_node("/srv/node_modules/express/lib/router/index.js")[0], _of_node("node:internal/crypto/hash")
    ('express/lib/router', ('crypto/hash', None))
    """
    name, _, _ = file.rpartition(".") if file.endswith(_SCRIPTS) else (file, "", "")
    if file.startswith("node:"):
        kind = CodeKind.SERVER if _OF_NODE.fullmatch(own := name.removeprefix("node:")) else None
        return own.removeprefix("internal/"), kind
    _, package, inner = name.rpartition("node_modules/")
    return (inner.removesuffix("/index"), CodeKind.LIBRARY) if package else ("", CodeKind.APP)


def _of_go(function: str, file: str, line: int) -> _Frame:
    """Of Go's own packages, of a module that was fetched or is in ``vendor``, else of the app.

    >>> _of_go("github.com/x/y%2ez.(*T).f", "/root/go/pkg/mod/github.com/x/y.z@v1.0.0/y.go", 3).name
    'github.com/x/y.z.(*T).f'
    """
    if function in _GO_COLLECTOR:
        return _Frame("garbage collection", "", 0, "", CodeKind.RUNTIME)
    folder, slash, rest = function.partition("[")[0].rpartition("/")
    package = f"{folder}{slash}{rest.partition('.')[0]}"
    inner = function[len(package) :].removeprefix(".")
    module = package.replace("%2e", ".")
    if _OF_GO.fullmatch(function):
        kind: CodeKind | None = CodeKind.SERVER
    elif not inner or package.partition("/")[0] in _GO_STANDARD:
        # Assembly of the runtime has no package.
        kind = None
    elif "@v" in file or "/vendor/" in file:
        kind = CodeKind.LIBRARY
    else:
        kind = CodeKind.APP
    return _Frame(inner, file.removeprefix("./"), line, module, kind)


def _of_native(file: str) -> tuple[str, CodeKind | None]:
    """Of a library beside C's, else of the program, which is the server."""
    kind, _, name = file.partition(":")
    if kind != "library":
        return "", CodeKind.SERVER
    return name, None if _C_LIBRARY.fullmatch(file) else CodeKind.LIBRARY


def _is_of_server(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:count]) in _OF_SERVERS for count in range(1, len(parts) + 1))


def _owner(stack: _Stack) -> tuple[CodeKind, int]:
    """Return whose a sample is, and where in the stack the function is that it counts for."""
    first = _begin(stack)
    places = [place for place in range(first, len(stack)) if stack[place].kind is not None]
    if not places or stack[places[-1]].kind is CodeKind.SERVER:
        return CodeKind.SERVER, len(stack)
    of_app = [place for place in places if stack[place].kind is CodeKind.APP]
    return (CodeKind.APP, of_app[-1]) if of_app else (stack[places[-1]].kind or CodeKind.LIBRARY, places[-1])


def _begin(stack: _Stack) -> int:
    """Return where the work of a request begins: behind the server, which an app or a package may start."""
    begin = 0
    for place, frame in enumerate(stack):
        if frame.kind is CodeKind.SERVER:
            begin = place + 1
        elif begin and frame.kind is not None:
            break
    return begin


def _spot_of(first: _Frame) -> str:
    """Return what a spot is: of the app and of a compiled library a function, of a package a file, whose
    functions share a task.
    """
    return first.function if first.kind is CodeKind.APP or first.file.startswith("library:") else ""


# --- spots ------------------------------------------------------------------------------------------------


def _spot(kind: CodeKind, below: Counter[_Stack], total: int, root: str) -> HotSpot:
    first = next(iter(below))[0]
    lines = Counter[int]()
    for stack, count in below.items():
        lines[stack[0].line] += count
    (line, _), inner = lines.most_common(1)[0], _inner(below)
    place = f"{first.file.removeprefix(root)}:{line}" if kind is CodeKind.APP else ""
    return HotSpot(kind, inner.name if inner else first.module, place, below.total() / total)


def _inner(below: Counter[_Stack]) -> _Frame | None:
    """Return the innermost function in which nearly all of these samples are; None: in none."""
    depth, found = 0, None
    while True:
        callees: Counter[tuple[str, str]] = Counter()
        frames: dict[tuple[str, str], _Frame] = {}
        for stack, count in below.items():
            if len(stack) > depth:
                key = stack[depth].file, stack[depth].function
                callees[key] += count
                frames[key] = stack[depth]
        if not callees or callees.most_common(1)[0][1] < _NEARLY_ALL * below.total():
            return found
        found = frames[callees.most_common(1)[0][0]]
        depth += 1


def _root(files: Sequence[str]) -> str:
    """Return how the paths of all of the app's files that were seen begin: with its folder."""
    folders = {posixpath.dirname(one) for one in files}
    begins_alike = folders and len({one[:1] for one in folders}) == 1
    return posixpath.join(posixpath.commonpath(folders), "") if begins_alike else ""
