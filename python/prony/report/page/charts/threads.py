"""Where the time of each subject's threads goes: a bar that adds up to the whole."""

from collections.abc import Iterator

from prony.diagnosis.thread_time import ThreadState
from prony.model.json_codec import Json
from prony.reading.groups import Group
from prony.report.forms import percent
from prony.report.page.chart import WIDTH, Chart, slug, stacked, tooltip
from prony.report.page.scene import Scene
from prony.report.tables import group_at
from prony.report.text import pointer

_PERCENT = 0.01
# States are no subjects: these shades are the palette's, but stand for states by the key below them.
_SHADES = {
    ThreadState.RUNNING: "#00896b",
    ThreadState.READY: "#b07a00",
    ThreadState.LOCK: "#a40e26",
    ThreadState.THREAD: "#b35c96",
    ThreadState.IDLE: "#afb8c1",
    ThreadState.EVENTS: "#8c959f",
    ThreadState.SOCKET: "#2b97d3",
    ThreadState.DOWNSTREAM: "#0072b2",
    ThreadState.SLEEP: "#7a5a3a",
    ThreadState.FILE: "#6639ba",
    ThreadState.FILE_LOCK: "#a475f9",
    ThreadState.CHILD: "#e16f24",
    ThreadState.OTHER: "#57606a",
}


def thread_times(scene: Scene, group: Group) -> Chart | None:
    """Return what the threads of each subject did, as shares of their time; None where nobody looked."""
    rows = list(_rows(scene, group))
    if not rows:
        return None
    return Chart(
        slug("threads", scene.load(group), str(scene.reading.place(group))),
        "Where the time of its threads goes",
        "Running and ready to run as the scheduler counts them; what they wait for by looks at them, ten "
        "times a second.",
        stacked(
            rows, "name", "% of the time of its threads", _shade(rows), tooltip(name="subject", said="time")
        ),
    )


def _rows(scene: Scene, group: Group) -> Iterator[Json]:
    for place, cell in enumerate(group.cells):
        found = scene.reading.diagnoses.get(cell.cell.id)
        at = group_at(scene.reading, group) + pointer("cells", place, "diagnosis", "time")
        for state, share in found.time.items() if found else ():
            yield {
                **{"name": cell.name, "state": state.value, "value": share / _PERCENT},
                **{"said": f"{state.value}: {percent(share)}", "at": at + pointer(state.value)},
                "scale": _PERCENT,
            }


def _shade(rows: list[Json]) -> Json:
    states = [state for state in ThreadState if any(row["state"] == state.value for row in rows)]
    scale = {"domain": [state.value for state in states], "range": [_SHADES[state] for state in states]}
    legend = {"columns": 2, "labelLimit": WIDTH}
    return {"field": "state", "type": "nominal", "scale": scale, "legend": legend}
