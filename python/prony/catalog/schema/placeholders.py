"""The names that an entry's commands and files may ask for, besides its own settings and programs."""

__all__ = ["APP_PLACEHOLDERS", "PLACEHOLDERS", "UPSTREAM_PLACEHOLDERS"]

PLACEHOLDERS = frozenset(["host", "port", "cpus", "run_dir", "app_dir"])
"""What every command may ask for, besides its entry's settings and programs."""
APP_PLACEHOLDERS = frozenset(["app", "module", "attribute", "interface"])
"""What a server's and a frontend's may ask for: which app is called, and how."""
UPSTREAM_PLACEHOLDERS = frozenset(["upstream_host", "upstream_port", "wire"])
"""What a frontend's may ask for: the server behind it."""
