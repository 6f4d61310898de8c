//! Starts the workers, reports their progress, and merges their results into one Recording.

use crate::clock::{Clock, Monotonic};
use crate::cpu;
use crate::error::Error;
use crate::record::recorder::raw_rows;
use crate::record::recording::Recording;
use crate::spec::requests::Book;
use crate::spec::Spec;
use crate::worker::Common;
use std::fs::File;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::Arc;
mod control;
mod crew;
mod event;
pub mod limits;
mod merge;
mod progress;

pub use control::Control;
use crew::{collect, spin_margins, start, Crew, Member, Report, Security};
pub use event::Event;
use limits::{check_descriptors, check_ports, check_sources, resolve_one, Limits};
use merge::whole_window;
use progress::Watch;

// The workers are created, pinned and have their memory before the schedule starts.
const LEAD_NS: u64 = 20_000_000;

/// Runs a load; `on_event` receives the events.
///
/// # Errors
/// See [`Error`]. Failed requests are not errors: they are in the account.
pub fn run(spec: &Spec, control: &Control, on_event: &mut dyn FnMut(&Event)) -> Result<Recording, Error> {
    run_with(spec, control, Files::default(), on_event, &mut || {})
}

/// The open files beside a specification.
#[derive(Debug, Default)]
pub struct Files {
    /// Each request of the window becomes a row of it, while the load runs.
    pub latencies: Option<File>,
    /// The requests, where `workload.mix.file` asks for it.
    pub requests: Option<File>,
}

/// As [`run`], with files. `on_slice` is called at least every 100 ms on the calling thread, so that a host program can look at its signals.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    spec: &Spec,
    control: &Control,
    files: Files,
    on_event: &mut dyn FnMut(&Event),
    on_slice: &mut dyn FnMut(),
) -> Result<Recording, Error> {
    let book = book(spec, files.requests)?;
    control.connect_to(&spec.target, spec.target.hosts())?;
    check_sources(spec)?;
    cpu::raise_descriptor_limit();
    check_descriptors(spec)?;
    check_ports(spec)?;
    let limits = Limits::of(spec, &resolve_one(&spec.target, &spec.target.host)?);
    on_event(&Event::Started {
        limit: limits.run,
        machine: limits.machine,
    });
    let security = Security::of(&spec.target)?;
    let margins_ns = spin_margins(spec)?;
    let common = Common::new(spec, start_of(spec), limits.run.connections);
    let (writer, sides) = match files.latencies {
        Some(file) => {
            let starting = Error::io("starting the writer of latencies");
            let (writer, sides) = raw_rows(file, common.workers).map_err(starting)?;
            (Some(writer), sides)
        }
        None => (None, Vec::new()),
    };
    let (report_to, reports) = mpsc::channel();
    // A worker that runs already must not go on without the others.
    let crew = Crew {
        spec,
        common: &common,
        book,
        margins_ns: &margins_ns,
        control,
        report_to,
    };
    let crew = started(crew, |crew| start(crew, security, sides))?;
    let mut watch = Watch::new(common);
    let (crew, outcomes) = followed(crew, &reports, &mut watch, on_event, || {
        on_slice();
        control.is_aborted()
    })?;
    let mut recording = collect(crew, outcomes, control.is_cancelled())?;
    if let Some(writer) = writer {
        let lost = recording.raw_latencies.map_or(0, |found| found.lost);
        recording.raw_latencies = Some(writer.finish(lost));
    }
    let times = watch.times_after(recording.window.drained_ns);
    recording.window = whole_window(recording.window, spec, times, control.is_cancelled());
    watch.finish(&recording.window, on_event);
    recording.finish()?;
    Ok(recording)
}

