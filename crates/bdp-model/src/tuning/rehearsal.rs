//! What changes of settings would give, tried on the emulated twin of a path.

use serde::{Deserialize, Serialize};

use super::change::{Change, Scope, Target};
use super::plan::Plan;
use crate::ends::Direction;
use crate::stats::Estimate;

/// Version of a rehearsal's shape; a reader refuses a larger number.
pub const REHEARSAL_SCHEMA: &str = "bdp.rehearsal/1";

/// The name of what is there now.
pub const BEFORE: &str = "before";
/// The name of the plan's own changes.
pub const PLAN: &str = "plan";

/// A plan and its alternatives on the twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rehearsal {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = REHEARSAL_SCHEMA)))]
    pub schema: String,
    /// bdp's version.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// The run that the twin is of; null of a file that does not say.
    pub run: Option<String>,
    /// The kernel that ran it.
    pub kernel: Option<String>,
    /// Repetitions of each variant.
    pub runs: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Whether the path is the transfer's alone, so that what a flow of others gets does not count.
    #[serde(default)]
    pub alone: bool,
    /// Directions in which the twin repeats the measurement: goodput within 10 %, median round trip under load within 20 %.
    pub repeats: Vec<(Direction, bool)>,
    /// The plan.
    pub plan: Plan,
    /// [`BEFORE`], then [`PLAN`], then the plan's alternatives.
    pub variants: Vec<Rehearsed>,
    /// The name of what to apply; null where nothing is better than what is there.
    pub choice: Option<String>,
}

/// One set of changes on the twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rehearsed {
    /// Its name, unique in its rehearsal.
    pub name: String,
    /// What is changed.
    pub changes: Vec<Change>,
    /// Of that, what the twin can't show.
    pub not_shown: Vec<Target>,
    /// What came out in each direction.
    pub directions: Vec<Predicted>,
}

/// What came out in a direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// Which.
    pub direction: Direction,
    /// Goodput, bit/s.
    pub goodput_bps: Estimate,
    /// Median round trip under load, nanoseconds.
    pub loaded_p50_ns: Option<Estimate>,
    /// Its 95th percentile.
    pub loaded_p95_ns: Option<Estimate>,
    /// Retransmitted segments / segments of the payload.
    pub retransmitted: Option<Estimate>,
    /// The same with another flow at the bottleneck; null where that was not tried.
    pub beside: Option<Beside>,
}

/// What a flow of others gets beside this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// Congestion control of the other flow.
    pub congestion_control: String,
    /// Goodput of this one, bit/s.
    pub goodput_bps: f64,
    /// Goodput of the other one, bit/s.
    pub other_bps: f64,
}

/// Less goodput than before by this share is a loss.
const GOODPUT_LOSS: f64 = 0.05;
/// More goodput by this share is a gain.
const GOODPUT_GAIN: f64 = 0.05;
/// A round trip under load that is shorter by this share, and by [`DELAY_NOTICED_NS`], is a gain.
const DELAY_GAIN: f64 = 0.2;
/// A shorter difference of round trips is not noticed.
const DELAY_NOTICED_NS: f64 = 5e6;
/// A flow of others keeps this share of what it had beside the transfer before.
const OTHERS_KEEP: f64 = 0.5;
/// Variants whose scores differ by less are alike: the smaller change is chosen.
const ALIKE: f64 = 0.03;
/// What a shorter round trip counts beside a larger goodput.
const DELAY_WEIGHT: f64 = 0.5;

impl Rehearsal {
    /// The variant of this name.
    pub fn variant(&self, name: &str) -> Option<&Rehearsed> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// What is chosen.
    pub fn chosen(&self) -> Option<&Rehearsed> {
        self.variant(self.choice.as_deref()?)
    }

    /// What is predicted of a direction once the choice is applied.
    pub fn predicted(&self, direction: Direction) -> Option<&Predicted> {
        self.chosen()?.direction(direction)
    }
}

impl Rehearsed {
    /// A direction.
    pub fn direction(&self, direction: Direction) -> Option<&Predicted> {
        self.directions.iter().find(|predicted| predicted.direction == direction)
    }

    /// How much of the hosts its changes concern.
    pub fn scope(&self) -> Option<Scope> {
        self.changes.iter().map(|change| change.target.scope()).max()
    }

    /// Whether a direction gets a longer round trip under load than before, by what one notices: the change builds a queue.
    pub fn builds_queue(&self, before: &Self, direction: Direction) -> bool {
        let delay = |of: &Self| Some(of.direction(direction)?.loaded_p50_ns?.mean);
        let (Some(now), Some(then)) = (delay(self), delay(before)) else { return false };
        now - then > DELAY_NOTICED_NS && now > then * (1.0 + DELAY_GAIN)
    }

    /// Whether the other flow at the bottleneck keeps what it may expect: half of what it had.
    pub fn spares_others(&self, before: &Self) -> bool {
        self.directions.iter().all(|now| {
            let then = before.direction(now.direction).and_then(|then| then.beside.as_ref());
            let (Some(now), Some(then)) = (&now.beside, then) else { return true };
            now.other_bps >= OTHERS_KEEP * then.other_bps
        })
    }

