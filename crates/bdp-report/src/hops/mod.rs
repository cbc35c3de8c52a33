//! Text output of `bdp path`: the request, a row for each hop, and the conclusions.

mod verdict;

use bdp_model::probes::hops::{
    Figures, Hop, HopKind, HopLoss, Marks, PathReport, PathRequest, Phase, ProbeMethod,
};
use bdp_model::units::format_bps;

use crate::grid::{Align, Cell, Column, render, tame, wrap};
use crate::number::three_digits;
use crate::style::{Style, Tint};

pub(crate) use verdict::sentences;

/// Width to which names are truncated.
const WIDEST_NAME: usize = 40;

/// Returns the report of a path, in several lines.
pub fn path_text(report: &PathReport, style: &Style) -> String {
    let mut text = wrap("", Tint::None, &heading(report), style);
    text.push('\n');
    text.push_str(&table(report, style));
    text.push('\n');
    for (lead, tint, sentence) in sentences(report) {
        text.push_str(&wrap(&format!("{lead:<9}"), tint, &sentence, style));
    }
    text
}

/// Returns the current phase, for a live line.
pub fn phase_words(phase: Phase, hops: u8) -> String {
    match phase {
        Phase::Discovery => "searching for hops".to_owned(),
        Phase::Idle => format!("{hops} hops, round trips without load"),
        Phase::Loaded => format!("{hops} hops, round trips under load"),
        Phase::Slow => "hops that lost probes, once a second".to_owned(),
        Phase::Sizes => format!("{hops} hops, packet sizes"),
        Phase::Branches => format!("{hops} hops, branches"),
    }
}

/// `path to server 198.18.4.2: 5 hops, ICMP probes of 44 B, 20 a hop 250 ms apart; load 9.55 Mbit/s`.
fn heading(report: &PathReport) -> String {
    let PathRequest { host, probes, interval, .. } = &report.request;
    let host = tame(host);
    let name =
        if report.address.contains(host.trim_matches(['[', ']'])) { String::new() } else { host + " " };
    let count = match report.hops.len() {
        1 => "1 hop".to_owned(),
        n => format!("{n} hops"),
    };
    let mut text = format!(
        "path to {name}{}: {count}, {}, {probes} a hop {interval} apart",
        report.address,
        method_words(&report.method)
    );
    if let Some(load) = &report.load {
        text.push_str("; load ");
        text.push_str(&load.goodput_bps.map_or_else(|| "unknown".to_owned(), format_bps));
    }
    text
}

/// `ICMP probes of 44 B`.
pub(crate) fn method_words(method: &ProbeMethod) -> String {
    let ProbeMethod { protocol, bytes, raw, fallback } = *method;
    let how = match (raw, fallback) {
        (true, _) => " by a raw socket",
        (_, true) => " (ICMP echo is not allowed to this user)",
        _ => "",
    };
    format!("{} probes of {bytes} B{how}", protocol.name())
}

