"""Planted faults: a typed plan of causes, each with a twin that is healthy, and what was made of them. Pure.

`prony selftest diagnosis` plants them in real servers. Must not know how.

>>> len(CAUSES) >= 24, len({plant.name for plant in PLANTS}) == len(PLANTS)
(True, True)
"""

from prony.faults.cause import Harm, PlanPart, Plant, PlantedCause
from prony.faults.doubles import DOUBLES, Double
from prony.faults.museum import MUSEUM
from prony.faults.of_connections import OF_CONNECTIONS
from prony.faults.of_machine import OF_MACHINE
from prony.faults.of_workers import OF_WORKERS
from prony.faults.servers import SERVERS, PlantedServer, ServerKind
from prony.faults.setup import NeighbourOf, Pair, PlantedSide

__all__ = [
    "CAUSES",
    "DOUBLES",
    "PLANTS",
    "SERVERS",
    "Double",
    "Harm",
    "NeighbourOf",
    "Pair",
    "PlanPart",
    "Plant",
    "PlantedCause",
    "PlantedServer",
    "PlantedSide",
    "ServerKind",
]

CAUSES = (*OF_CONNECTIONS, *OF_WORKERS, *OF_MACHINE, *MUSEUM)
"""Every cause that is planted, in the order of the table."""

PLANTS = (
    *(plant for cause in CAUSES for plant in cause.plants()),
    *(plant for double in DOUBLES for plant in (double.first, double.second)),
)
"""Every cause on each of its servers at each severity, and every double."""
