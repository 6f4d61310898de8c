//! The few calls that the standard library lacks. All `unsafe` of the crate is here.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

pub(crate) const READABLE: u32 = libc::EPOLLIN as u32;
pub(crate) const WRITABLE: u32 = libc::EPOLLOUT as u32;
pub(crate) const BROKEN: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

/// What happened to the descriptor that was registered with `token`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) token: u64,
    pub(crate) readiness: u32,
}

/// A level-triggered epoll instance whose waits are exact to nanoseconds.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// Room for the events of one wait. More than this at once are reported by the next wait.
pub(crate) struct Events {
    buffer: [libc::epoll_event; 256],
    length: usize,
}

impl Events {
    pub(crate) fn new() -> Events {
        Events {
            buffer: [libc::epoll_event { events: 0, u64: 0 }; 256],
            length: 0,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.buffer[..self.length].iter().map(|event| Event {
            token: event.u64,
            readiness: event.events,
        })
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        // SAFETY: the call takes no pointer.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was opened on the line above and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Poller { epoll })
    }

    pub(crate) fn add(&self, fd: BorrowedFd, token: u64, interest: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    pub(crate) fn modify(&self, fd: BorrowedFd, token: u64, interest: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    fn control(&self, operation: i32, fd: BorrowedFd, token: u64, interest: u32) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest,
            u64: token,
        };
        // SAFETY: `event` outlives the call, both descriptors are open while they are borrowed.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd.as_raw_fd(), &mut event) })?;
        Ok(())
    }

    /// Waits for events, at most `timeout_ns` (`None`: for ever). A signal ends the wait with none.
    pub(crate) fn wait(&self, events: &mut Events, timeout_ns: Option<u64>) -> io::Result<()> {
        events.length = 0;
        let timeout = timeout_ns.map(timespec);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: `buffer` has room for as many events as are asked for; `timeout` is null or outlives the call.
        let length = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                events.buffer.as_mut_ptr(),
                events.buffer.len() as libc::c_int,
                timeout,
                ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        match check(length as i32) {
            Ok(length) => events.length = length as usize,
            // Linux before 5.11.
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                return self.wait_by_poll(events, timeout_ns)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn wait_by_poll(&self, events: &mut Events, timeout_ns: Option<u64>) -> io::Result<()> {
        wait_readable(self.epoll.as_fd(), timeout_ns)?;
        let (buffer, room) = (events.buffer.as_mut_ptr(), events.buffer.len() as i32);
        // SAFETY: `buffer` has room for as many events as are asked for.
        events.length = check(unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), buffer, room, 0) })? as usize;
        Ok(())
    }
}

/// Waits until `fd` can be read, at most `timeout_ns` (`None`: for ever), or until a signal comes.
pub(crate) fn wait_readable(fd: BorrowedFd, timeout_ns: Option<u64>) -> io::Result<()> {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let timeout = timeout_ns.map(timespec);
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `poll` is one structure, and it and `timeout` outlive the call.
    match check(unsafe { libc::ppoll(&mut poll, 1, timeout, ptr::null()) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Wakes a poller from another thread.
#[derive(Debug)]
pub(crate) struct Bell {
    eventfd: File,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        // SAFETY: the call takes no pointer.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor was opened on the line above and belongs to nobody else.
        let eventfd = unsafe { File::from_raw_fd(fd) };
        Ok(Bell { eventfd })
    }

    /// Rings; the one error there is, a full counter, means that it rings already.
    pub(crate) fn ring(&self) {
        let _ = (&self.eventfd).write(&1u64.to_ne_bytes());
    }

    pub(crate) fn silence(&self) {
        let _ = (&self.eventfd).read(&mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

/// Listens with a queue of this length, which the standard library fixes, and with TCP_NODELAY, which accepted connections
/// inherit. `shared`: whether others of this user may listen on the same port.
pub(crate) fn listen(address: SocketAddr, backlog: u32, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.listen(backlog as i32)?;
    Ok(socket.into())
}

/// Gives the calling thread a table of descriptors of its own, with the standard streams and `kept` of those that are open:
/// the copy of any other would keep open what its owner closes.
pub(crate) fn own_descriptors(kept: &[BorrowedFd]) -> io::Result<()> {
    // SAFETY: the call takes no pointer; descriptors that are open stay valid in the copy.
    check(unsafe { libc::unshare(libc::CLONE_FILES) })?;
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    kept.sort_unstable();
    let mut from = FIRST_AFTER_STREAMS;
    for kept in kept.into_iter().chain([u32::MAX]) {
        if from < kept {
            // SAFETY: in this thread's own table nobody uses what is closed. Linux before 5.9 lacks the call, and keeps copies.
            unsafe { libc::syscall(libc::SYS_close_range, from, kept - 1, 0) };
        }
        from = kept.saturating_add(1);
    }
    Ok(())
}

const FIRST_AFTER_STREAMS: u32 = 3;

/// Lets a table hold as many descriptors as this process may allow itself.
pub(crate) fn raise_descriptor_limit() -> io::Result<()> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` is live.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) })?;
    limits.rlim_cur = limits.rlim_max;
    // SAFETY: as above.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) })?;
    Ok(())
}

/// Takes a connection from the listen queue, already non-blocking: one call instead of two.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null for the address is allowed: it is not wanted.
    let fd = check(unsafe { libc::accept4(listener.as_raw_fd(), ptr::null_mut(), ptr::null_mut(), flags) })?;
    // SAFETY: the descriptor was opened on the line above and belongs to nobody else.
    Ok(unsafe { TcpStream::from_raw_fd(fd) })
}

/// Makes the coming close send a RST instead of a FIN.
pub(crate) fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// Lets the calling thread's timers expire when they are due, instead of up to 50 us later.
pub(crate) fn set_least_timer_slack() -> io::Result<()> {
    let one_ns: libc::c_ulong = 1;
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, one_ns) })?;
    Ok(())
}

/// Pins the calling thread to a CPU.
pub(crate) fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a `cpu_set_t` is a bit field; all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpu` lies in the set, as checked above.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is live, and its size is given.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// Uses so much CPU time of the calling thread: time that others have its CPU does not count.
pub(crate) fn work(cpu_ns: u64) {
    let end_ns = thread_cpu_ns().saturating_add(cpu_ns);
    while cpu_ns > 0 && thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}

fn thread_cpu_ns() -> u64 {
    let mut used = timespec(0);
    // SAFETY: `used` is live; the calling thread's own clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut used) };
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

fn timespec(ns: u64) -> libc::timespec {
    const NS_PER_S: u64 = 1_000_000_000;
    libc::timespec {
        tv_sec: (ns / NS_PER_S) as libc::time_t,
        tv_nsec: (ns % NS_PER_S) as libc::c_long,
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
