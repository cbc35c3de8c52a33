//! Compares the emulator with the kernel's netem, frame by frame, for the same arrivals.

use bdp_lab::Program;
use bdp_lab::frame_train::{CarriedTrain, Carrier, Frame, FrameTrain};
use bdp_lab::kernel::Kernel;
use bdp_model::link::netem::Netem;
use bdp_model::link::{DirectionConfig, Jitter, JitterDistribution, LinkConfig, Loss, QueueLimit, Reorder};
use bdp_model::units::{Nanos, Probability, Rate};

use super::check::{CLOCK_STEPS_NS, Check};
use super::frames::{ANY, bunches, first, gap_ns, missing, runs, scattered, transits};
use super::oracle::compare;
use super::statistics::{Z, apart, z_of_runs, z_of_two};
use crate::{Result, guest};

/// Frames that are drawn for.
const DRAWN: usize = 20_000;
const SEED: u64 = 20_260_101;
const OVERHEAD: u32 = 38;

/// How two carriers are compared.
#[derive(Clone, Copy)]
pub(super) enum Comparison {
    /// Frame by frame: each arrives in both or in neither, within this many nanoseconds.
    Each(u64),
    /// Shares of lost frames, and their runs.
    Lost,
    /// Shares of lost frames, for loss in runs with this mean length, whose count spreads this many times as wide as
    /// that of single losses.
    LostInRuns { mean: f64, wider: f64 },
    /// Number, times and mean delay of the frames that arrive.
    Sums,
    /// Duplicated frames.
    Copies,
    /// Distributions of the frames' delays.
    Transits,
}

/// Conditions that both support.
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) ours: DirectionConfig,
    pub(super) netem: Vec<Netem>,
    pub(super) frames: Vec<Frame>,
    pub(super) comparison: Comparison,
}

/// Carries each train through both, in two parallel guests, and compares the results.
pub fn beside_netem(keeper: &Program) -> Result<(Kernel, Vec<Check>)> {
    carry_both(keeper, &pairs())
}

/// Carries the trains of these pairs through both.
pub(super) fn carry_both(keeper: &Program, pairs: &[Pair]) -> Result<(Kernel, Vec<Check>)> {
    let of = |pair: &Pair, by: Carrier| FrameTrain { by, seed: SEED, frames: pair.frames.clone() };
    let link = |pair: &Pair| LinkConfig { forward: pair.ours.clone(), ..Default::default() };
    let ours = pairs.iter().map(|pair| of(pair, Carrier::Link(Box::new(link(pair))))).collect();
    let netem = pairs.iter().map(|pair| of(pair, Carrier::Netem(pair.netem.clone()))).collect();
    let (kernel, [ours, netem]) = guest::carry(keeper, SEED, [ours, netem])?;
    let compared =
        pairs.iter().zip(ours.iter().zip(&netem)).map(|(pair, (ours, netem))| pair.compare(ours, netem));
    Ok((kernel, compared.collect()))
}

