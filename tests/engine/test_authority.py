"""The authority of certificates, where its file is on another machine."""

from pathlib import Path

import pytest

from prony.core.errors import EngineError
from prony.engine.answers import text_of, with_authority


def asking(file):
    return {"target": {"host": "192.0.2.1", "tls": {"ca_file": str(file)}}}


def test_its_text_is_in_a_file_of_this_machine_for_as_long_as_the_load_takes(tmp_path):
    (tmp_path / "authority.pem").write_text("a certificate")
    spec = asking(tmp_path / "authority.pem")
    text = text_of(spec)
    (tmp_path / "authority.pem").unlink()
    with with_authority(spec, text) as found:
        place = Path(found["target"]["tls"]["ca_file"])
        assert place.read_text() == "a certificate"
        assert found["target"]["host"] == "192.0.2.1"
    assert not place.exists()


def test_a_text_that_is_none_is_no_certificate_either():
    with with_authority(asking("x.pem"), "\ud800") as found:
        assert Path(found["target"]["tls"]["ca_file"]).read_text() == "?"


def test_a_load_without_tls_is_as_it_was():
    spec = {"target": {"host": "192.0.2.1"}}
    with with_authority(spec, text_of(spec)) as found:
        assert found == spec


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(EngineError, match=r"authority\.pem`: cannot be read: No such file"):
        text_of(asking(tmp_path / "authority.pem"))
