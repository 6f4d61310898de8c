"""The settings of a server: their values for one subject, checked against type and range.

Pure.
"""

from collections.abc import Container, Mapping

from prony.catalog.schema.entry import (
    BoolSetting,
    ChoiceSetting,
    FrontendEntry,
    HostEntry,
    IntSetting,
    KeepAliveFact,
    ProcessEntry,
    ServerEntry,
    Setting,
    SettingCondition,
    TextSetting,
)
from prony.catalog.schema.expression import calculate, check_text_value
from prony.core.errors import UsageError
from prony.model.address import TlsCipher, TlsKey, Wire
from prony.model.subject import Frontend, Subject

BACKENDS = "backends"
_BACKENDS = IntSetting(
    type="int",
    default=1,
    min=1,
    max=64,
    doc="back ends: so many of the server, each started as the one would be, and each with its own address",
    source="Prony's own: the frontend's default way to share requests between them",
)

HTTP2 = "http2"
TLS, TLS_OFF, TLS_RESUMPTION, TLS_CIPHER = "tls", "off", "tls_resumption", "tls_cipher"
_ANY_CIPHER = "any"

_TRUE = frozenset({"true", "on", "yes", "1"})
_FALSE = frozenset({"false", "off", "no", "0"})


class SettingsError(ValueError):
    """A value is invalid for its setting: what was found, and what was expected."""

    def __init__(self, key: str, found: object, expected: str) -> None:
        super().__init__(f"`{key}` is `{found}`; expected {expected}")
        self.key = key
        self.found = found
        self.expected = expected


def resolved_settings(
    entry: ProcessEntry, chosen: Subject | Frontend, cpus: int, others: Container[str] = ()
) -> dict[str, int | str]:
    """Return the value of every setting: the chosen, else the chosen variant's, else the entry's default.

    A setting without value and default is left out: the server decides. ``cpus`` is the number of the
    server's CPUs. Bool settings are ``True`` and ``False``. ``others``: the names of all servers,
    of which one may be what was meant.

    *Errors*: UsageError naming ``--set server.key``, the value and the range; or an unknown variant.
    """
    if chosen.variant and chosen.variant not in entry.variants:
        known = ", ".join(f"`{name}`" for name in entry.variants) or "none"
        raise UsageError(f"`{entry.name}` has no variant `{chosen.variant}`; it has: {known}")
    preset = entry.variants[chosen.variant].settings if chosen.variant else {}
    try:
        return resolve(entry, {**preset, **chosen.settings}, cpus)
    except SettingsError as error:
        other = f"{entry.name}-{str(error.found).partition('.')[0]}"
        named = f"`{other}` is a server of its own: --servers {other}; " if other in others else ""
        raise UsageError(
            f"`--set {entry.name}.{error.key}={error.found}`: expected {error.expected}",
            hint=f"{named}prony servers {entry.name} lists the settings",
        ) from None


def asked_value(entry: ProcessEntry, chosen: Subject | Frontend, key: str) -> int | str | None:
    """Return one setting as it is written, the chosen, else the chosen variant's, else the entry's default:
    what can be known before the server's CPUs are. Null where there is no such setting, or no value.
    """
    variant = entry.variants.get(chosen.variant)
    setting = all_settings(entry).get(key)
    written = {**(variant.settings if variant else {}), **chosen.settings}
    return written.get(key, setting.default if setting else None)


def all_settings(entry: ProcessEntry) -> Mapping[str, Setting]:
    """Return the entry's settings, including `wire` for a server that speaks more than one, `backends` for a
    frontend that can stand before several, `tls` for what speaks TLS, and `http2` for a frontend that can.
    """
    own = {**_of_wires(entry), **entry.settings}
    return {**own, **_of_backends(entry), **_of_tls(entry), **_of_http2(entry)}


def speaks_tls(entry: ProcessEntry) -> bool:
    """Return whether the catalogue knows how to have the entry speak TLS to its clients."""
    return isinstance(entry, HostEntry) and entry.tls is not None


def needs_tls(entry: HostEntry, wire: Wire) -> bool:
    """Return whether a wire is one that the entry does not speak without TLS."""
    return entry.tls is not None and wire in entry.tls.only


def _of_http2(entry: ProcessEntry) -> dict[str, Setting]:
    if not isinstance(entry, FrontendEntry) or entry.http2 is None:
        return {}
    asked = BoolSetting(
        type="bool",
        default=False,
        doc="speak HTTP/2 to clients, and no HTTP/1: agreed on with TLS, by prior knowledge without",
        source=entry.http2.source,
    )
    return {HTTP2: asked}


def _of_backends(entry: ProcessEntry) -> dict[str, Setting]:
    if isinstance(entry, FrontendEntry) and any("upstreams" in one for one in entry.templates.values()):
        return {BACKENDS: _BACKENDS}
    return {}


def _of_tls(entry: ProcessEntry) -> dict[str, Setting]:
    if not isinstance(entry, HostEntry) or entry.tls is None:
        return {}
    key = ChoiceSetting(
        type="choice",
        default=TLS_OFF,
        choices=(TLS_OFF, *TlsKey),
        doc="TLS to its clients, with a certificate of the study's own authority; the key of the certificate",
        source=entry.tls.source,
    )
    return {TLS: key, TLS_RESUMPTION: _TLS_RESUMPTION, TLS_CIPHER: _TLS_CIPHER}


