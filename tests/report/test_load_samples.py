"""Samples of failures in the text of a load: what came, harmless to show."""

import io

from rich.console import Console

from golden import build
from prony.model.json_codec import encode
from prony.reading.load import read_load
from prony.report.formats.terminal import TerminalReporter
from prony.report.load import load_document
from recordings import with_parts

LOAD = build.Workload(build.ClosedLoop(2), build.DurationStop(build.SECOND))


def page_of(*samples, **parts):
    recording = build.recording(LOAD, [1_000_000] * 20, {"parse": len(samples)}, error_samples=samples)
    out = io.StringIO()
    console = Console(file=out, width=400, highlight=False)
    TerminalReporter(console).write(load_document(read_load(with_parts(recording, **parts))))
    return out.getvalue()


def sample(kind, detail, received):
    return {"class": kind, "detail": detail, "at_ns": 1, "received": encode(received)}


def test_the_first_bytes_of_a_reply_are_shown_with_escapes():
    page = page_of(sample("parse", "no status line", b"SSH-2.0\r\n\x1b[2K\xff\xc3\xa9"))
    assert "reply breaks a rule of its protocol: no status line: SSH-2.0\\r\\n\\x1b[2K\\xffé" in page


def test_a_failure_without_a_reply_has_its_detail_alone():
    page = page_of(sample("parse", "no status line", None))
    assert "reply breaks a rule of its protocol: no status line\n" in page


def test_each_class_has_its_samples_and_the_same_failure_stands_once():
    same = [sample("bad_status", "status 503", b"HTTP/1.1 503 1"), sample("bad_status", "status 503", b"2")]
    page = page_of(*same, sample("eof", "closed before the reply", None), sample("parse", "x", b"y"))
    assert page.count("status 503: ") == 1
    assert "HTTP/1.1 503 1" in page
    assert page.count("  | ") == 3


def test_connections_that_brought_what_nothing_asked_for_are_counted():
    page = page_of(connections={"surplus": 7})
    assert "7 connections brought bytes that no request had asked for" in page
