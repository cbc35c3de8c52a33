//! The receiving end of datagrams: each stream on a thread of its own, datagrams identified by number; one more
//! thread takes the samples.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bdp_model::flow::method::{EndReason, ReceiveMethod};
use bdp_model::record::ReceiverSample;
use bdp_model::statistics::arrivals::{Arrival, Arrivals, Jitter, Transits};
use bdp_model::units::Nanos;
use bdp_sys::udp::{self, Train, TrainReceiver};
use bdp_sys::{clock, process, socket};
use bdp_wire::control::{DatagramsReceived, Mark, OpenEnd, Received};

use super::{CHECK, Layout, Stream, StreamTally};
use crate::counting::{Cadence, Counting};
use crate::effort::{Busiest, ProcessShare};
use crate::error::{FlowError, Result};
use crate::meter::{ArrivalReading, Meter};
use crate::worker::Worker;

/// How long after a mark of the end datagrams that are missing are waited for: longer than a queue holds them back that let
/// the mark through.
const LATE_DATAGRAMS_NS: u64 = 300_000_000;
/// How long a stream must be silent after its duration until it counts as ended without an end mark.
const SILENT_NS: u64 = 1_500_000_000;
/// How long past its duration a stream may go on at all.
const OVERTIME_NS: u64 = 15_000_000_000;
/// Interval at which the two clocks are compared.
const CLOCKS_NS: u64 = 100_000_000;
/// Numbers that a stream remembers, in a flow of up to this many streams, and of more.
const FEW_STREAMS: usize = 64;
const OF_FEW: u64 = 1 << 20;
const OF_MANY: u64 = 1 << 16;
/// Longest sleep of the thread that takes samples.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Returns the numbers that each of this many streams remembers.
const fn remembered(streams: usize) -> u64 {
    if streams <= FEW_STREAMS { OF_FEW } else { OF_MANY }
}

/// Returns the memory that each of this many streams needs to remember received numbers: one bit per number.
pub const fn remembered_bytes(streams: usize) -> u64 {
    remembered(streams) / 8
}

/// A receiver's plan for its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct DatagramReceivePlan {
    /// How long the sender sends, from the first datagram.
    pub duration: Nanos,
    /// Beginning that is not counted.
    pub omit: Nanos,
    /// Interval of samples.
    pub interval: Nanos,
    /// How long to wait for the first datagram.
    pub patience: Nanos,
}

