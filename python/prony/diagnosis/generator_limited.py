"""D23: the generator, not the server, may have set the figures.

*Source*: the engine's own verdict (docs/reference/engine-wire.md, Generator).
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding

__all__ = ["generator_limited"]


def generator_limited(evidence: Evidence) -> list[Finding]:
    """Return a finding when the engine says that it was the limit."""
    generator = (evidence.trial.recording or {}).get("generator") or {}
    if not (reason := generator.get("limited")):
        return []
    return [
        Finding(
            rule="D23",
            confidence=Confidence.LIKELY,
            sentence=f"the generator may have been the limit ({reason}): the figures are a lower bound",
            advice="give the generator another thread or CPU, or lower the load",
        )
    ]
