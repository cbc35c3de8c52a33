//! The same arrivals through the emulator's queues that manage themselves and through the kernel's, compared frame by frame.
//!
//! The kernel's queue stands before a token bucket that holds one full frame. While frames wait, that bucket is empty whenever it
//! sends, so it takes its next frame out of the queue at the very moment at which the emulator's wire does. Where it was idle the bucket is full, which
//! a wire's is not: there a frame of its own goes before the train's, which empties the bucket and is not counted.
//!
//! A guest's timers are a microsecond apart, and a moment that is off by less may decide on the other side of a threshold. So lengths are such that the
//! wire is free every 8 us, and frames come 4 us beside that.

use bdp_lab::frame_train::{CarriedTrain, Carrier, Frame, FrameTrain, KernelQueue};
use bdp_lab::kernel::{self, Kernel};
use bdp_lab::{LabError, Program};
use bdp_model::link::{DirectionConfig, LinkConfig, QueueLimit};
use bdp_model::queue::{Cake, Codel, DualPi2, FqCodel, Isolation, Pie, Queue, Red, Tins};
use bdp_model::units::{ByteCount, Nanos, Rate};
use serde::Serialize;

use super::check::CLOCK_STEPS_NS;
use super::frames::{Draws, LONGEST, first, transits};
use super::statistics::Z;
use crate::{Result, RunError, guest};

const SEED: u64 = 20_260_101;
const OVERHEAD: u32 = 38;
/// The first kernel with DualPI2.
const HAS_DUALPI2: &str = "linux-7.2";
/// Of two mean delays of what is drawn.
const DELAYS_WITHIN: f64 = 0.05;

/// One train through one queue, here and in the kernel.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct QueueRow {
    /// Kind of queue.
    pub queue: String,
    /// Its options and its train.
    pub train: String,
    /// The kernel, or why there was none.
    pub kernel: String,
    /// Frames offered.
    pub frames: usize,
    /// Frames dropped by the emulator.
    pub dropped: usize,
    /// The same by the kernel.
    pub kernel_dropped: usize,
    /// Frames marked by the emulator.
    pub marked: usize,
    /// The same by the kernel.
    pub kernel_marked: usize,
    /// Whether the queue draws random numbers, so that shares are compared and not frames.
    pub drawn: bool,
    /// Frames that one dropped or marked and the other did not.
    pub unlike: usize,
    /// How far departures of the same frame are apart at most.
    pub apart_ns: u64,
    /// What they may be apart.
    pub bound_ns: u64,
    /// Mean time from arrival to departure, by the emulator.
    pub delay_ns: u64,
    /// The same by the kernel.
    pub kernel_delay_ns: u64,
    /// How far the numbers dropped and marked in a second are apart on average, in standard deviations of that average.
    pub sigma: f64,
    /// Whether all is the same, or of what is drawn whether it may come of the same probabilities.
    pub agrees: bool,
}

/// A queue and what it is offered.
struct Pair {
    queue: Queue,
    limit: u32,
    rate: Rate,
    name: String,
    frames: Vec<Frame>,
}

/// Carries each train by both, in two guests side by side, and compares what came out; of all queues, or of one kind.
pub fn beside_kernel_queues(keeper: &Program, kind: Option<&str>) -> Result<(Kernel, Vec<QueueRow>)> {
    let (later, pairs): (Vec<Pair>, Vec<Pair>) = pairs()
        .into_iter()
        .filter(|pair| kind.is_none_or(|kind| pair.queue.name() == kind))
        .partition(|pair| matches!(pair.queue, Queue::DualPi2(_)));
    let failed = |e: kernel::KernelError| RunError::Lab(LabError::Guest(e.to_string()));
    let kernel = kernel::default().map_err(failed)?;
    let mut rows = if pairs.is_empty() { Vec::new() } else { carry_both(&kernel, keeper, &pairs)? };
    match kernel::find(HAS_DUALPI2) {
        _ if later.is_empty() => {}
        Ok(newer) => rows.extend(carry_both(&newer, keeper, &later)?),
        Err(_) => rows.extend(later.iter().map(Pair::skipped)),
    }
    Ok((kernel, rows))
}

