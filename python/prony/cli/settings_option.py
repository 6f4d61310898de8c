"""The option ``--set``: settings of servers, the app and the sandbox.

>>> single_settings_of(["gunicorn.workers=4"])
{'gunicorn': {'workers': 4}}
"""

import re
from collections.abc import Callable, Sequence

from prony.core.errors import UsageError
from prony.plan.factors import OF_APP, OF_SANDBOX, Choice, Value


def settings_of(
    texts: Sequence[str], is_text: Callable[[str, str], bool] = lambda server, key: False
) -> dict[str, dict[str, Choice]]:
    """Return the settings of ``--set server.key=value``, by server; several values, as in
    ``--set server.key=2,4,8``, are a factor. ``is_text``: whether a setting is a free text, which may have
    commas.

    *Errors*: UsageError for a text of another form, or a value or a setting that is typed twice.
    """
    found: dict[str, dict[str, Choice]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        server, key = _target(target)
        if not (equals and server and key):
            raise UsageError(f"`--set {text}`: expected `server.key=value`, such as `gunicorn.workers=4`")
        if key in found.setdefault(server, {}):
            raise UsageError(
                f"`--set {text}`: `{target}` is set twice",
                hint=f"to measure several values: --set {target}=VALUE,VALUE",
            )
        found[server][key] = value if is_text(server, key) else _choice(text, value)
    return found


def _target(text: str) -> tuple[str, str]:
    """Return server and setting; those of the kernel have dots in their names."""
    for owner in (OF_SANDBOX, OF_APP):
        if text.startswith(f"{owner}."):
            return owner, text.removeprefix(f"{owner}.")
    server, _, key = text.rpartition(".")
    return server, key


def _choice(typed: str, text: str) -> Choice:
    values = tuple(
        int(one) if re.fullmatch(r"-?\d+", one) else one for one in map(str.strip, text.split(","))
    )
    if len(values) == 1:
        return values[0] if isinstance(values[0], int) else text
    if "" in values:
        raise UsageError(f"`--set {typed}`: a value is missing; expected values with commas, such as 2,4,8")
    double = next((one for one in values if values.count(one) > 1), None)
    if double is not None:
        raise UsageError(f"`--set {typed}`: `{double}` is there twice; expected each value once")
    return values


def single_settings_of(texts: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Return the settings of ``--set server.key=value`` where each has one value.

    *Errors*: UsageError as `settings_of`, or for several values.
    """
    found: dict[str, dict[str, Value]] = {}
    for server, choices in settings_of(texts).items():
        for key, choice in choices.items():
            if isinstance(choice, tuple):
                shown = ",".join(map(str, choice))
                raise UsageError(f"`--set {server}.{key}={shown}`: expected one value here")
            found.setdefault(server, {})[key] = choice
    return found
