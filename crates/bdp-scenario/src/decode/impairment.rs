//! Impairments of a link's direction: loss, jitter, reordering and others.

use super::item::{Result, time};
use super::over_time;
use crate::read::check_keys;
use crate::tree::{Node, Table, Value};
use bdp_model::link::{DirectionConfig, Jitter, JitterDistribution, Loss, Policer, QueueLimit, Reorder};
use bdp_model::sweep::parameter::Parameter;
use bdp_model::units::{Nanos, Offset, Probability};

/// Maximum jitter, and maximum time for which a packet is held back.
const LONGEST: Nanos = Nanos::secs(3600);

/// Reads the impairments; absent keys leave the configuration unchanged.
pub(super) fn apply(table: &Table, at: &str, config: &mut DirectionConfig) -> Result<()> {
    if let Some(n) = table.get("loss") {
        config.loss = loss(n, &format!("{at}.loss"))?;
    }
    if let Some(n) = table.get("drop_above") {
        let expected = "the longest IP packet in bytes that passes, 1 to 65535, or \"none\"";
        config.drop_above = if n.is_word(&["none"]) {
            None
        } else {
            Some(n.as_count(&format!("{at}.drop_above"), Parameter::at("drop_above").range, expected)? as u32)
        };
    }
    if let Some(n) = table.get("corrupt") {
        config.corrupt =
            share(n, &format!("{at}.corrupt"), "a fraction such as \"0.1%\" or 1e-5, or \"none\"")?;
    }
    if let Some(n) = table.get("duplicate") {
        config.duplicate =
            share(n, &format!("{at}.duplicate"), "a fraction such as \"0.1%\" or 1e-3, or \"none\"")?;
    }
    if let Some(n) = table.get("policer") {
        config.policer = policer(n, &format!("{at}.policer"))?;
    }
    if let Some(n) = table.get("ecn_threshold") {
        config.ecn_threshold = ecn_threshold(n, &format!("{at}.ecn_threshold"))?;
    }
    if let Some(n) = table.get("jitter") {
        config.jitter = jitter(n, &format!("{at}.jitter"))?;
    }
    if let Some(n) = table.get("reorder") {
        config.reorder = reorder(n, &format!("{at}.reorder"))?;
    }
    Ok(())
}

/// Whether a table is a complete value read here rather than a path to part of one.
pub(super) fn is_value(table: &Table) -> bool {
    let has = |key: &str| table.get(key).is_some();
    over_time::is_value(table)
        || ["every", "packets", "uniform", "normal", "table"].into_iter().any(has)
        || [["to_bad", "to_good"], ["rate", "burst"], ["probability", "by"], ["guard", "turn"]]
            .iter()
            .any(|pair| pair.iter().all(|key| has(key)))
}

fn loss(node: &Node, at: &str) -> Result<Loss> {
    const EXPECTED: &str = "a fraction such as \"5%\" or 0.05, { every = 1000 }, { packets = [3, 17] }, \
                            { to_bad = \"1%\", to_good = \"25%\" }, \
                            { good_for = \"10s\", bad_for = \"200ms\" }, { steps = [...] }, { ramp = [...] }, or \"none\"";
    if node.is_word(&["none"]) {
        return Ok(Loss::None);
    }
    let Value::Table(t) = &node.value else {
        let p: Probability = node.as_quantity(at, EXPECTED)?;
        return Ok(if p.fraction() == 0.0 { Loss::None } else { Loss::Independent(p) });
    };
    let name = format!("{at}'s table");
    if let Some(every) = t.get("every") {
        check_keys(t, &name, &["every"])?;
        let expected = "a number of packets, at least 2, of which the last is lost";
        return Ok(Loss::Periodic(every.as_count(
            &format!("{at}.every"),
            Parameter::at("every").range,
            expected,
        )?));
    }
    if let Some(packets) = t.get("packets") {
        check_keys(t, &name, &["packets"])?;
        return indices(packets, &format!("{at}.packets")).map(Loss::List);
    }
    if t.get("steps").is_some() || t.get("ramp").is_some() {
        check_keys(t, &name, &["steps", "ramp"])?;
        let value = "a fraction such as \"5%\" or 0.05";
        let timeline = over_time::timeline(t, at, value)?.ok_or_else(|| node.unexpected(at, EXPECTED))?;
        return Ok(Loss::OverTime(timeline));
    }
    if t.get("good_for").is_some() || t.get("bad_for").is_some() {
        return states(node, t, at, EXPECTED);
    }
    check_keys(t, &name, &["every", "packets", "to_bad", "to_good", "loss_bad", "loss_good"])?;
    let (Some(to_bad), Some(to_good)) = (t.get("to_bad"), t.get("to_good")) else {
        return Err(node.unexpected(at, EXPECTED));
    };
    let probability = |node: &Node, key: &str| {
        node.as_quantity::<Probability>(&format!("{at}.{key}"), "a fraction such as \"1%\" or 0.01")
    };
    let or = |key: &str, default: f64| match t.get(key) {
        Some(n) => probability(n, key),
        None => Ok(Probability::new(default).unwrap_or_default()),
    };
    Ok(Loss::GilbertElliott {
        to_bad: probability(to_bad, "to_bad")?,
        to_good: probability(to_good, "to_good")?,
        loss_bad: or("loss_bad", 1.0)?,
        loss_good: or("loss_good", 0.0)?,
    })
}

