//! The end that serves: one port, TCP and UDP, one thread that lets connections in, a thread for each session and for
//! each end of a flow.
//!
//! It never connects anywhere, and answers a datagram only if that holds the key of a session, with the same bytes; what
//! it speaks besides comes in by [`foreign`].

pub mod access;
mod admission;
pub mod counters;
mod datagrams;
mod door;
mod echo;
pub(crate) mod flow;
pub mod foreign;
mod log_limiter;
pub mod pending_handshakes;
pub mod places;
mod session;
pub mod strangers;
pub mod waiting;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;
use bdp_sys::echo::EchoSocket;
use bdp_sys::poll::Waker;
use bdp_sys::{process, random, socket};
use bdp_wire::echo::LONGEST_ECHO;
use bdp_wire::session::{Key, Limits, Probe};

use access::{AccessRules, PlaceLimits};
use bdp_flow::error::EngineError;
pub use bdp_wire::stranger::Stranger;
use counters::Counters;
pub use counters::{Counted, Reason};
use echo::Echoes;
use foreign::ForeignProtocol;
use log_limiter::LogLimiter;
use pending_handshakes::PendingHandshakes;
use places::Places;
use session::Session;

/// Connections that the kernel holds until they are let in.
const BACKLOG: i32 = 4096;
/// What the echo's socket may hold, by the kernel's count: some thousand small datagrams.
const ECHO_BUFFER: usize = 4 << 20;
/// How long the echo waits for a datagram before it looks whether the server ends.
pub const ECHO_CHECK: Duration = Duration::from_millis(500);
/// How long sessions may take to end with the server.
const FAREWELL: Duration = Duration::from_secs(2);

/// How to serve.
#[derive(Clone)]
pub struct ServerOptions {
    /// Where; `[::]` is every address of both IP versions, and `0.0.0.0` where the machine has no IPv6.
    pub listen: SocketAddr,
    /// What clients have to prove that they know, where [`AccessRules::check`] asks for it; none where the server is open.
    pub token: Option<String>,
    /// What one session is granted.
    pub limits: Limits,
    /// Which addresses may come in.
    pub access: AccessRules,
    /// How many may, at once.
    pub places: PlaceLimits,
    /// End after one session.
    pub once: bool,
}

/// What a server has to tell while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A session began.
    Began {
        /// Which, from 1.
        session: u32,
        /// The client.
        peer: SocketAddr,
        /// What the client is, with its version: `bdp 0.1.0`.
        program: String,
    },
    /// A session ended.
    Ended {
        /// Which.
        session: u32,
        /// The client.
        peer: SocketAddr,
        /// How long it took.
        took: Nanos,
        /// Flows that it ran.
        flows: u32,
        /// Why, where the client did not just leave after its work.
        why: Option<String>,
    },
    /// Somebody was not let in.
    TurnedAway {
        /// Who.
        peer: SocketAddr,
        /// Why.
        why: String,
    },
    /// More were not let in than are told of one by one.
    TurnedAwayMore {
        /// How many.
        count: u64,
        /// Within how long.
        within: Nanos,
    },
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    echo: EchoSocket,
    address: SocketAddr,
    state: Arc<ServerState>,
}

/// Ends a server from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<ServerState>);

/// Reads a server's counters from another thread.
#[derive(Clone)]
pub struct Watcher(Arc<Counters>);

impl Watcher {
    /// As they are now.
    pub fn counted(&self) -> Counted {
        self.0.counted()
    }
}

/// What the threads of a server have in common.
pub struct ServerState {
    /// As it was started.
    pub options: ServerOptions,
    /// Taken by the sessions of every protocol.
    pub places: Arc<Places>,
    /// What it speaks besides its own protocol.
    foreign: Vec<Box<dyn ForeignProtocol>>,
    sessions: Mutex<HashMap<Key, Arc<Session>>>,
    /// Clients that are being greeted.
    guests: PendingHandshakes,
    /// Sessions so far.
    begun: AtomicU32,
    ending: AtomicBool,
    /// What cookies of datagrams are made with.
    cookie_secret: [u8; 32],
    /// Its own port, TCP and UDP.
    pub port: u16,
    waker: Waker,
    /// What it has done so far.
    pub counters: Arc<Counters>,
    limiter: Mutex<LogLimiter>,
    log: Box<dyn Fn(&Event) + Send + Sync>,
}

