//! Runs a measurement with any peer: idle probes, rounds, and their combined results.

use std::ops::Range;
use std::time::Instant;

use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::{DirectionResult, HostFacts, MeasureRequest, Measurement, PathFacts};
use bdp_model::record::RttSummary;
use bdp_sys::clock;

use super::error::{Result, SessionError};
use super::experiments::Choose;
use super::peer::{Context, Peer, Probes};
use super::progress::Stage;
use super::reporter::{Goodput, Reporter};
use super::round::Rounds;
use super::{back_off, experiments, outcome, pacing, responsiveness, search};
use crate::disturbance::{self, Moved};
use crate::handshake_checks;

/// Measures a request that has been checked. Fills all but the time it took, `findings`, `ceiling` and `label`, and
/// sets `repetition` to 1. `choose` selects experiments, if the request wants any.
pub fn measure(
    request: &MeasureRequest,
    peer: &mut dyn Peer,
    reporter: Reporter<'_>,
    choose: Choose<'_>,
) -> Result<Measurement> {
    let mut context = Context::new(reporter);
    let granted = peer.open(request, &mut context)?;
    let idle = probe_idle(&granted, peer, &mut context)?;
    let (path, moved) = (PathFacts::default(), Moved::default());
    let mut rounds = Rounds { peer, context, idle, path, moved };
    match rounds.run_all(&granted) {
        (directions, None) => {
            let far = rounds.peer.remote_facts(request)?;
            let measurement = put_together(request, directions, &mut rounds, far);
            Ok(experiments::run(&mut rounds, &granted, measurement, choose))
        }
        (directions, Some(cause)) if directions.is_empty() => Err(cause),
        (directions, Some(cause)) => {
            // A peer that has gone no longer describes its machine.
            let far = match cause {
                SessionError::Far { .. } | SessionError::Near(_) => rounds.peer.remote_facts(request).ok(),
                _ => None,
            };
            let measurement = put_together(request, directions, &mut rounds, far.unwrap_or_default());
            let measurement = Box::new(Measurement { error: Some(cause.to_string()), ..measurement });
            Err(SessionError::Broken { cause: Box::new(cause), measurement })
        }
    }
}

/// Lets probes run alone for a while; when that was, by the monotonic clock.
fn probe_idle(
    request: &MeasureRequest,
    peer: &mut dyn Peer,
    context: &mut Context<'_>,
) -> Result<Range<u64>> {
    let Some(began_ns) = peer.start_probes(request, context)? else { return Ok(0..0) };
    let (since, idle) = (Instant::now(), request.idle.to_duration());
    while since.elapsed() < idle {
        std::thread::sleep(idle.saturating_sub(since.elapsed()).min(context.reporter.tick));
        let rtt = peer.probes().and_then(Probes::last_ns);
        context.reporter.report(Stage::Idle, since, request.idle, Goodput::default(), rtt)?;
    }
    let until_ns = clock::monotonic_ns();
    peer.end_idle(request, until_ns, context)?;
    Ok(began_ns..until_ns)
}

impl Rounds<'_, '_> {
    /// Runs all rounds, or those until one was interrupted or failed: returns the reason, and what is known of that
    /// round.
    fn run_all(&mut self, request: &MeasureRequest) -> (Vec<DirectionResult>, Option<SessionError>) {
        let (mut directions, mut broken) = (Vec::new(), None);
        for ways in self.peer.rounds(request) {
            let results = match (request.spec.udp.as_ref().and_then(|udp| udp.search), ways.as_slice()) {
                (Some(wanted), &[way]) => search::search(self, request, &wanted, way),
                (None, ways) if watches_loss(request) => back_off::run(self, request, ways),
                (None, &[way]) if request.responsiveness => responsiveness::run(self, request, way),
                _ => self.run(request, &ways),
            };
            let results = results.map_err(|error| self.peer.explain(error, request));
            if let Err(error) = &results
                && !directions.is_empty()
                && let Some(reason) = self.peer.unmeasured(error)
            {
                self.context.caveats.push(Caveat::NotMeasured { directions: ways, reason });
                continue;
            }
            match self.context.reporter.go_on(&mut directions, results) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    if !matches!(error, SessionError::Cancelled | SessionError::Request(_)) {
                        directions.extend(self.salvage(request));
                    }
                    broken = Some(error);
                    break;
                }
            }
        }
        let asked = |way| request.directions.iter().position(|&asked| asked == way).unwrap_or(usize::MAX);
        directions.sort_by_key(|result| asked(result.direction));
        (directions, broken)
    }

    /// Returns results from what this end knows of failed connections; omits those without enough figures.
    fn salvage(&mut self, request: &MeasureRequest) -> Vec<DirectionResult> {
        // For datagrams one end knows too little, and for a growing load only the whole is a result.
        if request.spec.udp.is_some() || request.responsiveness {
            return Vec::new();
        }
        let known = self.peer.salvage(request);
        known
            .into_iter()
            .filter_map(|one| self.put_together(request, vec![one], false).ok())
            .flatten()
            .collect()
    }
}

/// Whether datagrams begin with a second that is watched; a server of another protocol cannot be asked for one alone.
fn watches_loss(request: &MeasureRequest) -> bool {
    request.watch_loss && request.spec.udp.is_some() && request.peer.is_none()
}

/// The measurement of these directions.
fn put_together(
    request: &MeasureRequest,
    mut directions: Vec<DirectionResult>,
    rounds: &mut Rounds<'_, '_>,
    mut far: HostFacts,
) -> Measurement {
    let Rounds { peer, context, idle, path, moved } = rounds;
    let span = (idle.end - idle.start) as i64;
    let idle_probes = peer.probes().map(|probes| probes.series(idle.start).since(0, 0..span));
    let idle = match peer.probes() {
        Some(probes) => RttSummary::of_probes(probes.outcomes(idle)),
        None => peer.idle_rtt(),
    };
    let mut near = context.near_facts();
    disturbance::note(&mut near, &mut far, moved, &mut context.caveats);
    for direction in &mut directions {
        direction.rtt_ns.idle = idle;
        if peer.knows_pacing(direction.direction) {
            pacing::note(request, direction, &near, &far);
        }
    }
    path.rtt_min_ns = peer.probes().map_or_else(|| peer.smallest_rtt_ns(), Probes::smallest_ns);
    outcome::add_caveats(request, &directions, &mut context.caveats);
    context.caveats.extend(handshake_checks::changed(&request.spec, [&near, &far], path, &directions));
    context.caveats.extend(peer.caveats(&directions));
    context.reporter.add_caveat(request, &directions, &mut context.caveats);
    Measurement {
        near,
        far,
        path: std::mem::take(path),
        rtt_idle_ns: idle,
        idle_probes,
        directions,
        caveats: std::mem::take(&mut context.caveats),
        server_output: peer.server_output(),
        ..Measurement::of(request)
    }
}
