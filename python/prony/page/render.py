"""Charts drawn: as SVG in a page, as SVG and PNG in files. The only place that knows the library for it."""

import json
import re

from prony.model.shapes import Json
from prony.page.chart import legible
from prony.page.palette import PAPER, VARIABLES

VEGA_LITE = "6.4"
"""The version of Vega-Lite that draws, also in the page."""

_PNG_SCALE = 2.0
# What only a screen reader of Vega's own viewer knows; the figure around it says what the picture shows.
_ROLES = re.compile(r' (?:role|aria-roledescription|aria-hidden|aria-label|pointer-events)="[^"]*"')
_CLASSES = re.compile(r' class="[^"]*"')
_EMPTY = re.compile(r'<path d="M0,0h0v0h0Z"/>|<path d=""/>')
_IDENTIFIER = re.compile(r' id="(\w+)"')
_REFERENCE = re.compile(r'( id="|url\(#)(\w+)')
_UNSEEN = {"type": "point", "opacity": 0}
_LONG = re.compile(r"\d+\.\d{3,}")


def still(spec: Json) -> Json:
    """Return a chart without the invisible marks that only a pointer finds: half of a picture's bytes."""
    if "spec" in spec:
        return {**spec, "spec": still(spec["spec"])}
    return {**spec, "layer": [one for one in spec["layer"] if one["mark"] | _UNSEEN != one["mark"]]}


def svg(spec: Json) -> str:
    """Return a chart as an SVG file, with colours of its own."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(json.dumps(legible(still(spec))), vl_version=VEGA_LITE)
    return _LONG.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), drawn)


def png(spec: Json) -> bytes:
    """Return a chart as a PNG file, at twice the size, on white."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(
        json.dumps(legible({**spec, "background": PAPER})), vl_version=VEGA_LITE, scale=_PNG_SCALE
    )
    return drawn


def in_page(spec: Json, key: str) -> str:
    """Return a chart as a part of a page: in the page's colours, its identifiers unique by ``key``."""
    drawn = _EMPTY.sub("", _CLASSES.sub("", _ROLES.sub("", svg(spec))))
    drawn = _renamed(drawn, key)
    drawn = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg aria-hidden="true" \1>', drawn, count=1)
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda found: VARIABLES.get(found[0].lower(), found[0]), drawn)


def _renamed(drawn: str, key: str) -> str:
    """Return a picture with identifiers of its own: the library counts them on through a whole process."""
    names = {name: f"{key}-{k}" for k, name in enumerate(dict.fromkeys(_IDENTIFIER.findall(drawn)))}
    return _REFERENCE.sub(lambda found: f"{found[1]}{names.get(found[2], found[2])}", drawn)
