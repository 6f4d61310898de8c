"""What the set-up installs on a fresh machine: names of packages as text, and what it says to whom.

What apt says is text as it came on Debian 12 and 13. Ubuntu 24.04's is made of names in its archive; it and
Fedora were not tried.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts.loading import SCRIPTS, load_prerequisites

FOLDER = SCRIPTS / "prerequisites"
ROOT = SCRIPTS.parent
packages = load_prerequisites("packages")
Need, RefusedError = packages.Need, packages.RefusedError
DEBIAN_12 = {"ID": "debian", "VERSION_ID": "12"}
DEBIAN_13 = {"ID": "debian", "VERSION_ID": "13"}
UBUNTU_24 = {"ID": "ubuntu", "VERSION_ID": "24.04"}
OFFERED = {
    "debian 12": {
        "cargo": "0.66.0+ds1-1",
        "rustc": "1.63.0+dfsg1-2",
        "cargo-web": "1.96.0+dfsg1-1~deb12u2",
        "rustc-web": "1.96.0+dfsg1-1~deb12u2",
    },
    "debian 13": {
        "cargo": "1.85.1+dfsg1-1+deb13u1",
        "rustc": "1.85.1+dfsg1-1+deb13u1",
        "cargo-web": "1.96.0+dfsg1-1~deb13u1+b1",
        "rustc-web": "1.96.0+dfsg1-1~deb13u1+b1",
        "rustup": "1.27.1-3+b1",
    },
    "ubuntu 24.04": {
        "cargo": "1.75.0+dfsg0ubuntu1-0ubuntu7.4",
        "rustc": "1.75.0+dfsg0ubuntu1-0ubuntu7.4",
        "cargo-1.85": "1.85.1+dfsg0ubuntu2~bpo0-0ubuntu0.24.04.1",
        "rustc-1.85": "1.85.1+dfsg0ubuntu2~bpo0-0ubuntu0.24.04.1",
        "cargo-1.91": "1.91.1+dfsg~24.04-0ubuntu0.24.04.3",
        "rustc-1.91": "1.91.1+dfsg~24.04-0ubuntu0.24.04.3",
    },
}
RELEASES = {"debian 12": DEBIAN_12, "debian 13": DEBIAN_13, "ubuntu 24.04": UBUNTU_24}
RUST = Need("rust", "Rust")


def said(offered, **installed):
    """Return what `apt-cache policy` prints of ``offered``; names of ``installed`` have _ for -."""
    there = {name.replace("_", "-"): version for name, version in installed.items()}
    candidates = {**there, **offered}
    return "".join(
        f"{name}:\n  Installed: {there.get(name, '(none)')}\n  Candidate: {version}\n"
        f"  Version table:\n     {version} 500\n        500 http://mirror stable/main amd64 Packages\n"
        for name, version in candidates.items()
    )


def chosen(system, **installed):
    policy = packages.parse_policy(said(OFFERED[system], **installed))
    return packages.apt_rust(policy, RELEASES[system]).compiler


# --- which packages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "names"),
    [
        ("debian 12", ("cargo-web", "rustc-web")),
        ("debian 13", ("cargo", "rustc")),
        ("ubuntu 24.04", ("cargo-1.85", "rustc-1.85")),
    ],
)
def test_the_first_rust_that_is_new_enough_is_taken(system, names):
    assert chosen(system) == names


@pytest.mark.parametrize(
    ("system", "names"),
    [
        ("debian 12", ("cargo-web", "rustc-web")),
        ("debian 13", ("cargo", "rustc")),
        ("ubuntu 24.04", ("cargo-1.85", "rustc-1.85")),
    ],
)
def test_a_system_without_package_lists_is_known_by_its_release(system, names):
    assert packages.apt_rust({}, RELEASES[system]).compiler == names


def test_lists_that_hold_only_what_is_installed_are_no_lists():
    policy = packages.parse_policy(said({}, libfoo="1"))
    assert packages.apt_rust(policy, DEBIAN_13).compiler == ("cargo", "rustc")


def test_a_newer_ubuntu_has_a_plain_rust_that_does():
    release = {"ID": "ubuntu", "VERSION_ID": "25.10"}
    assert packages.apt_rust({}, release).compiler == ("cargo", "rustc")


def test_a_system_whose_packages_are_too_old_is_told_of_rustup():
    policy = packages.parse_policy(said({"cargo": "1.70.0-1", "rustc": "1.70.0-1"}))
    with pytest.raises(RefusedError, match=r"no Rust 1\.85 or newer") as refused:
        packages.apt_rust(policy, {"ID": "debian", "VERSION_ID": "12"})
    assert "rustup" in refused.value.hint


def test_the_linters_are_those_of_the_compiler():
    assert packages.WEB.linters == ("rustfmt-web", "rust-web-clippy")
    assert packages.PLAIN.linters == ("rustfmt", "rust-clippy")
    assert packages.versioned(85).linters == ("rustfmt-1.85", "rust-1.85-clippy")


def test_fedora_has_names_of_its_own():
    needs = [Need(kind, kind) for kind in ("linker", "rust", "linters", "venv", "tools", "certificates")]
    names = [names for _, names in packages.dnf_packages(needs, installed=())]
    assert names[:4] == [("gcc", "glibc-devel"), ("cargo", "rust"), ("rustfmt", "clippy"), ("python3-pip",)]


def test_venv_is_of_the_python_that_was_found():
    found = packages.apt_packages([Need("venv", "venv")], None, (3, 13))
    assert found == [(Need("venv", "venv"), ("python3.13-venv",))]


def test_every_need_has_packages_everywhere():
    kinds = set(packages.APT_NEEDS) | {"venv", "rust", "linters"}
    assert set(packages.DNF_NEEDS) == kinds


def test_the_least_rust_is_the_workspaces():
    declared = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert declared == packages.LEAST_TEXT == ".".join(map(str, packages.LEAST))


# --- an installed compiler is never replaced --------------------------------------------------------------


@pytest.mark.parametrize("name", ["cargo", "rustc"])
def test_debian_12_with_a_compiler_keeps_it_and_is_told(name):
    with pytest.raises(RefusedError, match=f"replace an installed compiler \\({name}\\)") as refused:
        chosen("debian 12", **{name: OFFERED["debian 12"][name]})
    assert refused.value.hint.startswith(f"apt-get remove {name}; or install rustup")


def test_the_release_alone_replaces_no_compiler_either():
    policy = packages.parse_policy(said({}, rustc="1.63.0+dfsg1-2"))
    with pytest.raises(RefusedError, match=r"replace an installed compiler \(rustc\)"):
        packages.apt_rust(policy, DEBIAN_12)


def test_an_older_rust_of_the_same_name_is_not_upgraded():
    with pytest.raises(RefusedError, match=r"replace an installed compiler \(rustc"):
        chosen("debian 13", rustc="1.63.0+dfsg1-2")


def test_debians_rustup_is_told_to_fetch_a_compiler():
    with pytest.raises(RefusedError, match=r"replace an installed compiler \(rustup\)") as refused:
        chosen("debian 13", rustup="1.27.1-3+b1")
    assert refused.value.hint == "rustup update stable"


def test_ubuntus_versions_stand_beside_its_plain_compiler():
    plain = OFFERED["ubuntu 24.04"]["rustc"]
    assert chosen("ubuntu 24.04", cargo=plain, rustc=plain) == ("cargo-1.85", "rustc-1.85")


def test_fedoras_compiler_is_not_upgraded():
    with pytest.raises(RefusedError, match="`rust` is too old") as refused:
        packages.dnf_packages([RUST], installed=["rust"])
    assert refused.value.hint == "dnf upgrade rust"


# --- the line to type -------------------------------------------------------------------------------------


def test_the_line_of_an_ordinary_user_begins_with_sudo():
    line = packages.install_line("apt-get", ["gcc", "libc6-dev"], root=False)
    assert line == (
        "sudo apt-get update && sudo apt-get install --no-install-recommends --no-remove gcc libc6-dev"
    )
    assert packages.install_line("dnf", ["gcc"], root=False) == "sudo dnf install gcc"


def test_roots_line_needs_no_sudo():
    assert packages.install_line("dnf", ["gcc"], root=True) == "dnf install gcc"


# --- on a machine made of paper ---------------------------------------------------------------------------

POLICY = said(OFFERED["debian 12"])
# Installs what it is asked to: programs that say a version. Writes down how it was called.
APT_GET = """#!/bin/sh
echo "$*" >>"$MACHINE/calls"
for name; do
    case $name in
        gcc) make="cc" ;;
        cargo-web) make="cargo rustc" ;;
        *) make="" ;;
    esac
    for program in $make; do
        printf '#!/bin/sh\\necho "%s 1.96.0 (abc 2026-01-01)"\\n' "$program" >"$MACHINE/bin/$program"
        /bin/chmod +x "$MACHINE/bin/$program"
    done
