//! Datagrams at a rate above the path's known capacity: the first second is checked, and if many are lost, the rest
//! is sent at the rate that got through (RFC 8085, section 3.1).

use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest};
use bdp_model::units::Nanos;

use super::datagrams;
use super::error::Result;
use super::peer::Outcome;
use super::progress::Stage;
use super::round::Rounds;

/// How long is watched; half of a shorter test.
const WATCHED: Nanos = Nanos::secs(1);
/// Harmful share of loss: TCP on the same path almost stops (RFC 8085 wants a loss rate that TCP could live with).
const HARMFUL: f64 = 0.1;
/// Share of the rate that got through which is used from then on: a full queue must drain.
const BELOW: f64 = 0.95;

/// Runs directions at the same time, at the requested rate or one that the path carries.
pub(super) fn run(
    rounds: &mut Rounds<'_, '_>,
    request: &MeasureRequest,
    ways: &[Direction],
) -> Result<Vec<DirectionResult>> {
    let Some(&first) = ways.first() else { return Ok(Vec::new()) };
    let watched = watched(request);
    let outcomes = rounds.carry_out(&watched, ways, Stage::Trial(first))?;
    if rounds.context.reporter.concludes {
        return rounds.put_together(&watched, outcomes, true);
    }
    let streams = f64::from(request.spec.streams);
    let mut slower = request.clone();
    for outcome in &outcomes {
        let Some((loss_ratio, rate_bps)) = harm(&watched, outcome) else { continue };
        let Some(udp) = &mut slower.spec.udp else { continue };
        let each = ((rate_bps / streams).round() as u64).max(1);
        udp.rate_bps = Some(udp.rate_bps.map_or(each, |rate| rate.min(each)));
        let asked = request.spec.udp.as_ref().and_then(|udp| udp.rate_bps);
        rounds.context.caveats.push(Caveat::BackedOff {
            direction: outcome.way,
            asked_bps: asked.map(|each| each as f64 * streams),
            loss_ratio,
            rate_bps,
        });
    }
    rounds.run(&slower, ways)
}

/// The request of the second that is watched.
fn watched(request: &MeasureRequest) -> MeasureRequest {
    let mut watched = request.clone();
    watched.spec.duration = WATCHED.min(Nanos(request.spec.duration.as_ns() / 2));
    (watched.spec.omit, watched.spec.bytes) = (Nanos::ZERO, None);
    watched
}

/// Returns the share lost and the rate to continue with, if the loss is harmful.
fn harm(watched: &MeasureRequest, outcome: &Outcome) -> Option<(f64, f64)> {
    let clocks = outcome.clocks.map(|clocks| (clocks, outcome.carried()));
    let udp = datagrams::report(watched, outcome.way, &outcome.received, &outcome.sent, clocks)?;
    let received_bps = outcome.received.bytes as f64 * 8e9 / outcome.received.duration_ns.max(1) as f64;
    slower(udp.loss_ratio, received_bps.min(udp.sent_bps))
}

/// Returns the share lost and the rate to continue with, from figures.
fn slower(loss_ratio: f64, received_bps: f64) -> Option<(f64, f64)> {
    (loss_ratio >= HARMFUL).then_some((loss_ratio, BELOW * received_bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_that_loses_little_stays_and_one_that_loses_much_is_lowered() {
        assert_eq!(slower(0.0, 50e6), None);
        assert_eq!(slower(0.099, 45e6), None);
        assert_eq!(slower(0.6, 20e6), Some((0.6, 19e6)));
    }

    #[test]
    fn watched_part_is_no_part_of_the_test() {
        let mut request = MeasureRequest::to("ams1");
        (request.spec.duration, request.spec.omit) = (Nanos::secs(10), Nanos::secs(3));
        let watched_part = watched(&request).spec;
        assert_eq!((watched_part.duration, watched_part.omit), (Nanos::secs(1), Nanos::ZERO));
        request.spec.duration = Nanos::millis(300);
        assert_eq!(watched(&request).spec.duration, Nanos::millis(150));
    }
}
