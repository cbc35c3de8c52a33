//! Search for the largest packet that passes a path which does not report what it drops: packetization layer path MTU
//! discovery for datagrams (RFC 8899), by echoes.
//!
//! An answer proves that its size and all below pass; silence proves nothing, and a size counts as lost only after [`MAX_PROBES`] echoes.
//! Usual sizes are tried in one round, largest first, so that a long path takes few round trips: the result is mostly among
//! them, and one more round shows that a packet one byte longer does not pass. Other sizes are narrowed down by sections. If
//! an answer contradicts a size that counted as lost, the path drops packets in bursts or at random: results of rounds with many
//! echoes are then discarded, and sizes are tried one at a time.

use std::collections::BTreeMap;

use crate::units::Nanos;

/// Unanswered echoes of one size after which it counts as lost (RFC 8899, section 5.1.2).
pub const MAX_PROBES: u32 = 3;
/// Every link must carry IPv6 packets of this size (RFC 8200, section 5).
pub const IPV6_MINIMUM: u32 = 1280;
/// MTUs of real paths: jumbo frames and those of clouds, POS, FDDI; Ethernet and what PPPoE (RFC 2516), tunnels (IP in IP, GRE, VXLAN,
/// WireGuard, IPsec) and radio leave of it; then IPv6's minimum, and the plateaus of RFC 1191, section 7.1.
const USUAL: [u32; 23] = [
    9000,
    8896,
    8500,
    4470,
    3900,
    2002,
    1500,
    1492,
    1480,
    1476,
    1472,
    1460,
    1450,
    1440,
    1420,
    1400,
    1380,
    1358,
    1300,
    IPV6_MINIMUM,
    1006,
    576,
    296,
];
/// Time between two echoes of one size: a burst of loss must not hit all of them.
const SPACING: Nanos = Nanos::millis(25);
/// Additional wait for an answer beyond 5/4 of the round trip: either end may pause.
const GRACE: Nanos = Nanos::millis(120);
/// Time between echoes per byte: 4 Mbit/s.
const NS_PER_BYTE: u64 = 2_000;
/// Sizes of a round between two known ones.
const SECTIONS: u32 = 8;
/// A round of at most this many sizes cannot overload the path.
const FEW: usize = 2;

/// Next step of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send an echo whose IP packet has this size, bytes.
    Send(u32),
    /// Wait for answers until this time, and read all that have arrived.
    Wait(Nanos),
    /// The search has ended.
    End(MtuEnd),
}

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MtuEnd {
    /// The largest size passed.
    Held,
    /// The largest size that passed, bytes; if not `exact`, time ran out before all sizes between it and the lost ones were tried.
    Less {
        /// Size of the IP packet, bytes.
        mtu: u32,
        /// Whether a packet one byte longer is known to be lost.
        exact: bool,
    },
    /// Small sizes passed, but too few echoes of the largest were sent to decide.
    Unsettled,
    /// No echo was answered.
    Silent,
}

/// Bounds of a search, in size and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtuBounds {
    /// IP packet size of the smallest echo, bytes.
    pub smallest: u32,
    /// Largest size that the kernel would send unfragmented, bytes.
    pub largest: u32,
    /// Round trip of the path, as far as known.
    pub round_trip: Nanos,
    /// When the search ends if nothing has been answered.
    pub patience: Nanos,
    /// When the search ends with what it has found.
    pub until: Nanos,
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct MtuSearcher {
    bounds: MtuBounds,
    /// Largest size that passed.
    low: Option<u32>,
    /// Larger sizes that count as lost, and whether in a round with few sizes.
    lost: BTreeMap<u32, bool>,
    stage: Stage,
    sizes: Vec<u32>,
    /// Sizes to send in this round, the next one last.
    queue: Vec<u32>,
    tries_left: u32,
    /// Time and size of the previous echo.
    last: Option<(Nanos, u32)>,
    /// When each size was last sent.
    sent: BTreeMap<u32, Nanos>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// One echo of the largest: mostly it comes back.
    Largest,
    /// All usual sizes.
    Usual,
    /// Sizes between two known ones.
    Between,
    /// Sizes between two known ones, one at a time.
    Careful,
}

impl MtuSearcher {
    /// Starts a search.
    pub fn new(bounds: MtuBounds) -> Self {
        let largest = bounds.largest;
        Self {
            bounds,
            low: None,
            lost: BTreeMap::new(),
            stage: Stage::Largest,
            sizes: vec![largest],
            queue: vec![largest],
            tries_left: 0,
            last: None,
            sent: BTreeMap::new(),
        }
    }

