//! Ways to give bytes to the kernel, and which is the fastest on this host: tried at the start of a flow.
//!
//! Which way is the fastest differs between machines, kernels and congestion controls by more than half, and no rule
//! predicts it. Each is therefore given a few slices of the flow, in turn, so that a neighbour that uses the
//! processor for a while affects all of them.

use bdp_model::flow::method::{SendMethod, TriedWay};
use bdp_sys::payload::Method;

/// Default bytes per call: what stays in the processor's cache until the receiver has taken them.
const AT_ONCE: usize = 1 << 20;
/// Bytes per call through a pipe: its capacity.
const THROUGH_A_PIPE: usize = 256 << 10;
/// Bytes that the kernel makes one buffer of, at most: 64 KiB less its room for headers (`sk_gso_max_size`).
const OF_ONE_BUFFER: u64 = 65_215;
/// Streams of one sender up to which a pipe for each pays.
const MOST_PIPES: usize = 64;
/// Writes of the asked length to one stream before the others have their turn.
const TURN: u32 = 16;

/// The beginning of a flow, in which its rate grows.
const WARM_UP_NS: u64 = 20_000_000;
/// Duration of one way's turn in the trial, and the number of turns of each.
const SLICE_NS: u64 = 8_000_000;
const ROUNDS: usize = 3;
/// Bytes per slice below which the path is the limit, not the way: 4 Gbit/s.
const LEAST_BYTES: u64 = 4 << 20;
/// Ways whose rates differ by less are equal, and the processor time of a byte decides.
const EQUAL: f64 = 0.97;

/// A way to give bytes to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendStrategy {
    /// The system call.
    pub method: Method,
    /// Most bytes per call.
    most: usize,
    /// Whether the bytes are rounded to whole segments.
    gathers: bool,
    /// Calls for one stream before the others have their turn.
    pub turn: u32,
}

impl SendStrategy {
    /// Returns the bytes of one call, with segments of this size.
    pub fn at_once(&self, mss: u64) -> usize {
        if self.gathers { whole_segments(mss, self.most) } else { self.most }
    }
}

/// Returns the choices, the default way first. Writes of `length` are combined into larger ones if allowed.
pub fn candidates(methods: &[Method], length: usize, gathers: bool, streams: usize) -> Vec<SendStrategy> {
    let one_write = |method| SendStrategy { method, most: length, gathers: false, turn: TURN };
    if !gathers {
        return methods.iter().map(|&method| one_write(method)).collect();
    }
    let mut ways = Vec::new();
    for &method in methods {
        match method {
            Method::Write => ways.push(SendStrategy { method, most: AT_ONCE, gathers, turn: 1 }),
            Method::Splice if streams > MOST_PIPES && methods.len() > 1 => {}
            Method::Splice => ways.push(SendStrategy { method, most: THROUGH_A_PIPE, gathers, turn: 2 }),
            Method::Sendfile | Method::ZeroCopy => ways.push(one_write(method)),
        }
    }
    if methods.len() > 1 && methods.contains(&Method::Write) {
        ways.push(one_write(Method::Write));
    }
    ways
}

/// As many bytes as fill the buffers that the kernel makes of them, up to `most`: 131,072 bytes over loopback are two segments and one
/// of 106 bytes, which costs as much as they.
fn whole_segments(mss: u64, most: usize) -> usize {
    let buffer = (OF_ONE_BUFFER / mss.max(1)).max(1) * mss.max(1);
    usize::try_from((most as u64 / buffer).max(1) * buffer).map_or(most, |bytes| bytes.min(most))
}

/// Finds the fastest way, one reading at a time.
#[derive(Debug)]
pub struct Trial {
    ways: usize,
    began_ns: Option<u64>,
    slice: Option<Reading>,
    slices: Vec<Slice>,
}

/// Progress of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The time.
    pub at_ns: u64,
    /// Bytes that the kernel has accepted.
    pub bytes: u64,
    /// Processor time that the process has used.
    pub cpu_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Slice {
    bps: f64,
    cpu_ns_per_byte: f64,
}

/// The next step of a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Try this way now.
    Try(usize),
    /// Use this way. The rates are those of each way, bit/s; none if the path is the limit.
    Take(usize, Vec<f64>),
}

impl Trial {
    /// Creates a trial of this many ways.
    pub fn of(ways: usize) -> Self {
        Self { ways, began_ns: None, slice: None, slices: Vec::new() }
    }

    /// Returns the next step at this reading.
    pub fn step(&mut self, now: Reading) -> Step {
        let began_ns = *self.began_ns.get_or_insert(now.at_ns);
        if now.at_ns < began_ns + WARM_UP_NS {
            return Step::Try(0);
        }
        let from = *self.slice.get_or_insert(now);
        let passed_ns = now.at_ns - from.at_ns;
        if passed_ns >= SLICE_NS {
            let bytes = now.bytes - from.bytes;
            if bytes < LEAST_BYTES {
                return Step::Take(0, Vec::new());
            }
            self.slices.push(Slice {
                bps: bytes as f64 * 8e9 / passed_ns as f64,
                cpu_ns_per_byte: now.cpu_ns.saturating_sub(from.cpu_ns) as f64 / bytes as f64,
            });
            self.slice = Some(now);
        }
        match self.slices.len() < self.ways * ROUNDS {
            true => Step::Try(self.slices.len() % self.ways),
            false => self.outcome(),
        }
    }

