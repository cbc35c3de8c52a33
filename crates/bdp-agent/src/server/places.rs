//! The places of a server, shared by its threads: one for each session, released when that ends.
//!
//! If none is left, an idle session is evicted for the next client, so that nobody can keep others out by staying
//! silent. On a server for strangers, so is a session whose flows move almost nothing, and one that has had its turn.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bdp_sys::clock;

use super::access::{Denied, Occupancy, PlaceLimits, origin};
pub use super::activity::{Activity, Eviction, Watched};
use super::eviction::oldest_of_most;
use super::memory_ledger::{MemoryLedger, most_of_session};
use super::waiting_line::WaitingLine;

use bdp_flow::lock::lock;
use bdp_flow::meter::Meter;

/// How long to wait for memory that a finished flow is about to release.
const MEMORY_PATIENCE: Duration = Duration::from_millis(500);
/// Interval at which memory is checked.
const MEMORY_LOOK: Duration = Duration::from_millis(5);

/// The used places of a server.
pub struct Places {
    limits: PlaceLimits,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    occupancy: Occupancy,
    memory: MemoryLedger,
    line: WaitingLine,
    next: u64,
    /// By increasing number: oldest first.
    held: BTreeMap<u64, (IpAddr, Arc<Activity>)>,
}

/// The place of a session; released when this is dropped.
pub struct Place {
    places: Arc<Places>,
    peer: IpAddr,
    number: u64,
    activity: Arc<Activity>,
}

/// The places of some streams; released when this is dropped.
pub struct StreamPlaces {
    places: Arc<Places>,
    peer: IpAddr,
    streams: u32,
    activity: Arc<Activity>,
    /// The meter of their flow.
    watched: Watched,
}

/// Memory of a flow; released when this is dropped.
pub struct MemoryHold {
    places: Arc<Places>,
    peer: IpAddr,
    bytes: u64,
    activity: Arc<Activity>,
}

impl Places {
    /// Creates the places, all free.
    pub fn new(limits: PlaceLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// Takes a place for a session of any protocol, evicting an idle one if none is left. If this session is evicted
    /// in turn, that half of `connection` is shut down.
    pub fn enter(
        self: &Arc<Self>,
        peer: IpAddr,
        connection: Option<(&TcpStream, Shutdown)>,
    ) -> Result<Place, Denied> {
        let now_ns = clock::monotonic_ns();
        let connection = connection.and_then(|(c, half)| Some((c.try_clone().ok()?, half)));
        let activity = Arc::new(Activity::new(now_ns, connection));
        let mut taken = lock(&self.taken);
        if let Some((number, why)) = taken.find_room(peer, &self.limits, now_ns)? {
            taken.evict(number, why, now_ns);
        }
        taken.occupancy.enter(peer, &self.limits)?;
        taken.line.note_served(origin(peer));
        let number = taken.next;
        taken.next += 1;
        taken.held.insert(number, (peer, Arc::clone(&activity)));
        Ok(Place { places: Arc::clone(self), peer, number, activity })
    }

    /// Whether no further session of this address can be served.
    pub fn is_full(&self, peer: IpAddr) -> bool {
        let room = lock(&self.taken).find_room(peer, &self.limits, clock::monotonic_ns());
        matches!(room, Err(Denied::Full { .. }))
    }

    /// Reads the activity of sessions; called several times a second.
    pub fn observe(&self) {
        let now_ns = clock::monotonic_ns();
        lock(&self.taken).held.values().for_each(|(_, activity)| activity.observe(now_ns));
    }

    /// Most sessions at once.
    pub fn sessions(&self) -> u32 {
        self.limits.sessions
    }
}

impl Taken {
    /// Returns which session one of this address evicts, if it is admitted at all; none if a place is free.
    fn find_room(
        &mut self,
        peer: IpAddr,
        limits: &PlaceLimits,
        now_ns: u64,
    ) -> Result<Option<(u64, Eviction)>, Denied> {
        let denied = match self.occupancy.check(peer, limits) {
            Ok(()) => {
                let free = limits.sessions - self.occupancy.sessions();
                let holds = self.occupancy.sessions_of(peer) > 0;
                match limits.turn_ns.is_some() && self.line.gives_way(origin(peer), holds, free, now_ns) {
                    true => Denied::Full { sessions: limits.sessions },
                    false => return Ok(None),
                }
            }
            Err(denied) => denied,
        };
        let evicted = match denied {
            Denied::Full { .. } if self.occupancy.sessions() >= limits.sessions => self
                .idle(now_ns, |_| true)
                .map(|number| (number, Eviction::Idle))
                .or_else(|| self.overdue(peer, limits.turn_ns?, now_ns)),
            Denied::AddressFull { .. } => self
                .idle(now_ns, |address| origin(address) == origin(peer))
                .map(|number| (number, Eviction::Idle)),
            _ => None,
        };
        match evicted {
            Some(evicted) => Ok(Some(evicted)),
            None => {
                if matches!(denied, Denied::Full { .. }) {
                    self.line.note_refused(origin(peer), now_ns);
                }
                Err(denied)
            }
        }
    }

