//! How many connections a run may have at once: what it asks for, and what this machine allows.

use crate::cpu;
use crate::error::Error;
use crate::socket::transport::Address;
use crate::spec::{Loop, Socket, Spec, Target};
use crate::worker::{worker_count, worker_counts};
use serde::Serialize;
use std::net::ToSocketAddrs;

/// What sets a number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// It was asked for.
    Asked,
    /// So many requests can be under way before the first of them times out.
    TimeOut,
    /// The descriptors of the workers' tables.
    Descriptors,
    /// The ports of this machine's one address towards the target.
    Ports,
    /// The memory that is free.
    Memory,
}

/// A number of connections, and what sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// At most so many at once.
    pub connections: usize,
    /// Why not more.
    pub by: Bound,
}

/// The limit of a run, and that of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Exactly so many (closed loop), or at most (open loop).
    pub run: Limit,
    /// The most that this machine allows; null: nothing known limits it.
    pub machine: Option<Limit>,
}

impl Limits {
    /// Of a run to `address`, on this machine as it is now.
    pub fn of(spec: &Spec, address: &Address) -> Self {
        let machine = ceilings(spec, address)
            .into_iter()
            .flatten()
            .min_by_key(|limit| limit.connections);
        let run = match spec.own_connections() {
            Some(connections) => Limit {
                connections,
                by: Bound::Asked,
            },
            None => within(needed(spec), machine),
        };
        Self { run, machine }
    }
}

fn within(limit: Limit, machine: Option<Limit>) -> Limit {
    match machine {
        Some(machine) if machine.connections < limit.connections => Limit {
            connections: machine.connections.max(1),
            ..machine
        },
        _ => limit,
    }
}

/// So many that no request of an open loop ever waits for another one's end: each is over by its time-out, counted from when it was due.
/// The workers' shares have room for six standard deviations of Poisson arrivals each.
fn needed(spec: &Spec) -> Limit {
    let Loop::Open { rate_per_s, .. } = spec.workload.shape else {
        return Limit {
            connections: 1,
            by: Bound::TimeOut,
        };
    };
    let rate_per_s = rate_per_s / spec.part().workers as f64;
    let load = &spec.workload;
    let longest_ns = load.timeout_ns + load.connect_timeout_ns.unwrap_or(0);
    let (weights, streams) = (spec.weights(), spec.target.wire.streams() as f64);
    let whole: f64 = weights.iter().sum();
    // Connections are dealt out by the shares: so many that each group has enough.
    let of_group = |(weight, workers): (&f64, usize)| {
        let (share, workers) = (weight / whole, workers as f64);
        let each = share * rate_per_s * longest_ns as f64 / 1e9 / workers;
        // Workers share no connection, however many streams one has.
        let of_each = (each + 6.0 * each.sqrt() + 4.0) / streams;
        (workers * of_each.ceil() / share).ceil()
    };
    let connections = weights.iter().zip(worker_counts(spec)).map(of_group);
    Limit {
        connections: connections.fold(1.0, f64::max).min(MOST) as usize,
        by: Bound::TimeOut,
    }
}

// A slot's number has 32 bits where the kernel keeps it.
const MOST: f64 = 4e9;

fn ceilings(spec: &Spec, address: &Address) -> [Option<Limit>; 3] {
    let limit = |connections: u64, by| Limit {
        connections: usize::try_from(connections).unwrap_or(usize::MAX),
        by,
    };
    // A worker whose connections exceed one table has a table of its own.
    let each = cpu::descriptor_limit().saturating_sub(cpu::SPARE_DESCRIPTORS);
    let descriptors = each.saturating_mul(worker_count(spec) as u64);
    let has_one_address = spec.target.socket == Socket::Tcp && !address.is_ipv4_loopback();
    [
        Some(limit(descriptors, Bound::Descriptors)),
        ports()
            .filter(|_| has_one_address)
            .map(|count| limit(count, Bound::Ports)),
        available_memory_bytes().map(|bytes| limit(bytes / 2 / bytes_per_connection(spec), Bound::Memory)),
    ]
}

