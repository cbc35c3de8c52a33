//! Guests, where they boot.

use std::sync::OnceLock;

use super::Bench;
use super::untested::skip;

/// Whether guests boot here; says so where they don't.
pub fn guests_boot(bench: &Bench) -> bool {
    let cause = why_not(bench);
    if let Some(cause) = &cause {
        skip(&format!("guests do not boot here: {cause}"));
    }
    cause.is_none()
}

/// By a guest that is booted, once for all tests of a process.
fn why_not(bench: &Bench) -> Option<&'static str> {
    static CAUSE: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let said = bench.run("").out;
        said.lines().find_map(|line| line.strip_prefix("virtual clock: no: ")).map(str::to_owned)
    };
    CAUSE.get_or_init(ask).as_deref()
}
