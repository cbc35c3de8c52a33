//! Short transfers of a scenario, each a TCP connection of its own, drawn from a seed; and their totals.

use serde::{Deserialize, Serialize};

use crate::statistics::random::SplitMix64;
use crate::units::Nanos;

/// Most transfers of one entry, on average.
pub const MOST_TRANSFERS: u64 = 2_000;
/// Most requests of one entry, on average.
pub const MOST_REQUESTS: u64 = 100_000;
/// How long a transfer may take after the time in which transfers start.
pub const PATIENCE: Nanos = Nanos::secs(30);

/// Short transfers from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traffic {
    /// Name.
    pub name: String,
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// Congestion control of the sender.
    pub congestion: Option<String>,
    /// When the first transfers may start, from the time that the first flow could start.
    #[serde(rename = "start_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Nanos,
    /// Time during which transfers start.
    #[serde(rename = "duration_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub duration: Nanos,
    /// When each transfer starts.
    pub pattern: Pattern,
    /// Distribution of the sizes.
    pub size: Size,
}

/// A single transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// When its connection is opened, from the time that the first flow could start.
    pub start: Nanos,
    /// When it ends, even if data remains.
    pub end: Nanos,
    /// Its size, bytes; `None` if it sends until it ends.
    pub bytes: Option<u64>,
}

/// A client's request and the response to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Time that the client waits before the request.
    pub think: Nanos,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the response.
    pub answer_bytes: u64,
}

/// When transfers start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pattern {
    /// Poisson arrivals: independent, exponentially distributed gaps.
    Poisson {
        /// Mean gap.
        #[serde(rename = "gap_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        gap: Nanos,
    },
    /// One after each gap, like the chunks of a video.
    Periodic {
        /// The gap.
        #[serde(rename = "gap_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        gap: Nanos,
    },
    /// A fixed number of clients, each sending a request, reading the response, pausing and repeating.
    RequestResponse {
        /// Mean time between a response and the next request of the same client.
        #[serde(rename = "think_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        think: Nanos,
        /// Whether that time is constant; exponentially distributed if not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        think_fixed: bool,
        /// Number of clients.
        clients: u32,
        /// Distribution of the request sizes.
        request: Size,
        /// Whether a client keeps its connection instead of opening one for each request.
        kept: bool,
    },
    /// A connection that alternates between sending as fast as it can and silence; both times are exponentially distributed.
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

/// Distribution of transfer sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Size {
    /// All transfers have the same size.
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    /// Exponential distribution.
    Exponential {
        /// Mean, bytes.
        mean_bytes: u64,
    },
    /// Truncated Pareto distribution of the first kind.
    Pareto {
        /// Mean before truncation, bytes.
        mean_bytes: u64,
        /// Shape parameter, above 1: the smaller, the heavier the tail.
        shape: f64,
        /// Largest size, bytes.
        most_bytes: u64,
    },
    /// Truncated log-normal distribution.
    Lognormal {
        /// Mean before truncation, bytes.
        mean_bytes: u64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Largest size, bytes.
        most_bytes: u64,
    },
}

impl Traffic {
    /// Returns the mean number of transfers.
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

    /// Returns the exchanges drawn for one client of a request-response pattern.
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
                // Otherwise all clients would send their requests at the same time forever.
                (true, true) => Nanos((think.as_ns() as f64 * draw) as u64),
            };
            let answer_bytes = answer.draw([draws.open(), draws.open()]);
            let request_bytes = request.draw([of_requests.open(), of_requests.open()]);
            Exchange { think, request_bytes, answer_bytes }
        })
    }

    /// Returns the transfers, determined by the seed and the place in the scenario.
    pub fn transfers(&self, seed: u64, place: u32) -> Vec<Transfer> {
        let mut draws = Draws::of(seed, place);
        let mut flows: Vec<Transfer> = Vec::new();
        let end = self.start + self.duration;
        let mut at = self.start;
        let first = |flows: &[Transfer]| flows.is_empty();
        loop {
            // The same number of draws for each transfer, whether or not they are used.
            let (gap_draw, size_draws) = (draws.open(), [draws.open(), draws.open()]);
            match self.pattern {
                Pattern::Poisson { gap } => at += exponential(gap, gap_draw),
                Pattern::Periodic { gap } if !first(&flows) => at += gap,
                Pattern::OnOff { off, .. } => at += exponential(off, gap_draw),
                Pattern::Periodic { .. } => {}
                // The exchanges depend on the responses.
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
    /// Draws a size from two uniform numbers between 0 and 1.
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

    /// Returns a uniform number between 0 and 1, both excluded.
    fn open(&mut self) -> f64 {
        ((self.0.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

fn exponential(mean: Nanos, u: f64) -> Nanos {
    Nanos((-u.ln() * mean.as_ns() as f64) as u64)
}

/// Results of the transfers of one traffic entry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrafficRecord {
    /// Name.
    pub name: String,
    /// Transfers started.
    pub transfers: u64,
    /// Transfers that did not complete in time.
    pub unfinished: u64,
    /// Bytes received, all transfers together.
    pub received_bytes: u64,
    /// Segments retransmitted, all transfers together; null if the kernel does not report it.
    pub retransmits: Option<u64>,
    /// Percentiles of the completion time, from a transfer's planned start to its last byte read, nanoseconds: 101 from smallest to largest,
    /// each by nearest rank. Empty if none completed, and for transfers that end by time.
    pub completion_ns: Vec<u64>,
    /// Mean completion time, nanoseconds.
    pub completion_mean_ns: Option<u64>,
    /// Periodic transfers that took longer than the gap.
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
        // 1000 expected; the standard deviation of the number of arrivals is its root.
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
            // Heavy tail: the mean of few is far from it.
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
        // The responses are drawn separately.
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
