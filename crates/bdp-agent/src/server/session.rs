//! One client's session: serves its requests until it leaves.

use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bdp_model::units::{Nanos, format_bps};
use bdp_sys::socket;
use bdp_wire::control::{Answer, FAREWELL_ID, FlowOrder, Numbered, Request, Role};
use bdp_wire::datagram::Opening;
use bdp_wire::echo::{ECHO_BYTES, LONGEST_ECHO};
use bdp_wire::frame::{self, FrameError};
use bdp_wire::session::{Key, LONGEST_REQUEST, Limits, MOST_SAMPLES, Refusal, Ticket};
use bdp_wire::tuning::Sealed;

use super::access::Denied;
use super::counters::Counters;
use super::event::Event;
use super::flow::Terms;
use super::memory_cost;
use super::places::{Activity, Place};
use super::state::ServerState;
use super::tuning::TuneRight;
use super::{datagrams, echo};
use crate::agent::{Agent, Rights};
use crate::answers::Answers;
use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;
use bdp_flow::session::deadline::Until;

/// How long a client may ask nothing, beyond the time that its flows take.
const SILENCE: Duration = Duration::from_secs(60);
/// Flows of one session that have not been collected.
const MOST_FLOWS: usize = 4;
/// Most concurrent probe connections of a session: a client with a deep queue has some in flight.
const MOST_PROBES: usize = 32;
/// Longest interval, omit and write that are taken.
const LONGEST_INTERVAL: Nanos = Nanos::secs(3600);
const SHORTEST_INTERVAL: Nanos = Nanos::millis(1);
const LONGEST_WRITE: u64 = 64 << 20;

/// What a client may do in its session.
pub(super) struct Granted {
    /// Run flows and probes.
    pub(super) may_measure: bool,
    /// Change settings of this host.
    pub(super) tune: Option<TuneRight>,
}

/// A session, shared by its own thread, its flows' and the one that accepts connections.
pub(super) struct Session {
    key: Key,
    number: u32,
    peer: SocketAddr,
    granted: Granted,
    limits: Limits,
    counters: Arc<Counters>,
    began: Instant,
    /// Control connection, for hanging up.
    control: TcpStream,
    agent: Agent,
    /// Open probe connections, by numbers of their own.
    probes: Arc<Mutex<HashMap<u64, TcpStream>>>,
    probes_begun: AtomicU64,
    over: AtomicBool,
    /// Released when the session is over.
    place: Mutex<Option<Place>>,
    activity: Arc<Activity>,
}

impl Session {
    /// Creates a session that has its place.
    pub(super) fn new(
        server: &ServerState,
        key: Key,
        control: &TcpStream,
        peer: SocketAddr,
        place: Place,
        granted: Granted,
    ) -> Result<Self, Refusal> {
        let other = |e: std::io::Error| Refusal::Other {
            text: format!("no file descriptor left on the server: {e}"),
        };
        Ok(Self {
            key,
            number: server.next_number(),
            peer,
            granted,
            limits: server.options.limits,
            counters: Arc::clone(&server.counters),
            began: Instant::now(),
            control: control.try_clone().map_err(other)?,
            agent: Agent::new(
                Rights::Session,
                Answers::new(control.try_clone().map_err(other)?),
                control.local_addr().map_or(server.options.listen.ip(), |local| local.ip()),
            ),
            probes: Arc::default(),
            probes_begun: AtomicU64::new(0),
            over: AtomicBool::new(false),
            activity: Arc::clone(place.activity()),
            place: Mutex::new(Some(place)),
        })
    }

    /// Returns its number, from 1.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Whether its client may run flows and probes.
    pub(super) fn may_measure(&self) -> bool {
        self.granted.may_measure
    }

    /// Whether its client may change settings of this host.
    pub(super) fn may_tune(&self) -> bool {
        self.granted.tune.is_some()
    }

