//! iperf3's protocol, from both ends: the control connection and the data.

pub mod client;
mod control;
mod flow;
pub mod login;
mod outcome;
pub mod server;
mod tcp;
mod udp;
