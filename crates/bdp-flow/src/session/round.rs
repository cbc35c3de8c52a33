//! One round of a measurement: its flows from start to results.

use std::ops::Range;
use std::time::{Duration, Instant};

use bdp_model::flow::method::EndReason;
use bdp_model::measurement::settling::{Settled, Settling};
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest, PathFacts};
use bdp_model::probes::ProbeSeries;
use bdp_model::probes::latency_parts::LatencyParts;
use bdp_model::probes::one_way::EachWayReport;
use bdp_model::record::RttReport;
use bdp_model::units::Nanos;

use super::error::Result;
use super::peer::{Context, Outcome, Peer, Polled, Probes};
use super::progress::Stage;
use super::reporter::Goodput;
use super::{datagrams, outcome};
use crate::background::Passed;
use crate::disturbance::Moved;

/// What rounds need, and what they leave behind.
pub(super) struct Rounds<'a, 'r> {
    pub(super) peer: &'a mut dyn Peer,
    pub(super) context: Context<'r>,
    /// When the path carried only probes, monotonic.
    pub(super) idle: Range<u64>,
    pub(super) path: PathFacts,
    pub(super) moved: Moved,
}

impl Rounds<'_, '_> {
    /// Runs directions at the same time, and combines their results.
    pub(super) fn run(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
    ) -> Result<Vec<DirectionResult>> {
        let stage = if let &[way] = ways { Stage::Direction(way) } else { Stage::Both };
        let outcomes = self.carry_out(request, ways, stage)?;
        let was_cut_short = self.context.reporter.concludes;
        let ended = outcomes.iter().map(|outcome| outcome.counted().end).max().unwrap_or_default();
        if self.peer.await_probes(ended, &mut self.context).is_err() {
            // The flows are over, and their outcomes are not to be lost.
            self.context.reporter.concludes = true;
        }
        self.put_together(request, outcomes, was_cut_short)
    }

    /// Runs flows at the same time until they end.
    pub(super) fn carry_out(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        stage: Stage,
    ) -> Result<Vec<Outcome>> {
        self.peer.begin(request, ways, &mut self.context)?;
        let (since, mut reported) = (Instant::now(), Instant::now());
        let mut settling = match stage {
            Stage::Direction(_) | Stage::Both if request.until_settled => self.settling(ways),
            _ => Vec::new(),
        };
        let mut settled = Vec::new();
        while self.peer.poll(request, &mut self.context)? == Polled::Running {
            if reported.elapsed() >= self.context.reporter.tick {
                let span = reported.elapsed();
                reported = Instant::now();
                let moved = self.peer.moved();
                if settled.is_empty() {
                    settled = settle(&mut settling, since.elapsed(), &moved, request.spec.duration);
                    if !settled.is_empty() {
                        self.peer.interrupt(&mut self.context)?;
                    }
                }
                let goodput = Goodput::of(span, moved, self.peer.sender_infos());
                let rtt = self.peer.probes().and_then(Probes::last_ns);
                self.context.reporter.show(stage, since.elapsed(), request.spec.duration, goodput, rtt);
            }
            match self.context.reporter.begins_to_conclude(self.peer.has_begun()) {
                Ok(true) => self.peer.interrupt(&mut self.context)?,
                Ok(false) => {}
                Err(cancelled) => {
                    self.peer.abandon();
                    return Err(cancelled);
                }
            }
        }
        let rest = Goodput::of(reported.elapsed(), self.peer.moved(), Vec::new());
        let rtt = self.peer.probes().and_then(Probes::last_ns);
        let over = since.elapsed();
        let mut outcomes = self.peer.finish(request, &mut self.context)?;
        for outcome in &mut outcomes {
            outcome.settled =
                settled.iter().find(|(way, _)| *way == outcome.way).map(|(_, settled)| *settled);
        }
        let senders = outcomes.iter().map(|outcome| (outcome.way, outcome.sender_infos.clone())).collect();
        self.context.reporter.show(stage, over, request.spec.duration, rest.last(senders), rtt);
        for outcome in &outcomes {
            let Outcome { way, sent, .. } = outcome;
            self.moved.add(*way, outcome.moved_bytes(), sent.retransmits.unwrap_or(0), sent.mss);
        }
        Ok(outcomes)
    }

