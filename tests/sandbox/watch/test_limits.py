"""The limits that a server may run into, read of processes whose limits are known."""

import subprocess
import sys

from prony.sandbox.watch.kernel import LimitCounters, read_port_range

OPENS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = [open("/dev/null") for _ in range(int(sys.argv[1]))]
print(flush=True)
sys.stdin.read()
"""


def started(files):
    command = [sys.executable, "-c", OPENS, str(files)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def test_the_process_that_is_nearest_to_its_limit_is_read():
    few, many = started(3), started(40)
    with few, many:
        counters = LimitCounters(lambda: [few.pid, many.pid], lambda: "32768 60999")
        counters.open_window()
        counters.close_window()
        few.stdin.close()
        many.stdin.close()
    found, missing = counters.deltas()
    assert found == {"descriptors.used": 43, "descriptors.limit": 64, "ports": 28232}
    assert missing == {}


def test_what_cannot_be_read_has_its_reason():
    def refuse():
        raise OSError(2, "No such file or directory")

    counters = LimitCounters(lambda: [2**22 + 1], refuse)
    counters.close_window()
    found, missing = counters.deltas()
    assert found == {}
    assert missing["descriptors.used"] == "no serving process could be read"
    assert "ip_local_port_range" in missing["ports"]


def test_the_range_of_this_machine_can_be_read():
    first, last = map(int, read_port_range().split())
    assert 0 < first < last < 65536
