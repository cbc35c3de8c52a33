//! Accepts connections at the port of bdp's and iperf3's clients, and hands them over.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bdp_sys::socket;
use bdp_wire::session::{Kind, PREAMBLE_BYTES, Preamble, TICKET_BYTES, Ticket};
use bdp_wire::stranger::Stranger;

use super::accept::{self, Arrived, Classifier};
use super::admission;
use super::counters::Reason;
use super::foreign::{Claim, ForeignProtocol};
use super::sessions::Sessions;
use bdp_flow::error::FlowError;

/// How long a connection may take to show its purpose, unless a protocol needs longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves the port until the server stops.
pub(super) fn serve(
    listener: &TcpListener,
    sessions: &Arc<Sessions>,
    foreign: &[Box<dyn ForeignProtocol>],
) -> Result<(), FlowError> {
    let patience = foreign.iter().filter_map(|protocol| protocol.patience()).fold(PATIENCE, Duration::max);
    accept::run(listener, &TcpPort { sessions, foreign, patience }, &sessions.server)
}

struct TcpPort<'a> {
    sessions: &'a Arc<Sessions>,
    foreign: &'a [Box<dyn ForeignProtocol>],
    patience: Duration,
}

impl Classifier for TcpPort<'_> {
    const MOST: usize = 512;

    fn patience(&self) -> Duration {
        self.patience
    }

    fn wanted(&self, arrived: &[u8]) -> Option<usize> {
        match Preamble::decode(arrived) {
            Ok(None) => Some(PREAMBLE_BYTES),
            Ok(Some(Preamble { kind: Kind::Control, .. })) => None,
            Ok(Some(_)) => Some(TICKET_BYTES).filter(|_| Ticket::decode(arrived).is_none()),
            Err(_) => match self.claims(arrived) {
                Some((_, Claim::Unfinished { wanted })) => Some(wanted),
                Some((_, Claim::Whole)) => None,
                // This many bytes identify another protocol.
                None => Some(Stranger::WANTED_BYTES).filter(|&wanted| arrived.len() < wanted),
            },
        }
    }

    fn take(&self, connection: Arrived, order: u64) {
        if Preamble::decode(&connection.bytes).is_err() {
            return match self.claims(&connection.bytes) {
                Some((protocol, Claim::Whole)) => protocol.take(&self.sessions.server, connection, order),
                _ => {
                    let way_in =
                        |stranger| self.foreign.iter().find_map(|protocol| protocol.way_in(stranger));
                    self.sessions.server.refuse_stranger(connection.peer, &connection.bytes, way_in);
                    socket::close_hard(connection.stream);
                }
            };
        }
        let Arrived { stream, peer, bytes } = connection;
        match (Preamble::decode(&bytes), Ticket::decode(&bytes)) {
            (Ok(Some(Preamble { kind: Kind::Control, version, .. })), _) => {
                admission::greet(self.sessions, stream, peer, version);
            }
            (Ok(Some(Preamble { kind, .. })), Some(ticket)) => self.hand_over(kind, &ticket, stream, peer),
            _ => {}
        }
    }

    fn drop_silent(&self, peer: SocketAddr, arrived: &[u8]) {
        self.sessions.server.drop_stranger(peer, arrived);
    }

    fn note_end(&self, peer: SocketAddr, arrived: &[u8]) {
        self.sessions.server.note_stranger_left(peer, arrived);
    }

    fn note_waiting(&self, connections: usize) {
        self.sessions.server.counters.set_waiting(connections);
        self.sessions.server.report_rest();
        self.sessions.server.places.observe();
    }
}

impl TcpPort<'_> {
    /// Returns the protocol that claims a connection with these first bytes.
    fn claims(&self, arrived: &[u8]) -> Option<(&dyn ForeignProtocol, Claim)> {
        self.foreign.iter().find_map(|protocol| Some((protocol.as_ref(), protocol.claim(arrived)?)))
    }

    fn hand_over(&self, kind: Kind, ticket: &Ticket, stream: TcpStream, peer: SocketAddr) {
        let refused = match self.sessions.get(&ticket.key) {
            None => Err("its key belongs to no session".to_owned()),
            Some(session) if kind == Kind::Probe => session.answer_probes_on(stream),
            Some(session) if kind == Kind::Echo => session.answer_echoes_on(stream, ticket.stream),
            Some(session) => session.take_stream(ticket, stream),
        };
        if let Err(why) = refused {
            self.sessions.server.counters.give_reason(Reason::Key);
            self.sessions.server.turn_away(peer, why);
        }
    }
}
