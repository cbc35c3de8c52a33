//! Workloads, probes and samples between two ends: threads, no async runtime.
//!
//! [`receive`] and [`send`] are bulk TCP, [`crew`] their threads, [`datagram`] is UDP, [`probe`] measures round trips
//! during a flow. [`session`] is common to all clients of a measurement.
#![forbid(unsafe_code)]

pub mod background;
mod coalesce;
pub mod connection;
pub mod counting;
pub mod crew;
pub mod datagram;
pub mod disturbance;
pub mod effort;
pub mod error;
pub mod exchange;
pub mod gate;
mod handshake_checks;
pub mod handshakes;
pub mod host;
pub mod instrument;
pub mod lock;
pub mod loss_episodes;
pub mod meter;
mod outlet;
pub mod pace;
pub mod pause;
pub mod probe;
pub mod probe_flow;
pub mod receive;
pub mod send;
pub mod sender_reading;
pub mod session;
pub mod spin;
pub mod stall;
pub mod streams;
pub mod transfer;
mod waiting;
mod ways;
pub mod window_hold;
pub mod worker;
mod yielding;
