"""A study without any subject that can start is refused, with the one thing to do."""

from types import SimpleNamespace

import pytest

from prony.core.errors import SubjectError
from prony.study.preparing import refuse_without_subjects


def hint(reason):
    subject = SimpleNamespace(name="gunicorn+shop", server="gunicorn")
    known = SimpleNamespace(server=lambda name: SimpleNamespace(is_of_app=False))
    study = SimpleNamespace(plan=SimpleNamespace(subjects=lambda: [subject]), catalog=known)
    records = [SimpleNamespace(name=subject.name, unavailable=reason)]
    with pytest.raises(SubjectError, match="no server is available") as refused:
        refuse_without_subjects(study, SimpleNamespace(ready={}, records=records))
    return refused.value.hint


def test_an_app_that_wants_another_python_is_told_how_to_name_it():
    said = "Because the current Python version (3.12.3) does not satisfy Python>=3.14 and shop depends on it"
    assert "wants Python>=3.14: --python" in hint(said)
    assert "prony doctor" in hint("no compiler")
