"""Secrets of the caller reach neither what is built nor what is run: root's Prony, and an ordinary user's."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import prony as package
from catalog.install.test_build_environment import SECRETS
from commands import passable_folder

SOURCE = Path(package.__file__).parent.parent
PYTHON = "/usr/bin/python3"
NOBODY = 65534

ENTRY = """
name = "mine"
title = "Mine"
language = "c"
interfaces = ["none"]
serves = ["hello"]
command = ["{sh}", "{build}/server", "{host}", "{port}"]
[install]
kind = "system"
version = ["{sh}", "-c", "env > %s/version; echo shell 7.8.9"]
[install.programs]
sh = ["sh"]
[install.build]
run = [["{sh}", "-c", "env > $0/server", "{build}"]]
product = "server"
[facts]
backlog = { source = "its manual" }
keep_alive = [{ on = false, source = "its manual" }]
concurrency = { text = "one", source = "its manual" }
[[roles]]
role = "server"
where = "main"
"""

BUILD = """
import json, sys
from pathlib import Path
from prony.catalog.install.child import Children
from prony.catalog.install.environment import EnvironmentRequest
from prony.catalog.install.prepare import prepare
from prony.catalog.install.uv import open_uv
from prony.catalog.schema.loader import load_server
from prony.model.address import Address
from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxChoice
from prony.core.users import resolve_user
from prony.sandbox import open_sandbox
from prony.sandbox.journal import open_run
user = resolve_user()
built = prepare([EnvironmentRequest("mine", load_server(Path(sys.argv[1])))], user, lambda _: None)["mine"]
given = open_uv(Children(user)).environment
seen = {"build": (built.build / "server").read_text(), "uv": "\\n".join(given.values())}
with open_run(user) as run:
    sandbox = open_sandbox(SandboxChoice(), user, run.trial_folder("1"))
    launch = Launch(("/usr/bin/env",), Address("127.0.0.1", 9), environment={"GIVEN": "typed"})
    with sandbox.start(launch, Placement((0,), (0,), True)) as subject:
        while subject.exit_reason() is None:
            pass
        seen["subject"] = subject.log().text
print(json.dumps(seen))
"""


@pytest.fixture(params=[0, NOBODY], ids=["root", "ordinary user"])
def seen(request):
    """Build and run something in an environment full of secrets; return what each part of it saw."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    uid = request.param
    with passable_folder() as folder:
        folder.chmod(0o777 | 0o1000)
        (folder / "mine").mkdir()
        (folder / "mine.toml").write_text(ENTRY % folder)
        places = [str(SOURCE), *([sysconfig.get_path("purelib")] if uid else [])]
        own = {
            "PRONY_CACHE": str(folder / "cache"),
            "PYTHONPATH": ":".join(places),
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(
            [PYTHON if uid else sys.executable, "-B", "-c", BUILD, str(folder / "mine.toml")],
            env={**own, "PATH": os.environ["PATH"], **{name: f"secret of {name}" for name in SECRETS}},
            cwd="/",
            user=uid,
            group=uid,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if "No module named" in done.stderr:
            pytest.skip(f"an ordinary user cannot read {SOURCE}")
        assert done.returncode == 0, done.stderr
        yield {**json.loads(done.stdout), "version": (folder / "version").read_text()}


def test_of_twenty_kinds_of_secrets_none_reaches_a_build_or_a_subject(seen):
    assert len(SECRETS) >= 20
    assert {part for part, text in seen.items() if "secret of" in text} == set()


def test_a_subject_has_the_variables_that_were_given_and_those_that_every_subject_has(seen):
    names = {line.partition("=")[0] for line in seen["subject"].splitlines()}
    assert names == {"GIVEN", "HOME", "LANG", "NODE_OPTIONS", "PATH", "USER"}
