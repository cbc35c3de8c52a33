//! Short description of what distinguishes a case: `64 KiB = 45 segments`, `loss 5%`, `10 x 128 KiB`.

use bdp_model::flow::window::WindowBytes;
use bdp_model::sweep::points::{label, value_words};
pub(crate) use bdp_model::sweep::points::{name, window};
use bdp_model::tuning::setting::Setting;
use serde_json::Value;

use crate::grid::tame;
use crate::number::asked_size;
use crate::style::Style;
use crate::summary::Point;

/// Returns the swept parameters, or without a sweep the parameters that shape the flow. A window is also given in segments;
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
        (None, _) => format!("{} {}", label(path, point), value_words(value)),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Whether a value such as `reno` or `forward` is clear without a name, unlike `5%`, `off` and `none`.
fn speaks_for_itself(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && !["none", "off", "on", "auto", "yes", "no", "true", "false"].contains(&word)
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

/// Returns the distinctive parameters of the only flow of a scenario without a sweep.
fn shape(point: &Point<'_>, style: &Style, count: Option<(&str, u64)>) -> String {
    let Some(case) = point.records.first().map(|r| &r.case) else { return String::new() };
    let Some(flow) = case.flows.first() else { return String::new() };
    if case.flows.len() > 1 {
        return format!("{} flows", case.flows.len());
    }
    let unscaled = |host: &bdp_model::case::HostSpec| {
        (host.name == flow.to || host.name == flow.from) && host.switches_off(Setting::TcpWindowScaling)
    };
    match flow.spec.window.map(WindowBytes::as_bytes) {
        Some(bytes) if flow.spec.streams > 1 => {
            let times = if style.unicode { '×' } else { 'x' };
            format!("{} {times} {}", flow.spec.streams, asked_size(bytes))
        }
        Some(bytes) => in_segments(bytes, count),
        None if case.hosts.iter().any(unscaled) => "scaling off".to_owned(),
        None if flow.spec.streams > 1 => format!("{} streams", flow.spec.streams),
        None => "autotuned".to_owned(),
    }
}
