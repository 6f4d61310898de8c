//! Starts the workers, reports their progress, and merges their results into one Recording.

use crate::clock::{Clock, Monotonic, NS_PER_S};
use crate::cpu;
use crate::error::Error;
use crate::record::generator::{Generator, Thread};
use crate::record::recorder::{
    raw_rows, seconds, Ledger, PathLedger, RawRows, Recorder, Seconds, StageLedger,
};
use crate::record::recording::{
    self, Answered, Completed, Connections, Engine, GroupRecord, LoopKind, RawLatencies, Recording,
    StreamTimes, Streams, Window,
};
use crate::socket::handshakes::Client;
use crate::socket::transport::Address;
use crate::socket::{self, Addresses, Driver, Epoll, Tls, Tunnel};
use crate::spec::requests::Book;
use crate::spec::{Pacing, Socket, Spec, Stop, Target, Wire};
use crate::wire::{FastCgi, Http1, Http2, Protocol, Rendered, Scgi, Sessions, Uwsgi};
use crate::worker::{
    margin, pacing_of, task, worker_count, Common, Gauges, Meter, Opening, Task, Times, Worker,
};
pub use event::Event;
use event::{LastSecond, Phase};
use limits::{ports, Limits};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::ToSocketAddrs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod event;
pub mod limits;

/// A handle to end a run from elsewhere; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    cancelled: AtomicBool,
    aborted: AtomicBool,
    addresses: Addresses,
}

impl Control {
    /// A handle for one run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the load now, and lets the run return what it has, marked as interrupted.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Ends the run now, without a result.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Relaxed);
        self.cancel();
    }

    /// New connections go to these hosts of the target in turn from now on; those that are open stay.
    ///
    /// # Errors
    /// [`Error::Resolve`] for a host without an address.
    pub fn connect_to<'h>(
        &self,
        target: &Target,
        hosts: impl Iterator<Item = &'h String>,
    ) -> Result<(), Error> {
        let resolved = |host: &'h String| Ok((host.clone(), resolve_one(target, host)?));
        self.0
            .addresses
            .set(hosts.map(resolved).collect::<Result<_, Error>>()?);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Relaxed)
    }

    /// Sleeps until then, or until the run is cancelled: a start that was agreed on may be seconds away.
    fn wait_until(&self, at_ns: u64) {
        while let Some(left_ns) = at_ns.checked_sub(Monotonic.now()).filter(|&left_ns| left_ns > 0) {
            if self.is_cancelled() {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left_ns).min(SLICE));
        }
    }
}

// The workers are created, pinned and have their memory before the schedule starts.
const LEAD_NS: u64 = 20_000_000;
const SLICE: Duration = Duration::from_millis(100);
const OPENING_SLICE: Duration = Duration::from_millis(5);
// Four times a second.
const PROGRESS_EVERY_NS: u64 = 250_000_000;

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

/// What a worker reports when its load is over: its number among all, and its Recording.
type Report = (usize, Result<Recording, Error>);

/// A worker seen from the coordinator.
struct Member {
    thread: JoinHandle<()>,
    gauges: Arc<Gauges>,
    ledger: Ledger,
}

/// The margin of each worker, measured on its CPU by all at once; empty where nobody spins.
fn spin_margins(spec: &Spec) -> Result<Vec<u64>, Error> {
    if pacing_of(spec) != Some(Pacing::Precise) {
        return Ok(Vec::new());
    }
    let each = |number| move || spin_margin(cpu_of(spec, number));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..worker_count(spec))
            .map(|number| scope.spawn(each(number)))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .map_err(|_| Error::Account("the thread that measures sleeps panicked".to_owned()))?
        });
        joined.collect()
    })
}

fn spin_margin(cpu: Option<usize>) -> Result<u64, Error> {
    settle(cpu)?;
    let mut driver = Epoll::idle().map_err(Error::io("creating an epoll instance"))?;
    margin::measured(&mut driver, &Monotonic).map_err(Error::io("measuring sleeps"))
}

/// The CPU of a worker; null: not pinned.
fn cpu_of(spec: &Spec, number: usize) -> Option<usize> {
    spec.cpus.as_ref().map(|cpus| cpus[number % cpus.len()])
}

/// Where and how precisely the calling thread runs.
fn settle(cpu: Option<usize>) -> Result<(), Error> {
    cpu::sharpen_timers();
    cpu.map_or(Ok(()), |cpu| {
        cpu::pin(cpu).map_err(Error::io("binding a worker to its CPU"))
    })
}

