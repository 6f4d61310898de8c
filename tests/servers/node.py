"""Small servers of Node, which say their port, and what they counted when they are asked."""

import json
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest


class NodeServer:
    """``port``: where it listens."""

    def __init__(self, process):
        self._process = process
        self.port = int(process.stdout.readline())

    def counts(self):
        """Return what it counted so far."""
        self._process.stdin.write("counts\n")
        return json.loads(self._process.stdout.readline())


@contextmanager
def node_server(*arguments):
    """Run `node` with these arguments within the block; skip the test where there is none."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("Node is not installed")
    process = subprocess.Popen(
        [program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield NodeServer(process)
    finally:
        process.kill()
        process.communicate()


APPS = Path(__file__).parent / "apps"
