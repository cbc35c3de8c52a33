//! One visitor's session: its place on the server, its stages and its transfers.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bdp_agent::server::access::{Denied, origin};
use bdp_agent::server::places::{MemoryHold, Place, StreamPlaces};
use bdp_agent::server::{Event, ServerState};
use bdp_flow::lock::lock;
use bdp_model::units::Nanos;
use bdp_model::visit::{RAMP_NS, VisitDirection};
use bdp_sys::{clock, tcp_info};
use bdp_wire::session::Limits;

use super::connection::Connection;
use super::live::LiveReading;
use super::stage::{STAGE_BYTES, Stage};
use super::turned::Turned;

/// A session ends this long after its last request.
const SILENCE: Duration = Duration::from_secs(60);
/// It ends this long after its events and pings were closed, or its result was made.
const LEFT: Duration = Duration::from_secs(3);
/// Time of a session beyond its two directions.
const AROUND: Duration = Duration::from_secs(90);
/// Most transfers of a session at once.
const MOST_TRANSFERS: u32 = 4;
/// Most streams of pings of a session at once: one, and one that replaces it.
const MOST_PINGS: u32 = 2;
/// How long a transfer may take to end after its time.
const GRACE_NS: u64 = 2_000_000_000;
/// Most round trips kept of the pings.
const MOST_TRIPS: usize = 10_000;
/// Memory of a session: both directions, and the round trips beside them.
pub(super) const SESSION_BYTES: usize = 2 * (STAGE_BYTES + 2 * MOST_TRIPS * size_of::<u64>());

/// A stage that a page marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// No load.
    Idle,
    /// Begin of a direction.
    Direction(VisitDirection),
}

/// A visitor's session.
pub struct Visit {
    pub(super) id: String,
    number: u32,
    pub(super) peer: SocketAddr,
    pub(super) server: Arc<ServerState>,
    pub(super) limits: Limits,
    began: Instant,
    /// Released with the result, or when the session ends.
    held: Mutex<Option<(Place, MemoryHold)>>,
    state: Mutex<State>,
    /// The key of its result, once that is made; locked while it is.
    pub(super) result: Mutex<Option<String>>,
    over: AtomicBool,
    flows: AtomicU32,
    /// Transfers that run, with those that were broken off and have not noticed yet.
    running: AtomicU32,
}

/// What changes during a session.
struct State {
    mark: Mark,
    marked_ns: u64,
    heard: Instant,
    /// Open streams of events and of pings, those of pings, and when the last of them was closed.
    listeners: u32,
    pings: u32,
    left: Option<Instant>,
    down: Option<Stage>,
    up: Option<Stage>,
    /// Bytes moved by stages, down and up, that [`Visit::take_moved`] has not returned.
    moved: [u64; 2],
    /// The kernel's round trips of the connection of the pings, beside down and beside up.
    trips: [Vec<u64>; 2],
    /// When the next byte of an upload may be read, by the rate limit.
    free_ns: u64,
    ended: Option<String>,
    /// Whether a program between browser and server ends the connections.
    through_proxy: bool,
    /// When its result was made.
    done: Option<Instant>,
}

/// What is known of a visit at its end.
pub(super) struct Done {
    /// Down and up.
    pub(super) stages: [Option<Stage>; 2],
    /// See [`State::trips`].
    pub(super) trips: [Vec<u64>; 2],
    pub(super) through_proxy: bool,
}

impl State {
    fn stage(&mut self, direction: VisitDirection) -> &mut Option<Stage> {
        match direction {
            VisitDirection::Down => &mut self.down,
            VisitDirection::Up => &mut self.up,
        }
    }

    fn stages(&self) -> impl Iterator<Item = &Stage> {
        [&self.down, &self.up].into_iter().flatten()
    }

    /// Counts what the stages have moved.
    fn count(&mut self) {
        for (stage, moved) in [&mut self.down, &mut self.up].into_iter().zip(&mut self.moved) {
            *moved += stage.as_mut().map_or(0, Stage::take_moved);
        }
    }