fn bytes_per_connection(spec: &Spec) -> u64 {
    BYTES_PER_CONNECTION + spec.target.tls.as_ref().map_or(0, |_| BYTES_PER_SESSION)
}

// Both ends of a connection that waits: two sockets with their files (4 to 10 kB were measured for both), and a slot.
const BYTES_PER_CONNECTION: u64 = 16 * 1024;
// Of TLS, both ends: 8 kB each were measured.
const BYTES_PER_SESSION: u64 = 16 * 1024;

/// The ports of one address towards one server; null: not known.
pub fn ports() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    (high >= low).then(|| high - low + 1)
}

fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

// More threads than any machine has CPUs for.
pub(super) const MOST_WORKERS: usize = 256;

/// Whether workers can have so many descriptors that each of their connections has one.
pub(super) fn check_descriptors(spec: &Spec) -> Result<(), Error> {
    let limit = cpu::descriptor_limit();
    let each = limit.saturating_sub(cpu::SPARE_DESCRIPTORS) as usize;
    let (most, asked) = (each * MOST_WORKERS, spec.own_connections().unwrap_or(1));
    if asked <= most {
        return Ok(());
    }
    Err(Error::InvalidSpec(format!(
        "`workload.loop.connections` is `{asked}`; expected at most {most}: this process may have {limit} descriptors (`ulimit -Hn`)"
    )))
}

/// Whether connections have ports: over IPv4 loopback they come from many addresses, else each address of the target has those of one.
pub(super) fn check_ports(spec: &Spec) -> Result<(), Error> {
    let has_sources = spec.workload.groups.iter().any(|group| group.source.is_some());
    let (Some(asked), Some(ports)) = (spec.own_connections(), ports()) else {
        return Ok(());
    };
    if asked as u64 <= ports || has_sources || spec.target.socket == Socket::Unix {
        return Ok(());
    }
    let hosts = spec.target.hosts();
    let found: Result<Vec<_>, Error> = hosts.map(|host| resolve_one(&spec.target, host)).collect();
    let found = found?;
    let most = ports.saturating_mul(found.len() as u64);
    if asked as u64 <= most || found.iter().any(Address::is_ipv4_loopback) {
        return Ok(());
    }
    Err(Error::InvalidSpec(format!(
        "`workload.loop.connections` is `{asked}`; expected at most {most}: so many ports this machine has towards {} \
         (`net.ipv4.ip_local_port_range`)",
        spec.target.host
    )))
}

/// Refuses a group whose source is no address of this machine that reaches the target.
pub(super) fn check_sources(spec: &Spec) -> Result<(), Error> {
    for source in spec.workload.groups.iter().filter_map(|group| group.source) {
        for host in spec.target.hosts() {
            resolve_one(&spec.target, host)?.check_source(source).map_err(|error| {
                Error::InvalidSpec(format!(
                    "`workload.groups.source` is `{source}`; expected an address of this machine that reaches the target: {error}"
                ))
            })?;
        }
    }
    Ok(())
}

