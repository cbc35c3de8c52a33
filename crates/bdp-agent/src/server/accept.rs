//! Accepts connections at a port and reads the first bytes of each, without blocking on any, until its purpose is
//! known. If too many are undecided, the oldest of the address with most of them is dropped, so that nobody can take
//! all places.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket;

use super::eviction::oldest_of_most;
use super::state::ServerState;
use bdp_flow::error::FlowError;

/// Longest wait before deadlines and the server's end are looked at.
const CHECK_NS: u64 = 250_000_000;
/// Tokens of the poll that are no connection.
const LISTENER: u64 = 0;
const WAKER: u64 = 1;

/// Determines a connection's purpose by its first bytes.
pub trait Classifier {
    /// How many may not have said it.
    const MOST: usize;

    /// How long a connection may take to show its purpose.
    fn patience(&self) -> Duration;

    /// Returns how many bytes are needed to know more, given those that have arrived; `None` once the purpose is
    /// known.
    fn wanted(&self, arrived: &[u8]) -> Option<usize>;

    /// Takes a connection with a known purpose. `order` counts connections as they were accepted.
    fn take(&self, connection: Arrived, order: u64);

    /// Notes a dropped connection that did not show its purpose in time; `arrived` is what it sent.
    fn drop_silent(&self, peer: SocketAddr, arrived: &[u8]);

    /// One ended before it had said it.
    fn note_end(&self, peer: SocketAddr, arrived: &[u8]);

    /// Notes the number of undecided connections; called several times a second.
    fn note_waiting(&self, connections: usize);
}

/// A connection, with the bytes read so far.
pub struct Arrived {
    /// The connection.
    pub stream: TcpStream,
    /// The client's address.
    pub peer: SocketAddr,
    /// The bytes read.
    pub bytes: Vec<u8>,
}

/// Accepts connections until the server ends.
pub fn run(
    listener: &TcpListener,
    classifier: &impl Classifier,
    server: &ServerState,
) -> Result<(), FlowError> {
    let poll = Poll::new()?;
    poll.add(listener, LISTENER, Interest::Read)?;
    poll.add(server.waker(), WAKER, Interest::Read)?;
    let mut list =
        List { poll, classifier, waiting: HashMap::new(), deadlines: BTreeMap::new(), next: WAKER + 1 };
    let mut ready = Vec::new();
    while !server.is_ending() {
        list.poll.wait(&mut ready, Some(CHECK_NS))?;
        for &token in &ready {
            match token {
                LISTENER => list.accept(listener),
                // Raised once, when the server stops, for all its ports.
                WAKER => {}
                token => list.read(token),
            }
        }
        list.drop_late();
        classifier.note_waiting(list.waiting.len());
    }
    Ok(())
}

/// Connections whose protocol is still unknown.
struct List<'a, K> {
    poll: Poll,
    classifier: &'a K,
    waiting: HashMap<u64, Arrived>,
    /// By increasing token: oldest first.
    deadlines: BTreeMap<u64, Instant>,
    next: u64,
}

impl<K: Classifier> List<'_, K> {
    fn accept(&mut self, listener: &TcpListener) {
        loop {
            match listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // Out of descriptors: a silent connection is dropped. If there is none, others must end first.
                Err(_) => {
                    if !self.drop_one() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.waiting.len() >= K::MOST {
            self.drop_one();
        }
        let token = self.next;
        self.next += 1;
        if self.poll.add(&stream, token, Interest::Read).is_err() {
            return;
        }
        self.waiting.insert(token, Arrived { stream, peer, bytes: Vec::new() });
        self.deadlines.insert(token, Instant::now() + self.classifier.patience());
        // The first bytes have mostly arrived with it; only silent connections are kept waiting.
        self.read(token);
    }

    /// Reads the first bytes of a connection, and no byte more.
    fn read(&mut self, token: u64) {
        let mut room = [0; 256];
        while let Some(waiting) = self.waiting.get_mut(&token) {
            let Some(wanted) = self.classifier.wanted(&waiting.bytes) else {
                if let Some(arrived) = self.remove(token) {
                    self.classifier.take(arrived, token);
                }
                return;
            };
            let missing = wanted.saturating_sub(waiting.bytes.len()).clamp(1, room.len());
            match waiting.stream.read(&mut room[..missing]) {
                Ok(length @ 1..) => waiting.bytes.extend_from_slice(&room[..length]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {
                    if let Some(arrived) = self.remove(token) {
                        self.classifier.note_end(arrived.peer, &arrived.bytes);
                    }
                    return;
                }
            }
        }
    }

    fn remove(&mut self, token: u64) -> Option<Arrived> {
        self.deadlines.remove(&token);
        let arrived = self.waiting.remove(&token)?;
        // A descriptor that can't be taken out leaves the poll when it is closed.
        let _ = self.poll.remove(&arrived.stream);
        Some(arrived)
    }

    /// Makes room. Whether there was anybody to drop.
    fn drop_one(&mut self) -> bool {
        let held = self.waiting.iter().map(|(&token, arrived)| (token, arrived.peer.ip()));
        let Some(token) = oldest_of_most(held) else { return false };
        self.drop_silent(token);
        true
    }

    /// Drops a connection, unless its purpose arrived meanwhile.
    fn drop_silent(&mut self, token: u64) {
        self.read(token);
        if let Some(Arrived { stream, peer, bytes }) = self.remove(token) {
            socket::close_hard(stream);
            self.classifier.drop_silent(peer, &bytes);
        }
    }

    fn drop_late(&mut self) {
        let now = Instant::now();
        while let Some((&token, _)) = self.deadlines.first_key_value().filter(|&(_, &until)| now >= until) {
            self.drop_silent(token);
        }
    }
}