impl Server {
    /// Takes the port, TCP and UDP, and those of the other protocols that it is to speak. `log` is called from any thread of
    /// the server.
    pub fn bind(
        options: ServerOptions,
        mut foreign: Vec<Box<dyn ForeignProtocol>>,
        log: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Self, EngineError> {
        // A stream is a descriptor; where the limit can't be raised it is told when it is reached.
        let _ = process::raise_descriptor_limit();
        let sessions = if options.once { 1 } else { options.places.sessions };
        let places = Places::new(PlaceLimits { sessions, ..options.places });
        let listener = listen(options.listen)?;
        listener.set_nonblocking(true).map_err(EngineError::io("listen"))?;
        let address = listener.local_addr().map_err(EngineError::io("listen"))?;
        let echo = EchoSocket::bind(address, ECHO_CHECK)?;
        // Where less is granted, more messages of fast clients are lost while the thread that answers does not run.
        let _ = echo.enlarge_receive_buffer(ECHO_BUFFER);
        for protocol in &mut foreign {
            protocol.bind(options.listen.ip())?;
        }
        let state = Arc::new(ServerState {
            options,
            places,
            foreign,
            sessions: Mutex::default(),
            guests: PendingHandshakes::default(),
            limiter: Mutex::default(),
            begun: AtomicU32::new(0),
            ending: AtomicBool::new(false),
            cookie_secret: random::bytes()?,
            port: address.port(),
            waker: Waker::new()?,
            counters: Arc::default(),
            log: Box::new(log),
        });
        Ok(Self { listener, echo, address, state })
    }

    /// Where it listens besides, for the clients of other protocols.
    pub fn foreign_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.state.foreign.iter().filter_map(|protocol| protocol.address())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What reads its counters.
    pub fn watcher(&self) -> Watcher {
        Watcher(Arc::clone(&self.state.counters))
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.state))
    }

    /// Serves until it is stopped, or one session has ended where only one is served.
    pub fn run(self) -> Result<(), EngineError> {
        process::share_allocator();
        let Self { listener, echo, state: shared, .. } = self;
        let mut others = Vec::new();
        for protocol in &shared.foreign {
            others.extend(protocol.start(&shared)?);
        }
        let echoing = Arc::clone(&shared);
        let echo = bdp_flow::worker::start(move || answer_probes(&echo, &echoing))?;
        let outcome = door::keep(&listener, &shared);
        shared.tell_rest();
        drop(listener);
        shared.end();
        let until = Instant::now() + FAREWELL;
        let is_idle = || shared.sessions().is_empty() && shared.foreign.iter().all(|other| other.is_idle());
        while !is_idle() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        // It looks at the flag at least twice a second.
        let _ = echo.join();
        for thread in others {
            let _ = thread.join();
        }
        outcome
    }
}

impl Stopper {
    /// Ends the server and its sessions.
    pub fn stop(&self) {
        self.0.end();
    }
}

impl ServerState {
    fn sessions(&self) -> MutexGuard<'_, HashMap<Key, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, key: &Key) -> Option<Arc<Session>> {
        self.sessions().get(key).cloned()
    }

    /// Notes that the client of this session does something; false where there is no such session.
    fn hears(&self, key: &Key) -> bool {
        self.sessions().get(key).inspect(|session| session.note_heard()).is_some()
    }

    /// Whether it is about to end.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Raised when it ends.
    pub fn ending(&self) -> &AtomicBool {
        &self.ending
    }

    /// The number of the next session, whatever it speaks.
    pub fn next_number(&self) -> u32 {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Ends it, and its sessions.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.waker.wake();
        for session in self.sessions().values() {
            session.hang_up();
        }
        self.foreign.iter().for_each(|protocol| protocol.hang_up());
    }

    /// Counts and logs what has happened.
    pub fn tell(&self, event: &Event) {
        self.counters.note(event);
        let told = !matches!(event, Event::TurnedAway { .. }) || self.limiter().admits(Instant::now());
        if told {
            (self.log)(event);
        }
    }

    /// Tells how many were turned away beyond those that were told of.
    fn tell_rest(&self) {
        let untold = self.limiter().take_untold(Instant::now());
        if let Some(count) = untold {
            (self.log)(&Event::TurnedAwayMore { count, within: Nanos::from(log_limiter::WHILE) });
        }
    }

    fn limiter(&self) -> MutexGuard<'_, LogLimiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener; of the older IP version alone where any address was meant and there is no newer one.
pub fn listen(address: SocketAddr) -> Result<TcpListener, EngineError> {
    match socket::listen_dual(address, BACKLOG) {
        Err(_) if address.ip().is_unspecified() && address.is_ipv6() && !has_ipv6() => {
            let v4 = SocketAddr::from(([0, 0, 0, 0], address.port()));
            Ok(socket::listen_dual(v4, BACKLOG)?)
        }
        other => Ok(other?),
    }
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::]:0").is_ok()
}

/// Sends back what holds the key of a session.
fn answer_probes(echo: &EchoSocket, shared: &ServerState) {
    process::sharpen_timers();
    let mut room = vec![0; LONGEST_ECHO];
    let mut echoes = Echoes::new();
    while !shared.is_ending() {
        match echoes.receive(echo, &mut room) {
            Ok((length, way)) => {
                // What is longer than anything that is answered is not whole.
                let Some(bytes) = room.get_mut(..length) else { continue };
                if echoes.answer(bytes, &way, echo, shared) {
                    continue;
                }
                let known = Probe::decode(bytes).is_some_and(|probe| shared.hears(&probe.key));
                if !known
                    && (datagrams::answer_opening(bytes, &way, echo, shared)
                        || shared.foreign.iter().any(|other| other.take_datagram(shared, bytes, &way)))
                {
                    continue;
                }
                if known {
                    // A full queue or an unreachable client shows there as a probe without answer.
                    let _ = echo.answer(bytes, &way);
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            // A refused datagram (ICMP) is reported here and concerns only its sender.
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}
