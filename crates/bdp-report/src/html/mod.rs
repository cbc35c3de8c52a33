//! Reports as self-contained HTML pages: styles and drawings are inside, nothing is fetched. Only the page on captures has a script.

mod capture;
mod comparison;
mod conditions;
mod curve;
mod datagrams;
mod distribution;
mod flight;
mod glossary;
mod lab;
mod measured_conditions;
mod measured_sweep;
mod measured_table;
mod measurement;
mod overview;
mod page;
mod patterns;
mod plain_language;
mod probes;
mod quantity;
mod queue;
mod repetitions;
mod sentence;
mod series;
mod shared_path;
mod streams;
mod time_share;
mod timeline;
mod transfer;
mod verdict;

pub use capture::html_of_captures;
pub use comparison::html_of_comparison;
pub(crate) use curve::{Curve, curves, of_known};
pub use lab::html;
pub use measurement::html_of_measurements;
pub use page::About;
pub(crate) use page::printable;
