"""From the options of ``prony run`` to what they mean: the protocol of a study (blocks, looks, a search for
rates, a pilot), and a user's own app with its load.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from prony.cli.options import connections_of, duration_of, optional, rate_of, read_option, wait_of
from prony.cli.request_files import expected_of, paths_of, request_of, user_groups
from prony.cli.run_options import LoadOptions, RunOptions, SureOptions
from prony.cli.talk import say
from prony.cli.variables import typed_line, variables
from prony.core.errors import UsageError
from prony.core.units import SECOND_NS, parse_percent, seconds
from prony.model.plan import Cell, Plan, Precision
from prony.model.workload import Pacing

if TYPE_CHECKING:
    from prony.catalog.discover.sources import Program
    from prony.catalog.discover.survey import Survey
    from prony.catalog.schema.loader import Catalog
    from prony.model.exchange import Request
    from prony.model.facts import CloseLook
    from prony.model.workload import MixPath
    from prony.plan.document import WorkloadDocument
    from prony.study.extent import Wishes
    from prony.study.own_app import OwnApp

# A machine's neighbours and its temperature are others after an hour.
_PAUSE = "1h"

# Most just-in-time compilers are done by then, and it is the time of a few trials.
_PILOT_NS = 30 * SECOND_NS
# Fewer blocks give no verdict, so nothing is compared that would have to be warm.
_LEAST_PILOTED = 5
_LATENCIES_DECIDE = "latencies decide under a rate, and rounds have none"

LOOKS = (10, 15, 20)
"""Numbers of blocks after which a study looks at its figures: planned, because each look costs confidence."""


def with_protocol(plan: "Plan", sure: SureOptions, find_rate: str | None) -> "Plan":
    """Return the plan with its looks or its search, its pilot, its close looks, and what errors it
    allows.

    *Errors*: UsageError for invalid values, or options that contradict each other.
    """
    plan = _with_pilot(_with_blocks(plan, sure, find_rate), sure.pilot)
    plan = _with_rounds(_with_close_looks(plan, sure.confirm or ()), sure.rounds or 0)
    if sure.allow_errors is None:
        return plan
    if find_rate is not None:
        raise UsageError(
            f"`--allow-errors {sure.allow_errors}` and `--find-rate` exclude each other: the objective says "
            "how many requests may fail",
            hint="--find-rate 'p99 < 50ms, errors < 5%'",
        )
    return replace(plan, design=replace(plan.design, allow_errors=_share(sure.allow_errors)))


def _with_close_looks(plan: "Plan", looks: "Sequence[CloseLook]") -> "Plan":
    """Return the plan with a close look at each subject after the last block.

    *Errors*: UsageError beside a search, which has no block.
    """
    if looks and plan.design.find_rate:
        raise UsageError(
            f"`--confirm {looks[0]}` and `--find-rate` exclude each other: a search has no cell to look at",
            hint="measure at the rate that was found, with --rate and --confirm",
        )
    return replace(plan, design=replace(plan.design, confirm=tuple(dict.fromkeys(looks))))


def _with_rounds(plan: "Plan", rounds: int) -> "Plan":
    """Return the plan with rounds of short windows after the trials of each block.

    *Errors*: UsageError where servers cannot stay side by side.
    """
    if not rounds:
        return plan
    from prony.study.rounds import why_in_turns

    if reason := why_in_turns(plan):
        raise UsageError(
            f"`--rounds {rounds}`: the servers must be measured in turns: {reason}",
            hint="leave out --rounds",
        )
    return replace(plan, design=replace(plan.design, rounds=rounds))


def with_length(
    plan: "Plan", catalog: "Catalog", checks: "Sequence[Cell]", sure: SureOptions, *, may_shorten: bool
) -> "Plan":
    """Return the plan with the blocks and rounds for which there is time, where a length is typed, or that
    see a difference, where that is; shorter trials too, if it may and that shows much more, or sooner.

    *Errors*: UsageError beside what sets them, where there is no time for five blocks, and where no number of
    blocks sees the difference.
    """
    if sure.length is None and sure.see is None:
        return plan
    typed = f"--for {sure.length}" if sure.length is not None else f"--see {sure.see}"
    others = {"--repeats": sure.repeats, "--rounds": sure.rounds, "--precision": sure.precision}
    others |= {"--sessions": sure.sessions, "--find-rate": plan.design.find_rate}
    others |= {"--see": sure.length is not None and sure.see}
    for option, value in others.items():
        if value:
            raise UsageError(f"`{typed}` and `{option}` exclude each other; expected one of them")
    from prony.study.extent import Wishes, extent_of, fitting, with_short_trials
    from prony.study.rounds import are_closed, why_in_turns

    reason = why_in_turns(plan) or (None if are_closed(plan) else _LATENCIES_DECIDE)
    if reason:
        say(f"no rounds of short windows: {reason}")
    wishes = Wishes(may_shorten=may_shorten, in_turns=sure.rounds == 0)
    if sure.length is None:
        return _seeing(plan, catalog, checks, str(sure.see), wishes)
    length_ns = duration_of("--for", sure.length)
    found = fitting(plan, catalog, seconds(length_ns), checks, wishes)
    if found is None:
        plan = with_short_trials(plan) if may_shorten else plan
        least_s = extent_of(replace(plan, blocks=_LEAST_PILOTED), catalog, checks).seconds[1]
        raise UsageError(
            f"`--for {sure.length}`: five blocks, the fewest for a verdict, take {ceil(least_s)} s",
            hint=f"--for {ceil(least_s)}s; fewer servers, or shorten trials (--duration 2s --warmup 1s)",
        )
    return replace(found, design=replace(found.design, length_ns=length_ns))


def in_usual_time(plan: "Plan", catalog: "Catalog", checks: "Sequence[Cell]", sure: SureOptions) -> "Plan":
    """Return the plan of an app of the user's own, of which no length is typed: where it would take more than
    five minutes, with short trials, as many blocks as there is time for, and five at least.
    """
    from prony.study.extent import Wishes, extent_of, fitting, with_short_trials

    typed = (
        sure.length,
        sure.see,
        sure.repeats,
        sure.precision,
        sure.sessions,
        sure.rounds,
        sure.cross_check,
    )
    usual_s = seconds(_USUAL_NS)
    if any(typed) or plan.design.find_rate or extent_of(plan, catalog, checks).seconds[1] <= usual_s:
        return plan
    found = fitting(plan, catalog, usual_s, checks, Wishes(may_shorten=True, in_turns=True))
    if found is None:
        return replace(with_short_trials(plan), blocks=_LEAST_PILOTED)
    return replace(found, design=replace(found.design, length_ns=_USUAL_NS))


def _seeing(
    plan: "Plan", catalog: "Catalog", checks: "Sequence[Cell]", text: str, wishes: "Wishes"
) -> "Plan":
    from prony.study.extent import MOST_BLOCKS, seeing

    difference = read_option(f"--see {text}", text, parse_percent)
    margin = plan.design.margin
    if not margin < difference <= 1:
        raise UsageError(
            f"`--see {text}`: expected a difference of more than {100 * margin:g} %, the smallest of "
            "interest, and of 100 % at most"
        )
    found = seeing(plan, catalog, difference, checks, wishes)
    if found is None:
        raise UsageError(f"`--see {text}`: {MOST_BLOCKS} blocks, the most, do not see it", hint="--see 5%")
    return found


def _share(text: str) -> float:
    share = read_option("--allow-errors", text, parse_percent)
    if share > 1:
        raise UsageError(f"`--allow-errors {text}`: expected at most `100%`")
    return share


def with_usual_pilot(plan: "Plan") -> "Plan":
    """Return the plan with the pilot that it has where none is typed."""
    return _with_pilot(plan, None)


def _with_pilot(plan: "Plan", wanted: str | None) -> "Plan":
    """Return the plan with its pilot: as was typed, else as its file says, else where there are verdicts.

    *Errors*: UsageError for what is no time, and beside a search, in which each step warms up by itself.
    """
    if plan.design.find_rate:
        if wanted is not None:
            raise UsageError(
                f"`--pilot {wanted}` and `--find-rate` exclude each other; expected one of them",
                hint="set the warm-up of a search with --warmup",
            )
        return replace(plan, design=replace(plan.design, pilot_ns=None))
    usual = _PILOT_NS if plan.blocks >= _LEAST_PILOTED else 0
    longest_ns = usual if plan.design.pilot_ns is None else plan.design.pilot_ns
    longest_ns = longest_ns if wanted is None else wait_of("--pilot", wanted)
    return replace(plan, design=replace(plan.design, pilot_ns=longest_ns or None))


def _with_blocks(plan: "Plan", sure: SureOptions, find_rate: str | None) -> "Plan":
    _refuse_without_precision(sure)
    if sure.pause is not None and sure.sessions is None:
        raise UsageError(
            f"`--pause {sure.pause}`: `--pause` only works with `--sessions`", hint="--sessions 3"
        )
    if sure.sessions is not None:
        return _in_sessions(plan, sure.sessions, sure, find_rate)
    if sure.precision is not None and sure.repeats is not None:
        raise UsageError(
            f"`--repeats {sure.repeats}`: with `--precision` the figures decide how many blocks there are",
            hint="to limit the blocks, use --max-repeats 15",
        )
    if find_rate is None:
        return plan if sure.precision is None else _looking(plan, sure.precision, sure)
    if sure.precision is not None or sure.cross_check is not None:
        other = "--precision" if sure.precision is not None else "--cross-check"
        raise UsageError(
            f"`{other}` and `--find-rate` exclude each other; expected one of them",
            hint="run them one by one",
        )
    return _searching(plan, find_rate)


def _refuse_without_precision(sure: SureOptions) -> None:
    for option, value in (("--max-repeats", sure.max_repeats), ("--budget", sure.budget)):
        if value is not None and sure.precision is None:
            raise UsageError(
                f"`{option} {value}`: `{option}` only works with `--precision`", hint="add --precision 2%"
            )


def _in_sessions(plan: "Plan", sessions: int, sure: SureOptions, find_rate: str | None) -> "Plan":
    """Return the plan with its blocks measured again in each of several sessions."""
    for option, value in (("--precision", sure.precision), ("--find-rate", find_rate)):
        if value is not None:
            raise UsageError(
                f"`--sessions {sessions}` and `{option}` exclude each other: a session has fixed blocks",
                hint="set the blocks of a session with --repeats",
            )
    pause_ns = duration_of("--pause", sure.pause or _PAUSE)
    design = replace(plan.design, sessions=sessions, pause_ns=pause_ns)
    return replace(plan, blocks=plan.blocks * sessions, design=design)


def _looking(plan: "Plan", text: str, sure: SureOptions) -> "Plan":
    precision = _precision(text, sure)
    return replace(plan, blocks=precision.looks[-1], design=replace(plan.design, precision=precision))


def _precision(text: str, sure: SureOptions) -> "Precision":
    target = read_option(f"--precision {text}", text, parse_percent)
    if not 0 < target < 1:
        raise UsageError(f"`--precision {text}`: expected more than 0 % and less than 100 %, such as `2%`")
    most = LOOKS[-1] if sure.max_repeats is None else sure.max_repeats
    if most not in LOOKS:
        planned = ", ".join(map(str, LOOKS[:-1]))
        raise UsageError(
            f"`--max-repeats {most}`: a study looks at its figures only after {planned} or {LOOKS[-1]} "
            "blocks; expected one of them"
        )
    budget = None if sure.budget is None else duration_of("--budget", sure.budget)
    return Precision(target, tuple(look for look in LOOKS if look <= most), budget)


def _searching(plan: "Plan", objective: str) -> "Plan":
    from prony.study.rates import searching

    return read_option("--find-rate", objective, partial(searching, plan))


def cross_checks_of(plan: "Plan", names: str | None) -> "tuple[Cell, ...]":
    """Return the cells that other generators measure beside the plan's.

    *Errors*: UsageError for an unknown generator.
    """
    if names is None:
        return ()
    from prony.engine.registry import open_engine
    from prony.model.workload import EngineChoice
    from prony.plan.build import cross_check_cells

    engines = tuple(name.strip() for name in names.split(",") if name.strip())
    for name in engines:
        open_engine(EngineChoice(name))
    return cross_check_cells(plan, engines)


# --- a user's own app and its load ------------------------------------------------------------------------


_REPEATS = 5
_DURATION_NS, _WARMUP_NS = 10 * SECOND_NS, 3 * SECOND_NS
_USUAL_NS = 300 * SECOND_NS
"""How long the answer on an app of the user's own takes at most, builds apart."""
_OF_REQUEST = ("path", "method", "header", "body", "form")


