"""The options of a request, which `prony run` and `prony load` share: each is written once."""

from typing import Annotated

import typer

Method = Annotated[str, typer.Option("-m", "--method", help="The method of the requests.")]
Header = Annotated[
    list[str] | None,
    typer.Option("-H", "--header", help="A header of the requests, `Name: value`; may be repeated."),
]
Body = Annotated[str | None, typer.Option(help="The body of the requests; @FILE reads it from a file.")]
RequestTimeout = Annotated[str, typer.Option(help="How long a request may take.")]
