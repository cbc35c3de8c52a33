//! Clients that are being greeted: so many at once. Where one more comes, the oldest of the address that has most of them
//! goes, so that nobody keeps others out by saying nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ServerState;
use super::waiting::oldest_of_most;

/// Clients that are greeted at once.
const MOST: usize = 32;

/// Those of a server.
#[derive(Default)]
pub struct PendingHandshakes(Mutex<List>);

#[derive(Default)]
struct List {
    next: u64,
    /// By number, which grows: oldest first.
    held: BTreeMap<u64, (IpAddr, TcpStream)>,
}

/// A place among them, given back when this is dropped.
pub struct PendingHandshake {
    shared: Arc<ServerState>,
    number: u64,
}

impl PendingHandshake {
    /// Takes a place for this connection, somebody else's where there is none left.
    pub fn enter(shared: &Arc<ServerState>, stream: &TcpStream, peer: SocketAddr) -> std::io::Result<Self> {
        let stream = stream.try_clone()?;
        let mut list = shared.guests.list();
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
        Ok(Self { shared: Arc::clone(shared), number })
    }
}

impl Drop for PendingHandshake {
    fn drop(&mut self) {
        self.shared.guests.list().held.remove(&self.number);
    }
}

impl PendingHandshakes {
    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
