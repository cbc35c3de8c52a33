//! Plans of settings in words.

mod plan;
mod rehearsal;
mod verification;
mod words;

pub use plan::plan;
pub use rehearsal::rehearsal;
pub use verification::verification;
