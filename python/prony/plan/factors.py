"""Settings of several values: the grid of subjects that they make, and the names of these.

A *factor* is a setting with several values, a *level* one of them. Its key is the setting's name for a
setting of the server (``workers``), else it begins with what it is a setting of (``nginx.workers``,
``sandbox.memory``, ``env.POOL``). All subjects of a grid run in the same blocks. Pure.

>>> [dict(one) for one in combinations({"workers": (2, 4), "threads": 8})]
[{'workers': 2, 'threads': 8}, {'workers': 4, 'threads': 8}]
>>> name_with("gunicorn+hello", {"workers": 4, "threads": 8})
'gunicorn[workers=4 threads=8]+hello'
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from prony.core.errors import UsageError
from prony.core.sysctl import as_written
from prony.core.units import parse_bytes
from prony.model.plan import Cell
from prony.model.sandbox import SandboxChoice
from prony.model.subject import App, Subject

Value = int | str
Choice = Value | tuple[Value, ...]
"""One value of a setting, or several: a factor."""

MOST_SUBJECTS = 64
"""The most subjects that factors may make: all of them run in each block, and all pairs are compared."""

OF_SANDBOX, OF_APP = "sandbox", "env"
SYSCTL = "sysctl"
AS_FOUND = "as-found"
"""The kernel's settings as the machine has them."""
_AROUND_OPERATORS = re.compile(r"\s*([-+*/()])\s*")


@dataclass(frozen=True, slots=True)
class Choices:
    """What is asked of the settings of one server, its frontend, its sandbox and its app's ``variables``.

    ``sandbox``: ``cpus``, ``memory``, ``pids``, ``sysctl.NAME``, ``kernel``. ``kernels``: the settings of the
    kernel by the name that ``kernel`` gives them.
    """

    server: Mapping[str, Choice] = field(default_factory=dict)
    frontend: Mapping[str, Choice] = field(default_factory=dict)
    sandbox: Mapping[str, Choice] = field(default_factory=dict)
    kernels: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    variables: Mapping[str, Choice] = field(default_factory=dict)

    def by_key(self, frontend: str) -> dict[str, Choice]:
        """Return all of them by key; ``frontend``: the name of the frontend's entry."""
        return {
            **self.server,
            **{f"{frontend}.{name}": choice for name, choice in self.frontend.items()},
            **{f"{OF_SANDBOX}.{name}": choice for name, choice in self.sandbox.items()},
            **{f"{OF_APP}.{name}": choice for name, choice in self.variables.items()},
        }


@dataclass(frozen=True, slots=True)
class Seated:
    """A subject with its sandbox."""

    subject: Subject
    sandbox: SandboxChoice


def factors_of(choices: Mapping[str, Choice]) -> dict[str, tuple[Value, ...]]:
    """Return the settings with several values."""
    return {key: choice for key, choice in choices.items() if isinstance(choice, tuple)}


def combinations(choices: Mapping[str, Choice]) -> Iterator[Mapping[str, Value]]:
    """Yield each combination of values; the last setting changes first."""
    values = [choice if isinstance(choice, tuple) else (choice,) for choice in choices.values()]
    for chosen in product(*values):
        yield dict(zip(choices, chosen, strict=True))


def seated(plain: Subject, sandbox: SandboxChoice, choices: Choices) -> Iterator[Seated]:
    """Yield the subjects that ``choices`` make of ``plain``, which has no settings yet."""
    front = plain.frontend
    by_key = choices.by_key(front.entry if front else "")
    factors = factors_of(by_key)
    for chosen in combinations(by_key):
        levels = {key: chosen[key] for key in factors}
        subject = replace(
            plain,
            name=name_with(plain.name, levels),
            settings={key: chosen[key] for key in choices.server},
            frontend=front and replace(front, settings=_of(chosen, front.entry)),
            levels=levels,
            app=with_variables(plain.app, _of(chosen, OF_APP)),
        )
        yield Seated(subject, _limited(sandbox, _of(chosen, OF_SANDBOX), choices.kernels))


def _of(chosen: Mapping[str, Value], owner: str) -> dict[str, Value]:
    start = f"{owner}."
    return {key.removeprefix(start): value for key, value in chosen.items() if key.startswith(start)}


def variables_of(levels: Mapping[str, Value]) -> dict[str, Value]:
    """Return the app's variables among the levels.

    >>> variables_of({"workers": 2, "env.POOL": 4})
    {'POOL': 4}
    """
    return _of(levels, OF_APP)


def with_variables(app: App, variables: Mapping[str, Value]) -> App:
    """Return the app with these environment variables, beside its own."""
    if not variables:
        return app
    texts = {name: str(value) for name, value in variables.items()}
    return replace(app, environment={**app.environment, **texts})


def _limited(
    sandbox: SandboxChoice, chosen: Mapping[str, Value], kernels: Mapping[str, Mapping[str, Value]]
) -> SandboxChoice:
    """Return the sandbox with the limits and settings of the kernel that are chosen."""
    memory, kernel = chosen.get("memory"), dict(kernels.get(str(chosen.get("kernel")), {}))
    kernel |= _of(chosen, SYSCTL)
    return replace(
        sandbox,
        cpu_quota=float(chosen["cpus"]) if "cpus" in chosen else sandbox.cpu_quota,
        memory_bytes=sandbox.memory_bytes if memory is None else _bytes(memory),
        pids=int(chosen["pids"]) if "pids" in chosen else sandbox.pids,
        sysctl=tuple(sorted((name, as_written(value)) for name, value in kernel.items())) or sandbox.sysctl,
    )


def _bytes(memory: Value) -> int:
    return memory if isinstance(memory, int) else parse_bytes(memory)


# --- names ------------------------------------------------------------------------------------------------