/// How the workers of a run reach the kernel.
trait Drive: Clone + Send + 'static {
    type Driver: Driver;

    /// Of the worker whose first slot is the `first` of all.
    fn driver(self, addresses: Addresses, first: usize) -> std::io::Result<Self::Driver>;
}

#[derive(Clone)]
struct Plain;

impl Drive for Plain {
    type Driver = Epoll;

    fn driver(self, addresses: Addresses, first: usize) -> std::io::Result<Epoll> {
        Epoll::to(addresses, first)
    }
}

impl Drive for Client {
    type Driver = Tls<Epoll>;

    fn driver(self, addresses: Addresses, first: usize) -> std::io::Result<Tls<Epoll>> {
        Ok(Tls::new(Epoll::to(addresses, first)?, self))
    }
}

/// With TLS through a proxy.
#[derive(Clone)]
struct Tunnelled {
    client: Client,
    asking: Vec<u8>,
}

impl Drive for Tunnelled {
    type Driver = Tls<Tunnel<Epoll>>;

    fn driver(self, addresses: Addresses, first: usize) -> std::io::Result<Self::Driver> {
        let sockets = Epoll::to(addresses, first)?;
        Ok(Tls::new(Tunnel::new(sockets, self.asking), self.client))
    }
}

/// How connections are made secure.
enum Security {
    None,
    Tls(Client),
    Tunnel(Tunnelled),
}

impl Security {
    fn of(target: &Target) -> Result<Self, Error> {
        let Some(asked) = &target.tls else {
            return Ok(Self::None);
        };
        let client = Client::new(target, asked)?;
        Ok(match &target.proxy {
            None => Self::Tls(client),
            Some(behind) => Self::Tunnel(Tunnelled {
                client,
                asking: behind.connect(),
            }),
        })
    }
}

/// With streams of HTTP/2 on its connections.
#[derive(Clone)]
struct Multiplexed<W> {
    inner: W,
    streams: usize,
}

impl<W> Multiplexed<W> {
    fn new(inner: W, spec: &Spec) -> Self {
        Self {
            inner,
            streams: spec.target.wire.streams(),
        }
    }
}

impl<W: Drive> Drive for Multiplexed<W> {
    type Driver = socket::Http2<W::Driver>;

    fn driver(self, addresses: Addresses, first: usize) -> std::io::Result<Self::Driver> {
        let inner = self.inner.driver(addresses, first)?;
        Ok(socket::Http2::new(inner, Monotonic, self.streams))
    }
}

fn start(crew: &Crew<'_>, security: Security, raw: Vec<RawRows>) -> Result<Vec<Member>, Error> {
    match crew.spec.target.wire {
        Wire::Http { .. } => match security {
            Security::None => crew.send::<Http1, _>(&Plain, raw),
            Security::Tls(client) => crew.send::<Http1, _>(&client, raw),
            Security::Tunnel(through) => crew.send::<Http1, _>(&through, raw),
        },
        Wire::Http2 { .. } => match security {
            Security::None => crew.send::<Http2, _>(&Multiplexed::new(Plain, crew.spec), raw),
            Security::Tls(client) => crew.send::<Http2, _>(&Multiplexed::new(client, crew.spec), raw),
            Security::Tunnel(through) => crew.send::<Http2, _>(&Multiplexed::new(through, crew.spec), raw),
        },
        Wire::Fastcgi {} => crew.send::<FastCgi, _>(&Plain, raw),
        Wire::Uwsgi { .. } => crew.send::<Uwsgi, _>(&Plain, raw),
        Wire::Scgi {} => crew.send::<Scgi, _>(&Plain, raw),
    }
}

/// What all workers have in common.
struct Crew<'r> {
    spec: &'r Spec,
    common: &'r Common,
    book: Option<Arc<Book>>,
    margins_ns: &'r [u64],
    control: &'r Control,
    report_to: Sender<Report>,
}

