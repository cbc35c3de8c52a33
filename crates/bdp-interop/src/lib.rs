//! The protocols of others: iperf3 and iperf2, as a client and as a part of bdp's server, and downloads.
#![forbid(unsafe_code)]

pub mod download;
pub mod iperf2;
pub mod iperf3;
