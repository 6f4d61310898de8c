"""Which code uses the CPU: whose a sampled stack is, and which function and line it counts for."""

import time

import pytest

from golden import build
from prony.figures.hot_code import busy_processes, hot_code
from prony.model.facts import CodeKind
from prony.model.observation import Phase, ProcessRow, Sample

APP, LIBRARY, SERVER = CodeKind.APP, CodeKind.LIBRARY, CodeKind.SERVER
ENV, LIB = "/env/lib/python3.12/site-packages", "/usr/lib/python3.12"
SYNC = (
    "<module> (/env/bin/gunicorn:8)",
    f"run ({ENV}/gunicorn/app/base.py:7)",
    f"handle ({ENV}/gunicorn/workers/sync.py:3)",
)
LOOP = (
    "<module> (/env/bin/uvicorn:8)",
    f"main ({ENV}/click/core.py:3)",
    f"run ({ENV}/uvicorn/server.py:7)",
    f"run ({LIB}/asyncio/runners.py:8)",
    f"_run ({LIB}/asyncio/events.py:8)",
)
ASGI = (*LOOP, f"run_asgi ({ENV}/uvicorn/protocols/http/h11_impl.py:4)", f"app ({ENV}/fastapi/routing.py:2)")
PAGE = "page (/srv/shop/app.py:12)"


def text(*stacks):
    return "".join(";".join(frames) + f" {count}\n" for frames, count in stacks)


def of(*stacks):
    return hot_code([text(*stacks)])


def test_what_a_line_of_the_app_calls_is_named_with_that_line():
    client = (f"__init__ ({ENV}/httpx/_client.py:9)", f"create_default_context ({LIB}/ssl.py:3)")
    found = of(((*SYNC, PAGE, *client), 90), ((*SYNC, PAGE), 2), (SYNC, 8))
    (spot,) = found.hottest
    assert (spot.kind, spot.function, spot.place) == (APP, "ssl.create_default_context", "app.py:12")
    assert (spot.share, found.samples) == (0.92, 100)
    assert found.shares == {APP: 0.92, SERVER: 0.08}


def test_a_function_that_calls_several_is_named_itself():
    calls = [((*SYNC, PAGE, f"{name} ({LIB}/json/decoder.py:9)"), 50) for name in ("decode", "scan")]
    (spot,) = of(*calls).hottest
    assert (spot.function, spot.place) == ("page", "app.py:12")


def test_lines_of_one_function_are_one_spot_at_the_line_that_is_hottest():
    lines = [((*SYNC, f"page (/srv/shop/app.py:{line})"), count) for line, count in ((12, 30), (14, 60))]
    (spot,) = of(*lines).hottest
    assert (spot.place, spot.share) == ("app.py:14", 1.0)


def test_the_function_of_the_app_that_is_nearest_to_the_end_counts():
    (spot,) = of(((*SYNC, PAGE, "total (/srv/shop/lib/sums.py:3)"), 5)).hottest
    assert (spot.function, spot.place) == ("total", "sums.py:3")


def test_files_of_the_app_are_named_from_the_folder_that_they_share():
    found = of(((*SYNC, PAGE), 5), ((*SYNC, "total (/srv/shop/lib/sums.py:3)"), 4))
    assert [one.place for one in found.hottest] == ["app.py:12", "lib/sums.py:3"]


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        (SYNC, SERVER),
        ((*SYNC, f"write ({LIB}/logging/__init__.py:9)"), SERVER),
        (ASGI, LIBRARY),
        ((*ASGI, PAGE), APP),
        ((*ASGI, PAGE, f"send ({ENV}/uvicorn/protocols/http/h11_impl.py:9)"), SERVER),
        ((*LOOP, f"coro ({ENV}/starlette/middleware/base.py:9)"), LIBRARY),
        ((*LOOP, f"_run_once ({LIB}/asyncio/base_events.py:9)", f"select ({LIB}/selectors.py:4)"), SERVER),
        (("main (/srv/shop/run.py:3)", f"run ({ENV}/waitress/task.py:3)"), SERVER),
        (("main (/srv/shop/run.py:3)", f"run ({ENV}/waitress/task.py:3)", PAGE), APP),
        ((f"_bootstrap ({LIB}/threading.py:3)", f"run ({ENV}/anyio/_backends/_asyncio.py:3)", PAGE), APP),
        ((*SYNC, PAGE, f"wait ({LIB}/threading.py:3)"), APP),
        ((PAGE,), APP),
        ((*SYNC, PAGE, f"map ({ENV}/gevent/pool.py:3)", f"get ({ENV}/requests/api.py:3)"), APP),
    ],
)
def test_whose_a_stack_is(stack, kind):
    assert of((stack, 7)).shares == {kind: 1.0}


