"""Builds that take all they can get, at the ceilings that hold where nobody set any: root's and a user's."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import prony
from commands import passable_folder
from prony.sandbox.building import why_no_builds
from prony.sandbox.choice import PIDS

pytestmark = [
    pytest.mark.skipif(why_no_builds() is not None, reason=f"no namespaces: {why_no_builds()}"),
    pytest.mark.slow,
]

PYTHON = "/usr/bin/python3"
NOBODY = 65534
SOURCE = Path(prony.__file__).parent.parent
BUILD = """
import json, os, sys
from pathlib import Path
from prony.sandbox.choice import gain_namespaces
gain_namespaces()
from prony.catalog.install.child import Children
from prony.core.users import resolve_user
from prony.sandbox.building import BuildTask
user = resolve_user()
task = BuildTask(["/usr/bin/python3", "-c", sys.argv[1]], {"PATH": os.defpath}, Path("/"))
done = Children(user).build(task)
left = [str(path) for path in (user.cache / "run").iterdir()]
print(json.dumps({"status": done.status, "output": done.output, "log": done.log[-2000:], "left": left}))
"""
BOMBS = {
    "processes": """
import os, time
try:
    while True: os.fork()
except OSError:
    os.write(1, b"held ")
time.sleep(3)""",
    "threads": """
import threading, time
threading.stack_size(65536)
try:
    while True: threading.Thread(target=time.sleep, args=(3,)).start()
except RuntimeError:
    print("held", flush=True)""",
    "memory": "kept = []\nwhile True: kept.append(bytearray(1 << 24))",
    "memory in eight processes": """
import os
for _ in range(3): os.fork()
kept = []
while True: kept.append(bytearray(1 << 24))""",
    "shared memory": """
import mmap, os
kept = []
while True:
    kept.append(mmap.mmap(-1, 1 << 26))
    for at in range(0, 1 << 26, 4096): kept[-1][at] = 1""",
    "the disk": """
import os, time
for k in range(64):
    with open(f"{os.environ['HOME']}/{k}", "wb") as file: os.posix_fallocate(file.fileno(), 0, 1 << 28)
    time.sleep(0.01)
time.sleep(30)""",
    "the disk, in files that are gone": """
import os, time
kept = []
for k in range(64):
    kept.append(open(f"{os.environ['HOME']}/{k}", "wb"))
    os.unlink(kept[-1].name)
    os.posix_fallocate(kept[-1].fileno(), 0, 1 << 28)
    time.sleep(0.01)
time.sleep(30)""",
    "inodes": """
import os
for k in range(400_000): os.close(os.open(f"{os.environ['HOME']}/{k}", os.O_CREAT | os.O_WRONLY))""",
    "output": "import os\nwhile True: os.write(1, bytes(1 << 20))",
}
# What the log says where Prony ends it; the kernel may be first.
SAID = {"memory": "--build-limits memory=", "disk": "--build-limits disk=", "inodes": "files (disk)"}


@pytest.fixture(params=["root", "ordinary"])
def build(request):
    """Return a function that runs a script as a build, of root's or of an ordinary user's."""
    if request.param == "ordinary" and os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    uid = NOBODY if request.param == "ordinary" else os.geteuid()
    with passable_folder() as cache:
        os.chown(cache, uid, uid if uid == NOBODY else -1)

        def run(script):
            places = [str(SOURCE), *([sysconfig.get_path("purelib")] if uid else [])]
            drop = {"user": uid, "group": uid, "extra_groups": []} if uid == NOBODY else {}
            done = subprocess.run(
                [PYTHON if uid else sys.executable, "-B", "-c", BUILD, script],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(places), "PRONY_CACHE": str(cache)},
                capture_output=True,
                text=True,
                timeout=400,
                check=False,
                cwd="/",
                **drop,
            )
            if "No module named" in done.stderr:
                pytest.skip(f"an ordinary user cannot read {SOURCE}: {done.stderr.splitlines()[-1]}")
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout.splitlines()[-1])

        yield run


def processes():
    return list(Path("/proc").glob("[0-9]*"))


@pytest.mark.parametrize("what", BOMBS)
def test_a_build_that_takes_all_it_can_get_is_held_and_leaves_nothing(build, what):
    free = os.statvfs("/var/tmp")
    if "disk" in what and free.f_bavail * free.f_frsize < 24 << 30:
        pytest.skip("needs 24 GiB of free space")
    before = len(processes())
    ended = build(BOMBS[what])
    if what in ("processes", "threads"):
        assert "held" in ended["output"]
        assert ended["output"].count("held") <= PIDS + 1000
    else:
        assert ended["status"] != 0
        word = next((word for name, word in SAID.items() if name in what), "")
        by_kernel = ("MemoryError", "Killed", "File too large", "No space left", "status -9")
        assert word in ended["log"] or any(one in ended["log"] for one in by_kernel) or ended["status"] == -9
    assert ended["left"] == []
    assert len(processes()) < before + 300
