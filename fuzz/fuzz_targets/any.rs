//! The target that `BDP_FUZZ_TARGET` names, under libFuzzer.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<bdp_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("BDP_FUZZ_TARGET").unwrap_or_default();
    *bdp_fuzz::find(&name).unwrap_or_else(|| panic!("BDP_FUZZ_TARGET is '{name}', which is no target"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
