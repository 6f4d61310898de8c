"""From the options of requests that `prony run` and `prony load` share to what they mean: paths, files of
requests and data for templates, groups of users (docs/guides/groups.md), and which replies are valid.

>>> [one.typed for one in paths_of(["/=9", "/cart"])]
['/=9', '/cart=1']
>>> [one.typed for one in paths_of(["/?page=2", "/search?q=a =3"])]
['/?page=2 =1', '/search?q=a =3']
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from prony.cli.flat import option
from prony.cli.load_options import AskOptions, CheckOptions
from prony.cli.options import (
    body_of,
    expected_header_of,
    given_content,
    given_file,
    make_request,
    optional,
    path_of,
    sha256_of,
    statuses_of,
)
from prony.core.errors import UsageError
from prony.model.exchange import Check, Request, status_alone
from prony.model.workload import (
    MAX_PATHS,
    CountStop,
    EngineChoice,
    Mix,
    MixPath,
    RequestOrder,
    Workload,
    fault_of_mix,
)

if TYPE_CHECKING:
    from prony.engine.requests_from import Requests
    from prony.model.plan import Plan
    from prony.plan.document import UsersDocument, WorkloadDocument


class OrderOption(StrEnum):
    """What may be typed for ``--order``."""

    IN_ORDER = "in-order"
    SHUFFLED = "shuffled"
    ONCE = "once"
    WEIGHTED = "weighted"

    @classmethod
    def of(cls, order: RequestOrder | None) -> "OrderOption | None":
        """Return how an order is typed."""
        return None if order is None else cls(order.value.replace("_", "-"))

    @property
    def order(self) -> RequestOrder:
        """The order of the requests; ``once`` is a matter of the end."""
        return (
            RequestOrder.IN_ORDER if self is OrderOption.ONCE else RequestOrder(self.value.replace("-", "_"))
        )


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Requests, and values for them, that are in files."""

    PANEL: ClassVar[str] = "Requests from files"

    requests_from: Path | None = option(
        None, "Send the requests of this file: a path or URL a line, JSON lines, or CSV.", metavar="FILE"
    )
    data: Path | None = option(
        None,
        "Fill {{name}} in paths, headers and bodies from this file: CSV with a header line, or JSON lines.",
        metavar="FILE",
    )
    order: OrderOption | None = option(
        None,
        "The order of a file's requests: in-order, shuffled (by --seed), once (the load ends with "
        "the file), or weighted (usual where lines have a weight; else in-order).",
    )

    @property
    def names_a_file(self) -> bool:
        """Whether the requests of the load come from a file."""
        return self.requests_from is not None or self.data is not None

    def check(self, typed: Mapping[str, str], is_mix: bool) -> None:
        """Refuse options that do not fit together.

        *Errors*: UsageError naming the option.
        """
        if self.order is not None and not self.names_a_file:
            raise UsageError(
                "`--order` only works with `--requests-from` or `--data`", hint="add one of them"
            )
        if self.requests_from is not None:
            wrong = ["--data"] if self.data else ["--path"] if "path" in typed else []
            if wrong:
                raise UsageError(
                    f"`--requests-from` and `{wrong[0]}` exclude each other: its lines say what is asked for"
                )
        if self.names_a_file and (wrong := [typed[name] for name in _NOT_YET if name in typed]):
            raise UsageError(f"`{wrong[0]}` does not work with requests from a file yet")
        if self.order is OrderOption.ONCE and (wrong := [typed[one] for one in _NOT_ONCE if one in typed]):
            raise UsageError(
                f"`--order once` ends the load after the last request of the file; it excludes `{wrong[0]}`",
                hint=f"leave out {wrong[0]}; or take --order in-order, which begins again",
            )
        if self.order is OrderOption.WEIGHTED and self.data is not None:
            raise UsageError("`--order weighted` only works with `--requests-from`: rows of data are equal")
        if self.order is OrderOption.ONCE and "groups" in typed:
            raise UsageError(
                "`--order once` does not work with `--groups`: each group goes through the file by itself",
                hint="take --order in-order, and -n for the number of requests",
            )
        if is_mix and self.order is OrderOption.ONCE:
            raise UsageError("`--order once` does not work with several paths, which share the rows of data")