/// Reads until every stream has ended, or until `stop`. The meter shows payload bytes.
pub fn over(
    streams: Vec<Stream>,
    plan: &DatagramReceivePlan,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<Received> {
    each_over(streams, plan, stop, meter).map(|(all, _)| all)
}

/// Like `over`, but returns each stream's counts too, in order.
pub fn each_over(
    streams: Vec<Stream>,
    plan: &DatagramReceivePlan,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Received, Vec<StreamTally>)> {
    let started = clock::monotonic_ns();
    let cpu = ProcessShare::begin(started);
    let busiest = Busiest::default();
    let path_mtu = streams.first().and_then(|s| udp::path_mtu(&s.socket));
    let receive_buffer = streams.first().and_then(|s| socket::receive_buffer(&s.socket).ok());
    let shared = Shared {
        first_at_ns: AtomicU64::new(0),
        bytes: streams.iter().map(|_| AtomicU64::new(0)).collect(),
        arrivals: streams.iter().map(|_| LiveArrivals::default()).collect(),
        deadline_ns: started + plan.patience.as_ns(),
    };
    let (done, (mut counting, mut samples)) = std::thread::scope(|scope| {
        let workers: Vec<_> = streams
            .into_iter()
            .enumerate()
            .map(|(index, stream)| {
                let (shared, busiest) = (&shared, &busiest);
                let work = move || Reader::new(stream, plan, shared, index)?.run(stop);
                Worker::start(scope, move || busiest.watch(work))
            })
            .collect();
        let samples = sample(plan, &shared, meter, || workers.iter().flatten().all(Worker::is_finished));
        let done: Vec<Result<StreamReceived>> =
            workers.into_iter().map(|worker| worker.and_then(Worker::join)).collect();
        (done, samples)
    });
    let joined = Joined::of(done)?;
    let first = shared.first_at_ns.load(Ordering::Relaxed);
    if first == 0 {
        return Err(FlowError::Silence { within: plan.patience });
    }
    counting.note(joined.end_ns.saturating_sub(first), shared.each());
    let (last, (counted_from, stream_bytes)) = (counting.last().mark(), counting.counted());
    // Samples taken while late datagrams were awaited say nothing about the sending time.
    samples.retain(|sample| sample.at_ns < last.at_ns);
    samples.push(of(last));
    let received = Received {
        first_byte_at_ns: Some(first),
        bytes: last.bytes,
        duration_ns: last.at_ns,
        counted_from,
        stream_bytes,
        samples,
        receive_buffer_bytes: receive_buffer.map(|b| b as u64),
        cpu: cpu.until_now(),
        thread_cpu: Some(busiest.share()),
        method: joined.method,
        ended: joined.ended,
        path_mtu,
        datagrams: Some(joined.all),
        ..Default::default()
    };
    Ok((received, joined.tallies))
}

/// What the streams' threads share with the one that takes samples.
struct Shared {
    /// When the first datagram arrived; 0 before.
    first_at_ns: AtomicU64,
    bytes: Vec<AtomicU64>,
    arrivals: Vec<LiveArrivals>,
    /// Deadline of the first datagram.
    deadline_ns: u64,
}

/// Arrivals of a stream so far.
#[derive(Default)]
struct LiveArrivals {
    sent: AtomicU64,
    received: AtomicU64,
    jitter_ns: AtomicU64,
}

impl LiveArrivals {
    fn show(&self, arrivals: &Arrivals, jitter: Jitter) {
        self.sent.store(arrivals.next(), Ordering::Relaxed);
        self.received.store(arrivals.received(), Ordering::Relaxed);
        self.jitter_ns.store(jitter.ns() as u64, Ordering::Relaxed);
    }

    fn read(&self) -> ArrivalReading {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        // The received count is read first, so that a datagram that arrives meanwhile is not taken for lost.
        let received = read(&self.received);
        ArrivalReading { received, sent: read(&self.sent), jitter_ns: read(&self.jitter_ns) }
    }
}

impl Shared {
    /// Bytes of each stream so far.
    fn each(&self) -> Vec<u64> {
        self.bytes.iter().map(|b| b.load(Ordering::Relaxed)).collect()
    }
}

/// Takes the readings until the streams' threads are over: all samples, and the start of counting.
fn sample(
    plan: &DatagramReceivePlan,
    shared: &Shared,
    meter: &Meter,
    is_over: impl Fn() -> bool,
) -> (Counting, Vec<ReceiverSample>) {
    let mut counting = Counting::new(plan.omit, shared.bytes.len());
    let (mut cadence, mut samples) = (Cadence::every(plan.interval), Vec::new());
    while !is_over() {
        let first = shared.first_at_ns.load(Ordering::Relaxed);
        if first == 0 {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let at_ns = clock::monotonic_ns().saturating_sub(first);
        let each = shared.each();
        meter.set(each.iter().sum());
        meter.set_streams(each.iter().copied());
        meter.set_arrivals(shared.arrivals.iter().map(LiveArrivals::read).collect());
        counting.note(at_ns, each);
        if cadence.take(at_ns) {
            samples.push(of(counting.last().mark()));
        }
        let until = cadence.next_ns().min(counting.due_ns());
        let wait = Duration::from_nanos(until.saturating_sub(at_ns).max(1)).min(LONGEST_SLEEP);
        std::thread::sleep(wait);
    }
    (counting, samples)
}

fn of(mark: Mark) -> ReceiverSample {
    ReceiverSample { at_ns: mark.at_ns, bytes: mark.bytes, ..Default::default() }
}

/// The outcome of one stream.
struct StreamReceived {
    arrivals: Arrivals,
    /// Number of datagrams sent, according to an end mark.
    marked: Option<u64>,
    omitted: Option<Omitted>,
    jitter: Jitter,
    transits: Transits,
    dropped: Option<u64>,
    /// Without an end mark: how many datagrams the socket may have dropped after the last train.
    dropped_at_end: Option<u64>,
    stamped: bool,
    ended_at_ns: u64,
    ended: EndReason,
    method: ReceiveMethod,
}

impl StreamReceived {
    fn tally(&self) -> StreamTally {
        let mut now = Omitted::of(&self.arrivals);
        if let Some(sent) = self.marked {
            now.missing += sent.saturating_sub(now.datagrams);
            now.datagrams = sent;
        }
        // One that ended within the omit has nothing that counts.
        let before = self.omitted.unwrap_or(now);
        StreamTally {
            datagrams: now.datagrams,
            omitted: before.datagrams,
            missing: now.missing,
            omitted_missing: before.missing,
            jitter_ns: self.jitter.ns(),
        }
    }
}

/// The outcomes of all streams, joined.
struct Joined {
    all: DatagramsReceived,
    tallies: Vec<StreamTally>,
    end_ns: u64,
    method: ReceiveMethod,
    ended: EndReason,
}

impl Joined {
    fn of(streams: Vec<Result<StreamReceived>>) -> Result<Self> {
        let mut joined = Self {
            all: DatagramsReceived { dropped: Some(0), stamped: true, ..Default::default() },
            tallies: Vec::new(),
            end_ns: 0,
            method: ReceiveMethod::Unknown,
            ended: EndReason::Duration,
        };
        let (mut transits, mut jitter) = (Transits::default(), None::<f64>);
        let (mut open_end, mut any_open) = (OpenEnd::default(), false);
        for stream in streams {
            let stream = stream?;
            let all = &mut joined.all;
            joined.tallies.push(stream.tally());
            all.counts.merge(&stream.arrivals.counts());
            all.dropped = all.dropped.zip(stream.dropped).map(|(a, b)| a + b);
            all.stamped &= stream.stamped;
            open_end.numbered += stream.marked.unwrap_or(stream.arrivals.next());
            open_end.dropped_at_most += stream.dropped_at_end.unwrap_or(0);
            any_open |= stream.dropped_at_end.is_some();
            if stream.arrivals.received() > 1 {
                jitter = Some(jitter.unwrap_or(0.0).max(stream.jitter.ns()));
            }
            transits.merge(stream.transits);
            joined.end_ns = joined.end_ns.max(stream.ended_at_ns);
            joined.method = stream.method;
            if stream.ended != EndReason::Duration {
                joined.ended = stream.ended;
            }
        }
        joined.all.open_end = any_open.then_some(open_end);
        joined.all.jitter_ns = jitter.map(|ns| ns as u64);
        joined.all.transits = transits.summary();
        Ok(joined)
    }
}

/// A stream's arrivals when counting began.
#[derive(Clone, Copy)]
struct Omitted {
    /// Number of datagrams sent, by the highest number received.
    datagrams: u64,
    missing: u64,
}

impl Omitted {
    fn of(arrivals: &Arrivals) -> Self {
        let datagrams = arrivals.next();
        Self { datagrams, missing: datagrams.saturating_sub(arrivals.received()) }
    }
}

/// One stream on its thread.
struct Reader<'a> {
    receiver: TrainReceiver,
    counted: Counted<'a>,
}

struct Counted<'a> {
    plan: &'a DatagramReceivePlan,
    shared: &'a Shared,
    bytes: &'a AtomicU64,
    live: &'a LiveArrivals,
    layout: Layout,
    arrivals: Arrivals,
    omitted: Option<Omitted>,
    jitter: Jitter,
    transits: Transits,
    /// The socket's drops as reported by the last train, and the datagrams missing with them.
    drops_seen: u32,
    dropped: u64,
    trains_of: u64,
    /// Number of datagrams sent according to an end mark, and when that arrived.
    last_mark: Option<(u64, u64)>,
    last_data_ns: u64,
    /// When the last train of any kind arrived.
    last_train_ns: u64,
    clocks: Clocks,
}

