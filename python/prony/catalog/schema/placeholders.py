"""The placeholders of an entry's commands and files, besides its own settings and programs."""

PLACEHOLDERS = frozenset(["host", "port", "cpus", "run_dir", "app_dir"])
"""Placeholders of every command, besides its entry's settings and programs."""
APP_PLACEHOLDERS = frozenset(["app", "module", "attribute", "interface"])
"""Placeholders of servers and frontends: the app and its interface."""
UPSTREAM_PLACEHOLDERS = frozenset(["upstream_host", "upstream_port", "upstreams", "wire"])
"""Placeholders of frontends: the server behind it."""
TLS_PLACEHOLDERS = frozenset(["tls_certificate", "tls_key"])
"""Placeholders of what speaks TLS: the files with its certificate and its key."""
