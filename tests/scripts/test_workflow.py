"""The workflow of the public CI calls what is here."""

import os
import re

import pytest

from scripts.loading import SCRIPTS

ROOT = SCRIPTS.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_there_is_a_workflow():
    assert [file.name for file in WORKFLOWS] == ["wheels.yml"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_script_that_a_workflow_calls_is_there(file):
    called = re.findall(r"(?<![\w/])scripts/[\w-]+", file.read_text())
    assert called
    assert all(os.access(ROOT / name, os.X_OK) for name in called)


def test_the_release_steps_name_the_workflow():
    assert ".github/workflows/wheels.yml" in (ROOT / "CONTRIBUTING.md").read_text()
