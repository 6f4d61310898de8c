"""Studies as JSON (`prony studies --json`)."""

from dataclasses import asdict

from prony.analysis.estimands import estimand
from prony.model.shapes import Json
from prony.report.studies import StudyView
from prony.report.words import availability_words


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
