//! The TCP streams of one direction of a test: sent or received by the same engine as bdp's own flows, with the
//! counts of each stream that iperf3's results need.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicBool;

use bdp_model::flow::application::Application;
use bdp_model::flow::payload::{CpuList, Zerocopy};
use bdp_model::units::Nanos;
use bdp_sys::{clock, socket, tcp_info};
use bdp_wire::control::Received;
use bdp_wire::iperf3::Parameters;

use super::outcome::{End, INTERVAL, Outcome, StreamCount};
use bdp_flow::background::Background;
use bdp_flow::crew::Crew;
use bdp_flow::error::{FlowError, Result};
use bdp_flow::meter::Meter;
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};

/// Bytes per read of streams that are no longer counted.
const DRAIN_BYTES: usize = 1 << 20;

/// How long after two round trips the last segments are assumed to have arrived, if none was lost before.
const TAIL_NS: u64 = 2_000_000;

/// How to move the streams of a direction.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Bytes per write.
    pub(crate) length_bytes: u64,
    /// Time limit; the leader of the test ends it earlier, by [`Flow::stop`].
    pub(crate) longest: Nanos,
    /// Beginning that is not counted.
    pub(crate) omit: Nanos,
    /// A sender ends after this many bytes.
    pub(crate) volume_bytes: Option<u64>,
    /// Rate limit of each sent stream, bit/s.
    pub(crate) rate_bps: Option<u64>,
    /// Interval of readings.
    pub(crate) interval: Nanos,
    /// Whether the kernel chooses the receiver's window.
    pub(crate) autotuned: bool,
    /// How a sender gives its bytes to the kernel.
    pub(crate) zerocopy: Zerocopy,
    /// Processors that its threads are pinned to.
    pub(crate) cpus: Option<CpuList>,
}

impl Plan {
    /// Returns the plan of a client's request, limited to `longest`, with this send rate.
    pub(crate) fn of(parameters: &Parameters, longest: Nanos, rate_bps: Option<u64>) -> Self {
        Self {
            length_bytes: parameters.length_bytes,
            longest,
            omit: Nanos::secs(parameters.omit_seconds),
            // Bytes sent before counting begins are not part of the volume, and their number is unknown in advance.
            volume_bytes: parameters.volume_bytes().filter(|_| parameters.omit_seconds == 0),
            rate_bps,
            interval: INTERVAL,
            autotuned: parameters.window_bytes.is_none(),
            zerocopy: Zerocopy::Auto,
            cpus: None,
        }
    }
}

/// A flow that runs on a thread of its own. Its connections stay open until it is dropped.
pub(crate) struct Flow {
    sends: bool,
    /// Whether it ends after a number of bytes, and not on request.
    by_volume: bool,
    /// The running work.
    pub(super) work: Background<End>,
    /// Duplicates of the connections: for their counts, and to outlive the engine.
    taps: Vec<TcpStream>,
    counted_from_ns: u64,
    counted_from: Vec<StreamCount>,
    /// When it ended, and a sender's counts at that time.
    ended: Option<(u64, Vec<StreamCount>)>,
}

impl Flow {
    /// Starts sending.
    pub(crate) fn send(streams: Vec<TcpStream>, plan: &Plan) -> Result<Self> {
        let by_volume = plan.volume_bytes.is_some();
        let plan = SendPlan {
            length_bytes: plan.length_bytes,
            longest: plan.longest,
            bytes: plan.volume_bytes,
            rate_bps: plan.rate_bps,
            whole_writes: true,
            interval: plan.interval,
            zerocopy: plan.zerocopy,
            patterned: false,
            application: Application::default(),
            crew: Crew::listed(streams.len(), plan.cpus.as_ref()),
        };
        Self::start(streams, true, by_volume, move |streams, stop, meter| {
            send::over(streams, &plan, stop, meter).map(End::Sent)
        })
    }

