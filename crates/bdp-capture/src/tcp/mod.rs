//! Analysis of a captured TCP connection.

mod account;
mod acks;
mod connection;
mod delays;
mod facts;
mod half;
mod held;
mod multipath;
mod numbers;
mod place;
mod progress;
mod retransmission;
mod rhythm;
mod scoreboard;
mod series;
mod timeline;
mod tls;
mod trace;

pub(crate) use connection::Connection;
pub(crate) use facts::of as facts;
