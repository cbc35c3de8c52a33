//! The datagrams of one direction of a test: sent or received by the same engine as bdp's own, with iperf3's header.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bdp_model::flow::payload::CpuList;
use bdp_model::record::ReceiverSample;
use bdp_model::units::Nanos;
use bdp_sys::clock;
use bdp_wire::control::Received;

use super::outcome::{End, Outcome, StreamCount};
use bdp_flow::background::Background;
use bdp_flow::crew;
use bdp_flow::datagram::{self, DatagramReceivePlan, DatagramSendPlan, Layout, Stream, StreamTally};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::meter::Meter;

/// How long a flow whose sender has ended must be silent to be over, and how long that may take at most.
const QUIET: Duration = Duration::from_millis(100);
const STRAGGLERS: Duration = Duration::from_millis(500);
/// Interval of checks.
const LOOK: Duration = Duration::from_millis(10);

/// A flow that runs on threads of its own.
pub(crate) struct Flow {
    sends: bool,
    /// The running work; bytes are payload.
    pub(super) work: Background<Outcome>,
    /// When the test was over, by the monotonic clock, as set by the test's leader.
    ended_ns: Option<u64>,
}

/// Returns streams over connected sockets.
pub(crate) fn streams(sockets: Vec<UdpSocket>, wide: bool) -> Vec<Stream> {
    sockets.into_iter().map(|socket| Stream { socket, layout: Layout::Iperf3 { wide } }).collect()
}

impl Flow {
    /// Starts sending, on these processors if any are given.
    pub(crate) fn send(streams: Vec<Stream>, plan: DatagramSendPlan, cpus: Option<CpuList>) -> Result<Self> {
        Self::start(true, move |stop, meter| {
            crew::keep_to_listed(cpus.as_ref())?;
            let (sent, tallies) = datagram::send::each_over(streams, &plan, stop, meter)?;
            let (length, lasted) =
                sent.datagrams.as_ref().map_or((0, 0), |d| (d.payload_bytes, d.duration_ns));
            let count = |tally: &StreamTally| StreamCount {
                bytes: (tally.datagrams - tally.omitted) * length,
                retransmits: None,
                tally: *tally,
            };
            Ok(Outcome {
                streams: tallies.iter().map(count).collect(),
                counted: Nanos(lasted).saturating_sub(plan.omit),
                congestion: None,
                end: End::Sent(sent),
            })
        })
    }

    /// Starts receiving, on these processors if any are given.
    pub(crate) fn receive(
        streams: Vec<Stream>,
        plan: DatagramReceivePlan,
        cpus: Option<CpuList>,
    ) -> Result<Self> {
        let count = streams.len();
        Self::start(false, move |stop, meter| {
            crew::keep_to_listed(cpus.as_ref())?;
            let (received, tallies) = match datagram::receive::each_over(streams, &plan, stop, meter) {
                // A path that carries nothing has still been measured.
                Err(FlowError::Silence { .. }) => (
                    Received { stream_bytes: vec![0; count], ..Default::default() },
                    vec![StreamTally::default(); count],
                ),
                other => other?,
            };
            let streams = received.stream_bytes.iter().zip(tallies);
            Ok(Outcome {
                streams: streams
                    .map(|(&bytes, tally)| StreamCount { bytes, retransmits: None, tally })
                    .collect(),
                counted: Nanos(received.counted_ns()),
                congestion: None,
                end: End::Received(received),
            })
        })
    }

    fn start(
        sends: bool,
        work: impl FnOnce(&AtomicBool, &Meter) -> Result<Outcome> + Send + 'static,
    ) -> Result<Self> {
        let mut background = Background::default();
        background.start(work)?;
        Ok(Self { sends, work: background, ended_ns: None })
    }

    /// Whether this end sends.
    pub(crate) fn sends(&self) -> bool {
        self.sends
    }

    /// Waits until nothing has arrived for a moment.
    pub(crate) fn settle(&self) {
        let since = Instant::now();
        let (mut seen, mut changed) = (self.work.bytes(), Instant::now());
        while changed.elapsed() < QUIET && since.elapsed() < STRAGGLERS && !self.work.is_finished() {
            std::thread::sleep(LOOK);
            if self.work.bytes() != seen {
                (seen, changed) = (self.work.bytes(), Instant::now());
            }
        }
    }

