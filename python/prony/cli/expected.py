"""From the options that say which replies are valid to what is checked: of `prony run` and `prony load`."""

from prony.cli.load_options import CheckOptions
from prony.cli.options import body_of, expected_header_of, optional, sha256_of, statuses_of
from prony.errors import UsageError
from prony.model.exchange import Check, Request


def expected_of(check: CheckOptions, request: Request) -> Check:
    """Return the reply that a request must get.

    *Errors*: UsageError for the first invalid value.
    """
    statuses = optional(statuses_of, "--expect-status", check.expect_status) or ()
    is_one = len(statuses) == 1 and statuses[0][0] == statuses[0][1]
    contains = (body_of("--expect-body-contains", text) or b"" for text in check.expect_body_contains or ())
    needles = tuple(contains)
    if b"" in needles:
        raise UsageError("`--expect-body-contains`: an empty text is in every body; expected some text")
    return Check(
        request,
        # One status alone has the form that other generators know too.
        status=statuses[0][0] if is_one else None,
        statuses=() if is_one else statuses,
        headers=tuple(expected_header_of(text) for text in check.expect_header or ()),
        body=body_of("--expect-body", check.expect_body),
        body_contains=needles,
        body_sha256=optional(sha256_of, "--expect-body-sha256", check.expect_body_sha256),
    )