impl Crew<'_> {
    /// Starts the load of the one request, of a mix, or of a file, each rendered once for each group.
    fn send<P, W: Drive>(&self, drive: &W, raw: Vec<RawRows>) -> Result<Vec<Member>, Error>
    where
        P: Rendered + Clone + Send + Sync + 'static,
    {
        let groups = self.spec.requests_by_group();
        let groups = groups.iter().map(Vec::as_slice);
        match (&self.spec.workload.mix, &self.book) {
            (None, _) => {
                let body = self.spec.request_body()?;
                let one =
                    groups.map(|requests| P::rendered(&requests[0], body.as_deref(), &self.spec.target));
                self.start(&one.collect::<Result<Vec<P>, _>>()?, drive, raw)
            }
            (Some(mix), None) => {
                let mixed = groups.map(|requests| Sessions::<P>::of_mix(self.spec, mix, requests));
                self.start(&mixed.collect::<Result<Vec<_>, _>>()?, drive, raw)
            }
            (Some(mix), Some(book)) => {
                let of = |group| Sessions::<P>::of_book(self.spec, mix, Arc::clone(book), group);
                let sessions = match self.spec.workload.groups.as_slice() {
                    [] => vec![of(None)?],
                    groups => groups
                        .iter()
                        .map(|group| of(Some(group)))
                        .collect::<Result<_, _>>()?,
                };
                self.start(&sessions, drive, raw)
            }
        }
    }

    /// `protocols`: of each group. Each worker has one of the sides in `raw`, where there are any.
    fn start<P: Protocol + Clone + Send + 'static, W: Drive>(
        &self,
        protocols: &[P],
        drive: &W,
        raw: Vec<RawRows>,
    ) -> Result<Vec<Member>, Error> {
        let mut raw = raw.into_iter();
        (0..self.common.workers)
            .map(|number| {
                let mut own = protocols[self.common.group(number)].clone();
                own.take_share(self.common.share(number));
                self.member(own, drive.clone(), number, raw.next())
            })
            .collect()
    }

    fn member<P: Protocol + Send + 'static, W: Drive>(
        &self,
        protocol: P,
        drive: W,
        number: usize,
        raw: Option<RawRows>,
    ) -> Result<Member, Error> {
        let (series, ledger) = seconds(self.common.times.open_ns);
        let gauges = Arc::new(Gauges::default());
        let mut share = task(self.spec, self.common, number)?;
        if let Some(book) = &self.book {
            let (load, group) = (&self.spec.workload, self.common.group(number));
            let (group, keep_alive) = (load.groups.get(group), load.request.keep_alive);
            share.expect = share.expect.with_statuses(book.statuses());
            let redirects = share.redirects.take();
            share.redirects = redirects.map(|found| found.of_book(book, group, keep_alive));
        }
        share.spin_margin_ns = self.margins_ns.get(number).copied();
        let job = Job {
            spec: self.spec.clone(),
            task: share,
            protocol,
            drive,
            all_connections: self.common.connections,
            cpu: cpu_of(self.spec, number),
            series,
            raw,
            gauges: Arc::clone(&gauges),
            control: self.control.clone(),
        };
        let report_to = self.report_to.clone();
        let thread = std::thread::Builder::new()
            .name(format!("prony-worker-{number}"))
            .spawn(move || job.run(number, &report_to))
            .map_err(Error::io("starting a worker thread"))?;
        Ok(Member {
            thread,
            gauges,
            ledger,
        })
    }
}

/// What a worker thread gets.
struct Job<P, W> {
    spec: Spec,
    task: Task,
    protocol: P,
    drive: W,
    all_connections: usize,
    cpu: Option<usize>,
    series: Seconds,
    raw: Option<RawRows>,
    gauges: Arc<Gauges>,
    control: Control,
}

/// A worker that is done, and what it recorded.
type Loaded<P, W> = (Recording, Worker<P, <W as Drive>::Driver, Monotonic>);

/// Ends the load where its thread panics: the others would go on without it to the end.
struct Alarm(Control);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

impl<P: Protocol, W: Drive> Job<P, W> {
    /// Reports first and closes its connections then: to close one of 20,000 after the other takes as long as thousands of requests.
    fn run(self, number: usize, report_to: &Sender<Report>) {
        let others = self.control.clone();
        let _alarm = Alarm(self.control.clone());
        let (outcome, worker) = match self.load() {
            Ok((recording, worker)) => (Ok(recording), Some(worker)),
            Err(error) => (Err(error), None),
        };
        if outcome.is_err() {
            others.cancel();
        }
        // Nobody listens to a run that was aborted.
        let _ = report_to.send((number, outcome));
        drop(worker);
    }

