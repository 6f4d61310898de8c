"""What an archive may cost who reads it."""

import signal
import time
from pathlib import Path

import pytest

from prony.cli.patience import with_patience
from prony.core.errors import ArchiveError, UsageError


@with_patience
def work(file: Path, seconds: float = 60.0, html_to: str | None = None) -> str:
    ends_s = time.thread_time() + seconds
    while time.thread_time() < ends_s:
        sum(range(1000))
    return file.name


@pytest.fixture(autouse=True)
def one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.cli.patience._AT_LEAST_S", 0.5)


def test_a_command_gives_up_where_an_archive_costs_more_than_any_of_its_size(tmp_path: Path) -> None:
    started_s = time.process_time()
    with pytest.raises(ArchiveError, match="takes more than 0 s of CPU time") as refused:
        work(tmp_path / "a.prony")
    assert time.process_time() - started_s < 2
    assert "PRONY_READING_S" in str(refused.value.hint)


def test_what_a_command_writes_gives_it_no_time(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(bytes(6 << 20))
    with pytest.raises(ArchiveError, match="takes more than 0 s of CPU time"):
        work(tmp_path / "a.prony", 1.5, html_to=str(page))


def test_time_in_which_nothing_is_computed_does_not_count(tmp_path: Path) -> None:
    @with_patience
    def waiting(file: Path) -> str:
        time.sleep(1.0)
        return file.name

    assert waiting(tmp_path / "a.prony") == "a.prony"


def test_a_large_archive_may_take_longer(tmp_path: Path) -> None:
    large = tmp_path / "large.prony"
    with large.open("wb") as file:
        file.truncate(6 << 20)
    assert work(large, 1.0) == "large.prony"
    assert work(tmp_path, 1.0) == tmp_path.name


def test_a_user_may_allow_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_READING_S", "30")
    assert work(tmp_path / "a.prony", 1.0) == "a.prony"


@pytest.mark.parametrize("typed", ["0", "-1", "1000000000", "x", "nan", "inf"])
def test_what_is_no_time_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setenv("PRONY_READING_S", typed)
    with pytest.raises(UsageError, match=f"`PRONY_READING_S={typed}`: expected seconds, 1 to 86400"):
        work(tmp_path / "a.prony", 0.0)


def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGPROF)
    work(tmp_path / "a.prony", 0.0)
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0.0
    assert signal.getsignal(signal.SIGPROF) is before
