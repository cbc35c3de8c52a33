//! Compares the emulator with independent arithmetic: frames at known moments, and when they must leave.

use bdp_lab::Program;
use bdp_lab::frame_train::{CarriedTrain, Carrier, Frame, FrameTrain};
use bdp_lab::kernel::Kernel;
use bdp_model::link::{DirectionConfig, Jitter, JitterDistribution, LinkConfig, Loss, QueueLimit, Reorder};
use bdp_model::units::{ByteCount, Nanos, Probability, Rate};

use super::check::{CLOCK_STEPS_NS, Check};
use super::frames::{ANY, LONGEST, bunches, first, gap_ns, missing, overtaken, runs, scattered, transits};
use super::oracle::{Bound, Wire, compare};
use super::statistics::{Z, from_even, z_of_runs, z_of_share};
use crate::Result;
use crate::guest;

/// Frames that are drawn for.
const DRAWN: usize = 10_000;
/// Base of every seed.
const SEED: u64 = 20_260_101;
/// Bytes on the wire in addition to the IP packet.
const OVERHEAD: u32 = 38;

/// A train and the expected result.
struct Row {
    direction: DirectionConfig,
    frames: Vec<Frame>,
    judge: Judge,
}

/// Checks a train's frames.
type Judge = Box<dyn Fn(&[Frame], &CarriedTrain) -> Vec<Check>>;

/// Carries the frames in a guest, twice, and checks the results.
pub fn exact(keeper: &Program) -> Result<(Kernel, Vec<Check>)> {
    let rows = rows();
    let trains: Vec<FrameTrain> = rows.iter().map(Row::train).collect();
    let (kernel, [carried, again]) = guest::carry(keeper, SEED, [trains.clone(), trains])?;
    let judged = rows.iter().zip(&carried).flat_map(|(row, carried)| (row.judge)(&row.frames, carried));
    let mut checks: Vec<Check> = judged.collect();
    let all = carried.iter().map(|c| c.sent_ns.len() + c.came.len()).sum();
    let moments = |c: &CarriedTrain| (c.sent_ns.clone(), c.came.clone());
    let unlike = carried.iter().zip(&again).filter(|(a, b)| moments(a) != moments(b)).count();
    checks.push(Check::alike("all of it again in another guest: moments", all, unlike));
    Ok((kernel, checks))
}

impl Row {
    fn new(
        direction: DirectionConfig,
        frames: Vec<Frame>,
        judge: impl Fn(&[Frame], &CarriedTrain) -> Vec<Check> + 'static,
    ) -> Self {
        Self { direction, frames, judge: Box::new(judge) }
    }

    fn train(&self) -> FrameTrain {
        let config = LinkConfig { forward: self.direction.clone(), ..Default::default() };
        FrameTrain { by: Carrier::Link(Box::new(config)), seed: SEED, frames: self.frames.clone() }
    }
}

fn probability(p: f64) -> Probability {
    Probability::new(p).unwrap_or_default()
}

fn rows() -> Vec<Row> {
    let mut rows = vec![delay(37_123_456), delay(0)];
    for (rate_bps, bound, percent) in [
        (7_654_321, Bound::None, 95),
        (1_000_000_000, Bound::None, 95),
        (10_000_000, Bound::Frames(20), 150),
        (100_000_000, Bound::Frames(100), 150),
        (33_333_333, Bound::WireBytes(30_000), 150),
    ] {
        rows.push(rate(Wire { rate_bps, overhead_bytes: OVERHEAD, delay_ns: 12_345_678, bound }, percent));
    }
    rows.extend([periodic(), list(), independent(0.01), independent(0.1), gilbert_elliott()]);
    rows.extend([jitter(true), jitter(false), reordering(), duplication()]);
    rows
}

fn delay(delay_ns: u64) -> Row {
    let direction = DirectionConfig { delay: Nanos(delay_ns), ..Default::default() };
    Row::new(direction, scattered(2_000, 100_000, ANY, 1), move |_, carried| {
        let off = transits(carried).iter().map(|took| took.abs_diff(delay_ns)).max();
        vec![Check::off(format!("delay of {}", Nanos(delay_ns)), off, CLOCK_STEPS_NS)]
    })
}