impl<'a> Reader<'a> {
    fn new(stream: Stream, plan: &'a DatagramReceivePlan, shared: &'a Shared, index: usize) -> Result<Self> {
        let receiver = TrainReceiver::new(stream.socket, CHECK)?;
        let counted = Counted {
            plan,
            shared,
            bytes: &shared.bytes[index],
            live: &shared.arrivals[index],
            layout: stream.layout,
            arrivals: Arrivals::remembering(remembered(shared.bytes.len())),
            omitted: None,
            jitter: Jitter::default(),
            transits: Transits::default(),
            drops_seen: 0,
            dropped: 0,
            trains_of: 1,
            last_mark: None,
            last_data_ns: 0,
            last_train_ns: 0,
            clocks: Clocks::default(),
        };
        Ok(Self { receiver, counted })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<StreamReceived> {
        process::sharpen_timers();
        let counted = &mut self.counted;
        let ended = loop {
            let before = clock::monotonic_ns();
            let read = self.receiver.receive(|train| counted.take(&train));
            // After a pause of the machine, datagrams still wait to be read: while there are any, the time is when
            // the last one arrived, otherwise when the socket was asked.
            let now = match read {
                Ok(()) => counted.last_train_ns,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => before,
                // An error about an earlier datagram of ours says nothing about those to come.
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                    std::thread::sleep(CHECK);
                    before
                }
                Err(e) => return Err(FlowError::io("receive a datagram")(e)),
            };
            if stop.load(Ordering::Relaxed) {
                break EndReason::Stopped;
            }
            if counted.is_over(now) {
                break EndReason::Duration;
            }
        };
        let drops = self.receiver.drops();
        let (dropped, dropped_at_end) = drops.map(|drops| self.counted.dropped_until(drops)).unzip();
        let Counted { arrivals, omitted, jitter, transits, last_mark, last_data_ns, .. } = self.counted;
        Ok(StreamReceived {
            arrivals,
            marked: last_mark.map(|(sent, _)| sent),
            omitted,
            jitter,
            transits,
            dropped,
            dropped_at_end: dropped_at_end.flatten(),
            stamped: self.receiver.is_stamped(),
            ended_at_ns: last_mark.map_or(last_data_ns, |(_, at)| at.max(last_data_ns)),
            ended,
            method: match self.receiver.is_coalesced() {
                true => ReceiveMethod::RecvmmsgGro,
                false => ReceiveMethod::Recvmmsg,
            },
        })
    }
}

