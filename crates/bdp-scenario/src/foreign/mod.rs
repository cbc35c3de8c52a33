//! Imports paths from other emulators (`tc`, mahimahi, rattan) as scenarios, and exports a scenario's links as the closest netem
//! commands; both report each thing that cannot be translated, one line each.

mod discipline;
mod draft;
mod export;
mod mahimahi;
mod netem;
mod rattan;
mod shell;
mod tc;
mod words;

pub use draft::{ImportError, Imported};
pub use export::netem_commands;
pub use mahimahi::{commands as mahimahi_commands, trace as mahimahi_trace};
pub use netem::{import as netem, netem_of};
pub use rattan::import as rattan;

/// Imports text of any of these kinds.
pub fn import(text: &str) -> Result<Imported, ImportError> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let words = |word: &str| lines().any(|line| line.split_whitespace().any(|w| w == word));
    if lines().next().is_none() {
        return Err(ImportError::new("it is empty"));
    }
    if tc::is_tc(text) {
        return tc::import(text);
    }
    if words("netem") {
        return netem(&lines().filter(|line| line.contains("netem")).collect::<Vec<_>>());
    }
    if lines().any(|line| line.split_whitespace().any(|word| word.starts_with("mm-"))) {
        return mahimahi_commands(text);
    }
    if lines()
        .any(|line| line.starts_with("[links]") || line.starts_with("[cells") || line.starts_with("[devices"))
    {
        return rattan(text);
    }
    Err(ImportError::new(
        "unknown format; supported: tc commands, output of 'tc qdisc show', mm-link and mm-delay \
         commands, a rattan configuration; for a mahimahi trace use --mahimahi",
    ))
}