_TLS_RESUMPTION = BoolSetting(
    type="bool",
    default=False,
    doc="with TLS, clients take up earlier sessions where the server lets them, else all handshakes are full",
    source="Prony's own: what its load engine does",
)
_TLS_CIPHER = ChoiceSetting(
    type="choice",
    default=_ANY_CIPHER,
    choices=(_ANY_CIPHER, *TlsCipher),
    doc="with TLS, the only cipher suite that clients offer, else all of them, and the server takes one",
    source="Prony's own: what its load engine does",
)


def asked_ciphers(value: int | str | None) -> tuple[TlsCipher, ...]:
    """Return the cipher suites that clients offer by a value of the setting; none: all.

    >>> asked_ciphers("any")
    ()
    """
    return tuple(one for one in TlsCipher if one == value)


def _check_cipher(values: Mapping[str, int | str]) -> None:
    """Refuse a cipher suite that no server can speak with the key of its certificate."""
    key = values.get(TLS, TLS_OFF)
    for cipher in asked_ciphers(values.get(TLS_CIPHER)):
        if key != TLS_OFF and cipher.key not in {None, key}:
            fit = ", ".join(f"`{one}`" for one in TlsCipher if one.key in {None, key})
            raise SettingsError(TLS_CIPHER, cipher, f"with `{TLS}={key}` one of {fit}")


def _of_wires(entry: ProcessEntry) -> dict[str, Setting]:
    wires = entry.wires if isinstance(entry, ServerEntry) else ()
    if len(wires) < 2:
        return {}
    wire = ChoiceSetting(
        type="choice",
        default=wires[0],
        choices=tuple(wires),
        doc="what it speaks on its socket",
        source="the entry's `wires`",
    )
    return {"wire": wire}


def backends_of(entry: FrontendEntry, chosen: Frontend, cpus: int) -> int:
    """Return how many back ends stand behind a frontend.

    *Errors*: UsageError as `resolved_settings`.
    """
    return int(resolved_settings(entry, chosen, cpus).get(BACKENDS, 1))


def resolve(entry: ProcessEntry, chosen: Mapping[str, int | str], cpus: int) -> dict[str, int | str]:
    """Return the value of every setting under the ``chosen`` ones.

    *Errors*: SettingsError for an unknown setting or an invalid value.
    """
    settings = all_settings(entry)
    for key, value in chosen.items():
        if key == TLS and key not in settings:
            raise SettingsError(key, value, f"no `{TLS}`: the catalogue knows no TLS of `{entry.name}`")
        if key not in settings:
            known = ", ".join(f"`{name}`" for name in sorted(settings)) or "no setting: it has none"
            raise SettingsError(key, value, f"one of the settings {known}")
    defaults = {key: setting.default for key, setting in settings.items() if setting.default is not None}
    values = {**defaults, **chosen}
    found = {key: parse_value(key, settings[key], value, cpus) for key, value in values.items()}
    _check_cipher(found)
    return found


def parse_value(key: str, setting: Setting, value: int | str, cpus: int) -> int | str:
    """Return ``value`` as the setting's type: a text is parsed as a number or a bool if the type demands it.

    *Errors*: SettingsError.
    """
    match setting:
        case IntSetting():
            return _whole_number(key, setting, value, cpus)
        case BoolSetting():
            return _bool(key, value)
        case ChoiceSetting():
            if value not in setting.choices:
                raise SettingsError(
                    key, value, "one of " + ", ".join(f"`{choice}`" for choice in setting.choices)
                )
            return value
        case TextSetting():
            text = str(value)
            expected = check_text_value(text)
            if expected:
                raise SettingsError(key, text, expected)
            return text


def holds(condition: SettingCondition, values: Mapping[str, int | str]) -> bool:
    """Return whether ``condition`` is true under the resolved settings ``values``."""
    if condition.also is not None and not holds(condition.also, values):
        return False
    value = values.get(condition.setting)
    if condition.above is not None:
        return isinstance(value, int) and value > condition.above
    if condition.value is not None:
        return value == condition.value
    return value is not None and value is not False


def keep_alive_fact(entry: HostEntry, values: Mapping[str, int | str]) -> KeepAliveFact:
    """Return what the entry declares about keep-alive under resolved settings: the first that applies."""
    return next(fact for fact in entry.facts.keep_alive if fact.when is None or holds(fact.when, values))


def _whole_number(key: str, setting: IntSetting, value: int | str, cpus: int) -> int:
    expected = f"a whole number from {setting.min} to {setting.max}"
    if isinstance(value, bool):
        raise SettingsError(key, value, expected)
    try:
        number = value if isinstance(value, int) else calculate(value, {"cpus": cpus})
    except ValueError:
        raise SettingsError(key, value, f"{expected}, or an expression such as `2*{{cpus}}+1`") from None
    if not setting.min <= number <= setting.max:
        raise SettingsError(key, value, expected)
    return number


def is_true(value: int | str) -> bool:
    """Return whether a value of a bool setting, as it was written, is true.

    >>> is_true("on"), is_true(False)
    (True, False)
    """
    return str(value).lower() in _TRUE


def _bool(key: str, value: int | str) -> bool:
    if is_true(value):
        return True
    if str(value).lower() in _FALSE:
        return False
    raise SettingsError(key, value, "`true` or `false`")
