"""How an archive of an older format is read: each step is the statements that make the next format of it.

They run on a private copy; the file itself is not changed.
"""

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType

from prony.archive.guard import FORMAT_VERSION, limit

__all__ = ["MIGRATIONS", "migrated"]

_ONE_TO_TWO = """
ALTER TABLE plan ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE plan ADD COLUMN design_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE plan ADD COLUMN claims_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE plan ADD COLUMN originals_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE plan ADD COLUMN notes_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE run ADD COLUMN facts_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE cell ADD COLUMN role TEXT NOT NULL DEFAULT 'subject';
ALTER TABLE subject ADD COLUMN entry_digest TEXT;
ALTER TABLE process_sample ADD COLUMN rss_peak_bytes INTEGER;
ALTER TABLE process_sample ADD COLUMN voluntary_switches_count INTEGER;
ALTER TABLE process_sample ADD COLUMN involuntary_switches_count INTEGER;
ALTER TABLE process_sample ADD COLUMN descriptors_count INTEGER;
CREATE TABLE gauge (
    sample_id INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (sample_id, name)
) STRICT;
CREATE TABLE thread (
    trial_id INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT NOT NULL,
    cpu_ns INTEGER NOT NULL, PRIMARY KEY (trial_id, pid, tid)
) STRICT;
"""

# The fault of a trial was a sentence among its facts, or its reason; its rounded figures are read from there.
# `CAST` takes the number at the beginning of a text.
_TWO_TO_THREE = """
ALTER TABLE trial ADD COLUMN fault_kind TEXT;
ALTER TABLE trial ADD COLUMN fault_slept_ns INTEGER;
ALTER TABLE trial ADD COLUMN fault_share REAL;
ALTER TABLE trial ADD COLUMN fault_text TEXT;
UPDATE trial SET fault_kind = 'sandbox', fault_text = json_extract(facts_json, '$.environment_fault'),
    facts_json = json_remove(facts_json, '$.environment_fault')
    WHERE json_valid(facts_json) AND json_type(facts_json, '$.environment_fault') = 'text';
UPDATE trial SET fault_kind = 'slept', fault_text = NULL,
    fault_slept_ns = CAST(round(CAST(substr(fault_text, 23) AS REAL) * 1e9) AS INTEGER)
    WHERE fault_text GLOB 'the machine slept for [0-9]*';
UPDATE trial SET fault_kind = 'stolen-time', fault_text = NULL,
    fault_share = CAST(substr(fault_text, 21) AS REAL) / 100
    WHERE fault_text GLOB 'the hypervisor gave [0-9]*';
UPDATE trial SET fault_kind = 'other-load', fault_text = NULL,
    fault_share = CAST(substr(fault_text, 21) AS REAL) / 100
    WHERE fault_text GLOB 'other programs used [0-9]*';
UPDATE trial SET fault_kind = 'littles-law', fault_share = CAST(substr(outcome_reason, 24) AS REAL) / 100
    WHERE fault_kind IS NULL AND outcome = 'invalid'
        AND outcome_reason GLOB 'Little''s law is off by [+-][0-9]*';
UPDATE trial SET fault_kind = 'no-recording'
    WHERE fault_kind IS NULL AND outcome = 'invalid'
        AND outcome_reason GLOB 'the generator returned no recording*';
UPDATE trial SET fault_kind = 'interrupted'
    WHERE fault_kind IS NULL AND outcome = 'invalid'
        AND outcome_reason GLOB 'interrupted*';
UPDATE trial SET fault_kind = 'generator', fault_text = substr(outcome_reason, 16)
    WHERE fault_kind IS NULL AND outcome = 'invalid'
        AND outcome_reason GLOB 'the generator: *';
UPDATE trial SET fault_kind = 'prony', fault_text = substr(outcome_reason, 19)
    WHERE fault_kind IS NULL AND outcome = 'invalid'
        AND outcome_reason GLOB 'a fault in Prony: *';
"""

MIGRATIONS: Mapping[int, str] = MappingProxyType({1: _ONE_TO_TWO, 2: _TWO_TO_THREE})
"""From a format to the next."""


def migrated(database: sqlite3.Connection, version: int) -> sqlite3.Connection:
    """Return a private copy of a checked database of format ``version``, brought to the present format.

    The copy is a temporary file of SQLite's own, which is gone with the connection. ``database`` stays open.

    *Errors*: sqlite3.Error; then there is no copy any more.
    """
    copy = sqlite3.connect("", isolation_level=None)
    try:
        limit(copy)
        database.backup(copy)
        for step in range(version, FORMAT_VERSION):
            copy.executescript(MIGRATIONS[step])
    except BaseException:
        copy.close()
        raise
    return copy
