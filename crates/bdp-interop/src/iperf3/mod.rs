//! iperf3's protocol, from both ends: they talk over its control connection, and move its data.

pub mod client;
mod control;
mod flow;
mod outcome;
pub mod login;
pub mod server;
mod tcp;
mod udp;
