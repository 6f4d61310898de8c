"""Containers by the command lines of Docker and Podman: finds, labels, limits, and removes them.

A container has the same programs as any other sandbox: the environments of the catalogue's entries and the
host's system, mounted read-only at their usual paths. So a comparison of sandboxes compares only sandboxes.
Its image holds no programs, only mount points. Imports nothing, because the supervisor imports
`prony.sandbox`.

>>> from prony.sandbox.containers.engine import ContainerEngine
>>> ContainerEngine("/usr/bin/podman").name
'podman'
"""
