"""The catalogue of servers, frontends, services, apps and studies, in three rooms.

`schema`: the content of an entry; `install`: how it is installed; `launch`: how it is started. The other
folders are data: a TOML file for each server in `servers`, a folder for each app in `apps`.
"""

from functools import partial
from pathlib import Path

from prony.core.errors import explained

DATA = Path(__file__).parent
"""The folder with the data that comes with Prony."""

readable = partial(
    explained,
    "the catalogue cannot be read",
    "if the file came with Prony, install Prony again; else open it",
)
"""Within this context, or in a function that it decorates, a file that cannot be read is a HostError."""
