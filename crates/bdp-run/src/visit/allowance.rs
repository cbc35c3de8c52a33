//! Bytes that visitors of an address have moved in the last day.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bdp_agent::server::access::origin;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Most addresses that are remembered.
const MOST: usize = 65_536;

/// The use of each address since its first visit of the day.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    used: HashMap<IpAddr, (Instant, u64)>,
}

impl Allowance {
    /// Adds bytes; returns what the address has used since its day began.
    pub(super) fn add(&mut self, peer: IpAddr, bytes: u64, now: Instant) -> u64 {
        let peer = origin(peer);
        if !self.used.contains_key(&peer) {
            if bytes == 0 {
                return 0;
            }
            self.make_room(now);
        }
        let used = self.used.entry(peer).or_insert((now, 0));
        if now.duration_since(used.0) >= DAY {
            *used = (now, 0);
        }
        used.1 = used.1.saturating_add(bytes);
        used.1
    }

    /// If it is full, forgets addresses whose day is over, or else the one that has used least.
    fn make_room(&mut self, now: Instant) {
        if self.used.len() < MOST {
            return;
        }
        self.used.retain(|_, (since, _)| now.duration_since(*since) < DAY);
        if self.used.len() >= MOST
            && let Some(&least) = self.used.iter().min_by_key(|(_, used)| used.1).map(|(address, _)| address)
        {
            self.used.remove(&least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_begins_anew_after_a_day() {
        let start = Instant::now();
        let mut allowance = Allowance::default();
        let [a, b]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        assert_eq!(allowance.add(a, 5, start), 5);
        assert_eq!(allowance.add(b, 1, start), 1);
        assert_eq!(allowance.add(a, 5, start + DAY - Duration::from_secs(1)), 10);
        assert_eq!(allowance.add(a, 5, start + DAY), 5);
    }

    #[test]
    fn nobody_fills_it_for_nothing_and_the_greatest_use_stays() {
        let start = Instant::now();
        let mut allowance = Allowance::default();
        let most: IpAddr = [192, 0, 2, 1].into();
        allowance.add(most, 1_000, start);
        for i in 0..2 * MOST as u32 {
            assert_eq!(allowance.add(i.to_be_bytes().into(), 0, start), 0);
        }
        assert_eq!(allowance.used.len(), 1);
        for i in 0..MOST as u32 {
            allowance.add(i.to_be_bytes().into(), 1, start);
        }
        assert_eq!(allowance.used.len(), MOST);
        assert_eq!(allowance.add([203, 0, 113, 1].into(), 1, start), 1);
        assert_eq!((allowance.used.len(), allowance.add(most, 0, start)), (MOST, 1_000));
    }
}
