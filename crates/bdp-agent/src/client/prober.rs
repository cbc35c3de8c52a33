//! The probe flow of a session: small datagrams, or messages on a connection if no datagram comes back, from the
//! greeting to the end.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bdp_model::probes::flight::{ProbeFlow, Schedule};
use bdp_model::probes::one_way::{ClockOffset, ClockSkew, EachWay, Exchange};
use bdp_model::probes::{ProbeOutcome, ProbeSeries, ProbeTimes};
use bdp_model::units::Nanos;
use bdp_sys::poll::{is_wait, wait_readable};
use bdp_sys::stamp::{Stamp, StampedSocket};
use bdp_sys::{clock, process};
use bdp_wire::control::{ProbeSample, Probed};
use bdp_wire::echo::{ECHO_BYTES, Echo, FarStamps};
use bdp_wire::session::{Key, PROBE_BYTES, Probe};

use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;
use bdp_flow::probe_flow::{self, Arrival, Carrier};
use bdp_flow::session::peer::Probes;
use bdp_flow::worker::Stoppable;

/// Mean interval of probes: 20 per second, each at a random moment of its interval.
pub(super) const INTERVAL_NS: u64 = 50_000_000;
/// How long an answer is possible at least, and at most.
const PATIENCE_NS: Range<u64> = 1_000_000_000..10_000_000_000;

/// The transport of probes.
pub(super) enum Transport {
    /// Datagrams, on a socket connected to the server.
    Udp(StampedSocket),
    /// A probe connection that the server has accepted.
    Tcp(TcpStream),
}

/// A running probe flow. Dropping it ends it.
pub(super) struct Prober {
    /// Probes by number.
    probes: Arc<Mutex<Vec<Sent>>>,
    _thread: Stoppable<()>,
}

/// A probe that was sent. Times of the sample are of the monotonic clock, stamps of the kernel's clock of the day.
#[derive(Debug, Clone, Copy)]
struct Sent {
    sample: ProbeSample,
    /// When it was sent, by the wall clock.
    at_unix_ns: u64,
    /// When the kernel gave it to the device.
    left_unix_ns: Option<u64>,
    /// What its answer contained, if one has come.
    back: Back,
}

#[derive(Debug, Clone, Copy, Default)]
struct Back {
    /// When the kernel took it from the device.
    came_unix_ns: Option<u64>,
    /// The server's timestamps; none for probes on a connection.
    far: Option<FarStamps>,
}

impl Sent {
    /// Returns the time from sending until it left, and from then until the answer arrived, by this kernel's
    /// timestamps.
    fn away(&self) -> Option<(u64, u64)> {
        let (left, rtt_ns) = (self.left_unix_ns?, self.sample.rtt_ns?);
        let out_ns = left.checked_sub(self.at_unix_ns)?;
        let away_ns = self.back.came_unix_ns?.checked_sub(left)?;
        // A clock that was set meanwhile says nothing.
        (out_ns.checked_add(away_ns)? <= rtt_ns).then_some((out_ns, away_ns))
    }

    /// Returns the part of the round trip spent in the two hosts: until the kernel had sent it, in the echo after its
    /// kernel, and from this kernel to the waiting thread. The time that the echo's kernel takes to send belongs to
    /// the path.
    fn host_ns(&self) -> Option<u64> {
        let (_, away_ns) = self.away()?;
        let far = self.back.far.filter(|far| far.by_kernel)?;
        let path_ns = away_ns.checked_sub(far.returned_ns.checked_sub(far.arrived_ns)?)?;
        self.sample.rtt_ns?.checked_sub(path_ns)
    }

    fn exchange(&self) -> Option<Exchange> {
        let rtt_ns = self.sample.rtt_ns?;
        let FarStamps { arrived_ns, returned_ns, .. } = self.back.far?;
        // If this kernel timestamped both, the path is that between the kernels.
        let (out_ns, away_ns) = self.away().unwrap_or((0, rtt_ns));
        let sent_ns = self.sample.sent_at_ns + out_ns;
        Some(Exchange { sent_ns, arrived_ns, returned_ns, received_ns: sent_ns + away_ns })
    }
}