    fn outcome(&self) -> Step {
        let median = |way: usize, of: fn(&Slice) -> f64| {
            let mut figures: Vec<f64> = self.slices.iter().skip(way).step_by(self.ways).map(of).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let rates: Vec<f64> = (0..self.ways).map(|way| median(way, |slice| slice.bps)).collect();
        let best = rates.iter().copied().fold(0.0, f64::max);
        let cost = |&way: &usize| median(way, |slice| slice.cpu_ns_per_byte);
        let taken = (0..self.ways)
            .filter(|&way| rates[way] >= best * EQUAL)
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .unwrap_or(0);
        Step::Take(taken, rates)
    }
}

/// Returns the tried ways as they are recorded.
pub fn tried(ways: &[SendStrategy], mss: u64, rates: &[f64]) -> Vec<TriedWay> {
    let of = |(way, &bps): (&SendStrategy, &f64)| TriedWay {
        method: recorded(way.method),
        write_bytes: way.at_once(mss) as u64,
        sent_bps: bps,
    };
    ways.iter().zip(rates).map(of).collect()
}

/// Returns the recorded form of a send method; zero-copy starts as not copied.
pub fn recorded(method: Method) -> SendMethod {
    match method {
        Method::Write => SendMethod::Write,
        Method::Sendfile => SendMethod::Sendfile,
        Method::Splice => SendMethod::Splice,
        Method::ZeroCopy => SendMethod::ZeroCopy { copied: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_at_once_fills_segments_and_buffers() {
        // Loopback, Ethernet with time stamps, jumbo frames; a path of small segments.
        assert_eq!(whole_segments(65_483, AT_ONCE), 16 * 65_483);
        assert_eq!(whole_segments(1448, AT_ONCE), 16 * 45 * 1448);
        assert_eq!(whole_segments(8948, AT_ONCE), 16 * 7 * 8948);
        assert_eq!(whole_segments(65_483, THROUGH_A_PIPE), 4 * 65_483);
        assert_eq!(whole_segments(536, AT_ONCE) % 536, 0);
        assert_eq!(whole_segments(0, AT_ONCE), (1 << 20) / 65_215 * 65_215);
        assert_eq!(whole_segments(1 << 30, AT_ONCE), 1 << 20);
    }

    #[test]
    fn what_is_asked_for_is_kept_to_and_many_streams_have_no_pipes() {
        let both = [Method::Write, Method::Splice];
        let ways = |methods: &[Method], gathers, streams| {
            let of = |way: &SendStrategy| (way.method, way.at_once(1448));
            candidates(methods, 100_000, gathers, streams).iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(ways(&[Method::Write], false, 1), [(Method::Write, 100_000)]);
        assert_eq!(ways(&both, false, 1), [(Method::Write, 100_000), (Method::Splice, 100_000)]);
        let (write, splice) = (whole_segments(1448, AT_ONCE), whole_segments(1448, THROUGH_A_PIPE));
        let all = [(Method::Write, write), (Method::Splice, splice), (Method::Write, 100_000)];
        assert_eq!(ways(&both, true, 64), all);
        assert_eq!(ways(&both, true, 65), [all[0], all[2]]);
        assert_eq!(ways(&[Method::Splice], true, 65), [all[1]]);
        assert_eq!(ways(&[Method::Sendfile], true, 1), [(Method::Sendfile, 100_000)]);
    }

    /// Runs a flow that moves this many bytes per millisecond with each way, at this processor time each.
    fn flow(ways: &[(u64, u64)]) -> (usize, Vec<f64>, u64) {
        let mut trial = Trial::of(ways.len());
        let mut now = Reading { at_ns: 7, bytes: 0, cpu_ns: 0 };
        loop {
            match trial.step(now) {
                Step::Take(way, rates) => break (way, rates, now.at_ns),
                Step::Try(way) => {
                    let (bytes, cpu_ns) = ways[way];
                    now.at_ns += 1_000_000;
                    now.bytes += bytes;
                    now.cpu_ns += cpu_ns;
                }
            }
        }
    }

    #[test]
    fn the_quickest_is_taken_and_of_equals_that_which_costs_less() {
        let (way, rates, took_ns) = flow(&[(8_000_000, 1_000_000), (9_000_000, 1_000_000), (4_000_000, 1)]);
        assert_eq!((way, rates), (1, vec![64e9, 72e9, 32e9]));
        assert!(took_ns < 100_000_000, "{took_ns}");
        // At the rate of a card, copies take more of the processor.
        assert_eq!(flow(&[(1_250_000, 150_000), (1_250_000, 90_000)]).0, 1);
        assert_eq!(flow(&[(1_250_000, 90_000), (1_240_000, 91_000)]).0, 0);
    }

    #[test]
    fn a_slow_path_keeps_the_usual_way_and_nothing_is_said_of_it() {
        let (way, rates, took_ns) = flow(&[(125_000, 1_000), (125_000, 1)]);
        assert_eq!((way, rates), (0, vec![]));
        assert!(took_ns < 40_000_000, "{took_ns}");
    }

    #[test]
    fn one_bad_slice_decides_nothing() {
        let mut trial = Trial::of(2);
        let mut now = Reading { at_ns: 0, bytes: 0, cpu_ns: 0 };
        let mut stalled = false;
        let taken = loop {
            match trial.step(now) {
                Step::Take(way, _) => break way,
                Step::Try(way) => {
                    // The quicker one, held up once for three times its slice.
                    let stalls = way == 1 && !stalled;
                    stalled |= stalls;
                    now.at_ns += if stalls { 24_000_000 } else { 1_000_000 };
                    now.bytes += if way == 1 { 10_000_000 } else { 8_000_000 };
                }
            }
        };
        assert_eq!(taken, 1);
    }
}
