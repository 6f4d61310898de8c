"""The catalogue of servers, frontends, services, apps and studies, in three rooms.

`schema`: what an entry says; `install`: how it is installed; `launch`: how it is launched. The other folders
are data: one TOML file a server in `servers`, one folder an app in `apps`. Must not know trials or reports.
"""

from pathlib import Path

__all__ = ["DATA"]

DATA = Path(__file__).parent
"""The folder with the data that comes with Prony."""
