//! The other end of a measurement, each in its own protocol, as the driver sees it.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_model::caveat::{Caveat, NotMeasured};
use bdp_model::measurement::{Direction, DirectionResult, HostFacts, MeasureRequest, PathFacts};
use bdp_model::one_way::{ClockOffset, ClockSkew, EachWay};
use bdp_model::probes::{ProbeOutcome, ProbeSeries};
use bdp_model::record::RttSummary;
use bdp_model::settling::Settled;
use bdp_sys::tcp_info::TcpInfo;
use bdp_wire::control::{Received, Sent};

use super::error::{Result, SessionError};
use super::reporter::Reporter;
use crate::background::Passed;
use crate::host::Baseline;

/// A server to measure with. It handles only the conversation of a round: the driver runs the rounds, reports
/// progress, handles interruptions and makes the results.
pub trait Peer {
    /// Is connected with as far as a measurement needs before its first round; gives the request as the peer grants it.
    fn open(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<MeasureRequest>;

    /// Starts probes, where the peer answers any; gives when the first was sent that counts, by the monotonic clock.
    fn start_probes(&mut self, _request: &MeasureRequest, _context: &mut Context<'_>) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Probes were alone on the path until a moment, and are no more: the last may be awaited, and the path looked at.
    fn end_idle(
        &mut self,
        _request: &MeasureRequest,
        _until_ns: u64,
        _context: &mut Context<'_>,
    ) -> Result<()> {
        Ok(())
    }

    /// The directions that run at the same time, each time.
    fn rounds(&self, request: &MeasureRequest) -> Vec<Vec<Direction>> {
        rounds(request)
    }

    /// Makes the flows of a round, and has them run.
    fn begin(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        context: &mut Context<'_>,
    ) -> Result<()>;

    /// Waits some milliseconds for what comes; whether the round is over.
    fn poll(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<Polled>;

    /// What each direction has moved since this was asked last.
    fn moved(&mut self) -> Vec<(Direction, Passed)>;

    /// What this end's kernel reports of each stream that it sends.
    fn sender_infos(&self) -> Vec<(Direction, Vec<TcpInfo>)>;

    /// Whether a short flow may follow those of the test.
    fn runs_experiments(&self) -> bool {
        false
    }

    /// Adds connections to a round that runs, as many as it began with; whether the peer lets it.
    fn grow(
        &mut self,
        _request: &MeasureRequest,
        _way: Direction,
        _context: &mut Context<'_>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// What makes foreign probes, where the peer answers such.
    fn foreign_prober(&self, _request: &MeasureRequest) -> Option<Arc<dyn ForeignProber>> {
        None
    }

    /// Whether a round that is interrupted now has something to conclude.
    fn has_begun(&self) -> bool;

    /// Has the round end now, as if its time were over.
    fn interrupt(&mut self, context: &mut Context<'_>) -> Result<()>;

    /// Lets a round go that has nothing to conclude.
    fn abandon(&mut self) {}

    /// What this end knows by itself of connections of a round that broke; nothing of what it does not.
    fn salvage(&mut self, _request: &MeasureRequest) -> Vec<Outcome> {
        Vec::new()
    }

    /// What came of a round that is over, in the order of its directions.
    fn finish(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<Vec<Outcome>>;

    /// Waits for late answers to probes that were sent until a moment.
    fn await_probes(&mut self, _until_ns: u64, _context: &mut Context<'_>) -> Result<()> {
        Ok(())
    }

    /// The probes, where there are any.
    fn probes(&self) -> Option<&dyn Probes> {
        None
    }

    /// Round trips at rest, of a peer that answers no probes.
    fn idle_rtt(&self) -> Option<RttSummary> {
        None
    }

    /// The smallest round trip, of a peer that answers no probes.
    fn smallest_rtt_ns(&self) -> Option<u64> {
        self.idle_rtt().map(|rtt| rtt.min)
    }

    /// Adds what was found of the path apart from flows.
    fn note_path(&self, _path: &mut PathFacts) {}

    /// What an error of a round is, by what is known of the path.
    fn explain(&self, error: SessionError, _request: &MeasureRequest) -> SessionError {
        error
    }

    /// Why a round could not be made where others were, which stand; `None` where nothing stands then.
    fn unmeasured(&self, _error: &SessionError) -> Option<NotMeasured> {
        None
    }

    /// Whether it is known how the sender of a direction keeps to a rate.
    fn knows_pacing(&self, _way: Direction) -> bool {
        true
    }

    /// What the other machine is.
    fn remote_facts(&mut self, request: &MeasureRequest) -> Result<HostFacts>;

    /// What a reader should know beyond what holds of any peer.
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
    /// How long the handshake took, and from the request to the response; `None` of what came to nothing. Ends soon once `stop` is
    /// raised.
    fn probe(&self, patience: Duration, stop: &AtomicBool) -> (Option<u64>, Option<u64>);
}

/// Measures round trips during flows.
pub trait Probes {
    /// The one that came last.
    fn last_ns(&self) -> Option<u64>;

    /// The smallest of all.
    fn smallest_ns(&self) -> Option<u64>;

    /// What became of those that count within a time (monotonic, nanoseconds).
    fn outcomes(&self, sent_within: &Range<u64>) -> Vec<ProbeOutcome>;

    /// All so far, since a moment (monotonic, nanoseconds).
    fn series(&self, since_ns: u64) -> ProbeSeries;

    /// Delays each way of the same; `None` where the other end gave no times.
    fn each_way(&self, _sent_within: &Range<u64>) -> Option<EachWay> {
        None
    }

    /// How much faster the other end's clock runs; `None` where that is not known.
    fn clock_skew(&self) -> Option<ClockSkew> {
        None
    }

    /// Round trips a minute of the same.
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
