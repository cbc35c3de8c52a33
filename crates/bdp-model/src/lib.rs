//! Units, path models, statistics, cases and records.
//!
//! Everything here is pure: no I/O, no clock, no thread, no randomness of its own.
#![forbid(unsafe_code)]

pub mod capture;
pub mod case;
pub mod facts;
pub mod finding;
pub mod flow;
pub mod link;
pub mod measurement;
mod naming;
pub mod path;
pub mod plain;
pub mod probes;
pub mod record;
#[cfg(feature = "schema")]
pub mod schema;
pub mod statistics;
pub mod sweep;
pub mod tuning;
pub mod twin;
pub mod units;
pub mod visit;
pub mod watch;

pub use units::{ByteCount, Nanos, Probability, Rate, UnitError};
