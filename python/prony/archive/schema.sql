-- The Archive, format 1. docs/archive-format.md is normative and explains every column.
-- Conventions: the unit is in the name; *_json holds one JSON value; a value that is not known is NULL, never 0.

CREATE TABLE meta (
    format_version INTEGER NOT NULL,
    prony_version TEXT NOT NULL,
    created_unix_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE run (
    run_id INTEGER PRIMARY KEY,
    prony_version TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    ended_unix_ns INTEGER,
    status TEXT NOT NULL CHECK (status IN ('interrupted', 'finished')),
    fingerprint_json TEXT NOT NULL,
    facts_json TEXT NOT NULL
) STRICT;

CREATE TABLE plan (
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    question TEXT NOT NULL,
    text TEXT NOT NULL,
    profile TEXT NOT NULL,
    blocks_count INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    source TEXT NOT NULL,
    design_json TEXT NOT NULL,
    claims_json TEXT NOT NULL,
    originals_json TEXT NOT NULL,
    notes_json TEXT NOT NULL
) STRICT;

CREATE TABLE cell (
    cell_id INTEGER PRIMARY KEY,
    subject_name TEXT NOT NULL,
    server_name TEXT NOT NULL,
    variant TEXT NOT NULL,
    app_name TEXT NOT NULL,
    interface TEXT NOT NULL,
    subject_json TEXT NOT NULL,
    workload_json TEXT NOT NULL,
    engine_json TEXT NOT NULL,
    sandbox_json TEXT NOT NULL,
    role TEXT NOT NULL
) STRICT;

CREATE TABLE subject (
    subject_name TEXT PRIMARY KEY,
    server_version TEXT,
    interpreter TEXT,
    lock_digest TEXT,
    command_line TEXT,
    packages_json TEXT NOT NULL,
    settings_json TEXT NOT NULL,
    sandbox_json TEXT NOT NULL,
    facts_json TEXT NOT NULL,
    unavailable_reason TEXT,
    entry_digest TEXT
) STRICT;

CREATE TABLE trial (
    trial_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (run_id),
    cell_id INTEGER NOT NULL REFERENCES cell (cell_id),
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    role TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    ended_unix_ns INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('ok', 'failed', 'invalid')),
    outcome_stage TEXT,
    outcome_reason TEXT,
    command_json TEXT NOT NULL,
    placement_json TEXT,
    nuisances_json TEXT NOT NULL,
    facts_json TEXT NOT NULL,
    fault_kind TEXT,
    fault_slept_ns INTEGER,
    fault_share REAL,
    fault_text TEXT
) STRICT;

CREATE TABLE recording (
    trial_id INTEGER PRIMARY KEY REFERENCES trial (trial_id),
    recording_json TEXT NOT NULL
) STRICT;

CREATE TABLE distribution (
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    name TEXT NOT NULL,
    requests_count INTEGER NOT NULL,
    min_ns INTEGER,
    max_ns INTEGER,
    sum_ns INTEGER,
    histogram BLOB,
    PRIMARY KEY (trial_id, name)
) STRICT;

CREATE TABLE series (
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    second INTEGER NOT NULL,
    scheduled_count INTEGER,
    ok_count INTEGER,
    failed_count INTEGER,
    body_bytes INTEGER,
    latency_count INTEGER,
    latency_min_ns INTEGER,
    latency_max_ns INTEGER,
    latency_sum_ns INTEGER,
    latency_histogram BLOB,
    PRIMARY KEY (trial_id, second)
) STRICT;

CREATE TABLE process (
    process_id INTEGER PRIMARY KEY,
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    pid INTEGER NOT NULL,
    start_time_ticks INTEGER NOT NULL,
    role TEXT NOT NULL,
    command TEXT NOT NULL
) STRICT;

CREATE INDEX process_of_trial ON process (trial_id);

CREATE TABLE sample (
    sample_id INTEGER PRIMARY KEY,
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    monotonic_ns INTEGER NOT NULL,
    phase TEXT NOT NULL,
    machine_busy_ns INTEGER NOT NULL,
    machine_idle_ns INTEGER NOT NULL,
    machine_steal_ns INTEGER NOT NULL
) STRICT;

CREATE INDEX sample_of_trial ON sample (trial_id);

CREATE TABLE process_sample (
    sample_id INTEGER NOT NULL REFERENCES sample (sample_id),
    process_id INTEGER NOT NULL REFERENCES process (process_id),
    user_ns INTEGER NOT NULL,
    system_ns INTEGER NOT NULL,
    rss_bytes INTEGER NOT NULL,
    vsz_bytes INTEGER NOT NULL,
    threads_count INTEGER NOT NULL,
    pss_bytes INTEGER,
    uss_bytes INTEGER,
    rss_peak_bytes INTEGER,
    voluntary_switches_count INTEGER,
    involuntary_switches_count INTEGER,
    descriptors_count INTEGER,
    PRIMARY KEY (sample_id, process_id)
) STRICT;

CREATE TABLE gauge (
    sample_id INTEGER NOT NULL REFERENCES sample (sample_id),
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (sample_id, name)
) STRICT;

CREATE TABLE thread (
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    pid INTEGER NOT NULL,
    tid INTEGER NOT NULL,
    name TEXT NOT NULL,
    cpu_ns INTEGER NOT NULL,
    PRIMARY KEY (trial_id, pid, tid)
) STRICT;

CREATE TABLE slice (
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    round INTEGER NOT NULL,
    place INTEGER NOT NULL,
    began_ns INTEGER NOT NULL,
    open_ns INTEGER NOT NULL,
    close_ns INTEGER NOT NULL,
    ended_ns INTEGER NOT NULL,
    ok_count INTEGER NOT NULL,
    answered_count INTEGER NOT NULL,
    failed_count INTEGER NOT NULL,
    cpu_ns INTEGER,
    neighbours_ns INTEGER NOT NULL,
    others_ns INTEGER NOT NULL,
    steal_ns INTEGER NOT NULL,
    counts INTEGER NOT NULL CHECK (counts IN (0, 1)),
    PRIMARY KEY (trial_id, round)
) STRICT;

CREATE TABLE counter (
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    name TEXT NOT NULL,
    delta_count INTEGER,
    missing_reason TEXT,
    PRIMARY KEY (trial_id, name)
) STRICT;

CREATE TABLE log (
    trial_id INTEGER PRIMARY KEY REFERENCES trial (trial_id),
    text_deflate BLOB NOT NULL,
    text_bytes INTEGER NOT NULL,
    truncated INTEGER NOT NULL CHECK (truncated IN (0, 1))
) STRICT;

CREATE TABLE event (
    trial_id INTEGER NOT NULL REFERENCES trial (trial_id),
    number INTEGER NOT NULL,
    event_json TEXT NOT NULL,
    PRIMARY KEY (trial_id, number)
) STRICT;