def own_app(
    options: RunOptions, known: "Catalog", found: "Survey | None", program: "Program | None"
) -> "OwnApp":
    """Return the app and its load; ``found``: what the app's folder says, None for a built-in one.
    ``program``: what the folder has instead.

    *Errors*: UsageError for the first invalid value.
    """
    from prony.model.exchange import Request
    from prony.study.own_app import OwnApp

    own, paths = options.own, paths_of(options.ask.path or ("/",))
    request = _request(options, known, paths[0].path)
    return OwnApp(
        text=typed_line(),
        app=own.app if program is None else None,
        found=found,
        program=program,
        commands=tuple(own.commands or ()),
        interface=own.interface,
        folder=own.folder,
        servers=_servers(own.servers),
        load=_load(options, paths),
        repeats=options.sure.repeats or _REPEATS,
        request=request,
        expected=expected_of(options.check, request or Request()),
        environment=variables(own.env or (), own.env_file),
    )


def _load(options: RunOptions, paths: "tuple[MixPath, ...]") -> "WorkloadDocument":
    """Return the load as a study's file would say it."""
    from prony.plan.document import PathDocument, WorkloadDocument

    load, ask = options.load, options.ask
    rate, connections = optional(rate_of, "--rate", load.rate), _connections(load)
    if ask.groups is not None and load.pacing is Pacing.PRECISE:
        raise UsageError(
            "`--pacing precise` does not work with `--groups`: each group has a thread, and they would wait "
            "for one another's CPU",
            hint="leave out --pacing",
        )
    return WorkloadDocument(
        loop="closed" if rate is None else "open",
        rate=None if rate is None else (rate,),
        connections=connections or ((10,) if rate is None else None),
        streams=(load.streams or 1,),
        arrivals=load.arrivals,
        duration=optional(duration_of, "--duration", load.duration) or _DURATION_NS,
        warmup=_WARMUP_NS if load.warmup is None else wait_of("--warmup", load.warmup),
        timeout=duration_of("--timeout", load.timeout),
        paths=tuple(PathDocument(path=one.path, weight=one.weight) for one in paths) if ask.is_mix else (),
        keep_alive=ask.keep_alive is not False,
        connection_requests=ask.requests_per_connection,
        connection_age=optional(duration_of, "--connection-age", ask.connection_age),
        follow=ask.follow,
        groups=None if ask.groups is None else user_groups(ask.groups),
    )


def _request(options: RunOptions, known: "Catalog", path: str) -> "Request | None":
    """Return the request; for a built-in app, unless the user names one, the first of its contract."""
    made = request_of(options.ask, path)
    said = any(name in options.typed for name in _OF_REQUEST)
    return None if options.own.app in known.apps and not said else made


def _servers(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(f"`--servers {text}`: expected one or more servers, such as `gunicorn,waitress`")
    return tuple(dict.fromkeys(names))


def _connections(load: LoadOptions) -> tuple[int, ...] | None:
    counts = optional(connections_of, "-c", load.connections)
    if load.rate is not None and counts is not None and len(counts) > 1:
        raise UsageError(
            f"`-c {load.connections}`: with `--rate`, connections are only a limit; expected one count",
            hint="leave out `--rate` for a closed loop with several numbers of connections",
        )
    return counts
