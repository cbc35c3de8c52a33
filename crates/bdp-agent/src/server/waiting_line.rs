//! Clients waiting for a place: addresses that were refused for lack of one and have not had any since. An address
//! that has just had a place gives way to them when one is free.

use std::collections::HashMap;
use std::net::IpAddr;

/// How long a refusal is remembered: its client comes again within that time.
const REMEMBERED_NS: u64 = 30_000_000_000;
/// How long an address counts as one that has just had a place.
const SERVED_NS: u64 = 60_000_000_000;
/// Addresses that are remembered, of either kind.
const MOST: usize = 256;

/// The waiting line, of addresses as returned by [`super::access::origin`].
#[derive(Debug, Default)]
pub(super) struct WaitingLine {
    /// When each was first and last refused.
    waiting: HashMap<IpAddr, (u64, u64)>,
    /// When each last left a place.
    served: HashMap<IpAddr, u64>,
}

impl WaitingLine {
    /// Notes a refusal.
    pub(super) fn note_refused(&mut self, origin: IpAddr, now_ns: u64) {
        self.forget(now_ns);
        if self.waiting.len() < MOST || self.waiting.contains_key(&origin) {
            self.waiting.entry(origin).or_insert((now_ns, now_ns)).1 = now_ns;
        }
    }

    /// Notes that an address has its place.
    pub(super) fn note_served(&mut self, origin: IpAddr) {
        self.waiting.remove(&origin);
    }

    /// Notes that an address has left a place.
    pub(super) fn note_left(&mut self, origin: IpAddr, now_ns: u64) {
        self.forget(now_ns);
        if self.served.len() < MOST || self.served.contains_key(&origin) {
            self.served.insert(origin, now_ns);
        }
    }

    /// Whether an address that finds this many free places must leave them to others that wait; `holds` says whether
    /// it has a place now.
    pub(super) fn gives_way(&mut self, origin: IpAddr, holds: bool, free: u32, now_ns: u64) -> bool {
        self.forget(now_ns);
        if !holds && !self.served.contains_key(&origin) {
            return false;
        }
        let since = self.waiting.get(&origin).map_or(now_ns, |&(first, _)| first);
        let before = self.waiting.iter().filter(|&(&other, &(first, _))| other != origin && first < since);
        before.count() >= free as usize
    }

    fn forget(&mut self, now_ns: u64) {
        self.waiting.retain(|_, (_, last)| now_ns.saturating_sub(*last) < REMEMBERED_NS);
        self.served.retain(|_, left| now_ns.saturating_sub(*left) < SERVED_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn longest_waiting_comes_before_just_served() {
        let [a, b, c]: [IpAddr; 3] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into(), [192, 0, 2, 3].into()];
        let mut line = WaitingLine::default();
        assert!(!line.gives_way(a, false, 1, 0), "nobody waits");
        line.note_refused(b, 10 * SECOND);
        assert!(!line.gives_way(a, false, 1, 11 * SECOND), "it was not served either");
        assert!(line.gives_way(a, true, 1, 11 * SECOND), "it has a place");
        assert!(!line.gives_way(a, true, 2, 11 * SECOND), "there is one for each");
        line.note_left(a, 12 * SECOND);
        assert!(line.gives_way(a, false, 1, 13 * SECOND));
        // It waits in turn, and that does not put it first.
        line.note_refused(a, 13 * SECOND);
        assert!(line.gives_way(a, false, 1, 14 * SECOND));
        line.note_served(b);
        assert!(!line.gives_way(a, false, 1, 15 * SECOND));
        // Of two that were served before, the one that waited longer.
        line.note_left(b, 16 * SECOND);
        line.note_refused(b, 17 * SECOND);
        assert!(line.gives_way(b, false, 1, 18 * SECOND) && !line.gives_way(a, false, 1, 18 * SECOND));
        // A client that does not come again keeps nobody out.
        line.note_refused(c, 20 * SECOND);
        assert!(!line.gives_way(b, false, 1, 50 * SECOND));
    }

    #[test]
    fn memory_is_bounded() {
        let mut line = WaitingLine::default();
        for i in 0..2 * MOST as u32 {
            line.note_refused(i.to_be_bytes().into(), 0);
            line.note_left(i.to_be_bytes().into(), 0);
        }
        assert_eq!((line.waiting.len(), line.served.len()), (MOST, MOST));
    }
}
