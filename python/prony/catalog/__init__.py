"""The catalogue of servers, frontends, services, apps and studies, in three rooms.

`schema`: the content of an entry; `install`: how it is installed; `launch`: how it is started. The other
folders are data: a TOML file for each server in `servers`, a folder for each app in `apps`. Must not know
trials or reports.
"""

from pathlib import Path

__all__ = ["DATA"]

DATA = Path(__file__).parent
"""The folder with the data that comes with Prony."""