def test_a_package_counts_for_its_function_that_is_nearest_to_the_end():
    core = (f"serialize ({ENV}/fastapi/routing.py:8)", f"dump ({ENV}/pydantic/main.py:8)")
    (spot,) = of(((*ASGI, *core, f"loads ({LIB}/json/__init__.py:3)"), 4)).hottest
    assert (spot.kind, spot.function, spot.place) == (LIBRARY, "json.loads", "")
    (spot,) = of(((*ASGI, *core), 4)).hottest
    assert spot.function == "pydantic.main.dump"


def test_functions_of_one_module_of_a_package_are_one_spot():
    base = f"{ENV}/starlette/middleware/base.py"
    calls = [
        ((*ASGI, f"Base.__call__.<locals>.{name} ({base}:8)"), count)
        for name, count in (("call_next", 6), ("coro", 4))
    ]
    assert [(one.function, one.share) for one in of(*calls).hottest] == [("starlette.middleware.base", 1.0)]
    (spot,) = of(calls[0]).hottest
    assert spot.function == "starlette.middleware.base.call_next"


def test_three_spots_are_kept_and_none_is_the_servers():
    calls = [((*SYNC, f"f{n} (/srv/shop/app.py:{n})"), 10 + n) for n in range(5)]
    found = of(*calls, (SYNC, 1000))
    assert [one.function for one in found.hottest] == ["f4", "f3", "f2"]


def test_a_stack_without_its_beginning_counts_for_nobody():
    found = of(((*SYNC, PAGE), 6), ((f"encode ({LIB}/json/encoder.py:3)",), 4))
    assert (found.samples, found.shares) == (6, {APP: 1.0})


def test_processes_are_added_up_and_none_has_no_share():
    assert hot_code([text((SYNC, 3)), text(((*SYNC, PAGE), 1))]).shares == {SERVER: 0.75, APP: 0.25}
    assert hot_code(["", "\n"]).samples == 0
    assert hot_code(["page (/srv/app.py:1) many\n"]).samples == 0


# --- other runtimes ---------------------------------------------------------------------------------------

RUNTIME = CodeKind.RUNTIME
ROOT = "(root) (:0)"
MODULES = "/srv/shop/node_modules"
HTTP = (ROOT, "parserOnIncoming (node:_http_server:9)", "emit (node:events:9)")
JS = "page (/srv/shop/app.js:12)"
GOROOT, MOD = "/usr/lib/go/src", "/root/go/pkg/mod"
SERVE = (
    ROOT,
    f"runtime.goexit ({GOROOT}/runtime/asm_amd64.s:1)",
    f"net/http.(*conn).serve ({GOROOT}/net/http/server.go:2)",
    f"net/http.serverHandler.ServeHTTP ({GOROOT}/net/http/server.go:2)",
)
MUX = f"net/http.(*ServeMux).ServeHTTP ({GOROOT}/net/http/server.go:2)"
GIN = f"github.com/gin-gonic/gin.(*Context).Next ({MOD}/github.com/gin-gonic/gin@v1.9.1/context.go:2)"
GO_PAGE = "main.page (/srv/shop/app.go:12)"


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        ((ROOT,), SERVER),
        (HTTP, SERVER),
        ((ROOT, "processTicksAndRejections (node:internal/process/task_queues:9)"), SERVER),
        ((*HTTP, JS), APP),
        ((*HTTP, f"handle ({MODULES}/express/lib/router/index.js:3)"), LIBRARY),
        ((*HTTP, f"handle ({MODULES}/express/lib/router/index.js:3)", JS), APP),
        ((*HTTP, JS, "stringify (node::0)"), APP),
        ((*HTTP, JS, "end (node:_http_outgoing:3)"), SERVER),
        ((*HTTP, JS, "pbkdf2Sync (node:internal/crypto/pbkdf2:3)"), APP),
        ((ROOT, "garbage collection (runtime:0)"), RUNTIME),
        (SERVE, SERVER),
        ((*SERVE, MUX, GO_PAGE), APP),
        ((*SERVE, GIN), LIBRARY),
        ((*SERVE, GIN, GO_PAGE, f"encoding/json.Marshal ({GOROOT}/encoding/json/encode.go:3)"), APP),
        ((*SERVE, GO_PAGE, f"net/http.(*response).Write ({GOROOT}/net/http/server.go:3)"), SERVER),
        ((*SERVE, GO_PAGE, f"net/http.(*Client).Do ({GOROOT}/net/http/client.go:3)"), APP),
        ((*SERVE, "shop/db.Find (/srv/shop/db/db.go:3)"), APP),
        ((*SERVE, "example.com/shop/db.Find[...] (example.com/shop/db/db.go:3)"), APP),
        ((*SERVE, "example.com/x.F (/srv/shop/vendor/example.com/x/x.go:3)"), LIBRARY),
        (
            (
                ROOT,
                f"runtime.mcall ({GOROOT}/runtime/asm_amd64.s:1)",
                f"runtime.findRunnable ({GOROOT}/runtime/proc.go:1)",
            ),
            SERVER,
        ),
        (
            (
                ROOT,
                f"runtime.gcBgMarkWorker ({GOROOT}/runtime/mgc.go:1)",
                f"runtime.scanobject ({GOROOT}/runtime/mgcmark.go:1)",
            ),
            RUNTIME,
        ),
        ((*SERVE, GO_PAGE, f"runtime.mallocgc ({GOROOT}/runtime/malloc.go:1)"), APP),
        ((*SERVE, GO_PAGE, f"gcWriteBarrier ({GOROOT}/runtime/asm_amd64.s:1)"), APP),
        ((ROOT, "ngx_http_parse (program:nginx:0)"), SERVER),
        ((ROOT, "deflate (library:libz.so.1:0)"), LIBRARY),
        ((ROOT, "memcpy (library:libc.so.6:0)"), SERVER),
        ((*SERVE, GO_PAGE, "memcpy (library:libc.so.6:0)"), APP),
    ],
)
def test_whose_a_stack_of_another_runtime_is(stack, kind):
    assert of((stack, 7)).shares == {kind: 1.0}


