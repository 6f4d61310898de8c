"""What limits a subject, and findings, as JSON."""

from dataclasses import asdict

from prony.diagnosis import MEANINGS, Diagnosis, Finding, Frequent
from prony.model.shapes import Json, encode
from prony.report.diagnoses import diagnosis_words
from prony.report.findings import advice_words, finding_words


def finding_json(finding: Finding) -> Json:
    """Return a finding with what it means, what to change, and what would confirm it."""
    meaning, knob = MEANINGS[finding.kind], finding.knob
    return {
        "rule": finding.rule,
        "kind": finding.kind.value,
        "confidence": finding.confidence.value,
        "sentence": str(finding_words(finding, "")),
        "numbers": dict(finding.numbers),
        "names": dict(finding.names),
        "advice": None if finding.advice is None else str(advice_words(finding, "")),
        "consequence": meaning.consequence.value,
        "experiment": meaning.experiment.value,
        "knob": None if knob is None else {"name": knob.name, "value": knob.value},
    }


def diagnosis_json(found: Diagnosis | None) -> Json | None:
    """Return what limits a subject under a load; null where no trial says."""
    if found is None:
        return None
    return {
        "kind": found.kind.value,
        "confidence": found.confidence.value,
        "sentence": str(diagnosis_words([(found, "")])),
        "trials": found.trials,
        "cause": None if found.cause is None else _frequent(found.cause),
        "beside": [_frequent(one) for one in found.beside],
        "overloaded": found.overloaded,
        "done_per_s": found.done_per_s,
        "asked_per_s": found.asked_per_s,
        "in_flight": found.in_flight,
        "slots": found.slots,
        "shares": {resource.value: share for resource, share in found.shares.items()},
        "bounds": [asdict(bound) for bound in found.bounds],
        "time": {state.value: share for state, share in found.time.items()},
        "looks": found.looks,
        "ruled_out": [resource.value for resource in found.ruled_out],
        "confirmation": None if found.confirmation is None else encode(found.confirmation),
    }


def _frequent(one: Frequent) -> Json:
    return {"finding": finding_json(one.finding), "trials": one.trials}