fn table(report: &PathReport, style: &Style) -> String {
    let loaded = report.load.is_some();
    // A row for each hop, and one more for each further address of it.
    let rows: Vec<(&Hop, usize)> = report
        .hops
        .iter()
        .flat_map(|hop| (0..hop.addresses.len().max(1)).map(move |address| (hop, address)))
        .collect();
    let cells = |of: &dyn Fn(&Hop) -> String| -> Vec<Cell> {
        rows.iter().map(|&(hop, at)| Cell::plain(if at == 0 { of(hop) } else { String::new() })).collect()
    };
    let ms = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| three_digits(ns as f64 / 1e6));
    let lost = |figures: Option<Figures>| {
        figures.map_or_else(|| "-".to_owned(), |f| format!("{}/{}", f.lost, f.sent))
    };
    let names = rows.iter().map(|&(hop, at)| {
        let tint = if hop.kind == HopKind::Destination { Tint::Strong } else { Tint::None };
        Cell::tinted(address(hop, at), tint)
    });
    let stands = report.queue.steps.first().map(|step| step.hop);
    let queue = rows.iter().map(|&(hop, at)| {
        let here = at == 0 && stands == Some(hop.number);
        let text = if at == 0 { hop.queue_ns.map_or_else(|| "-".to_owned(), queued) } else { String::new() };
        Cell::tinted(text, if here { Tint::Doubtful } else { Tint::None })
    });
    let mut address = Column::new(["", "address"], Align::Left, names.collect());
    address.narrow(WIDEST_NAME, style);
    let mut columns = vec![
        Column::new(["", "hop"], Align::Point, cells(&|hop| hop.number.to_string())),
        address,
        Column::new(["lost", if loaded { "idle" } else { "" }], Align::Point, cells(&|hop| lost(hop.idle))),
    ];
    if loaded {
        columns.push(Column::new(["lost", "load"], Align::Point, cells(&|hop| lost(hop.loaded))));
    }
    let idle = |pick: fn(&Figures) -> Option<u64>| cells(&|hop| ms(hop.idle.as_ref().and_then(pick)));
    let under_load = |pick: fn(&Figures) -> Option<u64>| cells(&|hop| ms(hop.loaded.as_ref().and_then(pick)));
    let unit = if loaded { ["idle ms", "min"] } else { ["RTT ms", "min"] };
    columns.push(Column::new(unit, Align::Point, idle(|f| f.rtt_min_ns)));
    columns.push(Column::new(["", "p50"], Align::Point, idle(|f| f.rtt_p50_ns)));
    columns.push(Column::new(["", "p95"], Align::Point, idle(|f| f.rtt_p95_ns)));
    if loaded {
        columns.push(Column::new(["load ms", "min"], Align::Point, under_load(|f| f.rtt_min_ns)));
        columns.push(Column::new(["", "p50"], Align::Point, under_load(|f| f.rtt_p50_ns)));
        columns.push(Column::new(["", "p95"], Align::Point, under_load(|f| f.rtt_p95_ns)));
    }
    columns.push(Column::new(["queue", "ms"], Align::Point, queue.collect()));
    let mtu = |hop: &Hop| hop.mtu_bytes.map_or_else(|| "-".to_owned(), |mtu| mtu.to_string());
    columns.push(Column::new(["", "MTU"], Align::Point, cells(&mtu)));
    if report.request.octet() != 0 || !report.marks.changes.is_empty() {
        let marks = |hop: &Hop| hop.marks.map_or_else(|| "-".to_owned(), marks_words);
        columns.push(Column::new(["", "marks"], Align::Left, cells(&marks)));
    }
    columns.push(Column::new(["", "notes"], Align::Left, cells(&|hop| notes(hop, report))));
    columns.retain(|column| !column.is_blank());
    render(&columns, &[], style)
}

/// Formats milliseconds, small values with no more digits than are known.
fn queued(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 10.0 { format!("{ms:.1}") } else { three_digits(ms) }
}

/// `198.18.0.2`, `r1 (198.18.0.2)`, `-`.
fn address(hop: &Hop, at: usize) -> String {
    let Some(known) = hop.addresses.get(at) else { return "-".to_owned() };
    match &known.name {
        Some(name) => format!("{} ({})", tame(name), known.address),
        None => known.address.to_string(),
    }
}

/// `af41 ECT(0)`.
pub(crate) fn marks_words(marks: Marks) -> String {
    let Marks { dscp, ecn } = marks;
    let name = match dscp {
        0 => "cs0".to_owned(),
        46 => "ef".to_owned(),
        44 => "va".to_owned(),
        1 => "le".to_owned(),
        n if n % 8 == 0 => format!("cs{}", n / 8),
        n if n % 2 == 0 && (1..=4).contains(&(n / 8)) && n % 8 / 2 <= 3 => {
            format!("af{}{}", n / 8, n % 8 / 2)
        }
        n => n.to_string(),
    };
    let ecn = ["not-ECT", "ECT(1)", "ECT(0)", "CE"][usize::from(ecn & 0b11)];
    format!("{name} {ecn}")
}

/// Returns the notes on a hop.
fn notes(hop: &Hop, report: &PathReport) -> String {
    let mut notes = Vec::new();
    match hop.kind {
        HopKind::Silent => notes.push("no answer".to_owned()),
        HopKind::Unreachable => notes.push("unreachable from here".to_owned()),
        HopKind::Router | HopKind::Destination => {}
    }
    match hop.loss {
        HopLoss::RateLimit { answers_per_s } => {
            let pace = answers_per_s.map_or_else(String::new, |pace| format!(", {pace:.1}/s"));
            notes.push(format!("limits its answers{pace}"));
        }
        HopLoss::Path => notes.push("losses begin".to_owned()),
        _ => {}
    }
    if let Some(ns) = hop.slow_answers_ns {
        notes.push(format!("answers slowly, +{} ms", three_digits(ns as f64 / 1e6)));
    }
    if hop.congestion_marked > 0 {
        notes.push(format!("{} marked CE", hop.congestion_marked));
    }
    if let Some(branching) = report.branches.iter().find(|b| b.hop == hop.number && b.branches > 1) {
        notes.push(format!("{} branches", branching.branches));
    }
    notes.join(", ")
}

#[cfg(test)]
mod tests;
