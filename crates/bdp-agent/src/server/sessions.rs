//! The sessions of a server, by their keys.

use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use bdp_sys::random;
use bdp_wire::session::{Key, Refusal};

use super::event::Event;
use super::session::{Granted, Session};
use super::state::ServerState;
use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;

/// The running sessions.
pub(super) struct Sessions {
    pub(super) server: Arc<ServerState>,
    /// Secret for the cookies of datagrams.
    pub(super) cookie_secret: [u8; 32],
    open: Mutex<HashMap<Key, Arc<Session>>>,
}

impl Sessions {
    /// Creates it without sessions.
    pub(super) fn new(server: Arc<ServerState>) -> Result<Self, FlowError> {
        Ok(Self { server, cookie_secret: random::bytes()?, open: Mutex::default() })
    }

    /// Begins a session, if there is room for it.
    pub(super) fn begin(
        &self,
        key: Key,
        control: &TcpStream,
        peer: SocketAddr,
        bdp: &str,
        granted: Granted,
    ) -> Result<Arc<Session>, Refusal> {
        let place = self.server.places.enter(peer.ip(), Some((control, Shutdown::Read)))?;
        let mut open = lock(&self.open);
        if self.server.is_ending() {
            return Err(Refusal::Ending);
        }
        let session = Arc::new(Session::new(&self.server, key, control, peer, place, granted)?);
        open.insert(key, Arc::clone(&session));
        drop(open);
        // The client's description of itself is for people to read.
        let bdp: String = bdp.chars().filter(|c| c.is_ascii_graphic()).take(20).collect();
        self.server.report(&Event::Began { session: session.number(), peer, program: format!("bdp {bdp}") });
        Ok(session)
    }

    /// Serves a session until it is over.
    pub(super) fn serve(&self, key: &Key, session: &Session, stream: &TcpStream) {
        let ended = session.serve(&self.server, stream);
        lock(&self.open).remove(key);
        self.server.report(&ended);
        if self.server.options.once && !session.may_tune() {
            self.server.end();
        }
    }

    /// Returns the session of this key, if its client may measure.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Session>> {
        lock(&self.open).get(key).filter(|session| session.may_measure()).cloned()
    }

    /// Notes that this session's client is active; returns false if there is no such session.
    pub(super) fn hears(&self, key: &Key) -> bool {
        let open = lock(&self.open);
        let session = open.get(key).filter(|session| session.may_measure());
        session.inspect(|session| session.note_heard()).is_some()
    }

    /// Whether there are no sessions.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Makes the thread of each session notice that the server stops.
    pub(super) fn hang_up(&self) {
        lock(&self.open).values().for_each(|session| session.hang_up());
    }
}
