//! Datagram statistics of a flow.

use bdp_model::flow::udp::{Distribution, Trial, UdpReport};
use bdp_model::measurement::{DirectionResult, Measurement};
use bdp_model::units::format_bps;
use maud::{Markup, html};

use super::page::{facts, numbers, table, words};
use crate::measurement::search_conclusion;
use crate::number::{loss, three_digits};

/// Returns a table for one direction, including the trials of a search; nothing for TCP.
pub(super) fn of_direction(measurement: &Measurement, direction: &DirectionResult, title: &str) -> Markup {
    let Some(udp) = &direction.udp else { return Markup::default() };
    let mut rows = rows(udp);
    let (send, receive) = (direction.send_method.to_string(), direction.receive_method.to_string());
    let methods = [("sent by", send), ("received by", receive)];
    let known = methods.into_iter().filter(|(_, method)| !method.is_empty());
    let methods: Vec<String> = known.map(|(what, method)| format!("{what} {method}")).collect();
    rows.push(("methods".to_owned(), methods.join(", ")));
    rows.extend(search_conclusion(measurement, udp).map(|said| ("search".to_owned(), said)));
    html! { (facts(&format!("Datagrams, {title}"), &rows)) (trials(&udp.trials)) }
}

/// Returns the figures of a datagram flow, name and value.
pub(super) fn rows(udp: &UdpReport) -> Vec<(String, String)> {
    let asked = udp.asked_bps.map_or_else(|| "as fast as possible".to_owned(), format_bps);
    let by_receiver = match udp.dropped_by_receiver {
        None => "; drops in the receiving host are unknown".to_owned(),
        Some(0) => String::new(),
        Some(dropped) => format!("; {dropped} of them dropped by the receiving host, whose socket was full"),
    };
    let unknown = || "unknown: the server does not report it".to_owned();
    let duplicated = udp.duplicated.map_or_else(unknown, |n| n.to_string());
    let reordered = match (udp.reordered, udp.reorder_displacement_max) {
        (None, _) => unknown(),
        (Some(n), _) if udp.duplicated.is_none() => format!("{n}, copies among them"),
        (Some(n @ 1..), Some(places)) => format!("{n}, by {places} places at most"),
        (Some(n), _) => n.to_string(),
    };
    let one_way = udp.one_way_delay_ns.map(|d| {
        let ms = |ns: i64| three_digits(ns as f64 / 1e6);
        format!(
            "min {}, p50 {}{} ms, all off by up to {} ms as the clocks differ",
            ms(d.min),
            ms(d.p50),
            d.p99.map_or_else(String::new, |p99| format!(", p99 {}", ms(p99))),
            three_digits(d.clock_error as f64 / 1e6)
        )
    });
    let gaps = udp
        .send_gap_ns
        .as_ref()
        .map(|gaps| format!("{}, up to {} at a time", quantiles(gaps), udp.burst_max));
    let row = |name: &str, value: String| (name.to_owned(), value);
    vec![
        row("asked for", asked),
        row("sent", format!("{}, {} of {} B", format_bps(udp.sent_bps), udp.sent, udp.datagram_bytes)),
        row(
            "skipped: too late to be sent",
            if udp.left_out > 0 { udp.left_out.to_string() } else { String::new() },
        ),
        row("lost", format!("{} ({}){by_receiver}", udp.lost, loss(udp.loss_ratio))),
        row("duplicated", duplicated),
        row("reordered", reordered),
        row(
            "jitter (RFC 3550)",
            udp.jitter_ns.map_or_else(String::new, |ns| format!("{} ms", three_digits(ns as f64 / 1e6))),
        ),
        row("delay variation", udp.delay_variation_ns.as_ref().map_or_else(String::new, quantiles)),
        row("one way", one_way.unwrap_or_default()),
        row("from call to call", gaps.unwrap_or_default()),
    ]
}

fn trials(trials: &[Trial]) -> Markup {
    if trials.is_empty() {
        return Markup::default();
    }
    let figures = ["trial", "asked for", "sent", "received", "lost"];
    let headings: Vec<_> = figures.into_iter().map(numbers).chain([words("")]).collect();
    let rows = trials.iter().zip(1..).map(|(trial, number)| {
        [
            number.to_string(),
            trial.rate_bps.map_or_else(|| "as fast as possible".to_owned(), format_bps),
            format_bps(trial.sent_bps),
            format_bps(trial.received_bps),
            loss(trial.loss_ratio),
            verdict(trial).to_owned(),
        ]
    });
    table("", &headings, rows)
}

fn verdict(trial: &Trial) -> &'static str {
    match (trial.held, trial.passed) {
        (true, true) => "held",
        (true, false) => "not held",
        (false, true) => "passed",
        (false, false) if trial.fell_short() && trial.lost == 0 => "the sender fell short",
        (false, false) => "failed",
    }
}

fn quantiles(d: &Distribution) -> String {
    let ms = |ns: u64| three_digits(ns as f64 / 1e6);
    let known = |name, ns: Option<u64>| ns.map_or_else(String::new, |ns| format!(", {name} {}", ms(ns)));
    format!("p50 {}{}{} ms", ms(d.p50), known("p95", d.p95), known("p99", d.p99))
}
