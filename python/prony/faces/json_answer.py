"""The short answer as JSON: the first thing that a program reads of a report."""

from dataclasses import asdict

from prony.analysis.missing import Missing
from prony.analysis.summary import Estimate
from prony.model.shapes import Json
from prony.reading.brief import Brief, Ranked, brief_of
from prony.reading.study import Reading


def answer_json(reading: Reading) -> Json | None:
    """Return the short answer; null for a plan without cells, and for a search (`found_rates` has its
    answer).
    """
    brief = None if reading.is_search else brief_of(reading)
    if brief is None:
        return None
    found = brief.group.answer
    record = reading.subjects.get(found.leader or "")
    return {
        "group": brief.place,
        "leader": found.leader,
        "ties": list(found.ties),
        "decided": found.decided,
        "reason": found.reason,
        "blocks": found.blocks,
        "by_session": found.by_session,
        "command_line": None if record is None else record.command_line,
        "metrics": asdict(brief.measures),
        "beside": None if brief.beside is None else asdict(brief.beside),
        "subjects": [_row(row, brief) for row in brief.rows],
        "elsewhere": [asdict(one) for one in brief.elsewhere],
        "limits": [place for place, _ in brief.limits],
    }


def _row(row: Ranked, brief: Brief) -> Json:
    measures, cell = brief.measures, row.cell
    return {
        "name": cell.name,
        "cell": row.place,
        "best": row.best,
        "letters": row.letters or None,
        "trials_ok": cell.ok,
        "trials": cell.total,
        "qualified": cell.unqualified is None,
        "at_least": cell.at_least,
        "primary": _figure(row, measures.primary),
        "ratio": None if row.ratio is None else asdict(row.ratio),
        "latency": None if measures.latency is None else _figure(row, measures.latency),
        "error_ratio": cell.error_ratio,
        "cpu": _figure(row, measures.cpu),
        "memory": _figure(row, measures.memory),
    }


def _figure(row: Ranked, metric: str) -> Json:
    value: Estimate | Missing = row.value(metric)
    if isinstance(value, Missing):
        return {"missing": value.reason}
    return asdict(value)
