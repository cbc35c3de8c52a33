//! State shared by a server's threads, for all protocols.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;
use bdp_sys::poll::Waker;
use bdp_wire::session::Limits;

use super::access::{AccessRules, PlaceLimits};
use super::counters::Counters;
use super::event::Event;
use super::failures::Failures;
use super::log_limiter::{self, LogLimiter};
use super::log_queue::LogQueue;
use super::pending_handshakes::PendingHandshakes;
use super::places::Places;
use super::session_log::SessionLog;
use super::tuning::{TuneOptions, Tuner};
use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;

/// Options of a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// Address to listen on; `[::]` means every address of both IP versions, and `0.0.0.0` if the machine has no
    /// IPv6.
    pub listen: SocketAddr,
    /// Token that clients must prove to know if [`AccessRules::check`] requires it; none if the server is open.
    pub token: Option<String>,
    /// Limits of one session.
    pub limits: Limits,
    /// Which addresses are allowed.
    pub access: AccessRules,
    /// Limits of concurrent use.
    pub places: PlaceLimits,
    /// How settings of this host are changed for clients; none if they are not.
    pub tuning: Option<TuneOptions>,
    /// Whether to stop after one session.
    pub once: bool,
}

/// The state of a server.
pub struct ServerState {
    /// Its options.
    pub options: ServerOptions,
    /// The places of sessions of every protocol.
    pub places: Arc<Places>,
    /// Changes settings for clients, if allowed.
    pub(super) tuner: Option<Tuner>,
    /// Failed proofs of the measuring token.
    pub(super) failures: Mutex<Failures>,
    /// Clients that are being greeted.
    pub pending: PendingHandshakes,
    /// Sessions so far.
    begun: AtomicU32,
    ending: AtomicBool,
    /// Its own port, TCP and UDP.
    pub port: u16,
    waker: Waker,
    /// Its counters.
    pub counters: Arc<Counters>,
    limiter: Mutex<LogLimiter>,
    sessions_logged: Mutex<SessionLog>,
    log: LogQueue,
}

impl ServerState {
    /// Creates the state of a server at this port. `log` is called by a thread of its own.
    pub(super) fn new(
        options: ServerOptions,
        port: u16,
        log: impl Fn(&Event) + Send + 'static,
    ) -> Result<Self, FlowError> {
        let counters = Arc::<Counters>::default();
        let sessions = if options.once { 1 } else { options.places.sessions };
        Ok(Self {
            places: Places::new(PlaceLimits { sessions, ..options.places }),
            tuner: options.tuning.clone().map(Tuner::new),
            options,
            failures: Mutex::default(),
            pending: PendingHandshakes::default(),
            begun: AtomicU32::new(0),
            ending: AtomicBool::new(false),
            port,
            waker: Waker::new()?,
            log: LogQueue::start(Arc::clone(&counters), log)?,
            counters,
            limiter: Mutex::default(),
            sessions_logged: Mutex::default(),
        })
    }

    /// Whether the server is stopping.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Returns the flag that is raised when it stops.
    pub fn ending(&self) -> &AtomicBool {
        &self.ending
    }

    /// Returns the number of the next session, for all protocols.
    pub fn next_number(&self) -> u32 {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Stops the server and its sessions.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Returns the waker of threads that wait at a port, used when the server stops.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Counts and logs an event.
    pub fn report(&self, event: &Event) {
        self.counters.note(event);
        let logged = match event {
            Event::TurnedAway { .. } => lock(&self.limiter).admits(Instant::now()),
            Event::Began { session, .. } => lock(&self.sessions_logged).begins(*session, Instant::now()),
            Event::Ended { session, .. } => lock(&self.sessions_logged).ends(*session),
            _ => true,
        };
        if logged {
            self.log.push(event.clone());
        }
    }

    /// Counts and logs a refused client.
    pub fn turn_away(&self, peer: SocketAddr, why: impl ToString) {
        self.report(&Event::TurnedAway { peer, why: why.to_string() });
    }

    /// Logs how many refusals and session starts were not logged one by one.
    pub(super) fn report_rest(&self) {
        let (now, within) = (Instant::now(), Nanos::from(log_limiter::WHILE));
        let omitted = lock(&self.limiter).take_omitted(now);
        if let Some(count) = omitted {
            self.log.push(Event::TurnedAwayMore { count, within });
        }
        let omitted = lock(&self.sessions_logged).take_omitted(now);
        if let Some(count) = omitted {
            self.log.push(Event::BeganMore { count, within });
        }
    }

    /// Closes the log, and waits this long for it to be written.
    pub(super) fn finish_log(&self, patience: Duration) {
        self.log.finish(patience);
    }
}