    fn load(self) -> Result<Loaded<P, W>, Error> {
        self.settle()?;
        let source = self
            .task
            .group
            .and_then(|place| self.spec.workload.groups[place].source);
        let addresses = self.control.0.addresses.leaving_from(source);
        let driver = self
            .drive
            .driver(addresses.clone(), self.task.first)
            .map_err(Error::io("creating an epoll instance"))?;
        let (times, spin_margin_ns) = (self.task.times, self.task.spin_margin_ns);
        let group = self
            .task
            .group
            .map(|place| self.spec.workload.groups[place].name.clone());
        let connections = (self.task.connections / self.task.streams) as u64;
        let shape = &self.spec.workload.shape;
        let mut recorder = Recorder::new(shape.is_open(), self.series);
        recorder.raw = self.raw;
        recorder.stages = StageLedger::of(shape);
        recorder.paths = PathLedger::of(&self.spec.workload);
        let has_streams = matches!(self.spec.target.wire, Wire::Http2 { .. });
        recorder.streams = has_streams.then(|| StreamTimes::new(shape.is_open()));
        let agreed = self.spec.share.is_some();
        let mut worker = Worker::new(self.protocol, driver, Monotonic, self.task, recorder);
        let mut meter = Meter::of_this_thread();
        // The load begins for all workers at once.
        self.control.wait_until(times.epoch_ns);
        worker.recorder.start_late_ns = agreed.then(|| Monotonic.now().saturating_sub(times.epoch_ns));
        worker
            .run(&self.control.0.cancelled, &self.gauges, &mut meter)
            .map_err(Error::io("waiting for sockets"))?;
        let drained_ns = Monotonic.now();
        let thread = meter.thread(self.cpu, spin_margin_ns);
        worker.recorder.distributions.late_replies = meter.late_replies();
        let mut recording = report(self.spec, &mut worker, thread, drained_ns);
        recording.connections.by_address = by_address(&addresses, worker.opened_to());
        recording.groups = group
            .map(|name| GroupRecord {
                name,
                connections,
                account: recording.account.clone(),
                bytes: recording.bytes.clone(),
                distributions: recording.distributions.clone(),
            })
            .into_iter()
            .collect();
        Ok((recording, worker))
    }

    fn settle(&self) -> Result<(), Error> {
        if self.all_connections as u64 + cpu::SPARE_DESCRIPTORS > cpu::descriptor_limit() {
            // A table of its own doubles what the process may hold.
            cpu::own_descriptors().map_err(Error::io("giving a worker descriptors of its own"))?;
        }
        settle(self.cpu)
    }
}

/// One worker's Recording.
fn report<P: Protocol, D: Driver>(
    spec: Spec,
    worker: &mut Worker<P, D, Monotonic>,
    thread: Thread,
    drained_ns: u64,
) -> Recording {
    let answered = answered(worker.answered());
    let followed = std::mem::take(&mut worker.followed);
    let ends_connections =
        spec.workload.connection_requests.is_some() || spec.workload.connection_age_ns.is_some();
    let queue = worker.queue_figures();
    let has_plan = worker.has_plan();
    let redirected_to = worker.redirected_to();
    let tls = worker.handshakes();
    let figures = worker.stream_figures().unwrap_or_default();
    let by_count = matches!(spec.workload.stop, Stop::Requests { .. });
    let recorder = &mut worker.recorder;
    let open_ns = recorder.first_sent_ns.unwrap_or(u64::MAX);
    Recording {
        format: recording::FORMAT,
        engine: Engine {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            driver: D::NAME.to_owned(),
            threads: 1,
            pacing: pacing_of(&spec),
        },
        shape: if spec.workload.shape.is_open() {
            LoopKind::Open
        } else {
            LoopKind::Closed
        },
        spec,
        window: Window {
            open_ns,
            close_ns: recorder.last_ended_ns,
            drained_ns,
            open_unix_ns: u64::MAX,
            interrupted: false,
        },
        account: recorder.account.clone(),
        completed: completed(recorder, by_count),
        connections: Connections {
            opened: worker.counts.opened,
            reconnects: worker.counts.reconnects,
            connect_failures: worker.counts.failures,
            retried: worker.counts.retried,
            surplus: worker.counts.surplus,
            requests_sent: Some(worker.counts.requests_sent),
            added: has_plan.then_some(worker.counts.added),
            taken_away: has_plan.then_some(worker.counts.taken_away),
            retired: ends_connections.then_some(worker.counts.retired),
            by_address: BTreeMap::new(),
            answered,
        },
        bytes: recorder.bytes.clone(),
        queue,
        distributions: recorder.distributions.clone(),
        tls,
        streams: recorder.streams.take().map(|times| Streams::of(&times, figures)),
        series: recorder.seconds.finish(),
        raw_latencies: recorder.raw.take().map(|raw| RawLatencies {
            lost: raw.finish(),
            ..RawLatencies::default()
        }),
        stages: recorder
            .stages
            .take()
            .map_or_else(Vec::new, |stages| stages.records),
        paths: recorder.paths.take().map_or_else(Vec::new, |paths| paths.records),
        statuses: recorder.statuses.finish(),
        groups: Vec::new(),
        generator: Generator {
            sent_in_window: recorder.sent_in_window,
            start_late_ns: recorder.start_late_ns,
            threads: vec![thread],
            ..Generator::default()
        },
        little: recorder.little(),
        redirected_to,
        followed,
        error_samples: std::mem::take(&mut recorder.error_samples),
    }
}

