//! Results that are kept for their links, in bounded memory.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Most results, and most bytes of all.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 256 << 20;

/// Results by their keys. If there are too many, the oldest go first.
#[derive(Debug, Default)]
pub(super) struct Kept {
    by_key: HashMap<String, String>,
    /// Oldest first.
    order: VecDeque<(Instant, String)>,
    bytes: usize,
}

impl Kept {
    /// Keeps a document.
    pub(super) fn add(&mut self, key: String, document: String, now: Instant) {
        self.bytes += document.len();
        self.order.push_back((now, key.clone()));
        self.by_key.insert(key, document);
        while self.order.len() > MOST || self.bytes > MOST_BYTES && self.order.len() > 1 {
            self.drop_oldest();
        }
    }

    /// Returns the document with this key.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        self.by_key.get(key).cloned()
    }

    /// Deletes what is older than `keep`.
    pub(super) fn forget(&mut self, keep: Duration, now: Instant) {
        while self.order.front().is_some_and(|(at, _)| now.duration_since(*at) >= keep) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_front()
            && let Some(document) = self.by_key.remove(&key)
        {
            self.bytes -= document.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_end_after_their_time_and_the_oldest_when_there_are_too_many() {
        let start = Instant::now();
        let mut kept = Kept::default();
        kept.add("a".into(), "1".into(), start);
        kept.add("b".into(), "2".into(), start + Duration::from_secs(5));
        kept.forget(Duration::from_secs(10), start + Duration::from_secs(10));
        assert_eq!((kept.get("a"), kept.get("b").as_deref()), (None, Some("2")));
        for i in 0..MOST {
            kept.add(format!("k{i}"), "3".into(), start + Duration::from_secs(6));
        }
        assert_eq!((kept.get("b"), kept.by_key.len(), kept.bytes), (None, MOST, MOST));
        kept.add("large".into(), "x".repeat(MOST_BYTES), start + Duration::from_secs(7));
        assert_eq!((kept.by_key.len(), kept.order.len(), kept.bytes), (1, 1, MOST_BYTES));
    }
}
