//! Scenarios in TOML, and the cases derived from them.
//!
//! [`Scenario::parse`] reads a file into a tree that records line numbers; [`Scenario::plan`] applies each point of the
//! sweep to that tree and decodes a [`CaseSpec`](bdp_model::case::CaseSpec) from it. `docs/scenario.md` describes the format.
#![forbid(unsafe_code)]

mod decode;
mod error;
mod file;
pub mod foreign;
mod measure;
mod named;
mod path;
mod plan;
mod profile;
mod published;
mod range;
mod read;
mod rule;
mod shipped;
mod sweep;
mod switch;
mod tree;

pub use decode::Traces;
pub use error::{Problem, ScenarioError};
pub use file::Scenario;
pub use named::traces_named;
pub use plan::{PlanOptions, shuffle};
pub use profile::{PROFILES, Profile};
pub use shipped::{find, shipped};
