//! Compares the emulator's AQM queues with the kernel's, frame by frame, for the same arrivals.
//!
//! The kernel's queue stands before a token bucket that holds one full frame. While frames wait, that bucket is empty
//! whenever it sends, so it takes its next frame out of the queue at the same moment as the emulator's wire. After an
//! idle period the bucket is full, which a wire's is not: an extra frame before the train's, which is not counted,
//! empties the bucket.
//!
//! A guest's timers are a microsecond apart, and a moment that is off by less may fall on the other side of a
//! threshold. Frame lengths are therefore chosen so that the wire is free every 8 us, and frames arrive 4 us off
//! that.

use bdp_lab::frame_train::{CarriedTrain, Carrier, Frame, FrameTrain, KernelQueue};
use bdp_lab::kernel::{self, Kernel};
use bdp_lab::{LabError, Program};
use bdp_model::link::queue::{QueueParameter, QueueValue};
use bdp_model::link::{DirectionConfig, LinkConfig, QueueLimit};
use bdp_model::units::{ByteCount, Nanos};
use serde::Serialize;

use super::check::CLOCK_STEPS_NS;
use super::frames::{LONGEST, first, transits};
use super::statistics::Z;
use super::trains::{self, OVERHEAD, PAUSE_NS, Pair};
use crate::{Result, RunError, guest};

const SEED: u64 = 20_260_101;
/// A kernel timer that counts in jiffies fires one later than requested.
const JIFFY: Nanos = Nanos::millis(4);
/// The flow of primers.
const PRIMER_FLOW: u16 = 40_000;
/// Share by which two mean delays may differ if drawn.
const DELAYS_WITHIN: f64 = 0.05;

/// One train through one queue, in the emulator and in the kernel.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct QueueRow {
    /// The kind of queue.
    pub queue: String,
    /// The queue's options and the train.
    pub train: String,
    /// The kernel's version, or why there was none.
    pub kernel: String,
    /// Frames offered.
    pub frames: usize,
    /// Frames dropped by the emulator.
    pub dropped: usize,
    /// Frames dropped by the kernel.
    pub kernel_dropped: usize,
    /// Frames marked by the emulator.
    pub marked: usize,
    /// Frames marked by the kernel.
    pub kernel_marked: usize,
    /// Whether the queue draws random numbers, so that shares are compared instead of frames.
    pub drawn: bool,
    /// Frames that one of them dropped or marked and the other did not.
    pub unlike: usize,
    /// Largest difference between departures of the same frame.
    pub apart_ns: u64,
    /// Largest difference allowed.
    pub bound_ns: u64,
    /// Mean time from arrival to departure in the emulator.
    pub delay_ns: u64,
    /// Mean time from arrival to departure in the kernel.
    pub kernel_delay_ns: u64,
    /// Mean difference of the numbers dropped and marked per second, in standard deviations of that mean.
    pub sigma: f64,
    /// Whether both agree: exactly, or, if drawn, within what equal probabilities allow.
    pub agrees: bool,
}

/// Carries each train through both, in two parallel guests, and compares the results; for all queues or one kind.
pub fn beside_kernel_queues(keeper: &Program, kind: Option<&str>) -> Result<(Kernel, Vec<QueueRow>)> {
    let (later, pairs): (Vec<Pair>, Vec<Pair>) = trains::pairs()
        .into_iter()
        .filter(|pair| kind.is_none_or(|kind| pair.queue.name() == kind))
        .partition(|pair| pair.queue.kind().since.is_some());
    let failed = |e: kernel::KernelError| RunError::Lab(LabError::Guest(e.to_string()));
    let kernel = kernel::default().map_err(failed)?;
    let mut rows = if pairs.is_empty() { Vec::new() } else { carry_both(&kernel, keeper, &pairs)? };
    let since = later.iter().find_map(|pair| pair.queue.kind().since);
    match since.map(kernel::find) {
        None => {}
        Some(Ok(newer)) => rows.extend(carry_both(&newer, keeper, &later)?),
        Some(Err(_)) => rows.extend(later.iter().map(Pair::skipped)),
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
            limit: match self.queue.kind().takes_bytes() {
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
        let mut queue = self.queue;
        if queue.kind().in_jiffies
            && let Some(QueueParameter { value: QueueValue::Time(period, _), .. }) =
                queue.parameter("tupdate")
        {
            *period = period.saturating_sub(JIFFY);
        }
        let by = Carrier::Queue(KernelQueue {
            queue,
            limit_packets: self.limit,
            rate: self.rate,
            overhead_bytes: OVERHEAD,
        });
        let frames = self.with_primers().into_iter().map(|(frame, _)| frame).collect();
        FrameTrain { by, seed: SEED, frames }
    }

    /// Returns the frames, each with its number, and before those that find the wire idle one without a number.
    fn with_primers(&self) -> Vec<(Frame, Option<u32>)> {
        let mut all = Vec::new();
        let mut before: Option<u64> = None;
        for (frame, number) in self.frames.iter().zip(0u32..) {
            if !self.queue.kind().shapes && before.is_none_or(|before| frame.at_ns - before > PAUSE_NS) {
                all.push((Frame { at_ns: frame.at_ns, ip_bytes: LONGEST, flow: PRIMER_FLOW, ecn: 0 }, None));
            }
            before = Some(frame.at_ns);
            all.push((*frame, Some(number)));
        }
        all
    }

    /// Returns the results of the train's own frames.
    fn without_primers(&self, carried: &CarriedTrain) -> CarriedTrain {
        let numbers: Vec<Option<u32>> = self.with_primers().into_iter().map(|(_, number)| number).collect();
        let of = |number: u32| numbers.get(number as usize).copied().flatten();
        CarriedTrain {
            sent_ns: numbers.iter().zip(&carried.sent_ns).filter_map(|(n, &at)| n.map(|_| at)).collect(),
            came: carried.came.iter().filter_map(|&(n, at)| Some((of(n)?, at))).collect(),
            marked: carried.marked.iter().filter_map(|&n| of(n)).collect(),
        }
    }

    fn draws(&self) -> bool {
        // CAKE adds a random byte to a flow's share of a turn now and then, so that its flows change places.
        let flows = self.frames.iter().any(|frame| frame.flow != 0);
        let kind = self.queue.kind();
        kind.draws || (kind.shapes && flows)
    }

    fn skipped(&self) -> QueueRow {
        QueueRow {
            queue: self.queue.name().to_owned(),
            train: self.name.clone(),
            kernel: format!(
                "SKIPPED: no {}; make kernel builds it",
                self.queue.kind().since.unwrap_or_default()
            ),
            agrees: true,
            ..QueueRow::default()
        }
    }

    /// Adds a frame's serialisation time if the kernel's queue releases it when its serialisation begins, and not when it ends.
    fn at_the_end(&self, carried: &mut CarriedTrain) {
        if self.queue.kind().shapes {
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