_NOT_YET = ("fleet", "target")
_NOT_ONCE = ("requests", "duration", "stages", "warmup")


@dataclass(frozen=True, slots=True)
class RequestFiles:
    """Compiles what the options name, or a study's file (``keys``). ``open_files`` are the files for the
    engine, by their digests.
    """

    options: FileOptions = field(default_factory=FileOptions)
    seed: int = 1
    keys: bool = False
    _files: dict[str, BinaryIO] = field(default_factory=dict)
    _found: "dict[tuple[Path, Request, tuple[MixPath, ...]], Requests]" = field(default_factory=dict)

    @property
    def open_files(self) -> Mapping[str, int]:
        """Descriptors by digest."""
        return {sha256: file.fileno() for sha256, file in self._files.items()}

    def close(self) -> None:
        """Close the files, which are gone then."""
        for file in self._files.values():
            file.close()

    def of(self, load: Workload, paths: Sequence[MixPath]) -> Workload:
        """Return the load with the requests of the files.

        *Errors*: UsageError with file, line, and column.
        """
        path = self.options.requests_from or self.options.data
        if path is None:
            return load
        # Loads that ask alike share it: a pipe of the shell can be read once.
        key = path, load.request, tuple(paths)
        found = self._found[key] = self._found.get(key) or self._compiled(path, load.request, paths)
        wish = self.options.order
        mix = found.mix(wish.order if wish else None, self.seed)
        stop = CountStop(found.compiled.rows) if wish is OrderOption.ONCE else load.stop
        request = replace(found.request, keep_alive=load.request.keep_alive)
        warmup_ns = 0 if wish is OrderOption.ONCE else load.warmup_ns
        return replace(load, request=request, mix=mix, stop=stop, warmup_ns=warmup_ns)

    def _compiled(self, path: Path, request: Request, paths: Sequence[MixPath]) -> "Requests":
        from prony.engine.requests_from import of_data, of_list

        is_list = self.options.requests_from is not None
        typed, key = ("--requests-from", "requests_from =") if is_list else ("--data", "data =")
        with given_file(f"{key if self.keys else typed} {path}", path) as file:
            name = "standard input" if str(path) == "-" else path.name
            found = of_list(name, file, request) if is_list else of_data(name, file, request, paths)
        if self._files.setdefault(found.compiled.sha256, found.compiled.file) is not found.compiled.file:
            found.compiled.file.close()
        return found

    def of_study(self, study: str) -> "Callable[[WorkloadDocument, Workload], Workload]":
        """Return what reads the files that the loads of a study name, each from the study's own folder."""
        from prony.plan.loads import expecting

        folder = Path(study).parent

        def of(part: "WorkloadDocument", load: Workload) -> Workload:
            if part.form or part.body is not None:
                load = expecting(_with_body(part, load, folder), part)
            if part.file is None:
                return load
            listed, data = (folder / name if name else None for name in (part.requests_from, part.data))
            options = FileOptions(listed, data, OrderOption.of(part.order))
            return _in_cell(load, replace(self, options=options, keys=True))

        return of


def _with_body(part: "WorkloadDocument", load: Workload, folder: Path) -> Workload:
    """Return the load with the body of the document, whose files are in ``folder``. What replies to the app's
    own request must be says nothing of this one's.
    """
    own = load.request
    if part.form:
        fields = [_FILE_OF_FIELD.sub(lambda start: f"{start[0]}{folder}/", one) for one in part.form]
        named = {name.lower() for name in part.headers}
        kept = [one for one in own.headers if one[0].lower() != "content-type" or "content-type" in named]
        request = with_form(replace(own, headers=tuple(kept)), fields, part.method)
    else:
        text = part.body or ""
        typed = f"@{folder / text[1:]}" if text.startswith("@") else text
        request = replace(own, method=part.method or "POST", body=body_of("body =", typed))
    return replace(load.expecting(Check()), request=request)


# Of a relative name.
_FILE_OF_FIELD = re.compile(r"^[^=]+=@(?!/)")


