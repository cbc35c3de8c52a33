//! bdp's protocols as bytes and messages, without sockets.
//!
//! A host of whatever kind is driven by one agent over one control stream: frames of a big-endian length and a JSON
//! body. [`frame`] turns bytes into messages and back; [`setup`] is what the lab says to make a host of a process,
//! [`control`] what a case says to make it work. [`session`] is what two machines say to each other, [`proof`] how
//! they know each other, [`datagram`] what their flows of UDP are made of, [`pattern`] what they send when every byte is checked.
//! [`tuning`] is what a client says of a host's settings. [`icmp`] reads what routers quote. [`iperf2`] and [`iperf3`] are the protocols of those programs. [`stranger`] names the protocol of a client that speaks none of these.
#![forbid(unsafe_code)]

pub mod control;
pub mod datagram;
pub mod echo;
pub mod frame;
pub mod icmp;
pub mod iperf2;
pub mod iperf3;
pub mod pattern;
pub mod probe;
pub mod proof;
pub mod session;
pub mod setup;
pub mod stranger;
pub mod tuning;