    /// Serves the client until it leaves, falls silent, or the server stops, and releases its place; returns how it
    /// ended.
    pub(super) fn serve(&self, server: &ServerState, stream: &TcpStream) -> Event {
        let mut flows = 0;
        let why = loop {
            let patience = SILENCE + self.agent.longest_flow().to_duration();
            let mut reader = Until::new(stream, patience);
            match frame::read_bounded::<Numbered<Request>>(&mut reader, LONGEST_REQUEST) {
                Ok(Numbered { id, body }) => {
                    self.activity.note_heard();
                    self.carry_out(server, id, body, &mut flows);
                }
                Err(_) if let Some(eviction) = self.activity.evicted() => {
                    // Only its requests have ended: the client can still receive the reason.
                    let farewell = FlowError::Refused(format!("busy: this session was {eviction}"));
                    self.agent.answers().give(FAREWELL_ID, Err(farewell));
                    break Some(eviction.to_string());
                }
                Err(_) if self.agent.answers().why_given_up().is_some() => {
                    break self.agent.answers().why_given_up();
                }
                Err(FrameError::Closed) if server.is_ending() => break Some("the server ends".to_owned()),
                Err(FrameError::Closed) if self.agent.flows_under_way() > 0 => {
                    break Some("the client disconnected during a flow".to_owned());
                }
                Err(FrameError::Closed) => break None,
                Err(FrameError::Silent) => break Some(format!("silent for {}", Nanos::from(patience))),
                Err(error) => break Some(error.to_string()),
            }
        };
        self.close();
        drop(lock(&self.place).take());
        let took = Nanos::from(self.began.elapsed());
        Event::Ended { session: self.number, peer: self.peer, took, flows, why }
    }

    fn carry_out(&self, server: &ServerState, id: u64, request: Request, flows: &mut u32) {
        let answer = match request {
            Request::Tune(sealed) => self.tune(server, id, &sealed).map_err(FlowError::Refused),
            _ if !self.may_measure() => Err(FlowError::Refused(
                "the tune token permits only tuning; to measure, give the token of this server".to_owned(),
            )),
            Request::Prepare(order) => {
                let answer = self.prepare(*order);
                *flows += u32::from(answer.is_ok());
                answer
            }
            request => return self.agent.carry_out(id, request),
        };
        self.agent.answers().give(id, answer);
    }

    /// Changes settings of this host, or reports them.
    fn tune(&self, server: &ServerState, id: u64, sealed: &Sealed) -> Result<Answer, String> {
        let Some(tuner) = &server.tuner else {
            return Err(
                "remote changes of settings are not allowed on this host (--allow-tune there)".to_owned()
            );
        };
        let Some(right) = &self.granted.tune else {
            return Err("changing settings needs the tune token of this server (--tune-token)".to_owned());
        };
        let (answer, log) = tuner.answer(right, self.peer, id, sealed)?;
        for what in log {
            server.report(&Event::Tuned { session: self.number, peer: self.peer, what });
        }
        Ok(Answer::Tuned(answer))
    }

    fn prepare(&self, mut order: FlowOrder) -> Result<Answer, FlowError> {
        self.check(&order).map_err(FlowError::Refused)?;
        datagrams::grant(&mut order, self.limits.rate).map_err(FlowError::Refused)?;
        if self.agent.flows_under_way() >= MOST_FLOWS {
            return Err(FlowError::Refused(format!(
                "a session may have at most {MOST_FLOWS} parallel flows"
            )));
        }
        let refused = |denied: Denied| FlowError::Refused(denied.to_string());
        let (places, memory) = match &*lock(&self.place) {
            Some(place) => {
                let memory = place.take_memory(memory_cost::of_order(&order)).map_err(refused)?;
                (place.take_streams(order.spec.streams).map_err(refused)?, memory)
            }
            None => return Err(FlowError::Refused("the session is over".to_owned())),
        };
        let (counters, rate) = (Arc::clone(&self.counters), self.limits.rate);
        self.agent.prepare(order, Terms { rate, counters, places: Some(places), memory: Some(memory) })
    }

