//! Traffic: many transfers that come and go, each a TCP connection of its own, drawn from a seed; and what became of them, in sum.

use serde::{Deserialize, Serialize};

use crate::random::SplitMix64;
use crate::units::Nanos;

/// Most transfers of one entry on average.
pub const MOST_TRANSFERS: u64 = 2_000;
/// Most requests of one entry on average.
pub const MOST_REQUESTS: u64 = 100_000;
/// How long a transfer may take beyond the time in which transfers begin.
pub const PATIENCE: Nanos = Nanos::secs(30);

/// Transfers from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traffic {
    /// What it is called.
    pub name: String,
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// Congestion control of the sender.
    pub congestion: Option<String>,
    /// When transfers begin to come, since the first flow could start.
    #[serde(rename = "start_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Nanos,
    /// For how long they come.
    #[serde(rename = "duration_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub duration: Nanos,
    /// When each begins.
    pub pattern: Pattern,
    /// How large each is.
    pub size: Size,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// When its connection is to be opened, since the first flow could start.
    pub start: Nanos,
    /// When it is over, whatever is left of it.
    pub end: Nanos,
    /// Its bytes; `None` where it sends until it is over.
    pub bytes: Option<u64>,
}

/// One question of a client and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// How long the client thinks before.
    pub think: Nanos,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the answer.
    pub answer_bytes: u64,
}

/// When transfers begin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pattern {
    /// Arrivals of a Poisson process: gaps are exponential, independent of each other.
    Poisson {
        /// Mean gap.
        #[serde(rename = "gap_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        gap: Nanos,
    },
    /// One after each gap, as chunks of a video come.
    Periodic {
        /// The gap.
        #[serde(rename = "gap_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        gap: Nanos,
    },
    /// A fixed number of clients, each sending a request, reading the response, pausing and repeating.
    RequestResponse {
        /// Mean time between an answer and the next request of the same client.
        #[serde(rename = "think_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        think: Nanos,
        /// Whether it is that each time; exponential where not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        think_fixed: bool,
        /// How many.
        clients: u32,
        /// How large each request is.
        request: Size,
        /// Whether a client keeps its connection, or opens one for each request.
        kept: bool,
    },
    /// A connection that sends as fast as it can for a time, and none for another; both exponential.
    OnOff {
        /// Mean time of sending.
        #[serde(rename = "on_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        on: Nanos,
        /// Mean time of silence.
        #[serde(rename = "off_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        off: Nanos,
    },
}

/// How large a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Size {
    /// Each as large as the others.
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    /// Exponential.
    Exponential {
        /// Mean, bytes.
        mean_bytes: u64,
    },
    /// Pareto of the first kind, cut off.
    Pareto {
        /// Mean before it is cut off, bytes.
        mean_bytes: u64,
        /// Its index, above 1: the smaller, the heavier the tail.
        shape: f64,
        /// No transfer is larger, bytes.
        most_bytes: u64,
    },
    /// Log-normal, cut off.
    Lognormal {
        /// Mean before it is cut off, bytes.
        mean_bytes: u64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// No transfer is larger, bytes.
        most_bytes: u64,
    },
}

impl Traffic {
    /// How many transfers begin, on average.
    pub fn expected(&self) -> u64 {
        let between = match self.pattern {
            Pattern::Poisson { gap } | Pattern::Periodic { gap } => gap,
            Pattern::OnOff { on, off } => on + off,
            Pattern::RequestResponse { think, clients, .. } => {
                return (self.duration.as_ns() / think.as_ns().max(1)).saturating_mul(u64::from(clients));
            }
        };
        self.duration.as_ns() / between.as_ns().max(1)
    }

