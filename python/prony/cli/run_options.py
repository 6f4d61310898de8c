"""The options of ``prony run``, in groups. Other modules know what they mean.

Null stands for an option that was not typed. The sandbox's are in `prony.cli.sandbox_options`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from prony.cli.flat import option
from prony.cli.load_options import AskOptions, CheckOptions
from prony.cli.options import (
    MAX_SEED,
    MAX_THREADS,
    certificates_option,
    engines_to,
    pacing_option,
    servers_to,
    timeout_option,
)
from prony.cli.sandbox_options import SandboxOptions
from prony.core.users import expanded
from prony.model.facts import CloseLook
from prony.model.subject import Interface
from prony.model.workload import MAX_STREAMS, Arrivals, Pacing

# Even with the shortest trials this takes years.
MAX_BLOCKS = 100_000
MAX_SESSIONS = 1000
_MOST_ROUNDS = 1000

ready_timeout_option: Callable[[], str | None] = partial(
    option, None, "How long a server may take to start with your app (15s)."
)


@dataclass(frozen=True, slots=True)
class WhatOptions:
    """The study and its subjects."""

    PANEL: ClassVar[str] = "What to measure"

    profile: str | None = option(
        None, "How thorough: quick (the default), full, original, or a profile of the file."
    )
    only: list[str] | None = option(
        None, "Only subjects whose name matches this pattern, e.g. '*flask*'; may be repeated."
    )
    settings: list[str] | None = option(
        None,
        "A setting of a server, server.key=value. Several values, such as "
        "gunicorn.workers=2,4,8, are all measured, in all combinations with other settings; "
        "may be repeated.",
        "--set",
        "--vary",
    )
    tls: bool = option(
        False, "Serve everything over TLS, with certificates of the study's own authority.", "--tls"
    )
    tls_cost: bool = option(False, "Measure everything with TLS and without, to compare.", "--tls-cost")
    catalog: list[Path] | None = option(None, "More catalogue entries: a file or a folder; may be repeated.")
    target: str | None = option(
        None,
        "Build, start and watch the servers on another machine, over SSH: [USER@]HOST, or a "
        "file, target.toml. The load comes from here.",
        metavar="WHERE",
    )


@dataclass(frozen=True, slots=True)
class AppOptions:
    """A user's own app, and its servers and environment."""

    PANEL: ClassVar[str] = "Your own app"

    app: str | None = option(
        None,
        "Your app: module:attribute, manage.py, a .psgi, .php or .ru file, or a built-in app; "
        "with . Prony looks in the folder (Django, Go, Node.js, PHP, a Procfile).",
    )
    servers: str | None = option(
        None,
        "The servers to compare (at most four usual ones for the app's interface).",
        autocompletion=servers_to,
    )
    commands: list[str] | None = option(
        None,
        "A program that listens on {port} (also in the variable PORT), [NAME=]PROGRAM ...; may be repeated.",
        "--command",
    )
    current: str | None = option(
        None,
        "The command that runs today, 'gunicorn -w 4 shop:app': measured first, as `yours` (found "
        "in Procfile, Dockerfile, compose.yaml or a unit of systemd).",
    )
    no_current: bool = option(False, "Leave out the command that runs today.", "--no-current")
    interface: Interface | None = option(None, "How servers call the app (found in its source).")
    directories: list[Path] | None = option(
        None, "The folder to import the app from; several, such as two revisions, are compared.", "--dir"
    )
    requirements: Path | None = option(
        None, "The app's requirements, to be installed (the file or lock in the app's folder)."
    )
    python: Path | None = option(
        None,
        "Use this virtual environment as it is, and install nothing; of a Python outside of one, such as "
        "python3.14t, build environments for it.",
    )
    env: list[str] | None = option(
        None, "A variable for the app, K=V, or K to pass on your own; may be repeated."
    )
    env_file: Path | None = option(None, "A file of variables for the app, one K=V per line.")

    before_each: str | None = option(
        None,
        "Run this before each trial, in the app's folder as the servers' user, such as 'python "
        "seed.py'; a trial before which it fails is void.",
        metavar="COMMAND",
    )

    @property
    def folder(self) -> Path:
        """The app's folder, as an absolute path without links."""
        return self.folders[0]

    @property
    def has_packages(self) -> bool:
        """Whether a file or an environment was typed that says what the app needs."""
        from prony.catalog.install.interpreter import is_interpreter

        own = self.python is not None and not is_interpreter(expanded(self.python))
        return own or self.requirements is not None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The app's folders, each once: of several the first says what runs today."""
        given = self.directories or [Path()]
        # Not by pathlib, for which a link in a circle is a fault.
        return tuple(dict.fromkeys(Path(os.path.realpath(expanded(one))) for one in given))


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The load on an app of the user's own, and the engine's threads; a study's file has its loads."""

    PANEL: ClassVar[str] = "Load"

    connections: str | None = option(
        None,
        "Closed loop: this many connections (10); a list, e.g. 10,100, measures each. With "
        "a study: only these of its loads.",
        "-c",
        "--connections",
    )
    streams: int | None = option(
        None,
        "How many requests each connection has at once (1); more than 1 needs a server that speaks HTTP/2.",
        min=1,
        max=MAX_STREAMS,
    )
    rate: str | None = option(None, "Open loop: requests per second.")
    arrivals: Arrivals = option(Arrivals.CONSTANT, "Open loop: evenly spaced, or at random.")
    find_rate: str | None = option(
        None, "Find the highest rate at which each server meets this objective: 'p99 < 50ms, errors < 0.1%'."
    )
    duration: str | None = option(None, "Length of each trial's window (10s; 3s where five minutes need it).")
    warmup: str | None = option(None, "The same load before each window (3s).")
    timeout: str = timeout_option()
    ready_timeout: str | None = ready_timeout_option()
    engine: str | None = option(
        None,
        "The generator: one that `prony engines` lists, or your own program, './my_load.py "
        "{url}'. A study keeps its own generators too.",
        autocompletion=engines_to,
    )
    engine_threads: int = option(1, "Worker threads of the load engine.", min=1, max=MAX_THREADS)
    pacing: Pacing | None = pacing_option()
    fleet: str | None = option(
        None,
        "Several generators that share each load: local:4; hosts.toml, over SSH; or tls://HOST:PORT.",
        metavar="WHERE",
    )
    fleet_certificates: Path | None = certificates_option()
    listen: str | None = option(
        None,
        "With generators on other machines: the address of this machine that servers listen on.",
        metavar="ADDRESS",
    )