fn carry_both(kernel: &Kernel, keeper: &Program, pairs: &[Pair]) -> Result<Vec<QueueRow>> {
    let ours = pairs.iter().map(Pair::ours).collect();
    let theirs = pairs.iter().map(Pair::theirs).collect();
    let [ours, theirs] = guest::carry_by(kernel, keeper, SEED, [ours, theirs])?;
    let compared = pairs.iter().zip(ours.iter().zip(&theirs));
    Ok(compared.map(|(pair, (ours, theirs))| pair.compare(ours, theirs, &kernel.name)).collect())
}

impl Pair {
    fn ours(&self) -> FrameTrain {
        let forward = DirectionConfig {
            rate: Some(self.rate),
            overhead_bytes: OVERHEAD,
            limit: match self.queue.takes_bytes() {
                true => QueueLimit::Bytes(ByteCount::bytes(u64::from(self.limit))),
                false => QueueLimit::Packets(u64::from(self.limit)),
            },
            queue: Some(self.queue),
            ..Default::default()
        };
        let link = LinkConfig { forward, ..Default::default() };
        FrameTrain { by: Carrier::Link(Box::new(link)), seed: SEED, frames: self.frames.clone() }
    }

    fn theirs(&self) -> FrameTrain {
        let by = Carrier::Queue(KernelQueue {
            queue: match self.queue {
                Queue::Pie(pie) => Queue::Pie(Pie { tupdate: pie.tupdate.saturating_sub(JIFFY), ..pie }),
                queue => queue,
            },
            limit_packets: self.limit,
            rate: self.rate,
            overhead_bytes: OVERHEAD,
        });
        let frames = self.with_primers().into_iter().map(|(frame, _)| frame).collect();
        FrameTrain { by, seed: SEED, frames }
    }

    /// The frames, each with its number, and before those that find the wire idle one without.
    fn with_primers(&self) -> Vec<(Frame, Option<u32>)> {
        let mut all = Vec::new();
        let mut before: Option<u64> = None;
        for (frame, number) in self.frames.iter().zip(0u32..) {
            if !self.shapes() && before.is_none_or(|before| frame.at_ns - before > PAUSE_NS) {
                all.push((Frame { at_ns: frame.at_ns, ip_bytes: LONGEST, flow: PRIMER_FLOW, ecn: 0 }, None));
            }
            before = Some(frame.at_ns);
            all.push((*frame, Some(number)));
        }
        all
    }

    /// What came of the train's own frames.
    fn without_primers(&self, carried: &CarriedTrain) -> CarriedTrain {
        let numbers: Vec<Option<u32>> = self.with_primers().into_iter().map(|(_, number)| number).collect();
        let of = |number: u32| numbers.get(number as usize).copied().flatten();
        CarriedTrain {
            sent_ns: numbers.iter().zip(&carried.sent_ns).filter_map(|(n, &at)| n.map(|_| at)).collect(),
            came: carried.came.iter().filter_map(|&(n, at)| Some((of(n)?, at))).collect(),
            marked: carried.marked.iter().filter_map(|&n| of(n)).collect(),
        }
    }

    /// Whether the kernel's queue keeps to the rate by itself: it lets a frame go when its serialisation begins, and not when it ends.
    fn shapes(&self) -> bool {
        matches!(self.queue, Queue::Cake(_))
    }

    fn draws(&self) -> bool {
        // CAKE adds a random byte to a flow's share of a turn now and then, so that its flows change places.
        let flows = self.frames.iter().any(|frame| frame.flow != 0);
        matches!(self.queue, Queue::Pie(_) | Queue::Red(_) | Queue::DualPi2(_))
            || (matches!(self.queue, Queue::Cake(_)) && flows)
    }

    fn skipped(&self) -> QueueRow {
        QueueRow {
            queue: self.queue.name().to_owned(),
            train: self.name.clone(),
            kernel: format!("SKIPPED: no {HAS_DUALPI2}; make kernel builds it"),
            agrees: true,
            ..QueueRow::default()
        }
    }

