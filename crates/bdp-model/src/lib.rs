//! Units, path models, statistics, scenarios and records.
//!
//! Everything here is pure: no I/O, no clock, no thread, no randomness of its own.
#![forbid(unsafe_code)]

pub mod application;
pub mod arrivals;
pub mod breach;
pub mod capture;
pub mod capture_pair;
pub mod case;
pub mod caveat;
pub mod checksum;
pub mod comparison;
pub mod connection;
pub mod curve;
pub mod ends;
pub mod expectation;
pub mod experiment;
pub mod facts;
pub mod figure;
pub mod finding;
pub mod flow;
pub mod histogram;
pub mod hops;
pub mod host_counters;
pub mod instrument;
pub mod labels;
pub mod latency_parts;
pub mod link;
pub mod measured_curves;
pub mod measurement;
pub mod method;
pub mod mtu_search;
pub mod netem;
pub mod one_way;
pub mod options;
pub mod order;
pub mod over_time;
pub mod parameter;
pub mod path;
pub mod payload;
pub mod ping;
pub mod plain;
pub mod points;
pub mod probes;
pub mod queue;
pub mod radio;
pub mod ramp_up;
mod random;
pub mod rate_search;
pub mod record;
pub mod record_curves;
pub mod repeated;
pub mod responsiveness;
pub mod route;
pub mod run_comparison;
pub mod scenario;
#[cfg(feature = "schema")]
pub mod schema;
pub mod segment;
pub mod segments;
pub mod settling;
pub mod stack;
pub mod stats;
pub mod tcp_settings;
pub mod threshold;
pub mod trace;
pub mod traffic;
mod transfers;
pub mod tuning;
pub mod twin;
pub mod udp;
pub mod units;
pub mod wall;
pub mod watch;
pub mod window;

pub use units::{ByteCount, Nanos, Probability, Rate, UnitError};
