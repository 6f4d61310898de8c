import json
from collections.abc import Iterator

import pytest

from commands import Done, Prony, cache, folder, prony, without_page  # noqa: F401 - fixtures
from prony.cli import main as entry


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