pub(super) fn resolve_one(target: &Target, host: &str) -> Result<Address, Error> {
    let failed = |reason: String| Error::Resolve {
        host: host.to_owned(),
        reason,
    };
    if target.socket == Socket::Unix {
        return Address::unix(host).map_err(|error| failed(error.to_string()));
    }
    let mut addresses = (host, target.port)
        .to_socket_addrs()
        .map_err(|error| failed(error.to_string()))?;
    addresses
        .next()
        .map(Address::from)
        .ok_or_else(|| failed("the name has none".to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::SocketAddr;

    fn spec(rate_per_s: f64, timeout_s: u64, connections: Option<usize>, threads: usize) -> Spec {
        let spec = serde_json::json!({
            "target": {"host": "127.0.0.1", "port": 80},
            "workload": {
                "loop": {"kind": "open", "rate_per_s": rate_per_s, "arrivals": "constant", "seed": 1, "connections": connections},
                "stop": {"kind": "duration", "duration_ns": 1_000_000_000},
                "warmup_ns": 0, "timeout_ns": timeout_s * 1_000_000_000, "grace_ns": 0,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": threads, "cpus": null, "pacing": "precise"
        });
        Spec::from_json(&spec.to_string()).unwrap()
    }

    fn of(spec: &Spec, target: &str) -> Limits {
        let target: SocketAddr = target.parse().unwrap();
        Limits::of(spec, &Address::from(target))
    }

    #[test]
    fn all_that_may_be_outstanding_fits() {
        for (threads, most) in [(1, 1100), (2, 1200)] {
            let limit = of(&spec(100.0, 9, None, threads), "127.0.0.1:80").run;
            assert_eq!(limit.by, Bound::TimeOut);
            assert!((900..most).contains(&limit.connections), "{limit:?}");
        }
    }

    #[test]
    fn each_worker_has_a_connection_of_its_own_however_many_streams_it_has() {
        for (threads, streams) in [(1, 1000), (2, 100), (3, 7), (8, 1000)] {
            let mut spec = spec(100.0, 9, None, threads);
            spec.target.wire = crate::spec::Wire::Http2 { streams };
            let limit = of(&spec, "127.0.0.1:80").run;
            let common = crate::worker::Common::new(&spec, 0, limit.connections);
            let places = |worker| crate::worker::task(&spec, &common, worker).unwrap().connections;
            // So many may be outstanding of those that are due at it.
            let least = 900_usize.div_ceil(threads);
            assert!((0..threads).all(|worker| places(worker) >= least), "{limit:?}");
        }
    }

    #[test]
    fn what_is_asked_for_is_taken_and_what_the_machine_allows_is_said_beside_it() {
        let found = of(&spec(1e6, 60, Some(7), 1), "127.0.0.1:80");
        assert_eq!((found.run.connections, found.run.by), (7, Bound::Asked));
        assert!(found.machine.unwrap().connections > 7);
    }

    #[test]
    fn there_are_as_many_workers_as_tables_of_descriptors_are_needed() {
        let each = (cpu::descriptor_limit() - cpu::SPARE_DESCRIPTORS) as usize;
        for (connections, workers) in [(each, 1), (each + 1, 2), (2 * each + 1, 3)] {
            let spec = spec(1e6, 60, Some(connections), 1);
            assert_eq!(worker_count(&spec), workers);
            let allowed = ceilings(&spec, &Address::from(SocketAddr::from(([127, 0, 0, 1], 80))))[0];
            assert!(allowed.unwrap().connections >= connections);
        }
    }

    #[test]
    fn a_machine_that_allows_none_is_tried_with_one() {
        let limit = |connections, by| Limit { connections, by };
        let found = within(limit(7, Bound::TimeOut), Some(limit(0, Bound::Memory)));
        assert_eq!(found, limit(1, Bound::Memory));
    }

    #[test]
    fn with_tls_the_memory_is_enough_for_half_as_many() {
        let plain = spec(100.0, 9, None, 1);
        let mut secure = plain.clone();
        secure.target.tls = Some(crate::spec::TlsSpec::default());
        assert_eq!(bytes_per_connection(&secure), 2 * bytes_per_connection(&plain));
    }

    #[test]
    fn a_rate_beyond_the_machine_ends_at_what_the_machine_allows() {
        let found = of(&spec(1e9, 3600, None, 2), "127.0.0.1:80");
        assert_eq!(Some(found.run), found.machine);
        // Over a network there is one address with its ports.
        let over_a_network = of(&spec(1e9, 3600, None, 64), "192.0.2.1:80").machine.unwrap();
        assert!(over_a_network.connections as u64 <= ports().unwrap());
    }
}