impl Prober {
    /// Starts probing.
    pub(super) fn start(key: Key, transport: Transport) -> Result<Self, FlowError> {
        let probes = Arc::<Mutex<Vec<Sent>>>::default();
        let (on_thread, at_unix_ns, back) = (Arc::clone(&probes), 0, Back::default());
        let on_thread = OnThread { probes: on_thread, key, transport, at_unix_ns, back };
        let _thread = Stoppable::start(move |stop| on_thread.run(stop))?;
        Ok(Self { probes, _thread })
    }

    /// Whether a probe sent within a time span (monotonic, nanoseconds) was answered.
    pub(super) fn answered(&self, within: &Range<u64>) -> bool {
        self.outcomes(within).iter().any(|outcome| matches!(outcome, ProbeOutcome::Answered(_)))
    }

    fn exchanges(&self) -> Vec<Exchange> {
        lock(&self.probes).iter().filter_map(Sent::exchange).collect()
    }
}

impl Probes for Prober {
    fn probed(&self) -> Probed {
        probed(&lock(&self.probes), clock::monotonic_ns())
    }

    fn patience(&self) -> Nanos {
        patience(&self.probed())
    }

    fn last_ns(&self) -> Option<u64> {
        lock(&self.probes).iter().rev().find_map(|sent| sent.sample.rtt_ns)
    }

    fn smallest_ns(&self) -> Option<u64> {
        lock(&self.probes).iter().filter_map(|sent| sent.sample.rtt_ns).min()
    }

    fn series(&self, since_ns: u64) -> ProbeSeries {
        let (all, now) = (lock(&self.probes).clone(), clock::monotonic_ns());
        let probed = probed(&all, now);
        let mut series = probed.series(since_ns, patience(&probed));
        let exchanges: Vec<Exchange> = all.iter().filter_map(Sent::exchange).collect();
        let (clocks, skew) = (ClockOffset::of(&exchanges), ClockSkew::of(&exchanges));
        for (point, sent) in series.points.iter_mut().zip(&all) {
            let ways = sent.exchange().zip(clocks).map(|(exchange, clocks)| exchange.delays_ns(clocks, skew));
            (point.there_ns, point.back_ns) = ways.unzip();
            // A late send was delayed by this host.
            let late_ns = sent.sample.sent_at_ns.saturating_sub(sent.sample.counts_from_ns());
            point.host_ns = sent.host_ns().map(|ns| ns + late_ns);
        }
        series
    }

    fn each_way(&self, sent_within: &Range<u64>) -> Option<EachWay> {
        let exchanges = self.exchanges();
        let these = exchanges.iter().filter(|e| sent_within.contains(&e.sent_ns));
        EachWay::of(these, ClockOffset::of(&exchanges)?, ClockSkew::of(&exchanges))
    }

    fn clock_skew(&self) -> Option<ClockSkew> {
        ClockSkew::of(&self.exchanges())
    }

    fn responsiveness_rpm(&self, sent_within: &Range<u64>) -> Option<f64> {
        let mut round_trips_ns: Vec<u64> =
            self.outcomes(sent_within).into_iter().filter_map(ProbeOutcome::rtt_ns).collect();
        bdp_model::statistics::responsiveness_rpm(&mut round_trips_ns)
    }
}

fn probed(all: &[Sent], awaited_until_ns: u64) -> Probed {
    Probed { probes: all.iter().map(|sent| sent.sample).collect(), awaited_until_ns }
}

/// How long an answer is awaited: twice the longest round trip so far, within bounds.
fn patience(probed: &Probed) -> Nanos {
    let longest = probed.round_trips_ns().max().unwrap_or(0);
    Nanos(longest.saturating_mul(2).clamp(PATIENCE_NS.start, PATIENCE_NS.end))
}

/// The thread that sends probes.
struct OnThread {
    probes: Arc<Mutex<Vec<Sent>>>,
    key: Key,
    transport: Transport,
    /// When the last probe was sent, by the wall clock.
    at_unix_ns: u64,
    /// What the last answer contained.
    back: Back,
}

impl OnThread {
    fn run(mut self, stop: &AtomicBool) {
        process::sharpen_timers();
        // Without kernel timestamps, a host's part of a round trip remains unknown.
        let _ = match &mut self.transport {
            Transport::Udp(socket) => socket.ask_stamps().is_ok(),
            Transport::Tcp(stream) => stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok(),
        };
        // The server chose the session key, from which the times follow.
        let seed = self.key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let start_ns = clock::monotonic_ns();
        let times = Some(ProbeTimes::new(seed, INTERVAL_NS));
        let schedule = Schedule { start_ns, times, count: None, end_ns: u64::MAX };
        let flow = ProbeFlow::new(schedule, 0, Some(u64::MAX), usize::MAX);
        // No kind of error ends it: each shows as probes without an answer.
        let _ = probe_flow::run(&mut self, flow, start_ns, stop);
    }

