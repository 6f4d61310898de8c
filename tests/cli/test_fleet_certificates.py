"""`prony fleet certificates`: what it makes, and the commands that it prints."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_printed_commands_are_those_of_the_guide(prony, folder):
    done = prony("fleet", "certificates", "fleet")
    assert done.status == 0, done.err
    assert sorted(path.name for path in (folder / "fleet").iterdir()) == [
        "ca.pem",
        "certificate.pem",
        "key.pem",
    ]
    printed = [line.strip() for line in done.out.replace("fleet/", "").splitlines()]
    guide = (ROOT / "docs/guides/fleet.md").read_text().replace(" \\\n   ", "").splitlines()
    commands = [line for line in printed if "dask " in line]
    assert len(commands) == 2
    for command in commands:
        assert command in guide


def test_a_folder_that_holds_something_is_refused(prony, folder):
    (folder / "fleet").mkdir()
    (folder / "fleet" / "mine").touch()
    refused = prony("fleet", "certificates", "fleet")
    assert refused.status == 2
    assert "`fleet` is not empty" in refused.err
