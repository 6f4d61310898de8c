"""The option ``--pacing``, and the pacing where nobody typed it."""

from typing import Annotated

import typer

from prony.errors import UsageError
from prony.model.workload import Pacing

PacingOption = Annotated[
    Pacing | None,
    typer.Option(
        "--pacing",
        help="Open loop: how to wait for the next send: sleep and spin (precise, the default), or only sleep "
        "(economical, when CPUs are shared).",
    ),
]


def pacing_of(wish: Pacing | None, *, shares_cpus: bool) -> Pacing:
    """Return the pacing of a whole study.

    *Errors*: UsageError for precise pacing on the server's CPUs: what spins there slows the server.
    """
    if wish is Pacing.PRECISE and shares_cpus:
        raise UsageError(
            "`--pacing precise` spins on the generator's CPUs, which `--share-cpus` gives to the server too",
            hint="leave out one of them",
        )
    return Pacing.usual(shares_cpus=shares_cpus) if wish is None else wish
