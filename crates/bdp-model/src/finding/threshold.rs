//! Shared thresholds for judging a transfer: rules, caveats, curves and reports use the same.
//!
//! Thresholds of a single rule are defined with it; those of the emulator are in `bdp-lab`, those of the rate search in
//! [`crate::measurement::rate_search`].

use crate::units::Nanos;

/// From this share of the ceiling, a transfer is at the ceiling and nothing is left to tune. The rest is lost to slow start and to
/// acknowledgements of data in the other direction: one of 90 bytes on Ethernet for every two full segments of 1538 each, 3 %.
pub const AT_CEILING: f64 = 0.94;
/// Above this share of a ceiling the ceiling is not the path's: the headers are known to the byte, the clock to a sample.
pub const ABOVE_CEILING: f64 = 1.01;

/// From this share of a processor, a thread is CPU-bound: the rest is spent waiting in the kernel, for locks and for
/// its turn.
pub const BUSY_THREAD: f64 = 0.9;
/// Share of the time that a thread ran or was ready to run, from which it waits too little for the network to be limited by it.
pub const PROCESSOR_WANTED: f64 = 0.8;
/// Share of the time that a quota throttles a process, from which the quota explains why it waits for its processor.
pub const THROTTLED: f64 = 0.1;
/// Share of the processors taken by a hypervisor, from which this explains why a thread waits.
pub const STOLEN: f64 = 2.0 * STEAL_NOTED;
/// With a standing queue for this share of the time, the path is full even if a thread waits for its processor: it runs enough to keep the queue.
pub const FULL_BESIDE_PROCESSOR: f64 = 0.9;
/// Share of the time that a quota throttles a process, from which the quota explains its waiting if the kernel does not report how long threads wait.
pub const THROTTLED_ALONE: f64 = 0.3;
/// Shortest transfer that can be judged: the rate of a shorter one is that of a single read.
pub const LONG_ENOUGH: Nanos = Nanos::millis(100);

/// Fewest samples that can be used for shares of time.
pub const SAMPLES_MIN: usize = 5;

/// Delay that timers and schedulers of two idle hosts may add without a queue.
pub const QUEUE_NOISE: Nanos = Nanos::millis(2);
/// From this share of a probe's round trip spent in its two hosts, the round trip does not reflect the path.
pub const HOST_SHARE: f64 = 0.1;
/// Longest time that hosts usually add to a probe, timers and scheduling of idle machines included.
pub const HOST_NOISE: Nanos = Nanos::micros(500);
/// Share of the idle round trip added by a standing queue: less does not change what a window reaches.
pub const QUEUE_SHARE: f64 = 0.2;
/// Noticeable increase of the round trip's 95th percentile under load.
pub const NOTICEABLE_DELAY: Nanos = Nanos::millis(5);

/// Share of the samples with a full window, from which the window is the limit.
pub const WINDOW_FULL: f64 = 0.5;
/// Share of the samples with a full window, below which the window limits nothing.
pub const WINDOW_FREE: f64 = 0.2;
/// Share of the busy time, or of the samples, that is worth reporting; below it the kernel rules the limit out.
pub const WORTH_A_WORD: f64 = 0.05;
/// A receive window that is below half of its maximum in this share of the samples shrinks repeatedly.
pub const WINDOW_SHRUNK: f64 = 0.15;
/// Goodput / requested rate, from which the rate was kept: slow start takes its part.
pub const RATE_KEPT: f64 = 0.95;
/// Goodput / requested rate, above which the sender was not limited to that rate.
pub const RATE_EXCEEDED: f64 = 1.05;
/// Unread bytes / receive window, from which the reading program reduces the window,
pub const UNREAD: f64 = 0.5;
/// if at least this many bytes are unread.
pub const UNREAD_MIN_BYTES: u64 = 4096;
/// Payload in flight / send buffer, from which the buffer may be full: it counts the memory of whole packets.
pub const BUFFER_PAYLOAD: f64 = 0.35;
/// Goodput / window per round trip, from which the window explains the goodput.
pub const WINDOW_REACHED: f64 = 0.7;

/// Share of the requested rate, from which a sender reached it: the rest is the granularity of its calls.
pub const SENT_AS_ASKED: f64 = 0.98;

/// Loss from which, with a standing queue, the received rate is the capacity of the path.
pub const OVERLOAD_BESIDE_QUEUE: f64 = 0.02;
/// Loss from which the received rate is the capacity without such a queue: less may be a policer's, or independent of the rate.
pub const OVERLOAD: f64 = 0.05;

/// Share of processor time taken by a hypervisor, from which a measurement has a caveat.
pub const STEAL_NOTED: f64 = 0.05;
/// Share of processor time taken by a hypervisor, from which it is named as a cause of a broken bound of the emulator.
pub const STEAL_BLAMED: f64 = 0.02;

/// Share of a computed rate, from which the computation is confirmed.
pub const REACHED: f64 = 0.9;
/// Share of a computed rate, above which it was not a limit.
pub const EXCEEDED: f64 = 1.1;

/// Goodput / highest delivery rate of a round trip, from which a sender's rate is constant.
pub const AT_PEAK: f64 = 0.94;

/// Goodput / goodput of a loss model, up to which the two agree: models are means over many losses, and a run has few.
pub const MODEL_TOLERANCE: f64 = 1.5;

/// Longest pause of a program that a busy scheduler explains: beyond it, the host paused.
pub const HOST_PAUSE: Nanos = Nanos::millis(20);

/// Bytes missing from a capture / all bytes, from which only its pauses are known.
pub const CAPTURE_LACKS: f64 = 0.25;
