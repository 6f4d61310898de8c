"""Containers by the command lines of Docker and Podman: found, labelled, limited, and removed.

A container has the same programs as any other sandbox: the environments that the catalogue's entries have
built, and the host's system, read-only at their own places. So a comparison of sandboxes compares nothing
else. Its image holds no program: places for mounts alone. Imports nothing, for the supervisor passes through
`prony.sandbox`. Must not know subjects, trials or plans.

>>> from prony.sandbox.containers.engine import Engine
>>> Engine("/usr/bin/podman").name
'podman'
"""

__all__: list[str] = []
