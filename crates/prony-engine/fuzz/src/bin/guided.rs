//! libFuzzer on one wire, which `PRONY_FUZZ_WIRE` names: see `bench/fuzz-wires`.
#![no_main]
#![allow(missing_docs)]

use prony_fuzz::{check, Wire};
use std::sync::OnceLock;

static WIRE: OnceLock<Wire> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let wire = WIRE.get_or_init(|| {
        let name = std::env::var("PRONY_FUZZ_WIRE").unwrap_or_default();
        Wire::named(&name).unwrap_or_else(|| panic!("PRONY_FUZZ_WIRE is `{name}`; expected a wire"))
    });
    check(*wire, data);
});
