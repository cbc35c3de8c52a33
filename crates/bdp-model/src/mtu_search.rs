//! The search for the largest packet that comes back over a path that says nothing of what it drops: packetization layer path MTU
//! discovery for datagrams (RFC 8899), by echoes.
//!
//! An answer proves its size and all below; silence proves nothing, and a size counts as lost only after [`MAX_PROBES`] echoes. Sizes
//! that are usual are asked for in one round, largest first, so that a long path takes few round trips: what is found there is
//! mostly the answer, and one round more shows that not a byte beyond it passes. Other sizes are closed in on by sections. Where
//! an answer contradicts what counted as lost, the path loses packets for their number or by chance: nothing that many echoes
//! at once have shown is believed from then on, and sizes are tried one at a time.

use std::collections::BTreeMap;

use crate::units::Nanos;

/// Echoes of one size without answer after which it counts as lost (RFC 8899, section 5.1.2).
pub const MAX_PROBES: u32 = 3;
/// IPv6 packets of this size every link has to carry (RFC 8200, section 5).
pub const IPV6_MINIMUM: u32 = 1280;
/// MTUs that paths have: jumbo frames and those of clouds, POS, FDDI; Ethernet and what PPPoE (RFC 2516), tunnels (IP in IP, GRE, VXLAN,
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
/// From the last echo of one size to the next of the same: a burst of loss must not take all of them.
const SPACING: Nanos = Nanos::millis(25);
/// How long an answer is waited for beyond 5/4 of the round trip: either end may stall.
const GRACE: Nanos = Nanos::millis(120);
/// From one echo to the next, for each of its bytes: 4 Mbit/s.
const NS_PER_BYTE: u64 = 2_000;
/// Sizes of a round between two that are known.
const SECTIONS: u32 = 8;
/// A round of so few sizes loses none for their number.
const FEW: usize = 2;

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send an echo whose IP packet has this size, bytes.
    Send(u32),
    /// Take answers until then, and all that have come.
    Wait(Nanos),
    /// It is over.
    End(MtuEnd),
}

/// What the search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MtuEnd {
    /// The largest came back.
    Held,
    /// This is the largest that came back, bytes; where not `exact` time was up before all between it and what is lost was tried.
    Less {
        /// Bytes of the IP packet.
        mtu: u32,
        /// Whether one byte more is known to be lost.
        exact: bool,
    },
    /// Small ones came back, and of the largest too few were sent to tell.
    Unsettled,
    /// Nothing came back.
    Silent,
}

/// Between what and for how long is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtuBounds {
    /// Packet of the smallest echo, bytes.
    pub smallest: u32,
    /// The largest that the kernel would send whole, bytes.
    pub largest: u32,
    /// Of the path, as far as is known.
    pub round_trip: Nanos,
    /// When nothing is waited for any longer if nothing has come.
    pub patience: Nanos,
    /// When it ends with what it has.
    pub until: Nanos,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct MtuSearcher {
    bounds: MtuBounds,
    /// Largest that came back.
    low: Option<u32>,
    /// Sizes above it that count as lost, and whether by a round of few.
    lost: BTreeMap<u32, bool>,
    stage: Stage,
    sizes: Vec<u32>,
    /// Of the sizes, those to be sent now, the next one last.
    queue: Vec<u32>,
    tries_left: u32,
    /// The echo before: when, and its size.
    last: Option<(Nanos, u32)>,
    /// When each size was sent last.
    sent: BTreeMap<u32, Nanos>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// One echo of the largest: mostly it comes back.
    Largest,
    /// All usual sizes.
    Usual,
    /// Between two sizes.
    Between,
    /// The same, one at a time.
    Careful,
}

impl MtuSearcher {
    /// Begins.
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

    /// What is to be done at this time.
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

    /// Takes an answer to an echo whose packet had this size, at this time.
    pub fn note_answer(&mut self, size: u32, now: Nanos) {
        // A slow line holds up what is behind our own echoes.
        let took = self.sent.get(&size).map_or(Nanos::ZERO, |&sent| now.saturating_sub(sent));
        self.bounds.round_trip = self.bounds.round_trip.max(took);
        if self.lost.range(..=size).next().is_some() {
            self.stage = Stage::Careful;
            self.lost.retain(|&lost, &mut by_few| by_few && lost > size);
        }
        self.low = Some(self.low.map_or(size, |low| low.max(size)));
    }

    /// When the next echo is due, or what was sent counts as lost.
    fn due(&self, now: Nanos) -> Nanos {
        let Some((at, size)) = self.last else { return now };
        let round_trip = self.bounds.round_trip.as_ns();
        at + match (self.queue.is_empty(), self.tries_left) {
            (false, _) => Nanos(u64::from(size) * NS_PER_BYTE),
            (true, 0) => Nanos(round_trip + round_trip / 4) + GRACE,
            (true, _) => SPACING,
        }
    }

    /// Counts what is without answer as lost.
    fn give_up_sizes(&mut self, low: u32) {
        if self.stage == Stage::Largest {
            return;
        }
        let by_few = self.sizes.len() <= FEW;
        for &size in self.sizes.iter().filter(|&&size| size > low) {
            *self.lost.entry(size).or_default() |= by_few;
        }
    }

    /// Chooses the sizes to be tried next.
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
                // Of the largest nothing may be known, where what was known has been contradicted.
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

    /// Sizes that tell most of what is above `low`, which passes, and up to `high`, which does not as far as is known.
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

    /// What is known when time is up.
    fn end_late(&self) -> MtuEnd {
        match self.low {
            None => MtuEnd::Silent,
            Some(_) if self.lost.is_empty() => MtuEnd::Unsettled,
            Some(mtu) => MtuEnd::Less { mtu, exact: false },
        }
    }
}
