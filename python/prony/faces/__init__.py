"""Faces: a Document or a Reading as text on a terminal, as Markdown, CSV or JSON.

Formats are listed here, and nowhere else: name to `module:attribute`, imported when asked for. A terminal
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
