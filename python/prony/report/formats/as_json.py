"""What reports say, as JSON (`--json`): the values themselves, and of some the words.

Each number of a text report has its value here: `report.text.Figure` names the place.

The JSON Schema of reports: made from the types of the values, each key with the line at its field.

*Source*: JSON Schema, draft 2020-12.
"""

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import Enum, EnumType
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from prony.diagnosis.conclusion import Diagnosis
from prony.diagnosis.evidence import Finding
from prony.diagnosis.kinds import Consequence, Experiment
from prony.figures.claim_parts import estimand
from prony.figures.latency import summary_of
from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.model.recording import Distribution
from prony.model.shown import Key, Words, json_of, keys_of
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


# --- the JSON Schema of reports ---------------------------------------------------------------------------


_PLAIN = {int: "integer", float: "number", bool: "boolean", str: "string", bytes: "string", NoneType: "null"}


def report_schema() -> Json:
    """Return the JSON Schema of a study's report."""
    return schema_of(StudyReport)


def schema_of(kind: type) -> Json:
    """Return the JSON Schema of a document. New keys may come within a version: no other is refused."""
    schema = _Schema()
    root = schema.object(kind)
    version = {"version": {"const": VERSION, "description": "the version of this format"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "properties": version | root["properties"],
        "required": ["version", *root["required"]],
        "$defs": schema.defs,
    }


@dataclass(frozen=True, slots=True)
class _Schema:
    """The objects that came up so far, by the names of their types."""

    defs: dict[str, Json] = field(default_factory=dict)

    def of(self, kind: Any) -> Json:
        """Return the schema of a type's values."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(one) for one in inner]}
        if origin in (Mapping, dict):
            return {"type": "object", "additionalProperties": self.of(inner[1])}
        if origin in (tuple, Sequence):
            return self._array(inner)
        return self._named(kind) if is_dataclass(kind) else _plain(kind)

    def _array(self, inner: tuple[Any, ...]) -> Json:
        if len(inner) == 1 or inner[-1] is ...:
            return {"type": "array", "items": self.of(inner[0])}
        return {"type": "array", "prefixItems": [self.of(one) for one in inner], "items": False}

    def _named(self, kind: Any) -> Json:
        if kind.__name__ not in self.defs:
            self.defs[kind.__name__] = {}
            self.defs[kind.__name__] = self.object(kind)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def object(self, kind: Any) -> Json:
        """Return the schema of a dataclass."""
        found = _empty(_flat(inspect.getdoc(kind)))
        if hasattr(kind, "KIND"):
            _put(found, "kind", {"const": kind.KIND})
        for key in keys_of(kind, WORDS):
            self._add(found, key, _text(kind, key))
        return found

    def _add(self, found: Json, key: Key, text: str) -> None:
        place = found
        for name in key.path[:-1]:
            place = place["properties"].get(name) or _put(place, name, _empty(""))
        if key.path:
            _put(place, key.path[-1], self.of(key.type) | ({"description": text} if text else {}))
        elif is_dataclass(key.type):
            inner = self.object(key.type)
            found["description"] += f" {inner['description']}"
            found["properties"] |= inner["properties"]
            found["required"] += inner["required"]
        else:
            found["additionalProperties"] = self.of(get_args(key.type)[1])


def _plain(kind: Any) -> Json:
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    return {"enum": [one.value for one in cast("type[Enum]", kind)]} if isinstance(kind, EnumType) else {}


def _empty(text: str) -> Json:
    return {"type": "object", "description": text, "properties": {}, "required": []}


def _put(found: Json, name: str, value: Json) -> Json:
    found["properties"][name] = value
    found["required"].append(name)
    return value


def _text(kind: type, key: Key) -> str:
    """Return what a key means: the line below the field, or the docstring of a property."""
    text = key.get.__doc__ if inspect.isfunction(key.get) else _lines(kind).get(key.name)
    return _flat(text)


def _flat(text: str | None) -> str:
    return " ".join((text or "").split()).replace("``", "`")


@cache
def _lines(kind: type) -> Mapping[str, str]:
    """Return the texts that stand below a dataclass's fields, by field."""
    body = cast("ast.ClassDef", ast.parse(dedent(inspect.getsource(kind))).body[0]).body
    found = {}
    for above, below in pairwise(body):
        match above, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = text
    return found
