//! Advice that is well known, and what it is worth on a kernel: settings are copied from page to page for longer than they hold.

mod known;
mod verdict;

pub use known::{KnownAdvice, Source, about, known};
pub use verdict::{Verdict, VerdictKind};

#[cfg(test)]
mod tests;
