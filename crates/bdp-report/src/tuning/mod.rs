//! Plans of settings, worded and written as scripts.

mod export;

pub use export::{ExportError, ExportForm, export};
