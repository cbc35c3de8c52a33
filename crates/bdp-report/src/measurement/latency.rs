//! Results of probes besides round trips: responsiveness and one-way delays.

use bdp_model::flow::udp::OneWayDelay;
use bdp_model::measurement::responsiveness::Responsiveness;
use bdp_model::measurement::{DirectionResult, Measurement};
use bdp_model::probes::one_way::EachWayReport;
use bdp_model::units::format_bps;

use super::arrow;
use crate::grid::wrap;
use crate::number::three_digits;
use crate::style::{Style, Tint};

/// Returns the requested responsiveness of all directions.
pub(super) fn responsiveness(m: &Measurement, style: &Style) -> String {
    let mut text = String::new();
    for direction in &m.directions {
        let Some(found) = &direction.responsiveness else { continue };
        let lead = format!("RPM      {} ", arrow(direction.direction, style));
        text.push_str(&wrap(&lead, Tint::None, &found_words(found), style));
    }
    text
}

/// Returns responsiveness and one-way delays of all directions.
pub(super) fn latency(m: &Measurement, style: &Style) -> String {
    let mut text = responsiveness(m, style);
    let parts: Vec<String> = m
        .directions
        .iter()
        .filter(|d| d.responsiveness.is_none())
        .filter_map(|d| Some(format!("{} {:.0}", arrow(d.direction, style), d.responsiveness_rpm?)))
        .collect();
    if !parts.is_empty() {
        let said = format!(
            "{} (responsiveness: round trips per minute of UDP probes under load, trimmed mean)",
            parts.join("  ")
        );
        text.push_str(&wrap("RPM      ", Tint::None, &said, style));
    }
    let mut clock_error = None;
    for direction in &m.directions {
        let Some((said, error)) = direction.each_way_ns.as_ref().and_then(each_way) else { continue };
        let lead = format!("one way  {} ", arrow(direction.direction, style));
        text.push_str(&wrap(&lead, Tint::None, &said, style));
        clock_error = clock_error.max(Some(error));
    }
    if let Some(error) = clock_error {
        text.push_str(&wrap("         ", Tint::None, &format!("({})", legend(error)), style));
    }
    text
}

/// `312 (responsiveness, high confidence): new connections 250, loaded ones 374; idle 2480. Goodput 92.1 Mbit/s (...)`.
fn found_words(found: &Responsiveness) -> String {
    let known = |rpm: Option<f64>| rpm.map_or_else(|| "unknown".to_owned(), |rpm| format!("{rpm:.0}"));
    format!(
        "{} (responsiveness, {} confidence): new connections {}, loaded connections {}; idle {}. Goodput {} ({} \
         confidence) by {} connections",
        known(found.working.rpm),
        found.confidence.name(),
        known(found.working.foreign_rpm),
        known(found.working.self_rpm),
        known(found.idle.foreign_rpm),
        format_bps(found.goodput_bps),
        found.goodput_confidence.name(),
        found.connections
    )
}

/// Returns both in words, for a page.
pub(crate) fn in_words(direction: &DirectionResult) -> Option<String> {
    let responsiveness = match &direction.responsiveness {
        Some(found) => Some(format!("RPM {}", found_words(found))),
        None => direction
            .responsiveness_rpm
            .map(|rpm| format!("responsiveness {rpm:.0} RPM (round trips per minute of probes under load)")),
    };
    let each_way = direction.each_way_ns.as_ref().and_then(each_way);
    let each_way = each_way.map(|(said, error)| format!("one way {said}, {}", legend(error)));
    let parts: Vec<String> = responsiveness.into_iter().chain(each_way).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns both one-way delays, and the largest clock error in nanoseconds.
fn each_way(report: &EachWayReport) -> Option<(String, u64)> {
    let loaded = report.loaded?;
    let of = |way: &OneWayDelay, idle: Option<OneWayDelay>| {
        let idle = idle.map_or_else(String::new, |idle| format!(" (idle {})", ms(idle.p50)));
        let known = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), ms);
        format!("{}/{}/{} ms{idle}", ms(way.p50), known(way.p95), known(way.p99))
    };
    let there = of(&loaded.there, report.idle.map(|idle| idle.there));
    let back = of(&loaded.back, report.idle.map(|idle| idle.back));
    Some((format!("there {there}, back {back}"), loaded.there.clock_error))
}

fn legend(clock_error: u64) -> String {
    let error = ms(i64::try_from(clock_error).unwrap_or(i64::MAX));
    format!("p50/p95/p99 of probes under load; clock error up to {error} ms")
}

fn ms(ns: i64) -> String {
    three_digits(ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use bdp_model::probes::one_way::EachWay;

    use super::*;

    #[test]
    fn a_queue_shows_on_its_way() {
        let way = |p50, p99| OneWayDelay {
            p50,
            p95: Some(p99),
            p99: Some(p99),
            clock_error: 25_000,
            ..Default::default()
        };
        let idle = EachWay { there: way(10_000_000, 10_100_000), back: way(10_050_000, 10_100_000) };
        let loaded = EachWay { there: way(48_000_000, 50_000_000), back: way(10_060_000, 10_200_000) };
        let report = EachWayReport { idle: Some(idle), loaded: Some(loaded), skew: None };
        assert_eq!(
            each_way(&report).unwrap(),
            ("there 48.0/50.0/50.0 ms (idle 10.0), back 10.1/10.2/10.2 ms (idle 10.1)".to_owned(), 25_000)
        );
        assert_eq!(legend(25_000), "p50/p95/p99 of probes under load; clock error up to 0.0250 ms");
        assert_eq!(each_way(&EachWayReport { idle: Some(idle), loaded: None, skew: None }), None);
    }
}
