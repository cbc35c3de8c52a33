//! A session's use of its place: when it was last active, what its flows move, and why it was evicted.

use std::fmt;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bdp_flow::lock::lock;
use bdp_flow::meter::Meter;
use bdp_sys::clock;

/// How long the only one of an address that has not begun its work may keep its place from others.
const TO_BEGIN_NS: u64 = 1_000_000_000;
/// How long one that has may be silent, with nothing that runs, and still keep it.
const SILENCE_NS: u64 = 5_000_000_000;
/// Least rate of a session's flows, together, to keep its place from waiting clients: bytes per second, over
/// [`WINDOW_NS`].
pub(super) const LEAST_RATE: u64 = 1_000;
/// See [`LEAST_RATE`].
pub(super) const WINDOW_NS: u64 = 5_000_000_000;

/// Why a session was evicted for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Eviction {
    /// It was idle.
    Idle = 1,
    /// Its flows moved almost nothing.
    Slow,
    /// It had its place for long, and others waited.
    Turn,
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("evicted while idle to make room"),
            Self::Slow => {
                write!(f, "evicted to make room: it transferred less than {LEAST_RATE} bytes per second")
            }
            Self::Turn => f.write_str("evicted to make room: its time was up and another client was waiting"),
        }
    }
}

/// The activity of a session.
pub struct Activity {
    since_ns: u64,
    heard_ns: AtomicU64,
    has_begun: AtomicBool,
    pub(super) streams: AtomicU32,
    /// Memory held by its flows.
    pub(super) memory_bytes: AtomicU64,
    /// Bytes of finished flows, and of flows that a protocol counts itself.
    moved: AtomicU64,
    /// Meters of running flows.
    meters: Mutex<Vec<Arc<Meter>>>,
    progress: Mutex<Progress>,
    /// An [`Eviction`]; 0 before.
    evicted: AtomicU8,
    /// The connection, and the half of it that is shut down on eviction.
    connection: Option<(TcpStream, Shutdown)>,
}

/// The meter of one flow of a session.
pub struct Watched {
    activity: Arc<Activity>,
    meter: Arc<Meter>,
}

impl Watched {
    /// Returns the meter.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut meters = lock(&self.activity.meters);
        meters.retain(|other| !Arc::ptr_eq(other, &self.meter));
        self.activity.moved.fetch_add(self.meter.moved(), Ordering::Relaxed);
    }
}

/// How far it has got.
#[derive(Default)]
struct Progress {
    since_ns: u64,
    bytes: u64,
    is_slow: bool,
}

impl Activity {
    pub(super) fn new(now_ns: u64, connection: Option<(TcpStream, Shutdown)>) -> Self {
        Self {
            since_ns: now_ns,
            heard_ns: AtomicU64::new(now_ns),
            has_begun: AtomicBool::new(false),
            streams: AtomicU32::new(0),
            memory_bytes: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            meters: Mutex::default(),
            progress: Mutex::new(Progress { since_ns: now_ns, ..Progress::default() }),
            evicted: AtomicU8::new(0),
            connection,
        }
    }

    /// Notes that the session has begun or continued its work.
    pub fn note_heard(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.note_heard_at(clock::monotonic_ns());
    }

