//! Visitors of `bdp serve --page`: browsers that test the path to this server. Each direction is explained from the
//! `TCP_INFO` of the server's own sockets, by the facts and rules of [`crate::watch`].

mod allowance;
mod connection;
mod kept;
mod live;
mod result;
mod session;
mod stage;
mod turned;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bdp_agent::server::access::{Denied, PlaceLimits, Protocol};
use bdp_agent::server::places::Places;
use bdp_agent::server::{Reason, ServerState};
use bdp_flow::lock::lock;
use bdp_model::measurement::HostFacts;
use bdp_model::units::{ByteCount, Nanos};
use bdp_model::visit::Visit as Document;
pub use bdp_model::visit::{BrowserReport, VisitDirection};
use bdp_sys::random;
use bdp_wire::proof::hex;
use bdp_wire::session::Limits;
use serde_json::Value;

use allowance::Allowance;
use connection::Connections;
use kept::Kept;
use session::SESSION_BYTES;

pub use connection::Connection;
pub use live::{LiveConnection, LiveReading};
pub use session::{Listener, Mark, Transfer, Visit};
pub use turned::Turned;

/// Interval of the readings.
const SAMPLE: Duration = Duration::from_millis(50);

/// What visitors may do.
#[derive(Debug, Clone)]
pub struct VisitOptions {
    /// Limits of a direction: time, connections, rate.
    pub limits: Limits,
    /// Data of an address in a day; no limit if none.
    pub per_day: Option<ByteCount>,
    /// How long a result is kept.
    pub keep: Nanos,
    /// Places of visitors alone; none if they share the server's.
    pub places: Option<PlaceLimits>,
    /// Host names by which browsers may address the server, apart from `localhost`, its own and addresses.
    pub names: Vec<String>,
}

/// Makes a result's document.
pub type Write = dyn Fn(&Document) -> Value + Send + Sync;

/// All visitors of a server.
pub struct Visits {
    options: VisitOptions,
    write: Box<Write>,
    server: OnceLock<Arc<ServerState>>,
    host: OnceLock<HostFacts>,
    sessions: Mutex<HashMap<String, Arc<Visit>>>,
    kept: Mutex<Kept>,
    allowance: Mutex<Allowance>,
    connections: Arc<Connections>,
    places: Option<Arc<Places>>,
}

impl Visits {
    /// Visitors of a server that is not started yet. `write` makes a result's document.
    pub fn new(options: VisitOptions, write: Box<Write>) -> Arc<Self> {
        Arc::new(Self {
            places: options.places.map(Places::new),
            options,
            write,
            server: OnceLock::new(),
            host: OnceLock::new(),
            sessions: Mutex::default(),
            kept: Mutex::default(),
            allowance: Mutex::default(),
            connections: Arc::default(),
        })
    }

    /// Reads the visitors' connections on a thread of its own until the server ends.
    pub fn start(self: &Arc<Self>, server: &Arc<ServerState>) -> bdp_flow::error::Result<JoinHandle<()>> {
        let _ = self.server.set(Arc::clone(server));
        let _ = self.host.set(bdp_flow::host::Baseline::take(Ipv4Addr::LOCALHOST.into()).facts());
        let (visits, server) = (Arc::clone(self), Arc::clone(server));
        bdp_flow::worker::start(move || {
            while !server.is_ending() {
                visits.look();
                thread::sleep(SAMPLE);
            }
        })
    }

    /// Returns what visitors may do.
    pub fn options(&self) -> &VisitOptions {
        &self.options
    }

    /// Name of this server.
    pub fn server_name(&self) -> &str {
        self.host.get().map_or("", |host| host.name.as_str())
    }

    /// Port of this server, once it is started.
    pub fn port(&self) -> Option<u16> {
        self.server.get().map(|server| server.port)
    }

    /// Whether this is a name of this server, apart from `localhost` and addresses.
    pub fn is_named(&self, name: &str) -> bool {
        let names = self.options.names.iter().map(String::as_str);
        names.chain([self.server_name()]).any(|own| !own.is_empty() && own.eq_ignore_ascii_case(name))
    }

    /// A connection of a visitor, with its place; `None` if its address has too many.
    pub fn connection(
        &self,
        stream: &TcpStream,
        peer: SocketAddr,
    ) -> std::io::Result<Option<Arc<Connection>>> {
        self.connections.enter(stream, peer)
    }

    /// Checks that an address may visit at all.
    pub fn check(&self, peer: SocketAddr) -> Result<(), Turned> {
        let Some(server) = self.server.get() else { return Err(Turned::gone()) };
        // The page needs no token, whatever the server asks of measurements.
        match server.options.access.check(peer.ip(), Protocol::Bdp) {
            Ok(_) => Ok(()),
            Err(denied) => {
                server.counters.give_reason(Reason::of_denied(&denied));
                server.turn_away(peer, &denied);
                Err(Turned::Denied(denied.to_string()))
            }
        }
    }

