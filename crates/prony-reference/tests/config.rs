//! What a configuration may say, and what is said of one that may not.

#![allow(clippy::unwrap_used)]

use prony_reference::Config;

#[test]
fn the_empty_object_is_the_default() {
    assert_eq!(Config::from_json("{}").unwrap(), Config::default());
}

#[test]
fn a_configuration_survives_its_json() {
    let text = r#"{"framing": "chunked", "trailers": true, "stall": {"after_ns": 1, "for_ns": 2},
        "delay": {"kind": "bimodal", "low_ns": 1, "high_ns": 2, "high_share": 0.5, "seed": 3}}"#;
    let config = Config::from_json(text).unwrap();
    assert_eq!(
        Config::from_json(&serde_json::to_string(&config).unwrap()).unwrap(),
        config
    );
}

#[test]
fn each_bad_value_is_refused_with_its_field_value_and_expectation() {
    for (text, message) in [
        (
            r#"{"host": "0.0.0.0"}"#,
            "`host` is \"0.0.0.0\": expected a loopback address, unless `allow_non_loopback` is true",
        ),
        (
            r#"{"host": "nowhere"}"#,
            "`host` is \"nowhere\": expected an IPv4 or IPv6 address",
        ),
        (r#"{"backlog": 0}"#, "`backlog` is 0: expected 1 to 65535"),
        (
            r#"{"cpus": []}"#,
            "`cpus` is []: expected null or a list of at least one CPU",
        ),
        (r#"{"status": 103}"#, "`status` is 103: expected 200 to 599"),
        (
            r#"{"error_every": 0}"#,
            "`error_every` is 0: expected null or at least 1",
        ),
        (
            r#"{"trailers": true}"#,
            "`trailers` is true: expected false, unless `framing` is \"chunked\"",
        ),
        (
            r#"{"write_gap_ns": 5}"#,
            "`write_gap_ns` is 5: expected 0, unless `write_bytes` is set",
        ),
        (
            r#"{"body": "", "reset_after": 7}"#,
            "`reset_after` is 7: expected null, unless the replies have a body of 2 bytes",
        ),
        (
            r#"{"framing": "close_delimited", "short_after": 7}"#,
            "`short_after` is 7: expected null, because `framing` is \"close_delimited\"",
        ),
        (
            r#"{"delay": {"kind": "bimodal", "low_ns": 1, "high_ns": 2, "high_share": 1.5, "seed": 3}}"#,
            "`delay.high_share` is 1.5: expected 0 to 1",
        ),
    ] {
        assert_eq!(Config::from_json(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    let error = Config::from_json(r#"{"thread": 2}"#).unwrap_err().to_string();
    assert!(error.contains("unknown field `thread`"), "{error}");
}

#[test]
fn another_machine_may_reach_it_only_when_allowed() {
    assert!(Config::from_json(r#"{"host": "0.0.0.0", "allow_non_loopback": true}"#).is_ok());
}
