//! Host settings, plans and results: in words, and as scripts for other hosts.

pub mod applied;
mod effect;
mod export;
mod plan;
mod rehearsal;
mod setting;
mod show;
pub(crate) mod show_json;
mod verification;
mod words;

pub use export::{ExportError, ExportForm, export};
pub use plan::{change_line, plan};
pub use rehearsal::{choice, rehearsal};
pub use setting::setting_text;
pub use show::{SysctlFile, settings_of_file, settings_text, sysctl_file_text};
pub use show_json::{TUNE_SHOW_SCHEMA, settings_json};
pub use verification::verification;