    /// What one client of a pattern of requests draws.
    pub fn exchanges(&self, seed: u64, place: u32, client: u32) -> impl Iterator<Item = Exchange> {
        let (think, fixed, request) = match self.pattern {
            Pattern::RequestResponse { think, think_fixed, request, .. } => (think, think_fixed, request),
            _ => (Nanos::ZERO, true, Size::Fixed { bytes: 1 }),
        };
        let of_client = u64::from(client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draws = Draws::of(seed.wrapping_add(of_client), place);
        let mut of_requests = Draws::of(!seed.wrapping_add(of_client), place);
        let answer = self.size;
        let mut first = true;
        std::iter::repeat_with(move || {
            let draw = draws.open();
            let think = match (fixed, std::mem::take(&mut first)) {
                (false, _) => exponential(think, draw),
                (true, false) => think,
                // Or all clients would ask at once for ever.
                (true, true) => Nanos((think.as_ns() as f64 * draw) as u64),
            };
            let answer_bytes = answer.draw([draws.open(), draws.open()]);
            let request_bytes = request.draw([of_requests.open(), of_requests.open()]);
            Exchange { think, request_bytes, answer_bytes }
        })
    }

    /// Its transfers; the same for the same seed and place in the scenario.
    pub fn transfers(&self, seed: u64, place: u32) -> Vec<Transfer> {
        let mut draws = Draws::of(seed, place);
        let mut flows: Vec<Transfer> = Vec::new();
        let end = self.start + self.duration;
        let mut at = self.start;
        let first = |flows: &[Transfer]| flows.is_empty();
        loop {
            // The same draws for each transfer, whatever they are used for.
            let (gap_draw, size_draws) = (draws.open(), [draws.open(), draws.open()]);
            match self.pattern {
                Pattern::Poisson { gap } => at += exponential(gap, gap_draw),
                Pattern::Periodic { gap } if !first(&flows) => at += gap,
                Pattern::OnOff { off, .. } => at += exponential(off, gap_draw),
                Pattern::Periodic { .. } => {}
                // What they do follows from the answers.
                Pattern::RequestResponse { .. } => return flows,
            }
            if at >= end || flows.len() as u64 >= 2 * MOST_TRANSFERS {
                return flows;
            }
            let transfer = match self.pattern {
                Pattern::OnOff { on, .. } => {
                    let on = exponential(on, size_draws[0]).max(Nanos::millis(1));
                    Transfer { start: at, end: at + on, bytes: None }
                }
                _ => Transfer { start: at, end: end + PATIENCE, bytes: Some(self.size.draw(size_draws)) },
            };
            if transfer.bytes.is_none() {
                at = transfer.end;
            }
            flows.push(transfer);
        }
    }
}

impl Size {
    /// Of two even numbers between 0 and 1.
    fn draw(self, [u, v]: [f64; 2]) -> u64 {
        let bytes = match self {
            Self::Fixed { bytes } => return bytes.max(1),
            Self::Exponential { mean_bytes } => -u.ln() * mean_bytes as f64,
            Self::Pareto { mean_bytes, shape, most_bytes } => {
                let least = mean_bytes as f64 * (shape - 1.0) / shape;
                (least / u.powf(1.0 / shape)).min(most_bytes as f64)
            }
            Self::Lognormal { mean_bytes, sigma, most_bytes } => {
                // Box and Muller, "A note on the generation of random normal deviates" (1958).
                let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                let mu = (mean_bytes as f64).ln() - sigma * sigma / 2.0;
                (mu + sigma * normal).exp().min(most_bytes as f64)
            }
        };
        (bytes as u64).max(1)
    }
}

struct Draws(SplitMix64);

impl Draws {
    fn of(seed: u64, place: u32) -> Self {
        Self(SplitMix64(seed ^ u64::from(place + 1).rotate_left(32) ^ 0x7472_6166_6669_6373))
    }

