//! The places of a server, shared by its threads: one for each session, given back when that ends.
//!
//! Where none is left, a session that is idle is evicted for the next who comes, so that nobody keeps others
//! out by saying nothing.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bdp_sys::clock;

use super::access::{Denied, Occupancy, PlaceLimits, origin};
use super::eviction::oldest_of_most;

use bdp_flow::lock::lock;

/// How long the only one of an address that has not begun its work may keep its place from others.
const TO_BEGIN_NS: u64 = 1_000_000_000;
/// How long one that has may be silent, with nothing that runs, and still keep it.
const SILENCE_NS: u64 = 5_000_000_000;
/// Why one lost its place, for the log.
pub const EVICTED: &str = "evicted while idle to make room";

/// How much of a server is taken.
pub struct Places {
    limits: PlaceLimits,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    occupancy: Occupancy,
    next: u64,
    /// By number, which grows: oldest first.
    held: BTreeMap<u64, (IpAddr, Arc<Activity>)>,
}

/// What a session does with its place.
pub struct Activity {
    since_ns: u64,
    heard_ns: AtomicU64,
    has_begun: AtomicBool,
    streams: AtomicU32,
    is_evicted: AtomicBool,
    /// Hung up where it is evicted.
    connection: Option<TcpStream>,
}

/// The place of a session; given back when this is dropped.
pub struct Place {
    places: Arc<Places>,
    peer: IpAddr,
    number: u64,
    activity: Arc<Activity>,
}

/// The places of some streams; given back when this is dropped.
pub struct StreamPlaces {
    places: Arc<Places>,
    peer: IpAddr,
    streams: u32,
    activity: Arc<Activity>,
}

impl Places {
    /// None of them taken.
    pub fn new(limits: PlaceLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// Takes a place for a session, of whatever protocol: somebody else's, who does nothing with it, where there is none
    /// left. `connection` is hung up where this session is evicted in turn.
    pub fn enter(self: &Arc<Self>, peer: IpAddr, connection: Option<&TcpStream>) -> Result<Place, Denied> {
        let now_ns = clock::monotonic_ns();
        let activity = Arc::new(Activity::new(now_ns, connection.and_then(|c| c.try_clone().ok())));
        let mut taken = lock(&self.taken);
        if let Err(denied) = taken.occupancy.enter(peer, &self.limits) {
            let (address, silent) = taken.evict(&denied, peer, now_ns).ok_or(denied)?;
            taken.occupancy.leave(address);
            silent.evict();
            taken.occupancy.enter(peer, &self.limits)?;
        }
        let number = taken.next;
        taken.next += 1;
        taken.held.insert(number, (peer, Arc::clone(&activity)));
        Ok(Place { places: Arc::clone(self), peer, number, activity })
    }

    /// Whether no session more can be served.
    pub fn is_full(&self) -> bool {
        let taken = lock(&self.taken);
        taken.occupancy.sessions() >= self.limits.sessions
            && taken.idle(clock::monotonic_ns(), |_| true).is_none()
    }

    /// Most sessions at once.
    pub fn sessions(&self) -> u32 {
        self.limits.sessions
    }
}

impl Taken {
    /// Whom a session of this address evicts that was denied for want of a place.
    fn evict(&mut self, denied: &Denied, peer: IpAddr, now_ns: u64) -> Option<(IpAddr, Arc<Activity>)> {
        let number = match denied {
            Denied::Full { .. } => self.idle(now_ns, |_| true),
            Denied::AddressFull { .. } => self.idle(now_ns, |address| origin(address) == origin(peer)),
            _ => None,
        }?;
        self.held.remove(&number)
    }

    /// One that does nothing with its place, of the address that has most of them.
    fn idle(&self, now_ns: u64, counts: impl Fn(IpAddr) -> bool) -> Option<u64> {
        let held = || self.held.iter().filter(|(_, (address, _))| counts(*address));
        let mut beginners: HashMap<IpAddr, u32> = HashMap::new();
        for (_, (address, _)) in held().filter(|(_, (_, activity))| !activity.has_begun()) {
            *beginners.entry(origin(*address)).or_default() += 1;
        }
        let is_idle = |address: IpAddr, activity: &Activity| {
            let others = beginners.get(&origin(address)).is_some_and(|&beginners| beginners > 1);
            activity.is_silent(now_ns) || !activity.has_begun() && others
        };
        let idle = held().filter(|(_, (address, activity))| is_idle(*address, activity));
        oldest_of_most(idle.map(|(&number, (address, _))| (number, *address)))
    }
}

impl Activity {
    fn new(now_ns: u64, connection: Option<TcpStream>) -> Self {
        Self {
            since_ns: now_ns,
            heard_ns: AtomicU64::new(now_ns),
            has_begun: AtomicBool::new(false),
            streams: AtomicU32::new(0),
            is_evicted: AtomicBool::new(false),
            connection,
        }
    }

