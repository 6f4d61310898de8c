"""The slow layer in parts: what has passed does not run again, and a call ends in time.

    pytest -m slow --go-on FILE

FILE holds a line of JSON for each test that has passed, or was skipped with its reason. After 30 minutes no
further test starts: the longest takes less than ten. The status is then 75, and the same command goes on.
"""

import json
import time

STARTS_FOR_S = 30 * 60
LEFT = 75  # EX_TEMPFAIL of sysexits.h


class SlowLayer:
    """Keeps what has passed, and stops when the time is over."""

    def __init__(self, file):
        self.file = file
        self.until_s = time.monotonic() + STARTS_FOR_S
        self.ends = dict(map(json.loads, file.read_text().splitlines())) if file.exists() else {}
        self.left = 0
        self.session = None
        self.end = None  # of the test that runs: null while it has none, or where a part of it failed

    def pytest_sessionstart(self, session):
        self.session = session

    def pytest_collection_modifyitems(self, config, items):
        done = [item for item in items if item.nodeid in self.ends]
        items[:] = [item for item in items if item.nodeid not in self.ends]
        config.hook.pytest_deselected(items=done)
        self.left = len(items)

    def pytest_runtest_logstart(self):
        self.end = None

    def pytest_runtest_logfinish(self, nodeid):
        if self.end:
            self.keep(nodeid, self.end)
        self.left -= 1
        if self.left and time.monotonic() > self.until_s:
            self.session.shouldstop = "the time of one call is over"

    def pytest_runtest_logreport(self, report):
        if report.failed:  # also in the check afterwards that nothing is left
            self.end = None
        elif report.skipped:
            self.end = f"skipped: {report.longrepr[2]}"
        elif report.when == "call":
            self.end = "passed"

    def keep(self, nodeid, end):
        self.ends[nodeid] = end
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as file:
            file.write(json.dumps([nodeid, end]) + "\n")

    def pytest_sessionfinish(self, session):
        if session.shouldstop and not session.testsfailed:
            session.exitstatus = LEFT

    def pytest_terminal_summary(self, terminalreporter):
        passed = sum(end == "passed" for end in self.ends.values())
        skipped = len(self.ends) - passed
        terminalreporter.write_line(
            f"slow layer: {passed} passed, {skipped} skipped, {self.left} left ({self.file})"
        )