    /// An even number between 0 and 1, neither of them.
    fn open(&mut self) -> f64 {
        ((self.0.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

fn exponential(mean: Nanos, u: f64) -> Nanos {
    Nanos((-u.ln() * mean.as_ns() as f64) as u64)
}

/// What became of the transfers of one entry of traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrafficRecord {
    /// What it is called.
    pub name: String,
    /// Transfers that began.
    pub transfers: u64,
    /// Of those, such as did not come to their end in time.
    pub unfinished: u64,
    /// Bytes that were read, of all.
    pub received_bytes: u64,
    /// Segments that were sent again, of all; null where the kernel does not report it.
    pub retransmits: Option<u64>,
    /// Percentiles of the time from when a transfer was to begin until its last byte was read, nanoseconds: 101 from the smallest to the largest,
    /// each the nearest rank. Empty where none ended, and of transfers that end by time.
    pub completion_ns: Vec<u64>,
    /// Mean of the same.
    pub completion_mean_ns: Option<u64>,
    /// Of transfers that come in a fixed gap, those that took longer than it.
    pub late: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(pattern: Pattern, size: Size) -> Traffic {
        Traffic {
            name: "t".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            congestion: None,
            start: Nanos::secs(1),
            duration: Nanos::secs(1000),
            pattern,
            size,
        }
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_spread_of_their_gaps() {
        let gap = Nanos::secs(1);
        let flows = traffic(Pattern::Poisson { gap }, Size::Fixed { bytes: 1 }).transfers(7, 0);
        // 1000 expected; the number of arrivals has their root as its deviation.
        assert!((900..1100).contains(&flows.len()), "{}", flows.len());
        let gaps: Vec<f64> = flows.windows(2).map(|w| (w[1].start - w[0].start).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.15, "{mean} {variance}");
        assert_eq!(flows, traffic(Pattern::Poisson { gap }, Size::Fixed { bytes: 1 }).transfers(7, 0));
        assert_ne!(flows, traffic(Pattern::Poisson { gap }, Size::Fixed { bytes: 1 }).transfers(8, 0));
        assert_ne!(
            flows[0].start,
            traffic(Pattern::Poisson { gap }, Size::Fixed { bytes: 1 }).transfers(7, 1)[0].start
        );
    }

    #[test]
    fn sizes_have_the_means_that_were_asked_for() {
        let mut draws = Draws(SplitMix64(3));
        for (size, within) in [
            (Size::Fixed { bytes: 30_000 }, 0.0),
            (Size::Exponential { mean_bytes: 30_000 }, 0.02),
            (Size::Lognormal { mean_bytes: 30_000, sigma: 1.0, most_bytes: u64::MAX }, 0.03),
            // Heavy: the mean of few is far from it.
            (Size::Pareto { mean_bytes: 30_000, shape: 2.5, most_bytes: u64::MAX }, 0.03),
        ] {
            let count = 100_000;
            let sum: f64 = (0..count).map(|_| size.draw([draws.open(), draws.open()]) as f64).sum();
            let mean = sum / f64::from(count);
            assert!((mean / 30_000.0 - 1.0).abs() <= within, "{size:?}: {mean}");
        }
        let cut = Size::Pareto { mean_bytes: 30_000, shape: 1.2, most_bytes: 1_000_000 };
        assert!((0..100_000).all(|_| (5_000..=1_000_000).contains(&cut.draw([draws.open(), draws.open()]))));
    }

    #[test]
    fn clients_think_and_ask_as_they_were_asked_to() {
        let thinking = |think_fixed, request| {
            let pattern = Pattern::RequestResponse {
                think: Nanos::millis(100),
                think_fixed,
                clients: 2,
                request,
                kept: true,
            };
            let of_client = |client| {
                let traffic = traffic(pattern, Size::Exponential { mean_bytes: 5_000 });
                traffic.exchanges(7, 0, client).take(10_000).collect::<Vec<_>>()
            };
            [0, 1].map(of_client)
        };
        let mean = |of: &[Exchange], what: fn(&Exchange) -> u64| of.iter().map(what).sum::<u64>() / 10_000;
        let [drawn, other] = thinking(false, Size::Fixed { bytes: 300 });
        assert_ne!(drawn, other);
        assert!((96_000_000..104_000_000).contains(&mean(&drawn, |one| one.think.as_ns())));
        assert!(drawn.iter().all(|one| one.request_bytes == 300));
        let [fixed, other] = thinking(true, Size::Exponential { mean_bytes: 2_000 });
        assert!(fixed[0].think < Nanos::millis(100) && fixed[0].think != other[0].think);
        assert!(fixed[1..].iter().all(|one| one.think == Nanos::millis(100)));
        assert!((1_900..2_100).contains(&mean(&fixed, |one| one.request_bytes)));
        // What answers are follows from their own draws.
        assert!(drawn.iter().zip(&fixed).all(|(a, b)| a.answer_bytes == b.answer_bytes));
        assert!((4_800..5_200).contains(&mean(&fixed, |one| one.answer_bytes)));
    }

    #[test]
    fn chunks_come_in_their_gap_and_on_times_do_not_overlap() {
        let gap = Nanos::secs(2);
        let chunks = traffic(Pattern::Periodic { gap }, Size::Fixed { bytes: 9 }).transfers(1, 0);
        assert_eq!(chunks.len(), 500);
        assert_eq!([chunks[0].start, chunks[1].start], [Nanos::secs(1), Nanos::secs(3)]);
        let (on, off) = (Nanos::secs(2), Nanos::secs(3));
        let bursts = traffic(Pattern::OnOff { on, off }, Size::Fixed { bytes: 9 }).transfers(1, 0);
        assert!((140..260).contains(&bursts.len()), "{}", bursts.len());
        assert!(bursts.windows(2).all(|w| w[0].end <= w[1].start));
        assert!(bursts.iter().all(|flow| flow.bytes.is_none()));
    }
}
