"""What a rule says of what it finds: each kind of finding is declared, with all its words, beside its rule.

In a template `{share:.0%}` writes the finding's number of that name, `{role}` its name; `{kills:n process}` a
number of things (`prony.report.findings` fills them in).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from prony.diagnosis.knobs import Turned
from prony.model.limit import LimitKind


class Bearing(StrEnum):
    """What a finding is to the one line that says what limits a subject."""

    LIMITS = "limits"
    """It is the limit, whatever the CPUs do."""
    LIMITS_IDLE = "limits while CPUs are idle"
    """It is the limit unless the CPUs are full: then they are."""
    ADDS = "adds"
    """It disturbs, or costs, and is said beside the line."""


class Closely(StrEnum):
    """What a close look shows of a cause."""

    WAITS = "threads that wait"
    ONE_CORE = "one core"
    OTHERS = "threads that others kept from a CPU"


class Concerns(StrEnum):
    """Which part of a subject behind a frontend a kind of finding is about."""

    SERVER = "server"
    CLIENTS = "the frontend, which has the clients' connections"
    EITHER = "nobody knows"


class _Name(str):
    """A name that is public in the report's JSON. There is one value of each: it is compared by identity."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The name alone."""
        return str(self)

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class _Worded(_Name):
    """A name with its words."""

    __slots__ = ("words",)
    words: str

    def __new__(cls, name: str, words: str) -> Self:
        made = super().__new__(cls, name)
        made.words = words
        return made


class Consequence(_Worded):
    """What a finding means for the figures."""

    __slots__ = ()


class Experiment(_Worded):
    """What would confirm a finding: what to change for one measurement."""

    __slots__ = ()


class Advice(_Worded):
    """What to change; its numbers are those of the finding. ``turned``: what it turns, the first that the
    subject's catalogue entry has a setting for.
    """

    __slots__ = ("turned",)
    turned: tuple[Turned, ...]

    def __new__(cls, name: str, words: str, turned: tuple[Turned, ...] = ()) -> Self:
        """Return the advice of this name."""
        made = super().__new__(cls, name, words)
        made.turned = turned
        return made


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a kind of finding means: for the line of the limit, for the figures, what would confirm it, and
    what to change; null: that depends, or nobody knows.
    """

    bearing: Bearing
    consequence: Consequence
    experiment: Experiment
    advice: Advice | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """``full``: with the numbers of one trial; ``shared``: without them, which may differ between findings
    that are alike; empty: the numbers are a part of what is said.
    """

    full: str
    shared: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is special about a kind of finding.

    ``limit``: of the generator. ``cause``: its name as what limits a subject.
    ``closely``: how a close look shows it. ``least_share``: of the CPUs' time; a smaller one disturbs, and
    limits nothing. ``turned_away``: the number of connections that it met; of fewer than one of a thousand
    requests no figure shows it. ``steps_back``: where another cause is certain, it limits nothing unless it
    is certain too. ``of_machine``: it is about the machine, and not about a subject. ``once``: it is looked
    for in the first block alone: other trials say nothing of it.
    """

    limit: LimitKind | None = None
    cause: str = ""
    closely: Closely | None = None
    least_share: float | None = None
    turned_away: str = ""
    steps_back: bool = False
    concerns: Concerns = Concerns.SERVER
    of_machine: bool = False
    once: bool = False


_PLAIN = Traits()


class Symptom(_Name):
    """A kind of finding: its name, which is public in the report's JSON, and all that is said of it.

    The docstring of each lists the numbers and names that belong to it.
    """

    __slots__ = ("meaning", "sentence", "traits")
    meaning: Meaning
    sentence: Sentence
    traits: Traits

    def __new__(
        cls, name: str, meaning: Meaning, full: str = "", *, shared: str = "", traits: Traits = _PLAIN
    ) -> Self:
        """Return the kind of this name. ``full``, ``shared``: as of a Sentence; a limit of the generator has
        its words elsewhere, as a load without a study needs them too.
        """
        made = super().__new__(cls, name)
        made.meaning, made.sentence, made.traits = meaning, Sentence(full, shared), traits
        return made

    @property
    def is_of_generator(self) -> bool:
        """Whether it is a limit of the generator."""
        return self.traits.limit is not None

    @property
    def is_shareable(self) -> bool:
        """Whether findings of it are alike whatever their numbers are."""
        return bool(self.sentence.shared) or self.is_of_generator
