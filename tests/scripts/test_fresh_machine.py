"""What scripts/fresh-machine takes from the host, and that it never deletes what is mounted."""

import os
import signal
import threading
from pathlib import Path

import pytest

from scripts.loading import load

fresh = load("fresh-machine")


def test_the_hosts_mirrors_serve_every_suite():
    targets = (
        "Debian http://mirror/debian/\nDebian http://mirror/debian/\nDebian-Security http://safe/security/\n"
    )
    assert fresh.sources("trixie", targets) == [
        "deb http://mirror/debian/ trixie main",
        "deb http://mirror/debian/ trixie-updates main",
        "deb http://safe/security/ trixie-security main",
    ]


@pytest.mark.parametrize("targets", ["", "Ubuntu http://mirror/ubuntu/\n", "Debian http://mirror/debian/\n"])
def test_a_host_without_both_archives_leaves_the_mirror_to_mmdebstrap(targets):
    assert fresh.sources("trixie", targets) == []


def test_apt_keeps_how_to_fetch_and_nothing_that_runs():
    dump = (
        'Acquire "";\nAcquire::http::Proxy "http://proxy:3128";\nAcquire::Check-Date "false";\n'
        'Acquire::Languages:: "none";\nAPT::Update::Post-Invoke:: "rm -rf /";\n'
    )
    assert fresh.apt_options(dump) == [
        'Acquire::http::Proxy "http://proxy:3128";',
        'Acquire::Check-Date "false";',
    ]


def test_settings_of_the_clients_are_inherited_and_folders_of_the_host_are_not():
    environment = {
        **{"PIP_INDEX_URL": "https://mirror/simple", "UV_INDEX_URL": "https://mirror", "no_proxy": "mirror"},
        **{"SSL_CERT_FILE": "/etc/ca.pem", "CARGO_NET_OFFLINE": "false", "HTTPS_PROXY": "http://proxy"},
        **{"CARGO_HOME": "/home/x/.cargo", "UV_CACHE_DIR": "/x", "UV_PROJECT_ENVIRONMENT": "/x"},
        **{"PATH": "/bin", "HOME": "/home/x", "AWS_SECRET": "x", "PRONY_CACHE": "/x", "VIRTUAL_ENV": "/x"},
    }
    assert set(fresh.settings(environment)) == {
        *("PIP_INDEX_URL", "UV_INDEX_URL", "no_proxy", "SSL_CERT_FILE", "CARGO_NET_OFFLINE", "HTTPS_PROXY"),
    }


def test_what_a_setting_names_is_found_on_the_host(tmp_path):
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    text = f'[global]\ncert = {bundle}\nproxy = http://proxy/path\nclient = "/nowhere/at/all"\n'
    assert fresh.named_paths([text, str(tmp_path)]) == sorted([str(bundle), str(tmp_path)])


def test_the_bundle_of_certificates_is_made_by_the_machine_itself():
    assert fresh.named_paths([str(path) for path in (fresh.MADE_CERTIFICATES, Path("/etc"))]) == []


def test_the_users_files_of_settings_are_roots_on_the_machine(tmp_path):
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").touch()
    (tmp_path / "cargo").mkdir()
    (tmp_path / "cargo" / "config.toml").touch()
    files = fresh.setting_files({"CARGO_HOME": str(tmp_path / "cargo")}, tmp_path)
    assert files[str(tmp_path / ".config/uv/uv.toml")] == "/root/.config/uv/uv.toml"
    assert files[str(tmp_path / "cargo/config.toml")] == "/root/.cargo/config.toml"


def test_a_folder_with_a_mount_in_it_is_left(monkeypatch, tmp_path):
    (tmp_path / "kept").touch()
    monkeypatch.setattr(fresh, "mounts", lambda: [tmp_path / "root" / "dev"])
    with pytest.raises(SystemExit, match="is mounted there"):
        fresh.remove(tmp_path)
    assert (tmp_path / "kept").exists()


def test_the_mounts_of_this_process_are_known():
    assert {Path("/"), Path("/proc")} <= set(fresh.mounts())


@pytest.mark.skipif(os.geteuid() != 0, reason="the script refuses others before")
def test_a_machine_that_fails_is_removed(monkeypatch, tmp_path):
    def bootstrap(suite, machine):
        machine.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(fresh.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(fresh, "bootstrap", bootstrap)
    with pytest.raises(KeyboardInterrupt):
        fresh.passes("trixie", ["true"])
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_fails_does_not_keep_the_others_from_being_tried(monkeypatch, tmp_path):
    tried = []
    monkeypatch.setattr(fresh.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(fresh, "bootstrap", lambda suite, machine: machine.mkdir())
    monkeypatch.setattr(fresh, "clone", lambda machine: None)
    monkeypatch.setattr(fresh, "enter", lambda machine, command: tried.append(command) or 3)
    assert not fresh.passes("trixie", ["one", "two"])
    assert tried == ["one", "two"]


def test_a_second_interrupt_waits_until_the_folder_is_gone(monkeypatch, tmp_path):
    def removing(place):
        os.kill(os.getpid(), signal.SIGINT)
        rmtree(place)

    rmtree = fresh.shutil.rmtree
    # As in a terminal: in the background a shell has it ignored.
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(fresh.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(fresh, "bootstrap", lambda suite, machine: machine.mkdir())
    monkeypatch.setattr(fresh, "clone", lambda machine: None)
    monkeypatch.setattr(fresh.shutil, "rmtree", removing)
    # The kernel gives a signal that one thread has blocked to another.
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        fresh.passes("trixie", [])
    ended.set()
    other.join()
    signal.signal(signal.SIGINT, kept)
    assert list(tmp_path.iterdir()) == []
