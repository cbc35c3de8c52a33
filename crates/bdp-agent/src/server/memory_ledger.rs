//! Memory that flows hold on a server: samples, streams and their buffers. Each session has an allowance of its own,
//! so that nobody can take what another needs, and all share the rest.

use std::collections::HashMap;
use std::net::IpAddr;

use super::access::{PlaceLimits, origin};

/// The used part of the shared memory.
#[derive(Debug, Default)]
pub(super) struct MemoryLedger {
    shared: u64,
    of: HashMap<IpAddr, u64>,
}

impl MemoryLedger {
    /// Takes this many bytes for a session that holds `held`; returns whether they are available.
    pub(super) fn take(&mut self, peer: IpAddr, held: u64, bytes: u64, limits: &PlaceLimits) -> bool {
        let allowance = allowance(limits);
        let more = held.saturating_add(bytes).saturating_sub(allowance) - held.saturating_sub(allowance);
        let of_address = self.of.get(&origin(peer)).copied().unwrap_or(0);
        let fits = self.shared.saturating_add(more) <= limits.memory_bytes / 2
            && of_address.saturating_add(more) <= share(limits);
        if fits && more > 0 {
            self.shared += more;
            *self.of.entry(origin(peer)).or_default() += more;
        }
        fits
    }

    /// Returns bytes from a session that holds `held` including them.
    pub(super) fn give_back(&mut self, peer: IpAddr, held: u64, bytes: u64, limits: &PlaceLimits) {
        let allowance = allowance(limits);
        let less = held.saturating_sub(allowance) - held.saturating_sub(bytes).saturating_sub(allowance);
        self.shared = self.shared.saturating_sub(less);
        if let Some(of_address) = self.of.get_mut(&origin(peer)) {
            *of_address = of_address.saturating_sub(less);
            if *of_address == 0 {
                self.of.remove(&origin(peer));
            }
        }
    }
}

/// Returns the most that one session may ever hold.
pub(super) fn most_of_session(limits: &PlaceLimits) -> u64 {
    allowance(limits) + share(limits)
}

/// Returns the allowance of each session: an equal part of half of all memory.
fn allowance(limits: &PlaceLimits) -> u64 {
    limits.memory_bytes / 2 / u64::from(limits.sessions.max(1))
}

/// Returns what one address may take of the shared memory: half of it, if it may not have all places either.
fn share(limits: &PlaceLimits) -> u64 {
    let parts = if limits.sessions_per_address < limits.sessions { 4 } else { 2 };
    limits.memory_bytes / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_what_another_needs() {
        let limits = PlaceLimits {
            sessions: 4,
            sessions_per_address: 2,
            streams_per_address: 32,
            memory_bytes: 800,
            turn_ns: None,
        };
        let (one, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        assert_eq!(most_of_session(&limits), 300);
        let mut ledger = MemoryLedger::default();
        assert!(!ledger.take(one, 0, 301, &limits) && ledger.take(one, 0, 300, &limits));
        assert!(!ledger.take(one, 0, 101, &limits), "its address has its share");
        assert!(ledger.take(one, 0, 100, &limits) && ledger.take(other, 0, 300, &limits));
        // All that is shared is gone; a new session has its own.
        let third: IpAddr = [192, 0, 2, 3].into();
        assert!(!ledger.take(third, 0, 101, &limits) && ledger.take(third, 0, 100, &limits));
        ledger.give_back(one, 300, 150, &limits);
        assert!(ledger.take(third, 100, 150, &limits));
        ledger.give_back(one, 150, 150, &limits);
        ledger.give_back(other, 300, 300, &limits);
        ledger.give_back(third, 250, 250, &limits);
        assert_eq!((ledger.shared, ledger.of.len()), (0, 0));
    }
}