    /// Starts receiving.
    pub(crate) fn receive(streams: Vec<TcpStream>, plan: &Plan) -> Result<Self> {
        let by_volume = plan.volume_bytes.is_some();
        let plan = ReceivePlan {
            duration: plan.longest,
            omit: plan.omit,
            interval: plan.interval,
            patience: plan.longest,
            window_bytes: None,
            // The last bytes of a volume may be fewer than the low-water mark, and no end of the stream follows them.
            coalesce: plan.autotuned && !by_volume,
            check: false,
            application: Application::default(),
            crew: Crew::listed(streams.len(), plan.cpus.as_ref()),
        };
        let count = streams.len();
        Self::start(streams, false, by_volume, move |streams, stop, meter| {
            match receive::over(streams, &plan, stop, meter) {
                // A path that carries no data has still been measured.
                Err(FlowError::Silence { .. }) => {
                    Ok(End::Received(Received { stream_bytes: vec![0; count], ..Default::default() }))
                }
                other => other.map(End::Received),
            }
        })
    }

    fn start(
        streams: Vec<TcpStream>,
        sends: bool,
        by_volume: bool,
        work: impl FnOnce(Vec<TcpStream>, &AtomicBool, &Meter) -> Result<End> + Send + 'static,
    ) -> Result<Self> {
        let taps = streams.iter().map(TcpStream::try_clone).collect::<Result<Vec<_>, _>>();
        let taps = taps.map_err(FlowError::io("reopen a stream"))?;
        let mut background = Background::default();
        background.start(move |stop, meter| work(streams, stop, meter))?;
        Ok(Self {
            sends,
            by_volume,
            work: background,
            counted_from: vec![StreamCount::default(); taps.len()],
            taps,
            counted_from_ns: clock::monotonic_ns(),
            ended: None,
        })
    }

    /// Whether this end sends.
    pub(crate) fn sends(&self) -> bool {
        self.sends
    }

    /// Notes that the omitted beginning is over and counting starts. A receiver knows this itself.
    pub(crate) fn begin_counting(&mut self) {
        self.counted_from_ns = clock::monotonic_ns();
        self.counted_from = self.counts();
    }

    /// Returns bytes sent, without retransmissions, and retransmitted segments of each stream until now. Data waiting
    /// in the send buffer is not counted.
    fn counts(&self) -> Vec<StreamCount> {
        let count = |tap: &TcpStream| {
            let info = tcp_info::read(tap).unwrap_or_default();
            let again = info.bytes_retrans.unwrap_or(0);
            StreamCount {
                bytes: info
                    .bytes_sent
                    .map(|sent| sent.saturating_sub(again))
                    .or(info.bytes_acked)
                    .unwrap_or(0),
                retransmits: info.total_retrans.map(u64::from),
                ..Default::default()
            }
        };
        self.taps.iter().map(count).collect()
    }

    /// Returns how much longer data given to this kernel may be in flight, judging by how long its amount has not
    /// changed: zero once everything is acknowledged, `None` if more is to come. An acknowledgement of the last two
    /// segments may be delayed by 40 ms and more (RFC 1122, section 4.2.3.2), when they have long arrived.
    pub(crate) fn last_on_its_way(&self) -> Option<Nanos> {
        let mut longest = Nanos::ZERO;
        for tap in &self.taps {
            let info = tcp_info::read(tap).ok()?;
            if info.notsent_bytes.unwrap_or(0) > 0 {
                return None;
            }
            let there_ns = 2 * info.rtt_ns.unwrap_or(0) + TAIL_NS;
            longest = match info.unacked_segments.unwrap_or(0) {
                0 => longest,
                1 | 2 if info.total_retrans == Some(0) => longest.max(Nanos(there_ns)),
                _ => return None,
            };
        }
        Some(longest)
    }

    /// Notes that the test has ended: nothing more is sent; data in flight is received.
    pub(crate) fn note_end(&mut self) {
        if self.ended.is_none() {
            let counts = if self.sends { self.counts() } else { Vec::new() };
            self.ended = Some((clock::monotonic_ns(), counts));
        }
    }

    /// Stops it now; the reception of a volume ended with its last byte.
    pub(crate) fn stop(&mut self) {
        if self.sends || !self.by_volume {
            self.note_end();
        }
        self.work.stop();
    }

