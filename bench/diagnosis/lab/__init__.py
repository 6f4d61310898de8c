"""Planted faults: a typed plan of causes, each with a twin that is healthy, and what was made of them. Pure.

`lab.campaign` plants them in real servers.

>>> len(CAUSES) >= 24, len({plant.name for plant in PLANTS}) == len(PLANTS)
(True, True)
"""

from lab.doubles import DOUBLES
from lab.museum import MUSEUM
from lab.of_connections import OF_CONNECTIONS
from lab.of_machine import OF_MACHINE
from lab.of_workers import OF_WORKERS

CAUSES = (*OF_CONNECTIONS, *OF_WORKERS, *OF_MACHINE, *MUSEUM)
"""Every cause that is planted, in the order of the table."""

PLANTS = (
    *(plant for cause in CAUSES for plant in cause.plants()),
    *(plant for double in DOUBLES for plant in (double.first, double.second)),
)
"""Every cause on each of its servers at each severity, and every double."""
