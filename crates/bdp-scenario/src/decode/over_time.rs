//! Values that change over time: steps and ramps, traces, outages.

use std::collections::BTreeMap;

use super::item::Result;
use crate::error::Problem;
use crate::read::{Quantity, check_keys};
use crate::tree::{Node, Table, Value};
use bdp_model::link::over_time::{DelayOverTime, Moment, Outage, RateOverTime, Timeline};
use bdp_model::link::radio::Radio;
use bdp_model::link::trace::{RADIO_LONGEST, TRACE_OVERHEAD_BYTES, Trace};
use bdp_model::link::{DirectionConfig, ETHERNET_OVERHEAD_BYTES};
use bdp_model::units::{Nanos, Probability, Rate};

/// Traces by their names in the scenario.
pub type Traces = BTreeMap<String, Trace>;

/// Maximum points of a timeline, and outages.
const MOMENTS_MAX: usize = 10_000;
/// Latest point of a timeline, and longest time between outages.
const LATEST: Nanos = Nanos::secs(24 * 3600);
const WHEN: &str = "a time up to 24h, such as \"5s\"";

/// Whether a table is a value that changes over time.
pub(super) fn is_value(table: &Table) -> bool {
    let is_list = |key: &str| table.get(key).is_some_and(|node| matches!(node.value, Value::Array(_)));
    table.get("trace").is_some()
        || is_list("levels")
        || is_list("ramp")
        || (is_list("steps") && table.get("from").is_none())
        || table.get("for").is_some()
        || (table.get("good_for").is_some() && table.get("bad_for").is_some())
}

/// Reads `rate` of a direction.
pub(super) fn rate(node: &Node, at: &str, traces: &Traces, config: &mut DirectionConfig) -> Result<()> {
    const EXPECTED: &str = "a bit rate above 0, such as \"100M\", or \"none\"";
    const CHANGING: &str = "{ trace = \"FILE\" }, { steps = [[\"0s\", \"10M\"], [\"5s\", \"2M\"]] }, { ramp = [[\"0s\", \
                            \"10M\"], [\"10s\", \"100M\"]] }, a bit rate, or \"none\"";
    if config.rate_over_time.take().is_some_and(|old| matches!(old, RateOverTime::Trace(_))) {
        config.overhead_bytes = ETHERNET_OVERHEAD_BYTES;
    }
    let Value::Table(table) = &node.value else {
        config.rate = if node.is_word(&["none"]) { None } else { Some(node.as_quantity(at, EXPECTED)?) };
        return match config.rate.is_some_and(|rate| rate.as_bps() == 0) {
            true => Err(node.unexpected(at, EXPECTED)),
            false => Ok(()),
        };
    };
    const RADIO: [&str; 5] = ["levels", "stay", "share", "length", "seed"];
    let keys = [&["trace", "loop", "steps", "ramp"], RADIO.as_slice()].concat();
    check_keys(table, &format!("{at}'s table"), &keys)?;
    let made = match (table.get("trace"), table.get("levels")) {
        (Some(file), _) => Some(trace(file, table, at, traces)?),
        (None, Some(levels)) => Some(radio(levels, table, at)?),
        (None, None) => None,
    };
    let over_time = match made {
        Some(trace) => {
            // The overhead that mahimahi counts, unless the scenario sets its own.
            if config.overhead_bytes == ETHERNET_OVERHEAD_BYTES {
                config.overhead_bytes = TRACE_OVERHEAD_BYTES;
            }
            RateOverTime::Trace(trace)
        }
        None => {
            let value = "a bit rate such as \"10M\"; 0 is an outage";
            let Some(timeline) = timeline::<Rate>(table, at, value)? else {
                return Err(node.unexpected(at, CHANGING));
            };
            if timeline.at(Nanos::ZERO).is_none_or(|rate| rate.as_bps() == 0) {
                let expected = "a first bit rate above 0, which applies before the flows start; use 'outage' for outages";
                return Err(node.unexpected(at, expected));
            }
            RateOverTime::Timeline(timeline)
        }
    };
    config.rate = Some(over_time.first());
    config.rate_over_time = Some(over_time);
    Ok(())
}

