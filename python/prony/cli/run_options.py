"""The options of ``prony run``, in groups. Other modules know what they mean.

Null stands for an option that was not typed. The sandbox's are in `prony.cli.sandbox_options`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from prony.cli.load_options import AskOptions, CheckOptions, RequestTimeout
from prony.cli.options import MAX_SEED, MAX_THREADS, PacingOption, engines_to, servers_to
from prony.cli.sandbox_options import SandboxOptions
from prony.model.facts import CloseLook
from prony.model.subject import Interface
from prony.model.workload import MAX_STREAMS, Arrivals
from prony.runas import expanded

# Even with the shortest trials this takes years.
MAX_BLOCKS = 100_000
MAX_SESSIONS = 1000
_MOST_ROUNDS = 1000

ReadyTimeout = Annotated[
    str | None, typer.Option(help="How long a server may take to start with your app (15s).")
]


@dataclass(frozen=True, slots=True)
class WhatOptions:
    """The study and its subjects."""

    PANEL: ClassVar[str] = "What to measure"

    profile: Annotated[
        str | None,
        typer.Option(help="How thorough: quick (the default), full, original, or a profile of the file."),
    ] = None
    only: Annotated[
        str | None, typer.Option(help="Only subjects whose name matches this pattern, e.g. '*flask*'.")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "--vary",
            help="A setting of a server, server.key=value. Several values, such as "
            "gunicorn.workers=2,4,8, are all measured, in all combinations with other settings; "
            "may be repeated.",
        ),
    ] = None
    tls: Annotated[
        bool,
        typer.Option(
            "--tls", help="Serve everything over TLS, with certificates of the study's own authority."
        ),
    ] = False
    tls_cost: Annotated[
        bool, typer.Option("--tls-cost", help="Measure everything with TLS and without, to compare.")
    ] = False
    catalog: Annotated[
        list[Path] | None,
        typer.Option(help="More catalogue entries: a file or a folder; may be repeated."),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Build, start and watch the servers on another machine, over SSH: [USER@]HOST, or a "
            "file, target.toml. The load comes from here.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class AppOptions:
    """A user's own app, and its servers and environment."""

    PANEL: ClassVar[str] = "Your own app"

    app: Annotated[
        str | None,
        typer.Option(
            help="Your app: module:attribute, manage.py, a .psgi or .php file, or a built-in app; "
            "with . Prony looks in the folder (Django, Go, Node.js, PHP, a Procfile)."
        ),
    ] = None
    servers: Annotated[
        str | None,
        typer.Option(
            help="The servers to compare (at most four usual ones for the app's interface).",
            autocompletion=servers_to,
        ),
    ] = None
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            help="A program that listens on {port} (also in the variable PORT), [NAME=]PROGRAM ...; "
            "may be repeated.",
        ),
    ] = None
    current: Annotated[
        str | None,
        typer.Option(
            help="The command that runs today, 'gunicorn -w 4 shop:app': measured first, as `yours` (found "
            "in Procfile, Dockerfile, compose.yaml or a unit of systemd)."
        ),
    ] = None
    no_current: Annotated[
        bool, typer.Option("--no-current", help="Leave out the command that runs today.")
    ] = False
    interface: Annotated[
        Interface | None,
        typer.Option(help="How servers call the app (found in its source)."),
    ] = None
    directories: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            help="The folder to import the app from; several, such as two revisions, are compared.",
        ),
    ] = None
    requirements: Annotated[
        Path | None,
        typer.Option(help="The app's requirements, to be installed (the file or lock in the app's folder)."),
    ] = None
    python: Annotated[
        Path | None,
        typer.Option(
            help="Use this virtual environment as it is, and install nothing; of a Python outside of one, "
            "such as python3.14t, build environments for it."
        ),
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(help="A variable for the app, K=V, or K to pass on your own; may be repeated."),
    ] = None
    env_file: Annotated[
        Path | None, typer.Option(help="A file of variables for the app, one K=V per line.")
    ] = None

    before_each: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this before each trial, in the app's folder as the servers' user, such as 'python "
            "seed.py'; a trial before which it fails is void.",
        ),
    ] = None

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
        return tuple(dict.fromkeys(expanded(one).resolve() for one in given))


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The load on an app of the user's own, and the engine's threads; a study's file has its loads."""

    PANEL: ClassVar[str] = "Load"

    connections: Annotated[
        str | None,
        typer.Option(
            "-c",
            "--connections",
            help="Closed loop: this many connections (10); a list, e.g. 10,100, measures each. With "
            "a study: only these of its loads.",
        ),
    ] = None
    streams: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_STREAMS,
            help="How many requests each connection has at once (1); more than 1 needs a server that "
            "speaks HTTP/2.",
        ),
    ] = None
    rate: Annotated[str | None, typer.Option(help="Open loop: requests per second.")] = None
    arrivals: Annotated[Arrivals, typer.Option(help="Open loop: evenly spaced, or at random.")] = (
        Arrivals.CONSTANT
    )
    find_rate: Annotated[
        str | None,
        typer.Option(
            help="Find the highest rate at which each server meets this objective: 'p99 < 50ms, "
            "errors < 0.1%'."
        ),
    ] = None
    duration: Annotated[str | None, typer.Option(help="Length of each trial's window (10s).")] = None
    warmup: Annotated[str | None, typer.Option(help="The same load before each window (3s).")] = None
    timeout: RequestTimeout = "10s"
    ready_timeout: ReadyTimeout = None
    engine: Annotated[
        str | None,
        typer.Option(
            help="The generator: one that `prony engines` lists, or your own program, './my_load.py "
            "{url}'. A study keeps its own generators too.",
            autocompletion=engines_to,
        ),
    ] = None
    engine_threads: Annotated[
        int, typer.Option(min=1, max=MAX_THREADS, help="Worker threads of the load engine.")
    ] = 1
    pacing: PacingOption = None
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Several generators that share each load: local:4; hosts.toml, over SSH; or tls://HOST:PORT.",
        ),
    ] = None
    fleet_certificates: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With tls://: the folder that `prony fleet certificates DIR` made."),
    ] = None
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With generators on other machines: the address of this machine that servers listen on.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class SureOptions:
    """How often each subject is measured, and the additional checks."""

    PANEL: ClassVar[str] = "How sure"

    repeats: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_BLOCKS, help="How many blocks; each measures every subject once."),
    ] = None
    length: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="Take about so long, e.g. 5m: sets repeats and rounds."),
    ] = None
    precision: Annotated[
        str | None,
        typer.Option(help="Repeat until intervals are this narrow, e.g. 2%, or verdicts are reached."),
    ] = None
    max_repeats: Annotated[
        int | None, typer.Option(help="With --precision: at most 10, 15 or 20 blocks (20).")
    ] = None
    budget: Annotated[
        str | None, typer.Option(help="With --precision: stop before this much time has passed, e.g. 30m.")
    ] = None
    sessions: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MAX_SESSIONS,
            help="How many sessions: each measures all repeats, with a pause before the next.",
        ),
    ] = None
    pause: Annotated[
        str | None, typer.Option(help="With --sessions: the pause between two of them (1h).")
    ] = None
    pilot: Annotated[
        str | None,
        typer.Option(
            help="Find out first how long each server warms up, and wait for that, at most this long "
            "(30s from 5 repeats on; 0s: do not)."
        ),
    ] = None
    allow_errors: Annotated[
        str | None,
        typer.Option(
            help="Compare the speed of a server if at most this share of its requests fails (0.1%)."
        ),
    ] = None
    cross_check: Annotated[
        str | None,
        typer.Option(
            help="Measure each cell with these generators too, e.g. wrk,ab.", autocompletion=engines_to
        ),
    ] = None
    confirm: Annotated[
        list[CloseLook] | None,
        typer.Option(
            help="After the last block look at each subject closely, in a trial whose figures do not "
            "count: switches of its threads, or gil: which thread has CPython's lock (py-spy); "
            "may be repeated.",
        ),
    ] = None
    rounds: Annotated[
        int,
        typer.Option(
            min=0,
            max=_MOST_ROUNDS,
            help="After the trials of each block load all servers in turn for half a second each, so many "
            "times: that sees smaller differences in throughput and CPU.",
        ),
    ] = 0
    no_calibration: Annotated[
        bool, typer.Option("--no-calibration", help="Do not measure the reference server in each block.")
    ] = False
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the random order.")] = 1
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Measure even if figures may not be valid, or the machine has changed; the archive "
            "records it.",
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Output files, and how to end."""

    PANEL: ClassVar[str] = "Output"

    out: Annotated[
        Path | None,
        typer.Option(
            help="The archive to write (NAME-DATE.prony in this folder). If it has a part of this "
            "study, the study goes on."
        ),
    ] = None
    json_to: Annotated[
        str | None,
        typer.Option("--json", help="Write the report as JSON to this file, or to standard output for -."),
    ] = None
    full: Annotated[
        bool, typer.Option("--full", help="Print all tables, claims and notes, not the answer alone.")
    ] = False
    no_html: Annotated[
        bool, typer.Option("--no-html", help="Write no page with charts beside the archive.")
    ] = False
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 3 if a subject is unavailable or a trial does not count."),
    ] = False
    show_only: Annotated[
        bool, typer.Option("--dry-run", help="Print cells, commands and duration, without starting anything.")
    ] = False


@dataclass(frozen=True, slots=True)
class RunOptions:
    """All options. ``typed``: those that were typed, by parameter, as spelt."""

    typed: Mapping[str, str]
    study: str | None
    what: WhatOptions
    own: AppOptions
    load: LoadOptions
    ask: AskOptions
    check: CheckOptions
    sure: SureOptions
    sandbox: SandboxOptions
    output: OutputOptions