/// The requests of a load that has them in a file.
fn book(spec: &Spec, file: Option<File>) -> Result<Option<Arc<Book>>, Error> {
    match (spec.workload.request_file(), file) {
        (None, _) => Ok(None),
        (Some(asked), Some(mut file)) => Book::read(&mut file, asked).map(|book| Some(Arc::new(book))),
        (Some(asked), None) => Err(Error::InvalidSpec(format!(
            "`workload.mix.file` is `{}`; expected that file beside the specification",
            asked.sha256
        ))),
    }
}

/// Starts the workers, which alone can report from then on: so it is known when one has ended without.
fn started(
    crew: Crew<'_>,
    start: impl FnOnce(&Crew<'_>) -> Result<Vec<Member>, Error>,
) -> Result<Vec<Member>, Error> {
    start(&crew).inspect_err(|_| crew.control.cancel())
}

/// Reports the load's progress until each worker has reported, or ended without. `is_over` is called at least every 100 ms.
fn followed(
    mut crew: Vec<Member>,
    reports: &Receiver<Report>,
    watch: &mut Watch,
    on_event: &mut dyn FnMut(&Event),
    mut is_over: impl FnMut() -> bool,
) -> Result<(Vec<Member>, Vec<Report>), Error> {
    let mut outcomes = Vec::with_capacity(crew.len());
    while outcomes.len() < crew.len() {
        watch.look(&crew, on_event);
        match reports.recv_timeout(watch.pause()) {
            Ok(outcome) => outcomes.push(outcome),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        crew.iter_mut().for_each(|member| member.ledger.collect());
        if is_over() {
            return Err(Error::Aborted);
        }
    }
    watch.look(&crew, on_event);
    Ok((crew, outcomes))
}

/// When the schedule starts: as agreed with other generators, else as soon as the workers are ready.
fn start_of(spec: &Spec) -> u64 {
    let agreed_ns = spec.share.and_then(|part| part.start_ns);
    agreed_ns.unwrap_or_else(|| Monotonic.now() + LEAD_NS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::crew::Alarm;
    use super::*;
    use crate::record::recorder::seconds;

    fn spec() -> Spec {
        let text = r#"{
            "target": {"host": "127.0.0.1", "port": 1, "tls": null},
            "workload": {
                "loop": {"kind": "closed", "connections": 2},
                "stop": {"kind": "duration", "duration_ns": 3600000000000},
                "warmup_ns": 0, "timeout_ns": 1000000000, "grace_ns": 0,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": 200, "body": null}
            },
            "threads": 2, "cpus": null, "pacing": "precise"
        }"#;
        Spec::from_json(text).unwrap()
    }

    fn member(work: impl FnOnce() + Send + 'static) -> Member {
        let (_, ledger) = seconds(0);
        Member {
            thread: std::thread::spawn(work),
            gauges: Arc::default(),
            ledger,
        }
    }

    /// A load of an hour, of which one worker panics at once.
    #[test]
    fn a_worker_that_panics_ends_the_load() {
        let (spec, control) = (spec(), Control::new());
        let common = Common::new(&spec, Monotonic.now(), 2);
        let (report_to, reports) = mpsc::channel();
        let crew = Crew {
            book: None,
            spec: &spec,
            common: &common,
            margins_ns: &[],
            control: &control,
            report_to,
        };
        let crew = started(crew, |crew| {
            let (alarm, others) = (Alarm(control.clone()), control.clone());
            let (mine, yours) = (crew.report_to.clone(), crew.report_to.clone());
            let panicking = move || {
                let _own = (alarm, mine);
                panic!("as planned");
            };
            let working = move || {
                others.wait_until(u64::MAX);
                let _ = yours.send((1, Err(Error::Aborted)));
            };
            Ok(vec![member(panicking), member(working)])
        })
        .unwrap();
        let mut watch = Watch::new(common);
        let (crew, outcomes) = followed(crew, &reports, &mut watch, &mut |_| {}, || false).unwrap();
        assert_eq!(outcomes.len(), 1);
        let error = collect(crew, outcomes, true).unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
