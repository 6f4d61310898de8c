"""The statuses of valid replies, as lines below the report of a load.

>>> from types import SimpleNamespace
>>> account = SimpleNamespace(valid_by_status={"200": 20, "302": 1200})
>>> list(status_lines(SimpleNamespace(account=account, redirected_to="/login")))[0]
'statuses: 200 20; 302 1,200'
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prony.core.units import format_count
from prony.figures.account import are_redirects

if TYPE_CHECKING:
    from prony.model.recording import Recording


def status_lines(recording: "Recording") -> Iterator[str]:
    """Yield how many valid replies had which status, and that most of them lead elsewhere."""
    valid = recording.account.valid_by_status
    if not valid:
        return
    yield "statuses: " + "; ".join(f"{status} {format_count(number)}" for status, number in valid.items())
    if are_redirects(valid):
        where = f" to `{recording.redirected_to}`" if recording.redirected_to else ""
        then = "--follow 3 follows them, with --expect-status 200 they are failures"
        yield f"most replies are redirects{where}; {then}"