def name_with(name: str, levels: Mapping[str, Value]) -> str:
    """Return the name of a subject with these levels; ``name``: without."""
    if not levels:
        return name
    server, plus, app = name.rpartition("+")
    short = short_keys(levels)
    shown = " ".join(f"{short[key]}={_shown(value)}" for key, value in levels.items())
    return f"{server}[{shown}]{plus}{app}"


def short_keys(keys: Sequence[str] | Mapping[str, Value]) -> dict[str, str]:
    """Return the last part of each key, or the whole key where two have one last part.

    >>> short_keys(["workers", "sandbox.memory"])
    {'workers': 'workers', 'sandbox.memory': 'memory'}
    >>> short_keys(["workers", "nginx.workers"])
    {'workers': 'workers', 'nginx.workers': 'nginx.workers'}
    """
    last = {key: key.rpartition(".")[2] for key in keys}
    often = Counter(last.values())
    return {key: short if often[short] == 1 else key for key, short in last.items()}


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-".join(_AROUND_OPERATORS.sub(r"\1", str(value)).split())


def without_levels(subject: Subject) -> str:
    """Return the name that the subjects of one grid share: ``gunicorn@nginx+hello``.

    >>> from prony.model.subject import App, Interface
    >>> app, levels = App("hello", "", "", {}), {"workers": 2}
    >>> without_levels(Subject("gunicorn[workers=2]+hello", "gunicorn", app, Interface.WSGI, levels=levels))
    'gunicorn+hello'
    """
    server = f"{subject.server}-{subject.variant}" if subject.variant else subject.server
    front = f"@{subject.frontend.name}" if subject.frontend else ""
    return f"{server}{front}+{subject.app.name}" if subject.levels else subject.name


def shared_sandbox(cell: Cell) -> SandboxChoice:
    """Return a cell's sandbox without what its subject's levels set: cells with the same one are compared."""
    of_levels = {key.partition(".")[2] for key in cell.subject.levels if key.startswith(f"{OF_SANDBOX}.")}
    own = cell.sandbox
    return replace(
        own,
        cpu_quota=None if "cpus" in of_levels else own.cpu_quota,
        memory_bytes=None if "memory" in of_levels else own.memory_bytes,
        pids=None if "pids" in of_levels else own.pids,
        sysctl=tuple(one for one in own.sysctl if not {"kernel", f"{SYSCTL}.{one[0]}"} & of_levels),
    )


def grid_words(subjects: Iterable[Subject]) -> Iterator[str]:
    """Yield each grid in words, with how many subjects it has.

    >>> from prony.model.subject import App, Interface
    >>> app = App("hello", "", "", {})
    >>> each = [Subject("", "gunicorn", app, Interface.WSGI, levels={"workers": k}) for k in (2, 4)]
    >>> list(grid_words(each))
    ['settings of gunicorn+hello: workers 2, 4: 2 subjects']
    """
    grids: dict[tuple[str, tuple[str, ...]], list[Subject]] = {}
    for subject in subjects:
        if subject.levels:
            grids.setdefault((without_levels(subject), tuple(subject.levels)), []).append(subject)
    for (name, keys), own in grids.items():
        short = short_keys(keys)
        shown = " x ".join(
            f"{short[key]} {', '.join(dict.fromkeys(_shown(one.levels[key]) for one in own))}" for key in keys
        )
        yield f"settings of {name}: {shown}: {len(own)} subjects"


WORKERS = frozenset({"workers", "processes", "max_workers"})
"""The settings that say how many processes of a server there are."""


def asks_for_workers(subjects: Iterable[Subject], cpus: int) -> bool:
    """Return whether subjects are compared by their number of workers, or have more than there are CPUs.

    >>> from prony.model.subject import App, Interface
    >>> four = Subject("", "gunicorn", App("hello", "", "", {}), Interface.WSGI, settings={"workers": 4})
    >>> asks_for_workers([four], cpus=2), asks_for_workers([four], cpus=4)
    (True, False)
    """
    return any(
        not WORKERS.isdisjoint(one.levels)
        or any(isinstance(one.settings.get(name), int) and int(one.settings[name]) > cpus for name in WORKERS)
        for one in subjects
    )


# --- size -------------------------------------------------------------------------------------------------


def check_size(grids: Mapping[str, Mapping[str, Choice]]) -> None:
    """Return when the grids, by the name of what they are of, make no more subjects than may be.

    *Errors*: UsageError naming what to leave out.
    """
    factors = {name: found for name, choices in grids.items() if (found := factors_of(choices))}
    number = sum(prod(map(len, found.values())) for found in factors.values())
    if number <= MOST_SUBJECTS:
        return
    name, largest = max(factors.items(), key=lambda one: prod(map(len, one[1].values())))
    sizes = " x ".join(str(len(values)) for values in largest.values())
    shown = f"{sizes} = " if len(largest) > 1 else ""
    of_all = "" if len(factors) == 1 else f", with those of the others {number}"
    raise UsageError(
        f"the settings of `{name}` make {shown}{prod(map(len, largest.values()))} subjects{of_all}; "
        f"expected at most {MOST_SUBJECTS}",
        hint=_advice(largest, number),
    )


def _advice(factors: Mapping[str, tuple[Value, ...]], number: int) -> str:
    """Return what to leave out of a grid: values of the factor that has most of them, or all but one."""
    key, values = max(factors.items(), key=lambda one: len(one[1]))
    kept = MOST_SUBJECTS * len(values) // number
    if kept < 2:
        return (
            f"leave out `{key}` ({len(values)} values), and measure it by itself with the best of the others"
        )
    some = [values[round(k * (len(values) - 1) / (kept - 1))] for k in range(kept)]
    return f"leave out values of `{key}`: {kept} of its {len(values)} fit, such as {','.join(map(str, some))}"
