//! The datagrams of one direction of a test: sent or received by the same engine as bdp's own, behind iperf3's header.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bdp_model::payload::CpuList;
use bdp_model::units::Nanos;
use bdp_wire::control::Received;

use super::flow::{End, Outcome, StreamCount};
use crate::EngineError;
use crate::background::Background;
use crate::crew;
use crate::datagram::{self, DatagramReceivePlan, DatagramSendPlan, Layout, Stream, StreamTally};
use crate::meter::Meter;

/// How long nothing may have come for a flow to be over once its sender has ended, and how long that may take at most.
const QUIET: Duration = Duration::from_millis(100);
const STRAGGLERS: Duration = Duration::from_millis(500);
/// From one look to the next.
const LOOK: Duration = Duration::from_millis(10);

/// A flow that runs on threads of its own.
pub(crate) struct Flow {
    sends: bool,
    /// What goes on: bytes are those of payload.
    pub(super) work: Background<Outcome>,
}

/// Streams of sockets that are connected to their other ends.
pub(crate) fn streams(sockets: Vec<UdpSocket>, wide: bool) -> Vec<Stream> {
    sockets.into_iter().map(|socket| Stream { socket, layout: Layout::Iperf3 { wide } }).collect()
}

impl Flow {
    /// Starts to send, on these processors where any are given.
    pub(crate) fn send(
        streams: Vec<Stream>,
        plan: DatagramSendPlan,
        cpus: Option<CpuList>,
    ) -> Result<Self, EngineError> {
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

    /// Starts to receive, likewise.
    pub(crate) fn receive(
        streams: Vec<Stream>,
        plan: DatagramReceivePlan,
        cpus: Option<CpuList>,
    ) -> Result<Self, EngineError> {
        let count = streams.len();
        Self::start(false, move |stop, meter| {
            crew::keep_to_listed(cpus.as_ref())?;
            let (received, tallies) = match datagram::receive::each_over(streams, &plan, stop, meter) {
                // A path that lets nothing through is one that was measured.
                Err(EngineError::Silence { .. }) => (
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
        work: impl FnOnce(&AtomicBool, &Meter) -> Result<Outcome, EngineError> + Send + 'static,
    ) -> Result<Self, EngineError> {
        let mut background = Background::default();
        background.start(work)?;
        Ok(Self { sends, work: background })
    }

    /// Whether this end sends.
    pub(crate) fn sends(&self) -> bool {
        self.sends
    }

    /// Waits until nothing has come for a moment.
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

    /// Ends it, as of now.
    pub(crate) fn stop(&self) {
        self.work.stop();
    }

    /// Waits for its end.
    pub(crate) fn finish(&mut self) -> Result<Outcome, EngineError> {
        self.stop();
        self.work.finish()
    }
}
