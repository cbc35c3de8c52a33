//! Progress of a measurement, and how it is cut short.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::caveat::Caveat;
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest};
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;

use super::error::{Result, SessionError};
use super::progress::{ArrivalReading, Progress, Stage};
use crate::background::Passed;

/// Shortest time from one report of progress to the next, and so from a raised cancel flag to its effect.
pub const SHORTEST_TICK: Duration = Duration::from_millis(100);

/// Goodput since the report before, bit/s.
#[derive(Default)]
pub struct Goodput {
    /// Over how long.
    pub span: Option<Nanos>,
    /// Of each direction.
    pub ways: Vec<(Direction, f64)>,
    /// Of each stream.
    pub streams: Vec<(Direction, Vec<f64>)>,
    /// What the kernel reports of what is sent.
    pub senders: Vec<(Direction, Vec<TcpInfo>)>,
    /// What came so far of datagrams that this end receives.
    pub arrivals: Vec<(Direction, Vec<ArrivalReading>)>,
    /// Payload of the datagrams that this end sends.
    pub datagram_bytes: Option<u64>,
    /// The stage is over.
    pub is_last: bool,
}

impl Goodput {
    /// Of a stage that is over, with what the kernel reported last of what was sent.
    pub fn last(self, mut senders: Vec<(Direction, Vec<TcpInfo>)>) -> Self {
        senders.retain(|(_, infos)| !infos.is_empty());
        Self { senders, is_last: true, ..self }
    }

    /// Of what each direction has moved within a span, and of what the kernel reports of what is sent.
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

    /// As a part of the progress of a stage.
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

/// Progress and cancellation.
pub struct Reporter<'a> {
    progress: &'a mut dyn FnMut(&Progress),
    /// Raised where it is to end.
    pub cancel: &'a AtomicBool,
    /// From one report to the next.
    pub tick: Duration,
    /// The cancel flag has had its effect: a flow that ran was ended, and what there is is put together.
    pub concludes: bool,
}

impl<'a> Reporter<'a> {
    /// For a request of which nothing has been done yet.
    pub fn new(
        request: &MeasureRequest,
        progress: &'a mut dyn FnMut(&Progress),
        cancel: &'a AtomicBool,
    ) -> Self {
        // A stream is a descriptor; where the limit can't be raised it shows when it is reached.
        let _ = bdp_sys::process::raise_descriptor_limit();
        let tick = request.spec.interval.to_duration().max(SHORTEST_TICK);
        Self { progress, cancel, tick, concludes: false }
    }

    /// Tells how far a stage is, unless it is cancelled.
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

    /// As [`Reporter::report`], where the cancel flag is somebody else's to see.
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

    /// Whether the end is asked for.
    pub fn check_cancel(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) && !self.concludes {
            Err(SessionError::Cancelled)
        } else {
            Ok(())
        }
    }
}

impl Reporter<'_> {
    /// Whether the end is asked for just now, with something to conclude: nothing is cancelled any more from then on. Without,
    /// it is cancelled.
    pub fn begins_to_conclude(&mut self, any: bool) -> Result<bool> {
        match self.check_cancel() {
            Err(_) if any => {
                self.concludes = true;
                Ok(true)
            }
            other => other.map(|()| false),
        }
    }

    /// What a direction's results that can't be made are, where it was cut short.
    pub fn unless_cut_short<T, E: Into<SessionError>>(&self, result: Result<T, E>) -> Result<T> {
        result.map_err(|error| if self.concludes { SessionError::Cancelled } else { error.into() })
    }

    /// Adds a round's results, or sees that those before it are all that there is; whether another round may begin.
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

    /// Adds what a reader should know of a measurement that was interrupted.
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

/// What a reader should know of a measurement that was interrupted.
pub fn caveat(request: &MeasureRequest, directions: &[DirectionResult]) -> Caveat {
    let is_missing = |way: &&Direction| !directions.iter().any(|result| result.direction == **way);
    Caveat::Interrupted { not_measured: request.directions.iter().filter(is_missing).copied().collect() }
}
