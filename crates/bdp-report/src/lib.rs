//! Tables, charts and JSON from records and measurements. Nothing here measures, asks for the time or touches a file.
#![forbid(unsafe_code)]

mod chart;
mod csv;
mod curves;
mod grid;
mod html;
mod json;
mod markup;
mod measurement;
mod notes;
mod number;
mod spark;
mod style;
mod summary;
mod svg;
mod sweep;
mod table;
mod varied;

pub use csv::csv;
pub use curves::curves;
pub use html::{About, html};
pub use json::{CASES_SCHEMA, json};
pub use measurement::{MEASUREMENTS_SCHEMA, measurements_json, measurements_text};
pub use spark::spark;
pub use style::Style;
pub use table::table;
