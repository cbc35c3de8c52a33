//! Well-known advice and what it is worth on a kernel: settings are copied from page to page long after they stop being useful.

mod known;
mod verdict;

pub use known::{KnownAdvice, Source, about, known};
pub use verdict::{Verdict, VerdictKind};

#[cfg(test)]
mod tests;