/// Reads loss in two states with exponentially distributed durations.
fn states(node: &Node, t: &Table, at: &str, expected: &str) -> Result<Loss> {
    check_keys(t, &format!("{at}'s table"), &["good_for", "bad_for", "loss_bad", "loss_good"])?;
    let mean = |key: &str| -> Result<Nanos> {
        let Some(node) = t.get(key) else { return Err(node.unexpected(at, expected)) };
        let (at, expected) =
            (format!("{at}.{key}"), "the mean time in that state, 1ms to 1h, such as \"200ms\"");
        let time: Nanos = node.as_quantity(&at, expected)?;
        let bounds = Nanos::millis(1)..=LONGEST;
        if bounds.contains(&time) { Ok(time) } else { Err(node.unexpected(&at, expected)) }
    };
    let or = |key: &str, default: f64| match t.get(key) {
        Some(n) => n.as_quantity(&format!("{at}.{key}"), "a fraction such as \"1%\" or 0.01"),
        None => Ok(Probability::new(default).unwrap_or_default()),
    };
    Ok(Loss::States {
        good_for: mean("good_for")?,
        bad_for: mean("bad_for")?,
        loss_bad: or("loss_bad", 1.0)?,
        loss_good: or("loss_good", 0.0)?,
    })
}

fn indices(node: &Node, at: &str) -> Result<Vec<u64>> {
    const EXPECTED: &str = "a list of ascending packet indexes, counted from 0, such as [3, 17]";
    let Value::Array(all) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
    let mut indices: Vec<u64> = Vec::with_capacity(all.len());
    for n in all {
        let index = n.as_count(at, 0..=1 << 62, EXPECTED)?;
        if indices.last().is_some_and(|last| *last >= index) {
            return Err(n.unexpected(at, EXPECTED));
        }
        indices.push(index);
    }
    if indices.is_empty() { Err(node.unexpected(at, EXPECTED)) } else { Ok(indices) }
}

fn share(node: &Node, at: &str, expected: &str) -> Result<Probability> {
    if node.is_word(&["none"]) { Ok(Probability::default()) } else { node.as_quantity(at, expected) }
}

/// Reads a queue's length in packets or wire bytes: `None` for `"none"`.
pub(super) fn queue_length(node: &Node, at: &str, expected: &str) -> Result<Option<QueueLimit>> {
    if node.is_word(&["none"]) {
        return Ok(None);
    }
    let packets = match &node.value {
        Value::Integer(i) => u64::try_from(*i).ok(),
        Value::Text(t) => t.trim().strip_suffix('p').unwrap_or(t.trim()).trim().parse().ok(),
        _ => return Err(node.unexpected(at, expected)),
    };
    match packets {
        Some(0) => Err(node.unexpected(at, expected)),
        Some(n) => Ok(Some(QueueLimit::Packets(n))),
        None if matches!(node.value, Value::Text(_)) => {
            Ok(Some(QueueLimit::Bytes(node.as_quantity(at, expected)?)))
        }
        None => Err(node.unexpected(at, expected)),
    }
}

fn ecn_threshold(node: &Node, at: &str) -> Result<Option<QueueLimit>> {
    const EXPECTED: &str = "the queue length from which packets are marked: packets such as 20 or \
                            \"20p\", wire bytes with a unit such as \"30K\", or \"none\"";
    match queue_length(node, at, EXPECTED)? {
        Some(QueueLimit::Bytes(bytes)) if bytes.as_bytes() == 0 => Err(node.unexpected(at, EXPECTED)),
        threshold => Ok(threshold),
    }
}

fn policer(node: &Node, at: &str) -> Result<Option<Policer>> {
    const EXPECTED: &str = "{ rate = \"10M\", burst = \"32K\" }, or \"none\"";
    if node.is_word(&["none"]) {
        return Ok(None);
    }
    let Value::Table(t) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
    check_keys(t, &format!("{at}'s table"), &["rate", "burst"])?;
    let (Some(rate), Some(burst)) = (t.get("rate"), t.get("burst")) else {
        return Err(node.unexpected(at, EXPECTED));
    };
    let expected = "a bit rate of IP packets above 0, such as \"10M\"";
    let policer = Policer {
        rate: rate.as_quantity(&format!("{at}.rate"), expected)?,
        burst: burst
            .as_quantity(&format!("{at}.burst"), "the bucket's depth in IP bytes, such as \"32K\"")?,
    };
    if policer.rate.as_bps() == 0 {
        return Err(rate.unexpected(&format!("{at}.rate"), expected));
    }
    Ok(Some(policer))
}

