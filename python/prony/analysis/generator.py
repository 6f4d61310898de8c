"""The cost of a generator, and the figures that it reports itself when it records nothing finer. Pure.

>>> missing_reason(GeneratorName("hey", None, None, 1, None, missing={"series": "hey gives none"}), "series")
Missing(reason='hey gives none', infinite=False)
"""

from collections.abc import Iterable

from prony.analysis.missing import Missing, Value
from prony.metrics import PERCENTILES
from prony.model.recording import GeneratorName, GeneratorProcesses, Population, Recording
from prony.units import SECOND_NS

_NOT_RECORDED = Missing("not recorded by this generator")
_UNKNOWN = GeneratorProcesses(None, None, None, None, None, None, None, None)


def generator_metrics(recording: Recording) -> dict[str, Value]:
    """Return the generator's CPU and memory by metric name.

    *Definition*: what the engine counts itself where it does; else of its processes, as they were sampled
    from outside: what it spins is then work.
    """
    processes = recording.generator.processes or _UNKNOWN
    cpu = _cpu_percent(recording)
    each = _per_request(recording, cpu)
    return {
        "generator_cpu_percent": cpu,
        "generator_cpu_ns_per_request": each,
        "generator_ok_per_cpu_s": _per_cpu_second(recording, each),
        "generator_rss_mean": _known(processes.rss_mean_bytes),
        "generator_memory_ratio": _known(processes.memory_ratio),
    }


def _known(value: float | None) -> Value:
    return _NOT_RECORDED if value is None else float(value)


def _cpu_percent(recording: Recording) -> Value:
    generator, length_ns = recording.generator, recording.window.length_ns
    if generator.cpu_work_ns is None:
        return _known((generator.processes or _UNKNOWN).cpu_percent)
    return _NOT_RECORDED if length_ns is None else 100 * generator.cpu_work_ns / length_ns


def _per_request(recording: Recording, cpu: Value) -> Value:
    counted = recording.generator.cpu_ns_per_request
    if counted is not None:
        return float(counted)
    length_ns, done = recording.window.length_ns, recording.completed.all
    if isinstance(cpu, Missing):
        return cpu
    return cpu / 100 * length_ns / done if done and length_ns else Missing("no request was completed")


def _per_cpu_second(recording: Recording, each_ns: Value) -> Value:
    """Return valid replies for each second of CPU, from the CPU of one request."""
    done = recording.completed
    if isinstance(each_ns, Missing):
        return each_ns
    if not each_ns:
        return Missing("it used no CPU that was seen")
    return SECOND_NS / each_ns * done.ok / done.all if done.all else Missing("no request was completed")


def missing_reason(engine: GeneratorName, part: str) -> Missing:
    """Return why a Recording lacks a part: its generator's own reason."""
    return Missing(engine.missing[part]) if part in engine.missing else _NOT_RECORDED


def reported_service(recording: Recording) -> dict[str, Value]:
    """Return the service times of valid replies as the generator itself reports them.

    *Assumptions*: they are of valid replies only where it says so, or where every reply was valid; otherwise
    they are missing, since failures are mixed into them.
    """
    reported, account, name = recording.reported_latency, recording.account, recording.engine.name
    names = ("mean", *PERCENTILES, "max")
    if reported is None:
        return _for_each(names, missing_reason(recording.engine, "distributions"))
    if reported.population is not Population.OK and account.scheduled != account.ok:
        return _for_each(names, Missing(f"{name} mixes failed requests into its latencies"))
    absent = Missing(f"{name} does not report it, or fewer than 10 requests lie above it")
    found = {"mean": reported.mean_ns, "max": reported.max_ns}
    found |= {suffix: reported.percentiles.get(percentile) for suffix, percentile in PERCENTILES.items()}
    return {
        f"service_ok_{suffix}": absent if (value := found[suffix]) is None else float(value)
        for suffix in names
    }


def _for_each(names: Iterable[str], value: Value) -> dict[str, Value]:
    return {f"service_ok_{suffix}": value for suffix in names}