    /// Returns the next step at this time.
    pub fn next(&mut self, now: Nanos) -> Step {
        loop {
            if self.low.is_some_and(|low| low >= self.bounds.largest) {
                return Step::End(MtuEnd::Held);
            }
            if now >= self.bounds.until {
                return Step::End(self.end_late());
            }
            let low = self.low.unwrap_or(0);
            self.queue.retain(|&size| size > low);
            if self.sizes.iter().any(|&size| size > low) {
                let due = self.due(now);
                if now < due {
                    return Step::Wait(due.min(self.bounds.until));
                }
                if let Some(size) = self.queue.pop() {
                    self.last = Some((now, size));
                    self.sent.insert(size, now);
                    return Step::Send(size);
                }
                if self.tries_left > 0 {
                    self.tries_left -= 1;
                    self.queue = self.sizes.clone();
                    continue;
                }
                self.give_up_sizes(low);
            }
            if let Some(end) = self.begin_round(now) {
                return Step::End(end);
            }
        }
    }

    /// Records an answer to an echo of this packet size, at this time.
    pub fn note_answer(&mut self, size: u32, now: Nanos) {
        // A slow line delays what is queued behind our own echoes.
        let took = self.sent.get(&size).map_or(Nanos::ZERO, |&sent| now.saturating_sub(sent));
        self.bounds.round_trip = self.bounds.round_trip.max(took);
        if self.lost.range(..=size).next().is_some() {
            self.stage = Stage::Careful;
            self.lost.retain(|&lost, &mut by_few| by_few && lost > size);
        }
        self.low = Some(self.low.map_or(size, |low| low.max(size)));
    }

    /// Returns when the next echo is due, or when unanswered ones count as lost.
    fn due(&self, now: Nanos) -> Nanos {
        let Some((at, size)) = self.last else { return now };
        let round_trip = self.bounds.round_trip.as_ns();
        at + match (self.queue.is_empty(), self.tries_left) {
            (false, _) => Nanos(u64::from(size) * NS_PER_BYTE),
            (true, 0) => Nanos(round_trip + round_trip / 4) + GRACE,
            (true, _) => SPACING,
        }
    }

    /// Marks unanswered sizes as lost.
    fn give_up_sizes(&mut self, low: u32) {
        if self.stage == Stage::Largest {
            return;
        }
        let by_few = self.sizes.len() <= FEW;
        for &size in self.sizes.iter().filter(|&&size| size > low) {
            *self.lost.entry(size).or_default() |= by_few;
        }
    }

    /// Chooses the sizes of the next round.
    fn begin_round(&mut self, now: Nanos) -> Option<MtuEnd> {
        let MtuBounds { smallest, largest, patience, .. } = self.bounds;
        let mut sizes = match self.low {
            None if self.stage == Stage::Largest => {
                self.stage = Stage::Usual;
                self.usual_between(smallest, largest).chain([smallest, largest]).collect()
            }
            None if now >= patience => return Some(MtuEnd::Silent),
            None => vec![smallest, largest],
            Some(low) => {
                if self.stage != Stage::Careful {
                    self.stage = Stage::Between;
                }
                // Nothing may be known of the largest, if earlier results were contradicted.
                let (high, is_sure) = self.lost.first_key_value().map_or((largest, false), |(&k, &v)| (k, v));
                if high == low + 1 && is_sure {
                    return Some(MtuEnd::Less { mtu: low, exact: true });
                }
                self.between(low, high, is_sure)
            }
        };
        sizes.sort_unstable();
        sizes.dedup();
        self.queue = sizes.clone();
        self.sizes = sizes;
        self.tries_left = MAX_PROBES - 1;
        None
    }

    /// Returns the most informative sizes above `low`, which passes, and up to `high`, which does not as far as known.
    fn between(&self, low: u32, high: u32, is_sure: bool) -> Vec<u32> {
        if high == low + 1 {
            return vec![high];
        }
        let is_usual = low == self.bounds.smallest || USUAL.contains(&low);
        if self.stage == Stage::Careful {
            let usual: Vec<u32> = self.usual_between(low, high).collect();
            return vec![match usual.get(usual.len() / 2) {
                Some(&usual) => usual,
                None if is_usual => low + 1,
                None => low + (high - low) / 2,
            }];
        }
        if is_usual {
            return if is_sure { vec![low + 1] } else { vec![low + 1, high] };
        }
        let gap = high - low;
        (1..SECTIONS).map(|part| low + (gap * part / SECTIONS).max(1)).collect()
    }

    fn usual_between(&self, low: u32, high: u32) -> impl Iterator<Item = u32> {
        USUAL.into_iter().filter(move |&size| low < size && size < high)
    }

    /// Returns the result when time is up.
    fn end_late(&self) -> MtuEnd {
        match self.low {
            None => MtuEnd::Silent,
            Some(_) if self.lost.is_empty() => MtuEnd::Unsettled,
            Some(mtu) => MtuEnd::Less { mtu, exact: false },
        }
    }
}