fn trace(file: &Node, table: &Table, at: &str, traces: &Traces) -> Result<Trace> {
    let (at, expected) = (format!("{at}.trace"), "the name of a file in the scenario's folder");
    if let Some(other) = ["steps", "ramp", "levels"].into_iter().find(|key| table.get(key).is_some()) {
        return Err(file.origin.error(Problem::Contradiction {
            at,
            found: file.describe(),
            other: format!("'{other}'"),
            rule: "remove one of them".to_owned(),
        }));
    }
    let name = file.as_text(&at, expected)?;
    let repeat = table.get("loop").map_or(Ok(true), |n| n.as_bool(&at.replace(".trace", ".loop")))?;
    let Some(trace) = traces.get(name) else {
        return Err(file.unexpected(&at, "the name of a trace that was already read"));
    };
    Ok(trace.repeated(repeat))
}

/// Derives a trace from a radio model.
fn radio(levels: &Node, table: &Table, at: &str) -> Result<Trace> {
    const LEVELS: &str = "1 to 32 rising bit rates up to 10G, such as [\"4M\", \"10M\", \"18M\"]";
    let place = |key: &str| format!("{at}.{key}");
    let Value::Array(all) = &levels.value else { return Err(levels.unexpected(&place("levels"), LEVELS)) };
    let read =
        all.iter().map(|node| node.as_quantity(&place("levels"), LEVELS)).collect::<Result<Vec<Rate>>>()?;
    let bounds = Rate::bps(1)..=Rate::bps(10_000_000_000);
    if !(1..=32).contains(&read.len()) || !read.is_sorted() || !read.iter().all(|rate| bounds.contains(rate))
    {
        return Err(levels.unexpected(&place("levels"), LEVELS));
    }
    let time = |key: &str, default: Nanos, longest: Nanos, expected: &str| -> Result<Nanos> {
        let Some(node) = table.get(key) else { return Ok(default) };
        let time: Nanos = node.as_quantity(&place(key), expected)?;
        let bounds = Nanos::millis(1)..=longest;
        if bounds.contains(&time) { Ok(time) } else { Err(node.unexpected(&place(key), expected)) }
    };
    let share = match table.get("share") {
        Some(node) => {
            let expected = "the share of milliseconds assigned to the user, \"1%\" to \"100%\"";
            let share: Probability = node.as_quantity(&place("share"), expected)?;
            if share.fraction() < 0.01 {
                return Err(node.unexpected(&place("share"), expected));
            }
            share
        }
        None => Probability::new(0.5).unwrap_or_default(),
    };
    let radio = Radio {
        levels: read,
        stay: time(
            "stay",
            Nanos::secs(1),
            Nanos::secs(3600),
            "the mean time at a level, 1ms to 1h, such as \"1s\"",
        )?,
        share,
        length: time(
            "length",
            Nanos::secs(60),
            RADIO_LONGEST,
            "the period after which it repeats, 1ms to 10min",
        )?,
        seed: match table.get("seed") {
            Some(node) => node.as_count(&place("seed"), 0..=u64::MAX, "a whole number, 0 or more")?,
            None => 1,
        },
    };
    let repeat = table.get("loop").map_or(Ok(true), |n| n.as_bool(&place("loop")))?;
    Trace::of_radio(radio, repeat).map_err(|error| levels.unexpected(&place("levels"), error.to_string()))
}

/// Reads a `delay` that changes over time.
pub(super) fn delay(table: &Table, node: &Node, at: &str, longest: Nanos) -> Result<DelayOverTime> {
    check_keys(table, &format!("{at}'s table"), &["steps", "ramp", "reorder"])?;
    let value = "a one-way delay up to 1h, such as \"20ms\"";
    let Some(timeline) = timeline::<Nanos>(table, at, value)? else {
        let expected = "{ steps = [[\"0s\", \"20ms\"], [\"5s\", \"80ms\"]] } or { ramp = [...] }";
        return Err(node.unexpected(at, expected));
    };
    let timeline_ns = in_ns(timeline);
    if timeline_ns.most().is_some_and(|most| most > longest.as_ns()) {
        return Err(node.unexpected(at, value));
    }
    let reorder = table.get("reorder").map_or(Ok(false), |n| n.as_bool(&format!("{at}.reorder")))?;
    Ok(DelayOverTime { timeline_ns, reorder })
}

