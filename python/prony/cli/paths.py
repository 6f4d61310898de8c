"""Paths of requests as they are typed: one, or several with weights, which are a mix.

>>> [one.typed for one in paths_of(["/=9", "/cart"])]
['/=9', '/cart=1']
>>> [one.typed for one in paths_of(["/?page=2", "/search?q=a =3"])]
['/?page=2 =1', '/search?q=a =3']

From the other options of requests that `prony run` and `prony load` share to what they mean: the request, the
groups of users of a file (docs/guides/groups.md), and which replies are valid.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.load_options import AskOptions, CheckOptions
from prony.cli.options import (
    body_of,
    expected_header_of,
    make_request,
    optional,
    path_of,
    sha256_of,
    statuses_of,
)
from prony.cli.request_files import with_form
from prony.errors import UsageError
from prony.model.exchange import Check, Request, status_alone
from prony.model.workload import MAX_PATHS, Mix, MixPath, fault_of_mix

if TYPE_CHECKING:
    from prony.study_document import UsersDocument


def request_of(ask: AskOptions, path: str) -> Request:
    """Return the request of this path that is typed, over connections that are kept unless that is typed.

    *Errors*: UsageError for the first invalid value.
    """
    keeps = ask.keep_alive is not False
    plain = make_request(ask.method or "GET", path, ask.header or (), ask.body, keeps)
    return with_form(plain, ask.form, ask.method) if ask.form else plain


def user_groups(file: Path) -> "tuple[UsersDocument, ...]":
    """Return the groups that a file describes.

    *Errors*: UsageError with all that is wrong with it.
    """
    from prony.catalog.schema.toml_source import SourceError, read_toml, validate
    from prony.study_document import GroupsDocument

    try:
        return validate(read_toml(file), GroupsDocument).groups
    except SourceError as error:
        raise UsageError(error.message, hint="docs/guides/groups.md describes such a file") from error


def expected_of(check: CheckOptions, request: Request) -> Check:
    """Return the reply that a request must get.

    *Errors*: UsageError for the first invalid value.
    """
    statuses = optional(statuses_of, "--expect-status", check.expect_status) or ()
    alone = status_alone(statuses)
    contains = (body_of("--expect-body-contains", text) or b"" for text in check.expect_body_contains or ())
    needles = tuple(contains)
    if b"" in needles:
        raise UsageError("`--expect-body-contains`: an empty text is in every body; expected some text")
    return Check(
        request,
        status=alone,
        statuses=statuses if alone is None else (),
        headers=tuple(expected_header_of(text) for text in check.expect_header or ()),
        body=body_of("--expect-body", check.expect_body),
        body_contains=needles,
        body_sha256=optional(sha256_of, "--expect-body-sha256", check.expect_body_sha256),
    )


_WEIGHT = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
# A blank is in no path, so behind one stands a weight and nothing else.
_APART = re.compile(r" +=")


def paths_of(texts: Sequence[str]) -> tuple[MixPath, ...]:
    """Return the paths that are typed: one as it stands, more as those of a mix.

    Of several, what follows the last ``=`` is a weight, unless the path has a query: that may end so by
    itself, and its weight stands behind a blank.

    *Errors*: UsageError for the first that is no path or has no weight, and for a mix that no engine sends.
    """
    if len(texts) == 1:
        return (MixPath(path_of(texts[0])),)
    paths = tuple(map(_weighted, texts))
    if fault := fault_of_mix(Mix(paths)):
        expected, found = fault
        shown = f"{found:g}" if isinstance(found, float) else found
        raise UsageError(f"`--path`: expected {expected}, found `{shown}`", hint=_EXAMPLE)
    return paths


_EXAMPLE = (
    f"--path /=9 --path /cart=1, each path once, at most {MAX_PATHS}, with weights from 0.0001 to 100000000; "
    "in a query a blank is before the weight: --path '/search?q=a =3'"
)


def _weighted(text: str) -> MixPath:
    path, weight = _divided(text)
    plain = MixPath(path_of(path))
    if weight is None:
        return plain
    if not _WEIGHT.fullmatch(weight):
        raise UsageError(
            f"`--path {text}`: `{weight}` is not a weight; expected a number, such as 9 or 0.5",
            hint=f"if `{text}` is the path itself, give it a weight: --path '{text}=1'",
        )
    return replace(plain, weight=float(weight))


def _divided(text: str) -> tuple[str, str | None]:
    """Return a path and the text of its weight; null: it has none."""
    if apart := _APART.search(text):
        return text[: apart.start()], text[apart.end() :]
    if "?" in text or "=" not in text:
        return text, None
    path, _, weight = text.rpartition("=")
    return path, weight
