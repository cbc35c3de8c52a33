//! Wrong proofs, counted by address, so that nobody can try many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::access::origin;

/// Most wrong proofs from one address in [`WINDOW`]; beyond it, proofs are refused unread.
pub const MOST_FAILURES: u32 = 10;
/// See [`MOST_FAILURES`].
pub const WINDOW: Duration = Duration::from_secs(60);
/// Addresses whose failures are kept in mind.
const MOST_ADDRESSES: usize = 4096;

/// The failures of a server, by address; an IPv6 /64 counts as one.
#[derive(Debug, Default)]
pub struct Failures(HashMap<IpAddr, Counted>);

/// The failures of one address.
#[derive(Debug, Clone, Copy)]
struct Counted {
    count: u32,
    since: Instant,
}

impl Counted {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= WINDOW
    }
}

impl Failures {
    /// Whether proofs from this address are refused unread.
    pub fn has_failed_often(&self, peer: IpAddr, now: Instant) -> bool {
        let counted = self.0.get(&origin(peer));
        counted.is_some_and(|counted| counted.count >= MOST_FAILURES && !counted.is_over(now))
    }

    /// Counts a wrong proof.
    pub fn note(&mut self, peer: IpAddr, now: Instant) {
        if self.0.len() >= MOST_ADDRESSES {
            self.0.retain(|_, counted| !counted.is_over(now));
        }
        if self.0.len() >= MOST_ADDRESSES
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, counted)| counted.since).map(|(peer, _)| *peer)
        {
            self.0.remove(&oldest);
        }
        let counted = self.0.entry(origin(peer)).or_insert(Counted { count: 0, since: now });
        if counted.is_over(now) {
            *counted = Counted { count: 0, since: now };
        }
        counted.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_wrong_proofs_keep_an_address_out_for_a_minute() {
        let [one, other]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let (mut failures, now) = (Failures::default(), Instant::now());
        for _ in 0..MOST_FAILURES {
            assert!(!failures.has_failed_often(one, now));
            failures.note(one, now);
        }
        assert!(failures.has_failed_often(one, now) && !failures.has_failed_often(other, now));
        assert!(failures.has_failed_often(one, now + WINDOW - Duration::from_millis(1)));
        assert!(!failures.has_failed_often(one, now + WINDOW));
        failures.note(one, now + WINDOW);
        assert!(!failures.has_failed_often(one, now + WINDOW));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        for i in 0..2 * MOST_ADDRESSES as u32 {
            failures.note(IpAddr::from(i.to_be_bytes()), start + Duration::from_micros(u64::from(i)));
        }
        assert_eq!(failures.0.len(), MOST_ADDRESSES);
    }
}
