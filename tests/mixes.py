"""Loads of a mix, or of groups of users, and what came of them, made without measuring."""

from copy import deepcopy
from dataclasses import replace

from golden import build
from histograms import distribution
from prony.archive import create
from prony.model.json_codec import encode
from prony.model.plan import Cell, Plan
from prony.model.recording import decode_recording
from prony.model.sandbox import Network, SandboxFacts
from prony.model.trial import SubjectRecord
from prony.model.workload import ClosedLoop, DurationStop, Mix, MixPath, UserGroup, Workload

SHOP = Mix((MixPath("/", 9.0), MixPath("/cart", 1.0)))


def of_mix(workload, mix=SHOP):
    """The load with a mix."""
    return replace(workload, request=replace(workload.request, path=mix.paths[0].path), mix=mix)


def wire_of_mix(workload, ok_by_path, errors_by_path=()):
    """A Recording of a mix as the engine tells it: of each path its valid replies, and its failures."""
    errors = dict(errors_by_path)
    paths = [one.path for one in workload.mix.paths]
    every = sorted(value for path in paths for value in ok_by_path[path])
    whole = build.wire(workload, every, _sum(errors.values()), (), None, ())
    whole["spec"] = {**whole["spec"], "workload": encode(workload)}
    whole["paths"] = [
        _path(workload, one, ok_by_path[one.path], errors.get(one.path, {})) for one in workload.mix.paths
    ]
    return whole


def _sum(errors):
    found = {}
    for one in errors:
        for name, count in one.items():
            found[name] = found.get(name, 0) + count
    return found


def _path(workload, path, ok, errors):
    alone = build.wire(workload, ok, errors, (), None, ())
    kind = "response" if alone["loop"] == "open" else "service"
    kept = {name: alone["distributions"][name] for name in (f"ok_{kind}", f"censored_{kind}")}
    nothing = {f"carried_in_{kind}": distribution([])}
    parts = {"account": alone["account"], "bytes": alone["bytes"]}
    return deepcopy({"path": path.path, "weight": path.weight, **parts, **kept, **nothing})


MS = 1_000_000
LOAD = of_mix(Workload(ClosedLoop(4), DurationStop(2 * build.SECOND)))
# How long a cart takes, in milliseconds.
SLOW = {"a+hello": 3, "b+hello": 9}


def study_of_mix(path, errors=None, mix=SHOP, failing="/cart", each=100):
    """An archive of two subjects in five blocks; the carts of ``b`` are slow, and a path of its
    fails so often.
    """

    def trial(cell, block, place):
        return _trial(cell, block, place, {failing: errors} if errors else {}, each)

    return _study(path, of_mix(LOAD, mix), trial)


def _study(path, load, trial):
    cells = tuple(Cell(k + 1, build.subject(name), load) for k, name in enumerate(SLOW))
    plan = Plan("shop", "Shop", "", "quick", cells, 5, 1, "Which is best?")
    with create(path, plan, build.FINGERPRINT) as writer:
        for name in SLOW:
            writer.record_subject(SubjectRecord(name, sandbox=SandboxFacts(Network.HOST)))
        for block in range(5):
            for place, cell in enumerate(cells):
                writer.append(trial(cell, block, place))
        writer.finish()
    return path


def _trial(cell, block, place, errors, each):
    slow = SLOW[cell.subject.name]
    ok = {
        "/": [2 * MS + 1000 * k + block for k in range(1800)],
        "/cart": [slow * MS + 1000 * k + block for k in range(200)],
    }
    quick = {one.path: [MS + block] * each for one in cell.workload.mix.paths if one.path not in ok}
    ok = {one.path: {**ok, **quick}[one.path] for one in cell.workload.mix.paths}
    every = [value for values in ok.values() for value in values]
    failed = errors if cell.subject.name == "b+hello" else {}
    recording = decode_recording(wire_of_mix(cell.workload, ok, failed))
    return replace(build.trial(cell, block, place, every), recording=recording)


USERS = (
    UserGroup("near", 3, (("Authorization", "Bearer s3cret"), ("Accept-Language", "de"))),
    UserGroup("far", 1, delay_ns=30 * MS),
)
GROUPS = replace(Workload(ClosedLoop(4), DurationStop(2 * build.SECOND)), groups=USERS)


def study_of_groups(path, errors=None):
    """An archive of two subjects in five blocks under two groups of users; the far ones of ``b`` fail so."""

    def trial(cell, block, place):
        failed = {"far": errors or {}} if cell.subject.name == "b+hello" else {}
        ok = {"near": [2 * MS + 1000 * k + block for k in range(1500)], "far": [32 * MS + block] * 500}
        recording = decode_recording(wire_of_groups(ok, failed))
        every = [value for values in ok.values() for value in values]
        return replace(build.trial(cell, block, place, every), recording=recording)

    return _study(path, GROUPS, trial)


def wire_of_groups(ok_by_name, errors_by_name=()):
    """A Recording of groups as the engine tells it: of each its valid replies, and its failures."""
    errors = dict(errors_by_name)
    every = sorted(value for values in ok_by_name.values() for value in values)
    whole = build.wire(GROUPS, every, _sum(errors.values()), (), None, ())
    whole["spec"] = {**whole["spec"], "workload": encode(GROUPS)}
    whole["groups"] = [
        {"name": one.name, "connections": count, **_of_group(ok_by_name[one.name], errors.get(one.name, {}))}
        for one, count in zip(USERS, (3, 1), strict=True)
    ]
    # Of connections the parts of a made load say nothing.
    whole["distributions"]["connect"] = distribution([])
    return whole


def _of_group(ok, errors):
    alone = build.wire(GROUPS, ok, errors, (), None, ())
    times = {**alone["distributions"], "connect": distribution([])}
    return deepcopy({"account": alone["account"], "bytes": alone["bytes"], "distributions": times})


PLAIN = Workload(ClosedLoop(4), DurationStop(2 * build.SECOND))


def study_of_statuses(path, refused=40, cut=2):
    """An archive of two subjects in five blocks: ``b`` refuses so many requests in each, which takes it long,
    and in the first block some get no whole reply.
    """

    def trial(cell, block, place):
        is_b = cell.subject.name == "b+hello"
        ok = [2 * MS + 1000 * k + block for k in range(2000)]
        wire = wire_of_statuses(ok, refused if is_b else 0, cut if is_b and not block else 0)
        return replace(build.trial(cell, block, place, ok), recording=decode_recording(wire))

    return _study(path, PLAIN, trial)


def wire_of_statuses(ok, refused, cut):
    """A Recording as the engine tells it: valid replies, some 503 after 30 ms, and some that were cut."""
    whole = build.wire(PLAIN, ok, {"bad_status": {"503": refused}, "short_body": cut}, (), None, ())
    whole["spec"] = {**whole["spec"], "workload": encode(PLAIN)}
    whole["bytes"]["body_received"] += 5 * refused + cut
    counts = {"200": (len(ok), 9), "503": (refused, 5), "none": (cut, 1)}
    times = {
        "200": {"ok_service": whole["distributions"]["ok_service"]},
        "503": {"other_service": distribution([30 * MS] * refused)},
    }
    whole["statuses"] = {
        status: {
            **{"requests": count, "ok": count if status == "200" else 0, "body_received": size * count},
            **{"carried_in": 0, "carried_in_ok": 0, **times.get(status, {})},
        }
        for status, (count, size) in counts.items()
        if count
    }
    return deepcopy(whole)
