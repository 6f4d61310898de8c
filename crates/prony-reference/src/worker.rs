//! One thread's event loop.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;

use crate::channel::Channel;
use crate::connection::{Connection, Life};
use crate::connections::Connections;
use crate::counts::Counts;
use crate::desk::{Desk, Shared};
use crate::system::{accept, wait_readable, Bell, Event, Events, Poller, READABLE};

/// Tokens that no connection can have: a slot's index would have to be 2^32 - 1.
const BELL: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// How long accepting pauses when there is no descriptor left: long enough not to spin, short against any time-out.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;
// Few enough that connections which are open already wait microseconds, enough that a burst is let in quickly.
const ACCEPTS_PER_TURN: usize = 16;
/// How late a sleep may end, for which a delay would not be what is known of it: on a virtual CPU that had halted, some 40 us. The
/// rest before a timer is spent looking at the sockets.
const SLEEP_ENDS_LATE_NS: u64 = 60_000;

/// What a worker is asked from outside.
#[derive(Debug)]
pub(crate) enum Command {
    Adopt(TcpStream),
    Count(Sender<Counts>),
    Stop,
}

/// The way to a worker.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    pub(crate) commands: Sender<Command>,
    pub(crate) bell: Arc<Bell>,
}

impl Mailbox {
    /// Sends a command; a worker that has ended takes none.
    pub(crate) fn send(&self, command: Command) {
        if self.commands.send(command).is_ok() {
            self.bell.ring();
        }
    }
}

/// What a worker is made of, before it exists in its thread.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    /// The first worker's only: it deals connections out. Where each has descriptors of its own, one for each.
    pub(crate) listener: Option<TcpListener>,
    pub(crate) commands: Receiver<Command>,
    /// All workers', this one's included.
    pub(crate) mailboxes: Vec<Mailbox>,
}

/// The thread's state; what it serves connections with is in `desk`.
#[derive(Debug)]
pub(crate) struct Worker {
    parts: Parts,
    desk: Desk,
    poller: Poller,
    connections: Connections,
    stopped: bool,
}

impl Worker {
    pub(crate) fn new(parts: Parts) -> io::Result<Worker> {
        let poller = Poller::new()?;
        poller.add(parts.mailboxes[parts.index].bell.as_fd(), BELL, READABLE)?;
        if let Some(listener) = &parts.listener {
            poller.add(listener.as_fd(), LISTENER, READABLE)?;
        }
        let desk = Desk::new(Arc::clone(&parts.shared));
        Ok(Worker {
            parts,
            desk,
            poller,
            connections: Connections::default(),
            stopped: false,
        })
    }

    /// Serves until it is asked to stop.
    pub(crate) fn run(mut self) -> io::Result<Counts> {
        let mut events = Events::new();
        while !self.stopped {
            self.poller.wait(&mut events, self.timeout_ns())?;
            for event in events.iter() {
                self.stand_still()?;
                self.dispatch(event);
            }
            self.stand_still()?;
            self.fire_timers();
        }
        Ok(self.desk.counts)
    }

    fn timeout_ns(&self) -> Option<u64> {
        let sleep_to_ns = self.desk.timers.next_due_ns()?.saturating_sub(SLEEP_ENDS_LATE_NS);
        Some(sleep_to_ns.saturating_sub(self.parts.shared.clock.now_ns()))
    }

    fn dispatch(&mut self, event: Event) {
        match event.token {
            BELL => self.obey(),
            LISTENER => self.accept_some(),
            token => self.serve(token, |connection, desk| connection.on_event(event, desk)),
        }
    }

    fn serve(&mut self, token: u64, serve: impl FnOnce(&mut Connection, &mut Desk) -> Life) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let life = serve(connection, &mut self.desk);
        if life == Life::Ended || watch(&self.poller, connection).is_err() {
            self.connections.remove(token);
        }
    }

    fn fire_timers(&mut self) {
        if self.desk.timers.next_due_ns().is_none() {
            return;
        }
        let now_ns = self.parts.shared.clock.now_ns();
        while let Some(token) = self.desk.timers.pop_due(now_ns) {
            match token {
                LISTENER => self.watch_listener(READABLE),
                token => self.serve(token, Connection::on_timer),
            }
        }
    }

    /// While the server stalls, listens to commands only.
    fn stand_still(&mut self) -> io::Result<()> {
        while let (false, Some(left_ns)) = (self.stopped, self.parts.shared.stall_left_ns()) {
            wait_readable(self.parts.mailboxes[self.parts.index].bell.as_fd(), Some(left_ns))?;
            self.obey();
        }
        Ok(())
    }

    fn obey(&mut self) {
        self.parts.mailboxes[self.parts.index].bell.silence();
        while let Ok(command) = self.parts.commands.try_recv() {
            match command {
                Command::Adopt(stream) => self.adopt(stream),
                // Who asked and went away needs no answer.
                Command::Count(reply) => drop(reply.send(self.desk.counts.clone())),
                Command::Stop => self.stopped = true,
            }
        }
    }

    /// Accepts a few and goes back to serving: the listener stays readable while more wait, and whoever came first is answered
    /// before the last is let in.
    fn accept_some(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = &self.parts.listener else {
                return;
            };
            match accept(listener) {
                Ok(stream) => self.deal(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_passing(&error) => {}
                Err(_) => return self.pause_accepting(),
            }
        }
    }

    /// Hands the n-th connection to worker n modulo the number of workers; a descriptor is of no use in another one's table.
    fn deal(&mut self, stream: TcpStream) {
        if self.parts.shared.config.own_descriptors {
            self.desk.counts.connections_accepted += 1;
            return self.adopt(stream);
        }
        let to = self.desk.counts.connections_accepted as usize % self.parts.mailboxes.len();
        self.desk.counts.connections_accepted += 1;
        if to == self.parts.index {
            self.adopt(stream);
        } else {
            self.parts.mailboxes[to].send(Command::Adopt(stream));
        }
    }

    fn adopt(&mut self, stream: TcpStream) {
        let Ok(channel) = Channel::new(stream, self.parts.shared.tls.as_ref()) else {
            self.desk.counts.accept_failures += 1;
            return;
        };
        let connection = self.connections.insert(|token| Connection::new(channel, token));
        let token = connection.token;
        if self
            .poller
            .add(connection.channel.socket().as_fd(), token, connection.interest)
            .is_err()
        {
            self.desk.counts.accept_failures += 1;
            self.connections.remove(token);
        }
    }

    fn pause_accepting(&mut self) {
        self.desk.counts.accept_failures += 1;
        self.watch_listener(0);
        self.desk.call_in(ACCEPT_PAUSE_NS, LISTENER);
    }

    fn watch_listener(&self, interest: u32) {
        if let Some(listener) = &self.parts.listener {
            // It fails for descriptors that are closed or not registered only, and this one is neither.
            let _ = self.poller.modify(listener.as_fd(), LISTENER, interest);
        }
    }
}

/// Updates the events that the poller watches for a connection, when they have changed.
fn watch(poller: &Poller, connection: &mut Connection) -> io::Result<()> {
    let wanted = connection.wanted();
    if wanted != connection.interest {
        poller.modify(connection.channel.socket().as_fd(), connection.token, wanted)?;
        connection.interest = wanted;
    }
    Ok(())
}

/// Errors of the connection that would have been accepted, not of the listener (accept(2), "Error handling").
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
    )
}
