//! bdp's server and client, and the agents on hosts of the lab.
//!
//! [`server`] serves sessions ([`client`] requests them) by `docs/protocol.md`. [`agent`] answers the control stream
//! of a host of the lab and does the work; [`remote`] is its other end. [`ping`] measures the round trip alone,
//! [`path`] that of each hop.
#![forbid(unsafe_code)]

pub mod agent;
mod answers;
pub mod client;
pub mod path;
pub mod ping;
pub mod remote;
mod requester;
pub mod server;
mod streams;

pub use bdp_flow::error::FlowError;