impl Counted<'_> {
    /// Counts datagrams that arrived together.
    fn take(&mut self, train: &Train<'_>) {
        let now = clock::monotonic_ns();
        let arrived = self.clocks.monotonic(train.arrived_unix_ns, now);
        self.begin_counting(arrived);
        self.last_train_ns = arrived;
        let (mut bytes, mut missing, mut any) = (0, 0, 0);
        for datagram in train.bytes.chunks(train.datagram_bytes) {
            let Some(header) = self.layout.read(datagram, self.arrivals.next()) else { continue };
            if header.last {
                self.last_mark.get_or_insert((header.number, arrived));
                continue;
            }
            any += 1;
            match self.arrivals.note(header.number) {
                Arrival::New { gap } => {
                    missing += gap;
                    bytes += datagram.len() as u64;
                }
                Arrival::Reordered => bytes += datagram.len() as u64,
                Arrival::Duplicate | Arrival::Stale => continue,
            }
            let transit = arrived.wrapping_sub(header.sent_ns) as i64;
            self.jitter.note(transit);
            self.transits.note(transit);
        }
        if any > 0 {
            if self.last_data_ns == 0 {
                let first = &self.shared.first_at_ns;
                let _ = first.compare_exchange(0, arrived, Ordering::Relaxed, Ordering::Relaxed);
            }
            self.last_data_ns = arrived;
            self.trains_of = self.trains_of.max(any);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.live.show(&self.arrivals, self.jitter);
        }
        // The kernel counts its drops before this train arrived: as many datagrams are missing here, or trains of
        // them. What is missing before an end mark is known at the end.
        if let Some(drops) = train.drops.filter(|_| any > 0) {
            let more = u64::from(drops.wrapping_sub(self.drops_seen));
            self.drops_seen = drops;
            self.dropped += missing.min(more.saturating_mul(self.trains_of));
        }
    }

    /// Notes the arrivals before the first train after the omitted beginning.
    fn begin_counting(&mut self, arrived: u64) {
        if self.omitted.is_none() {
            let first = self.shared.first_at_ns.load(Ordering::Relaxed);
            let omit = self.plan.omit.as_ns();
            if omit == 0 || first > 0 && arrived >= first + omit {
                self.omitted = Some(Omitted::of(&self.arrivals));
            }
        }
    }

    /// Returns what this host dropped, given the socket's count at the end: includes what is missing after the last
    /// train if an end mark gave the number, or else how much that may be.
    fn dropped_until(&self, drops: u32) -> (u64, Option<u64>) {
        let more = u64::from(drops.wrapping_sub(self.drops_seen)).saturating_mul(self.trains_of);
        match self.last_mark {
            Some((sent, _)) => (self.dropped + more.min(sent.saturating_sub(self.arrivals.next())), None),
            None => (self.dropped, Some(more)),
        }
    }

    fn is_over(&self, now: u64) -> bool {
        let seen = Seen {
            first_ns: Some(self.shared.first_at_ns.load(Ordering::Relaxed)).filter(|&at| at > 0),
            last_data_ns: self.last_data_ns,
            received: self.arrivals.received(),
            last_mark: self.last_mark,
        };
        seen.is_over(now, self.shared.deadline_ns, self.plan.duration)
    }
}

