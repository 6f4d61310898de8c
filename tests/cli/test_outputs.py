"""Standard output that is closed, full or of another encoding, under each face of a report."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from golden.build import study_two
from prony.core.units import DAY_NS

ONE = "out.prony"
TWO = ("out.prony", "later.prony")
FACES = {
    "brief": (ONE,),
    "full": (ONE, "--full"),
    "json": (ONE, "--json"),
    "markdown": (ONE, "--markdown", "-"),
    "page": (ONE, "--html", "-"),
    "schema": ("--schema",),
    "sessions": TWO,
    "sessions as json": (*TWO, "--json"),
    "sessions as markdown": (*TWO, "--markdown", "-"),
    "trend as a page": (*TWO, "--html", "-"),
}
ENCODINGS = ("utf-8", "latin-1", "ascii")
# Reads orders and runs each in a fork, which saves the start of Python. Nothing is drawn: that takes seconds.
FORKS = """
import io, json, os, sys, tempfile, types
from prony.cli import main
no_picture = lambda *_, **__: '<svg viewBox="0 0 1 1"></svg>'
sys.modules["vl_convert"] = types.SimpleNamespace(vegalite_to_svg=no_picture)
orders = json.load(sys.stdin)
kept = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
main._status(["report", "out.prony", "--json"])  # imports what reports need
for arguments, stream in orders:
    sys.stdout.flush()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if (child := os.fork()) == 0:
            os.dup2(err.fileno(), 2)
            if stream == "closed":
                os.close(1)
                sys.stdout = sys.__stdout__ = None
            else:
                os.dup2(os.open("/dev/full", os.O_WRONLY) if stream == "full" else out.fileno(), 1)
                known = "utf-8" if stream == "full" else stream
                sys.stdout = sys.__stdout__ = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), known)
            sys.argv = ["prony", "report", *arguments]
            try:
                main.main()
            except SystemExit as ended:
                sys.stdout.flush()
                os._exit(int(ended.code or 0))
            finally:
                os._exit(99)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0), err.seek(0)
        said = [status, out.read().hex(), err.read().decode()]
    os.write(kept, (json.dumps(said) + "\\n").encode())
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return what came of each face on each stream: status, bytes, talk."""
    folder = tmp_path_factory.mktemp("outputs")
    study_two(folder / "out.prony", blocks=1)
    later(study_two(folder / "later.prony", blocks=1))
    orders = [(face, stream) for face in FACES for stream in (*ENCODINGS, "closed", "full")]
    told = json.dumps([(FACES[face], stream) for face, stream in orders])
    own = {"PRONY_CACHE": str(folder / "cache"), "NO_COLOR": "1", "COLUMNS": "100", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        input=told,
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
        env={**os.environ, **own},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        order: (status, bytes.fromhex(out), err)
        for order, (status, out, err) in zip(orders, lines, strict=True)
    }


def later(path):
    """Make an archive another session of the same plan."""
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("run", "trial"):
            database.execute(f"UPDATE {table} SET started_unix_ns = started_unix_ns + {DAY_NS}")


@pytest.mark.parametrize("face", FACES)
def test_a_face_is_written_in_the_outputs_encoding(reports, face):
    _, whole, _ = reports[face, "utf-8"]
    for encoding in ENCODINGS:
        status, out, err = reports[face, encoding]
        assert (status, err) == (0, reports[face, "utf-8"][2])
        # A page says that it is UTF-8, and is.
        known = "utf-8" if "page" in face else encoding
        assert out.decode(known) == whole.decode().encode(known, "backslashreplace").decode(known)


@pytest.mark.parametrize("face", FACES)
def test_a_face_on_a_closed_output_is_no_fault(reports, face):
    status, out, err = reports[face, "closed"]
    assert (status, out) == (0, b"")
    assert err == reports[face, "utf-8"][2]


@pytest.mark.parametrize("face", FACES)
def test_a_face_on_a_full_output_is_refused_once(reports, face):
    status, _, err = reports[face, "full"]
    assert status == 3
    assert err.count("error: ") == 1
    assert "error: standard output cannot be written: No space left on device\n\nhint: " in err


@pytest.mark.parametrize("face", ["brief", "full", "markdown", "page"])
def test_the_oldest_locale_prints_each_face(prony, folder, face):
    study_two(folder / "out.prony")
    oldest = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = prony.start("report", *FACES[face], **oldest)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.isascii() or face == "page"
