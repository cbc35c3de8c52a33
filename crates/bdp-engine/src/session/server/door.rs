//! Lets connections in: reads what each begins with, never waiting for any, and hands it to whom it is for.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket;
use bdp_wire::iperf3::{COOKIE_BYTES, Cookie};
use bdp_wire::session::{Kind, PREAMBLE_BYTES, Preamble, TICKET_BYTES, Ticket};

use super::{Event, Reason, Shared, admission, iperf3};
use crate::EngineError;

/// How long a connection may take to say what it is for.
const PREAMBLE_DEADLINE: Duration = Duration::from_secs(5);
/// Connections that have not said it yet; beyond, the one that has been silent longest is dropped.
const MOST_PENDING: usize = 512;
/// Longest wait before deadlines are looked at.
const CHECK_NS: u64 = 500_000_000;
/// Tokens of the poll that are no connection.
const LISTENER: u64 = 0;
const WAKER: u64 = 1;
/// Bytes that any connection may have to show before it is known: a ticket of bdp, or a cookie of iperf3.
const MOST_BYTES: usize = if TICKET_BYTES > COOKIE_BYTES { TICKET_BYTES } else { COOKIE_BYTES };

/// Keeps the door until the server ends.
pub(super) fn keep(listener: &TcpListener, shared: &Arc<Shared>) -> Result<(), EngineError> {
    let poll = Poll::new()?;
    poll.add(listener, LISTENER, Interest::Read)?;
    poll.add(&shared.waker, WAKER, Interest::Read)?;
    let mut door = Door { poll, shared, pending: HashMap::new(), order: BTreeMap::new(), next: WAKER + 1 };
    let mut ready = Vec::new();
    while !shared.is_ending() {
        door.poll.wait(&mut ready, Some(CHECK_NS))?;
        for &token in &ready {
            match token {
                LISTENER => door.accept(listener),
                WAKER => shared.waker.clear(),
                token => door.read(token),
            }
        }
        door.drop_late();
        shared.counters.set_waiting(door.pending.len());
    }
    Ok(())
}

struct Door<'a> {
    poll: Poll,
    shared: &'a Arc<Shared>,
    pending: HashMap<u64, Pending>,
    /// Tokens of pending connections with their deadlines, oldest first.
    order: BTreeMap<u64, Instant>,
    next: u64,
}

/// A connection that has yet to say what it is for.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    arrived: [u8; MOST_BYTES],
    length: usize,
}

impl Door<'_> {
    fn accept(&mut self, listener: &TcpListener) {
        loop {
            match listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // No descriptor left: somebody silent has to go. Without anybody to drop the others have to end first.
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
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.pending.len() >= MOST_PENDING {
            self.drop_oldest();
        }
        let token = self.next;
        self.next += 1;
        if self.poll.add(&stream, token, Interest::Read).is_err() {
            return;
        }
        self.pending.insert(token, Pending { stream, peer, arrived: [0; MOST_BYTES], length: 0 });
        self.order.insert(token, Instant::now() + PREAMBLE_DEADLINE);
        // What it is for has mostly come with it; only those that are silent then are kept waiting.
        self.read(token);
    }

    /// Reads what has come of a connection's beginning, and no byte more.
    fn read(&mut self, token: u64) {
        while self.read_on(token) {}
    }

    /// Whether more may have come.
    fn read_on(&mut self, token: u64) -> bool {
        let Some(pending) = self.pending.get_mut(&token) else { return false };
        let wanted = match Preamble::decode(&pending.arrived[..pending.length]) {
            Ok(Some(Preamble { kind: Kind::Data | Kind::Probe | Kind::Echo, .. })) => TICKET_BYTES,
            Err(_) => COOKIE_BYTES,
            _ => PREAMBLE_BYTES,
        };
        match pending.stream.read(&mut pending.arrived[pending.length..wanted]) {
            Ok(length @ 1..) => {
                pending.length += length;
                self.sort(token);
                return true;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => return true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => drop(self.take(token)),
        }
        false
    }

    /// Hands a connection on once it has said what it is for.
    fn sort(&mut self, token: u64) {
        let Some(pending) = self.pending.get(&token) else { return };
        let arrived = &pending.arrived[..pending.length];
        match Preamble::decode(arrived) {
            Ok(None) => {}
            Err(error) => {
                match Cookie::decode(arrived) {
                    Ok(None) => return,
                    Ok(Some(cookie)) => {
                        if let Some(Pending { stream, peer, .. }) = self.take(token) {
                            iperf3::take(self.shared, stream, peer, cookie, token);
                        }
                        return;
                    }
                    Err(_) => {}
                }
                let why = format!("{error} ({})", legible(arrived));
                if let Some(Pending { peer, stream, .. }) = self.take(token) {
                    self.shared.counters.give_reason(Reason::Protocol);
                    self.shared.tell(&Event::TurnedAway { peer, why });
                    socket::close_hard(stream);
                }
            }
            Ok(Some(preamble @ Preamble { kind: Kind::Control, .. })) => {
                if let Some(Pending { stream, peer, .. }) = self.take(token) {
                    admission::greet(self.shared, stream, peer, preamble.version);
                }
            }
            Ok(Some(Preamble { kind, .. })) => {
                let Some(ticket) = Ticket::decode(arrived) else {
                    // The rest may be there already.
                    return;
                };
                if let Some(Pending { stream, peer, .. }) = self.take(token) {
                    self.hand_over(kind, &ticket, stream, peer);
                }
            }
        }
    }

    fn hand_over(&self, kind: Kind, ticket: &Ticket, stream: TcpStream, peer: SocketAddr) {
        let refused = match self.shared.session(&ticket.key) {
            None => Err("its key is of no session".to_owned()),
            Some(session) if kind == Kind::Probe => session.answer_probes_on(stream),
            Some(session) if kind == Kind::Echo => session.answer_echoes_on(stream, ticket.stream),
            Some(session) => session.take_stream(ticket, stream),
        };
        if let Err(why) = refused {
            self.shared.counters.give_reason(Reason::Key);
            self.shared.tell(&Event::TurnedAway { peer, why });
        }
    }

    fn take(&mut self, token: u64) -> Option<Pending> {
        self.order.remove(&token);
        let pending = self.pending.remove(&token)?;
        // A descriptor that can't be taken out leaves the poll when it is closed.
        let _ = self.poll.remove(&pending.stream);
        Some(pending)
    }

    /// Drops whoever has been silent longest, unless what it is for came meanwhile. Whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.order.keys().next().copied() else { return false };
        self.read(oldest);
        if let Some(pending) = self.take(oldest) {
            socket::close_hard(pending.stream);
        }
        true
    }

    fn drop_late(&mut self) {
        let now = Instant::now();
        while self.order.first_key_value().is_some_and(|(_, &deadline)| now >= deadline) {
            self.drop_oldest();
        }
    }
}

/// The first bytes of another protocol as a reader can take them.
fn legible(bytes: &[u8]) -> String {
    let text: String =
        bytes.iter().take(8).map(|&b| if b.is_ascii_graphic() { b as char } else { '.' }).collect();
    format!("'{text}'")
}