@pytest.mark.parametrize(
    ("stack", "function", "place"),
    [
        ((*HTTP, JS), "page", "app.js:12"),
        ((*HTTP, JS, "pbkdf2Sync (node:internal/crypto/pbkdf2:3)"), "crypto/pbkdf2.pbkdf2Sync", "app.js:12"),
        ((*HTTP, JS, "stringify (node::0)"), "stringify", "app.js:12"),
        ((*HTTP, f"handle ({MODULES}/express/lib/router/index.js:3)"), "express/lib/router.handle", ""),
        ((*SERVE, GO_PAGE), "main.page", "app.go:12"),
        ((*SERVE, "main.page (./app.go:12)"), "main.page", "app.go:12"),
        (
            (*SERVE, GO_PAGE, f"gcWriteBarrier ({GOROOT}/runtime/asm_amd64.s:1)"),
            "gcWriteBarrier",
            "app.go:12",
        ),
        ((*SERVE, GIN), "github.com/gin-gonic/gin.(*Context).Next", ""),
        (
            (*SERVE, GO_PAGE, f"encoding/json.Marshal ({GOROOT}/encoding/json/encode.go:3)"),
            "encoding/json.Marshal",
            "app.go:12",
        ),
        (
            (
                ROOT,
                f"runtime.gcBgMarkWorker ({GOROOT}/runtime/mgc.go:1)",
                f"runtime.scanobject ({GOROOT}/runtime/mgcmark.go:1)",
            ),
            "garbage collection",
            "",
        ),
        ((ROOT, "deflate (library:libz.so.1:0)"), "libz.so.1.deflate", ""),
        ((ROOT, " (library:libz.so.1:0)"), "libz.so.1", ""),
    ],
)
def test_what_a_stack_of_another_runtime_counts_for(stack, function, place):
    (spot,) = of((stack, 7)).hottest
    assert (spot.function, spot.place) == (function, place)


def test_functions_of_one_compiled_library_are_apart():
    found = of(*(((ROOT, f"{name} (library:libz.so.1:0)"), 5) for name in ("deflate", "crc32")))
    assert {one.function for one in found.hottest} == {"libz.so.1.deflate", "libz.so.1.crc32"}


# --- which processes --------------------------------------------------------------------------------------


def sample(at_s, cores, role="worker"):
    rows = tuple(
        ProcessRow(pid, 1, role, "python", round(used * at_s * build.SECOND), 0, 0, 0, 1)
        for pid, used in enumerate(cores, 10)
    )
    return Sample(at_s * build.SECOND, Phase.WINDOW, rows, 0, 0, 0)


@pytest.mark.parametrize(
    ("cores", "cpus", "pids"),
    [
        ((0.02, 0.95), 2, (11,)),
        ((0.5, 0.45, 0.01), 1, (10, 11)),
        ((0.5, 0.45), 2, ()),
        ((0.3, 0.6, 0.9), 2, (12, 11, 10)),
    ],
    ids=["one core", "one CPU of two", "idle", "the busiest first"],
)
def test_processes_at_the_limit_of_their_cpu(cores, cpus, pids):
    assert busy_processes([sample(0, cores), sample(5, cores)], cpus) == pids


def test_a_database_beside_the_server_and_one_sample_are_nobody():
    assert busy_processes([sample(0, (1,), "database"), sample(5, (1,), "database")], 1) == ()
    assert busy_processes([sample(5, (1,))], 1) == ()


def test_names_that_mean_harm_cost_linear_time_and_no_trial():
    """Such as a function may have by `code.replace(co_name=...)`."""
    names = (" (" * 40_000 + ":" * 40_000, "first line\nsecond", "f (:1)" * 10_000)
    begun_s = time.process_time()
    found = of(*(((*SYNC, f"{name} (/srv/a.py:7)"), 9) for name in names), ((*SYNC, PAGE), 1))
    assert time.process_time() - begun_s < 2
    assert found.samples >= 10