fn rate(wire: Wire, percent: u64) -> Row {
    let (limit, bound) = match wire.bound {
        Bound::None => (QueueLimit::Unlimited, String::new()),
        Bound::Frames(most) => (QueueLimit::Packets(most as u64), format!(", limit {most} packets")),
        Bound::WireBytes(most) => {
            (QueueLimit::Bytes(ByteCount::bytes(most)), format!(", limit {most} bytes"))
        }
    };
    let direction = DirectionConfig {
        rate: Some(Rate::bps(wire.rate_bps)),
        overhead_bytes: wire.overhead_bytes,
        delay: Nanos(wire.delay_ns),
        limit,
        ..Default::default()
    };
    let frames = scattered(2_000, gap_ns(wire.rate_bps, wire.overhead_bytes, percent), ANY, 2);
    Row::new(direction, frames, move |frames, carried| {
        let name = format!("{}{bound}", Rate::bps(wire.rate_bps));
        let wanted = wire.departures(frames, &carried.sent_ns);
        let (off, unlike) = compare(&first(carried), &wanted);
        let mut checks = vec![Check::off(format!("{name}: departures"), off, CLOCK_STEPS_NS)];
        if !matches!(wire.bound, Bound::None) {
            let dropped = wanted.iter().filter(|at| at.is_none()).count();
            checks.push(Check::alike(format!("{name}: dropped"), dropped, unlike));
        }
        checks
    })
}

fn lossy(loss: Loss, judge: impl Fn(&[u64]) -> Vec<Check> + 'static) -> Row {
    let direction = DirectionConfig { loss, ..Default::default() };
    Row::new(direction, bunches(DRAWN, 1_000_000), move |_, carried| judge(&missing(carried)))
}

fn periodic() -> Row {
    lossy(Loss::Periodic(100), |lost| {
        let wanted: Vec<u64> = (1..=DRAWN as u64 / 100).map(|i| 100 * i - 1).collect();
        vec![Check::alike("loss of each 100th: lost", lost.len(), usize::from(lost != wanted))]
    })
}

fn list() -> Row {
    let wanted = vec![0, 1, 2, 500, 5_000, 9_999];
    lossy(Loss::List(wanted.clone()), move |lost| {
        vec![Check::alike("loss of a list: lost", lost.len(), usize::from(lost != wanted))]
    })
}

fn independent(p: f64) -> Row {
    lossy(Loss::Independent(probability(p)), move |lost| {
        let name = format!("independent loss of {}", probability(p));
        vec![
            share(format!("{name}: lost"), lost.len() as u64, DRAWN as u64, p),
            run_lengths(format!("{name}: run lengths"), &runs(lost), 1.0 / (1.0 - p)),
        ]
    })
}

fn gilbert_elliott() -> Row {
    let (to_bad, to_good) = (0.01, 0.25);
    let loss = Loss::GilbertElliott {
        to_bad: probability(to_bad),
        to_good: probability(to_good),
        loss_good: probability(0.0),
        loss_bad: probability(1.0),
    };
    let (expected, deviation) = (loss.expected(DRAWN as u64), loss.deviation(DRAWN as u64));
    lossy(loss, move |lost| {
        let z = (lost.len() as f64 - expected) / deviation;
        vec![
            Check::new(
                "loss of Gilbert-Elliott: lost",
                format!("{} of {DRAWN}", lost.len()),
                format!("{expected:.0} +- {:.0}", Z * deviation),
                z.abs() <= Z,
            ),
            run_lengths("loss of Gilbert-Elliott: run lengths", &runs(lost), 1.0 / to_good),
        ]
    })
}

fn share(what: impl Into<String>, k: u64, n: u64, p: f64) -> Check {
    let deviation = (n as f64 * p * (1.0 - p)).sqrt();
    Check::new(
        what,
        format!("{k} of {n}"),
        format!("{:.0} +- {:.0}", n as f64 * p, Z * deviation),
        z_of_share(k, n, p).abs() <= Z,
    )
}

