"""Reports: an archive or a Recording as a Document, and faces that show one.

Formats are listed here, and nowhere else: name to `module:attribute`, imported when asked for. A terminal
needs a library that a program reading JSON does not.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["FORMATS"]

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "text": "prony.report.terminal:TerminalReporter",
        "json": "prony.report.json_report:report_json",
        "csv": "prony.report.csv_files:write_csv",
    }
)
