//! The sending end of datagrams: each stream's datagrams at their times, with as many per call as fit into 100 us of
//! the rate.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bdp_model::flow::method::SendMethod;
use bdp_model::flow::udp::Distribution;
use bdp_model::statistics::histogram::Histogram;
use bdp_model::units::Nanos;
use bdp_sys::payload::fill_with_noise;
use bdp_sys::udp::{self, TrainSender};
use bdp_sys::{clock, process};
use bdp_wire::control::{DatagramsSent, Sent};
use bdp_wire::datagram::{HEADER_BYTES, Header};

use super::{CHECK, Layout, Stream, StreamTally, payload_bytes};
use crate::effort::{Busiest, ProcessShare};
use crate::error::{FlowError, Result};
use crate::meter::Meter;
use crate::worker::Worker;

/// How much of the rate one call may hold.
const BURST_NS: u64 = 100_000;
/// How late a sender may be and still catch up; older datagrams are skipped.
const LATE_NS: u64 = 20_000_000;
/// Most buffers per call, if the rate does not limit it.
const BUFFERS: usize = 2;
/// Interval at which each stream's sent bytes are shown.
const SHOW_NS: u64 = 50_000_000;
/// Marks of the end: how many, and how far apart.
const LAST_MARKS: u32 = 10;
const LAST_MARK_GAP: Duration = Duration::from_millis(50);
/// Longest sleep before the stop flag is seen.
const LONGEST_SLEEP_NS: u64 = 50_000_000;

/// A sender's plan for its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct DatagramSendPlan {
    /// Payload of a datagram; `None` for what fits the path's MTU.
    pub payload_bytes: Option<u32>,
    /// Payload rate of each stream, bit/s; `None` for as fast as possible.
    pub rate_bps: Option<u64>,
    /// Duration of the flow.
    pub duration: Nanos,
    /// Beginning that is not counted.
    pub omit: Nanos,
    /// Ends after this much payload, all streams together, if sooner.
    pub bytes: Option<u64>,
}

/// Sends until the duration is over, until the planned bytes are sent, or until `stop`. The meter shows payload
/// bytes.
pub fn over(streams: Vec<Stream>, plan: &DatagramSendPlan, stop: &AtomicBool, meter: &Meter) -> Result<Sent> {
    each_over(streams, plan, stop, meter).map(|(all, _)| all)
}

/// Like `over`, but returns each stream's counts too, in order.
pub fn each_over(
    streams: Vec<Stream>,
    plan: &DatagramSendPlan,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Sent, Vec<StreamTally>)> {
    let cpu = ProcessShare::begin(clock::monotonic_ns());
    let busiest = Busiest::default();
    let send_buffer = streams.first().and_then(|s| bdp_sys::socket::send_buffer(&s.socket).ok());
    let shown = Shown {
        meter,
        total: AtomicU64::new(0),
        streams: streams.iter().map(|_| AtomicU64::new(0)).collect(),
    };
    let share = plan.bytes.map(|bytes| bytes.div_ceil(streams.len().max(1) as u64));
    let work = |(place, stream): (usize, Stream)| {
        let pacer = Pacer::new(stream, plan, share)?;
        meter.set_datagram_bytes(pacer.length as u64);
        pacer.run(stop, &shown, place)
    };
    let done: Vec<Result<StreamSent>> = std::thread::scope(|scope| {
        let workers: Vec<_> = streams
            .into_iter()
            .enumerate()
            .map(|stream| Worker::start(scope, || busiest.watch(|| work(stream))))
            .collect();
        workers.into_iter().map(|worker| worker.and_then(Worker::join)).collect()
    });
    let mut all = DatagramsSent::default();
    let (mut gaps, mut method, mut tallies) = (Histogram::new(), SendMethod::Unknown, Vec::new());
    let mut path_mtu = None;
    for stream in done {
        let stream = stream?;
        all.payload_bytes = stream.payload_bytes as u64;
        tallies.push(StreamTally { datagrams: stream.sent, omitted: stream.omitted, ..Default::default() });
        all.sent += stream.sent;
        all.left_out += stream.left_out;
        all.burst_max = all.burst_max.max(stream.burst_max);
        all.duration_ns = all.duration_ns.max(stream.duration_ns);
        gaps.merge(&stream.gaps);
        method = stream.method;
        path_mtu = stream.path_mtu.into_iter().chain(path_mtu).min();
    }
    all.gaps = Distribution::of(&gaps);
    let sent = Sent {
        bytes: all.sent * all.payload_bytes,
        cpu: cpu.until_now(),
        thread_cpu: Some(busiest.share()),
        method,
        send_buffer_bytes: send_buffer.map(|b| b as u64),
        path_mtu,
        datagrams: Some(all),
        ..Default::default()
    };
    Ok((sent, tallies))
}

