//! Scenarios: what a TOML file states, and the cases that follow from it.
//!
//! [`Scenario::parse`] reads a file into a tree that knows its lines; [`Scenario::plan`] puts each point of the
//! sweep into that tree and decodes a [`CaseSpec`] from it. The format is described in `docs/scenario.md`.

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
pub mod route;
mod rule;
mod shipped;
mod sweep;
mod switch;
mod tree;

pub use crate::case::{
    CaseFlow, CaseSpec, Expect, Family, HostSpec, LinkSpec, ProbeKind, PublishedRow, Route, WHOLE_PACKETS,
    WindowMethod,
};
pub use crate::stack::{Clock, Stack};
pub use crate::tcp_settings::{Ecn, TcpSettings};
pub use decode::Traces;
pub use error::{Problem, ScenarioError};
pub use file::Scenario;
pub use named::traces_named;
pub use plan::{PlanOptions, shuffle};
pub use profile::{PROFILES, Profile};
pub use shipped::{find, shipped};
