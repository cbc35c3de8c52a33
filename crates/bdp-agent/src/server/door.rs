//! Who is let in at the port of bdp's clients and iperf3's, and to whom it is handed.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bdp_sys::socket;
use bdp_wire::session::{Kind, PREAMBLE_BYTES, Preamble, TICKET_BYTES, Ticket};
use bdp_wire::stranger::Stranger;

use super::foreign::Claim;
use super::strangers::Port;
use super::waiting::{self, Arrived, Classifier};
use super::{Event, Reason, ServerState, admission};
use bdp_flow::error::EngineError;

/// Keeps the door until the server ends.
pub(super) fn keep(listener: &TcpListener, shared: &Arc<ServerState>) -> Result<(), EngineError> {
    waiting::keep(listener, &Door(shared), shared)
}

struct Door<'a>(&'a Arc<ServerState>);

impl Classifier for Door<'_> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const MOST: usize = 512;

    fn wanted(&self, arrived: &[u8]) -> Option<usize> {
        match Preamble::decode(arrived) {
            Ok(None) => Some(PREAMBLE_BYTES),
            Ok(Some(Preamble { kind: Kind::Control, .. })) => None,
            Ok(Some(_)) => Some(TICKET_BYTES).filter(|_| Ticket::decode(arrived).is_none()),
            Err(_) => match self.0.claims(arrived) {
                Some((_, Claim::Unfinished { wanted })) => Some(wanted),
                Some((_, Claim::Whole)) => None,
                // So many name another protocol.
                None => Some(Stranger::WANTED_BYTES).filter(|&wanted| arrived.len() < wanted),
            },
        }
    }

    fn take(&self, connection: Arrived, order: u64) {
        if Preamble::decode(&connection.bytes).is_err() {
            return match self.0.claims(&connection.bytes) {
                Some((protocol, Claim::Whole)) => protocol.take(self.0, connection, order),
                _ => {
                    self.0.refuse_stranger(Port::Own, connection.peer, &connection.bytes);
                    socket::close_hard(connection.stream);
                }
            };
        }
        let Arrived { stream, peer, bytes } = connection;
        match (Preamble::decode(&bytes), Ticket::decode(&bytes)) {
            (Ok(Some(Preamble { kind: Kind::Control, version, .. })), _) => {
                admission::greet(self.0, stream, peer, version);
            }
            (Ok(Some(Preamble { kind, .. })), Some(ticket)) => self.hand_over(kind, &ticket, stream, peer),
            _ => {}
        }
    }

    fn drop_silent(&self, peer: SocketAddr, arrived: &[u8]) {
        self.0.drop_stranger(peer, arrived);
    }

    fn note_end(&self, peer: SocketAddr, arrived: &[u8]) {
        self.0.note_stranger_left(peer, arrived);
    }

    fn note_waiting(&self, connections: usize) {
        self.0.counters.set_waiting(connections);
        self.0.tell_rest();
    }
}

impl Door<'_> {
    fn hand_over(&self, kind: Kind, ticket: &Ticket, stream: TcpStream, peer: SocketAddr) {
        let refused = match self.0.session(&ticket.key) {
            None => Err("its key is of no session".to_owned()),
            Some(session) if kind == Kind::Probe => session.answer_probes_on(stream),
            Some(session) if kind == Kind::Echo => session.answer_echoes_on(stream, ticket.stream),
            Some(session) => session.take_stream(ticket, stream),
        };
        if let Err(why) = refused {
            self.0.counters.give_reason(Reason::Key);
            self.0.tell(&Event::TurnedAway { peer, why });
        }
    }
}
