//! Guests, where they boot.

use super::Bench;
use super::untested::skip;

/// Whether guests boot here; says so where they don't.
pub fn guests_boot(bench: &Bench) -> bool {
    let said = bench.run("").out;
    let cause = said.lines().find_map(|line| line.strip_prefix("virtual clock: no: "));
    if let Some(cause) = cause {
        skip(&format!("guests do not boot here: {cause}"));
    }
    cause.is_none()
}
