"""An entry's command, variables and templates with their placeholders filled in.

Pure. Must not know who starts or reads the result.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prony.catalog.schema.entry import Conditional, ProcessEntry, ServerEntry
from prony.catalog.schema.expression import check_text_value, fill, render
from prony.catalog.schema.settings import all_settings, holds
from prony.certificates import Certified
from prony.errors import UsageError
from prony.model.address import Address
from prony.model.subject import FACTORY_TARGET, App, Interface, Subject

Values = Mapping[str, int | str | None]

CERTIFICATE_FILE, KEY_FILE = "certificate.pem", "key.pem"
"""In the folder of a process that speaks TLS."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a process runs; ``certified``: the certificate with which it is to speak TLS, null without TLS.

    ``app_dir`` holds the app, ``run_dir`` is its own folder and working directory, ``cpus`` the number of
    CPUs that it may use. ``variables``: environment variables by which the app finds its services.
    ``root``: where in its folder the app's imports begin.
    """

    address: Address
    app_dir: str
    run_dir: str
    cpus: int
    variables: Mapping[str, str] = field(default_factory=dict)
    root: str = ""
    certified: Certified | None = None

    @property
    def values(self) -> Values:
        """The values of the placeholders of a place."""
        return {
            "host": self.address.host,
            "port": self.address.port,
            "app_dir": f"{self.app_dir}/{self.root}" if self.root else self.app_dir,
            "run_dir": self.run_dir,
            "cpus": self.cpus,
            "tls_certificate": f"{self.run_dir}/{CERTIFICATE_FILE}",
            "tls_key": f"{self.run_dir}/{KEY_FILE}",
        }


def rendered(entry: ProcessEntry, values: Values, environment: Iterable[str]) -> dict[str, str]:
    """Return the files of an entry's templates, filled in; ``environment``: the names of variables.

    *Errors*: UsageError for a template that cannot be filled in.
    """
    # A setting without value and default is none, which a template can test.
    unset = dict.fromkeys(all_settings(entry))
    known = {**unset, **values, "variables": sorted(environment)}
    try:
        return {name: render(written, known) for name, written in entry.templates.items()}
    except ValueError as error:
        raise UsageError(f"a template of `{entry.name}` cannot be filled in: {error}") from None


def as_template_text(value: int | str | None) -> str:
    """Return a value as a template writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def target(entry: ServerEntry, subject: Subject) -> dict[str, str]:
    """Return what the placeholders of the app's target stand for.

    *Errors*: UsageError for an interface that the app or server lacks, or a target that is no name.
    """
    offered = [*subject.app.targets, *([Interface.NONE] if subject.app.name in entry.serves else [])]
    if subject.interface not in entry.interfaces or subject.interface not in offered:
        raise UsageError(
            f"`{subject.name}` over {subject.interface}: the server speaks {', '.join(entry.interfaces)}, "
            f"the app offers {', '.join(offered)}"
        )
    target = subject.app.targets.get(subject.interface, "")
    expected = check_text_value(target)
    if expected:
        raise UsageError(f"the app's target is {target!r}; expected {expected}")
    return named(target, subject.interface)


def factory_files(app: App) -> dict[str, str]:
    """Return the module that makes the app with its factory, by its file's name; none without one.

    >>> factory_files(App("shop", "", "", {}, factory="shop.web:create_app()"))
    {'prony_app.py': 'from shop.web import create_app\\n\\napp = create_app()\\n'}
    """
    module, _, call = app.factory.partition(":")
    name = call.partition("(")[0]
    file = f"{FACTORY_TARGET.partition(':')[0]}.py"
    return {file: f"from {module} import {name}\n\napp = {call}\n"} if name else {}


def named(target: str, interface: Interface) -> dict[str, str]:
    """Return what the placeholders of a target stand for."""
    module, _, attribute = target.partition(":")
    return {"app": target, "module": module, "attribute": attribute, "interface": str(interface)}


def arguments(
    command: Sequence[str | Conditional], settings: Mapping[str, int | str], values: Values
) -> tuple[str, ...]:
    """Return a command with its conditions decided and its placeholders filled."""
    chosen: list[str] = []
    for argument in command:
        match argument:
            case str():
                chosen.append(argument)
            case Conditional():
                chosen.extend(argument.then if holds(argument, settings) else argument.otherwise)
    texts = {name: as_template_text(value) for name, value in values.items()}
    return tuple(fill(written, texts) for written in chosen)


def filled(environment: Mapping[str, str], values: Values) -> dict[str, str]:
    """Return variables with their placeholders filled."""
    texts = {name: as_template_text(value) for name, value in values.items()}
    return {name: fill(written, texts) for name, written in environment.items()}
