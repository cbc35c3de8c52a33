//! iperf3's protocol, from both ends: they talk over its control connection, and move its data.

pub mod client;
mod control;
mod flow;
pub mod login;
mod outcome;
pub mod server;
mod tcp;
mod udp;
