//! Groups of users: who sends the requests of one load, each group with its share of it.

use super::typed;
use super::{require, require_time, Loop, Request, Spec, Stop};
use crate::error::Error;
use crate::spec::requests::{Kind, Part};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Users who are alike, such as those of one region.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// No two groups have the same.
    pub name: String,
    /// Its share of connections, requests and arrivals is this, divided by the sum of all weights.
    pub weight: f64,
    /// Of its requests: each in place of those of that name, or beside the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The address of this machine that its connections come from; null: the kernel chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// How much farther away it is: what the way to the server and back adds to the time of each request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ns: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

const GROUPS: &str = "workload.groups";
// Each has a thread and latencies of its own.
const MOST_GROUPS: usize = 32;
// A group of one user in a million would wait for its first request through a million of others.
const LEAST_SHARE: f64 = 1e-4;
const MOST_NAME_BYTES: usize = 60;

impl Group {
    /// Its request, where `request` is that of the load.
    pub fn asking(&self, request: &Request) -> Request {
        Request {
            headers: self.with_own(&request.headers, str::to_owned),
            ..request.clone()
        }
    }

    /// Its request, where `kind` is of a file.
    pub fn asking_kind(&self, kind: &Kind) -> Kind {
        Kind {
            headers: self.with_own(&kind.headers, |value| vec![Part::Text(value.to_owned())]),
            ..kind.clone()
        }
    }

    fn with_own<V: Clone>(&self, headers: &[(String, V)], of: impl Fn(&str) -> V) -> Vec<(String, V)> {
        let is_replaced = |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let kept = headers.iter().filter(|(name, _)| !is_replaced(name)).cloned();
        let own = self.headers.iter().map(|(name, value)| (name.clone(), of(value)));
        kept.chain(own).collect()
    }
}

impl Spec {
    /// The requests of each group, one of each path; of a load without groups those of its one part.
    pub fn requests_by_group(&self) -> Vec<Vec<Request>> {
        let requests = self.workload.requests();
        let of = |group: &Group| requests.iter().map(|request| group.asking(request)).collect();
        match self.workload.groups.as_slice() {
            [] => vec![requests],
            groups => groups.iter().map(of).collect(),
        }
    }

    /// The weights of the groups; of a load without groups that of its one part.
    pub fn weights(&self) -> Vec<f64> {
        match self.workload.groups.as_slice() {
            [] => vec![1.0],
            groups => groups.iter().map(|group| group.weight).collect(),
        }
    }

    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    pub(super) fn check_groups(&self) -> Result<(), Error> {
        let count = self.workload.groups.len();
        if count == 0 {
            return Ok(());
        }
        require(
            (2..=MOST_GROUPS).contains(&count),
            GROUPS,
            count,
            "2 to 32 groups",
        )?;
        for (place, group) in self.workload.groups.iter().enumerate() {
            self.check_group(group)?;
            let is_new = self.workload.groups[..place]
                .iter()
                .all(|other| other.name != group.name);
            require(is_new, "workload.groups.name", &group.name, "each name once")?;
        }
        self.check_portions()?;
        let load = &self.workload;
        let has_stages = matches!(&load.shape, Loop::Closed { stages, .. } if !stages.is_empty());
        require(
            !has_stages,
            "workload.loop.stages",
            "connections",
            "none with groups",
        )?;
        require(self.share.is_none(), "share", "...", "null with groups")
    }

    fn check_group(&self, group: &Group) -> Result<(), Error> {
        let (name, load) = (&group.name, &self.workload);
        let fits = (1..=MOST_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control);
        require(fits, "workload.groups.name", name, "1 to 60 bytes on one line")?;
        let whole: f64 = self.workload.groups.iter().map(|one| one.weight).sum();
        let fits = group.weight > 0.0 && group.weight / whole >= LEAST_SHARE;
        require(
            fits,
            "workload.groups.weight",
            group.weight,
            "at least a 10,000th of all weights",
        )?;
        if group.delay_ns > 0 {
            require_time("workload.groups.delay_ns", group.delay_ns)?;
        }
        let fits = group.delay_ns < load.timeout_ns;
        require(
            fits,
            "workload.groups.delay_ns",
            group.delay_ns,
            "less than `workload.timeout_ns`",
        )?;
        let asked = group.asking(&load.request);
        asked.check()?;
        let body_bytes = asked.decoded_body()?.map_or(0, |body| body.len());
        typed::check(&asked, body_bytes, self.target.wire)
    }

    /// Each group has something to do.
    fn check_portions(&self) -> Result<(), Error> {
        let of = |whole: u64| dealt(&self.weights(), whole).into_iter().min();
        let connections = self.workload.shape.connections().map(|whole| whole as u64);
        let requests = match self.workload.stop {
            Stop::Requests { requests } => Some(requests),
            Stop::Duration { .. } => None,
        };
        for (field, whole, what) in [
            ("workload.loop.connections", connections, "connection"),
            ("workload.stop.requests", requests, "request"),
        ] {
            if let Some(whole) = whole {
                let fits = of(whole) != Some(0);
                let expected = format!("at least one {what} for each group, by its share");
                require(fits, field, whole, &expected)?;
            }
        }
        Ok(())
    }
}