    /// Ends the stages and breaks their transfers off, with a last reading.
    fn end_stages(&mut self, now_ns: u64) {
        for stage in [&mut self.down, &mut self.up].into_iter().flatten() {
            stage.sample(now_ns);
            stage.end(now_ns);
            stage.break_off();
        }
        self.count();
    }
}

/// A transfer that runs, until it is dropped.
pub struct Transfer {
    visit: Arc<Visit>,
    direction: VisitDirection,
    connection: Arc<Connection>,
    /// Held until it has really ended, whatever becomes of its stage.
    _places: StreamPlaces,
    /// When its time is up.
    pub until: Instant,
    /// Whether the client has sent all that it wanted to, and may send more.
    pub is_whole: bool,
}

/// A visitor's stream of events or of pings, until it is dropped.
pub struct Listener {
    visit: Arc<Visit>,
    pings: u32,
}

impl Visit {
    pub(super) fn new(
        id: String,
        peer: SocketAddr,
        server: &Arc<ServerState>,
        limits: Limits,
        held: (Place, MemoryHold),
    ) -> Self {
        held.0.activity().note_heard();
        let number = server.next_number();
        server.report(&Event::Began { session: number, peer, program: "a browser".to_owned() });
        Self {
            id,
            number,
            peer,
            server: Arc::clone(server),
            limits,
            began: Instant::now(),
            held: Mutex::new(Some(held)),
            state: Mutex::new(State {
                mark: Mark::Idle,
                marked_ns: clock::monotonic_ns(),
                heard: Instant::now(),
                listeners: 0,
                pings: 0,
                left: None,
                down: None,
                up: None,
                moved: [0; 2],
                trips: Default::default(),
                free_ns: 0,
                ended: None,
                through_proxy: false,
                done: None,
            }),
            result: Mutex::default(),
            over: AtomicBool::new(false),
            flows: AtomicU32::new(0),
            running: AtomicU32::new(0),
        }
    }

    /// Returns its id, which only its visitor knows.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it belongs to this address.
    pub fn is_of(&self, peer: IpAddr) -> bool {
        origin(peer) == origin(self.peer.ip())
    }

    /// Notes a request, so that it is kept.
    pub fn note_heard(&self) {
        lock(&self.state).heard = Instant::now();
        if let Some((place, _)) = &*lock(&self.held) {
            place.activity().note_heard();
        }
    }

    /// Notes that a program between browser and server ends the connections.
    pub fn note_proxy(&self) {
        lock(&self.state).through_proxy = true;
    }

    /// Notes a stream of events.
    pub fn listen(self: &Arc<Self>) -> Listener {
        lock(&self.state).listeners += 1;
        Listener { visit: Arc::clone(self), pings: 0 }
    }

    /// Notes a stream of pings; a visit may have few.
    pub fn listen_to_pings(self: &Arc<Self>) -> Result<Listener, Turned> {
        let mut state = lock(&self.state);
        if state.pings >= MOST_PINGS {
            return Err(Turned::busy(format!("a visit may have {MOST_PINGS} streams of pings at once")));
        }
        state.pings += 1;
        state.listeners += 1;
        Ok(Listener { visit: Arc::clone(self), pings: 1 })
    }

    /// Begins a stage: the directions end with their transfers, and a direction that is marked begins anew.
    pub fn mark(&self, mark: Mark) {
        let mut state = lock(&self.state);
        let now_ns = clock::monotonic_ns();
        state.end_stages(now_ns);
        if let Mark::Direction(direction) = mark {
            *state.stage(direction) = Some(Stage::new(direction, now_ns));
        }
        state.mark = mark;
        state.marked_ns = now_ns;
    }