    /// Notes that it has begun its work, or goes on with it.
    pub fn note_heard(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.heard_ns.store(clock::monotonic_ns(), Ordering::Relaxed);
    }

    /// Whether its place is another's.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Whether it has said nothing for so long that others come first.
    fn is_silent(&self, now_ns: u64) -> bool {
        if !self.has_begun() {
            return now_ns.saturating_sub(self.since_ns) >= TO_BEGIN_NS;
        }
        let silent_ns = now_ns.saturating_sub(self.heard_ns.load(Ordering::Relaxed));
        self.streams.load(Ordering::Relaxed) == 0 && silent_ns >= SILENCE_NS
    }

    /// Its own thread notices, and ends.
    fn evict(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        if let Some(connection) = &self.connection {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Place {
    /// What is done with it.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Takes places for streams of this session, all or none.
    pub fn take_streams(&self, streams: u32) -> Result<StreamPlaces, Denied> {
        lock(&self.places.taken).occupancy.take_streams(self.peer, streams, &self.places.limits)?;
        self.activity.streams.fetch_add(streams, Ordering::Relaxed);
        let activity = Arc::clone(&self.activity);
        Ok(StreamPlaces { places: Arc::clone(&self.places), peer: self.peer, streams, activity })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.taken);
        // One that was evicted has none any more.
        if taken.held.remove(&self.number).is_some() {
            taken.occupancy.leave(self.peer);
        }
    }
}

impl Drop for StreamPlaces {
    fn drop(&mut self) {
        self.activity.streams.fetch_sub(self.streams, Ordering::Relaxed);
        self.activity.heard_ns.store(clock::monotonic_ns(), Ordering::Relaxed);
        lock(&self.places.taken).occupancy.give_streams(self.peer, self.streams);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Who would be evicted, of places by the address of their holder, when it came, when it was heard and whether it has
    /// streams that run.
    fn idle(held: &[(&str, u64, Option<u64>, bool)], now_ns: u64) -> Option<u64> {
        let mut taken = Taken::default();
        for (number, &(address, since_ns, heard_ns, runs)) in held.iter().enumerate() {
            let activity = Activity::new(since_ns, None);
            if let Some(heard_ns) = heard_ns {
                activity.has_begun.store(true, Ordering::Relaxed);
                activity.heard_ns.store(heard_ns, Ordering::Relaxed);
            }
            activity.streams.store(u32::from(runs), Ordering::Relaxed);
            taken.held.insert(number as u64, (address.parse().unwrap(), Arc::new(activity)));
        }
        taken.idle(now_ns, |_| true)
    }

    #[test]
    fn only_an_idle_session_is_evicted() {
        let (one, other) = ("192.0.2.1", "192.0.2.2");
        assert_eq!(idle(&[], SECOND), None);
        // What runs stays, however long it is silent, and so does who was heard lately.
        assert_eq!(idle(&[(one, 0, Some(0), true), (other, 0, Some(90 * SECOND), false)], 94 * SECOND), None);
        assert_eq!(
            idle(&[(one, 0, Some(0), true), (other, 0, Some(90 * SECOND), false)], 95 * SECOND),
            Some(1)
        );
        // One that comes has a second to begin; of two of an address the first goes at once.
        assert_eq!(idle(&[(one, 0, None, false)], SECOND - 1), None);
        assert_eq!(idle(&[(one, 0, None, false)], SECOND), Some(0));
        assert_eq!(
            idle(&[(other, 0, None, false), (one, 1, None, false), (one, 2, None, false)], 3),
            Some(1)
        );
        // Streams that are asked for and never come are no work.
        assert_eq!(idle(&[(one, 0, None, true)], SECOND), Some(0));
    }

    #[test]
    fn place_of_an_evicted_session_is_returned_once() {
        let limits = PlaceLimits { sessions: 2, sessions_per_address: 2, streams_per_address: 9 };
        let places = Places::new(limits);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let first = places.enter(address, None).unwrap();
        let second = places.enter(address, None).unwrap();
        assert!(!places.is_full());
        let third = places.enter(address, None).unwrap();
        assert!(first.activity().is_evicted() && !second.activity().is_evicted());
        drop(first);
        second.activity().note_heard();
        third.activity().note_heard();
        assert!(places.is_full());
        assert!(matches!(places.enter(address, None), Err(Denied::Full { sessions: 2 })));
        drop((second, third));
        assert!(!places.is_full() && lock(&places.taken).held.is_empty());
    }
}