    /// Returns round trips without load and while a flow counted: those of probes, or of its own connections if there
    /// are no probes.
    pub(super) fn rtt(&self, outcome: &Outcome) -> RttReport {
        match self.peer.probes() {
            Some(probes) => {
                RttReport::of_probes(probes.outcomes(&self.idle), probes.outcomes(&outcome.counted()))
            }
            None => RttReport::of_loaded(outcome.loaded_rtts_ns.iter().copied()),
        }
    }

    /// Returns the settling of directions that begin, over the shortest known round trip.
    fn settling(&self, ways: &[Direction]) -> Vec<(Direction, u64, Settling)> {
        let least = self.peer.probes().map_or_else(|| self.peer.smallest_rtt_ns(), Probes::smallest_ns);
        let rtt = Nanos(least.unwrap_or(0));
        ways.iter().map(|&way| (way, 0, Settling::over(rtt))).collect()
    }

    /// Makes results from both ends' reports of concurrent flows. A probe is under load if it was sent while the flow
    /// of a direction counted, after its omitted beginning.
    pub(super) fn put_together(
        &mut self,
        request: &MeasureRequest,
        outcomes: Vec<Outcome>,
        was_cut_short: bool,
    ) -> Result<Vec<DirectionResult>> {
        let mut results = Vec::new();
        for outcome in outcomes {
            let (idle, loaded, carried) = (&self.idle, &outcome.counted(), outcome.carried());
            let rtt = self.rtt(&outcome);
            let probes = self.peer.probes();
            let each_way = probes.map(|p| EachWayReport {
                idle: p.each_way(idle),
                loaded: p.each_way(loaded),
                skew: p.clock_skew(),
            });
            let each_way_ns = each_way.filter(|ways| ways.idle.is_some() || ways.loaded.is_some());
            let series = probes.map(|probes| {
                let (since, own) = (carried.start, carried.end.saturating_sub(carried.start) as i64);
                let counted = [loaded.start, loaded.end].map(|at| at.saturating_sub(since) as i64);
                let all = probes.series(since).since(0, 0..own);
                ProbeSeries { counted_ns: Some((counted[0], counted[1])), ..all }
            });
            let responsiveness_rpm = probes.and_then(|p| p.responsiveness_rpm(loaded));
            let Outcome { way, mut received, sent, clocks, caveats, settled, .. } = outcome;
            if was_cut_short {
                received.ended = EndReason::Stopped;
            } else if settled.is_some() {
                received.ended = EndReason::Settled;
            }
            outcome::note_path(&mut self.path, way, &received, &sent);
            self.peer.note_path(&mut self.path);
            self.context.caveats.extend(caveats);
            let clocks = clocks.map(|clocks| (clocks, carried));
            let udp = datagrams::report(request, way, &received, &sent, clocks);
            let result = outcome::result(request, way, received, sent, rtt, udp);
            let result = self.context.reporter.unless_cut_short(result)?;
            let latency_parts_ns = series.as_ref().and_then(LatencyParts::of);
            results.push(DirectionResult {
                settled: settled.filter(|_| !was_cut_short),
                responsiveness_rpm,
                each_way_ns,
                latency_parts_ns,
                probes: series,
                ..result
            });
        }
        Ok(results)
    }
}

/// Notes what each direction has moved by now; returns the projected results once all have settled.
fn settle(
    settling: &mut [(Direction, u64, Settling)],
    elapsed: Duration,
    moved: &[(Direction, Passed)],
    whole: Nanos,
) -> Vec<(Direction, Settled)> {
    for (way, bytes, settling) in settling.iter_mut() {
        *bytes += moved.iter().filter(|(of, _)| of == way).map(|(_, moved)| moved.bytes).sum::<u64>();
        settling.note(Nanos::from(elapsed).0, *bytes);
    }
    let all = settling.iter().map(|(way, _, settling)| Some((*way, settling.settled(whole)?)));
    all.collect::<Option<Vec<_>>>().unwrap_or_default()
}
