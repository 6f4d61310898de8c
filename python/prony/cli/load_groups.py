"""Groups of users, as a file of ``prony load --groups`` describes them: docs/guides/groups.md.

>>> Users.model_validate({"name": "b", "delay": "80ms"})
Users(name='b', share=1.0, delay=80000000, source=None, headers={})
"""

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from prony.catalog.schema.toml_source import SourceError, read_toml, validate
from prony.cli.options import header_of
from prony.errors import UsageError
from prony.model.workload import UserGroup
from prony.study_document import Wait

_DOCS = "docs/guides/groups.md describes such a file"


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError(f"`{text}`; expected an IP address of this machine") from None


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Users(_Table):
    """One group. ``share``: of the load, as its part of the sum of all shares; ``delay``: what the way to the
    server and back adds to each time; ``source``: an address of this machine; ``headers``: of its requests.
    """

    name: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,60}$")]
    share: Annotated[float, Field(gt=0, le=1e8, strict=True)] = 1.0
    delay: Wait = 0
    source: Annotated[str, AfterValidator(_address)] | None = None
    headers: Mapping[str, str] = {}


class _File(_Table):
    groups: Annotated[list[Users], Field(min_length=2, max_length=32)]


def user_groups(file: Path) -> tuple[UserGroup, ...]:
    """Return the groups that a file describes.

    *Errors*: UsageError with all that is wrong with it.
    """
    try:
        found = validate(read_toml(file), _File).groups
    except SourceError as error:
        raise UsageError(error.message, hint=_DOCS) from error
    names = [one.name for one in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"{file}: two groups are called `{min(twice)}`", hint="give each a name of its own")
    return tuple(map(_group, found))


def _group(users: Users) -> UserGroup:
    headers = tuple(header_of(f"{name}: {value}") for name, value in users.headers.items())
    return UserGroup(users.name, users.share, headers, users.source, users.delay)
