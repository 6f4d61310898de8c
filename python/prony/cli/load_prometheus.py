"""``prony load --prometheus FILE``: the metrics of a load, in a file that is replaced while it runs."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prony.cli.options import check_output, write_output
from prony.cli.talk import say
from prony.core.errors import UsageError
from prony.model.json_codec import Json

if TYPE_CHECKING:
    from prony.model.recording import Recording

# Prometheus asks every 15 s or less often, as it is usually set.
_EVERY_S = 5.0


def check_prometheus(path: Path | None) -> None:
    """Refuse what cannot be replaced by a file again and again. *Errors*: UsageError."""
    if path is None:
        return
    check_output(str(path))
    if path.exists() and not path.is_file():
        raise UsageError(f"`--prometheus {path}` is a device or a pipe; expected a file, to be replaced")


class PrometheusFile:
    """The file of metrics; null where none is asked for. A load goes on when it cannot be written.

    A load that ends with an error leaves a file that does not say that it runs.
    """

    def __init__(self, path: Path | None, now_s: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._now_s = now_s
        self._written_s: float | None = None
        self._last: Json | None = None
        self._said: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._last is not None:
            self._show(self._last, is_running=False)

    def on_event(self, event: Json) -> None:
        """Write what a progress event says, unless that was done a moment ago."""
        if self._path is None or event["event"] != "progress":
            return
        self._last, now_s = event, self._now_s()
        if self._written_s is None or now_s - self._written_s >= _EVERY_S:
            self._written_s = now_s
            self._show(event, is_running=True)

    def finish(self, recording: "Recording") -> None:
        """Write the whole load. *Errors*: UsageError for a file that cannot be written."""
        if self._path is not None:
            from prony.report.formats.prometheus import ended_metrics

            self._write(ended_metrics(recording))

    def _show(self, event: Json, *, is_running: bool) -> None:
        from prony.report.formats.prometheus import progress_metrics

        try:
            self._write(progress_metrics(event, is_running=is_running))
        except UsageError as error:
            if str(error) != self._said:
                self._said = str(error)
                say(self._said)

    def _write(self, text: str) -> None:
        write_output(text.rstrip("\n"), str(self._path))
