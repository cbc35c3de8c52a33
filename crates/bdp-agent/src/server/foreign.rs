//! Protocols that the server speaks besides its own: each claims connections by their first bytes, and may have ports
//! of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bdp_flow::error::Result;
use bdp_sys::echo::ReturnPath;
use bdp_wire::stranger::Stranger;

use super::accept::Arrived;
use super::state::ServerState;

/// A protocol's claim on the first bytes of a connection that is not bdp's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// They may begin one of its connections; more bytes are needed to know.
    Unfinished {
        /// Number of bytes needed.
        wanted: usize,
    },
    /// They begin one of its connections, which it takes.
    Whole,
}

/// A protocol, with the sessions that it serves.
pub trait ForeignProtocol: Send + Sync {
    /// Takes the ports of its own, at the server's address, whose port is not for it.
    fn bind(&mut self, _address: SocketAddr) -> Result<()> {
        Ok(())
    }

    /// Serves these on threads of its own until the server ends.
    fn start(&self, _server: &Arc<ServerState>) -> Result<Vec<JoinHandle<()>>> {
        Ok(Vec::new())
    }

    /// Claims a connection to the server's port by its first bytes; `None` if it is not its own.
    fn claim(&self, _arrived: &[u8]) -> Option<Claim> {
        None
    }

    /// How long its clients may take for their first bytes at the server's port, if that is longer than usual.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Takes a connection that it claimed; never waits for it. `order` counts connections as they were let in.
    fn take(&self, _server: &Arc<ServerState>, _connection: Arrived, _order: u64) {}

    /// Handles a datagram to the server's port; returns false if it is not its own.
    fn take_datagram(&self, _server: &ServerState, _bytes: &[u8], _way: &ReturnPath) -> bool {
        false
    }

    /// Returns advice for one of its clients that came to the server's port and is not served there.
    fn way_in(&self, _stranger: Stranger) -> Option<String> {
        None
    }

    /// Returns its own address, once it is bound.
    fn address(&self) -> Option<SocketAddr> {
        None
    }

    /// Whether it has no clients.
    fn is_idle(&self) -> bool;

    /// Has its sessions end with the server.
    fn hang_up(&self) {}
}
