"""What `prony run --target` makes of the other side's answers: here a stand-in in the place of ssh."""

import json
import sys

import pytest

from prony.core.version import prony_version

SSH = """\
#!{python}
import json, sys
for line in {before!r}:
    print(line, flush=True)
asked = json.loads(sys.stdin.readline())
for line in {after!r}:
    print(line, flush=True)
said = json.loads(sys.stdin.readline()) if {after!r} else asked
print(json.dumps({{"ended": 3, "said": "heard: " + json.dumps(said), "bytes": 0}}), flush=True)
"""
HELLO = json.dumps({"hello": prony_version(), "listen": "127.0.0.1"})


@pytest.fixture
def run(prony, folder):
    """Run it on a target that says these lines, before and after it is asked for something."""

    def run_it(*before, after=(), where="127.0.0.1", words=()):
        (folder / "ssh").write_text(SSH.format(python=sys.executable, before=before, after=after))
        (folder / "ssh").chmod(0o755)
        return prony("run", "--app", "hello", "--target", where, *words, PATH=str(folder))

    return run_it


def test_a_load_goes_to_no_other_address_than_the_targets(run):
    spec = {"target": {"host": "192.0.2.1", "port": 80}}
    done = run(HELLO, after=[json.dumps({"load": 1, "spec": spec, "limit_ns": 1, "authority": None})])
    assert "loads may go only to `127.0.0.1`, the address that was named" in done.out


def test_servers_listen_at_no_other_address_than_the_name_has_unless_it_is_named(run):
    other = HELLO.replace("127.0.0.1", "192.0.2.1")
    done = run(other)
    assert done.status == 2
    assert "was reached at `192.0.2.1`, which is not an address of that name here" in done.err
    assert "--listen 192.0.2.1" in done.err
    assert run(other, words=["--listen", "192.0.2.1"]).status == 3


def test_another_version_is_refused(run):
    done = run(json.dumps({"hello": "99.0", "listen": "127.0.0.1"}))
    assert done.status == 3
    assert "the target has 99.0" in done.err


def test_what_is_no_answer_is_shown(run):
    done = run("Welcome!")
    assert done.status == 3
    assert "the target sent what is no message of Prony's: b'Welcome!" in done.err


def test_what_is_typed_goes_there_but_for_what_is_of_this_side(run):
    words = ("--servers", "waitress", "-c", "4,8", "--duration", "1s", "--env", "A=b", "--out", "x.prony")
    sent = json.loads(run(HELLO, words=words).out.removeprefix("heard: "))
    there = ["--app", "hello", "--servers", "waitress", "-c", "4,8", "--duration", "1s"]
    assert sorted(sent["words"]) == sorted([*there, "--env", "A=b"])
    assert sent["bytes"] == 0


def test_a_variable_that_is_to_be_passed_on_is_set_here(run):
    done = run(HELLO, words=["--env", "NOT_SET_HERE"])
    assert done.status == 2
    assert "`--env NOT_SET_HERE`: no such variable is set here" in done.err
