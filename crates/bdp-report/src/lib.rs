//! Tables, charts and JSON from records and measurements. Nothing here measures, asks for the time or touches a file.
#![forbid(unsafe_code)]

mod chart;
mod curves;
mod grid;
mod json;
mod measurement;
mod notes;
mod number;
mod spark;
mod style;
mod summary;
mod sweep;
mod table;
mod varied;

pub use curves::curves;
pub use json::{CASES_SCHEMA, json};
pub use measurement::{MEASUREMENTS_SCHEMA, measurements_json, measurements_text};
pub use spark::spark;
pub use style::Style;
pub use table::table;
