"""``prony studies``: the studies that can be repeated here, and their content."""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.found_app import asked_study
from prony.cli.protocol import with_usual_pilot
from prony.cli.request_files import RequestFiles
from prony.cli.talk import show
from prony.core.errors import ExitCode
from prony.model.subject import INSTALLABLE, READY, Availability
from prony.model.workload import EngineChoice, is_fleet

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.figures.claim_needs import UnmetNeed
    from prony.model.plan import Cell, Plan
    from prony.report.studies import StudyView

EPILOG = """\
Examples:
  prony studies                  for each: what it repeats, what is missing here, its duration
  prony studies wsgi-servers     one study in full: subjects, loads, claims, published figures
  prony studies my-study.toml    your own file, checked and shown
  prony studies --json           the same as data
"""


def studies(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Only these studies, or a study's file.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List the studies that Prony knows, or show some of them in full."""
    from prony.catalog.schema.loader import load_catalog
    from prony.catalog.schema.studies import built_in_studies
    from prony.report.formats.as_json import study_json
    from prony.report.formats.terminal import TerminalReporter
    from prony.report.studies import studies_document, study_page
    from prony.report.text import pointer

    known = load_catalog()
    views = [_view(name, known) for name in names or built_in_studies()]
    if as_json:
        show(json.dumps([study_json(view) for view in views], indent=2))
        return ExitCode.DONE
    pages = (study_page(view, pointer(k)) for k, view in enumerate(views))
    for document in pages if names else [studies_document(views)]:
        TerminalReporter().write(document)
    return ExitCode.DONE


def _view(name: str, known: "Catalog") -> "StudyView":
    from prony.core.users import resolve_user
    from prony.plan.build import PlanOptions
    from prony.report.studies import StudyView
    from prony.study.extent import extent_of
    from prony.study.task import checks_of_source, plan_of_source

    asked = asked_study(name, known, resolve_user())
    source, known = asked.source, asked.known
    document = source.document
    with closing(RequestFiles()) as files:
        options = PlanOptions(requests=files.of_study(name))
        plans = {
            profile: with_usual_pilot(plan_of_source(name, source, known, replace(options, profile=profile)))
            for profile in document.profiles
        }
    checks = {profile: checks_of_source(source, plan) for profile, plan in plans.items()}
    lengths = {profile: str(extent_of(plan, known, checks[profile])) for profile, plan in plans.items()}
    return StudyView(
        name=document.name,
        plans=plans,
        lengths=lengths,
        checks=checks,
        here=_here(tuple(plans.values()), [cell for found in checks.values() for cell in found], known),
        unmet={profile: _unmet(plan) for profile, plan in plans.items()},
        as_published={
            name: profile.as_published for name, profile in document.profiles.items() if profile.as_published
        },
    )


def _unmet(plan: "Plan") -> "dict[str, UnmetNeed]":
    """Return the claims that the plan cannot test on the CPUs of this machine, with what they need."""
    from prony.figures.claim_needs import Cpus, planned, unmet
    from prony.machine.cpus import available_cpus
    from prony.sandbox.placement import place_in

    # With one CPU a study runs only if it may share it.
    sandbox, available = plan.cells[0].sandbox, available_cpus()
    chosen = replace(sandbox, share_cpus=sandbox.share_cpus or len(available) < 2)
    placed = place_in(chosen, available, plan.placed_threads)
    what = planned(plan, Cpus(len(placed.server_cpus), len(placed.generator_cpus), len(available)))
    needs = {claim.name: unmet(claim, what) for claim in plan.claims}
    return {name: need for name, need in needs.items() if need is not None}


def _here(
    plans: "Sequence[Plan]", checks: "Sequence[Cell]", known: "Catalog"
) -> "Mapping[str, Availability]":
    """Return whether each subject, and each generator besides Prony's own, can be measured here."""
    from prony.catalog.install.status import status
    from prony.core.users import resolve_user

    user = resolve_user()
    entries = {
        subject.name: (
            known.server(subject.server),
            *((known.frontends[subject.frontend.entry],) if subject.frontend else ()),
            *(known.service(service) for service in subject.app.services),
        )
        for plan in plans
        for subject in plan.subjects()
    }
    found = {entry.name: status(entry, user) for parts in entries.values() for entry in parts}
    here = {
        name: Availability.together(found[entry.name] for entry in parts) for name, parts in entries.items()
    }
    cells = [*(cell for plan in plans for cell in plan.cells), *checks]
    engines = {cell.engine.name: cell.engine for cell in cells}
    return {**here, **{name: _generator(one) for name, one in engines.items() if name != "prony"}}


def _generator(choice: "EngineChoice") -> "Availability":
    from prony.engine.registry import not_installed

    name = choice.name
    if choice.command:
        return Availability.lacking(name) if not_installed(choice) else READY
    # The scripts come with Prony, and get an environment of their own.
    if name.startswith(("python-", "printed-")):
        return INSTALLABLE
    if is_fleet(name):
        return Availability.lacking("prony[fleet]") if not_installed(choice) else READY
    return READY if shutil.which(name) else Availability.lacking(name)