fn in_ns(timeline: Timeline<Nanos>) -> Timeline<u64> {
    let plain = |moments: Vec<Moment<Nanos>>| {
        moments.into_iter().map(|Moment { at, value }| Moment { at, value: value.as_ns() }).collect()
    };
    match timeline {
        Timeline::Steps(moments) => Timeline::Steps(plain(moments)),
        Timeline::Ramp(moments) => Timeline::Ramp(plain(moments)),
    }
}

/// Reads the `steps` or `ramp` of a table; `None` if it has neither or both.
pub(super) fn timeline<T: Quantity>(table: &Table, at: &str, value: &str) -> Result<Option<Timeline<T>>> {
    match (table.get("steps"), table.get("ramp")) {
        (Some(node), None) => Ok(Some(Timeline::Steps(moments(node, &format!("{at}.steps"), value)?))),
        (None, Some(node)) => Ok(Some(Timeline::Ramp(moments(node, &format!("{at}.ramp"), value)?))),
        _ => Ok(None),
    }
}

fn moments<T: Quantity>(node: &Node, at: &str, value: &str) -> Result<Vec<Moment<T>>> {
    const EXPECTED: &str = "a list of times since the start of flows with values, such as [[\"0s\", ...], \
                            [\"5s\", ...]]; the first time must be 0s, and times must ascend";
    let Value::Array(all) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
    if all.is_empty() || all.len() > MOMENTS_MAX {
        return Err(node.unexpected(at, format!("1 to {MOMENTS_MAX} times with values")));
    }
    let mut moments: Vec<Moment<T>> = Vec::with_capacity(all.len());
    for entry in all {
        let Value::Array(pair) = &entry.value else { return Err(entry.unexpected(at, EXPECTED)) };
        let [when, what] = pair.as_slice() else { return Err(entry.unexpected(at, EXPECTED)) };
        let time: Nanos = when.as_quantity(at, WHEN)?;
        let rises = match moments.last() {
            Some(last) => last.at < time,
            None => time == Nanos::ZERO,
        };
        if !rises || time > LATEST {
            return Err(when.unexpected(at, EXPECTED));
        }
        moments.push(Moment { at: time, value: what.as_quantity(at, value)? });
    }
    Ok(moments)
}

/// Reads `outage` of a direction: one, or a list.
pub(super) fn outages(node: &Node, at: &str) -> Result<Vec<Outage>> {
    const EXPECTED: &str = "{ at = \"5s\", for = \"200ms\" }, { every = \"10s\", for = \"200ms\" }, each \
                            with drop = true to drop packets instead of delaying them, a list of these, \
                            or \"none\"";
    if node.is_word(&["none"]) {
        return Ok(Vec::new());
    }
    let all = match &node.value {
        Value::Array(all) if all.len() <= MOMENTS_MAX => all.as_slice(),
        Value::Table(_) => std::slice::from_ref(node),
        _ => return Err(node.unexpected(at, EXPECTED)),
    };
    all.iter().map(|node| outage(node, at, EXPECTED)).collect()
}

fn outage(node: &Node, at: &str, expected: &str) -> Result<Outage> {
    let Value::Table(table) = &node.value else { return Err(node.unexpected(at, expected)) };
    check_keys(table, &format!("{at}'s table"), &["at", "for", "every", "drop"])?;
    let when = |key: &str| -> Result<Option<Nanos>> {
        let Some(node) = table.get(key) else { return Ok(None) };
        let at = format!("{at}.{key}");
        let time: Nanos = node.as_quantity(&at, WHEN)?;
        if time <= LATEST { Ok(Some(time)) } else { Err(node.unexpected(&at, WHEN)) }
    };
    let (begins, every) = (when("at")?, when("every")?);
    let (Some(lasts), Some(begins)) = (when("for")?, begins.or(every)) else {
        return Err(node.unexpected(at, expected));
    };
    if lasts == Nanos::ZERO || every.is_some_and(|every| every <= lasts) {
        let expected = "'for' above 0, and 'every' longer than it";
        return Err(node.unexpected(at, expected));
    }
    let drop = table.get("drop").map_or(Ok(false), |n| n.as_bool(&format!("{at}.drop")))?;
    Ok(Outage { at: begins, lasts, every, drop })
}
