"""`prony load --path ... --path ...`: a mix of paths, its shares, and its account by path."""

from collections import Counter

import pytest

from cli.test_load import account_adds_up, listener  # noqa: F401 - a fixture
from prony.cli.request_files import paths_of
from prony.core.errors import UsageError

MIX = ("--path", "/=6", "--path", "/cart=3", "--path", "/?page=2")


def test_a_mix_is_sent_by_its_weights_and_has_an_account_of_each_path(said, listener):  # noqa: F811
    result = said("load", listener.url, "-n", "500", "-c", "3", *MIX, "--json", "-").json
    paths = result["paths"]
    assert [one["name"] for one in paths] == ["/", "/cart", "/?page=2"]
    assert [one["asked"] for one in paths] == [0.6, 0.3, 0.1]
    for one in paths:
        assert one["requests"] == one["account"]["ok"] == one["service_ns"]["ok"]["count"]
        assert one["share"] == pytest.approx(one["asked"], abs=0.05)
        assert (one["errors"], one["response_ns"]) == (0, None)
    for name in ("scheduled", "ok"):
        assert sum(one["account"][name] for one in paths) == result["account"][name]
    for name in ("sent", "received", "body_received"):
        assert sum(one["bytes"][name] for one in paths) == result["bytes"][name]
    assert account_adds_up(result)
    # Those before the window are in nobody's account.
    seen = Counter(path for _, path, *_ in listener.seen)
    assert all(one["requests"] <= seen[one["name"]] <= one["requests"] + 3 for one in paths)


def test_equal_loads_ask_for_the_same_paths_in_the_same_order(said, listener):  # noqa: F811
    asked = []
    for seed in ("1", "1", "2"):
        said("load", listener.url, "--rate", "300", "-c", "1", "-n", "40", *MIX, "--seed", seed)
        asked.append([path for _, path, *_ in listener.seen])
        listener.seen.clear()
    first, again, other = asked
    assert first == again != other


def test_paths_without_weights_have_equal_shares(said, reference):
    load = ("load", reference, "-n", "256", "-c", "1", "--path", "/a", "--path", "/b", "--json", "-")
    result = said(*load).json
    assert [one["asked"] for one in result["paths"]] == [0.5, 0.5]


def test_the_report_has_a_table_of_the_paths(said, reference):
    done = said("load", reference, "-n", "300", *MIX)
    assert "GET /=6 /cart=3 /?page=2 =1" in done.out
    assert "\nPaths\nAll paths together are the whole." in done.out
    assert done.status == 0


def test_one_path_is_a_path_and_no_mix(said, listener):  # noqa: F811
    result = said("load", listener.url, "-n", "5", "--path", "/a=9", "--json", "-").json
    assert {path for _, path, *_ in listener.seen} == {"/a=9"}
    assert result["paths"] == []
    assert result["workload"]["mix"] is None


def test_all_requests_of_a_mix_have_the_same_method_body_and_checks(said, listener):  # noqa: F811
    load = ("load", listener.url, "-n", "40", "-m", "POST", "--body", "x", *MIX, "--expect-body", "ok")
    assert said(*load, "--json", "-").json["account"]["ok"] == 40
    assert {(method, body) for method, _, _, body, _ in listener.seen} == {("POST", b"x")}


def test_a_mix_goes_with_stages_and_with_a_comparison(said, reference):
    staged = said("load", reference, "--stages", "200ms:1c,200ms:2c", "--seed", "3", *MIX, "--json", "-").json
    assert sum(one["requests"] for one in staged["paths"]) == staged["all_requests"]
    pair = ("load", reference, "--compare", reference, "--pairs", "5", "-d", "50ms", "--warmup", "0s", *MIX)
    assert said(*pair).status == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--path", "/", "--path", "cart=1"), "`cart` is not a path"),
        (("--path", "/", "--path", "/cart=x"), "`x` is not a weight"),
        (("--path", "/", "--path", "/cart="), "`` is not a weight"),
        (("--path", "/", "--path", "/cart=-1"), "`-1` is not a weight"),
        (("--path", "/", "--path", "/cart=nan"), "`nan` is not a weight"),
        (("--path", "/", "--path", "/cart=1e3"), "`1e3` is not a weight"),
        (("--path", "/", "--path", "/cart=0"), "expected a weight from 0.0001 to 100000000, found `0`"),
        (("--path", "/", "--path", "/=2"), "expected each path once, found `/`"),
        (("--path", "/", "--path", "/a b=1"), "`/a b` is not a path"),
    ],
)
def test_what_is_no_mix_is_refused_with_a_hint(said, reference, options, message):
    done = said("load", reference, "-n", "5", *options)
    assert done.status == 2
    assert message in done.err
    assert done.err.isascii()


def test_more_than_100_paths_are_refused():
    with pytest.raises(UsageError, match="expected 2 to 100 paths, found `101`"):
        paths_of([f"/{n}" for n in range(101)])


def test_a_path_stands_in_the_url_or_in_options(said, reference):
    done = said("load", f"{reference.rstrip('/')}/cart", "-n", "5", "--path", "/a")
    assert done.status == 2
    assert "exclude each other" in done.err


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["/", "/cart"], ["/=1", "/cart=1"]),
        (["/=9", "/cart=0.5"], ["/=9", "/cart=0.5"]),
        (["/", "/?page=2"], ["/=1", "/?page=2 =1"]),
        (["/", "/?page=2 =3"], ["/=1", "/?page=2 =3"]),
        (["/a=5=2", "/b =4"], ["/a=5=2", "/b=4"]),
        (["/?a=1"], ["/?a=1 =1"]),
    ],
)
def test_a_weight_stands_behind_the_last_equals_sign_and_behind_a_query_after_a_blank(texts, expected):
    assert [one.typed for one in paths_of(texts)] == expected


@pytest.mark.parametrize("texts", [["/=9", "/a=5=2", "/?page=2 =0.5"], ["/x", "/y"]])
def test_what_is_shown_of_a_path_may_be_typed(texts):
    found = paths_of(texts)
    assert paths_of([one.typed for one in found]) == found
