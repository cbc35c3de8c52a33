//! The bounds by which a transfer is judged, each in one place: rules, caveats, curves and reports use the same.
//!
//! What one rule alone asks stands beside it; what the emulator must keep to is in `bdp-lab`, how a rate is searched in
//! [`crate::rate_search`].

use crate::units::Nanos;

/// From this share of the ceiling on a transfer is at it, and nothing is left to tune. What is missing are slow start, and
/// acknowledgements of data the other way: one of 90 bytes on Ethernet for every two full segments of 1538 each, 3 %.
pub const AT_CEILING: f64 = 0.94;
/// Above this share of a ceiling the ceiling is not the path's: the headers are known to the byte, the clock to a sample.
pub const ABOVE_CEILING: f64 = 1.01;

/// A thread that uses this share of a processor has none left: the rest is what it waits for in the kernel, for locks and for
/// its turn.
pub const BUSY_THREAD: f64 = 0.9;
/// Share of the time in which a thread ran or was ready to, from which on it waits for the network too little to be held back by it.
pub const PROCESSOR_WANTED: f64 = 0.8;
/// Share of the time that a quota holds a process back, from which on that is why it waits for its processor.
pub const THROTTLED: f64 = 0.1;
/// Share of the processors that a hypervisor takes, from which on that is why a thread waits.
pub const STOLEN: f64 = 2.0 * STEAL_NOTED;
/// A queue that stands for this part of the time says that the path is full, though a thread waits for its processor: its turns are long enough to keep it standing.
pub const FULL_BESIDE_PROCESSOR: f64 = 0.9;
/// Share of the time that a quota holds a process back, from which on that is why it waits, where the kernel does not say how long threads wait.
pub const THROTTLED_ALONE: f64 = 0.3;
/// A shorter transfer has waited for nothing yet, and its rate is that of one read.
pub const LONG_ENOUGH: Nanos = Nanos::millis(100);

/// Fewer samples than these say nothing about shares of time.
pub const SAMPLES_MIN: usize = 5;

/// A delay that timers and schedulers of two idle hosts may add, and that is no queue.
pub const QUEUE_NOISE: Nanos = Nanos::millis(2);
/// From this share of a probe's round trip on that its two hosts took, it is not the path's.
pub const HOST_SHARE: f64 = 0.1;
/// What the hosts of a probe usually take at the most, timers and scheduling of idle machines included.
pub const HOST_NOISE: Nanos = Nanos::micros(500);
/// A standing queue adds this share of the idle round trip: less doesn't change what a window reaches.
pub const QUEUE_SHARE: f64 = 0.2;
/// A delay that load adds to the round trip at the 95th percentile and that one notices.
pub const NOTICEABLE_DELAY: Nanos = Nanos::millis(5);

/// A window that is full in this share of the samples is the limit itself.
pub const WINDOW_FULL: f64 = 0.5;
/// A window that is full in fewer of the samples holds nothing back.
pub const WINDOW_FREE: f64 = 0.2;
/// A share of the busy time, or of the samples, that is worth a word; below it the kernel denies the limit.
pub const WORTH_A_WORD: f64 = 0.05;
/// A receive window that is below half of its largest in this share of the samples shrinks again and again.
pub const WINDOW_SHRUNK: f64 = 0.15;
/// Goodput / rate that was asked for, over all: slow start takes its part.
pub const RATE_KEPT: f64 = 0.95;
/// What is above by more was not held to that rate.
pub const RATE_EXCEEDED: f64 = 1.05;
/// Bytes that had come and were not read / receive window, from which on the reader makes the window small,
pub const UNREAD: f64 = 0.5;
/// and in any case so many bytes.
pub const UNREAD_MIN_BYTES: u64 = 4096;
/// Payload in flight / send buffer that may be full: it counts the memory of whole packets.
pub const BUFFER_PAYLOAD: f64 = 0.35;
/// Goodput / what a window carries in the round trip, from which the window explains it.
pub const WINDOW_REACHED: f64 = 0.7;

/// A sender that reaches this share of what was asked of it has sent as asked: less is the granularity of its calls.
pub const SENT_AS_ASKED: f64 = 0.98;

/// Loss from which on, beside a standing queue, what came through is what the path carries.
pub const OVERLOAD_BESIDE_QUEUE: f64 = 0.02;
/// The same without such a queue to see: less may be a policer's, or have nothing to do with the rate.
pub const OVERLOAD: f64 = 0.05;

/// Share of processor time taken by a hypervisor from which on a measurement has a caveat.
pub const STEAL_NOTED: f64 = 0.05;
/// The same where a bound of the emulator was broken, and causes are looked for.
pub const STEAL_BLAMED: f64 = 0.02;

/// At or above this share of a rate that is computed from the path, the computation holds.
pub const REACHED: f64 = 0.9;
/// Above this share of it, it was no bound.
pub const EXCEEDED: f64 = 1.1;

/// Goodput / the highest rate of delivery of a round trip, from which on a sender has the same rate all the time.
pub const AT_PEAK: f64 = 0.94;

/// Goodput / what a response function gives for losses, up to which the two agree: the functions are means over many losses, and a run has few.
pub const MODEL_TOLERANCE: f64 = 1.5;

/// A program that did not run for longer was held up by its host: a busy scheduler takes less.
pub const HOST_PAUSE: Nanos = Nanos::millis(20);

/// Bytes that a capture lacks / all that passed, from which on only its pauses are known.
pub const CAPTURE_LACKS: f64 = 0.25;