fn jitter(node: &Node, at: &str) -> Result<Option<Jitter>> {
    const EXPECTED: &str = "a time up to 1h such as \"2ms\" (evenly to both sides of the delay), { normal = \"1ms\" }, \
                            { uniform = \"2ms\" }, { table = [\"-1ms\", \"0ms\", \"4ms\"] }, each with \
                            reorder = true if packets may overtake, or \"none\"";
    if node.is_word(&["none"]) {
        return Ok(None);
    }
    let Value::Table(t) = &node.value else {
        let spread = time(node, at, EXPECTED)?;
        let uniform = JitterDistribution::Uniform { spread };
        return Ok((spread > Nanos::ZERO).then_some(Jitter {
            distribution: uniform,
            reorder: false,
            correlation_time: None,
        }));
    };
    check_keys(t, &format!("{at}'s table"), &["uniform", "normal", "table", "reorder", "correlation_time"])?;
    let reorder = match t.get("reorder") {
        Some(n) => n.as_bool(&format!("{at}.reorder"))?,
        None => false,
    };
    let width = |n: &Node, key: &str| time(n, &format!("{at}.{key}"), "a time up to 1h such as \"2ms\"");
    let distribution = match (t.get("uniform"), t.get("normal"), t.get("table")) {
        (Some(n), None, None) => JitterDistribution::Uniform { spread: width(n, "uniform")? },
        (None, Some(n), None) => JitterDistribution::Normal { deviation: width(n, "normal")? },
        (None, None, Some(n)) => JitterDistribution::Table(offsets(n, &format!("{at}.table"))?),
        _ => return Err(node.unexpected(at, EXPECTED)),
    };
    let correlation_time = match (t.get("correlation_time"), &distribution) {
        (None, _) => None,
        (Some(n), JitterDistribution::Normal { .. }) => {
            let at = format!("{at}.correlation_time");
            let expected = "the time in which the correlation drops to 1/e, 16us to 1h, such as \"100ms\"";
            let time: Nanos = n.as_quantity(&at, expected)?;
            let bounds = Nanos::micros(16)..=LONGEST;
            if !bounds.contains(&time) {
                return Err(n.unexpected(&at, expected));
            }
            Some(time)
        }
        (Some(n), _) => {
            return Err(n.unexpected(
                &format!("{at}.correlation_time"),
                "'normal' in the same table, the only distribution with correlation",
            ));
        }
    };
    Ok(Some(Jitter { distribution, reorder, correlation_time }))
}

/// Reads offsets, which must be sorted like quantiles.
fn offsets(node: &Node, at: &str) -> Result<Vec<Offset>> {
    const EXPECTED: &str = "a list of deviations from the delay, each up to 1h, such as [\"-1ms\", \
                            \"0ms\", \"4ms\"]";
    let Value::Array(all) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
    let mut offsets = Vec::with_capacity(all.len());
    for n in all {
        let offset: Offset = n.as_quantity(at, EXPECTED)?;
        if offset.as_ns().unsigned_abs() > LONGEST.as_ns() {
            return Err(n.unexpected(at, EXPECTED));
        }
        offsets.push(offset);
    }
    offsets.sort_unstable();
    if offsets.is_empty() { Err(node.unexpected(at, EXPECTED)) } else { Ok(offsets) }
}

fn reorder(node: &Node, at: &str) -> Result<Option<Reorder>> {
    const EXPECTED: &str = "{ probability = \"1%\", by = \"5ms\" }, or \"none\"";
    if node.is_word(&["none"]) {
        return Ok(None);
    }
    let Value::Table(t) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
    check_keys(t, &format!("{at}'s table"), &["probability", "by"])?;
    let (Some(probability), Some(by)) = (t.get("probability"), t.get("by")) else {
        return Err(node.unexpected(at, EXPECTED));
    };
    let expected = "the time that a packet is held back, above 0 and up to 1h, such as \"5ms\"";
    let reorder = Reorder {
        probability: probability
            .as_quantity(&format!("{at}.probability"), "a fraction of the packets such as \"1%\" or 0.01")?,
        by: time(by, &format!("{at}.by"), expected)?,
    };
    if reorder.by == Nanos::ZERO {
        return Err(by.unexpected(&format!("{at}.by"), expected));
    }
    Ok(Some(reorder))
}