/// A whole number dealt out by weights: each has its exact share or one of the two numbers beside it, and all together are the whole.
///
/// *Source*: the method of largest remainders (Hamilton, 1792); of equal remainders the first one comes first.
pub fn dealt(weights: &[f64], whole: u64) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    let exact = weights.iter().map(|weight| weight / sum * whole as f64);
    let exact: Vec<f64> = exact.collect();
    let mut portions: Vec<u64> = exact.iter().map(|share| share.floor() as u64).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = whole.saturating_sub(portions.iter().sum());
    for &place in order.iter().cycle().take(left as usize) {
        portions[place] += 1;
    }
    portions
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn portions_are_the_shares_and_the_largest_remainders_are_rounded_up() {
        assert_eq!(dealt(&[50.0, 30.0, 20.0], 10), [5, 3, 2]);
        assert_eq!(dealt(&[1.0, 1.0, 1.0], 10), [4, 3, 3]);
        assert_eq!(
            dealt(&[0.47, 0.16, 0.158, 0.12, 0.061, 0.031], 10),
            [5, 2, 1, 1, 1, 0]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn portions_make_up_the_whole_and_none_is_one_off_its_share(weights in proptest::collection::vec(1e-3f64..1e3, 1..33), whole in 0u64..10_000_000_000) {
            let (portions, sum) = (dealt(&weights, whole), weights.iter().sum::<f64>());
            prop_assert_eq!(portions.iter().sum::<u64>(), whole);
            for (portion, weight) in portions.iter().zip(&weights) {
                let share = weight / sum * whole as f64;
                prop_assert!((*portion as f64 - share).abs() <= 1.0, "{portion} {share}");
            }
        }
    }

    fn spec(groups: serde_json::Value, load: &[(&str, serde_json::Value)]) -> Result<Spec, Error> {
        let mut spec = serde_json::json!({
            "target": {"host": "127.0.0.1", "port": 80},
            "workload": {
                "loop": {"kind": "closed", "connections": 10}, "stop": {"kind": "requests", "requests": 20},
                "warmup_ns": 0, "timeout_ns": 1_000, "grace_ns": 0,
                "request": {"method": "GET", "path": "/", "headers": [["accept", "a"], ["X", "y"]], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": 1, "cpus": null, "pacing": "economical"
        });
        spec["workload"]["groups"] = groups;
        for (field, value) in load {
            spec["workload"][field] = value.clone();
        }
        Spec::from_json(&spec.to_string())
    }

    #[test]
    fn a_header_of_a_group_takes_the_place_of_that_of_all() {
        let groups = serde_json::json!([{"name": "a", "weight": 1, "headers": [["Accept", "b"]]}, {"name": "b", "weight": 1}]);
        let spec = spec(groups, &[]).unwrap();
        let of = |place: usize| spec.workload.groups[place].asking(&spec.workload.request).headers;
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of(0), [own("X", "y"), own("Accept", "b")]);
        assert_eq!(of(1), spec.workload.request.headers);
    }

    #[test]
    fn what_is_wrong_with_groups_is_named_with_its_value() {
        let two = |first: serde_json::Value| serde_json::json!([first, {"name": "b", "weight": 1}]);
        let a = || serde_json::json!({"name": "a", "weight": 1});
        let cases = [
            (
                serde_json::json!([a()]),
                vec![],
                "`workload.groups` is `1`; expected 2 to 32 groups",
            ),
            (
                two(serde_json::json!({"name": "b", "weight": 1})),
                vec![],
                "`workload.groups.name` is `b`; expected each name once",
            ),
            (
                two(serde_json::json!({"name": "", "weight": 1})),
                vec![],
                "`workload.groups.name` is ``; expected 1 to 60 bytes",
            ),
            (
                two(serde_json::json!({"name": "a", "weight": -1})),
                vec![],
                "`workload.groups.weight` is `-1`",
            ),
            (
                two(serde_json::json!({"name": "a", "weight": 1e5})),
                vec![],
                "`workload.groups.weight` is `1`; expected at least a 10,000th",
            ),
            (
                two(serde_json::json!({"name": "a", "weight": 1, "delay_ns": 1000})),
                vec![],
                "`workload.groups.delay_ns` is `1000`; expected less than",
            ),
            (
                two(serde_json::json!({"name": "a", "weight": 1, "headers": [["Expect", "x"]]})),
                vec![],
                "has `expect: x`; expected none of that name",
            ),
            (
                two(serde_json::json!({"name": "a", "weight": 1, "source": "here"})),
                vec![],
                "invalid IP address",
            ),
            (
                two(serde_json::json!({"name": "a", "weight": 21})),
                vec![],
                "`workload.loop.connections` is `10`; expected at least one connection for each group",
            ),
            (
                two(serde_json::json!({"name": "a", "weight": 9})),
                vec![("stop", serde_json::json!({"kind": "requests", "requests": 4}))],
                "`workload.stop.requests` is `4`; expected at least one request",
            ),
        ];
        for (groups, load, expected) in cases {
            let message = spec(groups, &load).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