def with_form(request: Request, form: Sequence[str], method: str | None) -> Request:
    """Return the request with the form as its body; ``method``: as it was typed.

    *Errors*: UsageError for a typed ``Content-Type``, and as `multipart`.
    """
    typed = next((value for name, value in request.headers if name.lower() == "content-type"), None)
    if typed is not None:
        raise UsageError(
            f"`-H 'Content-Type: {typed}'` and `--form` exclude each other: a form's type names what its "
            "fields are parted by"
        )
    body, content_type = multipart(form)
    headers = (*request.headers, ("Content-Type", content_type))
    return replace(request, method=request.method if method else "POST", headers=headers, body=body)


def in_plan(plan: "Plan", files: RequestFiles, is_checked: bool) -> "Plan":
    """Return the plan with the requests of the typed files, if any, in each of its loads. Bodies of replies
    are those of the app's own request, and not checked, unless the user says what they are: ``is_checked``.

    *Errors*: UsageError as `RequestFiles.of`, for loads of a study that have a file, and for generators that
    send none.
    """
    if files.options.order is OrderOption.ONCE:
        raise UsageError("`--order once` only works with `prony load`: windows of a study have one length")
    if files.options.names_a_file:
        of_study = next((mix.file for cell in plan.cells if (mix := cell.workload.mix) and mix.file), None)
        if of_study is not None:
            option = "--requests-from" if files.options.requests_from else "--data"
            raise UsageError(
                f"`{option}`: loads of `{plan.name}` have requests already, from `{of_study.name}`"
            )
        loads = (_in_cell(cell.workload, files, is_checked) for cell in plan.cells)
        cells = (replace(cell, workload=load) for cell, load in zip(plan.cells, loads, strict=True))
        plan = replace(plan, cells=tuple(cells))
    own = EngineChoice().name
    for cell in plan.cells:
        if cell.engine.name != own and (what := _of_own_engine(cell.workload)):
            raise UsageError(f"`{cell.engine.name}` {what}; only Prony's own engine does")
    return plan


def _of_own_engine(load: Workload) -> str | None:
    """Return what no other generator does, nor several of Prony's; None: nothing."""
    if load.mix and load.mix.file:
        return "sends no requests from a file"
    return "knows no groups of users" if load.groups else None


def _in_cell(load: Workload, files: RequestFiles, is_checked: bool = False) -> Workload:
    paths = load.mix.paths if load.mix else (MixPath(load.request.path),)
    found = files.of(load, paths)
    if is_checked:
        return found
    return replace(found, expect_body=None, expect_body_contains=(), expect_body_sha256=None)


_QUOTED = {'"': "%22", "\r": "%0D", "\n": "%0A"}


def multipart(fields: Sequence[str]) -> tuple[bytes, str]:
    """Return the body of a form (RFC 7578), and its ``Content-Type``.

    >>> body, content_type = multipart(["a=1"])
    >>> body.split(b"\\r\\n")[1:4]
    [b'Content-Disposition: form-data; name="a"', b'', b'1']

    *Errors*: UsageError for what is no field, and for a file that cannot be read.
    """
    parts = [_part(text) for text in fields]
    number = 0
    while True:
        digest = hashlib.sha256(b"".join(head + content for head, content in parts) + bytes([number]))
        boundary = f"prony-{digest.hexdigest()[:32]}"
        if not any(boundary.encode() in content for _, content in parts):
            break
        number += 1
    lines = [
        b"--" + boundary.encode() + b"\r\n" + head + b"\r\n" + content + b"\r\n" for head, content in parts
    ]
    return b"".join(lines) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _part(text: str) -> tuple[bytes, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"`--form {text}`: expected NAME=VALUE, or NAME=@FILE")
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    if not value.startswith("@"):
        return f"{head}\r\n".encode(errors="surrogateescape"), value.encode(errors="surrogateescape")
    path = Path(value[1:])
    content = given_content(f"--form {text}", path)
    head += f'; filename="{_quoted(path.name)}"\r\nContent-Type: application/octet-stream'
    return f"{head}\r\n".encode(errors="surrogateescape"), content


def _quoted(name: str) -> str:
    return "".join(_QUOTED.get(one, one) for one in name)


# --- paths of requests as they are typed ------------------------------------------------------------------


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
    from prony.plan.document import GroupsDocument

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
    """Return a path and the text of its weight; None: it has none."""
    if apart := _APART.search(text):
        return text[: apart.start()], text[apart.end() :]
    if "?" in text or "=" not in text:
        return text, None
    path, _, weight = text.rpartition("=")
    return path, weight
