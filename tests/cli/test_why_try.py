"""`prony why --try` turns a setting of this machine's catalogue, and takes nothing from the archive but its name."""

import pytest

from prony.cli.why_try import _turned
from prony.catalog.schema.loader import load_catalog
from prony.diagnosis.busy_slots import ADD_THREADS
from prony.diagnosis.crowded import FEWER_WORKERS
from prony.diagnosis.evidence import Confidence, Finding
from prony.diagnosis.restarted import READ_LOG_FOR_LIMITS

KNOWN = load_catalog(())
GUNICORN = KNOWN.servers["gunicorn"].settings


def because(advice):
    return Finding("any", None, Confidence.LIKELY, advice=advice)


@pytest.mark.parametrize(
    ("key", "now", "advice", "value"),
    [
        ("threads", 4, ADD_THREADS, "8"),
        ("workers", 8, FEWER_WORKERS, "4"),
        ("workers", 1, FEWER_WORKERS, None),
        ("threads", 1024, ADD_THREADS, None),
        ("max_requests", 100, READ_LOG_FOR_LIMITS, "1000000"),
        ("access_log", True, None, "off"),
        ("reuse_port", False, None, "on"),
        ("worker_class", "sync", None, None),
        ("max_requests", None, READ_LOG_FOR_LIMITS, None),
    ],
)
def test_a_setting_is_turned_to_where_the_advice_points(key, now, advice, value):
    assert _turned(GUNICORN[key], now, because(advice)) == value