impl Pair {
    fn compare(&self, ours: &CarriedTrain, netem: &CarriedTrain) -> Check {
        let what = format!("{}: {}", self.name, self.comparison.name());
        match self.comparison {
            Comparison::Each(bound_ns) => {
                let dropped = missing(ours).len();
                let (off, unlike) = compare(&first(ours), &first(netem));
                let held = unlike == 0 && off.is_some_and(|off| off <= bound_ns);
                let off = off.map_or_else(|| "nothing came".to_owned(), |off| format!("{off} ns apart"));
                let lost = if dropped + unlike > 0 {
                    format!(", {dropped} dropped, {unlike} unlike")
                } else {
                    String::new()
                };
                Check::new(what, format!("{off}{lost}"), format!("<= {bound_ns} ns"), held)
            }
            Comparison::Lost => {
                let lost = [missing(ours), missing(netem)];
                let n = self.frames.len() as u64;
                let z = z_of_two([lost[0].len() as u64, lost[1].len() as u64], [n, n]);
                let [a, b] = lost.each_ref().map(|lost| {
                    let runs = runs(lost);
                    format!("{}, runs of {:.2}", lost.len(), lost.len() as f64 / runs.len().max(1) as f64)
                });
                Check::new(what, format!("{a}; {b}"), format!("{Z} sigma"), z.abs() <= Z)
            }
            Comparison::LostInRuns { mean, wider } => {
                let lost = [missing(ours), missing(netem)];
                let n = self.frames.len() as u64;
                let z = z_of_two(lost.each_ref().map(|lost| lost.len() as u64), [n, n]) / wider;
                let of_runs = lost.each_ref().map(|lost| z_of_runs(&runs(lost), mean));
                let [a, b] = lost.each_ref().map(|lost| {
                    let runs = runs(lost);
                    format!("{}, runs of {:.2}", lost.len(), lost.len() as f64 / runs.len().max(1) as f64)
                });
                let held = z.abs() <= Z && of_runs.iter().all(|z| z.abs() <= Z);
                Check::new(what, format!("{a}; {b}"), format!("{Z} sigma"), held)
            }
            Comparison::Sums => {
                let lost = [ours, netem].map(|c| missing(c).len() as f64 / self.frames.len() as f64 * 100.0);
                let took = [ours, netem].map(|carried| {
                    let transits = transits(carried);
                    transits.iter().sum::<u64>() as f64 / transits.len().max(1) as f64 / 1e6
                });
                let pps = [ours, netem].map(|carried| match carried.came[..] {
                    [(_, first), .., (_, last)] => {
                        (carried.came.len() - 1) as f64 * 1e9 / (last - first) as f64
                    }
                    _ => 0.0,
                });
                let off = |[a, b]: [f64; 2]| (a / b - 1.0).abs();
                let held = (lost[0] - lost[1]).abs() <= 0.5 && off(took) <= 0.02 && off(pps) <= 0.005;
                let measured = format!(
                    "{:.1} %, {:.1} ms, {:.1} a second; {:.1} %, {:.1} ms, {:.1} a second",
                    lost[0], took[0], pps[0], lost[1], took[1], pps[1]
                );
                Check::new(what, measured, "0.5 points, 2 %, 0.5 %", held)
            }
            Comparison::Copies => {
                let copies = [ours, netem].map(|c| c.came.len().saturating_sub(c.sent_ns.len()) as u64);
                let n = self.frames.len() as u64;
                let z = z_of_two(copies, [n, n]);
                Check::new(what, format!("{}; {}", copies[0], copies[1]), format!("{Z} sigma"), z.abs() <= Z)
            }
            Comparison::Transits => {
                // To ten microseconds: if many frames take the same time, nanoseconds would decide which sample is
                // ahead.
                let [a, b] = [ours, netem].map(|carried| {
                    transits(carried).iter().map(|took| (took + 5_000) / 10_000).collect::<Vec<_>>()
                });
                let (off, bound) = apart(&a, &b);
                Check::new(what, format!("{off:.4} apart"), format!("<= {bound:.4}"), off <= bound)
            }
        }
    }
}

impl Comparison {
    fn name(self) -> &'static str {
        match self {
            Self::Each(_) => "each frame",
            Self::Lost | Self::LostInRuns { .. } => "lost",
            Self::Sums => "lost, mean delay, rate",
            Self::Copies => "copies",
            Self::Transits => "distribution",
        }
    }
}

fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for delay in [0, 1, 10, 50, 100].map(Nanos::millis) {
        pairs.push(Pair {
            name: format!("delay {delay}"),
            ours: DirectionConfig { delay, ..Default::default() },
            netem: vec![Netem { delay, ..Default::default() }],
            frames: scattered(1_000, 200_000, ANY, 1),
            comparison: Comparison::Each(CLOCK_STEPS_NS),
        });
    }
    // As fast as the rate for a while, so that queues grow and empty; then more than it, so that they overflow.
    for (rate_bps, limit, delay_ms, percent) in [
        (1_000_000, 1000, 0, 95),
        (10_000_000, 1000, 0, 95),
        (33_300_000, 1000, 0, 95),
        (100_000_000, 1000, 0, 95),
        (1_000_000_000, 1000, 0, 95),
        (1_000_000, 10, 0, 150),
        (10_000_000, 50, 0, 150),
        (100_000_000, 100, 0, 150),
        (1_000_000_000, 500, 0, 150),
        (1_000_000, 20, 100, 150),
        (10_000_000, 100, 50, 95),
        (100_000_000, 50, 10, 150),
        (1_000_000_000, 200, 1, 95),
    ] {
        pairs.push(with_rate(rate_bps, limit, delay_ms, percent));
    }
    for loss in [0.001, 0.01, 0.05].map(probability) {
        pairs.push(Pair {
            name: format!("loss {loss}"),
            ours: DirectionConfig { loss: Loss::Independent(loss), ..Default::default() },
            netem: vec![Netem { loss, ..Default::default() }],
            frames: bunches(DRAWN, 1_000_000),
            comparison: Comparison::Lost,
        });
    }
    let duplicate = probability(0.02);
    pairs.push(Pair {
        name: "duplication 2%".to_owned(),
        ours: DirectionConfig { duplicate, ..Default::default() },
        netem: vec![Netem { duplicate, ..Default::default() }],
        frames: bunches(DRAWN / 2, 1_000_000),
        comparison: Comparison::Copies,
    });
    let (delay, spread) = (Nanos::millis(10), Nanos::millis(2));
    let distribution = JitterDistribution::Uniform { spread };
    pairs.push(Pair {
        name: "jitter 10 ms +- 2 ms".to_owned(),
        ours: DirectionConfig {
            delay,
            jitter: Some(Jitter { distribution, reorder: true, correlation_time: None }),
            ..Default::default()
        },
        netem: vec![Netem { delay, jitter: spread, ..Default::default() }],
        frames: scattered(4_000, 100_000, ANY, 3),
        comparison: Comparison::Transits,
    });
    // netem sends some at once and delays the others; the emulator delays some: the same effect from the other side.
    pairs.push(Pair {
        name: "reordering, 5% ahead by 10 ms".to_owned(),
        ours: DirectionConfig {
            reorder: Some(Reorder { probability: probability(0.95), by: delay }),
            ..Default::default()
        },
        netem: vec![Netem { delay, at_once: probability(0.05), ..Default::default() }],
        frames: scattered(8_000, 100_000, ANY, 4),
        comparison: Comparison::Transits,
    });
    pairs
}

fn with_rate(rate_bps: u64, limit: u32, delay_ms: u64, percent: u64) -> Pair {
    let (rate, delay) = (Some(Rate::bps(rate_bps)), Nanos::millis(delay_ms));
    let frames = 2_000;
    let mut netem =
        vec![Netem { rate, overhead_bytes: OVERHEAD, limit_packets: limit, ..Default::default() }];
    let mut name = format!("{}, limit {limit}", Rate::bps(rate_bps));
    if delay_ms > 0 {
        netem.push(Netem { delay, ..Default::default() });
        name.push_str(&format!(", then {delay}"));
    }
    Pair {
        name,
        ours: DirectionConfig {
            rate,
            delay,
            overhead_bytes: OVERHEAD,
            limit: QueueLimit::Packets(u64::from(limit)),
            ..Default::default()
        },
        netem,
        frames: scattered(frames, gap_ns(rate_bps, OVERHEAD, percent), ANY, 2),
        // netem truncates each serialisation time to whole nanoseconds.
        comparison: Comparison::Each(CLOCK_STEPS_NS + frames as u64),
    }
}

fn probability(p: f64) -> Probability {
    Probability::new(p).unwrap_or_default()
}
