"""The engine on several machines: a start in common, one account in the end.

>>> said = {"phase": "window", "elapsed_ns": 5, "ok": 2, "failed": 0}
>>> said |= {"in_flight": 1, "queued": 0, "connected": 1}
>>> (found := summed({"a": said, "b": said}, ended={"b"}))["ok"], found["connected"]
(4, 1)

The generators of one trial, and what leads them, as processes of their own.

`prony.engine.child_process` starts it. One line of JSON on stdin: ``spec``, ``seat``, ``seats`` of the
generators on this machine, ``fleet``, ``threads`` of each generator, ``limit_ns``; on stdout what
`prony.engine.child` writes. Generators of this machine take their seats; this process and Dask's workers take
the seat's user and CPUs, and stay out of the subject's network, where nothing but the subject listens.

>>> main.__name__
'main'
"""

import json
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Container, Mapping
from concurrent.futures import Future
from dataclasses import replace

from prony.core.errors import EngineError
from prony.core.safe_text import shortened
from prony.core.units import MILLISECOND_NS, SECOND_NS
from prony.core.version import prony_version
from prony.engine.answers import PHASES, MachineFacts, event_in, progress_in, read_answer, text_of
from prony.engine.child import cancel_at_end_of_stdin, run_cancellable, say_event, take_seat
from prony.engine.child_process import SPARE_NS
from prony.engine.fleet import Fleet, decode_fleet
from prony.engine.fleet.clocks import MOST_DRIFT_PPM, Offset, Probe, drift_of, offset_at
from prony.engine.fleet.cluster import Cluster, Submission, opened, summoned
from prony.engine.fleet.member import Liveness
from prony.engine.generator import OnEvent, OnLoss, recording_of
from prony.figures.latency import EMPTY, read_distribution, summarise
from prony.model.address import Address
from prony.model.json_codec import Json, encode
from prony.model.recording import GeneratorMachine, Recording
from prony.model.sandbox import EngineSeat
from prony.model.workload import EngineChoice, Workload
from prony.plan.engine_spec import hard_limit_ns, to_spec

_PROBES = 20
_PROBE_EVERY_NS = SECOND_NS
_LOOK_EVERY_S = 0.05
_PROGRESS_EVERY_NS = 250 * MILLISECOND_NS
# From the order to the start: each worker takes up its order and prepares its threads (60 ms and more).
_LEAD_NS, _LEAD_EACH_NS = SECOND_NS, 10 * MILLISECOND_NS
# Until a worker has taken up its order, and beats.
_TAKE_UP_NS = 5 * SECOND_NS
# A machine's own line needs two percentiles: all the histograms of a thousand machines take seconds to read.
_NO_TIMES: Json = {
    "series": [],
    "stages": [],
    "paths": [],
    "statuses": {},
    "groups": [],
    "tls": None,
    "streams": None,
}
_OWN_TIMES = ("ok_response", "ok_service")
_OWN_PERCENTILES = ("50", "99")
# From the last beat until the Recording is here: that of an hour is some megabytes.
_ARRIVE_NS = 10 * SECOND_NS
_OPEN, _CLOSE = "window_open", "window_close"


