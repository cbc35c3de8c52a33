//! What carries a flow.

use std::net::TcpStream;

use crate::datagram::Stream;

/// The streams of one flow.
pub enum Streams {
    /// Of TCP.
    Connections(Vec<TcpStream>),
    /// Of UDP.
    Datagrams(Vec<Stream>),
}
