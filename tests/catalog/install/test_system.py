"""What servers need of the system: found in faked package databases, told, and never installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from prony.catalog.install.system import advise, brew, debian, fedora, find_system, missing
from prony.catalog.schema.entry import SystemNeeds
from prony.catalog.schema.loader import load_catalog, load_server
from prony.cli.documents.servers import advice_document
from prony.model.shown import json_of

ROOT = Path(__file__).parents[3]
VALID = Path(__file__).parents[1] / "schema" / "hostile" / "valid.toml"


@pytest.fixture
def dpkg(tmp_path):
    """A Debian on which libev-dev (of one architecture) and gcc are installed."""
    for name in ("gcc.list", "libev-dev:amd64.list", "gcc-12-base:amd64.list"):
        (tmp_path / name).touch()
    return debian(tmp_path)


def entry(name="valid", **needs):
    return load_server(VALID).model_copy(update={"name": name, "needs": SystemNeeds(**needs)})


def test_debian_knows_packages_with_and_without_an_architecture(dpkg):
    assert dpkg.missing(["gcc", "libev-dev", "gcc-12", "apache2-dev"]) == ("gcc-12", "apache2-dev")


def test_fedora_is_asked_for_each_package():
    assert fedora({"gcc"}.__contains__).missing(["gcc", "libev-devel"]) == ("libev-devel",)


def test_homebrew_has_a_link_for_each_package(tmp_path):
    (tmp_path / "opt" / "libev").mkdir(parents=True)
    assert brew(tmp_path).missing(["libev", "httpd"]) == ("httpd",)


@pytest.mark.parametrize(
    ("uid", "system", "command"),
    [
        (1000, debian(), "sudo apt-get install --no-install-recommends a b"),
        (0, debian(), "apt-get install --no-install-recommends a b"),
        (1000, fedora(), "sudo dnf install a b"),
        (1000, brew(Path("/opt/homebrew")), "brew install a b"),
    ],
)
def test_the_command_is_the_systems_own(uid, system, command, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: uid)
    assert system.command(["a", "b"]) == command


def test_without_a_known_system_nothing_is_said_to_be_missing():
    assert missing(SystemNeeds(debian=("gcc",)), None) == ()


def test_advice_names_each_missing_package_once_in_one_command(dpkg):
    entries = [entry("a", debian=["gcc", "apache2-dev"]), entry("b", debian=["apache2-dev"]), entry("c")]
    advice = advise(entries, dpkg)
    assert advice.missing == ("apache2-dev",)
    assert advice.command is not None
    assert advice.command.endswith("apt-get install --no-install-recommends apache2-dev")
    assert [item.missing for item in advice.servers] == [("apache2-dev",), ("apache2-dev",), ()]
    assert advice.command in repr(advice_document(advice))
    assert json_of(advice)["missing"] == ["apache2-dev"]


def test_when_nothing_is_missing_there_is_no_command(dpkg):
    advice = advise([entry(debian=["gcc"]), entry("c")], dpkg)
    assert (advice.missing, advice.command) == ((), None)
    assert "Nothing is missing." in repr(advice_document(advice))


def test_what_has_no_name_on_this_system_is_told_by_debians():
    advice = advise([entry(debian=["gcc"])], fedora(lambda name: False))
    (item,) = advice.servers
    assert (item.known, item.needs, item.missing) == (False, ("gcc",), ())
    text = repr(advice_document(advice))
    assert "only the names of Debian's packages are known" in text
    assert "Nothing is missing." not in text


def test_a_server_whose_packages_are_missing_is_not_built(monkeypatch, tmp_path):
    from prony.catalog.install.environment import EnvironmentRequest, Unavailable
    from prony.catalog.install.prepare import prepare
    from prony.core.users import resolve_user

    monkeypatch.setenv("PRONY_CACHE", str(tmp_path))
    monkeypatch.setattr("prony.catalog.install.build.find_system", lambda: debian(tmp_path))
    request = EnvironmentRequest("mine", entry(debian=["no-such-package"]))
    found = prepare([request], resolve_user(), lambda progress: None)["mine"]
    assert isinstance(found, Unavailable)
    assert found.reason == (
        "`valid` needs no-such-package from the system; `prony doctor valid` shows how to install it"
    )


# --- doctor -----------------------------------------------------------------------------------------------


@pytest.fixture
def doctor(tmp_path, monkeypatch, capsys):
    """Run the command on a Debian without any package, with one server that needs some."""
    from prony.cli import main as command_line

    text = VALID.read_text().replace('name = "valid"', 'name = "needy"')
    text = text.replace("[install]", '[needs]\ndebian = ["libev-dev", "gcc"]\n\n[install]', 1)
    (tmp_path / "needy.toml").write_text(text)
    (tmp_path / "study.toml").write_text(
        'format = 1\nname = "s"\ntitle = "S"\n[[subjects]]\nserver = ["needy-many"]\napp = ["hello"]\n'
        '[[workloads]]\nloop = "closed"\nconnections = 2\n[profiles.quick]\nblocks = 1\nduration = "1s"\n'
    )
    (tmp_path / "dpkg").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("prony.catalog.install.system.find_system", lambda: debian(tmp_path / "dpkg"))

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["prony", "doctor", "--catalog", "needy.toml", *arguments])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


@pytest.mark.parametrize("name", ["needy", "needy-many", "study.toml"])
def test_doctor_takes_servers_variants_and_studies(doctor, name):
    status, out, _ = doctor(name)
    assert status == 3
    assert "apt-get install --no-install-recommends gcc libev-dev" in out


def test_doctor_is_content_when_nothing_is_missing(doctor):
    status, out, err = doctor("wsgiref")
    assert (status, err) == (0, "")
    assert "Nothing is missing." in out


def test_doctor_is_also_data(doctor):
    import json

    status, out, _ = doctor("needy", "--json")
    assert status == 3
    assert json.loads(out)["missing"] == ["gcc", "libev-dev"]


def test_doctor_tells_a_name_that_is_neither(doctor):
    status, out, err = doctor("nedy")
    assert (status, out) == (2, "")
    assert "there is no server or study `nedy`" in err
    assert "`needy`" in err


# --- scripts/system-packages ------------------------------------------------------------------------------


def listed(*names):
    command = [sys.executable, str(ROOT / "scripts" / "system-packages"), "--list", *names]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_script_lists_what_the_entries_say():
    needed = {name for entry in load_catalog().entries() for name in entry.needs.debian}
    assert set(listed().stdout.split()) == needed
    assert listed("wsgiref").stdout == ""


def test_the_script_tells_an_unknown_server():
    assert "there is no server, frontend or service `nothing`" in listed("nothing").stderr


def test_the_system_is_found_or_there_is_none():
    system = find_system()
    assert system is None or system.missing([]) == ()