    fn take_stamps(&self) {
        let Transport::Udp(socket) = &self.transport else { return };
        while let Some((number, stamp)) = socket.sent_stamp() {
            let Some(left) = stamp.kernel_ns else { continue };
            // The kernel may count one that failed: a stamp from before its probe is another's.
            if let Some(sent) = lock(&self.probes).get_mut(number as usize)
                && sent.at_unix_ns <= left
            {
                sent.left_unix_ns.get_or_insert(left);
            }
        }
    }
}

impl Carrier for OnThread {
    fn send(&mut self, number: u64, _: u64) -> Result<(u64, bool), FlowError> {
        self.at_unix_ns = clock::unix_ns();
        let at_ns = clock::monotonic_ns();
        // A full queue or an unreachable peer shows as a probe that never left.
        Ok((at_ns, self.transport.send(self.key, number, at_ns).is_err()))
    }

    fn receive(&mut self, wait_ns: u64, arrivals: &mut Vec<Arrival>) -> Result<u64, FlowError> {
        self.take_stamps();
        let answer = self.transport.receive(wait_ns.max(1_000)).filter(|answer| answer.key == self.key);
        arrivals
            .extend(answer.as_ref().map(|answer| Arrival { number: answer.number, ..Arrival::default() }));
        self.back = answer.map(|answer| answer.back).unwrap_or_default();
        Ok(clock::monotonic_ns())
    }

    fn note(&mut self, number: u64, sample: ProbeSample) {
        let mut probes = lock(&self.probes);
        match probes.get_mut(number as usize) {
            Some(sent) => (sent.sample, sent.back) = (sample, self.back),
            None => {
                let (at_unix_ns, back) = (self.at_unix_ns, Back::default());
                probes.push(Sent { sample, at_unix_ns, left_unix_ns: None, back });
            }
        }
    }
}

/// A probe that has returned.
struct Answer {
    key: Key,
    number: u64,
    back: Back,
}

impl Answer {
    fn of_datagram(bytes: &[u8], stamp: Stamp) -> Option<Self> {
        let Echo { key, number, far } = Echo::read(bytes).filter(|_| bytes.len() == ECHO_BYTES)?;
        Some(Self { key, number, back: Back { came_unix_ns: stamp.kernel_ns, far } })
    }

    fn of_connection(bytes: &[u8]) -> Option<Self> {
        let Probe { key, number, .. } = Probe::decode(bytes)?;
        Some(Self { key, number, back: Back::default() })
    }
}

impl Transport {
    fn send(&mut self, key: Key, number: u64, sent_ns: u64) -> io::Result<()> {
        match self {
            Self::Udp(socket) => {
                let mut message = [0; ECHO_BYTES];
                Echo { key, number, far: None }.put(&mut message);
                socket.send(&message)
            }
            Self::Tcp(stream) => stream.write_all(&Probe { key, number, sent_ns }.encode()),
        }
    }

