//! iperf2's protocol, from both ends.

pub mod client;
pub mod server;
