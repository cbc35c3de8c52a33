//! What the threads of a server have in common, whatever protocol they speak.

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
    /// How settings of this host are changed for clients; none where they are not.
    pub tuning: Option<TuneOptions>,
    /// End after one session.
    pub once: bool,
}

/// The state of a server.
pub struct ServerState {
    /// As it was started.
    pub options: ServerOptions,
    /// Taken by the sessions of every protocol.
    pub places: Arc<Places>,
    /// Changes settings for clients, where that is allowed.
    pub(super) tuner: Option<Tuner>,
    /// Wrong proofs of the token that opens measuring.
    pub(super) failures: Mutex<Failures>,
    /// Clients that are being greeted.
    pub pending: PendingHandshakes,
    /// Sessions so far.
    begun: AtomicU32,
    ending: AtomicBool,
    /// Its own port, TCP and UDP.
    pub port: u16,
    waker: Waker,
    /// What it has done so far.
    pub counters: Arc<Counters>,
    limiter: Mutex<LogLimiter>,
    sessions_logged: Mutex<SessionLog>,
    log: LogQueue,
}

impl ServerState {
    /// Of a server at this port. `log` is called by a thread of its own.
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

    /// Has it end, and its sessions.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// What wakes a thread that waits at a port, when the server ends.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Counts and logs what has happened.
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

    /// Counts and logs that somebody is not let in.
    pub fn turn_away(&self, peer: SocketAddr, why: impl ToString) {
        self.report(&Event::TurnedAway { peer, why: why.to_string() });
    }

    /// Logs how many were turned away, and how many sessions began, beyond those that were logged.
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

    /// Waits so long for the log to be written; it takes no more.
    pub(super) fn finish_log(&self, patience: Duration) {
        self.log.finish(patience);
    }
}