/// The connections to each of several addresses; none where there is one.
fn by_address(addresses: &Addresses, opened: &[u64]) -> BTreeMap<String, u64> {
    let names = addresses.names();
    if names.len() == 1 {
        return BTreeMap::new();
    }
    names.into_iter().zip(opened.iter().copied()).collect()
}

/// A count's window is made of its own requests; a duration's takes whatever ends in it.
fn completed(recorder: &Recorder, by_count: bool) -> Completed {
    if by_count {
        Completed {
            ok: recorder.account.ok,
            failed: recorder.account.ended() - recorder.account.ok,
        }
    } else {
        recorder.completed
    }
}

fn answered(counts: impl Iterator<Item = u64>) -> Answered {
    let counts: Vec<u64> = counts.collect();
    Answered {
        connections: counts.len() as u64,
        without_reply: counts.iter().filter(|&&count| count == 0).count() as u64,
        min: counts.iter().copied().min().unwrap_or(0),
        max: counts.iter().copied().max().unwrap_or(0),
    }
}

/// Adds up the Recordings, in the order of the workers. A run that was cancelled leaves closing its connections to the threads.
fn collect(crew: Vec<Member>, mut outcomes: Vec<Report>, is_cancelled: bool) -> Result<Recording, Error> {
    let panicked = || Error::Account("a worker thread panicked".to_owned());
    let mut whole: Option<Recording> = None;
    outcomes.sort_by_key(|(number, _)| *number);
    for (number, member) in crew.into_iter().enumerate() {
        let place = outcomes.binary_search_by_key(&number, |(number, _)| *number);
        let mut own = outcomes.remove(place.map_err(|_| panicked())?).1?;
        if !is_cancelled {
            member.thread.join().map_err(|_| panicked())?;
        }
        member.ledger.fill(&mut own.series);
        match &mut whole {
            None => whole = Some(own),
            Some(whole) => whole.merge(&own),
        }
    }
    whole.ok_or_else(|| Error::Account("there was no worker".to_owned()))
}

/// The window of the whole run: by the plan where time ends it, by the first sending and the last end where a count does.
fn whole_window(measured: Window, spec: &Spec, times: Times, interrupted: bool) -> Window {
    let (open_ns, close_ns) = match spec.workload.stop {
        Stop::Duration { .. } if interrupted => (
            times.open_ns,
            measured.drained_ns.clamp(times.open_ns, times.close_ns),
        ),
        Stop::Duration { .. } => (times.open_ns, times.close_ns),
        Stop::Requests { .. } if measured.open_ns == u64::MAX => (times.open_ns, times.open_ns),
        Stop::Requests { .. } => (measured.open_ns, measured.close_ns.max(measured.open_ns)),
    };
    let wall_ns = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |wall| wall.as_nanos() as u64);
    let open_unix_ns = wall_ns.saturating_sub(Monotonic.now().saturating_sub(open_ns));
    Window {
        open_ns,
        close_ns,
        drained_ns: measured.drained_ns.max(close_ns),
        open_unix_ns,
        interrupted,
    }
}

/// Sends the events that are due, from the clock and the gauges.
struct Watch {
    times: Times,
    opening: Arc<Opening>,
    next_progress_ns: u64,
    opened: bool,
    closed: bool,
}

impl Watch {
    fn new(common: Common) -> Self {
        Self {
            times: common.times,
            opening: common.opening,
            next_progress_ns: 0,
            opened: false,
            closed: false,
        }
    }