    /// Stops it now.
    pub(crate) fn stop(&self) {
        self.work.stop();
    }

    /// Notes that the test has ended: what is received counts at least up to this moment, however long ago the last
    /// datagram arrived.
    pub(crate) fn note_end(&mut self) {
        self.ended_ns.get_or_insert_with(clock::monotonic_ns);
    }

    /// Waits for its end.
    pub(crate) fn finish(&mut self) -> Result<Outcome> {
        self.stop();
        let mut outcome = self.work.finish()?;
        if let End::Received(received) = &mut outcome.end {
            extend(received, outcome.streams.len() as u64, self.ended_ns);
            outcome.counted = Nanos(received.counted_ns());
        }
        Ok(outcome)
    }
}

/// Extends a receiver's time to the end of the test, instead of the last datagram, which takes its share of time like
/// each before it: n datagrams are n - 1 gaps. If the end was not noted, or the last datagram came after it, the
/// share is that of the others.
fn extend(received: &mut Received, streams: u64, ended_ns: Option<u64>) {
    let Some(first_ns) = received.first_byte_at_ns else { return };
    let last_ns = received.duration_ns;
    let noted_ns = ended_ns.map(|ended_ns| ended_ns.saturating_sub(first_ns));
    let end_ns = noted_ns.filter(|&end_ns| end_ns > last_ns).unwrap_or_else(|| {
        let came = received.datagrams.as_ref().map_or(0, |datagrams| datagrams.counts.received);
        let gaps = came.saturating_sub(streams);
        let share = u128::from(last_ns) * u128::from(streams) / u128::from(gaps.max(1));
        if gaps > 0 { last_ns.saturating_add(u64::try_from(share).unwrap_or(0)) } else { last_ns }
    });
    if end_ns <= last_ns {
        return;
    }
    received.duration_ns = end_ns;
    received.samples.push(ReceiverSample { at_ns: end_ns, bytes: received.bytes, ..Default::default() });
}

#[cfg(test)]
mod tests {
    use bdp_model::statistics::arrivals::ArrivalCounts;
    use bdp_wire::control::DatagramsReceived;

    use super::*;

    /// Four datagrams of 32 KiB, one each 250 ms: 1.05 Mbit/s.
    fn sparse() -> Received {
        Received {
            first_byte_at_ns: Some(5_000_000_000),
            bytes: 4 << 15,
            duration_ns: 750_000_000,
            datagrams: Some(DatagramsReceived {
                counts: ArrivalCounts { received: 4, ..Default::default() },
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn bps(received: &Received) -> u64 {
        received.bytes * 8 * 1_000_000_000 / received.counted_ns()
    }

    #[test]
    fn sparse_datagrams_have_the_rate_they_were_sent_at() {
        assert_eq!(bps(&sparse()), 1_398_101, "by the gaps between them");
        // At the end of the test, without one, and where the last came after it.
        for ended_ns in [Some(6_000_000_000), None, Some(5_100_000_000)] {
            let mut received = sparse();
            extend(&mut received, 1, ended_ns);
            assert_eq!(bps(&received), 1_048_576, "{ended_ns:?}");
            assert_eq!(received.samples.last().map(|s| (s.at_ns, s.bytes)), Some((1_000_000_000, 4 << 15)));
        }
    }

    #[test]
    fn silence_until_the_end_counts_and_one_datagram_has_no_share() {
        let mut received = sparse();
        extend(&mut received, 1, Some(9_000_000_000));
        assert_eq!((received.duration_ns, received.samples.len()), (4_000_000_000, 1));
        let mut single = Received { duration_ns: 0, ..sparse() };
        extend(&mut single, 4, None);
        assert_eq!(single.duration_ns, 0, "one of each stream has no gap to go by");
        let mut nothing = Received::default();
        extend(&mut nothing, 1, Some(7));
        assert_eq!(nothing, Received::default());
    }
}
