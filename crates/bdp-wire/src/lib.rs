//! bdp's protocols as bytes and messages, without sockets.
//!
//! Each host, of any kind, is driven by one agent over one control stream: frames of a big-endian length and a JSON
//! body. [`frame`] converts between bytes and messages; [`setup`] has the messages that make a process a host of the lab,
//! [`control`] those that make it work in a case. [`session`] is the protocol between two machines, [`proof`] their
//! authentication, [`datagram`] the datagrams of their UDP flows, [`pattern`] the payload sent when every byte is checked.
//! [`tuning`] has the messages about host settings. [`icmp`] reads the packets quoted by routers. [`iperf2`] and [`iperf3`] are the
//! protocols of those programs. [`stranger`] identifies clients that speak none of these.
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
