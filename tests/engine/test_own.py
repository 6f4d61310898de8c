"""A load generator of the user's own: its command, its counts, who counts for it, and how it ends."""

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prony.catalog.install.build import _files
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import EngineError, UsageError
from prony.engine.own_program import check_command, find_own, own_tool
from prony.engine.registry import Means, cannot_make, not_here, open_engine
from prony.model.address import Address
from prony.model.exchange import Request
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop, Workload
from prony.plan.build import PlanOptions, make_plan, with_generator
from prony.plan.document import StudyDocument

ADDRESS = Address("127.0.0.1", 8000)
LOAD = Workload(ClosedLoop(7), DurationStop(500_000_000))
SEAT = EngineSeat((max(os.sched_getaffinity(0)),))
ONE_BY_ONE = """\
import sys, urllib.request

while True:
    urllib.request.urlopen(sys.argv[1]).read()
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a program into a folder that any user may enter, and returns how it is named there."""

    def written(text, name="my_load.sh", first="#!/bin/sh"):
        file = tmp_path / name
        file.write_text(f"{first}\n{text}\n")
        file.chmod(0o755)
        return f"./{name}"

    for folder in (tmp_path, *tmp_path.parents[:3]):
        with contextlib.suppress(PermissionError):
            folder.chmod(folder.stat().st_mode | 0o055)
    monkeypatch.chdir(tmp_path)
    return written


def chosen(text):
    return EngineChoice().named(text)


def run(text, load=LOAD, address=ADDRESS, *, counts=False):
    return open_engine(chosen(text), Means(counts=counts)).run(load, address, SEAT, lambda _event: None)


def test_it_is_given_the_load_that_it_asks_for(script):
    name = script('echo "{\\"ok\\": 4, \\"failed\\": 1, \\"seconds\\": 0.25}"; echo "$@" >&2')
    command = f"{name} {{url}} -c {{connections}} -t {{duration}} --to {{host}}:{{port}}{{path}}"
    made = run(command, Workload(ClosedLoop(7), DurationStop(500_000_000), Request(path="/cart")))
    said = ("http://127.0.0.1:8000/cart", "-c", "7", "-t", "0.5", "--to", "127.0.0.1:8000/cart")
    assert made.engine.command == (str(Path(name).absolute()), *said)
    assert made.engine.name == "my-load"


def test_its_counts_are_those_that_it_prints_last(script):
    lines = [
        '{"ok": 1}',
        "{not json",
        '{"ok": 40, "failed": 2, "seconds": 2, "latency_ms": {"50": 1.5}}',
        "end",
    ]
    made = run(script("\n".join(f"echo '{line}'" for line in lines)))
    assert (made.account.scheduled, made.account.ok) == (42, 40)
    assert made.window.close_ns - made.window.open_ns == 2_000_000_000
    assert made.reported_latency.percentiles["50"] == 1_500_000


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ('{"ok": -1}', "`ok`"),
        ('{"ok": 1.5}', "expected a whole number"),
        ('{"ok": 1, "seconds": "long"}', "`seconds`"),
        ('{"ok": 1, "seconds": 0}', "`seconds` is 0; expected more than 0"),
        ('{"ok": 1, "latency_ms": {"50": null}}', r"`latency_ms\.50`"),
        ("3 requests", "it printed no counts; it may print"),
    ],
)
def test_counts_that_cannot_be_read_are_an_error_with_their_name(script, said, reason):
    with pytest.raises(EngineError, match=reason):
        run(script(f"echo '{said}'"))


@contextlib.contextmanager
def reference(tmp_path):
    """The reference server as the catalogue starts it, on a free port."""
    serve = tmp_path / "serve.py"
    serve.write_text(load_catalog().server("reference").files["serve.py"])
    parts = str(_files()[0].parent.parent)
    port = 20_000 + os.getpid() % 10_000
    command = [sys.executable, str(serve), parts, "127.0.0.1", str(port), "1", "64", "1"]
    with subprocess.Popen(command) as server:
        try:
            yield Address("127.0.0.1", port)
        finally:
            server.terminate()


def wait_for(address):
    import socket

    for _ in range(200):
        with contextlib.suppress(OSError):
            socket.create_connection((address.host, address.port), 1).close()
            return
        time.sleep(0.05)
    pytest.fail("the reference server does not listen")


def test_of_one_that_prints_nothing_the_reference_server_counts(script, tmp_path):
    name = script(ONE_BY_ONE, "quiet.py", f"#!{sys.executable}")
    with reference(tmp_path) as address:
        wait_for(address)
        made = run(f"{name} {{url}}", address=address, counts=True)
        with pytest.raises(EngineError, match="it printed no counts"):
            run(f"{name} {{url}}", address=address)
    assert made.account.ok > 20
    assert made.account.ok == made.account.scheduled
    length_ns = made.window.close_ns - made.window.open_ns
    assert 450_000_000 < length_ns < 5_000_000_000
    assert any("the reference server counted" in one for one in made.engine.caveats)


