"""A page around its content: one file that asks nothing of any network, under a policy that says so.

Scripts and styles stand in it and are allowed by their digests; the charting library is compressed, and its
digest is that of what is unpacked. Must not know what a page shows.

*Source*: Content Security Policy Level 3, sections 6.1 and 8.4 (hashes).
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from prony.model.shapes import Json
from prony.page.chart import Chart, legible
from prony.page.markup import safe
from prony.page.palette import VARIABLES


@cache
def _asset(name: str) -> bytes:
    return (files("prony.page") / "assets" / name).read_bytes()


@cache
def _library() -> tuple[str, str]:
    """Return the charting library, compressed, and the digest of its text."""
    packed = _asset("vega.js.gz")
    return b64encode(packed).decode(), _digest(gzip.decompress(packed))


def _digest(script: bytes) -> str:
    return f"'sha256-{b64encode(sha256(script).digest()).decode()}'"


def _packed(data: Json) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _data(charts: Sequence[Chart]) -> str:
    return _packed({"theme": dict(VARIABLES), "charts": {chart.key: legible(chart.spec) for chart in charts}})


def page(title: str, content: str, charts: Sequence[Chart]) -> str:
    """Return a page with this content. ``charts``: those that a reader may turn into interactive ones."""
    style, script = _asset("page.css"), _asset("page.js")
    library, digest = _library() if charts else ("", "")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)} {digest}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    held = (
        f'<script type="text/plain" id="charts">{_data(charts)}</script>\n'
        f'<script type="text/plain" id="library">{library}</script>\n'
        f"<!--\n{_asset('vega.licence.txt').decode()}-->\n"
        if charts
        else ""
    )
    return (
        "<!doctype html>\n"
        f'<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{safe(title)}</title>\n<style>{style.decode()}</style>\n</head>\n"
        f"<body>\n{content}\n{held}<script>{script.decode()}</script>\n</body>\n</html>\n"
    )
