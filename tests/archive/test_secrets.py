"""An archive is made to be shown to others: what may be a secret is not in it."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import create, open_archive
from prony.archive.codec import REDACTED, is_secret
from prony.model.exchange import Request
from prony.model.facts import Fingerprint


@pytest.mark.parametrize("name", ["Authorization", "cookie", "X-API-Key", "X-Auth-Token"])
def test_headers_with_secrets_are_known_by_their_names(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["Accept", "Content-Type", "Host"])
def test_other_headers_are_kept(name):
    assert not is_secret(name)


def test_a_secret_header_is_nowhere_in_the_file(tmp_path):
    path = build.closed_study(tmp_path / "source.prony", 5)
    with open_archive(path) as opened:
        plan = opened.plan()
        trial = next(iter(opened.trials())).trial
    request = Request(headers=(("Authorization", "Bearer hunter2"), ("Accept", "*/*")))
    cell = replace(plan.cells[0], workload=replace(plan.cells[0].workload, request=request))
    spec = replace(trial.recording.spec, workload=cell.workload)
    secretive = replace(trial, recording=replace(trial.recording, spec=spec))
    with create(tmp_path / "a.prony", replace(plan, cells=(cell, *plan.cells[1:])), Fingerprint()) as writer:
        writer.append(secretive)
    content = (tmp_path / "a.prony").read_bytes()
    assert b"hunter2" not in content
    assert REDACTED.encode() in content
