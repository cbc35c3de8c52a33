//! Connections of visitors, with their places.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, Weak};

use bdp_agent::server::access::origin;
use bdp_agent::server::eviction::oldest_of_most;
use bdp_flow::lock::lock;
use bdp_sys::socket;

/// Most connections at once, of all and of one address (IPv6: of a /64); a browser opens six.
const MOST: usize = 512;
const MOST_OF_ADDRESS: usize = 64;

/// A visitor's TCP connection; its place is released when this is dropped.
pub struct Connection {
    pub(super) number: u64,
    pub(super) stream: TcpStream,
    /// The visitor's address.
    pub peer: SocketAddr,
    all: Arc<Connections>,
}

/// The open connections.
#[derive(Default)]
pub(super) struct Connections(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: u64,
    /// By increasing number: oldest first.
    all: BTreeMap<u64, (IpAddr, Weak<Connection>)>,
}

impl Connections {
    /// Gives a connection its place; if there is none, the oldest of the address with most is closed. `None` if its
    /// address has its share.
    pub(super) fn enter(
        self: &Arc<Self>,
        stream: &TcpStream,
        peer: SocketAddr,
    ) -> io::Result<Option<Arc<Connection>>> {
        let stream = stream.try_clone()?;
        let address = origin(peer.ip());
        let mut open = lock(&self.0);
        if open.all.values().filter(|(of, _)| *of == address).count() >= MOST_OF_ADDRESS {
            return Ok(None);
        }
        let held = open.all.iter().map(|(&number, (address, _))| (number, *address));
        let evicted = if open.all.len() >= MOST { oldest_of_most(held) } else { None };
        let evicted = evicted.and_then(|number| open.all.remove(&number));
        let number = open.next;
        open.next += 1;
        let connection = Arc::new(Connection { number, stream, peer, all: Arc::clone(self) });
        open.all.insert(number, (address, Arc::downgrade(&connection)));
        drop(open);
        // Not under the lock: this may be the last that holds it.
        if let Some(evicted) = evicted.and_then(|(_, connection)| connection.upgrade()) {
            let _ = evicted.stream.shutdown(Shutdown::Both);
        }
        Ok(Some(connection))
    }
}

impl Connection {
    /// Congestion control of the server's end; empty if the kernel does not say.
    pub fn congestion_control(&self) -> String {
        socket::congestion(&self.stream).unwrap_or_default()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.all.0).all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn places_are_held_to_the_end_and_the_oldest_of_the_greediest_gives_way() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let all = Arc::new(Connections::default());
        let enter = |stream: &TcpStream, address: &str| {
            all.enter(stream, (address.parse::<IpAddr>().unwrap(), 1).into()).unwrap()
        };
        let (mut first_client, first) = pair();
        let (_client, shared) = pair();
        // The addresses of a /64 are one.
        let greedy = |n: usize| format!("2001:db8::{:x}", n + 1);
        let mut held = vec![enter(&first, &greedy(0)).unwrap()];
        held.extend((1..MOST_OF_ADDRESS).map(|n| enter(&shared, &greedy(n)).unwrap()));
        assert!(enter(&shared, &greedy(100)).is_none());
        // Whoever holds the connection holds its place.
        let other = held.last().cloned();
        held.pop();
        assert!(enter(&shared, &greedy(100)).is_none());
        drop(other);
        held.push(enter(&shared, &greedy(100)).unwrap());
        let others = MOST - MOST_OF_ADDRESS;
        held.extend((0..others).map(|n| enter(&shared, &format!("10.0.{}.{}", n / 200, n % 200)).unwrap()));
        held.push(enter(&shared, "192.0.2.1").unwrap());
        assert_eq!(first_client.read(&mut [0]).unwrap(), 0, "the oldest of the greedy");
        assert_eq!(lock(&all.0).all.len(), MOST);
    }
}
