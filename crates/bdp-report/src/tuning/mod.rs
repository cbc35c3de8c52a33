//! Plans of settings in words.

mod plan;
mod words;

pub use plan::plan;