class FleetEngine:
    """See ``Engine``. One run at a time. ``threads``: of each generator; null: half of its machine's CPUs."""

    def __init__(self, fleet: Fleet, choice: EngineChoice, on_loss: OnLoss, threads: int | None) -> None:
        self._fleet, self._choice, self._on_loss = fleet, choice, on_loss
        self._threads = threads

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Recording:
        """Run the load to its end, in the caller's thread, and return the Recording of all generators.

        *Errors*: HostError without the extra; EngineError when the fleet could not run, or lost a generator;
        KeyboardInterrupt for the second signal.
        """
        spec = to_spec(workload, address, self._choice, seat.cpus or None)
        on_event({"event": "waiting", "generators": self._fleet.count})
        with opened(self._fleet) as cluster:
            return self.share(cluster, spec, hard_limit_ns(workload) + SPARE_NS, on_event)

    def share(self, cluster: Cluster, spec: Json, limit_ns: int, on_event: OnEvent) -> Recording:
        """Run a specification as ``run`` does, on workers that are connected: on one a connection at most."""
        cluster = cluster.at_most(spec["workload"]["loop"]["connections"] or len(cluster.names))
        found = _checked(cluster)
        threads = {address: self._threads or max(1, one.cpus // 2) for address, one in found.items()}
        if self._fleet.workers is not None:
            # Nobody else holds the certificates of its own: they are in memory, and go with them.
            found = {address: replace(one, is_root=False) for address, one in found.items()}
        return _Run(cluster, found, self._on_loss, on_event).load(spec, threads, limit_ns)


def _checked(cluster: Cluster) -> Mapping[str, MachineFacts]:
    """Return the facts of all workers; refuse those with another Prony, or on another architecture: they
    would count or time otherwise.

    *Errors*: EngineError with all of them.
    """
    facts = cluster.ask_facts()
    version, machine = prony_version(), platform.machine()

    def others(own: str, said: Mapping[str, str]) -> list[str]:
        return [f"{cluster.names[one]} has {shortened(found)}" for one, found in said.items() if found != own]

    if versions := others(version, {address: one.version for address, one in facts.items()}):
        raise EngineError(
            f"this is Prony {version}, and of the fleet {', '.join(versions)}",
            hint=f"install Prony {version} there, and start the workers again",
        )
    if architectures := others(machine, {address: one.machine for address, one in facts.items()}):
        raise EngineError(
            f"this is Prony on {machine}, and of the fleet {', '.join(architectures)}",
            hint="machines of one architecture share a load: leave the others out",
        )
    return facts


class _Run:
    """One load, in the order of its events."""

    def __init__(
        self, cluster: Cluster, facts: Mapping[str, MachineFacts], on_loss: OnLoss, on_event: OnEvent
    ) -> None:
        self._cluster, self._facts, self._on_loss, self._on_event = cluster, facts, on_loss, on_event
        self._probes: dict[str, list[Probe]] = {address: [] for address in cluster.names}
        self._latest: dict[str, Json] = {}
        self._tasks: dict[str, Submission] = {}
        self._results: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._lost_at_ns: dict[str, int] = {}
        self._liveness = Liveness(cluster.names, time.monotonic_ns())
        self._under_way: Future[list[list[tuple[str, Probe]]]] | None = None
        self._is_cancelled = False
        # What the generators said of their loads, in other threads, and that there is something.
        self._said: deque[tuple[str, Json]] = deque()
        self._is_said = threading.Event()
        self._closed: set[str] = set()
        self._reported: set[str] = set()

    def load(self, spec: Json, threads: Mapping[str, int], limit_ns: int) -> Recording:
        self._cluster.prepare(self._on_beat)
        self._note(self._cluster.probe(tuple(self._cluster.names), _PROBES))
        start_ns = time.monotonic_ns() + _LEAD_NS + _LEAD_EACH_NS * len(self._cluster.names)
        self._submit(spec, threads, start_ns)
        self._follow(start_ns + limit_ns)
        self._close()
        self._note(self._cluster.probe(tuple(self._results), _PROBES))
        return self._together(start_ns)

    def cancel(self) -> None:
        self._is_cancelled = True
        self._cluster.cancel(tuple(self._waited_for()))

    # --- the load -----------------------------------------------------------------------------------------

    def _submit(self, spec: Json, threads: Mapping[str, int], start_ns: int) -> None:
        of = len(self._cluster.names)
        authority = text_of(spec)
        self._liveness = Liveness(self._cluster.names, time.monotonic_ns(), grace_ns=_TAKE_UP_NS)
        for index, address in enumerate(self._cluster.names):
            there_ns = start_ns + self._offset(address, start_ns).ns
            share = {"index": index, "of": of, "start_ns": there_ns}
            order = {**spec, "threads": threads[address], "share": share}
            data = json.dumps({"spec": order, "authority": authority}).encode()
            self._tasks[address] = self._cluster.submit(address, data)

    def _follow(self, deadline_ns: int) -> None:
        """Wait for all generators; the first signal ends the load, the second one is raised."""
        next_probe_ns = next_progress_ns = 0
        while waited_for := self._waited_for():
            try:
                self._is_said.wait(_LOOK_EVERY_S)
                self._pass_on()
                now_ns = time.monotonic_ns()
                self._collect(waited_for)
                self._look(now_ns, deadline_ns)
                if now_ns >= next_probe_ns:
                    next_probe_ns = now_ns + _PROBE_EVERY_NS
                    self._probe()
                if now_ns >= next_progress_ns:
                    next_progress_ns = now_ns + _PROGRESS_EVERY_NS
                    self._show()
            except KeyboardInterrupt:
                if self._is_cancelled:
                    raise
                self.cancel()

    def _pass_on(self) -> None:
        """Report the start and the window of the whole: from the first that opens to the last that closes."""
        self._is_said.clear()
        while self._said:
            address, event = self._said.popleft()
            if event["event"] != _CLOSE:
                self._report(address, event)
                continue
            self._closed.add(address)
            if self._closed >= self._tasks.keys() - self._lost.keys():
                self._report(address, event)

    def _report(self, address: str, event: Json) -> None:
        """Report an event of one generator, in this machine's time; of each kind the first alone."""
        kind = str(event["event"])
        if kind in self._reported:
            return
        self._reported.add(kind)
        there_ns, now_ns = event.get("monotonic_ns"), time.monotonic_ns()
        if there_ns is not None:
            # It was before now, whatever a generator says.
            here_ns = there_ns - self._offset(address, now_ns).ns
            event = {**event, "monotonic_ns": max(0, min(here_ns, now_ns))}
        self._on_event(event)

    def _close(self) -> None:
        """Report the end of a window whose last word was lost, with a generator or on its way."""
        self._pass_on()
        if _OPEN in self._reported and _CLOSE not in self._reported:
            self._on_event({"event": _CLOSE, "monotonic_ns": time.monotonic_ns()})

    def _waited_for(self) -> list[str]:
        return [one for one in self._tasks if one not in self._results and one not in self._lost]

    def _collect(self, addresses: list[str]) -> None:
        for address in addresses:
            if self._tasks[address].is_done():
                self._liveness.ended(address)
                self._take(address)

    def _take(self, address: str) -> None:
        try:
            said = self._tasks[address].result()
        except EngineError as error:
            self._lose(address, error.message)
            return
        self._results[address] = read_answer(self._cluster.names[address], said)

    def _look(self, now_ns: int, deadline_ns: int) -> None:
        for address in self._liveness.look(now_ns):
            self._lose(address, "no sign of life")
        if now_ns > deadline_ns:
            for address in self._waited_for():
                self._lose(address, "it did not finish in time")

    def _lose(self, address: str, reason: str) -> None:
        """Note a loss; it ends a load that is worth nothing without all of its generators.

        *Errors*: EngineError naming the generator.
        """
        self._lost[address] = reason
        self._lost_at_ns[address] = time.monotonic_ns()
        ok = self._latest.get(address, {}).get("ok", 0)
        name = self._cluster.names[address]
        if self._on_loss is OnLoss.INVALID:
            self._cluster.cancel(tuple(self._waited_for()))
            raise EngineError(
                f"generator `{name}` was lost, after {ok} replies of the window: {reason}",
                hint="--on-loss partial keeps the account of the others",
            )
        if len(self._lost) == len(self._tasks):
            raise EngineError(f"all generators of the fleet were lost; `{name}`: {reason}")

    # --- signs of life, and clocks ------------------------------------------------------------------------

    def _on_beat(self, address: str, beat: Json) -> None:
        self._liveness.beat(address, _ARRIVE_NS if "has_ended" in beat else 0)
        if (event := event_in(beat)) is not None:
            self._said.append((address, event))
            self._is_said.set()
        if (progress := progress_in(beat)) is not None:
            self._latest[address] = progress

    def _show(self) -> None:
        """Report the progress of all that are not lost."""
        latest = {address: found for address, found in self._latest.items() if address not in self._lost}
        event = summed(latest, self._results)
        if event is not None:
            self._on_event(event)

    def _probe(self) -> None:
        """Take up the probes that were under way, and send others unless some still are."""
        if self._under_way is not None:
            if not self._under_way.done():
                return
            self._note([found for own in self._under_way.result() for found in own])
        self._under_way = self._cluster.probe_later(tuple(self._waited_for()))

    def _note(self, found: list[tuple[str, Probe]]) -> None:
        for address, probe in found:
            self._probes[address].append(probe)

    def _offset(self, address: str, at_ns: int) -> Offset:
        """Return by how much a generator's clock is ahead.

        *Errors*: EngineError where it did not answer, or jumped.
        """
        name, probes = self._cluster.names[address], self._probes[address]
        if not probes:
            raise EngineError(f"generator `{name}` did not answer when its clock was asked for")
        found = offset_at(probes, at_ns)
        if found is None:
            raise EngineError(
                f"the clock of generator `{name}` cannot be used: it jumped, or drifts by more than "
                f"{MOST_DRIFT_PPM} parts in a million"
            )
        return found

    # --- the result ---------------------------------------------------------------------------------------

    def _together(self, start_ns: int) -> Recording:
        from prony import _engine

        offsets = {address: self._offset(address, start_ns) for address in self._results}
        ahead_ns = [-offsets[address].ns for address in self._results]
        try:
            merged = _engine.merge_recordings(list(self._results.values()), ahead_ns)
        except _engine.EngineError as error:
            raise EngineError(f"{self._blamed()}{error}") from error
        machines = tuple(self._machine(address, offsets, start_ns) for address in self._tasks)
        return replace(recording_of(json.loads(merged)), machines=machines)

    def _blamed(self) -> str:
        """Return in words the first generator whose Recording cannot be used by itself; nothing: only
        together they cannot.
        """
        from prony import _engine

        for address, found in self._results.items():
            try:
                # Twice: an account is held to its sum where two are added.
                _engine.merge_recordings([found, found], [0, 0])
            except _engine.EngineError:
                return f"generator `{self._cluster.names[address]}`: "
        return ""

    def _machine(self, address: str, offsets: Mapping[str, Offset], start_ns: int) -> GeneratorMachine:
        facts = self._facts[address]
        whole = GeneratorMachine(
            name=self._cluster.names[address],
            fingerprint=facts.fingerprint,
            as_root=facts.is_root,
        )
        if address in self._lost:
            return replace(whole, lost=self._lost[address], lost_at_ns=self._lost_at_ns[address])
        own = _brief(json.loads(self._results[address]))
        times = _percentiles(own)
        offset, late_ns = offsets[address], own.generator.start_late_ns or 0
        drift = drift_of(self._probes[address])
        share = own.spec.share if own.spec else None
        planned_ns = share.start_ns if share and share.start_ns is not None else start_ns + offset.ns
        return replace(
            whole,
            requests=own.account.scheduled,
            ok=own.account.ok,
            ok_p50_ns=times["50"],
            ok_p99_ns=times["99"],
            start_skew_ns=planned_ns + late_ns - offset.ns - start_ns,
            clock_bound_ns=offset.bound_ns,
            clock_drift_ppm=(drift.low_ppm, drift.high_ppm) if drift else (),
            limited=own.generator.limited,
            evidence=own.generator.evidence,
        )


def _brief(found: Json) -> Recording:
    """Return a Recording as one machine's line needs it."""
    times = {name: found["distributions"][name] for name in _OWN_TIMES if name in found["distributions"]}
    return recording_of({**found, **_NO_TIMES, "distributions": times})


def _percentiles(own: Recording) -> Mapping[str, int | None]:
    """Return percentiles of the valid replies: of response times in an open loop, else of service times."""
    times = read_distribution(own.distributions.ok_response or own.distributions.ok_service)
    return summarise(times or EMPTY, percentiles=_OWN_PERCENTILES).percentiles


# --- the progress of all generators of a load, from the latest that each of them said ---------------------


_COUNTED = ("ok", "failed")
_GOING = ("in_flight", "queued", "connected")


def summed(latest: Mapping[str, Json], ended: Container[str]) -> Json | None:
    """Return the event of the whole, in the phase of the last of them; None where none has said anything.

    ``ended``: those whose load is over. What they counted stays, but nothing of them is open any more.
    """
    if not latest:
        return None
    phase = min((str(one["phase"]) for one in latest.values()), key=PHASES.index)
    elapsed_ns = min(one["elapsed_ns"] for one in latest.values() if one["phase"] == phase)
    going = [one for name, one in latest.items() if name not in ended]
    event = {"event": "progress", "phase": phase, "elapsed_ns": elapsed_ns, "last_second": None}
    counted = {name: sum(one[name] for one in latest.values()) for name in _COUNTED}
    return {**event, **counted, **{name: sum(one[name] for one in going) for name in _GOING}}


# --- what leads the generators of a trial, as a process of its own ----------------------------------------


def main() -> int:
    """Start the generators, take the seat, lead them, and write the result."""
    return run_cancellable(_lead)


def _lead(parent: int) -> None:
    order = json.loads(sys.stdin.buffer.readline())
    _import_all()
    fleet = decode_fleet(order["fleet"])
    with summoned(fleet, order["seats"]) as connected:
        take_seat({**order["seat"], "network_namespace": None}, parent)
        cancel_at_end_of_stdin()
        engine = FleetEngine(fleet, EngineChoice(), OnLoss.INVALID, order["threads"])
        with connected() as cluster:
            recording = engine.share(cluster, order["spec"], order["limit_ns"], say_event)
    say_event({"event": "recording", "recording": encode(recording)})


def _import_all() -> None:
    """Import before the user changes: the new one may not be able to read Prony's files."""
    import prony._engine  # noqa: F401

    prony_version()
