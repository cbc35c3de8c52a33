//! Protocols of other programs: iperf3 and iperf2, as client and as part of bdp's server, and downloads.
#![forbid(unsafe_code)]

pub mod download;
pub mod iperf2;
pub mod iperf3;
