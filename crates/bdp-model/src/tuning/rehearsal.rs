//! Effects of changed settings, tried on the emulated twin of a path.

use serde::{Deserialize, Serialize};

use super::change::{Change, Scope, Target};
use super::plan::Plan;
use crate::measurement::ends::Direction;
use crate::statistics::Estimate;

/// Version of the rehearsal schema; a reader refuses a larger number.
pub const REHEARSAL_SCHEMA: &str = "bdp.rehearsal/1";

/// Name of the variant with the present settings.
pub const BEFORE: &str = "before";
/// Name of the variant with the plan's own changes.
pub const PLAN: &str = "plan";

/// A plan and its alternatives, tried on the twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rehearsal {
    /// Name and version of this document's schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = REHEARSAL_SCHEMA)))]
    pub schema: String,
    /// Version of bdp.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// Id of the run that the twin emulates; null if its file does not record it.
    pub run: Option<String>,
    /// The kernel that ran the twin.
    pub kernel: Option<String>,
    /// Repetitions of each variant.
    pub runs: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Whether the transfer has the path to itself, so that the share of competing flows is ignored.
    #[serde(default)]
    pub alone: bool,
    /// For each direction, whether the twin repeats the measurement: goodput within 10 %, median round trip under load within 20 %.
    pub repeats: Vec<(Direction, bool)>,
    /// The plan.
    pub plan: Plan,
    /// The variants: [`BEFORE`], [`PLAN`], then the plan's alternatives.
    pub variants: Vec<Rehearsed>,
    /// Name of the variant to apply; null if none is better than the present settings.
    pub choice: Option<String>,
}

/// One set of changes tried on the twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rehearsed {
    /// Name, unique in the rehearsal.
    pub name: String,
    /// The changes.
    pub changes: Vec<Change>,
    /// Changed settings whose effect the twin cannot show.
    pub not_shown: Vec<Target>,
    /// Results of each direction.
    pub directions: Vec<Predicted>,
}

/// Predicted results of a direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// The direction.
    pub direction: Direction,
    /// Goodput, bit/s.
    pub goodput_bps: Estimate,
    /// Median round trip under load, nanoseconds.
    pub loaded_p50_ns: Option<Estimate>,
    /// 95th percentile of the round trip under load, nanoseconds.
    pub loaded_p95_ns: Option<Estimate>,
    /// Retransmitted segments / payload segments.
    pub retransmitted: Option<Estimate>,
    /// Result with a competing flow at the bottleneck; null if that was not tried.
    pub beside: Option<Beside>,
}

/// Goodput shared with a competing flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// Congestion control of the competing flow.
    pub congestion_control: String,
    /// Goodput of this flow, bit/s.
    pub goodput_bps: f64,
    /// Goodput of the competing flow, bit/s.
    pub other_bps: f64,
}

/// Share of goodput below the present one that counts as a loss.
const GOODPUT_LOSS: f64 = 0.05;
/// Share of goodput above the present one that counts as a gain.
const GOODPUT_GAIN: f64 = 0.05;
/// Reduction of the round trip under load that counts as a gain, if it also exceeds [`DELAY_NOTICED_NS`].
const DELAY_GAIN: f64 = 0.2;
/// A smaller difference of round trips is not noticeable.
const DELAY_NOTICED_NS: f64 = 5e6;
/// Share of its former goodput that a competing flow must keep beside the transfer.
const OTHERS_KEEP: f64 = 0.5;
/// Variants whose scores differ by less are equivalent; the smaller change is chosen.
const ALIKE: f64 = 0.03;
/// Weight of a shorter round trip relative to a larger goodput.
const DELAY_WEIGHT: f64 = 0.5;

impl Rehearsal {
    /// Returns the variant with this name.
    pub fn variant(&self, name: &str) -> Option<&Rehearsed> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Returns the chosen variant.
    pub fn chosen(&self) -> Option<&Rehearsed> {
        self.variant(self.choice.as_deref()?)
    }

    /// Returns the prediction for a direction with the choice applied.
    pub fn predicted(&self, direction: Direction) -> Option<&Predicted> {
        self.chosen()?.direction(direction)
    }
}

impl Rehearsed {
    /// Returns the prediction for a direction.
    pub fn direction(&self, direction: Direction) -> Option<&Predicted> {
        self.directions.iter().find(|predicted| predicted.direction == direction)
    }

    /// Returns how much of the hosts its changes affect.
    pub fn scope(&self) -> Option<Scope> {
        self.changes.iter().map(|change| change.target.scope()).max()
    }

    /// Whether the round trip under load is noticeably longer than before: the change builds a queue.
    pub fn builds_queue(&self, before: &Self, direction: Direction) -> bool {
        let delay = |of: &Self| Some(of.direction(direction)?.loaded_p50_ns?.mean);
        let (Some(now), Some(then)) = (delay(self), delay(before)) else { return false };
        now - then > DELAY_NOTICED_NS && now > then * (1.0 + DELAY_GAIN)
    }

    /// Whether the competing flow keeps at least half of its goodput.
    pub fn spares_others(&self, before: &Self) -> bool {
        self.directions.iter().all(|now| {
            let then = before.direction(now.direction).and_then(|then| then.beside.as_ref());
            let (Some(now), Some(then)) = (&now.beside, then) else { return true };
            now.other_bps >= OTHERS_KEEP * then.other_bps
        })
    }

    /// Returns the improvement over `before`, 0 if equivalent; `None` if there is no gain, or goodput is lost.
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

    /// Whether it is a gain only at the expense of competing flows.
    pub fn gains_at_others_cost(&self, before: &Self) -> bool {
        self.score(before).is_some() && !self.spares_others(before)
    }
}

/// Chooses the variant that improves goodput and round trip most over the first one, the present settings. It must not harm a direction,
/// nor competing flows unless the path is the transfer's `alone`. Of equivalent variants the smallest change wins; `None` if none is a gain.
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
    use crate::measurement::ends::End;
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