    fn evict(&mut self, number: u64, why: Eviction, now_ns: u64) {
        if let Some((address, activity)) = self.held.remove(&number) {
            self.occupancy.leave(address);
            self.line.note_left(origin(address), now_ns);
            activity.evict(why);
        }
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

    /// One whose flows move next to nothing; or else, for an address that has no place, one of another that has had its turn.
    fn overdue(&self, peer: IpAddr, turn_ns: u64, now_ns: u64) -> Option<(u64, Eviction)> {
        let of = |is_meant: &dyn Fn(IpAddr, &Activity) -> bool| {
            let meant = self.held.iter().filter(|(_, (address, activity))| is_meant(*address, activity));
            oldest_of_most(meant.map(|(&number, (address, _))| (number, *address)))
        };
        let slow = of(&|_, activity| activity.is_slow()).map(|number| (number, Eviction::Slow));
        slow.or_else(|| {
            let has_none = self.occupancy.sessions_of(peer) == 0;
            let over = of(&|_, activity| has_none && activity.held_ns(now_ns) >= turn_ns);
            over.map(|number| (number, Eviction::Turn))
        })
    }
}

impl Place {
    /// Returns the session's activity.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Takes places for streams of this session, all or none.
    pub fn take_streams(&self, streams: u32) -> Result<StreamPlaces, Denied> {
        lock(&self.places.taken).occupancy.take_streams(self.peer, streams, &self.places.limits)?;
        self.activity.streams.fetch_add(streams, Ordering::Relaxed);
        let (activity, watched) = (Arc::clone(&self.activity), self.activity.watch());
        Ok(StreamPlaces { places: Arc::clone(&self.places), peer: self.peer, streams, activity, watched })
    }

    /// Takes memory for a flow, briefly waiting for a previous flow to release some.
    pub fn take_memory(&self, bytes: u64) -> Result<MemoryHold, Denied> {
        let until = Instant::now() + MEMORY_PATIENCE;
        loop {
            match self.take_memory_now(bytes) {
                Err(Denied::Memory { most, .. }) if bytes <= most && Instant::now() < until => {
                    std::thread::sleep(MEMORY_LOOK);
                }
                taken => return taken,
            }
        }
    }

