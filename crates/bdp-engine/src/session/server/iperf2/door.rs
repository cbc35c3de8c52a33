//! Lets iperf2's connections in: reads what a header each begins with, waiting for none of them.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket;
use bdp_wire::iperf2::TestHeader;

use super::super::{Event, Shared};
use super::stream;

/// How long a connection may take to bring its header.
const HEADER_DEADLINE: Duration = Duration::from_secs(5);
/// Connections that have not; beyond, the one that has been silent longest is dropped.
const MOST_PENDING: usize = 256;
/// Longest wait before deadlines and the server's end are looked at.
const CHECK_NS: u64 = 250_000_000;
/// The poll's token of the listener.
const LISTENER: u64 = 0;

/// A connection whose header has yet to come.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    arrived: Vec<u8>,
}

struct Door<'a> {
    poll: Poll,
    shared: &'a Arc<Shared>,
    pending: HashMap<u64, Pending>,
    /// Deadlines, oldest first.
    order: BTreeMap<u64, Instant>,
    next: u64,
}

/// Keeps the door until the server ends.
pub(super) fn keep(listener: &TcpListener, shared: &Arc<Shared>) {
    let Ok(poll) = Poll::new() else { return };
    if poll.add(listener, LISTENER, Interest::Read).is_err() {
        return;
    }
    let mut door = Door { poll, shared, pending: HashMap::new(), order: BTreeMap::new(), next: LISTENER + 1 };
    let mut ready = Vec::new();
    while !shared.is_ending() {
        if door.poll.wait(&mut ready, Some(CHECK_NS)).is_err() {
            return;
        }
        for &token in &ready {
            match token {
                LISTENER => door.accept(listener),
                token => door.read(token),
            }
        }
        let now = Instant::now();
        while door.order.first_key_value().is_some_and(|(_, &deadline)| now >= deadline) {
            door.drop_oldest();
        }
    }
}

impl Door<'_> {
    fn accept(&mut self, listener: &TcpListener) {
        loop {
            match listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => {
                    if !self.drop_oldest() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if self.pending.len() >= MOST_PENDING {
            self.drop_oldest();
        }
        let token = self.next;
        self.next += 1;
        if stream.set_nonblocking(true).is_err() || self.poll.add(&stream, token, Interest::Read).is_err() {
            return;
        }
        self.pending.insert(token, Pending { stream, peer, arrived: Vec::new() });
        self.order.insert(token, Instant::now() + HEADER_DEADLINE);
        self.read(token);
    }

    /// Reads what has come of a header, and no byte more.
    fn read(&mut self, token: u64) {
        while let Some(pending) = self.pending.get_mut(&token) {
            let wanted = TestHeader::length_of(&pending.arrived).unwrap_or(4).max(4);
            let have = pending.arrived.len();
            if have >= wanted {
                if let Some(Pending { stream, peer, arrived }) = self.take(token) {
                    stream::serve(self.shared, stream, peer, TestHeader::decode(&arrived));
                }
                return;
            }
            let mut room = [0; 256];
            match pending.stream.read(&mut room[..(wanted - have).min(256)]) {
                Ok(length @ 1..) => pending.arrived.extend_from_slice(&room[..length]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => return drop(self.take(token)),
            }
        }
    }

    fn take(&mut self, token: u64) -> Option<Pending> {
        self.order.remove(&token);
        let pending = self.pending.remove(&token)?;
        let _ = self.poll.remove(&pending.stream);
        Some(pending)
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.order.keys().next().copied() else { return false };
        if let Some(Pending { stream, peer, .. }) = self.take(oldest) {
            socket::close_hard(stream);
            let why = "it connected to iperf2's port and said nothing".to_owned();
            self.shared.tell(&Event::TurnedAway { peer, why });
        }
        true
    }
}