    /// Checks an order against the server's limits and against what is possible at all.
    fn check(&self, order: &FlowOrder) -> Result<(), String> {
        let Limits { duration, streams, .. } = self.limits;
        if order.spec.duration > duration {
            return Err(format!(
                "{} requested, and the server allows at most {duration} per flow (--max-duration there)",
                order.spec.duration
            ));
        }
        if order.spec.streams > streams {
            return Err(format!(
                "{} streams requested, and the server allows at most {streams} (--max-streams there)",
                order.spec.streams
            ));
        }
        if let (Some(rate), Some(granted), Role::Receive) =
            (order.spec.pacing_bps, self.limits.rate, order.role)
            && rate.saturating_mul(u64::from(order.spec.streams)) > granted.as_bps()
        {
            let asked = format_bps(rate as f64 * f64::from(order.spec.streams));
            return Err(format!(
                "{asked} requested, and the server allows at most {granted} per flow (--max-rate there)"
            ));
        }
        if order.spec.interval < SHORTEST_INTERVAL
            || order.spec.duration.as_ns() / order.spec.interval.as_ns() > MOST_SAMPLES
        {
            return Err(format!(
                "the server keeps at most {MOST_SAMPLES} samples per flow; set a longer interval"
            ));
        }
        if let (Some(name), Role::Send) = (&order.spec.congestion, order.role) {
            socket::check_congestion(name).map_err(|e| e.to_string())?;
        }
        let whole = order.spec.streams > 0
            && order.spec.length.as_bytes() > 0
            && order.spec.length.as_bytes() <= LONGEST_WRITE
            && order.spec.interval <= LONGEST_INTERVAL
            && order.spec.omit <= order.spec.duration
            && order.spec.socket.too_large().is_none()
            && order.spec.dscp.is_none_or(|dscp| dscp < 64);
        if whole { Ok(()) } else { Err("the flow's parameters are out of range".to_owned()) }
    }

    /// Adds a stream to its flow.
    pub(super) fn take_stream(&self, ticket: &Ticket, stream: TcpStream) -> Result<(), String> {
        let flow = self.agent.flow(ticket.flow);
        flow.ok_or_else(|| format!("session {} has no flow {}", self.number, ticket.flow))?
            .take_stream(ticket.stream, stream)
    }

    /// Adds a stream of datagrams to its flow, between two addresses, the client's being proven.
    pub(super) fn take_datagrams(
        &self,
        opening: &Opening,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Result<(), String> {
        let flow = self.agent.flow(opening.flow);
        flow.ok_or_else(|| format!("session {} has no flow {}", self.number, opening.flow))?
            .take_datagrams(opening, local, peer)
    }

    /// Answers probes on a connection of their own, for paths that drop datagrams.
    pub(super) fn answer_probes_on(&self, stream: TcpStream) -> Result<(), String> {
        stream.set_nonblocking(false).map_err(|e| e.to_string())?;
        let (key, activity) = (self.key, Arc::clone(&self.activity));
        self.answer_on(stream, move |stream| echo::answer_probes_on(stream, key, &activity))
    }

    /// Echoes messages of this length, each with the times of its arrival and return.
    pub(super) fn answer_echoes_on(&self, stream: TcpStream, length: u32) -> Result<(), String> {
        let length = length as usize;
        if !(ECHO_BYTES..=LONGEST_ECHO).contains(&length) {
            return Err(format!("messages of {length} bytes are not echoed"));
        }
        let (key, activity) = (self.key, Arc::clone(&self.activity));
        self.answer_on(stream, move |stream| echo::answer_on(stream, key, length, &activity))
    }

    fn answer_on(
        &self,
        stream: TcpStream,
        answer: impl FnOnce(&TcpStream) + Send + 'static,
    ) -> Result<(), String> {
        let text = |e: std::io::Error| e.to_string();
        stream.set_nodelay(true).map_err(text)?;
        let mut probes = lock(&self.probes);
        if probes.len() >= MOST_PROBES || self.over.load(Ordering::Relaxed) {
            return Err(format!("session {} already has its probe connections", self.number));
        }
        let number = self.probes_begun.fetch_add(1, Ordering::Relaxed);
        probes.insert(number, stream.try_clone().map_err(text)?);
        drop(probes);
        let open = Arc::clone(&self.probes);
        bdp_flow::worker::start(move || {
            answer(&stream);
            lock(&open).remove(&number);
        })
        .map(drop)
        .map_err(|e| e.to_string())
    }

    /// Notes that its client is active, so that it keeps its place.
    pub(super) fn note_heard(&self) {
        self.activity.note_heard();
    }

    /// Makes the session's thread notice that the server stops.
    pub(super) fn hang_up(&self) {
        let _ = self.control.shutdown(Shutdown::Both);
    }

    fn close(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.hang_up();
        self.agent.abandon();
        for (_, probe) in lock(&self.probes).drain() {
            let _ = probe.shutdown(Shutdown::Both);
        }
    }
}
