//! What the probes told beside round trips: how many of those fit into a minute, and how long each way took.

use bdp_model::measurement::{DirectionResult, Measurement};
use bdp_model::one_way::EachWayReport;
use bdp_model::udp::OneWayDelay;

use super::arrow;
use crate::grid::wrap;
use crate::number::three_digits;
use crate::style::{Style, Tint};

/// Responsiveness and delays each way, of all directions.
pub(super) fn latency(m: &Measurement, style: &Style) -> String {
    let mut text = String::new();
    let parts: Vec<String> = m
        .directions
        .iter()
        .filter_map(|d| Some(format!("{} {:.0}", arrow(d.direction, style), d.responsiveness_rpm?)))
        .collect();
    if !parts.is_empty() {
        let said = format!("{} round trips a minute under load (probes, trimmed mean)", parts.join("  "));
        text.push_str(&wrap("response ", Tint::None, &said, style));
    }
    for direction in &m.directions {
        let Some(said) = direction.each_way_ns.as_ref().and_then(each_way) else { continue };
        let lead = format!("one way  {} ", arrow(direction.direction, style));
        text.push_str(&wrap(&lead, Tint::None, &said, style));
    }
    text
}

/// Both in words, for a page.
pub(crate) fn in_words(direction: &DirectionResult) -> Option<String> {
    let responsiveness =
        direction.responsiveness_rpm.map(|rpm| format!("{rpm:.0} round trips a minute under load"));
    let each_way = direction.each_way_ns.as_ref().and_then(each_way);
    let parts: Vec<String> = responsiveness.into_iter().chain(each_way).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn each_way(report: &EachWayReport) -> Option<String> {
    let loaded = report.loaded?;
    let of = |way: &OneWayDelay, idle: Option<OneWayDelay>| {
        let idle = idle.map_or_else(String::new, |idle| format!(" (idle {})", ms(idle.p50)));
        let known = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), ms);
        format!("{}/{}/{} ms{idle}", ms(way.p50), known(way.p95), known(way.p99))
    };
    Some(format!(
        "probes there {}, back {}; p50/p95/p99 under load, each off by up to {} ms, the clocks' error",
        of(&loaded.there, report.idle.map(|idle| idle.there)),
        of(&loaded.back, report.idle.map(|idle| idle.back)),
        ms(i64::try_from(loaded.there.clock_error).unwrap_or(i64::MAX))
    ))
}

fn ms(ns: i64) -> String {
    three_digits(ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use bdp_model::one_way::EachWay;

    use super::*;

    #[test]
    fn a_queue_is_told_on_its_way() {
        let way = |p50, p99| OneWayDelay {
            p50,
            p95: Some(p99),
            p99: Some(p99),
            clock_error: 25_000,
            ..Default::default()
        };
        let idle = EachWay { there: way(10_000_000, 10_100_000), back: way(10_050_000, 10_100_000) };
        let loaded = EachWay { there: way(48_000_000, 50_000_000), back: way(10_060_000, 10_200_000) };
        let report = EachWayReport { idle: Some(idle), loaded: Some(loaded) };
        assert_eq!(
            each_way(&report).unwrap(),
            "probes there 48.0/50.0/50.0 ms (idle 10.0), back 10.1/10.2/10.2 ms (idle 10.1); p50/p95/p99 under load, \
             each off by up to 0.0250 ms, the clocks' error"
        );
        assert_eq!(each_way(&EachWayReport { idle: Some(idle), loaded: None }), None);
    }
}