fn run_lengths(what: impl Into<String>, runs: &[u64], mean: f64) -> Check {
    let measured = runs.iter().sum::<u64>() as f64 / runs.len().max(1) as f64;
    let allowed = Z * (mean * (mean - 1.0) / runs.len().max(1) as f64).sqrt();
    Check::new(
        what,
        format!("{measured:.3} on average"),
        format!("{mean:.3} +- {allowed:.3}"),
        z_of_runs(runs, mean).abs() <= Z,
    )
}

fn jitter(reorder: bool) -> Row {
    let (delay, spread) = (10_000_000, 2_000_000);
    let distribution = JitterDistribution::Uniform { spread: Nanos(spread) };
    let jitter = Some(Jitter { distribution, reorder, correlation_time: None });
    let direction = DirectionConfig { delay: Nanos(delay), jitter, ..Default::default() };
    // In-order frames must not wait for one another, or the delay would not be the drawn one.
    let gap = if reorder { 100_000 } else { 8_000_000 };
    let frames = if reorder {
        scattered(3_000, gap, ANY, 3)
    } else {
        (1..=3_000).map(|i| Frame { at_ns: i * gap, ip_bytes: LONGEST, ..Frame::default() }).collect()
    };
    Row::new(direction, frames, move |_, carried| {
        let name = if reorder { "jitter of +-2 ms" } else { "jitter of +-2 ms in order" };
        let took = transits(carried);
        let beyond = took
            .iter()
            .map(|took| took.saturating_sub(delay + spread).max((delay - spread).saturating_sub(*took)))
            .max();
        let (off, bound) = from_even(&took, delay - spread, delay + spread);
        let mut checks = vec![
            Check::off(format!("{name}: beyond its range"), beyond, CLOCK_STEPS_NS),
            Check::new(
                format!("{name}: distance from even"),
                format!("{off:.4}"),
                format!("<= {bound:.4}"),
                off <= bound,
            ),
        ];
        let overtaken = overtaken(carried);
        if reorder {
            checks.push(Check::new(
                format!("{name}: overtaken"),
                overtaken.to_string(),
                "> 0",
                overtaken > 0,
            ));
        } else {
            checks.push(Check::new(format!("{name}: overtaken"), overtaken.to_string(), "0", overtaken == 0));
        }
        checks
    })
}

fn reordering() -> Row {
    let (p, delay, by) = (0.05, 10_000_000, 3_000_000);
    let reorder = Some(Reorder { probability: probability(p), by: Nanos(by) });
    let direction = DirectionConfig { delay: Nanos(delay), reorder, ..Default::default() };
    Row::new(direction, scattered(4_000, 100_000, ANY, 4), move |_, carried| {
        let took = transits(carried);
        let held = took.iter().filter(|&&took| took > delay + by / 2).count() as u64;
        let off = took.iter().map(|took| took.abs_diff(delay).min(took.abs_diff(delay + by))).max();
        vec![
            share("reordering of 5%: held back", held, took.len() as u64, p),
            Check::off("reordering of 5%: by 0 or 3 ms", off, CLOCK_STEPS_NS),
        ]
    })
}

fn duplication() -> Row {
    let (p, delay) = (0.02, 5_000_000);
    let direction = DirectionConfig { delay: Nanos(delay), duplicate: probability(p), ..Default::default() };
    Row::new(direction, scattered(4_000, 100_000, ANY, 5), move |_, carried| {
        let copies = carried.came.len().saturating_sub(carried.sent_ns.len()) as u64;
        let off = carried
            .came
            .iter()
            .filter_map(|&(number, at)| {
                Some(at.saturating_sub(*carried.sent_ns.get(number as usize)?).abs_diff(delay))
            })
            .max();
        vec![
            share("duplication of 2%: copies", copies, carried.sent_ns.len() as u64, p),
            Check::off("duplication of 2%: originals and copies", off, CLOCK_STEPS_NS),
        ]
    })
}
