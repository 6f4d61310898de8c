//! The workers of a run: each a thread, with its driver, until it has reported.

use super::control::Control;
use super::merge::{by_address, report};

use crate::clock::{Clock, Monotonic};
use crate::cpu;
use crate::error::Error;
use crate::record::recorder::{seconds, Ledger, PathLedger, RawRows, Recorder, Seconds, StageLedger};
use crate::record::recording::{GroupRecord, Recording, StreamTimes};
use crate::socket::handshakes::Client;
use crate::socket::{self, Addresses, Epoll, Tls, Tunnel};
use crate::spec::requests::Book;
use crate::spec::{Pacing, Spec, Target, Wire};
use crate::wire::{FastCgi, Http1, Http2, Protocol, Rendered, Scgi, Sessions, Uwsgi};
use crate::worker::{margin, pacing_of, task, worker_count, Common, Gauges, Meter, Task, Worker};
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What a worker reports when its load is over: its number among all, and its Recording.
pub(super) type Report = (usize, Result<Recording, Error>);

/// A worker seen from the coordinator.
pub(super) struct Member {
    pub(super) thread: JoinHandle<()>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) ledger: Ledger,
}

/// The margin of each worker, measured on its CPU by all at once; empty where nobody spins.
pub(super) fn spin_margins(spec: &Spec) -> Result<Vec<u64>, Error> {
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

pub(super) fn spin_margin(cpu: Option<usize>) -> Result<u64, Error> {
    settle(cpu)?;
    let mut driver = Epoll::idle().map_err(Error::io("creating an epoll instance"))?;
    margin::measured(&mut driver, &Monotonic).map_err(Error::io("measuring sleeps"))
}

/// The CPU of a worker; null: not pinned.
pub(super) fn cpu_of(spec: &Spec, number: usize) -> Option<usize> {
    spec.cpus.as_ref().map(|cpus| cpus[number % cpus.len()])
}

/// Where and how precisely the calling thread runs.
pub(super) fn settle(cpu: Option<usize>) -> Result<(), Error> {
    cpu::sharpen_timers();
    cpu.map_or(Ok(()), |cpu| {
        cpu::pin(cpu).map_err(Error::io("binding a worker to its CPU"))
    })
}

/// How the workers of a run reach the kernel.
pub(super) trait Drive: Clone + Send + 'static {
    type Driver: socket::Streams;

    /// Of the worker whose first slot is the `first` of all.
    fn driver(self, addresses: Addresses, first: usize) -> std::io::Result<Self::Driver>;
}

#[derive(Clone)]
pub(super) struct Plain;

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
pub(super) struct Tunnelled {
    pub(super) client: Client,
    pub(super) asking: Vec<u8>,
}

impl Drive for Tunnelled {
    type Driver = Tls<Tunnel<Epoll>>;

    fn driver(self, addresses: Addresses, first: usize) -> std::io::Result<Self::Driver> {
        let sockets = Epoll::to(addresses, first)?;
        Ok(Tls::new(Tunnel::new(sockets, self.asking), self.client))
    }
}

/// How connections are made secure.
pub(super) enum Security {
    None,
    Tls(Client),
    Tunnel(Tunnelled),
}

impl Security {
    pub(super) fn of(target: &Target) -> Result<Self, Error> {
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
pub(super) struct Multiplexed<W> {
    pub(super) inner: W,
    pub(super) streams: usize,
}

impl<W> Multiplexed<W> {
    pub(super) fn new(inner: W, spec: &Spec) -> Self {
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

pub(super) fn start(crew: &Crew<'_>, security: Security, raw: Vec<RawRows>) -> Result<Vec<Member>, Error> {
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
pub(super) struct Crew<'r> {
    pub(super) spec: &'r Spec,
    pub(super) common: &'r Common,
    pub(super) book: Option<Arc<Book>>,
    pub(super) margins_ns: &'r [u64],
    pub(super) control: &'r Control,
    pub(super) report_to: Sender<Report>,
}

impl Crew<'_> {
    /// Starts the load of the one request, of a mix, or of a file, each rendered once for each group.
    pub(super) fn send<P, W: Drive>(&self, drive: &W, raw: Vec<RawRows>) -> Result<Vec<Member>, Error>
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
    pub(super) fn start<P: Protocol + Clone + Send + 'static, W: Drive>(
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

    pub(super) fn member<P: Protocol + Send + 'static, W: Drive>(
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
pub(super) struct Job<P, W> {
    pub(super) spec: Spec,
    pub(super) task: Task,
    pub(super) protocol: P,
    pub(super) drive: W,
    pub(super) all_connections: usize,
    pub(super) cpu: Option<usize>,
    pub(super) series: Seconds,
    pub(super) raw: Option<RawRows>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) control: Control,
}

/// A worker that is done, and what it recorded.
pub(super) type Loaded<P, W> = (Recording, Worker<P, <W as Drive>::Driver, Monotonic>);

/// Ends the load where its thread panics: the others would go on without it to the end.
pub(super) struct Alarm(pub(super) Control);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

impl<P: Protocol, W: Drive> Job<P, W> {
    /// Reports first and closes its connections then: to close one of 20,000 after the other takes as long as thousands of requests.
    pub(super) fn run(self, number: usize, report_to: &Sender<Report>) {
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

    pub(super) fn load(self) -> Result<Loaded<P, W>, Error> {
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

    pub(super) fn settle(&self) -> Result<(), Error> {
        if self.all_connections as u64 + cpu::SPARE_DESCRIPTORS > cpu::descriptor_limit() {
            // A table of its own doubles what the process may hold.
            cpu::own_descriptors().map_err(Error::io("giving a worker descriptors of its own"))?;
        }
        settle(self.cpu)
    }
}

/// Adds up the Recordings, in the order of the workers. A run that was cancelled leaves closing its connections to the threads.
pub(super) fn collect(
    crew: Vec<Member>,
    mut outcomes: Vec<Report>,
    is_cancelled: bool,
) -> Result<Recording, Error> {
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
