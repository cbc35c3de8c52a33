//! Datagram statistics of a direction, as text lines.

use bdp_model::flow::method::SendMethod;
use bdp_model::flow::udp::{Distribution, UdpReport};
use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use bdp_model::units::format_bps;

use super::{arrow, search};
use crate::grid::{tame, wrap};
use crate::number::{loss, rate, three_digits};
use crate::style::{Style, Tint};

/// Returns the lines of a direction that sent datagrams.
pub(super) fn datagrams(m: &Measurement, way: Direction, style: &Style) -> String {
    let direction = m.directions.iter().find(|d| d.direction == way);
    let Some((direction, udp)) = direction.and_then(|d| Some((d, d.udp.as_ref()?))) else {
        return String::new();
    };
    let lead = format!("udp {}   ", arrow(way, style));
    let indent = " ".repeat(crate::grid::width(&lead));
    let mut text = wrap(&lead, Tint::None, &sent(direction, udp), style);
    let lines =
        [Some(lost(udp)), Some(delays(udp)), gaps(udp), search::conclusion(m, udp), search::trials(udp)];
    for line in lines.into_iter().flatten() {
        text.push_str(&wrap(&indent, Tint::None, &line, style));
    }
    text
}

/// Returns how much was sent and lost, in one line below the table.
pub(super) fn datagrams_in_short(m: &Measurement, way: Direction, style: &Style) -> String {
    let direction = m.directions.iter().find(|d| d.direction == way);
    let Some(udp) = direction.and_then(|d| d.udp.as_ref()) else { return String::new() };
    let lead = format!("udp {}    ", arrow(way, style));
    let sent = format!("{} of {} B sent, {}", udp.sent, udp.datagram_bytes, rate(udp.sent_bps));
    let mut text = wrap(&lead, Tint::None, &format!("{sent}; {}", lost(udp)), style);
    if let Some(found) = search::conclusion(m, udp) {
        text.push_str(&wrap(&" ".repeat(crate::grid::width(&lead)), Tint::None, &found, style));
    }
    text
}

fn sent(direction: &DirectionResult, udp: &UdpReport) -> String {
    let asked = udp
        .asked_bps
        .map_or_else(|| "as fast as possible".to_owned(), |asked| format!("{} asked for", format_bps(asked)));
    // A server of another protocol does not report its send method.
    let by = match &direction.send_method {
        SendMethod::Unknown => String::new(),
        method => format!(", by {}", tame(&method.to_string())),
    };
    format!("{} datagrams of {} B sent, {} ({asked}){by}", udp.sent, udp.datagram_bytes, rate(udp.sent_bps))
}

fn lost(udp: &UdpReport) -> String {
    let mut parts = vec![format!("{} lost ({})", udp.lost, loss(udp.loss_ratio))];
    parts.push(match (udp.dropped_by_receiver, udp.lost) {
        (None, _) => "drops of the receiving host unknown".to_owned(),
        (Some(0), 0) => String::new(),
        (Some(dropped), _) => format!("{dropped} of them dropped by the receiving host"),
    });
    parts.push(match (udp.duplicated, udp.reordered) {
        (None, None) => "duplicates and reordering unknown".to_owned(),
        (None, Some(n)) => format!("{n} out of order or copies"),
        (Some(copies), None) => format!("{copies} duplicated, reordering unknown"),
        (Some(copies), Some(0)) => format!("{copies} duplicated, 0 reordered"),
        (Some(copies), Some(n)) => match udp.reorder_displacement_max {
            Some(places) => format!("{copies} duplicated, {n} reordered (by {places} at most)"),
            None => format!("{copies} duplicated, {n} reordered"),
        },
    });
    if udp.left_out > 0 {
        parts.push(format!("{} skipped: too late to be sent", udp.left_out));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn delays(udp: &UdpReport) -> String {
    let mut parts = vec![match udp.jitter_ns {
        Some(ns) => format!("jitter {} ms (RFC 3550)", ms(ns as f64)),
        None => "jitter unknown".to_owned(),
    }];
    parts.extend(udp.delay_variation_ns.map(|d| format!("delay variation {} ms p50/p95/p99", three(&d))));
    parts.extend(udp.one_way_delay_ns.map(|d| {
        let of = |ns: i64| ms(ns as f64);
        format!(
            "one way {} ms min/p50/p99, {}{} ms clock error",
            [of(d.min), of(d.p50), d.p99.map_or_else(|| "-".to_owned(), of)].join("/"),
            "+-",
            ms(d.clock_error as f64)
        )
    }));
    parts.join(", ")
}

fn gaps(udp: &UdpReport) -> Option<String> {
    let gaps = udp.send_gap_ns?;
    Some(format!("sent in bursts of up to {}, gaps {} ms p50/p95/p99", udp.burst_max, three(&gaps)))
}

fn three(d: &Distribution) -> String {
    [Some(d.p50), d.p95, d.p99].map(|ns| ns.map_or_else(|| "-".to_owned(), |ns| ms(ns as f64))).join("/")
}

fn ms(ns: f64) -> String {
    three_digits(ns / 1e6)
}
