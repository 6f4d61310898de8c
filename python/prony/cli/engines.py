"""``prony engines``: the load generators that a study can use, and how to install missing ones."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.talk import show
from prony.core.errors import EngineError

if TYPE_CHECKING:
    from prony.engine.external.tool import Tool

EPILOG = """\
Examples:
  prony engines           which generators are installed, and how to get the others
  prony engines --json    the same, with what each counts or times wrongly
"""


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    title: str
    status: str
    here: bool
    get: str | None
    caveats: tuple[str, ...] = ()


def engines(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the load generators that a study can use, and how to install missing ones."""
    rows = tuple(_rows())
    if as_json:
        show(json.dumps({"engines": [asdict(row) for row in rows]}, indent=2))
        return
    for row in rows:
        show(f"{row.name:26}{row.status:18}{row.title}")
    missing = [row for row in rows if not row.here]
    if missing:
        show("\nTo get the others:")
    for row in missing:
        show(f"  {row.name:24}{row.get}")


def _rows() -> Iterator[_Row]:
    from prony.engine.external import TOOLS
    from prony.engine.scripts import SCRIPTS

    yield _Row(
        "prony", "Prony's own engine: closed and open loop, every latency kept", "built in", True, None
    )
    yield _fleet()
    yield from map(_tool, TOOLS.values())
    for one in SCRIPTS.values():
        yield _Row(one.name, one.title, "made on first use", True, one.get, one.caveats)


def _fleet() -> _Row:
    from prony.engine.fleet import NEEDS
    from prony.engine.registry import not_installed
    from prony.model.workload import EngineChoice

    here = not_installed(EngineChoice("local:2")) is None
    title = "N of Prony's own, which share one load: a fleet on this machine"
    return _Row("local:N", title, "installed" if here else "not installed", here, NEEDS[1])


def _tool(tool: "Tool") -> _Row:
    from prony.engine.external.engine import find_tool

    try:
        status, here = find_tool(tool).version or "unknown version", True
    except EngineError:
        status, here = "not installed", False
    return _Row(tool.name, tool.title, status, here, tool.get, tool.caveats)