    /// What came, a frame's serialisation after the kernel's queue let it go where that is what it does.
    fn at_the_end(&self, carried: &mut CarriedTrain) {
        if self.shapes() {
            for (number, at) in &mut carried.came {
                let bits = u64::from(self.frames[*number as usize].ip_bytes + OVERHEAD) * 8;
                *at += bits * 1_000_000_000 / self.rate.as_bps();
            }
        }
    }

    fn compare(&self, ours: &CarriedTrain, theirs: &CarriedTrain, kernel: &str) -> QueueRow {
        let mut theirs = self.without_primers(theirs);
        self.at_the_end(&mut theirs);
        let came = [first(ours), first(&theirs)];
        let marks = [ours, &theirs].map(|carried| {
            let mut marked = vec![false; self.frames.len()];
            for &number in &carried.marked {
                marked[number as usize] = self.frames[number as usize].ecn != 3;
            }
            marked
        });
        let dropped = came.each_ref().map(|came| came.iter().filter(|at| at.is_none()).count());
        let marked = marks.each_ref().map(|marks| marks.iter().filter(|marked| **marked).count());
        let unlike = (0..self.frames.len())
            .filter(|&i| came[0][i].is_some() != came[1][i].is_some() || marks[0][i] != marks[1][i])
            .count();
        let both = came[0].iter().zip(&came[1]).filter_map(|(a, b)| Some((*a)?.abs_diff((*b)?)));
        let apart_ns = both.max().unwrap_or(u64::MAX);
        let bound_ns = CLOCK_STEPS_NS + self.frames.len() as u64;
        let [delay_ns, kernel_delay_ns] = [ours, &theirs].map(|carried| {
            let all = transits(carried);
            all.iter().sum::<u64>() / all.len().max(1) as u64
        });
        let sigma = self
            .sigma(|i| [0, 1].map(|side| came[side][i].is_none()))
            .max(self.sigma(|i| [0, 1].map(|side| marks[side][i])));
        let delays = (delay_ns as f64 / kernel_delay_ns.max(1) as f64 - 1.0).abs();
        let drawn = self.draws();
        let agrees = match drawn {
            true => sigma <= Z && delays <= DELAYS_WITHIN,
            false => unlike == 0 && apart_ns <= bound_ns,
        };
        QueueRow {
            queue: self.queue.name().to_owned(),
            train: self.name.clone(),
            kernel: kernel.to_owned(),
            drawn,
            delay_ns,
            kernel_delay_ns,
            sigma,
            frames: self.frames.len(),
            dropped: dropped[0],
            kernel_dropped: dropped[1],
            marked: marked[0],
            kernel_marked: marked[1],
            unlike,
            apart_ns,
            bound_ns,
            agrees,
        }
    }

    /// How far the numbers of frames signalled to in a second are apart on average, in standard deviations of that average: a controller's
    /// signals hang together for less than a second.
    fn sigma(&self, signalled: impl Fn(usize) -> [bool; 2]) -> f64 {
        let mut apart: Vec<f64> = Vec::new();
        let mut second = None;
        for (i, frame) in self.frames.iter().enumerate() {
            let at = Some(frame.at_ns / 1_000_000_000);
            if second != at {
                second = at;
                apart.push(0.0);
            }
            let [ours, theirs] = signalled(i).map(|signalled| f64::from(u8::from(signalled)));
            if let Some(apart) = apart.last_mut() {
                *apart += ours - theirs;
            }
        }
        let n = apart.len() as f64;
        let mean = apart.iter().sum::<f64>() / n.max(1.0);
        let squares: f64 = apart.iter().map(|a| (a - mean).powi(2)).sum();
        if mean == 0.0 { 0.0 } else { mean.abs() / (squares / (n * (n - 1.0).max(1.0))).sqrt() }
    }
}

