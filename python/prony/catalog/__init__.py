"""The catalogue of servers and apps, and the environments that they are installed in.

One TOML file a server in `servers`, one folder an app in `apps`. Must not know trials, studies or reports.
"""

from prony.catalog.apps import materialise_app, user_app
from prony.catalog.entry import ServerEntry
from prony.catalog.environment import (
    Environment,
    EnvironmentProgress,
    EnvironmentRequest,
    Unavailable,
    prepare,
)
from prony.catalog.launch import command_for_user, declared_facts, make_launch
from prony.catalog.loader import Catalog, load_catalog
from prony.catalog.settings import resolved_settings
from prony.catalog.status import status

__all__ = [
    "Catalog",
    "Environment",
    "EnvironmentProgress",
    "EnvironmentRequest",
    "ServerEntry",
    "Unavailable",
    "command_for_user",
    "declared_facts",
    "load_catalog",
    "make_launch",
    "materialise_app",
    "prepare",
    "resolved_settings",
    "status",
    "user_app",
]
