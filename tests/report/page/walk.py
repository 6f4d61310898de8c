"""Walks a page: its tags, its charts, and every number of it with its place in the report's JSON."""

import base64
import gzip
import json
import re
from html.parser import HTMLParser

import pytest

from prony.core.safe_text import plain

# What a row of a chart may show, in the order in which a place of its own counts.
SHOWN = ("published", "trial", "change", "value")
PLACED = re.compile("(^|_)at$")
NUMBER = re.compile(
    r"([+-]?\d[\d,]*(?:\.\d+)?)(?:e([+-]?\d+))?(?: \(([\d,.]+)–([\d,.]+)\))? ?([^\W\d]\w*|%)?"
)
UNITS = {
    **{"ns": (1,), "µs": (1e3,), "ms": (1e6,), "s": (1e9,)},
    **{"KiB": (1 << 10,), "MiB": (1 << 20,), "GiB": (1 << 30,)},
    # Of a ratio, and of a metric that is measured in per cent.
    "%": (0.01, 1),
}


class Parsed(HTMLParser):
    """What a browser would make of a page: its tags with their attributes, and the text of each."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data

    def handle_endtag(self, tag):
        self.tags.append(("/" + tag, {}))
        self.texts.append("")

    def all(self, wanted):
        return [
            (attributes, words)
            for (tag, attributes), words in zip(self.tags, self.texts, strict=True)
            if tag == wanted
        ]


def at(value, where):
    """Return what a JSON pointer points to."""
    for escaped in where.split("/")[1:]:
        step = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(step)]
        else:
            # A page has no control characters, also not in the names of a pointer.
            value = next(found for name, found in value.items() if plain(name) == step)
    return value


def chart_specs(page):
    """Return the specifications that a page holds, by chart."""
    (packed,) = [words for found, words in Parsed(page).all("script") if found.get("id") == "charts"]
    return json.loads(gzip.decompress(base64.b64decode(packed)))["charts"]


def chart_rows(page):
    """Return the rows of all charts."""
    return [row for spec in chart_specs(page).values() for row in spec["data"]["values"]]


def wrong_numbers(page, data):
    """Return the numbers of text and tables that are not the value at their place in the JSON."""
    wrong, numbers = [], Parsed(page).all("data")
    assert len(numbers) > 3
    for attributes, _ in numbers:
        found = at(data, attributes["data-at"])
        found = len(found) if isinstance(found, (dict, list)) else found
        if json.loads(attributes["value"]) != found:
            wrong.append((attributes["data-at"], attributes["value"], found))
    return wrong


def wrong_rows(page, data):
    """Return the rows of charts of which a number, or what is said of it, is not that of the JSON."""
    placed = [row for row in chart_rows(page) if any(map(PLACED.search, row))]
    assert placed
    return [(row, why) for row in placed for why in _wrong(row, data)]


def _wrong(row, data):
    """Yield what of a row is not so. A second, third figure of a row has its place in ``<its name>_at``."""
    for name, where in row.items():
        if name.endswith("_at"):
            own = name.removesuffix("_at")
            yield from _figure(row, own, f"said_{own}", at(data, where), row.get(f"{own}_scale", 1))
    if "at" not in row:
        return
    found = at(data, row["at"])
    if "outcome" in row:
        yield from () if row["outcome"] == found["outcome"] else ("outcome",)
        return
    shown = next(name for name in SHOWN if name in row)
    said = f"said_{shown}" if f"said_{shown}" in row else "said"
    yield from _figure(row, shown, said, found, row.get("scale", 1))


def _figure(row, name, said, found, scale):
    value = found if not isinstance(found, dict) else found["mean" if "mean" in found else "effect"]
    if row[name] * scale != pytest.approx(value, rel=1e-9):
        yield name
    if isinstance(found, dict):
        yield from (
            end for end in ("low", "high") if end in row and not _is_end(row[end] * scale, found[end])
        )
        yield from ("n",) if row.get("n", found.get("count")) != found.get("count") else ()
    if said in row and not _says(row[said], value):
        yield f"{said}: {row[said]} for {value}"


def _is_end(shown, found):
    """A bar begins at 0 where its interval does not; effects may be below."""
    return shown in (pytest.approx(found, rel=1e-9), pytest.approx(max(found, 0.0), rel=1e-9))


def _says(words, value):
    """Return whether the first number of ``words``, in its unit, is ``value`` to the digits that it shows."""
    number, power, low, high, unit = re.search(NUMBER, words.rpartition(": ")[2]).groups()
    digits = number.replace(",", "")
    last = 10.0 ** -len(digits.partition(".")[2]) * 10.0 ** int(power or 0)
    if low is not None and "." not in low:
        # The first two digits of half of its interval are all that are shown.
        half = (int(high.replace(",", "")) - int(low.replace(",", ""))) // 2
        last = 10.0 ** max(0, len(str(half)) - 2)
    shown = float(digits) * 10.0 ** int(power or 0)
    sizes, more = UNITS.get(unit, (1,)), 1 if unit == "times" else 0
    return any(abs(shown * size - value - more) <= 0.5001 * last * size for size in sizes)