    /// Returns the next probe that comes back in time.
    fn receive(&mut self, wait_ns: u64) -> Option<Answer> {
        let mut room = [0; ECHO_BYTES + 1];
        let received = match self {
            Self::Udp(socket) => {
                socket.wait(wait_ns);
                socket.receive(&mut room).map(|(length, stamp)| Answer::of_datagram(&room[..length], stamp))
            }
            Self::Tcp(stream) => {
                // A socket's own deadline is rounded up to the kernel's tick, 4 ms on many: the next probe would be sent so late.
                if !wait_readable(stream.as_fd(), wait_ns).unwrap_or(true) {
                    return None;
                }
                // A probe is one segment: its first byte arrives with its last.
                let message = &mut room[..PROBE_BYTES];
                stream.read_exact(message).map(|()| Answer::of_connection(message))
            }
        };
        received.unwrap_or_else(|error| {
            // An error that returns at once (an ICMP refusal, a reset) must not cause a busy loop.
            if !is_wait(&error) {
                std::thread::sleep(Duration::from_millis(5));
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::record::RttSummary;

    const MS: u64 = 1_000_000;

    /// Returns a probe sent at this time, in milliseconds, that came back after this long.
    fn sent(at_ms: u64, rtt_ms: Option<u64>) -> Sent {
        let rtt_ns = rtt_ms.map(|ms| ms * MS);
        Sent {
            sample: ProbeSample { rtt_ns, ..ProbeSample::sent(at_ms * MS, at_ms * MS) },
            at_unix_ns: 1_000 * MS + at_ms * MS,
            left_unix_ns: None,
            back: Back::default(),
        }
    }

    fn outcomes(all: &[Sent], within: &Range<u64>, awaited_until_ns: u64) -> Vec<ProbeOutcome> {
        let probed = probed(all, awaited_until_ns);
        probed.outcomes(within, patience(&probed)).collect()
    }

    #[test]
    fn only_probes_sent_within_the_time_count() {
        // Idle at 10 ms, then a load of 200 ms that counts from 1 s to 3 s.
        let probes: Vec<Sent> =
            (0..80).map(|i| sent(i * 50, Some(if (10..60).contains(&i) { 200 } else { 10 }))).collect();
        let summary = |sent_within: Range<u64>| {
            RttSummary::of_probes(outcomes(&probes, &sent_within, 10_000 * MS)).unwrap()
        };
        let all = summary(0..4_000 * MS);
        assert_eq!((all.sent, all.min), (80, 10 * MS));
        let loaded = summary(1_000 * MS..3_000 * MS);
        assert_eq!((loaded.sent, loaded.received, loaded.in_flight, loaded.lost()), (40, 40, 0, 0));
        assert!(loaded.min == 200 * MS && loaded.p50 >= 200 * MS, "{loaded:?}");
    }

    #[test]
    fn a_young_probe_without_an_answer_is_in_flight_and_an_old_one_lost() {
        let probes = [sent(0, Some(10)), sent(50, None), sent(900, None), sent(950, None)];
        let these = outcomes(&probes, &(0..1_000 * MS), 1_500 * MS);
        let summary = RttSummary::of_probes(these).unwrap();
        assert_eq!((summary.sent, summary.received, summary.in_flight, summary.lost()), (4, 1, 2, 1));
    }

    #[test]
    fn a_late_probe_counts_from_when_it_was_due_and_one_that_never_left_has_no_round_trip() {
        let [mut late, mut in_time, mut unsent] = [sent(130, Some(20)), sent(101, Some(20)), sent(200, None)];
        (late.sample.due_at_ns, in_time.sample.due_at_ns) = (100 * MS, 100 * MS);
        unsent.sample.failed = true;
        let all = outcomes(&[late, in_time, unsent], &(100 * MS..300 * MS), 10_000 * MS);
        let answered = |ms| ProbeOutcome::Answered(ms * MS);
        assert_eq!(all, [answered(50), answered(20), ProbeOutcome::Unsent]);
        // It is due before the time, though sent within it.
        assert_eq!(outcomes(&[late], &(110 * MS..300 * MS), 10_000 * MS), []);
    }

    #[test]
    fn stamps_divide_a_round_trip_between_the_hosts_and_the_path() {
        const FAR: u64 = 7_000_000 * MS;
        let far = FarStamps { arrived_ns: FAR, by_kernel: true, returned_ns: FAR + 3 * MS };
        // It leaves 1 ms after it was sent, is away for 23 ms, of which the echo has 3, and waits here for 2 ms.
        let back = Back { came_unix_ns: Some(1_124 * MS), far: Some(far) };
        let probe = Sent { left_unix_ns: Some(1_101 * MS), back, ..sent(100, Some(26)) };
        assert_eq!(probe.host_ns(), Some(6 * MS));
        let exchange = probe.exchange().unwrap();
        assert_eq!((exchange.sent_ns, exchange.received_ns), (101 * MS, 124 * MS));
        // No timestamp at the remote end, or none here, or a clock that was set: unknown.
        let by_program = Back { far: Some(FarStamps { by_kernel: false, ..far }), ..back };
        assert_eq!(Sent { back: by_program, ..probe }.host_ns(), None);
        assert_eq!(Sent { left_unix_ns: None, ..probe }.host_ns(), None);
        let set = Back { came_unix_ns: Some(9_000 * MS), ..back };
        assert_eq!(Sent { back: set, ..probe }.host_ns(), None);
    }
}
