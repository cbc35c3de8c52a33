//! Echo requests and replies: ICMP echo (RFC 792, RFC 4443), and the messages of `bdp ping`.

use std::collections::VecDeque;

use bdp_model::capture::CapturedEcho;

use crate::rtt::RoundTrips;

/// Requests kept; replies to earlier ones count as unsolicited.
const REMEMBERED: usize = 1024;

/// Identity of a request: who sent it, and its number.
pub(super) type Asked = (u64, u64);

/// Requests of one direction.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    asked: VecDeque<Request>,
    counts: CapturedEcho,
    rtt: RoundTrips,
}

#[derive(Debug)]
struct Request {
    asked: Asked,
    at: Option<u64>,
    is_answered: bool,
}

impl Echoes {
    /// Heap memory in use, bytes.
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.asked.capacity() * size_of::<Request>() + self.rtt.held_bytes()
    }

    pub(super) fn request(&mut self, asked: Asked, at: Option<u64>) {
        // A duplicate, from the network or the capture, is not another request.
        if self.asked.iter().rev().take(16).any(|request| request.asked == asked && !request.is_answered) {
            return;
        }
        if self.asked.len() == REMEMBERED {
            self.asked.pop_front();
        }
        self.asked.push_back(Request { asked, at, is_answered: false });
        self.counts.sent += 1;
    }

    pub(super) fn reply(&mut self, asked: Asked, at: Option<u64>) {
        let Some(request) = self.asked.iter_mut().rev().find(|request| request.asked == asked) else {
            self.counts.unasked += 1;
            return;
        };
        if request.is_answered {
            self.counts.duplicates += 1;
            return;
        }
        request.is_answered = true;
        self.counts.answered += 1;
        if let Some((at, sent)) = at.zip(request.at) {
            self.rtt.add(at.saturating_sub(sent));
        }
    }

    /// Returns `None` if there were no requests or replies.
    pub(super) fn report(&self) -> Option<CapturedEcho> {
        let counts = CapturedEcho { rtt: self.rtt.report(), ..self.counts };
        (counts.sent + counts.unasked > 0).then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_belong_to_their_requests() {
        let mut all = Echoes::default();
        for number in 0..10 {
            all.request((7, number), Some(number * 1_000_000_000));
        }
        all.request((7, 9), Some(9_000_000_001));
        for number in (0..10).filter(|n| n % 3 != 1) {
            all.reply((7, number), Some(number * 1_000_000_000 + 5_000_000 + number));
        }
        all.reply((7, 0), Some(10_000_000_000));
        all.reply((8, 0), Some(10_000_000_000));
        let report = all.report().unwrap();
        assert_eq!((report.sent, report.answered, report.duplicates, report.unasked), (10, 7, 1, 1));
        assert_eq!(report.rtt.unwrap().min.as_ns(), 5_000_000);
        assert_eq!(report.rtt.unwrap().max.as_ns(), 5_000_009);
    }

    #[test]
    fn memory_does_not_grow() {
        let mut all = Echoes::default();
        (0..100_000).for_each(|number| all.request((1, number), None));
        all.reply((1, 0), None);
        assert_eq!((all.asked.len(), all.report().unwrap().unasked), (REMEMBERED, 1));
        assert_eq!(all.report().unwrap().rtt, None);
    }
}