    /// Waits for the engine's end; the connections stay open.
    pub(crate) fn finish(&mut self) -> Result<Outcome> {
        self.stop();
        let end = self.work.finish()?;
        let congestion = self.taps.first().and_then(|tap| socket::congestion(tap).ok());
        Ok(match end {
            End::Sent(sent) => {
                let (ended_ns, counts) = self.ended.take().unwrap_or_default();
                let since = |now: &StreamCount, before: &StreamCount| StreamCount {
                    bytes: now.bytes.saturating_sub(before.bytes),
                    retransmits: now.retransmits.map(|n| n.saturating_sub(before.retransmits.unwrap_or(0))),
                    ..Default::default()
                };
                Outcome {
                    streams: counts.iter().zip(&self.counted_from).map(|(n, b)| since(n, b)).collect(),
                    counted: Nanos(ended_ns.saturating_sub(self.counted_from_ns)),
                    congestion: Some(sent.congestion.clone()),
                    end: End::Sent(sent),
                }
            }
            End::Received(mut received) => {
                self.cut(&mut received);
                Outcome {
                    streams: self
                        .received(&received)
                        .into_iter()
                        .map(|bytes| StreamCount { bytes, ..Default::default() })
                        .collect(),
                    counted: self.counted(&received),
                    congestion,
                    end: End::Received(received),
                }
            }
        })
    }

    /// Returns when the last byte arrived, or the end of the test was announced, whichever was later. The engine
    /// notices later still that it is to stop, or that the connections are closed now.
    fn end_ns(&self) -> u64 {
        self.ended.as_ref().map_or(0, |(ended_ns, _)| *ended_ns).max(self.work.last_byte_ns())
    }

    /// Ends the received data at [`Flow::end_ns`].
    fn cut(&self, received: &mut Received) {
        let Some(first) = received.first_byte_at_ns else { return };
        let duration_ns = self.end_ns().saturating_sub(first).min(received.duration_ns);
        received.duration_ns = duration_ns;
        received.counted_from.at_ns = received.counted_from.at_ns.min(duration_ns);
        for sample in &mut received.samples {
            sample.at_ns = sample.at_ns.min(duration_ns);
        }
    }

    /// Returns how long received data was counted. Without an omitted beginning, as in iperf3, since the test began:
    /// the first of few bytes may be the last.
    fn counted(&self, received: &Received) -> Nanos {
        if received.counted_from.at_ns > 0 || received.first_byte_at_ns.is_none() {
            return Nanos(received.counted_ns());
        }
        let end_ns = received.first_byte_at_ns.unwrap_or(0) + received.duration_ns;
        Nanos(end_ns.saturating_sub(self.counted_from_ns))
    }

    /// Returns the bytes of each stream after the omitted beginning. If there is none, all count, including those of
    /// the first reads, with which the engine begins to count: these are divided by what it lacks of the kernel's
    /// count of each stream.
    fn received(&self, received: &Received) -> Vec<u64> {
        let mut streams = received.stream_bytes.clone();
        if received.counted_from.at_ns > 0 || received.counted_from.bytes == 0 {
            return streams;
        }
        let lacking: Vec<u64> = self
            .taps
            .iter()
            .zip(&streams)
            .map(|(tap, &bytes)| {
                let kernel = tcp_info::read(tap).ok().and_then(|info| info.bytes_received);
                kernel.unwrap_or(0).saturating_sub(bytes)
            })
            .collect();
        let sum: u64 = lacking.iter().sum();
        let mut left = received.counted_from.bytes;
        for (stream, lacking) in streams.iter_mut().zip(&lacking) {
            let share =
                u128::from(received.counted_from.bytes) * u128::from(*lacking) / u128::from(sum.max(1));
            let share = u64::try_from(share).unwrap_or(0).min(left);
            *stream += share;
            left -= share;
        }
        if let Some(first) = streams.first_mut() {
            *first += left;
        }
        streams
    }

    /// Closes the sending half of each connection, so that a receiver does not wait for the rest of a block.
    pub(crate) fn close(&self) {
        for tap in &self.taps {
            // One that the other end has closed is closed.
            let _ = tap.shutdown(Shutdown::Write);
        }
    }

    /// Discards further data without counting it, so that the other end does not block. Never waits.
    pub(crate) fn drain(&self) {
        let mut room = vec![0; DRAIN_BYTES];
        for tap in &self.taps {
            while socket::discard(tap, &mut room).is_ok_and(|length| length > 0) {}
        }
    }
}
