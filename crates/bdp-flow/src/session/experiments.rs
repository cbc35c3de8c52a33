//! Short flows after the test, each with one change, if the test alone leaves open what limits a direction.

use bdp_model::facts::Facts;
use bdp_model::finding::caveat::{Caveat, NoExperiment};
use bdp_model::measurement::experiment::{Burst, Experiment, Order};
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest, Measurement};
use bdp_model::units::Nanos;

use super::error::{Result, SessionError};
use super::progress::Stage;
use super::round::Rounds;
use super::{datagrams, outcome};

/// Chooses the next experiment of a direction from the measurement so far; `None` if none is needed.
pub type Choose<'a> = &'a dyn Fn(&Measurement, Direction) -> Option<Order>;

/// An experiment is void if a host paused for this share of it.
const PAUSED: f64 = 0.05;
/// Maximum total time of the experiments.
const LONGEST: Nanos = Nanos::secs(10);
/// Time of the experiments in a direction / that of its test, at most: other users of the path lose no more to them
/// than to the test.
const OF_TEST: f64 = 0.75;

/// Runs the chosen experiments and adds their results. The figures of the test stay as they are.
pub(super) fn run(
    rounds: &mut Rounds<'_, '_>,
    request: &MeasureRequest,
    mut measurement: Measurement,
    choose: Choose<'_>,
) -> Measurement {
    if request.no_experiments {
        return measurement;
    }
    let mut left = LONGEST;
    let directions: Vec<_> = measurement.directions.iter().map(|d| (d.direction, d.duration_ns)).collect();
    for (direction, test_ns) in directions {
        let mut of_test = Nanos((OF_TEST * test_ns as f64) as u64);
        let reason = loop {
            let order = choose(&measurement, direction).filter(|order| order.duration <= left.min(of_test));
            let Some(order) = order.filter(|_| !rounds.context.reporter.concludes) else { break None };
            if !rounds.peer.runs_experiments() {
                break Some(NoExperiment::OtherProtocol);
            }
            left = left - order.duration;
            of_test = of_test - order.duration;
            match carry_out(rounds, request, &order) {
                Ok(experiment) => {
                    let paused = experiment.host_paused_ns;
                    measurement.experiments.push(experiment);
                    if let Some(pause_ns) = paused {
                        break Some(NoExperiment::HostPaused { pause_ns });
                    }
                }
                // The test itself is complete.
                Err(SessionError::Cancelled) => return measurement,
                Err(error) => {
                    let reason = NoExperiment::Failed { error: error.to_string() };
                    measurement.caveats.push(Caveat::NoExperiment { direction, reason });
                    return measurement;
                }
            }
        };
        measurement.caveats.extend(reason.map(|reason| Caveat::NoExperiment { direction, reason }));
    }
    measurement
}

fn carry_out(rounds: &mut Rounds<'_, '_>, request: &MeasureRequest, order: &Order) -> Result<Experiment> {
    let way = order.direction;
    let asked = MeasureRequest { spec: order.spec(&request.spec), ..request.clone() };
    let outcomes = rounds.carry_out(&asked, &[way], Stage::Experiment(way, order.between()))?;
    if rounds.context.reporter.concludes {
        return Err(SessionError::Cancelled);
    }
    let first = outcomes.into_iter().next().ok_or(SessionError::Cancelled)?;
    rounds.peer.await_probes(first.counted().end, &mut rounds.context)?;
    let rtt = rounds.rtt(&first);
    let udp = datagrams::report(&asked, way, &first.received, &first.sent, None);
    let result = outcome::result(&asked, way, first.received, first.sent, rtt, udp)?;
    let test = Measurement { directions: vec![result], ..Measurement::of(&asked) };
    let paused = Facts::measured(&test, way).and_then(|facts| facts.host_pause());
    let least = Nanos((PAUSED * test.directions[0].duration_ns as f64) as u64);
    Ok(experiment(order, &test.directions[0], paused.filter(|&pause| pause >= least)))
}

fn experiment(order: &Order, result: &DirectionResult, paused: Option<Nanos>) -> Experiment {
    let added = result.rtt_ns.loaded.zip(result.rtt_ns.idle).and_then(|(loaded, idle)| {
        (loaded.received > 0 && idle.received > 0).then(|| loaded.p50.saturating_sub(idle.p50))
    });
    let burst = result.udp.as_ref().and_then(|udp| {
        let delay_added_ns = udp.delay_variation_ns?.max;
        Some(Burst { sent: udp.sent, lost: udp.lost, sent_bps: udp.sent_bps, delay_added_ns })
    });
    Experiment {
        direction: order.direction,
        change: order.change,
        between: order.between.clone(),
        duration_ns: result.duration_ns,
        omit_ns: result.omit_ns,
        bytes: result.bytes,
        // The flow of a burst lasts until its end is known.
        goodput_bps: burst.map_or(result.goodput_bps, |burst| burst.arrived_bps()),
        retransmits: result.retransmits,
        loss_events: result.loss_episodes.len() as u64,
        rtt_added_ns: added,
        own_rtt_added_ns: own_rtt_added_ns(result),
        host_paused_ns: paused.map(Nanos::as_ns),
        burst,
    }
}

/// The median of the smoothed round trips after omit, above the least that the kernel saw.
fn own_rtt_added_ns(result: &DirectionResult) -> Option<u64> {
    let least = result.sent.iter().filter_map(|s| s.min_rtt_ns).filter(|&ns| ns > 0).min()?;
    let counted = result.sent.iter().filter(|s| s.at_ns >= result.omit_ns);
    let mut smoothed: Vec<u64> = counted.filter_map(|s| s.srtt_ns).filter(|&ns| ns > 0).collect();
    smoothed.sort_unstable();
    smoothed.get(smoothed.len() / 2).map(|median| median.saturating_sub(least))
}
