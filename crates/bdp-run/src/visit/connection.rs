//! Connections of visitors.

use std::net::{SocketAddr, TcpStream};

use bdp_sys::socket;

/// A visitor's TCP connection.
pub struct Connection {
    pub(super) number: u64,
    pub(super) stream: TcpStream,
    /// The visitor's address.
    pub peer: SocketAddr,
}

impl Connection {
    /// Congestion control of the server's end; empty if the kernel does not say.
    pub fn congestion_control(&self) -> String {
        socket::congestion(&self.stream).unwrap_or_default()
    }
}
