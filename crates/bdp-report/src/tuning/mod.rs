//! Settings of hosts, in words.

mod effect;
mod show;
mod show_json;

pub use show::{setting_text, settings_text};
pub use show_json::{TUNE_SHOW_SCHEMA, settings_json};