@dataclass(frozen=True, slots=True)
class SureOptions:
    """How often each subject is measured, and the additional checks."""

    PANEL: ClassVar[str] = "How sure"

    repeats: int | None = option(
        None, "How many blocks; each measures every subject once.", min=1, max=MAX_BLOCKS
    )
    length: str | None = option(
        None, "Take about so long, e.g. 5m: sets repeats and rounds.", "--for", metavar="TIME"
    )
    see: str | None = option(
        None, "Take as long as it takes to find this difference nine times in ten, e.g. 5%.", metavar="SHARE"
    )
    precision: str | None = option(
        None, "Repeat until intervals are this narrow, e.g. 2%, or verdicts are reached."
    )
    max_repeats: int | None = option(None, "With --precision: at most 10, 15 or 20 blocks (20).")
    budget: str | None = option(None, "With --precision: stop before this much time has passed, e.g. 30m.")
    sessions: int | None = option(
        None,
        "How many sessions: each measures all repeats, with a pause before the next.",
        min=2,
        max=MAX_SESSIONS,
    )
    pause: str | None = option(None, "With --sessions: the pause between two of them (1h).")
    pilot: str | None = option(
        None,
        "Find out first how long each server warms up, and wait for that, at most this long "
        "(30s from 5 repeats on; 0s: do not).",
    )
    allow_errors: str | None = option(
        None, "Compare the speed of a server if at most this share of its requests fails (0.1%)."
    )
    cross_check: str | None = option(
        None, "Measure each cell with these generators too, e.g. wrk,ab.", autocompletion=engines_to
    )
    confirm: list[CloseLook] | None = option(
        None,
        "After the last block look at each subject closely, in a trial whose figures do not "
        "count: switches of its threads, or gil: which thread has CPython's lock (py-spy); "
        "may be repeated.",
    )
    rounds: int | None = option(
        None,
        "After the trials of each block load all servers in turn for half a second each, so many "
        "times: that sees smaller differences in throughput and CPU (0; --for and --see set it).",
        min=0,
        max=_MOST_ROUNDS,
    )
    no_calibration: bool = option(
        False, "Do not measure the reference server in each block.", "--no-calibration"
    )
    seed: int = option(1, "Seed of the random order.", min=0, max=MAX_SEED)
    force: bool = option(
        False,
        "Measure even if figures may not be valid, or the machine has changed; the archive records it.",
        "--force",
    )


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Output files, and how to end."""

    PANEL: ClassVar[str] = "Output"

    out: Path | None = option(
        None,
        "The archive to write (NAME-DATE.prony in this folder). If it has a part of this "
        "study, the study goes on.",
    )
    json_to: str | None = option(
        None, "Write the report as JSON to this file, or to standard output for -.", "--json"
    )
    full: bool = option(False, "Print all tables, claims and notes, not the answer alone.", "--full")
    no_html: bool = option(False, "Write no page with charts beside the archive.", "--no-html")
    strict: bool = option(
        False, "Exit with 3 if a subject is unavailable or a trial does not count.", "--strict"
    )
    show_only: bool = option(
        False, "Print cells, commands and duration, without starting anything.", "--dry-run"
    )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """All options. ``typed``: those that were typed, by parameter, as spelt."""

    typed: Mapping[str, str]
    study: str | None = None
    what: WhatOptions = field(default_factory=WhatOptions)
    own: AppOptions = field(default_factory=AppOptions)
    load: LoadOptions = field(default_factory=LoadOptions)
    ask: AskOptions = field(default_factory=AskOptions)
    check: CheckOptions = field(default_factory=CheckOptions)
    sure: SureOptions = field(default_factory=SureOptions)
    sandbox: SandboxOptions = field(default_factory=SandboxOptions)
    output: OutputOptions = field(default_factory=OutputOptions)
