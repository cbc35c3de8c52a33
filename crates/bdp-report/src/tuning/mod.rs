//! Plans of settings in words, and as scripts for other hosts.

mod export;
mod plan;
mod words;

pub use export::{ExportError, ExportForm, export};
pub use plan::plan;