/// With nothing offered for so long, a wire is idle: longer than any queue here lasts.
const PAUSE_NS: u64 = 2_000_000_000;
/// Frames that come at once where the wire was idle, so that it is not idle again between the next ones.
const HEAD_START: usize = 40;

/// The wire is free at a whole number of these.
const GRID_NS: u64 = 8_000;
/// A timer of the kernel's that counts in jiffies comes one later than asked for, and PIE's does.
const JIFFY: Nanos = Nanos::millis(4);
/// The flow of primers.
const PRIMER_FLOW: u16 = 40_000;

/// How frames come.
struct Train {
    rate_bps: u64,
    /// Of the rate.
    percent: u64,
    time_ns: u64,
    lengths: std::ops::RangeInclusive<u64>,
    flows: u64,
    /// The field of each flow in turn.
    ecn: &'static [u8],
    /// On for so long, then off for [`PAUSE_NS`] and more.
    on_ns: Option<u64>,
}

impl Train {
    /// The next shorter length of which the wire sends a frame in a whole number of [`GRID_NS`].
    fn on_grid(&self, ip_bytes: u64) -> u32 {
        let step = self.rate_bps * GRID_NS / 8_000_000_000;
        let wire = (ip_bytes + u64::from(OVERHEAD)) / step * step;
        (wire - u64::from(OVERHEAD)) as u32
    }

    fn frames(&self, seed: u64) -> Vec<Frame> {
        let mut draws = Draws(seed);
        let mean = (self.lengths.start() + self.lengths.end()) / 2 + u64::from(OVERHEAD);
        let gap = mean * 8 * 1_000_000_000 / self.rate_bps * 100 / self.percent;
        let mut frames = Vec::new();
        let (mut at_ns, mut on) = (0, 0);
        while on < self.time_ns {
            let step = draws.within(1..=2 * gap);
            let pause = self.on_ns.filter(|on_ns| on / on_ns != (on + step) / on_ns);
            on += step;
            at_ns += step + pause.map_or(0, |_| PAUSE_NS + PAUSE_NS / 2);
            let starts = pause.is_some() || frames.is_empty();
            let count = if starts { HEAD_START } else { 1 };
            let at_ns = at_ns / GRID_NS * GRID_NS + if starts { 0 } else { GRID_NS / 2 };
            for _ in 0..count {
                let flow = draws.within(0..=self.flows - 1);
                frames.push(Frame {
                    at_ns,
                    ip_bytes: self.on_grid(draws.within(self.lengths.clone())),
                    flow: flow as u16,
                    ecn: self.ecn[flow as usize % self.ecn.len()],
                });
            }
        }
        frames
    }
}

fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    let full = || u64::from(LONGEST)..=u64::from(LONGEST);
    let any = || 100..=u64::from(LONGEST);
    let train = |rate_bps, percent, seconds: u64, lengths, flows, ecn, on_ns| Train {
        rate_bps,
        percent,
        time_ns: seconds * 1_000_000_000,
        lengths,
        flows,
        ecn,
        on_ns,
    };
    let codel = Codel::default();
    let marking = Codel { ecn: true, ..codel };
    let stepped = Codel { ce_threshold: Some(Nanos::millis(1)), ..marking };
    let mut add = |queue: Queue, limit: u32, name: &str, train: Train| {
        pairs.push(Pair {
            queue,
            limit,
            rate: Rate::bps(train.rate_bps),
            name: name.to_owned(),
            frames: train.frames(pairs.len() as u64 + 1),
        });
    };
    for flows in [false, true] {
        let queue = |codel: Codel| match flows {
            false => Queue::Codel(codel),
            true => Queue::FqCodel(FqCodel { codel, quantum_bytes: 1500, ..FqCodel::default() }),
        };
        add(
            queue(codel),
            1000,
            "10M, 120 %, 1500 bytes, 10 s",
            train(10_000_000, 120, 10, full(), 1, &[0], None),
        );
        add(
            queue(codel),
            1000,
            "10M, 120 %, any length, 10 s",
            train(10_000_000, 120, 10, any(), 1, &[0], None),
        );
        add(
            queue(codel),
            1000,
            "100M, 150 %, any length, 3 s",
            train(100_000_000, 150, 3, any(), 1, &[0], None),
        );
        add(queue(codel), 50, "10M, 200 %, limit 50", train(10_000_000, 200, 5, any(), 1, &[0], None));
        add(
            queue(codel),
            1000,
            "10M, 150 %, on 500 ms",
            train(10_000_000, 150, 5, any(), 1, &[0], Some(500_000_000)),
        );
        add(
            queue(marking),
            1000,
            "10M, 120 %, ECN, half ECT",
            train(10_000_000, 120, 10, any(), 2, &[2, 0], None),
        );
        add(
            queue(stepped),
            1000,
            "10M, 120 %, ce_threshold 1 ms, ECT(1)",
            train(10_000_000, 120, 5, any(), 2, &[1, 0], None),
        );
        add(queue(codel), 1000, "10M, 130 %, 5 flows", train(10_000_000, 130, 10, any(), 5, &[0], None));
    }
    for (diffserv, name) in [(Tins::Besteffort, "besteffort"), (Tins::Diffserv4, "diffserv4")] {
        let queue = |isolation| Queue::Cake(Cake { diffserv, isolation, rtt: Nanos::millis(100) });
        let flows = || queue(Isolation::Flows);
        let of = |text: &str| format!("{name}, {text}");
        add(
            flows(),
            1 << 28,
            &of("10M, 120 %, any length, 10 s"),
            train(10_000_000, 120, 10, any(), 1, &[0], None),
        );
        add(
            flows(),
            1 << 28,
            &of("100M, 150 %, any length, 3 s"),
            train(100_000_000, 150, 3, any(), 1, &[0], None),
        );
        add(
            flows(),
            1 << 28,
            &of("10M, 150 %, on 500 ms"),
            train(10_000_000, 150, 5, any(), 1, &[0], Some(500_000_000)),
        );
        add(
            flows(),
            1 << 28,
            &of("10M, 120 %, half ECT"),
            train(10_000_000, 120, 10, any(), 2, &[2, 0], None),
        );
        add(
            flows(),
            1 << 28,
            &of("10M, 130 %, 5 flows"),
            train(10_000_000, 130, 10, any(), 5, &[0, 46 << 2, 8 << 2, 34 << 2, 0], None),
        );
        add(
            queue(Isolation::TripleIsolate),
            1 << 28,
            &of("triple-isolate, 10M, 130 %, 5 flows"),
            train(10_000_000, 130, 10, any(), 5, &[0], None),
        );
    }
    let pie = Pie { tupdate: Nanos::millis(20), ..Pie::default() };
    let red = Red { burst: 50, ..Red::default() };
    let dual = DualPi2::default();
    for (plain, marking, limit) in [
        (Queue::Pie(pie), Queue::Pie(Pie { ecn: true, ..pie }), 1000),
        (Queue::Red(red), Queue::Red(Red { ecn: true, ..red }), 400_000),
        (Queue::DualPi2(dual), Queue::DualPi2(dual), 1000),
    ] {
        add(plain, limit, "10M, 103 %, 1500 bytes, 20 s", train(10_000_000, 103, 20, full(), 1, &[0], None));
        add(plain, limit, "10M, 120 %, any length, 20 s", train(10_000_000, 120, 20, any(), 1, &[0], None));
        add(plain, limit, "100M, 150 %, any length, 5 s", train(100_000_000, 150, 5, any(), 1, &[0], None));
        add(
            plain,
            limit,
            "10M, 150 %, on 500 ms",
            train(10_000_000, 150, 10, any(), 1, &[0], Some(500_000_000)),
        );
        add(
            marking,
            limit,
            "10M, 105 %, ECN, half ECT(0)",
            train(10_000_000, 105, 20, any(), 2, &[2, 0], None),
        );
        add(
            marking,
            limit,
            "10M, 105 %, ECN, half ECT(1)",
            train(10_000_000, 105, 20, any(), 2, &[1, 0], None),
        );
    }
    pairs
}
