//! Starts, asks and stops the workers.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::channel::server_config;
use crate::config::Config;
use crate::counts::Counts;
use crate::desk::Shared;
use crate::error::Error;
use crate::system::{self, own_descriptors, pin_to_cpu, raise_descriptor_limit, set_least_timer_slack, Bell};
use crate::worker::{Command, Mailbox, Parts, Worker};

/// A running server. It stops when asked to or when dropped, and closes open connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    mailboxes: Vec<Mailbox>,
    threads: Vec<JoinHandle<io::Result<Counts>>>,
    /// Of threads that have ended.
    counts: Counts,
}

impl Server {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// *Errors*: an invalid field of the configuration ([`Error::Field`], [`Error::Tls`]); a port that is in use, a CPU that may
    /// not be used, no thread or descriptor left ([`Error::Io`]).
    pub fn start(config: Config) -> Result<Server, Error> {
        config.validate()?;
        let tls = config.tls.as_ref().map(server_config).transpose()?;
        if config.own_descriptors {
            raise_descriptor_limit().map_err(Error::io("raise the limit of descriptors"))?;
        }
        let listener = listen(&config, config.port)?;
        let address = listener
            .local_addr()
            .map_err(Error::io("read the listener's address"))?;
        let (mailboxes, inboxes) = mailboxes(config.threads)?;
        let mut server = Server {
            address,
            mailboxes,
            threads: Vec::new(),
            counts: Counts::default(),
        };
        server.spawn_all(Arc::new(Shared::new(config, tls)), listener, inboxes)?;
        Ok(server)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What it did so far; after [`Server::stop`], what it did.
    pub fn counts(&self) -> Counts {
        let (sender, receiver) = mpsc::channel();
        if !self.threads.is_empty() {
            for mailbox in &self.mailboxes {
                mailbox.send(Command::Count(sender.clone()));
            }
        }
        drop(sender);
        let mut total = self.counts.clone();
        receiver.iter().for_each(|counts| total.add(&counts));
        total
    }

    /// Stops it and waits for its threads. A second call does nothing.
    pub fn stop(&mut self) {
        for mailbox in &self.mailboxes {
            mailbox.send(Command::Stop);
        }
        for handle in self.threads.drain(..) {
            match handle.join() {
                Ok(Ok(counts)) => self.counts.add(&counts),
                // Counts that lack a thread's would be taken for exact ones.
                Ok(Err(error)) if !thread::panicking() => {
                    panic!("a reference worker's poller failed: {error}")
                }
                Err(panic) if !thread::panicking() => std::panic::resume_unwind(panic),
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    fn spawn_all(
        &mut self,
        shared: Arc<Shared>,
        listener: TcpListener,
        inboxes: Vec<Receiver<Command>>,
    ) -> Result<(), Error> {
        let port = self.address.port();
        let mut listener = Some(listener);
        let (ready, outcomes) = mpsc::channel();
        for (index, commands) in inboxes.into_iter().enumerate() {
            let (shared, mailboxes) = (Arc::clone(&shared), self.mailboxes.clone());
            let parts = Parts {
                index,
                shared,
                listener: listener.take(),
                commands,
                mailboxes,
            };
            self.threads.push(spawn(parts, port, ready.clone())?);
        }
        drop(ready);
        outcomes.iter().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(config: &Config, port: u16) -> Result<TcpListener, Error> {
    let address = SocketAddr::new(config.address()?, port);
    system::listen(address, config.backlog, config.own_descriptors)
        .map_err(Error::io(format!("listen on {address}")))
}

fn mailboxes(threads: usize) -> Result<(Vec<Mailbox>, Vec<Receiver<Command>>), Error> {
    let pair = |_| {
        let bell = Arc::new(Bell::new().map_err(Error::io("create an eventfd"))?);
        let (commands, inbox) = mpsc::channel();
        Ok((Mailbox { commands, bell }, inbox))
    };
    (0..threads).map(pair).collect()
}

fn spawn(
    parts: Parts,
    port: u16,
    ready: Sender<Result<(), Error>>,
) -> Result<JoinHandle<io::Result<Counts>>, Error> {
    let name = format!("reference-{}", parts.index);
    let body = move || {
        let (outcome, worker) = match prepare(parts, port) {
            Ok(worker) => (Ok(()), Some(worker)),
            Err(error) => (Err(error), None),
        };
        // `start` waits for this; if it has already failed, the worker will soon be stopped.
        let _ = ready.send(outcome);
        drop(ready);
        worker.map_or_else(|| Ok(Counts::default()), Worker::run)
    };
    thread::Builder::new()
        .name(name)
        .spawn(body)
        .map_err(Error::io("start a thread"))
}

/// Sets up the calling thread as a worker.
fn prepare(mut parts: Parts, port: u16) -> Result<Worker, Error> {
    let config = &parts.shared.config;
    // The first one has the process's table, where its listener was made.
    if config.own_descriptors && parts.listener.is_none() {
        let bells: Vec<_> = parts
            .mailboxes
            .iter()
            .map(|mailbox| mailbox.bell.as_fd())
            .collect();
        own_descriptors(&bells).map_err(Error::io("make a table of descriptors"))?;
        parts.listener = Some(listen(config, port)?);
    }
    if let Some(cpus) = &parts.shared.config.cpus {
        let cpu = cpus[parts.index % cpus.len()];
        pin_to_cpu(cpu).map_err(Error::io(format!("pin a thread to CPU {cpu}")))?;
    }
    set_least_timer_slack().map_err(Error::io("set the timer slack"))?;
    Worker::new(parts).map_err(Error::io("create an epoll instance"))
}
