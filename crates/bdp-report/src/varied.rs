//! What sets a case apart, in few words: `64 KiB = 45 segments`, `loss 5%`, `10 x 128 KiB`.

use bdp_model::ByteCount;
use serde_json::Value;

use crate::grid::tame;
use crate::number::asked_size;
use crate::style::Style;
use crate::summary::Point;

/// The swept parameters, or where nothing is swept what shapes the flow. A window is also counted in segments, where
/// `segment` is the word for one.
pub(crate) fn varied(point: &Point<'_>, style: &Style, segment: Option<&str>) -> String {
    let mss = point.records.iter().find_map(|r| r.flows.first()?.mss_bytes).filter(|&m| m > 0);
    let count = segment.zip(mss);
    if point.params.is_empty() {
        return shape(point, style, count);
    }
    let parts = point.params.iter().map(|(path, value)| match (window(path, value), value) {
        (Some(bytes), _) => in_segments(bytes, count),
        (None, Value::String(word)) if speaks_for_itself(word) => tame(word),
        (None, _) => format!("{} {}", label(path, point), plain(value)),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Whether a value such as `reno` or `forward` needs no name before it, as `5%`, `off` and `none` do.
fn speaks_for_itself(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && !["none", "off", "on", "auto", "yes", "no", "true", "false"].contains(&word)
}

/// The scenario and its swept parameters, but for the one at `except`.
pub(crate) fn name(point: &Point<'_>, except: Option<&str>) -> String {
    let mut name = tame(point.scenario);
    for (path, value) in point.params.iter().filter(|(path, _)| Some(path.as_str()) != except) {
        let value = window(path, value).map_or_else(|| plain(value), asked_size);
        name.push_str(&format!(" {} {value}", label(path, point)));
    }
    name
}

/// The size, where the parameter is a window.
pub(crate) fn window(path: &str, value: &Value) -> Option<u64> {
    if path != "window" && !path.ends_with(".window") {
        return None;
    }
    serde_json::from_value::<ByteCount>(value.clone()).ok().map(ByteCount::as_bytes)
}

/// The last part of the path, or as many as tell it from the point's other parameters.
fn label(path: &str, point: &Point<'_>) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let suffix = |n: usize| parts[parts.len() - n..].join(".");
    let unique = |text: &str| {
        point.params.keys().filter(|p| *p == text || p.ends_with(&format!(".{text}"))).count() <= 1
    };
    let n = (1..parts.len()).find(|&n| unique(&suffix(n))).unwrap_or(parts.len());
    tame(&suffix(n))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => tame(text),
        other => tame(&other.to_string()),
    }
}

fn in_segments(bytes: u64, count: Option<(&str, u64)>) -> String {
    let size = asked_size(bytes);
    match count.map(|(segment, mss)| (segment, bytes / mss)) {
        None => size,
        Some((segment, 0)) => format!("{size} < 1 {segment}"),
        Some((segment, 1)) => format!("{size} = 1 {segment}"),
        Some((segment, n)) => format!("{size} = {n} {segment}s"),
    }
}

/// What is particular about the only flow of a scenario without a sweep.
fn shape(point: &Point<'_>, style: &Style, count: Option<(&str, u64)>) -> String {
    let Some(case) = point.records.first().map(|r| &r.case) else { return String::new() };
    let Some(flow) = case.flows.first() else { return String::new() };
    if case.flows.len() > 1 {
        return format!("{} flows", case.flows.len());
    }
    let unscaled = |host: &bdp_model::scenario::HostSpec| {
        (host.name == flow.to || host.name == flow.from)
            && host.sysctls.get("net.ipv4.tcp_window_scaling").is_some_and(|v| v == "0")
    };
    match flow.window.map(ByteCount::as_bytes) {
        Some(bytes) if flow.streams > 1 => {
            let times = if style.unicode { '×' } else { 'x' };
            format!("{} {times} {}", flow.streams, asked_size(bytes))
        }
        Some(bytes) => in_segments(bytes, count),
        None if case.hosts.iter().any(unscaled) => "scaling off".to_owned(),
        None if flow.streams > 1 => format!("{} streams", flow.streams),
        None => "autotuned".to_owned(),
    }
}
