//! bdp's protocols as bytes and messages, without sockets.
//!
//! A host of whatever kind is driven by one agent over one control stream: frames of a big-endian length and a JSON
//! body. [`frame`] turns bytes into messages and back; [`setup`] is what the lab says to make a host of a process,
//! [`control`] what a session says to make it work.
#![forbid(unsafe_code)]

pub mod control;
pub mod frame;
pub mod setup;