done
"""


@pytest.fixture
def machine(tmp_path):
    """A folder of programs that is all of PATH: apt, and no compiler."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "certificates").touch()
    programs = {
        "apt-get": APT_GET,
        "apt-cache": f"#!/bin/sh\n[ \"$1\" = policy ] && /bin/cat <<'END'\n{POLICY}END\ntrue\n",
        **dict.fromkeys(("find", "flock", "uv"), "#!/bin/sh\n"),
    }
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def call(machine, *arguments, **environment):
    own = {
        "PATH": str(machine / "bin"),
        "HOME": str(machine),
        "MACHINE": str(machine),
        "SSL_CERT_FILE": str(machine / "certificates"),
    }
    return subprocess.run(
        [sys.executable, FOLDER, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**own, **environment},
    )


def calls(machine):
    file = machine / "calls"
    return file.read_text().splitlines() if file.exists() else []


root = pytest.mark.skipif(os.geteuid() != 0, reason="installs as root only")
no_other_rust = pytest.mark.skipif(
    any(Path("/usr/lib").glob("rust-1.*")), reason="this machine has Ubuntu's Rust by version"
)


@root
@no_other_rust
def test_root_installs_what_is_missing_and_says_so_a_line_each(machine):
    done = call(machine, machine / "state")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.splitlines() == [
        "prony: installing gcc libc6-dev (a C linker, to build the engine)",
        "prony: installing cargo-web rustc-web (Rust 1.85 or newer, to build the engine)",
    ]
    update, *installs = calls(machine)
    assert update.startswith("update")
    assert len(installs) == 2
    assert all("--no-remove" in line for line in installs)


