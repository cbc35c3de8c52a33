//! Time spent by a transfer in each state, in words for a terminal and as JSON. The states are described in `docs/time.md`.

use bdp_model::facts::{Facts, TimeSpent, TimeState};
use serde::Serialize;
use serde_json::{Map, Value, json as value};

use crate::grid::{width, wrap};
use crate::style::{Style, Tint};

/// Most states named in a line.
const NAMED: usize = 4;
/// Smallest share that is named.
const LEAST: f64 = 0.01;

/// Returns the name of a state as printed: `full path`.
pub(crate) fn words(state: TimeState) -> String {
    named(state.name())
}

/// Returns the printed form of a state's JSON name.
pub(crate) fn named(name: &str) -> String {
    name.replace('_', " ").replace("tls ", "TLS ")
}

/// Returns a clause that describes a state: `the receive window was full`.
pub(crate) fn about(state: TimeState) -> String {
    let about = state.about().trim_end_matches('.');
    let mut letters = about.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(about.chars().skip(1)).collect()
        }
        _ => about.to_owned(),
    }
}

/// Returns `full path 83 %, recovery 11 %, slow start 6 %` of the time after omit, adding up to 100; `None` if unknown.
pub(crate) fn in_words(facts: &Facts) -> Option<String> {
    let shares = facts.time_counted()?.shares();
    let parts = percentages(&shares).into_iter().map(|(state, percent)| {
        let name = state.map_or_else(|| "other".to_owned(), words);
        format!("{name} {percent} %")
    });
    Some(parts.collect::<Vec<_>>().join(", "))
}

/// Returns the line below a transfer's findings, labelled `of`; empty if nothing is known.
pub(crate) fn line(of: &str, facts: Option<&Facts>, style: &Style) -> String {
    let lead = format!("{of} {:<7}  ", "time");
    debug_assert!(width(&lead) < 20);
    let words = facts.and_then(in_words);
    words.map_or_else(String::new, |words| wrap(&lead, Tint::None, &words, style))
}

/// Returns the largest shares in descending order and the rest, as whole percentages that add up to 100 (largest remainder method).
fn percentages(shares: &[(TimeState, f64)]) -> Vec<(Option<TimeState>, u32)> {
    let named = shares.iter().take(NAMED).filter(|(_, share)| *share >= LEAST);
    let mut parts: Vec<(Option<TimeState>, f64)> =
        named.map(|&(state, share)| (Some(state), share)).collect();
    parts.push((None, (1.0 - parts.iter().map(|part| part.1).sum::<f64>()).max(0.0)));
    let mut whole: Vec<u32> = parts.iter().map(|part| (part.1 * 100.0 + 1e-9) as u32).collect();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    let remainder = |i: &usize| parts[*i].1 * 100.0 - f64::from(whole[*i]);
    by_remainder.sort_by(|a, b| remainder(b).total_cmp(&remainder(a)));
    let missing = 100u32.saturating_sub(whole.iter().sum()) as usize;
    for &i in by_remainder.iter().take(missing) {
        whole[i] += 1;
    }
    parts.iter().map(|part| part.0).zip(whole).filter(|part| part.1 > 0).collect()
}

/// Returns `time_spent` of a direction or a flow; null if unknown.
pub(crate) fn json(facts: Option<&Facts>) -> Value {
    let Some((facts, whole)) = facts.and_then(|facts| Some((facts, facts.time_spent()?))) else {
        return Value::Null;
    };
    let mut at_ns: Vec<u64> = whole.stretches.iter().map(|s| s.from_ns).collect();
    at_ns.extend(whole.stretches.last().map(|s| s.to_ns));
    let spent = |state| {
        let of = |states: &[(TimeState, u64)]| states.iter().find(|s| s.0 == state).map_or(0, |s| s.1);
        whole.stretches.iter().map(|s| of(&s.states)).collect::<Vec<_>>()
    };
    let states = TimeState::ALL.iter().filter(|&&state| whole.share(state) > 0.0);
    value!(Spent {
        counted: facts.time_counted().as_ref().map(shares),
        whole: shares(&whole),
        at_ns,
        states: states.map(|&state| StateTimes { state, ns: spent(state) }).collect(),
    })
}

/// Time spent by a transfer in each state; the states are described in `docs/time.md`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TimeSpent"))]
pub(crate) struct Spent {
    /// Share of each state in the intervals that begin after omit; null if there are none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<TimeShares>"))]
    counted: Option<Map<String, Value>>,
    /// Share of each state over all intervals.
    #[cfg_attr(feature = "schema", schemars(with = "TimeShares"))]
    whole: Map<String, Value>,
    /// Interval boundaries, one more than intervals, nanoseconds since all connections were established.
    #[cfg_attr(feature = "schema", schemars(length(min = 2)))]
    at_ns: Vec<u64>,
    /// States with a non-zero time.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    states: Vec<StateTimes>,
}

/// Time spent in one state.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StateTimes {
    /// State.
    state: TimeState,
    /// Time in each interval, nanoseconds; over all states, these add up to the interval.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    ns: Vec<u64>,
}

/// The share of each state.
#[cfg(feature = "schema")]
struct TimeShares;

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TimeShares {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeShares".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let share = |state: &TimeState| {
            let share =
                value!({ "type": "number", "minimum": 0, "maximum": 1, "description": state.about() });
            (state.name().to_owned(), share)
        };
        let names: Vec<_> = TimeState::ALL.iter().map(|state| state.name()).collect();
        schemars::json_schema!({
            "type": "object",
            "description": "The share of each state; they add up to 1.",
            "properties": TimeState::ALL.iter().map(share).collect::<Map<String, Value>>(),
            "required": names,
        })
    }
}

/// Returns the share of each state.
fn shares(spent: &TimeSpent) -> Map<String, Value> {
    TimeState::ALL.iter().map(|&state| (state.name().to_owned(), spent.share(state).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_add_up_and_small_shares_are_other() {
        let text = |shares: &[f64]| {
            let shares: Vec<_> = TimeState::ALL.iter().copied().zip(shares.iter().copied()).collect();
            percentages(&shares).iter().map(|part| part.1).collect::<Vec<_>>()
        };
        assert_eq!(text(&[1.0]), [100]);
        assert_eq!(text(&[1.0 / 3.0; 3]), [34, 33, 33]);
        assert_eq!(text(&[0.83, 0.11, 0.05, 0.01]), [83, 11, 5, 1]);
        // States after the fourth, and those below 1 %, count as other.
        assert_eq!(text(&[0.4, 0.3, 0.15, 0.1, 0.05]), [40, 30, 15, 10, 5]);
        let other = percentages(&[(TimeState::FullPath, 0.992), (TimeState::Recovery, 0.008)]);
        assert_eq!(other, [(Some(TimeState::FullPath), 99), (None, 1)]);
        assert_eq!(text(&[0.996, 0.004]), [100]);
    }
}
