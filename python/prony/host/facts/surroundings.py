"""What the machine runs in (a hypervisor, a container), and which container engines are installed.

>>> guest_by_name("QEMU", "KVM Virtual Machine")
True
"""

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

from prony.host.read import Fact, read_fact, unread
from prony.model.shapes import Json

_NAMES = Path("/sys/class/dmi/id")
_MARKS = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/run/systemd/container": "systemd-nspawn"}
_GROUPS = {
    "kubepods": "kubernetes",
    "docker": "docker",
    "libpod": "podman",
    "lxc": "lxc",
    "containerd": "containerd",
}
# For machines whose processor does not report a hypervisor, such as ARM.
_GUESTS = (
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "xen",
    "amazon ec2",
    "google compute",
    "hvm",
    "virtual machine",
)
_METAL = (".metal",)
_ENGINES = ("docker", "podman", "nerdctl")
_TIMEOUT_S = 2.0


def virtualisation(flags: Fact) -> Json:
    """Return whether this is a guest, and of which hypervisor. ``flags``: the processor's."""
    vendor, product = read_fact(_NAMES / "sys_vendor"), read_fact(_NAMES / "product_name")
    return {
        "guest": guest(flags, vendor, product),
        "hypervisor": read_fact(Path("/sys/hypervisor/type")),
        "vendor": vendor,
        "product": product,
    }


def guest(flags: Fact, vendor: Fact, product: Fact) -> Fact:
    """Return whether this is a virtual machine, by the processor's flag, else by the vendor's names."""
    words = flags.split() if isinstance(flags, str) else []
    if "hypervisor" in words:
        return True
    if "fpu" in words:  # x86 would report a hypervisor
        return False
    if isinstance(vendor, str) or isinstance(product, str):
        return guest_by_name(str(vendor), str(product))
    return unread("neither the processor nor the machine's vendor says")


def guest_by_name(vendor: str, product: str) -> bool:
    """Return whether the vendor's names are those of a virtual machine."""
    text = f"{vendor} {product}".lower()
    return any(name in text for name in _GUESTS) and not text.endswith(_METAL)


def container() -> Fact:
    """Return the kind of container that Prony runs in; null: none found."""
    marks = [mark for mark in _MARKS if Path(mark).exists()]
    group = read_fact(Path("/proc/1/cgroup"))
    return container_kind(marks, group if isinstance(group, str) else "", os.environ)


def container_kind(marks: Collection[str], group: str, environment: Mapping[str, str]) -> str | None:
    """Return the kind, from what container engines leave: files, names of groups, a variable.

    >>> container_kind([], "0::/kubepods/burstable/pod1", {})
    'kubernetes'
    """
    by_group = next((kind for name, kind in _GROUPS.items() if name in group), None)
    by_mark = next((_MARKS[mark] for mark in marks), None)
    if by_group == "kubernetes" or "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    return by_mark or by_group or environment.get("container") or None


def container_engines() -> Json:
    """Return the version of each engine that is installed."""
    found = {name: shutil.which(name) for name in _ENGINES}
    return {name: _version(path) for name, path in found.items() if path}


def _version(program: str) -> Fact:
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return unread(f"`{program} --version` failed: {type(error).__name__}")
    said = done.stdout.decode(errors="replace").strip().splitlines()
    return said[0][:120] if said else unread(f"`{program} --version` prints nothing")
