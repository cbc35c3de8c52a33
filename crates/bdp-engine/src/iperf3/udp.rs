//! The datagrams of one direction of a test: sent or received by the same engine as bdp's own, behind iperf3's header.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;
use bdp_wire::control::Received;

use super::flow::{End, Outcome, StreamCount};
use crate::EngineError;
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
    stop: Arc<AtomicBool>,
    meter: Arc<Meter>,
    work: Option<JoinHandle<Result<Outcome, EngineError>>>,
    shown: u64,
    shown_streams: Vec<u64>,
}

/// Streams of sockets that are connected to their other ends.
pub(crate) fn streams(sockets: Vec<UdpSocket>, wide: bool) -> Vec<Stream> {
    sockets.into_iter().map(|socket| Stream { socket, layout: Layout::Iperf3 { wide } }).collect()
}

impl Flow {
    /// Starts to send.
    pub(crate) fn send(streams: Vec<Stream>, plan: DatagramSendPlan) -> Result<Self, EngineError> {
        Self::start(true, move |stop, meter| {
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

    /// Starts to receive.
    pub(crate) fn receive(streams: Vec<Stream>, plan: DatagramReceivePlan) -> Result<Self, EngineError> {
        let count = streams.len();
        Self::start(false, move |stop, meter| {
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
        let (stop, meter) = (Arc::<AtomicBool>::default(), Arc::<Meter>::default());
        let (on_thread, shown) = (Arc::clone(&stop), Arc::clone(&meter));
        Ok(Self {
            sends,
            stop,
            meter,
            work: Some(crate::agent::start(move || work(&on_thread, &shown))?),
            shown: 0,
            shown_streams: Vec::new(),
        })
    }

    /// Whether this end sends.
    pub(crate) fn sends(&self) -> bool {
        self.sends
    }

    /// Bytes of payload so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.meter.bytes()
    }

    /// The same since this was asked last.
    pub(crate) fn bytes_since(&mut self) -> u64 {
        let now = self.meter.bytes();
        let since = now.saturating_sub(self.shown);
        self.shown = now;
        since
    }

    /// The same of each stream; empty where that is not told.
    pub(crate) fn stream_bytes_since(&mut self) -> Vec<u64> {
        super::flow::since(self.meter.streams(), &mut self.shown_streams)
    }

    /// Whether there is nothing more to do.
    pub(crate) fn is_finished(&self) -> bool {
        self.work.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until nothing has come for a moment.
    pub(crate) fn settle(&self) {
        let since = Instant::now();
        let (mut seen, mut changed) = (self.bytes(), Instant::now());
        while changed.elapsed() < QUIET && since.elapsed() < STRAGGLERS && !self.is_finished() {
            std::thread::sleep(LOOK);
            if self.bytes() != seen {
                (seen, changed) = (self.bytes(), Instant::now());
            }
        }
    }

    /// Ends it, as of now.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for its end.
    pub(crate) fn finish(&mut self) -> Result<Outcome, EngineError> {
        self.stop();
        let work = self.work.take().ok_or_else(|| EngineError::Refused("a flow ended twice".to_owned()))?;
        work.join().unwrap_or_else(|_| Err(EngineError::Refused("the thread of a flow panicked".to_owned())))
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop();
        if let Some(work) = self.work.take() {
            let _ = work.join();
        }
    }
}