/// Determines whether a stream is over; all times by the monotonic clock.
struct Seen {
    /// When the first datagram of any stream arrived.
    first_ns: Option<u64>,
    /// When this stream's last datagram arrived.
    last_data_ns: u64,
    received: u64,
    /// Number of datagrams sent according to an end mark, and when that arrived.
    last_mark: Option<(u64, u64)>,
}

impl Seen {
    /// Whether it is, of a flow of this duration whose first datagram is awaited until the deadline.
    fn is_over(&self, now: u64, deadline_ns: u64, duration: Nanos) -> bool {
        let Some(first) = self.first_ns else { return now >= deadline_ns };
        if let Some((sent, at)) = self.last_mark {
            let quiet_since = at.max(self.last_data_ns);
            return self.received >= sent || now >= quiet_since + LATE_DATAGRAMS_NS;
        }
        let end = first + duration.as_ns();
        now >= end.max(self.last_data_ns) + SILENT_NS || now >= end + OVERTIME_NS
    }
}

/// Converts the kernel's time of arrival, by the wall clock, to the monotonic clock.
#[derive(Default)]
struct Clocks {
    looked_at_ns: u64,
    /// Monotonic minus wall clock.
    ahead_ns: i64,
}

impl Clocks {
    /// Returns when a train arrived; now, if the kernel does not report it.
    fn monotonic(&mut self, arrived_unix_ns: Option<u64>, now: u64) -> u64 {
        let Some(arrived) = arrived_unix_ns else { return now };
        if self.looked_at_ns == 0 || now - self.looked_at_ns >= CLOCKS_NS {
            // The closest of several comparisons: one interrupted by a pause of this thread is useless.
            let looks = (0..3).map(|_| {
                let (before, wall) = (clock::monotonic_ns(), clock::unix_ns());
                let after = clock::monotonic_ns();
                (after - before, (before + (after - before) / 2).wrapping_sub(wall) as i64)
            });
            self.ahead_ns = looks.min().map_or(0, |(_, ahead)| ahead);
            self.looked_at_ns = now;
        }
        // Never after now: the two clocks are not slewed together to the nanosecond.
        arrived.wrapping_add_signed(self.ahead_ns).min(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_over_by_its_mark_its_silence_or_its_overtime() {
        let second = 1_000_000_000;
        let over = |seen: &Seen, now: u64| seen.is_over(now, 5 * second, Nanos::secs(10));
        let mut seen = Seen { first_ns: None, last_data_ns: 0, received: 0, last_mark: None };
        assert!(!over(&seen, 5 * second - 1) && over(&seen, 5 * second));
        // It may pause within its duration, and go on past it for a while.
        (seen.first_ns, seen.last_data_ns, seen.received) = (Some(second), 2 * second, 7);
        assert!(!over(&seen, 11 * second + SILENT_NS - 1) && over(&seen, 11 * second + SILENT_NS));
        seen.last_data_ns = 12 * second;
        assert!(!over(&seen, 12 * second + SILENT_NS - 1) && over(&seen, 12 * second + SILENT_NS));
        seen.last_data_ns = 26 * second;
        assert!(over(&seen, 11 * second + OVERTIME_NS));
        // A mark ends it once all have arrived, or a moment after the last that did.
        (seen.last_data_ns, seen.last_mark) = (3 * second, Some((8, 2 * second)));
        assert!(
            !over(&seen, 3 * second + LATE_DATAGRAMS_NS - 1) && over(&seen, 3 * second + LATE_DATAGRAMS_NS)
        );
        seen.received = 8;
        assert!(over(&seen, 3 * second));
    }
}
