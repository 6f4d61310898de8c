"""A study's trials as a table: claims and pictures made from it are those that its archive gives."""

import lzma
import re

import pytest

from golden import studies
from prony.archive import open_archive
from prony.figures.claim_parts import ClaimVerdict
from prony.reading.study import read_archive, read_figures
from prony.reading.traces import traces
from scripts.loading import load

claims, pages = load("claims"), load("study-pages")
tidy = claims.tidy


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Return the archive of a built-in study, and its table."""
    folder = tmp_path_factory.mktemp("tidy")
    file, table = studies.grid_study(folder / "grid.prony"), folder / "trials.csv.xz"
    reading, _ = claims.judged(file)
    assert reading.plan.name == "wsgi-servers"
    tidy.write(file, reading, table)
    return file, table


def own(archive, figures=None):
    """Read an archive by its own claims, of which some are decided."""
    if figures is None:
        return read_archive(archive)
    return read_figures(archive.plan(), archive.runs(), archive.subjects(), figures)


def test_claims_are_judged_alike(both):
    file, table = both
    with open_archive(file) as archive:
        expected = own(archive).claims
    found = tidy.read(table, own)[0].claims
    assert {result.verdict for _, result in expected} == set(ClaimVerdict) - {ClaimVerdict.DOES_NOT_HOLD}
    for (claim, result), (_, again) in zip(expected, found, strict=True):
        assert (again.verdict, again.reason, again.n) == (result.verdict, result.reason, result.n)
        words, expected_words = (str(claims.figure_words(claim, one, "")) for one in (again, result))
        assert words == expected_words


def test_rows_of_claims_are_alike_and_name_the_archive(both):
    of_archive, of_table = (list(claims.rows(file)) for file in both)
    assert of_table == of_archive


def drawn(reading, found):
    """Return the pictures of a page, without the numbers that the library counts on through a process."""
    return {one.key: re.sub(r"(clip|gradient_)\d+", "", text) for one, text in pages.pictures(reading, found)}


def test_pictures_are_alike(both):
    file, table = both
    with open_archive(file) as archive:
        reading = claims.read_now(archive)
        expected = drawn(reading, traces(reading, archive.trials()))
    assert len(expected) > 3
    assert drawn(*tidy.read(table, claims.read_now)[:2]) == expected


def test_a_table_is_tidy_and_names_no_folder_of_the_machine(both):
    text = lzma.decompress(both[1].read_bytes()).decode()
    assert text.startswith("table,row,path,value\narchive,0,sha256,")
    assert sum(line.split(",")[2:3] == ["metrics/ok_per_s"] for line in text.splitlines()) > 20
    assert not {word for word in ("/tmp/", "/home/", "/root/") if word in text}


@pytest.mark.parametrize(
    ("hint", "value"), [(int | None, None), (tuple[int, ...], (1, 2)), (dict[str, float], {"a/b~c": 0.5})]
)
def test_values_come_back(hint, value):
    flat = {path: one for _, _, path, one in tidy._rows("t", 0, tidy.plain({"x": value}))}
    found = tidy._nested({path: tidy.json.loads(one) for path, one in flat.items()})
    assert tidy.typed(hint, found["x"]) == value
