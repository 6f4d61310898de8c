//! Which address of this machine a connection comes from.
//!
//! Connections to one server differ by their source address and port, and one address has some 28,000 ports. Over
//! loopback every address of 127.0.0.0/8 is this machine's own, so further connections come from further addresses. Over a network this
//! machine has the addresses that it has, and the kernel chooses.

use crate::socket::transport::{self, Address};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// The source addresses of one worker's slots.
#[derive(Debug)]
pub struct Sources {
    is_loopback: bool,
    // The number of the worker's first slot among those of all workers.
    first: usize,
    // How many addresses were left behind because they had no port left.
    passed: usize,
}

/// Connections from one address to one server: with 19,000 the kernel's search for a free port made opening 18 times slower.
pub const PER_SOURCE: usize = 5_000;
// Addresses with a third byte of their own, so that those of a server on 127.0.0.2 or so stay clear of them.
const ADDRESSES: usize = 200 * 250;

impl Sources {
    /// Of a worker whose first slot is the `first` of all; only over IPv4 loopback there is a choice.
    pub fn new(is_loopback: bool, first: usize) -> Self {
        Self {
            is_loopback,
            first,
            passed: 0,
        }
    }

    /// The address of a slot's next connection; null: the kernel chooses, which is 127.0.0.1 over loopback.
    pub fn of(&self, slot: usize) -> Option<Ipv4Addr> {
        let number = ((self.first + slot) / PER_SOURCE + self.passed) % (ADDRESSES + 1);
        (self.is_loopback && number > 0).then(|| {
            let place = number - 1;
            Ipv4Addr::new(127, 0, 1 + (place / 250) as u8, 1 + (place % 250) as u8)
        })
    }

    /// Begins a slot's next connection to `address`, from where a port is left; true: it is there already.
    ///
    /// # Errors
    /// Those of [`transport::connect`].
    pub fn connect(&mut self, address: &Address, slot: usize) -> io::Result<(OwnedFd, bool)> {
        match transport::connect(address, self.of(slot)) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) && self.pass() => {
                transport::connect(address, self.of(slot))
            }
            result => result,
        }
    }

    /// An address has no port left, as when connections are closed faster than their ports become free: on to the next ones. False
    /// where there is none.
    pub fn pass(&mut self) -> bool {
        self.passed += usize::from(self.is_loopback);
        self.is_loopback
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_connections_come_from_where_the_kernel_says_and_more_from_further_addresses() {
        let sources = Sources::new(true, 4_000);
        assert_eq!(sources.of(999), None);
        assert_eq!(sources.of(1_000), Some(Ipv4Addr::new(127, 0, 1, 1)));
        assert_eq!(sources.of(6_000), Some(Ipv4Addr::new(127, 0, 1, 2)));
        assert_eq!(
            sources.of(250 * PER_SOURCE + 1_000),
            Some(Ipv4Addr::new(127, 0, 2, 1))
        );
    }

    #[test]
    fn an_address_without_a_port_is_passed_over() {
        let mut sources = Sources::new(true, 0);
        assert!(sources.pass());
        assert_eq!(sources.of(0), Some(Ipv4Addr::new(127, 0, 1, 1)));
    }

    #[test]
    fn over_a_network_the_kernel_chooses_always() {
        let mut sources = Sources::new(false, 0);
        assert!(!sources.pass());
        assert_eq!(sources.of(1_000_000), None);
    }
}