/// What the streams' threads show of the bytes sent.
struct Shown<'a> {
    meter: &'a Meter,
    total: AtomicU64,
    /// Counts of each stream, in order.
    streams: Vec<AtomicU64>,
}

impl Shown<'_> {
    /// Shows that a stream has sent more.
    fn add(&self, place: usize, bytes: u64) {
        self.streams[place].fetch_add(bytes, Ordering::Relaxed);
        self.meter.set(self.total.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    /// Shows each of them; for one of the threads.
    fn show_streams(&self) {
        self.meter.set_streams(self.streams.iter().map(|bytes| bytes.load(Ordering::Relaxed)));
    }
}

/// The result of one stream.
struct StreamSent {
    payload_bytes: usize,
    sent: u64,
    omitted: u64,
    left_out: u64,
    duration_ns: u64,
    gaps: Histogram,
    burst_max: u64,
    method: SendMethod,
    /// The path MTU as the kernel knew it at the end: a router may have reported it meanwhile.
    path_mtu: Option<u32>,
}

/// One stream on its thread.
struct Pacer<'a> {
    plan: &'a DatagramSendPlan,
    sender: TrainSender,
    layout: Layout,
    train: Vec<u8>,
    length: usize,
    /// Most datagrams per call.
    burst: u64,
    /// Most datagrams in total.
    most: u64,
    sent: u64,
    left_out: u64,
    gaps: Histogram,
    burst_max: u64,
}

