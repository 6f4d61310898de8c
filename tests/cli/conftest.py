import json
from collections.abc import Iterator

import pytest

from commands import Done, Prony, cache, folder, prony, without_page  # noqa: F401 - fixtures
from prony.archive import create
from prony.cli import main as entry
from prony.model.trial import Invalid, Trial, TrialRole


@pytest.fixture
def reference(request) -> Iterator[str]:
    """The address of a reference server in this process; its config is the test's parameter."""
    from prony._engine import ReferenceServer

    with ReferenceServer(json.dumps({"port": 0, **getattr(request, "param", {})})) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def said(prony: Prony, monkeypatch: pytest.MonkeyPatch, capsys, own_claim):  # noqa: F811
    """Run a command in this process, which is quicker; for those that start nothing."""
    monkeypatch.chdir(prony.folder)
    for name, value in prony.environment().items():
        monkeypatch.setenv(name, value)

    def run(*arguments) -> Done:
        monkeypatch.setattr("sys.argv", ["prony", *without_page(arguments)])
        with pytest.raises(SystemExit) as ended:
            entry.main()
        out, err = capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def run(said, folder, monkeypatch):  # noqa: F811
    """Run a command whose study only writes its archive with one trial, and return how it ended; its last
    study is `run.task`.
    """
    (folder / "shop.py").write_text("app = None\n")

    def study(task, listener):
        command.task = task
        if not task.resumes:
            with create(task.out, task.plan, {}, task.cross_checks) as writer:
                trial = Trial(task.plan.cells[0].id, 0, 0, 0, TrialRole.SUBJECT, Invalid("none"), 0, 1)
                writer.append(trial)
        raise KeyboardInterrupt

    def command(*arguments):
        monkeypatch.setattr("prony.study.run_study", study)
        return said("run", *arguments)

    command.task = None
    return command
