//! The other end of a measurement, each in its own protocol, as the driver sees it.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_model::finding::caveat::{Caveat, NotMeasured};
use bdp_model::measurement::settling::Settled;
use bdp_model::measurement::{Direction, DirectionResult, HostFacts, MeasureRequest, PathFacts};
use bdp_model::probes::one_way::{ClockOffset, ClockSkew, EachWay};
use bdp_model::probes::{ProbeOutcome, ProbeSeries};
use bdp_model::record::RttSummary;
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;
use bdp_wire::control::{ProbeSample, Probed, Received, Sent};

use super::error::{Result, SessionError};
use super::reporter::Reporter;
use crate::background::Passed;
use crate::host::Baseline;

/// A server to measure with. It handles only the conversation of a round: the driver runs the rounds, reports
/// progress, handles interruptions and makes the results.
pub trait Peer {
    /// Connects as far as a measurement needs before its first round; returns the request as the peer grants it.
    fn open(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<MeasureRequest>;

    /// Starts probes, if the peer answers any; returns when the first one that counts was sent, by the monotonic
    /// clock.
    fn start_probes(&mut self, _request: &MeasureRequest, _context: &mut Context<'_>) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Notes that probes were alone on the path until a moment: the last one may be awaited, and the path examined.
    fn end_idle(
        &mut self,
        _request: &MeasureRequest,
        _until_ns: u64,
        _context: &mut Context<'_>,
    ) -> Result<()> {
        Ok(())
    }

    /// Returns the directions of each round, which run at the same time.
    fn rounds(&self, request: &MeasureRequest) -> Vec<Vec<Direction>> {
        rounds(request)
    }

    /// Makes the flows of a round, and starts them.
    fn begin(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        context: &mut Context<'_>,
    ) -> Result<()>;

    /// Waits some milliseconds for events; returns whether the round is over.
    fn poll(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<Polled>;

    /// Returns what each direction has moved since the previous call.
    fn moved(&mut self) -> Vec<(Direction, Passed)>;

    /// Returns the local kernel's report of each stream that it sends.
    fn sender_infos(&self) -> Vec<(Direction, Vec<TcpInfo>)>;

    /// Whether short flows may follow those of the test.
    fn runs_experiments(&self) -> bool {
        false
    }

    /// Adds connections to a running round, as many as it began with; returns whether the peer allows it.
    fn grow(
        &mut self,
        _request: &MeasureRequest,
        _way: Direction,
        _context: &mut Context<'_>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Returns the maker of foreign probes, if the peer answers any.
    fn foreign_prober(&self, _request: &MeasureRequest) -> Option<Arc<dyn ForeignProber>> {
        None
    }

    /// Whether a round that is interrupted now has something to conclude.
    fn has_begun(&self) -> bool;

    /// Ends the round now, as if its time were over.
    fn interrupt(&mut self, context: &mut Context<'_>) -> Result<()>;

    /// Discards a round that has nothing to conclude.
    fn abandon(&mut self) {}

    /// Returns what this end alone knows of a failed round's connections; empty if nothing.
    fn salvage(&mut self, _request: &MeasureRequest) -> Vec<Outcome> {
        Vec::new()
    }

    /// Returns the results of a finished round, in the order of its directions.
    fn finish(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<Vec<Outcome>>;

    /// Waits for late answers to probes sent before a moment.
    fn await_probes(&mut self, _until_ns: u64, _context: &mut Context<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns the probes, if there are any.
    fn probes(&self) -> Option<&dyn Probes> {
        None
    }

    /// Returns idle round trips of a peer that answers no probes.
    fn idle_rtt(&self) -> Option<RttSummary> {
        None
    }

    /// Returns the smallest round trip of a peer that answers no probes.
    fn smallest_rtt_ns(&self) -> Option<u64> {
        self.idle_rtt().map(|rtt| rtt.min)
    }

    /// Adds facts about the path that do not come from flows.
    fn note_path(&self, _path: &mut PathFacts) {}

    /// Returns the cause of a round's error, by what is known of the path.
    fn explain(&self, error: SessionError, _request: &MeasureRequest) -> SessionError {
        error
    }

    /// Returns why a round was not measured although others were, which are kept; `None` if nothing is kept.
    fn unmeasured(&self, _error: &SessionError) -> Option<NotMeasured> {
        None
    }

    /// Whether it is known how the sender of a direction paces.
    fn knows_pacing(&self, _way: Direction) -> bool {
        true
    }

    /// Returns facts about the other machine.
    fn remote_facts(&mut self, request: &MeasureRequest) -> Result<HostFacts>;

    /// Returns caveats in addition to those for any peer.
    fn caveats(&self, _directions: &[DirectionResult]) -> Vec<Caveat> {
        Vec::new()
    }

    /// Output of the server, if it was requested.
    fn server_output(&mut self) -> Vec<serde_json::Value> {
        Vec::new()
    }
}

/// Makes new connections during flows, each with one request and its response.
pub trait ForeignProber: Send + Sync {
    /// Returns the time of the handshake, and from request to response; `None` for a failed one. Ends soon after
    /// `stop` is raised.
    fn probe(&self, patience: Duration, stop: &AtomicBool) -> (Option<u64>, Option<u64>);
}

/// Measures round trips during flows.
pub trait Probes {
    /// Returns all probes so far: recent ones without an answer are in flight.
    fn probed(&self) -> Probed;

    /// Returns how long an answer is awaited.
    fn patience(&self) -> Nanos;

    /// Returns the latest round trip. Asked at each progress: does not copy the probes.
    fn last_ns(&self) -> Option<u64>;

    /// Returns the smallest round trip.
    fn smallest_ns(&self) -> Option<u64>;

    /// Returns the fate of probes that count within a time span (monotonic, nanoseconds).
    fn outcomes(&self, sent_within: &Range<u64>) -> Vec<ProbeOutcome> {
        self.probed().outcomes(sent_within, self.patience()).collect()
    }

    /// Returns all probes so far, with times since a moment (monotonic, nanoseconds).
    fn series(&self, since_ns: u64) -> ProbeSeries {
        self.probed().series(since_ns, self.patience())
    }

    /// Whether every probe that counts before a moment has been answered, or has failed.
    fn is_complete(&self, until_ns: u64) -> bool {
        let is_open = |probe: &ProbeSample| probe.rtt_ns.is_none() && !probe.failed;
        !self.probed().probes.iter().any(|probe| probe.counts_from_ns() < until_ns && is_open(probe))
    }

    /// Returns one-way delays of these probes, each way; `None` if the other end gave no times.
    fn each_way(&self, _sent_within: &Range<u64>) -> Option<EachWay> {
        None
    }

    /// Returns how much faster the other end's clock runs; `None` if unknown.
    fn clock_skew(&self) -> Option<ClockSkew> {
        None
    }

    /// Returns the round trips per minute of these probes.
    fn responsiveness_rpm(&self, _sent_within: &Range<u64>) -> Option<f64> {
        None
    }
}

/// Whether a round is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// It is running.
    Running,
    /// It has ended.
    Over,
}

/// State shared by the driver and a peer.
pub struct Context<'r> {
    /// Progress and cancellation.
    pub reporter: Reporter<'r>,
    /// Caveats so far.
    pub caveats: Vec<Caveat>,
    near: Option<Baseline>,
}

impl<'r> Context<'r> {
    /// Creates the context of a measurement that begins.
    pub fn new(reporter: Reporter<'r>) -> Self {
        Self { reporter, caveats: Vec::new(), near: None }
    }

    /// Records the local address, and this machine's state if it is not known yet.
    pub fn note_local(&mut self, address: IpAddr) {
        self.near.get_or_insert_with(|| Baseline::take(address));
    }

    /// Whether the local address is known.
    pub fn is_connected(&self) -> bool {
        self.near.is_some()
    }

    /// Returns facts about this machine, and what happened on it since its address was known.
    pub fn near_facts(&self) -> HostFacts {
        self.near.as_ref().map_or_else(HostFacts::default, Baseline::facts)
    }
}

/// What both ends report of a flow.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its direction.
    pub way: Direction,
    /// What the receiver reports.
    pub received: Received,
    /// What the sender reports.
    pub sent: Sent,
    /// Offset of the two ends' clocks, if they were compared.
    pub clocks: Option<ClockOffset>,
    /// When its first byte was written or read at the local end, monotonic; `None` if none was.
    pub begun_at_ns: Option<u64>,
    /// Round trips under load in nanoseconds, from a peer that answers no probes.
    pub loaded_rtts_ns: Vec<u64>,
    /// The local kernel's last report of each stream that it sent.
    pub sender_infos: Vec<TcpInfo>,
    /// The projected result of the whole test, if it was ended because its goodput had settled.
    pub settled: Option<Settled>,
    /// Bytes carried besides the payload, by a protocol between it and TCP.
    pub framing_bytes: u64,
    /// Caveats about the flow.
    pub caveats: Vec<Caveat>,
}

impl Outcome {
    /// Creates an outcome from the two ends' reports alone.
    pub fn of(way: Direction, received: Received, sent: Sent) -> Self {
        Self {
            way,
            received,
            sent,
            clocks: None,
            begun_at_ns: None,
            loaded_rtts_ns: Vec::new(),
            sender_infos: Vec::new(),
            settled: None,
            framing_bytes: 0,
            caveats: Vec::new(),
        }
    }

    /// Returns when the path carried the flow, by the local monotonic clock: from its first byte to its end. The
    /// receiver's times count from that byte; a probe sent together with a byte meets the same queue.
    pub fn carried(&self) -> Range<u64> {
        self.begun_at_ns.map_or(0..0, |begun| begun..begun.saturating_add(self.received.duration_ns))
    }

    /// Returns the part of that time which counts: after the omitted beginning.
    pub fn counted(&self) -> Range<u64> {
        let Range { start, end } = self.carried();
        start.saturating_add(self.received.counted_from.at_ns).min(end)..end
    }

    /// Returns the bytes that the sender gave to the kernel, or at least as many as arrived.
    pub fn moved_bytes(&self) -> u64 {
        self.sent.bytes.max(self.received.bytes) + self.framing_bytes
    }
}

/// Returns the rounds: both directions at once, or one after the other.
pub fn rounds(request: &MeasureRequest) -> Vec<Vec<Direction>> {
    if request.bidirectional {
        return vec![vec![Direction::To, Direction::From]];
    }
    request.directions.iter().map(|&way| vec![way]).collect()
}
