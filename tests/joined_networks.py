"""Networks with an address each, joined by the two ends of a cable."""

import contextlib
import os
import subprocess


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def joined_networks(*addresses):
    """Make two; yield what runs a command in each of them."""
    names = [f"prony-test-{side}-{os.getpid()}" for side in ("a", "b")]
    with contextlib.ExitStack() as stack:
        for name in names:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "prony-a", "netns", names[0], "type", "veth", "peer", "prony-b", "netns", names[1])
        for name, end, address in zip(names, ("prony-a", "prony-b"), addresses, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
        # `ip netns exec` would hide the control groups.
        yield [["nsenter", f"--net=/run/netns/{name}"] for name in names]
