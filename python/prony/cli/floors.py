"""The noise floors that this machine's self-tests measured, for what a study here will find."""

from typing import TYPE_CHECKING

from prony.model.facts import Fingerprint

if TYPE_CHECKING:
    from prony.model.facts import Floor


def floors_of(fingerprint: Fingerprint) -> "tuple[Floor, ...]":
    """Return the stored floors of the machine with this fingerprint, often none: a user without a home and
    a cache has none, and reads all the same.
    """
    from prony.errors import HostError
    from prony.host.noise_floors import kept_floors
    from prony.runas import resolve_user

    try:
        return kept_floors(resolve_user().cache, fingerprint)
    except HostError:
        return ()