impl<'a> Pacer<'a> {
    fn new(stream: Stream, plan: &'a DatagramSendPlan, bytes: Option<u64>) -> Result<Self> {
        let length = payload_bytes(plan.payload_bytes, &stream.layout, &stream.socket);
        let sender = TrainSender::new(stream.socket, length, CHECK)?;
        let room = (sender.per_buffer() * BUFFERS) as u64;
        let burst = plan.rate_bps.map_or(room, |rate| {
            // Only fq uses it, and then spreads the datagrams of a burst.
            let _ = bdp_sys::socket::pace(sender.socket(), rate + rate / 100);
            (u128::from(rate) * u128::from(BURST_NS) / (8 * length as u128 * 1_000_000_000)) as u64
        });
        let burst = burst.clamp(1, room);
        let mut train = vec![0; length * burst as usize];
        let mut payload = vec![0; length];
        fill_with_noise(&mut payload);
        stream.layout.write_header(&mut payload);
        train.chunks_mut(length).for_each(|datagram| datagram.copy_from_slice(&payload));
        Ok(Self {
            plan,
            sender,
            layout: stream.layout,
            train,
            length,
            burst,
            most: bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(length as u64)),
            sent: 0,
            left_out: 0,
            gaps: Histogram::new(),
            burst_max: 0,
        })
    }

    fn run(mut self, stop: &AtomicBool, shown: &Shown<'_>, place: usize) -> Result<StreamSent> {
        process::sharpen_timers();
        std::thread::sleep(self.layout.delay());
        let started = clock::monotonic_ns();
        let end = started + self.plan.duration.as_ns();
        let mut now = started;
        let mut last_call: Option<u64> = None;
        let (mut omitted, mut show_at) = (None, started);
        while now < end && self.sent < self.most && !stop.load(Ordering::Relaxed) {
            if omitted.is_none() && now - started >= self.plan.omit.as_ns() {
                omitted = Some(self.sent);
            }
            let due = self.due(now - started);
            let pending = self.sent + self.left_out;
            let want = self.burst.min(self.most - self.sent);
            if due < pending + want {
                // A burst goes when its last datagram is due: by one call, and never early.
                let until = self.due_at(pending + want - 1).saturating_add(started).min(end);
                let wait = until.saturating_sub(now).clamp(1, LONGEST_SLEEP_NS);
                std::thread::sleep(Duration::from_nanos(wait));
                now = clock::monotonic_ns();
                continue;
            }
            self.leave_out(now - started, due);
            let count = match self.send_burst(want, now) {
                Ok(count) => count,
                // The other end has closed its socket: it needs no more.
                Err(e)
                    if e.kind() == ErrorKind::ConnectionRefused && !self.layout.outlasts(now - started) =>
                {
                    break;
                }
                Err(e) if e.kind() == ErrorKind::ConnectionRefused || is_passing(&e) => 0,
                Err(e) => return Err(explained(e, self.length)),
            };
            if count > 0 {
                if let Some(before) = last_call.replace(now) {
                    self.gaps.record(now - before);
                }
                self.burst_max = self.burst_max.max(count);
                self.sent += count;
                let bytes = count * self.length as u64;
                shown.add(place, bytes);
                if place == 0 && now >= show_at {
                    shown.show_streams();
                    show_at = now + SHOW_NS;
                }
            }
            now = clock::monotonic_ns();
        }
        let duration_ns = now.saturating_sub(started).max(1);
        // Whichever ends last shows the sum of all.
        shown.show_streams();
        self.mark_end(stop);
        let method = match (self.burst.min(self.sender.per_buffer() as u64), self.sender.per_buffer()) {
            (1, _) => SendMethod::Sendmmsg { datagrams: 1 },
            (_, 1) => SendMethod::Sendmmsg { datagrams: self.burst },
            (segments, _) => SendMethod::SendmmsgGso { segments },
        };
        Ok(StreamSent {
            payload_bytes: self.length,
            sent: self.sent,
            omitted: omitted.unwrap_or(self.sent),
            left_out: self.left_out,
            duration_ns,
            gaps: self.gaps,
            burst_max: self.burst_max,
            method,
            path_mtu: udp::path_mtu(self.sender.socket()),
        })
    }

    /// Returns the number of datagrams due after this time.
    fn due(&self, elapsed_ns: u64) -> u64 {
        self.plan.rate_bps.map_or(u64::MAX, |rate| {
            let bits = u128::from(elapsed_ns) * u128::from(rate) / 1_000_000_000;
            (bits / (8 * self.length as u128)) as u64 + 1
        })
    }

    /// Time since the start at which datagram `number` is due.
    fn due_at(&self, number: u64) -> u64 {
        self.plan.rate_bps.map_or(0, |rate| {
            let bits = u128::from(number) * 8 * self.length as u128;
            u64::try_from((bits * 1_000_000_000).div_ceil(u128::from(rate.max(1)))).unwrap_or(u64::MAX)
        })
    }

    /// Skips datagrams that are long overdue: sent now, they would be an unintended burst.
    fn leave_out(&mut self, elapsed_ns: u64, due: u64) {
        if self.plan.rate_bps.is_none() {
            return;
        }
        let oldest = self.due(elapsed_ns.saturating_sub(LATE_NS)).saturating_sub(1);
        let pending = self.sent + self.left_out;
        self.left_out += oldest.min(due).saturating_sub(pending);
    }

    fn send_burst(&mut self, count: u64, now: u64) -> std::io::Result<u64> {
        let bytes = self.length * count as usize;
        // iperf2 holds it against its own clock.
        let sent_ns = if matches!(self.layout, Layout::Iperf2 { .. }) { clock::unix_ns() } else { now };
        for (datagram, i) in self.train[..bytes].chunks_exact_mut(self.length).zip(0..) {
            self.layout.write(datagram, self.sent + i, sent_ns);
        }
        self.sender.send(&self.train[..bytes]).map(|count| count as u64)
    }

    /// Tells the receiver that there are no more, several times, as a mark may be lost.
    fn mark_end(&mut self, stop: &AtomicBool) {
        let Layout::Bdp { tag } = self.layout else { return };
        for _ in 0..LAST_MARKS {
            let mut mark = [0; HEADER_BYTES];
            let sent_ns = clock::monotonic_ns();
            Header { last: true, tag, number: self.sent, sent_ns }.write(&mut mark);
            if matches!(self.sender.socket().send(&mark), Err(e) if e.kind() == ErrorKind::ConnectionRefused)
            {
                return;
            }
            std::thread::sleep(LAST_MARK_GAP);
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Whether a retry may succeed: a full queue, a signal, a flapping route.
fn is_passing(error: &std::io::Error) -> bool {
    // ENOBUFS has no kind of its own; EAGAIN is the end of the socket's patience.
    bdp_sys::poll::is_wait(error) || bdp_sys::udp::is_out_of_room(error)
}

fn explained(error: std::io::Error, length: usize) -> FlowError {
    if bdp_sys::udp::is_too_long(&error) {
        return FlowError::Refused(format!(
            "send datagrams of {length} bytes: too large for the path MTU; set a smaller -l, or omit \
             --dont-fragment"
        ));
    }
    FlowError::io("send a datagram")(error)
}
