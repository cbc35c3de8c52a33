//! Clients being greeted, in limited number. If one more arrives, the oldest of the address with most of them is
//! dropped, so that nobody can keep others out by staying silent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use super::eviction::oldest_of_most;

use bdp_flow::lock::lock;

/// Clients that are greeted at once.
const MOST: usize = 32;

/// The pending handshakes of a server.
#[derive(Default)]
pub struct PendingHandshakes(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    next: u64,
    /// By increasing number: oldest first.
    held: BTreeMap<u64, (IpAddr, TcpStream)>,
}

/// A place among them, released when this is dropped.
pub struct PendingHandshake {
    all: PendingHandshakes,
    number: u64,
}

impl PendingHandshakes {
    /// Takes a place for this connection, evicting another if none is left.
    pub fn enter(&self, stream: &TcpStream, peer: SocketAddr) -> std::io::Result<PendingHandshake> {
        let stream = stream.try_clone()?;
        let mut list = lock(&self.0);
        while list.held.len() >= MOST
            && let Some(number) = oldest_of_most(list.held.iter().map(|(&n, (address, _))| (n, *address)))
            && let Some((_, silent)) = list.held.remove(&number)
        {
            // Its own thread notices, and ends.
            let _ = silent.shutdown(Shutdown::Both);
        }
        let number = list.next;
        list.next += 1;
        list.held.insert(number, (peer.ip(), stream));
        drop(list);
        Ok(PendingHandshake { all: Self(Arc::clone(&self.0)), number })
    }
}

impl Drop for PendingHandshake {
    fn drop(&mut self) {
        lock(&self.all.0).held.remove(&self.number);
    }
}
