//! Results that are kept for their links, in bounded memory.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bdp_agent::server::access::origin;

/// Most results, and most bytes of all.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 256 << 20;
/// One address may have one part of so many.
const SHARE: usize = 8;

/// Results by their keys. If there are too many, the oldest go first; those of one address, if it has too many.
#[derive(Debug, Default)]
pub(super) struct Kept {
    by_key: HashMap<String, String>,
    /// Oldest first.
    order: VecDeque<Entry>,
    bytes: usize,
    /// Number and bytes of each address.
    of: HashMap<IpAddr, (usize, usize)>,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    key: String,
    address: IpAddr,
}

impl Kept {
    /// Keeps a document of an address.
    pub(super) fn add(&mut self, key: String, document: String, address: IpAddr, now: Instant) {
        let address = origin(address);
        let of = self.of.entry(address).or_default();
        (of.0, of.1) = (of.0 + 1, of.1 + document.len());
        self.bytes += document.len();
        self.order.push_back(Entry { at: now, key: key.clone(), address });
        self.by_key.insert(key, document);
        while self
            .of
            .get(&address)
            .is_some_and(|of| of.0 > 1 && (of.0 > MOST / SHARE || of.1 > MOST_BYTES / SHARE))
        {
            let oldest = self.order.iter().position(|entry| entry.address == address);
            self.drop_at(oldest.unwrap_or(0));
        }
        while self.order.len() > MOST || self.bytes > MOST_BYTES && self.order.len() > 1 {
            self.drop_at(0);
        }
    }

    /// Returns the document with this key.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        self.by_key.get(key).cloned()
    }

    /// Deletes what is older than `keep`.
    pub(super) fn forget(&mut self, keep: Duration, now: Instant) {
        while self.order.front().is_some_and(|oldest| now.duration_since(oldest.at) >= keep) {
            self.drop_at(0);
        }
    }

    fn drop_at(&mut self, at: usize) {
        if let Some(Entry { key, address, .. }) = self.order.remove(at)
            && let Some(document) = self.by_key.remove(&key)
            && let Some(of) = self.of.get_mut(&address)
        {
            self.bytes -= document.len();
            (of.0, of.1) = (of.0 - 1, of.1 - document.len());
            if of.0 == 0 {
                self.of.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        (0x0a00_0000 + n).to_be_bytes().into()
    }

    #[test]
    fn results_end_after_their_time_and_the_oldest_when_there_are_too_many() {
        let start = Instant::now();
        let mut kept = Kept::default();
        kept.add("a".into(), "1".into(), address(0), start);
        kept.add("b".into(), "2".into(), address(0), start + Duration::from_secs(5));
        kept.forget(Duration::from_secs(10), start + Duration::from_secs(10));
        assert_eq!((kept.get("a"), kept.get("b").as_deref()), (None, Some("2")));
        for i in 0..MOST {
            kept.add(format!("k{i}"), "3".into(), address(i as u32), start + Duration::from_secs(6));
        }
        assert_eq!((kept.get("b"), kept.by_key.len(), kept.bytes), (None, MOST, MOST));
        kept.forget(Duration::ZERO, start + Duration::from_secs(7));
        assert!(kept.by_key.is_empty() && kept.order.is_empty() && kept.of.is_empty() && kept.bytes == 0);
    }

    #[test]
    fn one_address_deletes_only_its_own() {
        let start = Instant::now();
        let mut kept = Kept::default();
        kept.add("other".into(), "1".into(), address(1), start);
        for i in 0..MOST {
            kept.add(format!("k{i}"), "3".into(), address(2), start);
        }
        assert_eq!((kept.get("other").as_deref(), kept.by_key.len()), (Some("1"), MOST / SHARE + 1));
        for i in 0..SHARE + 1 {
            kept.add(format!("large{i}"), "x".repeat(MOST_BYTES / SHARE), address(2), start);
        }
        assert_eq!((kept.get("other").as_deref(), kept.order.len()), (Some("1"), 2));
        assert_eq!(kept.bytes, MOST_BYTES / SHARE + 1);
    }
}
