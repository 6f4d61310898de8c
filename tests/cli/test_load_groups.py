"""`prony load --groups FILE`: who sends what from where, and what is refused."""

from collections import Counter

import pytest

from cli.test_load import NOBODY_HOME, account_adds_up, listener  # noqa: F401 - a fixture

REGIONS = """\
[[groups]]
name = "near"
share = 3
headers = { X-Region = "near", Accept = "text/plain" }

[[groups]]
name = "far"
delay = "30ms"
source = "127.0.0.9"
"""


@pytest.fixture
def regions(tmp_path):
    file = tmp_path / "regions.toml"
    file.write_text(REGIONS)
    return file


@pytest.mark.parametrize("loop", [("-c", "4"), ("--rate", "400", "-c", "8", "--warmup", "0s")])
def test_each_group_sends_its_share_with_its_headers_from_its_address(said, listener, regions, loop):  # noqa: F811
    typed = ("-n", "100", "--groups", str(regions), "-H", "Accept: */*", "--json", "-")
    done = said("load", listener.url, *loop, *typed)
    result = done.json
    seen = Counter(
        (headers.get("X-Region"), headers["Accept"], address[0])
        for _, _, headers, _, address in listener.seen
    )
    assert seen == {("near", "text/plain", "127.0.0.1"): 75, (None, "*/*", "127.0.0.9"): 25}
    assert [(one["name"], one["requests"]) for one in result["groups"]] == [("near", 75), ("far", 25)]
    assert account_adds_up(result)
    assert done.status == 0


def test_each_group_goes_through_a_file_by_itself_with_its_headers(said, listener, regions, tmp_path):  # noqa: F811
    lines = tmp_path / "list.csv"
    lines.write_text("path,header:X-Region,header:X-User\n/a,none,1\n/b,none,2\n")
    typed = ("-n", "40", "-c", "4", "--groups", str(regions), "--requests-from", str(lines), "--json", "-")
    done = said("load", listener.url, *typed)
    seen = Counter((path, headers["X-Region"], headers["X-User"]) for _, path, headers, _, _ in listener.seen)
    assert seen == {
        ("/a", "near", "1"): 15,
        ("/b", "near", "2"): 15,
        ("/a", "none", "1"): 5,
        ("/b", "none", "2"): 5,
    }
    for parts in (done.json["paths"], done.json["groups"]):
        assert sum(one["requests"] for one in parts) == 40
    assert (done.status, account_adds_up(done.json)) == (0, True)


def test_the_report_has_a_table_of_the_groups(said, reference, regions):
    done = said("load", reference, "-n", "40", "-c", "4", "--groups", str(regions))
    assert "\nGroups\nAll groups together are the whole." in done.out
    assert done.status == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (REGIONS.replace('"30ms"', '"far"'), "regions.toml:8 groups.1.delay: found `far`; expected"),
        (REGIONS.replace('"127.0.0.9"', '"home"'), "groups.1.source: found `home`; expected an IP address"),
        (REGIONS.replace("share = 3", "share = 0"), "groups.0.share: found `0`; expected more than 0"),
        (REGIONS.replace("delay", "latency"), "groups.1.latency: found `latency`; expected"),
        (REGIONS.replace('"far"', '"near"'), "two are called `near`"),
        (REGIONS.replace("X-Region", '"X Region"'), "expected a header's name"),
        (REGIONS.partition("\n\n")[0], "groups: found `a list`; expected"),
        (REGIONS.replace("127.0.0.9", "192.0.2.1"), "expected an address of this machine"),
        (
            REGIONS.replace('"30ms"', '"20s"'),
            "`workload.groups.delay_ns` is `20000000000`; expected less than",
        ),
        ("groups = 3", "groups: found `3`; expected"),
    ],
)
def test_what_is_wrong_with_a_file_is_named_with_its_line(said, reference, regions, text, message):
    regions.write_text(text)
    done = said("load", reference, "-n", "40", "-c", "4", "--groups", str(regions))
    assert done.status == 2
    assert message in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    "more",
    [
        ("--fleet", "local:2"),
        ("--latencies", "rows.csv"),
        ("--compare", "http://127.0.0.1:8/"),
        ("--stages", "1s:2c"),
        ("-c", "2"),
    ],
)
def test_what_does_not_go_with_groups_is_refused(said, regions, more):
    done = said("load", NOBODY_HOME, "--groups", str(regions), *more)
    words = "at least one connection for each group" if more[0] == "-c" else "does not work with"
    assert done.status == 2
    assert words in done.err


def test_a_file_is_not_sent_once_where_each_group_goes_through_it(said, regions, tmp_path):
    (tmp_path / "list").write_text("/a\n/b\n/c\n")
    once = ("--requests-from", str(tmp_path / "list"), "--order", "once")
    done = said("load", NOBODY_HOME, "--groups", str(regions), *once)
    assert done.status == 2
    assert "`--order once` does not work with `--groups`: each group goes through the file" in done.err


def test_a_file_that_is_not_there_is_named(said, tmp_path):
    done = said("load", NOBODY_HOME, "--groups", str(tmp_path / "none.toml"))
    assert (done.status, "none.toml: cannot be read" in done.err) == (2, True)


def test_a_form_has_its_own_type_in_each_group(said, regions):
    regions.write_text(REGIONS.replace("Accept", '"content-Type"'))
    done = said("load", "http://127.0.0.1:9/", "-n", "9", "--groups", str(regions), "--form", "a=1")
    assert done.status == 2
    assert "a group's `Content-Type` and `--form` exclude each other" in done.err
