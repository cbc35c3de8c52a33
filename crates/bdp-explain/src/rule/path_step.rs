//! A path whose rate or length changed at some moment.

use bdp_model::facts::{Facts, Step, TimeState};
use bdp_model::finding::fact::{self, Bps, Count};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::units::Nanos;

/// Largest lower rate / higher rate.
const RATE: f64 = 0.7;
/// Largest shorter round trip / longer one, and smallest difference.
const TRIP: (f64, Nanos) = (0.9, Nanos::millis(2));
/// The same window in a longer round trip gives a proportionally lower rate: at least by this exponent.
const RATE_BY_TRIP: f64 = 0.5;
/// Smallest distance of the two levels / deviation of the values: even growth gives 4.
const APART: f64 = 8.0;
/// A fall to this share of the rate needs less: a window reduction halves it.
const RATE_FAR: f64 = 0.4;
const APART_FAR: f64 = 6.0;
/// Smallest distance / deviation for a rise, since a growing window's rate rises too.
const APART_RISING: f64 = 15.0;

/// Jump of the round trip / floor before, floor before / floor after, and rate after / rate before: for a standing queue, whose
/// own changes are slower and reverse.
const JUMP: (f64, f64, f64) = (0.2, 0.85, 0.92);

/// Share of the time in which a program paused from which steps may be its own.
const PAUSED: f64 = 0.2;

/// Round trips within which a loss explains a step.
const CUT_WITHIN: u64 = 6;

/// Share of samples with a full receive window from which it sets the rate all the time.
const WINDOW_RULES: f64 = 0.9;
/// Then the rate changes with the round trip, at least by this exponent: a slower path has a queue before it.
const TRIP_BY_RATE: f64 = 0.5;

/// Whether a rate changed though a full receive window set it all the time, and probes saw no round trip change that explains it: the sender caused
/// it, as when acknowledgements of a small window begin to be delayed. The path's rate is unchanged.
fn is_own(facts: &Facts, step: &Step) -> bool {
    if facts.window_use().is_none_or(|window| window.receive_full < WINDOW_RULES) {
        return false;
    }
    let Some((before, after)) = facts.round_trips_around(step.at) else { return false };
    let (longer, shorter) = if step.after < step.before { (after, before) } else { (before, after) };
    longer < shorter * step.ratio().max(f64::MIN_POSITIVE).powf(-TRIP_BY_RATE)
}

/// Whether a rate fell because the sender itself reduced its window.
fn is_cut(facts: &Facts, step: &Step) -> bool {
    let near = CUT_WITHIN * facts.rtt_loaded().or_else(|| facts.rtt_idle()).unwrap_or_default().as_ns()
        + facts.asked.interval.as_ns();
    step.after < step.before && facts.loss_episodes.iter().any(|e| e.at_ns.abs_diff(step.at.as_ns()) <= near)
}

/// A jump of the round trip behind a queue that costs goodput.
fn jumped(facts: &Facts, step: &Step) -> Option<Step> {
    let step = facts.rtt_jump(step)?;
    let (before, after) = facts.rates_around(step.at)?;
    (step.clearness >= JUMP.0 && step.before <= JUMP.1 * step.after && after <= JUMP.2 * before)
        .then_some(step)
}

/// Claims a step of the rate, or of the round trip.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let clear = |step: &Step| step.clearness >= APART;
    let slower = facts.rate_step().filter(|step| {
        let least = match step.after > step.before {
            true => APART_RISING,
            false if step.ratio() <= RATE_FAR => APART_FAR,
            false => APART,
        };
        // A rise from zero is the end of a stall.
        step.clearness >= least
            && step.ratio() <= RATE
            && step.before > 0.0
            && !(step.ratio() > RATE_FAR && is_cut(facts, step))
            && !is_own(facts, step)
    });
    let rtt_step = facts.rtt_step();
    let longer = rtt_step.filter(|step| {
        let apart = (step.after - step.before).abs();
        // A growing queue lengthens the round trip without a lower rate; a longer path with the same window lowers it.
        let rate = facts.rates_around(step.at).filter(|(before, after)| {
            (after < before) == (step.after > step.before)
                && after.min(*before) <= step.ratio().powf(RATE_BY_TRIP) * after.max(*before)
        });
        // A queue that drains after a recovery does the same, but a shorter path is shorter than before the load.
        let is_new = step.after > step.before
            || facts.rtt_least().is_some_and(|least| step.after < TRIP.0 * least.0 as f64);
        is_new && clear(step) && step.ratio() <= TRIP.0 && apart >= TRIP.1.0 as f64 && rate.is_some()
    });
    let longer = longer.or_else(|| jumped(facts, &rtt_step?));
    // A transfer that had ended, or that a program held back, has steps of its own.
    let programs = facts.time_counted().map(|spent| {
        spent.share_of(|state| matches!(state, TimeState::SenderApplication | TimeState::ReceiverApplication))
    });
    let paused = [facts.sender_idle(), facts.receiver_held_back(), programs]
        .into_iter()
        .flatten()
        .any(|share| share >= PAUSED);
    if paused
        || facts.paced_bps.is_some()
        || facts.asked.bytes.is_some()
        || slower.is_none() && longer.is_none()
    {
        return None;
    }
    let finding = Finding::new(Limit::PathChanged, Place::path(), Confidence::Medium)
        .evidence(slower.map(|step| {
            Evidence::share(
                fact::RateStep {
                    before: Bps(step.before),
                    after: Bps(step.after),
                    at: step.at,
                    clearness: Count(step.clearness),
                },
                step.ratio(),
            )
            .at_most(RATE)
        }))
        .evidence(longer.map(|step| {
            Evidence::share(
                fact::RoundTripStep {
                    before: Nanos(step.before as u64),
                    after: Nanos(step.after as u64),
                    at: step.at,
                    clearness: Count(step.clearness),
                },
                step.ratio(),
            )
            .at_most(TRIP.0)
        }))
        .remedy(Remedy::new(Action::FindOutage));
    Some(finding)
}