    /// Opens a session.
    pub fn open(&self, peer: SocketAddr) -> Result<Arc<Visit>, Turned> {
        self.check(peer)?;
        let Some(server) = self.server.get() else { return Err(Turned::gone()) };
        let refuse = |denied: Denied| {
            server.counters.give_reason(Reason::of_denied(&denied));
            server.turn_away(peer, &denied);
            Turned::busy(denied.to_string())
        };
        if let Some(per_day) = self.is_over_day(peer, 0) {
            server.counters.give_reason(Reason::Busy);
            server.turn_away(peer, "its data of the day is used up (--page-data-per-day)");
            return Err(per_day);
        }
        let places = self.places.as_ref().unwrap_or(&server.places);
        let place = places.enter(peer.ip(), None).map_err(refuse)?;
        let memory = place.take_memory_now(SESSION_BYTES as u64).map_err(refuse)?;
        let id = random_key().map_err(|e| Turned::busy(e.to_string()))?;
        let mut sessions = lock(&self.sessions);
        // Whoever ends the server does so before it ends the sessions.
        if server.is_ending() {
            return Err(Turned::busy("the server is about to end".to_owned()));
        }
        let visit = Arc::new(Visit::new(id.clone(), peer, server, self.options.limits, (place, memory)));
        sessions.insert(id, Arc::clone(&visit));
        Ok(visit)
    }

    /// Returns the session with this id, if it belongs to the address.
    pub fn get(&self, id: &str, peer: SocketAddr) -> Result<Arc<Visit>, Turned> {
        let found = lock(&self.sessions).get(id).cloned().filter(|visit| visit.is_of(peer.ip()));
        let visit = found.ok_or_else(Turned::gone)?;
        visit.note_heard();
        Ok(visit)
    }

    /// Makes the result of a session and keeps it; once it is made, returns it again. `host` is how the browser
    /// addresses this server.
    pub fn finish(&self, visit: &Visit, told: &BrowserReport, host: &str) -> Result<String, Turned> {
        let mut made = lock(&visit.result);
        if let Some(key) = &*made {
            return lock(&self.kept).get(key).ok_or_else(Turned::gone);
        }
        let key = random_key().map_err(|e| Turned::busy(e.to_string()))?;
        let facts = self.host.get().cloned().unwrap_or_default();
        let (done, named) = (visit.done(), result::Named { key: &key, host, keep: self.options.keep });
        let document = result::document((visit, &done), told, &facts, named);
        let text = (self.write)(&document).to_string();
        lock(&self.kept).add(key.clone(), text.clone(), visit.peer.ip(), Instant::now());
        *made = Some(key);
        Ok(text)
    }

    /// Returns the result with this key, as it was made.
    pub fn kept(&self, key: &str) -> Option<String> {
        let mut kept = lock(&self.kept);
        kept.forget(self.options.keep.to_duration(), Instant::now());
        kept.get(key)
    }

    /// Whether it has no session.
    pub fn is_idle(&self) -> bool {
        lock(&self.sessions).is_empty()
    }

    /// Ends all sessions.
    pub fn hang_up(&self) {
        for (_, visit) in lock(&self.sessions).drain() {
            visit.end(Some("the server ends".to_owned()));
        }
    }

    fn is_over_day(&self, peer: SocketAddr, more: u64) -> Option<Turned> {
        let most = self.options.per_day?;
        let used = lock(&self.allowance).add(peer.ip(), more, Instant::now());
        (used >= most.as_bytes()).then(|| {
            Turned::TooMuch(format!(
                "this address has used its {most} of test data for today; 'bdp serve' there sets this by --page-data-per-day"
            ))
        })
    }

    /// Takes readings, and ends the sessions that are due.
    fn look(&self) {
        let all: Vec<Arc<Visit>> = lock(&self.sessions).values().cloned().collect();
        if let Some(places) = &self.places {
            places.observe();
        }
        for visit in all {
            visit.sample();
            let moved = visit.take_moved();
            let used_up = (moved > 0).then(|| self.is_over_day(visit.peer, moved)).flatten();
            let why = used_up.map(|_| "its data of the day is used up".to_owned()).or_else(|| visit.is_due());
            if why.is_some() || visit.has_left() {
                self.remove(&visit, why);
            }
        }
        lock(&self.kept).forget(self.options.keep.to_duration(), Instant::now());
    }

    fn remove(&self, visit: &Arc<Visit>, why: Option<String>) {
        lock(&self.sessions).remove(visit.id());
        visit.end(why);
        self.is_over_day(visit.peer, visit.take_moved());
        if visit.server.options.once {
            visit.server.end();
        }
    }
}

/// A name that cannot be guessed.
fn random_key() -> bdp_sys::Result<String> {
    let bytes: [u8; 16] = random::bytes()?;
    Ok(hex(&bytes))
}