    fn look(&mut self, crew: &[Member], on_event: &mut dyn FnMut(&Event)) {
        let now_ns = Monotonic.now();
        if let Some(open_ns) = self.opening.open_ns() {
            self.times = self.times.opening_at(open_ns);
        }
        if !self.opened && now_ns >= self.times.open_ns {
            self.opened = true;
            on_event(&Event::WindowOpen {
                monotonic_ns: self.times.open_ns,
            });
        }
        if !self.closed && now_ns >= self.times.close_ns {
            self.closed = true;
            on_event(&Event::WindowClose {
                monotonic_ns: self.times.close_ns,
            });
        }
        if now_ns >= self.next_progress_ns {
            self.next_progress_ns = now_ns + PROGRESS_EVERY_NS;
            on_event(&self.progress(crew, now_ns));
        }
    }

    /// To the next event, at most a slice.
    fn pause(&self) -> Duration {
        let now_ns = Monotonic.now();
        [self.times.open_ns, self.times.close_ns, self.next_progress_ns]
            .into_iter()
            .filter(|&at_ns| at_ns > now_ns)
            .map(|at_ns| Duration::from_nanos(at_ns - now_ns))
            .fold(self.longest_pause(), Duration::min)
    }

    /// Who follows the run wants to know of the opening before it comes, and that may be soon.
    fn longest_pause(&self) -> Duration {
        match self.opening.open_ns() {
            Some(_) => SLICE,
            None => OPENING_SLICE,
        }
    }

    /// A run that ended before its window opened has an empty one.
    fn times_after(&self, ended_ns: u64) -> Times {
        match self.opening.open_ns() {
            Some(open_ns) => self.times.opening_at(open_ns),
            None => self.times.opening_at(ended_ns),
        }
    }

    fn progress(&self, crew: &[Member], now_ns: u64) -> Event {
        let sum = |gauge: fn(&Gauges) -> &std::sync::atomic::AtomicU64| {
            crew.iter()
                .map(|member| gauge(&member.gauges).load(Ordering::Relaxed))
                .sum()
        };
        let (phase, since_ns) = match (self.opened, self.closed) {
            (false, _) if self.opening.open_ns().is_none() => (Phase::Opening, self.times.epoch_ns),
            (false, _) => (Phase::Warmup, self.opening.warm_up_from_ns(self.times.open_ns)),
            (true, false) => (Phase::Window, self.times.open_ns),
            (true, true) => (Phase::Drain, self.times.close_ns),
        };
        Event::Progress {
            phase,
            elapsed_ns: now_ns.saturating_sub(since_ns),
            ok: sum(|gauges| &gauges.ok),
            failed: sum(|gauges| &gauges.failed),
            in_flight: sum(|gauges| &gauges.in_flight),
            queued: sum(|gauges| &gauges.queued),
            connected: sum(|gauges| &gauges.connected),
            last_second: last_second(crew, now_ns.saturating_sub(self.times.open_ns)),
        }
    }

    /// A run that ends by count or by cancellation closes its window when it is over.
    fn finish(&mut self, window: &Window, on_event: &mut dyn FnMut(&Event)) {
        if !self.opened {
            on_event(&Event::WindowOpen {
                monotonic_ns: window.open_ns,
            });
        }
        if !self.closed {
            on_event(&Event::WindowClose {
                monotonic_ns: window.close_ns,
            });
        }
    }
}

// What is older says nothing about now.
const SHOWN_FOR_SECONDS: u64 = 3;

/// The latencies of the last second that any worker has ended, `elapsed_ns` after the opening.
fn last_second(crew: &[Member], elapsed_ns: u64) -> Option<LastSecond> {
    let latest = || crew.iter().filter_map(|member| member.ledger.latest());
    let second = latest().map(|one| one.second).max()?;
    let own = latest()
        .filter(|one| one.second == second)
        .map(|one| &*one.latency);
    (elapsed_ns / NS_PER_S <= second + SHOWN_FOR_SECONDS)
        .then(|| LastSecond::of(second, own))
        .flatten()
}

// More threads than any machine has CPUs for.
const MOST_WORKERS: usize = 256;

/// Whether workers can have so many descriptors that each of their connections has one.
fn check_descriptors(spec: &Spec) -> Result<(), Error> {
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
fn check_ports(spec: &Spec) -> Result<(), Error> {
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
fn check_sources(spec: &Spec) -> Result<(), Error> {
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

fn resolve_one(target: &Target, host: &str) -> Result<Address, Error> {
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
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

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
