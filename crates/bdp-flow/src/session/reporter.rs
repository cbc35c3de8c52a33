//! Progress and interruption of a measurement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest};
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;

use super::error::{Result, SessionError};
use super::progress::{ArrivalReading, Progress, Stage};
use crate::background::Passed;

/// Shortest interval of progress reports, and so the delay of a raised cancel flag.
pub const SHORTEST_TICK: Duration = Duration::from_millis(100);

/// Goodput since the last report, in bit/s.
#[derive(Default)]
pub struct Goodput {
    /// Time over which it is measured.
    pub span: Option<Nanos>,
    /// Goodput of each direction.
    pub ways: Vec<(Direction, f64)>,
    /// Goodput of each stream.
    pub streams: Vec<(Direction, Vec<f64>)>,
    /// The kernel's report of each sent stream.
    pub senders: Vec<(Direction, Vec<TcpInfo>)>,
    /// Arrivals so far of datagrams that the local end receives.
    pub arrivals: Vec<(Direction, Vec<ArrivalReading>)>,
    /// Payload size of the datagrams that the local end sends.
    pub datagram_bytes: Option<u64>,
    /// Whether the stage is over.
    pub is_last: bool,
}

impl Goodput {
    /// Returns the report of a finished stage, with the kernel's last report of each sent stream.
    pub fn last(self, mut senders: Vec<(Direction, Vec<TcpInfo>)>) -> Self {
        senders.retain(|(_, infos)| !infos.is_empty());
        Self { senders, is_last: true, ..self }
    }

    /// Computes goodput from the bytes that each direction moved within a span, with the kernel's report of each sent
    /// stream.
    pub fn of(
        span: Duration,
        moved: Vec<(Direction, Passed)>,
        mut senders: Vec<(Direction, Vec<TcpInfo>)>,
    ) -> Self {
        senders.retain(|(_, infos)| !infos.is_empty());
        let bps = |&bytes: &u64| bytes as f64 * 8.0 / span.as_secs_f64().max(1e-9);
        Self {
            span: Some(Nanos::from(span)),
            ways: moved.iter().map(|(way, moved)| (*way, bps(&moved.bytes))).collect(),
            streams: moved.iter().map(|(way, m)| (*way, m.streams.iter().map(bps).collect())).collect(),
            senders,
            datagram_bytes: moved.iter().map(|(_, m)| m.datagram_bytes).find(|&bytes| bytes > 0),
            arrivals: moved
                .into_iter()
                .filter(|(_, m)| !m.arrivals.is_empty())
                .map(|(way, m)| (way, m.arrivals))
                .collect(),
            is_last: false,
        }
    }

    /// Returns it as the progress of a stage.
    pub fn progress(self, stage: Stage, elapsed: Duration, total: Nanos, rtt_ns: Option<u64>) -> Progress {
        Progress {
            stage,
            elapsed: Nanos::from(elapsed),
            total,
            span: self.span,
            goodput_bps: self.ways,
            stream_goodput_bps: self.streams,
            sender_infos: self.senders,
            arrivals: self.arrivals,
            datagram_bytes: self.datagram_bytes,
            is_last: self.is_last,
            rtt_ns,
        }
    }
}

/// Reports progress and handles cancellation.
pub struct Reporter<'a> {
    progress: &'a mut dyn FnMut(&Progress),
    /// Raised to end the measurement.
    pub cancel: &'a AtomicBool,
    /// Interval of reports.
    pub tick: Duration,
    /// Whether the cancel flag has taken effect: a running flow was ended, and the results so far are put together.
    pub concludes: bool,
}

impl<'a> Reporter<'a> {
    /// Creates a reporter for a request that has not begun.
    pub fn new(
        request: &MeasureRequest,
        progress: &'a mut dyn FnMut(&Progress),
        cancel: &'a AtomicBool,
    ) -> Self {
        // A stream is a descriptor; if the limit cannot be raised, this shows when it is reached.
        let _ = bdp_sys::process::raise_descriptor_limit();
        let tick = request.spec.interval.to_duration().max(SHORTEST_TICK);
        Self { progress, cancel, tick, concludes: false }
    }

    /// Reports a stage's progress; fails if cancelled.
    pub fn report(
        &mut self,
        stage: Stage,
        since: Instant,
        total: Nanos,
        goodput: Goodput,
        rtt_ns: Option<u64>,
    ) -> Result<()> {
        self.show(stage, since.elapsed(), total, goodput, rtt_ns);
        self.check_cancel()
    }

    /// Like [`Reporter::report`], but leaves the cancel flag to the caller.
    pub fn show(
        &mut self,
        stage: Stage,
        elapsed: Duration,
        total: Nanos,
        goodput: Goodput,
        rtt_ns: Option<u64>,
    ) {
        (self.progress)(&goodput.progress(stage, elapsed, total, rtt_ns));
    }

    /// Fails if cancellation is requested.
    pub fn check_cancel(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) && !self.concludes {
            Err(SessionError::Cancelled)
        } else {
            Ok(())
        }
    }
}

impl Reporter<'_> {
    /// Whether cancellation has just been requested with results to conclude; it is ignored from then on. Without
    /// results it is an error.
    pub fn begins_to_conclude(&mut self, any: bool) -> Result<bool> {
        match self.check_cancel() {
            Err(_) if any => {
                self.concludes = true;
                Ok(true)
            }
            other => other.map(|()| false),
        }
    }

    /// Returns the results of a direction; after an interruption, a failure counts as cancelled.
    pub fn unless_cut_short<T, E: Into<SessionError>>(&self, result: Result<T, E>) -> Result<T> {
        result.map_err(|error| if self.concludes { SessionError::Cancelled } else { error.into() })
    }

    /// Adds a round's results, or concludes with those of earlier rounds; returns whether another round may begin.
    pub fn go_on(
        &mut self,
        directions: &mut Vec<DirectionResult>,
        round: Result<Vec<DirectionResult>>,
    ) -> Result<bool> {
        match round {
            Ok(results) => directions.extend(results),
            Err(SessionError::Cancelled) if !directions.is_empty() => self.concludes = true,
            Err(error) => return Err(error),
        }
        Ok(!self.concludes)
    }

    /// Adds a caveat to a measurement that was interrupted.
    pub fn add_caveat(
        &self,
        request: &MeasureRequest,
        directions: &[DirectionResult],
        caveats: &mut Vec<Caveat>,
    ) {
        if self.concludes {
            caveats.insert(0, caveat(request, directions));
        }
    }
}

/// Returns the caveat of a measurement that was interrupted.
pub fn caveat(request: &MeasureRequest, directions: &[DirectionResult]) -> Caveat {
    let is_missing = |way: &&Direction| !directions.iter().any(|result| result.direction == **way);
    Caveat::Interrupted { not_measured: request.directions.iter().filter(is_missing).copied().collect() }
}