    /// Begins a transfer on a connection.
    pub fn begin(
        self: &Arc<Self>,
        direction: VisitDirection,
        connection: &Arc<Connection>,
    ) -> Result<Transfer, Turned> {
        let places = {
            let held = lock(&self.held);
            let Some((place, _)) = &*held else { return Err(Turned::gone()) };
            place.take_streams(1).map_err(|denied: Denied| Turned::busy(denied.to_string()))?
        };
        let mut state = lock(&self.state);
        let now_ns = clock::monotonic_ns();
        let most = MOST_TRANSFERS.min(self.limits.streams);
        let open = state.stages().filter(|stage| !stage.has_ended());
        // Those of a stage that has ended are broken off, and soon gone.
        let is_full = open.map(Stage::running).sum::<usize>() >= most as usize;
        if is_full || self.running.load(Ordering::Relaxed) >= 2 * most {
            return Err(Turned::busy(format!("a visit may have {most} transfers at once")));
        }
        if state.stage(direction).as_ref().is_none_or(Stage::has_ended) {
            state.count();
            *state.stage(direction) = Some(Stage::new(direction, now_ns));
        }
        let stage = state.stage(direction).get_or_insert_with(|| Stage::new(direction, now_ns));
        if !stage.begin(connection, Arc::clone(places.meter()), now_ns) {
            return Err(Turned::busy("this direction has had too many connections".to_owned()));
        }
        stage.pace(self.limits.rate.map(|rate| rate.as_bps()));
        let left_ns = self.limits.duration.as_ns().saturating_sub(stage.elapsed_ns(now_ns));
        self.flows.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        let (visit, connection) = (Arc::clone(self), Arc::clone(connection));
        let until = Instant::now() + Duration::from_nanos(left_ns);
        Ok(Transfer { visit, direction, connection, _places: places, until, is_whole: false })
    }

    /// Returns the kernel's round trip of a connection, and its smallest.
    pub fn round_trip(&self, connection: &Connection) -> Option<(u64, u64)> {
        let figures = tcp_info::read(&connection.stream).ok()?;
        let (rtt, least) = figures.rtt_ns.zip(figures.min_rtt_ns)?;
        let mut state = lock(&self.state);
        let now_ns = clock::monotonic_ns();
        let is_loaded = |stage: &&Stage| stage.running() > 0 && stage.elapsed_ns(now_ns) >= RAMP_NS;
        if let Mark::Direction(direction) = state.mark
            && state.stage(direction).as_ref().filter(is_loaded).is_some()
        {
            let trips = &mut state.trips[usize::from(direction == VisitDirection::Up)];
            if trips.len() < MOST_TRIPS {
                trips.push(rtt);
            }
        }
        Some((rtt, least))
    }

    /// Returns its state now.
    pub fn live(&self) -> LiveReading {
        let mut state = lock(&self.state);
        let now_ns = clock::monotonic_ns();
        let (is_done, mark, ended) = (state.done.is_some(), state.mark, state.ended.clone());
        let marked_ns = state.marked_ns;
        let stage = match mark {
            Mark::Direction(direction) if !is_done => state.stage(direction).as_ref(),
            _ => None,
        };
        let name = match mark {
            _ if is_done => "done",
            Mark::Idle => "idle",
            Mark::Direction(direction) => direction.name(),
        };
        let bytes = |of: VisitDirection| stage.filter(|stage| stage.direction == of).map_or(0, Stage::bytes);
        LiveReading {
            stage: name,
            elapsed_ns: stage.map_or(now_ns.saturating_sub(marked_ns), |stage| stage.elapsed_ns(now_ns)),
            received_bytes: bytes(VisitDirection::Up),
            acked_bytes: bytes(VisitDirection::Down),
            connections: stage.map_or_else(Vec::new, Stage::live),
            ended,
        }
    }