    /// How much better than before, 0 where it is alike; `None` where it is no gain, or a loss of goodput.
    fn score(&self, before: &Self) -> Option<f64> {
        let (mut score, mut gains) = (0.0, false);
        for then in &before.directions {
            let now = self.direction(then.direction)?;
            let goodput = now.goodput_bps.mean / then.goodput_bps.mean.max(1.0);
            if goodput < 1.0 - GOODPUT_LOSS {
                return None;
            }
            gains |= goodput > 1.0 + GOODPUT_GAIN;
            score += goodput.ln();
            if let (Some(now), Some(then)) = (now.loaded_p50_ns, then.loaded_p50_ns) {
                let delay = now.mean / then.mean.max(1.0);
                gains |= delay < 1.0 - DELAY_GAIN && then.mean - now.mean > DELAY_NOTICED_NS;
                score -= DELAY_WEIGHT * delay.max(1e-9).ln();
            }
        }
        gains.then_some(score)
    }

    /// Whether it would be a gain, were it not for what it takes from others.
    pub fn gains_at_others_cost(&self, before: &Self) -> bool {
        self.score(before).is_some() && !self.spares_others(before)
    }
}

/// The best of the variants beside the first, which is what is there now: the one that gains most in goodput and round trip, at no direction's cost and not at
/// that of others, unless the path is the transfer's `alone`; of those alike the smallest change. `None` where nothing is a gain.
pub fn choose(variants: &[Rehearsed], alone: bool) -> Option<&Rehearsed> {
    let (before, others) = variants.split_first()?;
    let allowed = others.iter().filter(|variant| alone || variant.spares_others(before));
    let scored: Vec<(&Rehearsed, f64)> =
        allowed.filter_map(|variant| Some((variant, variant.score(before)?))).collect();
    let best = scored.iter().map(|(_, score)| *score).max_by(f64::total_cmp)?;
    let alike = scored.into_iter().filter(|(_, score)| *score >= best - ALIKE).map(|(variant, _)| variant);
    alike.min_by_key(|variant| (variant.scope(), variant.changes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::End;
    use crate::tuning::{Reason, RouteAttribute};

    fn variant(name: &str, target: Option<Target>, mbps: f64, ms: f64, other_mbps: f64) -> Rehearsed {
        let estimate = |value: f64| Estimate::of(&[value]).unwrap();
        let change = |target| Change {
            end: End::Near,
            target,
            from: None,
            to: "bbr".to_owned(),
            reason: Reason::ShallowQueue,
            gain: None,
        };
        Rehearsed {
            name: name.to_owned(),
            changes: target.into_iter().map(change).collect(),
            not_shown: Vec::new(),
            directions: vec![Predicted {
                direction: Direction::To,
                goodput_bps: estimate(mbps * 1e6),
                loaded_p50_ns: Some(estimate(ms * 1e6)),
                loaded_p95_ns: None,
                retransmitted: None,
                beside: Some(Beside {
                    congestion_control: "cubic".to_owned(),
                    goodput_bps: mbps * 5e5,
                    other_bps: other_mbps * 1e6,
                }),
            }],
        }
    }

    fn route() -> Option<Target> {
        let to = "192.0.2.7".parse().unwrap();
        Some(Target::Route { to, attribute: RouteAttribute::Congctl })
    }

    fn host() -> Option<Target> {
        Some(Target::sysctl("net.ipv4.tcp_congestion_control"))
    }

    fn chosen(variants: &[Rehearsed]) -> Option<&str> {
        choose(variants, false).map(|variant| variant.name.as_str())
    }

    #[test]
    fn the_smaller_of_two_changes_that_are_alike_is_chosen() {
        let before = variant("before", None, 20.0, 40.0, 20.0);
        let all =
            [before, variant("host", host(), 90.5, 42.0, 40.0), variant("plan", route(), 90.0, 42.0, 40.0)];
        assert_eq!(chosen(&all), Some("plan"));
    }

    #[test]
    fn a_shorter_queue_is_a_gain_and_less_goodput_none() {
        let before = || variant("before", None, 90.0, 200.0, 40.0);
        assert_eq!(chosen(&[before(), variant("plan", route(), 88.0, 45.0, 40.0)]), Some("plan"));
        assert_eq!(chosen(&[before(), variant("plan", route(), 80.0, 45.0, 40.0)]), None);
        assert_eq!(chosen(&[before(), variant("plan", route(), 90.5, 190.0, 40.0)]), None);
    }

    #[test]
    fn what_starves_others_is_not_chosen_and_a_queue_that_grows_is_seen() {
        let before = variant("before", None, 20.0, 40.0, 40.0);
        let greedy = variant("plan", route(), 95.0, 120.0, 5.0);
        assert!(greedy.builds_queue(&before, Direction::To) && !greedy.spares_others(&before));
        assert!(greedy.gains_at_others_cost(&before));
        let both = [before, greedy];
        assert_eq!(chosen(&both), None);
        assert_eq!(choose(&both, true).map(|variant| variant.name.as_str()), Some("plan"));
    }
}
