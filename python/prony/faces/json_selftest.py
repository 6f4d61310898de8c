"""Self-tests as JSON with stable keys (`prony selftest --json`)."""

from collections.abc import Sequence
from dataclasses import asdict

from prony.analysis.planted import Planted, verdicts_of, wrong_by_blocks
from prony.analysis.self_tests import Procedure
from prony.model.shapes import Json
from prony.report.selftest import SelfTests

VERSION = 1


def selftest_json(shown: SelfTests) -> Json:
    """Return the same as JSON."""
    return {
        "version": VERSION,
        "archive": shown.archive,
        "kept": shown.kept,
        "procedure": [_procedure(one) for one in shown.drawn],
        "tests": [
            {
                "metric": one.metric,
                "loop": one.load,
                "blocks": one.blocks,
                "false": one.false,
                "studies": one.studies,
                "bound": one.bound,
                "shown": one.shown,
                "permuted_false": one.permuted_false,
                "permuted": one.permuted,
                "noise_floor": one.floor,
            }
            for one in shown.tests
        ],
    }


def _procedure(one: Procedure) -> Json:
    found = one.found
    return {
        "subject": one.subject,
        "loop": one.load,
        "metric": one.metric,
        "names": found.names,
        "blocks": found.blocks,
        "false": found.false,
        "studies": found.studies,
        "rate": found.rate,
        "most": found.most,
        "bound": found.bound,
        "holds": found.holds,
        "coverage": found.coverage,
        "too_small": found.too_small,
        "chance": found.chance,
    }


def planted_json(archive: str, found: Sequence[Planted]) -> Json:
    """Return the same as JSON."""
    return {
        "version": VERSION,
        "archive": archive,
        "plants": [_plant(one) for one in found],
        "verdicts": asdict(verdicts_of(found)),
        "studies": {name: [asdict(one) for one in wrong] for name, wrong in wrong_by_blocks(found).items()},
    }


def _plant(one: Planted) -> Json:
    compared = one.comparison
    return {
        "metric": one.metric,
        "work_us": one.work_us,
        "extra_us": one.extra_us,
        "expected": one.expected,
        "effect": compared.effect,
        "low": compared.low,
        "high": compared.high,
        "level": compared.level,
        "blocks": compared.blocks,
        "bias": one.bias,
        "covers": one.covers,
        "verdict": str(compared.verdict),
        "right": one.is_right,
        "reason": one.reason,
        "power": [
            {
                "blocks": power.blocks,
                "found": power.found,
                "studies": power.studies,
                "least": power.least,
                "wrong": power.wrong,
            }
            for power in one.powers
        ],
    }
