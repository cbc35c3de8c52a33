//! Guests, where they boot.

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

fn why_not(bench: &Bench) -> Option<String> {
    let said = bench.run("").out;
    said.lines().find_map(|line| line.strip_prefix("virtual clock: no: ")).map(str::to_owned)
}
