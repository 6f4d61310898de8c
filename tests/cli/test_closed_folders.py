"""Folders that a user cannot look into, as root's are to who came by `su`: one line, or passed over."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

import prony as package
from commands import Prony
from prony.core.errors import HostError
from prony.engine.fleet.hosts import started_process

ROOT = Path(__file__).parents[2]
SOURCE = Path(package.__file__).parent.parent
NOBODY = 65534
# The kernel answers with an error, as for a folder that is closed; to root none is.
UNSEEN = f"/{'x' * 300}"


def left_by_su(closed: str) -> dict[str, str]:
    """The variables of another user that `su` leaves as they are."""
    return {
        "PATH": f"{closed}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": closed,
        "XDG_CONFIG_HOME": f"{closed}/.config",
        "XDG_DATA_HOME": f"{closed}/.local",
        "XDG_RUNTIME_DIR": f"{closed}/run",
        "CARGO_HOME": f"{closed}/.cargo",
        "PYENV_ROOT": f"{closed}/.pyenv",
        "SSL_CERT_FILE": f"{closed}/ca.pem",
        "TMPDIR": f"{closed}/tmp",
        "NETRC": f"{closed}/.netrc",
    }


@pytest.mark.parametrize(
    "command",
    [
        *(
            ("servers",),
            ("servers", "gunicorn"),
            ("studies",),
            ("engines",),
            ("doctor", "gunicorn"),
            ("host",),
        ),
        *(("env",), ("clean",), ("run", "embedded-servers", "--dry-run")),
    ],
    ids=" ".join,
)
def test_a_command_passes_over_folders_that_cannot_be_looked_into(
    prony: Prony, command: tuple[str, ...]
) -> None:
    done = prony(*command, timeout_s=120, **left_by_su(UNSEEN))
    assert done.status in (0, 3)
    assert "fault in Prony" not in done.err


def test_what_is_nowhere_is_not_installed_whatever_the_system_says_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{UNSEEN}:/usr/bin")
    with pytest.raises(HostError, match="`no-such-ssh` is not installed"):
        started_process(["no-such-ssh"], subprocess.PIPE)


# --- as an ordinary user ------------------------------------------------------------------------------------


def as_nobody(folder: Path, closed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    places = f"{SOURCE}:{sysconfig.get_path('purelib')}"
    return subprocess.run(
        ["/usr/bin/python3", "-B", *command],
        env={**left_by_su(str(closed)), "PYTHONPATH": places, "PRONY_CACHE": str(folder / "cache")},
        cwd=closed,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def closed(folder: Path) -> Path:
    """Root's folder, with something of each kind in it."""
    if os.geteuid() != 0 or not os.access("/usr/bin/python3", os.X_OK):
        pytest.skip("needs root and the system's Python")
    place = folder / "closed"
    place.mkdir(mode=0o700)
    for name in ("shop.py", "study.toml", "a.prony", "requirements.txt", "data.csv", "program", "ca.pem"):
        (place / name).touch(mode=0o755)
    (folder / "cache").mkdir()
    os.chown(folder / "cache", NOBODY, NOBODY)
    return place


@pytest.mark.parametrize(
    "typed",
    [
        *("servers", "engines", "host", "clean", "run embedded-servers --dry-run", "report {}/a.prony"),
        *("why {}/a.prony", "compare {}/a.prony {}/b.prony", "report {} --site site", "run {}/study.toml"),
        *("run --app shop:app --dir {} --servers gunicorn --dry-run", "servers --catalog {}/own"),
        *("run --command={}/program --dry-run", "load http://127.0.0.1:9/ --data {}/data.csv -d 1s"),
        *(
            "run --app hello --requirements {}/requirements.txt --dry-run",
            "load http://127.0.0.1:9/ --cacert {}/ca.pem",
        ),
        *(
            "run embedded-servers --python {}/program --dry-run",
            "run embedded-servers --out {}/x.prony --dry-run",
        ),
        *(
            "tune --app shop:app --dir {}",
            "load http://127.0.0.1:9/ --json {}/x.json",
            "report {}/sub/a.prony --html {}/x",
        ),
    ],
)
def test_who_came_by_su_gets_an_answer_or_one_line(folder: Path, closed: Path, typed: str) -> None:
    words = typed.replace("{}", str(closed)).split()
    done = as_nobody(folder, closed, "-c", "from prony.cli.main import main; main()", *words)
    if "No module named" in done.stderr:
        pytest.skip(f"an ordinary user cannot read {SOURCE}: {done.stderr.splitlines()[-1]}")
    assert "fault in Prony" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2, 3)


def test_the_set_up_passes_over_folders_of_root(folder: Path, closed: Path) -> None:
    scripts = ROOT / "scripts" / "prerequisites"
    if not all(place.stat().st_mode & 0o1 for place in (scripts, *scripts.parents)):
        pytest.skip(f"an ordinary user cannot read {scripts}")
    done = as_nobody(folder, closed, str(scripts), str(folder / "state"))
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 3)