    /// Takes a reading of each connection.
    pub(super) fn sample(&self) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let now_ns = clock::monotonic_ns();
        let limit_ns = self.limits.duration.as_ns() + GRACE_NS;
        for stage in [&mut state.down, &mut state.up].into_iter().flatten() {
            stage.sample(now_ns);
            if stage.running() > 0 && now_ns.saturating_sub(stage.began_ns) > limit_ns {
                // Its browser reads nothing, or sends nothing.
                stage.break_off();
            }
        }
    }

    /// Returns the bytes moved since this was last asked, by all that ran meanwhile.
    pub(super) fn take_moved(&self) -> u64 {
        let mut state = lock(&self.state);
        state.count();
        let [down, up] = std::mem::take(&mut state.moved);
        drop(state);
        self.server.counters.add_sent(down);
        self.server.counters.add_received(up);
        down + up
    }

    /// Why the session must end now, if it must.
    pub(super) fn is_due(&self) -> Option<String> {
        let evicted = lock(&self.held).as_ref().and_then(|(place, _)| place.activity().evicted());
        if let Some(eviction) = evicted {
            return Some(eviction.to_string());
        }
        let state = lock(&self.state);
        let runs = state.stages().any(|stage| stage.running() > 0);
        if state.heard.elapsed() > SILENCE && !runs {
            return Some(format!("silent for {}", Nanos::from(SILENCE)));
        }
        let longest = self.limits.duration.to_duration() * 2 + AROUND;
        (self.began.elapsed() > longest).then(|| format!("its time of {} is over", Nanos::from(longest)))
    }

    /// Whether its visitor has left, with the result or without.
    pub(super) fn has_left(&self) -> bool {
        let state = lock(&self.state);
        let is_long_ago = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() > LEFT);
        let is_idle = state.stages().all(|stage| stage.running() == 0) && is_long_ago(Some(state.heard));
        is_long_ago(state.done) || is_idle && state.listeners == 0 && is_long_ago(state.left)
    }

    /// Ends the session and releases its place.
    pub fn end(&self, why: Option<String>) {
        if self.over.swap(true, Ordering::Relaxed) {
            return;
        }
        {
            let mut state = lock(&self.state);
            state.end_stages(clock::monotonic_ns());
            // Of a visit with its result, that is no news.
            if state.done.is_none() {
                state.ended = Some(why.clone().unwrap_or_else(|| "its visitor has left".to_owned()));
            }
        }
        drop(lock(&self.held).take());
        let (took, flows) = (Nanos::from(self.began.elapsed()), self.flows.load(Ordering::Relaxed));
        self.server.report(&Event::Ended { session: self.number, peer: self.peer, took, flows, why });
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Notes that its result is being made, releases its place, and hands out what is known.
    pub(super) fn done(&self) -> Done {
        self.mark(Mark::Idle);
        let mut state = lock(&self.state);
        state.done = Some(Instant::now());
        let done = Done {
            stages: [state.down.take(), state.up.take()],
            trips: std::mem::take(&mut state.trips),
            through_proxy: state.through_proxy,
        };
        drop(state);
        drop(lock(&self.held).take());
        done
    }
}

impl Transfer {
    /// Whether its time is up, or its session over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.visit.is_over()
    }

    /// How long to wait before reading more, by the rate limit, after these bytes.
    pub fn wait_after(&self, bytes: usize) -> Duration {
        /// Shorter waits would cost more than they are worth.
        const LEAST_NS: u64 = 2_000_000;
        let Some(rate) = self.visit.limits.rate else { return Duration::ZERO };
        let took_ns = (bytes as u128 * 8_000_000_000 / u128::from(rate.as_bps().max(1))) as u64;
        let mut state = lock(&self.visit.state);
        let now_ns = clock::monotonic_ns();
        // What a pause left unused is lost, but for the last wait.
        state.free_ns = state.free_ns.max(now_ns.saturating_sub(LEAST_NS)) + took_ns;
        let wait_ns = state.free_ns.saturating_sub(now_ns);
        Duration::from_nanos(if wait_ns < LEAST_NS { 0 } else { wait_ns })
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.visit.running.fetch_sub(1, Ordering::Relaxed);
        let mut state = lock(&self.visit.state);
        let now_ns = clock::monotonic_ns();
        if let Some(stage) = state.stage(self.direction) {
            stage.finish(self.connection.number, self.is_whole, now_ns);
        }
        state.heard = Instant::now();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = lock(&self.visit.state);
        state.listeners -= 1;
        state.pings -= self.pings;
        state.left = Some(Instant::now());
    }
}