    /// Takes memory for a flow, without waiting.
    pub fn take_memory_now(&self, bytes: u64) -> Result<MemoryHold, Denied> {
        let limits = &self.places.limits;
        let mut taken = lock(&self.places.taken);
        let held = self.activity.memory_bytes.load(Ordering::Relaxed);
        if !taken.memory.take(self.peer, held, bytes, limits) {
            return Err(Denied::Memory { peer: self.peer, bytes, most: most_of_session(limits) });
        }
        self.activity.memory_bytes.store(held + bytes, Ordering::Relaxed);
        let (places, activity) = (Arc::clone(&self.places), Arc::clone(&self.activity));
        Ok(MemoryHold { places, peer: self.peer, bytes, activity })
    }
}

impl StreamPlaces {
    /// Returns the meter of these streams' flow, which keeps the session's place.
    pub fn meter(&self) -> &Arc<Meter> {
        self.watched.meter()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.taken);
        // An evicted session has none any more.
        if taken.held.remove(&self.number).is_some() {
            taken.occupancy.leave(self.peer);
            taken.line.note_left(origin(self.peer), clock::monotonic_ns());
        }
    }
}

impl Drop for StreamPlaces {
    fn drop(&mut self) {
        self.activity.streams.fetch_sub(self.streams, Ordering::Relaxed);
        self.activity.note_heard_at(clock::monotonic_ns());
        lock(&self.places.taken).occupancy.give_streams(self.peer, self.streams);
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.taken);
        let held = self.activity.memory_bytes.load(Ordering::Relaxed);
        taken.memory.give_back(self.peer, held, self.bytes, &self.places.limits);
        self.activity.memory_bytes.store(held.saturating_sub(self.bytes), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns places by their holder's address, start, last activity, and whether streams run.
    fn taken(held: &[(&str, u64, Option<u64>, bool)]) -> Taken {
        let mut taken = Taken::default();
        for (number, &(address, since_ns, heard_ns, runs)) in held.iter().enumerate() {
            let activity = Activity::new(since_ns, None);
            if let Some(heard_ns) = heard_ns {
                activity.begun_at(heard_ns);
            }
            activity.streams.store(u32::from(runs), Ordering::Relaxed);
            let address = address.parse().unwrap();
            taken.occupancy.enter(address, &PlaceLimits::default()).unwrap();
            taken.held.insert(number as u64, (address, Arc::new(activity)));
        }
        taken
    }

    /// Returns which of them would be evicted.
    fn idle(held: &[(&str, u64, Option<u64>, bool)], now_ns: u64) -> Option<u64> {
        taken(held).idle(now_ns, |_| true)
    }

    #[test]
    fn only_an_idle_session_is_evicted() {
        let (one, other) = ("192.0.2.1", "192.0.2.2");
        assert_eq!(idle(&[], SECOND), None);
        // A running session stays, however long it is silent, and so does one that was active recently.
        assert_eq!(idle(&[(one, 0, Some(0), true), (other, 0, Some(90 * SECOND), false)], 94 * SECOND), None);
        assert_eq!(
            idle(&[(one, 0, Some(0), true), (other, 0, Some(90 * SECOND), false)], 95 * SECOND),
            Some(1)
        );
        // A new session has a second to begin; of two of one address the first is evicted at once.
        assert_eq!(idle(&[(one, 0, None, false)], SECOND - 1), None);
        assert_eq!(idle(&[(one, 0, None, false)], SECOND), Some(0));
        assert_eq!(
            idle(&[(other, 0, None, false), (one, 1, None, false), (one, 2, None, false)], 3),
            Some(1)
        );
        // Streams that are requested and never arrive do not count as work.
        assert_eq!(idle(&[(one, 0, None, true)], SECOND), Some(0));
    }

    /// Two addresses hold both places each of `--open`, at 4 bytes a second; a third waits.
    #[test]
    fn next_to_nothing_keeps_no_place_from_strangers_and_nobody_has_one_for_good() {
        let (one, other) = ("192.0.2.1", "192.0.2.2");
        let third: IpAddr = "192.0.2.3".parse().unwrap();
        let held = [one, other, one, other].map(|address| (address, 0, Some(0), true));
        let limits =
            |turn_ns| PlaceLimits { sessions: 4, sessions_per_address: 2, turn_ns, ..Default::default() };
        let open = limits(Some(90 * SECOND));
        let mut slow = taken(&held);
        let observe = |taken: &Taken, bytes: u64, now_ns| {
            taken.held.values().for_each(|(_, activity)| {
                activity.note_moved(bytes);
                activity.observe(now_ns);
            });
        };
        observe(&slow, 12, 3 * SECOND);
        assert!(matches!(slow.find_room(third, &open, 3 * SECOND), Err(Denied::Full { .. })));
        observe(&slow, 20, 5 * SECOND);
        assert_eq!(slow.find_room(third, &open, 5 * SECOND), Ok(Some((0, Eviction::Slow))));
        // If every client has proven a token, none is evicted for being slow.
        assert!(slow.find_room(third, &limits(None), 5 * SECOND).is_err());

        let mut fast = taken(&held);
        let mut now_ns = 0;
        while now_ns < 89 * SECOND {
            now_ns += 5 * SECOND;
            observe(&fast, now_ns / 1000, now_ns);
            if now_ns < 90 * SECOND {
                assert!(fast.find_room(third, &open, now_ns).is_err(), "{now_ns}");
            }
        }
        assert_eq!(fast.find_room(third, &open, now_ns), Ok(Some((0, Eviction::Turn))));
        assert!(fast.find_room(one.parse().unwrap(), &open, now_ns).is_err(), "it has its own");
        // A free place goes to those who waited, not to those that have just had one.
        fast.evict(0, Eviction::Turn, now_ns);
        assert!(matches!(fast.find_room(one.parse().unwrap(), &open, now_ns), Err(Denied::Full { .. })));
        assert_eq!(fast.find_room(third, &open, now_ns), Ok(None));
    }

    #[test]
    fn place_of_an_evicted_session_is_returned_once() {
        let limits = PlaceLimits { sessions: 2, sessions_per_address: 2, ..Default::default() };
        let places = Places::new(limits);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let first = places.enter(address, None).unwrap();
        let second = places.enter(address, None).unwrap();
        assert!(!places.is_full(address));
        let third = places.enter(address, None).unwrap();
        assert!(first.activity().is_evicted() && !second.activity().is_evicted());
        drop(first);
        second.activity().note_heard();
        third.activity().note_heard();
        assert!(places.is_full(address));
        assert!(matches!(places.enter(address, None), Err(Denied::Full { sessions: 2 })));
        drop((second, third));
        assert!(!places.is_full(address) && lock(&places.taken).held.is_empty());
    }

    #[test]
    fn memory_is_lent_by_the_session_and_comes_back() {
        let limits =
            PlaceLimits { sessions: 2, sessions_per_address: 2, memory_bytes: 400, ..Default::default() };
        let places = Places::new(limits);
        let place = places.enter([192, 0, 2, 1].into(), None).unwrap();
        let held = place.take_memory(250).unwrap();
        assert!(matches!(place.take_memory(100), Err(Denied::Memory { bytes: 100, most: 300, .. })));
        drop(held);
        assert!(place.take_memory(301).is_err());
        place.take_memory(300).unwrap();
    }
}
