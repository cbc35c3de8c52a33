//! Plans of settings in words, and what became of them.

pub mod applied;
mod plan;
mod rehearsal;
mod verification;
mod words;

pub use plan::{change_line, plan};
pub use rehearsal::rehearsal;
pub use verification::verification;