def test_the_example_of_the_guide_is_measured_by_what_it_prints(script, tmp_path):
    guide = Path(__file__).parents[2] / "docs" / "guides" / "other-generators.md"
    text = re.search(r"```python\n#!/usr/bin/env python3\n(.*?)```", guide.read_text(), re.DOTALL)[1]
    name = script(text, "guide.py", f"#!{sys.executable}")
    with reference(tmp_path) as address:
        wait_for(address)
        made = run(f"{name} {{url}} {{connections}} {{duration}}", address=address)
    assert made.account.ok > 20
    assert not any("reference server counted" in one for one in made.engine.caveats)


def test_one_that_goes_on_is_interrupted_with_its_children_and_may_still_print(script, tmp_path):
    name = script(
        f'trap \'echo "{{\\"ok\\": 9}}"; exit 0\' INT\n(sleep 600 & echo $! > {tmp_path}/child; wait)\n'
    )
    begun = time.monotonic()
    assert run(name).account.ok == 9
    assert time.monotonic() - begun < 20
    child = int((tmp_path / "child").read_text())
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]


def test_its_processes_cpu_and_memory_are_watched(script):
    name = script("import time\nend = time.time() + 1.4\nwhile time.time() < end: pass\nprint('{\"ok\": 1}')",
                  "busy.py", f"#!{sys.executable}")  # fmt: skip
    used = run(name, Workload(ClosedLoop(1), DurationStop(1_500_000_000))).generator.processes
    assert used.cpu_percent > 20
    assert used.rss_mean_bytes > 1_000_000


@pytest.mark.parametrize(
    ("text", "load", "reason"),
    [
        ("./x {url}", Workload(OpenLoop(5.0), DurationStop(1)), "has no open loop"),
        ("./x {url}", Workload(ClosedLoop(1), CountStop(5)), "cannot stop after a number of requests"),
        (
            "./x {url}",
            Workload(ClosedLoop(1), DurationStop(1), Request("POST", body=b"x")),
            "cannot send POST",
        ),
    ],
)
def test_a_load_of_which_its_command_has_no_number_is_refused(text, load, reason):
    assert reason in cannot_make(chosen(text), load, ADDRESS)


def test_numbers_that_its_command_has_make_it_able():
    load = Workload(OpenLoop(5.0), CountStop(5))
    assert cannot_make(chosen("./x {url} {rate} {requests}"), load, ADDRESS) is None


def test_what_is_not_there_or_no_program_is_said_with_what_to_do(script):
    assert "there is no program" in not_here(chosen("./absent {url}"))
    Path(script("", "plain.txt")).chmod(0o644)
    assert "chmod +x" in not_here(chosen("./plain.txt"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sends loads as another user")
def test_a_program_that_the_sending_user_cannot_reach_is_said_before_anything_starts(script):
    Path(script("", "closed.sh")).chmod(0o700)
    assert "closed.sh` is closed" in not_here(chosen("./closed.sh"))


def test_a_program_is_identified_by_its_content(script):
    first = find_own(chosen(script("echo 1"))).version
    assert first.startswith("sha256 ")
    assert find_own(chosen(script("echo 2"))).version != first


@pytest.mark.parametrize(
    ("text", "said"), [("./x {uri}", "found `{uri}`"), ("./x 'y", "No closing quotation")]
)
def test_a_command_that_is_none_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        check_command(text)


def plan_with(text):
    document = StudyDocument.model_validate(
        {
            "name": "x",
            "title": "X",
            "subjects": [{"server": "reference", "app": "hello"}],
            "workloads": [{"loop": "closed", "connections": [20, 80], "engines": ["prony", "wrk"]}],
            "design": {"primary": {"connections": 80}},
            "profiles": {"quick": {"blocks": 1, "duration": "1s"}},
        }
    )
    plan = make_plan(document, "", load_catalog(), PlanOptions())
    added = with_generator(plan, chosen(text)).cells[len(plan.cells) :]
    return [cell.workload.loop.connections for cell in added]


def test_beside_a_study_it_sends_each_load_whose_number_it_is_given():
    assert plan_with("./x {url} {connections}") == [20, 80]


def test_beside_a_study_one_without_numbers_sends_the_load_that_is_compared():
    assert plan_with("./x {url}") == [80]


def test_a_studys_file_may_name_it():
    document = {"loop": "closed", "connections": 5, "engines": ["prony", "./my_load.py {url}"]}
    from prony.plan.document import WorkloadDocument
    from prony.plan.loads import engines_of

    part = WorkloadDocument.model_validate(document)
    own = list(engines_of(part, EngineChoice()))[1]
    assert (own.name, own.command) == ("my-load", "./my_load.py {url}")
    assert own_tool(own).title == own.command