@root
@no_other_rust
def test_root_of_a_fedora_has_dnf_asked(machine):
    (machine / "bin" / "apt-get").unlink()
    (machine / "bin" / "dnf").write_text(APT_GET.replace("cargo-web)", "cargo)"))
    (machine / "bin" / "dnf").chmod(0o755)
    done = call(machine, machine / "state")
    assert done.returncode == 0, done.stderr
    assert calls(machine) == ["install -y -q gcc glibc-devel", "install -y -q cargo rust"]


@root
@no_other_rust
def test_nothing_is_installed_the_second_time(machine):
    call(machine, machine / "state")
    before = calls(machine)
    assert call(machine, machine / "state").returncode == 0
    assert calls(machine) == before


@no_other_rust
def test_who_may_not_install_is_told_the_one_line(machine):
    done = call(machine, machine / "state", PRONY_INSTALL="no")
    assert (done.returncode, calls(machine)) == (3, [])
    assert (
        "error: missing: a C linker, to build the engine; Rust 1.85 or newer, to build the engine"
        in done.stderr
    )
    hint = done.stderr.splitlines()[-1]
    assert hint.endswith("install --no-install-recommends --no-remove gcc libc6-dev cargo-web rustc-web")
    assert hint.startswith("hint: apt-get" if os.geteuid() == 0 else "hint: sudo apt-get")


@root
@no_other_rust
def test_what_apt_cannot_install_is_told(machine):
    (machine / "bin" / "apt-get").write_text(
        '#!/bin/sh\n[ "$1" = update ] || { echo E: broken >&2; exit 100; }\n'
    )
    done = call(machine, machine / "state")
    assert done.returncode == 3
    assert "E: broken" in done.stderr
    assert "failed" in done.stderr


@no_other_rust
def test_a_rustup_without_a_new_enough_compiler_is_told_its_own_command(machine):
    folder = machine / ".cargo" / "bin"
    folder.mkdir(parents=True)
    for name in ("cargo", "rustc", "rustup"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} 1.70.0 (abc 2023-01-01)'\n")
        (folder / name).chmod(0o755)
    done = call(machine, machine / "state")
    assert (done.returncode, calls(machine)) == (3, [])
    assert f"hint: {folder}/rustup update stable" in done.stderr


@no_other_rust
def test_a_machine_without_a_known_package_manager_is_told_what_is_missing(machine):
    (machine / "bin" / "apt-get").unlink()
    done = call(machine, machine / "state")
    assert done.returncode == 3
    assert "error: missing: a C linker" in done.stderr


@no_other_rust
def test_no_rust_is_told_where_it_is_asked_for(machine):
    done = call(machine, "--rust")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Rust 1.85 or newer is needed; found none" in done.stderr


def test_a_rust_that_works_is_told_as_shell_assignments(machine):
    for name in ("cargo", "rustc"):
        (machine / "bin" / name).write_text(f"#!/bin/sh\necho '{name} 1.85.0 (abc 2025-01-01)'\n")
        (machine / "bin" / name).chmod(0o755)
    done = call(machine, "--rust")
    assert done.stdout == f"export PATH={machine}/bin:$PATH\n"


def test_a_folder_of_path_that_cannot_be_looked_into_is_passed_over(monkeypatch, tmp_path):
    rust = load_prerequisites("rust")
    cargo = tmp_path / "cargo"
    cargo.touch(mode=0o755)
    # The kernel answers with an error, as for a folder that is closed; to root none is.
    monkeypatch.setenv("PATH", f"/{'x' * 300}:{tmp_path}")
    assert rust.rust_folders()[0] == tmp_path
