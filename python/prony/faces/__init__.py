"""Faces: a Document or a Reading as text on a terminal, as Markdown, CSV or JSON.

This list of formats is the only one: name to `module:attribute`, imported on demand, because a terminal
needs a library that a program reading JSON does not.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["FORMATS"]

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "text": "prony.faces.terminal:TerminalReporter",
        "json": "prony.faces.json_report:reading_json",
        "csv": "prony.faces.csv_files:write_csv",
    }
)
