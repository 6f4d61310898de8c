//! A process whose soft limit of descriptors is lower than its hard one, as most are; in a process of its own.

#![allow(clippy::unwrap_used)]

mod common;

use common::{start, Load};

#[test]
fn t41_the_soft_limit_of_descriptors_ends_no_connection() {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` is valid for writes, and then for reads.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits), 0);
        limits.rlim_cur = 64;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits), 0);
    }
    let server = start("{}");
    let account = Load::closed(server.port(), 200).requests(400).run().account;
    assert_eq!((account.ok, account.scheduled), (400, 400), "{account:?}");
}
