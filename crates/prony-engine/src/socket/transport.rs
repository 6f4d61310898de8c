//! Stream sockets that never block, over TCP or within the machine, and what their errors mean.

use crate::account::Class;
use crate::cpu::checked;
use crate::socket::handshakes;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Where sockets are connected to, as the kernel takes it.
#[derive(Clone, Copy)]
pub struct Address {
    family: libc::c_int,
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
    is_ipv4_loopback: bool,
    source: Option<IpAddr>,
}

impl Address {
    /// Whether it is in 127.0.0.0/8, and connections may come from wherever they like: every address there is this machine's own, as a
    /// source too.
    pub fn is_ipv4_loopback(&self) -> bool {
        self.is_ipv4_loopback && self.source.is_none()
    }

    /// The same, reached from this address of this machine.
    #[must_use]
    pub fn with_source(self, source: IpAddr) -> Self {
        let source = Some(source);
        Self { source, ..self }
    }

    /// Whether it can be reached from there.
    ///
    /// # Errors
    /// When it is none of this machine, or of another family.
    pub fn check_source(&self, source: IpAddr) -> io::Result<()> {
        bind(&self.socket()?, source)
    }

    fn socket(&self) -> io::Result<OwnedFd> {
        // SAFETY: no pointers are passed.
        let raw = checked(unsafe {
            libc::socket(
                self.family,
                libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
                0,
            )
        })?;
        // SAFETY: `raw` is a new descriptor that nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(raw) })
    }

    /// A Unix stream socket at an absolute path.
    ///
    /// # Errors
    /// When the path is longer than the kernel takes.
    pub fn unix(path: &str) -> io::Result<Self> {
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        // The last byte stays 0.
        if path.len() >= raw.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (place, byte) in raw.sun_path.iter_mut().zip(path.bytes()) {
            *place = byte as libc::c_char;
        }
        Ok(Self::of(libc::AF_UNIX, raw))
    }

    fn of<T: Copy>(family: libc::c_int, raw: T) -> Self {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        // SAFETY: the storage is at least as large as, and aligned for, every socket address.
        unsafe { (&raw mut storage).cast::<T>().write(raw) };
        Self {
            family,
            storage,
            length: size_of::<T>() as libc::socklen_t,
            is_ipv4_loopback: false,
            source: None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self {
                is_ipv4_loopback: v4.ip().is_loopback(),
                ..Self::of(
                    libc::AF_INET,
                    libc::sockaddr_in {
                        sin_family: libc::AF_INET as libc::sa_family_t,
                        sin_port: v4.port().to_be(),
                        sin_addr: libc::in_addr {
                            s_addr: u32::from_ne_bytes(v4.ip().octets()),
                        },
                        sin_zero: [0; 8],
                    },
                )
            },
            SocketAddr::V6(v6) => Self::of(
                libc::AF_INET6,
                libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: v6.ip().octets(),
                    },
                    sin6_scope_id: v6.scope_id(),
                },
            ),
        }
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Address of family {}", self.family)
    }
}

/// A new socket on its way to `address`, and whether it is connected already; `source`: null, or where it comes from.
pub fn connect(address: &Address, source: Option<Ipv4Addr>) -> io::Result<(OwnedFd, bool)> {
    let socket = address.socket()?;
    let raw = socket.as_raw_fd();
    if address.family != libc::AF_UNIX {
        set_option(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY)?;
    }
    if let Some(source) = source.map(IpAddr::V4).or(address.source) {
        bind(&socket, source)?;
    }
    // SAFETY: `storage` holds a socket address of `length` bytes.
    let result = checked(unsafe { libc::connect(raw, (&raw const address.storage).cast(), address.length) });
    match result {
        Ok(_) => Ok((socket, true)),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok((socket, false)),
        Err(error) => Err(error),
    }
}

/// How a connection attempt ended: the socket's pending error, if any.
pub fn connect_result(socket: &OwnedFd) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `error` and `length` are valid for writes and of the size stated.
    checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &raw mut length,
        )
    })?;
    if error == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(error))
    }
}

/// Sends what fits; a closed peer is an error, not a signal.
pub fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is valid for reads of its length.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives what is there; 0 at the end of the stream.
pub fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` is valid for writes of its length.
    let received = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// The class of a connection attempt that failed.
pub fn connect_class(error: &io::Error) -> Class {
    match error.raw_os_error() {
        // Of a Unix socket: no such path, and a listen queue that is full (connect(2)).
        Some(libc::ECONNREFUSED | libc::ECONNRESET | libc::ENOENT | libc::EAGAIN) => Class::ConnectRefused,
        Some(libc::ETIMEDOUT) => Class::ConnectTimedOut,
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN) => {
            Class::ConnectUnreachable
        }
        Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => Class::ClientNoAddress,
        Some(libc::EMFILE | libc::ENFILE) => Class::ClientNoDescriptor,
        Some(libc::ENOBUFS | libc::ENOMEM) => Class::ClientNoBuffer,
        None if handshakes::is_broken(error) => Class::Tls,
        // By a proxy.
        None if error.kind() == io::ErrorKind::ConnectionRefused => Class::ConnectRefused,
        _ => Class::ClientOther,
    }
}

/// The class of a request whose connection failed under it.
pub fn transfer_class(error: &io::Error) -> Class {
    match error.raw_os_error() {
        Some(libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED) => Class::Reset,
        // Linux says of a connection that timed out what it last heard on the way (tcp(7)).
        Some(libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH) => Class::TimedOut,
        Some(libc::ENOBUFS | libc::ENOMEM) => Class::ClientNoBuffer,
        None if handshakes::is_broken(error) => Class::Tls,
        _ => Class::ClientOther,
    }
}

/// Sets where a socket comes from. Its port is chosen when it connects: one that is taken on the way to another server is free here.
fn bind(socket: &OwnedFd, source: IpAddr) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)?;
    let address = Address::from(SocketAddr::new(source, 0));
    // SAFETY: `storage` holds a socket address of `length` bytes.
    checked(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address.storage).cast(),
            address.length,
        )
    })?;
    Ok(())
}

fn set_option(socket: &OwnedFd, level: libc::c_int, name: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `on` is valid for reads of the size stated.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const on).cast(), length) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t36_t41_every_errno_has_its_class() {
        let connect = [
            (libc::ECONNREFUSED, Class::ConnectRefused),
            (libc::ENOENT, Class::ConnectRefused),
            (libc::EAGAIN, Class::ConnectRefused),
            (libc::ETIMEDOUT, Class::ConnectTimedOut),
            (libc::EHOSTUNREACH, Class::ConnectUnreachable),
            (libc::EADDRNOTAVAIL, Class::ClientNoAddress),
            (libc::EMFILE, Class::ClientNoDescriptor),
            (libc::ENOBUFS, Class::ClientNoBuffer),
            (libc::EACCES, Class::ClientOther),
        ];
        for (errno, class) in connect {
            assert_eq!(connect_class(&io::Error::from_raw_os_error(errno)), class);
        }
        for errno in [libc::ECONNRESET, libc::EPIPE] {
            assert_eq!(transfer_class(&io::Error::from_raw_os_error(errno)), Class::Reset);
        }
        for errno in [libc::ETIMEDOUT, libc::EHOSTUNREACH] {
            assert_eq!(
                transfer_class(&io::Error::from_raw_os_error(errno)),
                Class::TimedOut
            );
        }
    }
}
