//! The transport of a flow.

use std::net::TcpStream;

use crate::datagram::Stream;

/// The streams of one flow.
pub enum Streams {
    /// TCP connections.
    Connections(Vec<TcpStream>),
    /// UDP streams.
    Datagrams(Vec<Stream>),
}
