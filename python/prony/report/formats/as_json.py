"""What reports say, as JSON (`--json`): the values themselves, and of some the words.

Each number of a text report has its value here: `report.text.Figure` names the place.
"""

from dataclasses import asdict
from types import MappingProxyType

from prony.diagnosis.conclusion import Diagnosis
from prony.diagnosis.evidence import Finding
from prony.diagnosis.kinds import Consequence, Experiment
from prony.figures.claim_parts import estimand
from prony.figures.latency import summary_of
from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.model.recording import Distribution
from prony.model.shown import Words, json_of
from prony.reading.across import Side
from prony.reading.brief import StudyReport, brief_of
from prony.reading.study import StudyResults
from prony.report.across import machine_of
from prony.report.diagnoses import diagnosis_words
from prony.report.findings import advice_words, finding_words, limit_words
from prony.report.studies import StudyView
from prony.report.words import availability_words

VERSION = 1


def document_json(value: object = None, **more: object) -> Json:
    """Return a document: ``more`` by its keys, and what ``value`` holds."""
    return {"version": VERSION, **json_of(more, WORDS), **(json_of(value, WORDS) or {})}


def reading_json(reading: StudyResults) -> Json:
    """Return the report of a study."""
    return document_json(report_of(reading))


def report_of(reading: StudyResults) -> StudyReport:
    """Return a study's report with its short answer; None for a search, whose answer is `found_rates`."""
    return StudyReport(None if reading.is_search else brief_of(reading), reading)


# --- words ------------------------------------------------------------------------------------------------


def _sentence(finding: Finding) -> str:
    """The same in words."""
    return str(finding_words(finding, ""))


def _advice(finding: Finding) -> str | None:
    """What to change, in words."""
    return None if finding.advice is None else str(advice_words(finding, ""))


def _consequence(finding: Finding) -> Consequence:
    """What it means for the figures."""
    return finding.kind.meaning.consequence


def _experiment(finding: Finding) -> Experiment:
    """What would confirm it."""
    return finding.kind.meaning.experiment


def _limit(found: Diagnosis) -> str:
    """The same in words."""
    return str(diagnosis_words([(found, "")]))


def _generator_limited(cell: CellSummary) -> str | None:
    """Null, or why the generator may have set the figures of some trial."""
    return None if cell.limited is None else str(limit_words(cell.limited, ""))


WORDS: Words = MappingProxyType(
    {
        Finding: {
            "sentence": _sentence,
            "advice": _advice,
            "consequence": _consequence,
            "experiment": _experiment,
        },
        Diagnosis: {"sentence": _limit},
        CellSummary: {"generator_limited": _generator_limited},
        Distribution: {"": summary_of},
        Side: {"machine": machine_of},
    }
)
"""What is said of values beside what they hold, by key."""


# --- studies as JSON (`prony studies --json`) -------------------------------------------------------------


def study_json(view: StudyView) -> Json:
    """Return a study as data."""
    plan = view.plan
    here = {name: availability_words(one) for name, one in view.here.items()}
    return {
        "name": view.name,
        "title": plan.title,
        "question": plan.question,
        "source": plan.source,
        "notes": list(plan.notes),
        "subjects": [{"name": name, "here": here.get(name)} for name in view.subjects],
        "generators": {name: words for name, words in here.items() if name not in view.subjects},
        "compared": view.compared,
        "available": view.available,
        "profiles": {
            name: {
                "blocks": one.blocks,
                "as_published": view.as_published.get(name),
                "testable": len(one.claims) - len(view.unmet.get(name, {})),
                "unmet": {claim: need.words for claim, need in view.unmet.get(name, {}).items()},
                "cells": len(one.cells),
                "length": view.lengths[name],
                "runs": [asdict(load) for load in view.loads(name)],
                "loads": list(dict.fromkeys(cell.workload.describe() for cell in one.cells)),
            }
            for name, one in view.plans.items()
        },
        "claims": [{**asdict(claim), "estimand": estimand(claim)} for claim in plan.claims],
        "originals": [asdict(one) for one in plan.originals],
    }