    pub(super) fn note_heard_at(&self, now_ns: u64) {
        self.heard_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Sets the total bytes moved, if its flows have no meter here.
    pub fn note_moved(&self, bytes: u64) {
        self.moved.store(bytes, Ordering::Relaxed);
    }

    /// Returns a meter whose bytes count for the session until it is dropped.
    pub fn watch(self: &Arc<Self>) -> Watched {
        let meter = Arc::<Meter>::default();
        lock(&self.meters).push(Arc::clone(&meter));
        Watched { activity: Arc::clone(self), meter }
    }

    /// Returns why the session was evicted, if it was.
    pub fn evicted(&self) -> Option<Eviction> {
        match self.evicted.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Eviction::Idle),
            2 => Some(Eviction::Slow),
            _ => Some(Eviction::Turn),
        }
    }

    /// Whether the session was evicted.
    pub fn is_evicted(&self) -> bool {
        self.evicted().is_some()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Returns how long the session has had its place.
    pub(super) fn held_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.since_ns)
    }

    /// Whether the session has been silent for so long that others take precedence.
    pub(super) fn is_silent(&self, now_ns: u64) -> bool {
        if !self.has_begun() {
            return self.held_ns(now_ns) >= TO_BEGIN_NS;
        }
        let silent_ns = now_ns.saturating_sub(self.heard_ns.load(Ordering::Relaxed));
        !self.runs() && silent_ns >= SILENCE_NS
    }

    fn runs(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0
    }

    /// Reads what its flows have moved; called several times per window.
    pub(super) fn observe(&self, now_ns: u64) {
        let running: u64 = lock(&self.meters).iter().map(|meter| meter.moved()).sum();
        let moved = self.moved.load(Ordering::Relaxed).saturating_add(running);
        let mut progress = lock(&self.progress);
        let passed_ns = now_ns.saturating_sub(progress.since_ns);
        if !self.runs() {
            *progress = Progress { since_ns: now_ns, bytes: moved, is_slow: false };
        } else if passed_ns >= WINDOW_NS {
            let more = u128::from(moved.saturating_sub(progress.bytes));
            let is_slow = more * 1_000_000_000 < u128::from(LEAST_RATE) * u128::from(passed_ns);
            *progress = Progress { since_ns: now_ns, bytes: moved, is_slow };
        }
    }

    /// Whether its flows moved too little at the last reading.
    pub(super) fn is_slow(&self) -> bool {
        lock(&self.progress).is_slow && self.runs()
    }

    /// Evicts the session: its own thread notices, and ends.
    pub(super) fn evict(&self, why: Eviction) {
        self.evicted.store(why as u8, Ordering::Relaxed);
        if let Some((connection, half)) = &self.connection {
            let _ = connection.shutdown(*half);
        }
    }

    #[cfg(test)]
    pub(super) fn begun_at(&self, heard_ns: u64) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.note_heard_at(heard_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Whether a session is slow that has moved this many bytes per second, after this many seconds.
    fn is_slow(rate: u64, seconds: u64) -> bool {
        let activity = Arc::new(Activity::new(0, None));
        activity.streams.store(1, Ordering::Relaxed);
        let flow = activity.watch();
        for second in 1..=seconds {
            flow.meter().set(rate * second);
            activity.observe(second * SECOND);
        }
        activity.is_slow()
    }

    #[test]
    fn flows_that_move_next_to_nothing_are_slow_after_a_window() {
        assert!(!is_slow(4, 4) && is_slow(4, 5) && is_slow(999, 30) && !is_slow(1_000, 30));
        assert!(is_slow(0, 5));
    }

    #[test]
    fn burst_counts_for_one_window_and_rest_between_flows_for_none() {
        let activity = Arc::new(Activity::new(0, None));
        activity.observe(100 * SECOND);
        activity.streams.store(1, Ordering::Relaxed);
        let flow = activity.watch();
        flow.meter().set(50_000_000);
        activity.observe(105 * SECOND);
        assert!(!activity.is_slow());
        activity.observe(110 * SECOND);
        assert!(activity.is_slow());
        drop(flow);
        activity.streams.store(0, Ordering::Relaxed);
        assert!(!activity.is_slow(), "nothing runs that could be slow");
        activity.observe(111 * SECOND);
        activity.streams.store(1, Ordering::Relaxed);
        activity.observe(115 * SECOND);
        assert!(!activity.is_slow(), "the next flow has its window");
        activity.observe(116 * SECOND);
        assert!(activity.is_slow(), "what flows before it moved is none of its own");
    }
}
