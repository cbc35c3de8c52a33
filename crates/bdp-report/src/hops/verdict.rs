//! Conclusions on a path, one sentence per subject.

use bdp_model::probes::hops::{
    BlackHole, HopKind, LossStep, PathReport, ProbeProtocol, QueueStep, Share, ToldMtu, Unjudged,
};
use bdp_model::units::Nanos;

use super::{marks_words, method_words};
use crate::number::{percent, three_digits};
use crate::style::Tint;

/// Returns the subject, tint and sentence of each conclusion.
pub(crate) fn sentences(report: &PathReport) -> Vec<(&'static str, Tint, String)> {
    let mut all = vec![queue(report), loss(report)];
    all.extend((report.mtu.unknown != Some(Unjudged::NotAsked)).then(|| mtu(report)));
    all.extend(branches(report));
    all.extend(marks(report));
    all.extend(notes(report).into_iter().map(|note| ("NOTE", Tint::Doubtful, note)));
    all
}

/// Returns `hop 3 (198.18.2.2)`, or `this machine` for 0.
fn named(report: &PathReport, hop: u8) -> String {
    if hop == 0 {
        return "this machine".to_owned();
    }
    let known = report.hops.iter().find(|known| known.number == hop);
    match known.and_then(|hop| hop.addresses.first()) {
        Some(known) => format!("hop {hop} ({})", known.address),
        None => format!("hop {hop}"),
    }
}

fn ms(ns: u64) -> String {
    format!("{} ms", three_digits(ns as f64 / 1e6))
}

fn interval(share: Share) -> String {
    format!("{} to {}", percent(share.low), percent(share.high))
}

fn queue(report: &PathReport) -> (&'static str, Tint, String) {
    let when = if report.load.is_some() { " under load" } else { "" };
    let place = |step: &QueueStep| {
        format!(
            "+{}{when} ({} to {}) between {} and {}",
            ms(step.added_ns),
            ms(step.low_ns),
            ms(step.high_ns),
            named(report, step.after),
            named(report, step.hop)
        )
    };
    let verdict = &report.queue;
    let text = match (&verdict.steps[..], verdict.unknown) {
        (_, Some(why)) => format!("unknown: {}", why_not(why)),
        ([], _) if report.load.is_some() => "none: load raises the RTT of no hop by 0.5 ms".to_owned(),
        ([], _) => "none stands now: the median RTT of no hop is 0.5 ms above the smallest; --load fills it"
            .to_owned(),
        (steps, _) => steps.iter().map(place).collect::<Vec<_>>().join("; "),
    };
    let tint = if verdict.steps.is_empty() { Tint::Faint } else { Tint::Doubtful };
    ("queue", tint, text)
}

fn loss(report: &PathReport) -> (&'static str, Tint, String) {
    let verdict = &report.loss;
    let place = |step: &LossStep| {
        let when = if step.loaded { " under load" } else { "" };
        let is_last = report.hops.last().is_some_and(|last| last.number == step.hop);
        let later = if is_last { "" } else { ", and at all later hops" };
        format!(
            "{}{when} ({}) between {} and {}{later}",
            percent(step.loss.value),
            interval(step.loss),
            named(report, step.after),
            named(report, step.hop)
        )
    };
    let text = match (&verdict.steps[..], verdict.unknown, verdict.whole) {
        ([], Some(why), _) => format!("unknown: {}", why_not(why)),
        ([], _, Some(whole)) if whole.value > 0.0 => format!(
            "{} of {} probes, too few to say where ({})",
            percent(whole.value),
            verdict.probes,
            interval(whole)
        ),
        ([], _, whole) => format!(
            "none: 0 of {} probes, so less than {}",
            verdict.probes,
            percent(whole.map_or(1.0, |whole| whole.high))
        ),
        (steps, ..) => steps.iter().map(place).collect::<Vec<_>>().join("; "),
    };
    let tint = if verdict.steps.is_empty() { Tint::Faint } else { Tint::Bad };
    ("loss", tint, text)
}

fn mtu(report: &PathReport) -> (&'static str, Tint, String) {
    let verdict = &report.mtu;
    if let Some(why) = verdict.unknown {
        return ("MTU", Tint::Faint, format!("unknown: {}", why_not(why)));
    }
    let far = report.hops.iter().rev().find(|hop| hop.mtu_bytes.is_some()).map_or(0, |hop| hop.number);
    let end =
        if verdict.whole { "to the destination".to_owned() } else { format!("to {}", named(report, far)) };
    let mut text = match verdict.bytes {
        Some(bytes) => format!("{bytes} bytes {end}"),
        None => "unknown".to_owned(),
    };
    for ToldMtu { hop, address, mtu_bytes } in &verdict.told {
        let who = hop.map_or_else(|| address.to_string(), |hop| named(report, hop));
        text.push_str(&format!("; {who} says that its next link carries {mtu_bytes}"));
    }
    if let Some(BlackHole { after, before, passes_bytes, vanishes_bytes }) = verdict.black_hole {
        text.push_str(&format!(
            "; BLACK HOLE between {} and {}: {vanishes_bytes} bytes vanish without a word, {passes_bytes} pass",
            named(report, after),
            named(report, before)
        ));
        return ("MTU", Tint::Bad, text);
    }
    ("MTU", Tint::Faint, text)
}

fn branches(report: &PathReport) -> Option<(&'static str, Tint, String)> {
    if report.request.flows < 2 {
        return None;
    }
    let all = &report.branches;
    if all.is_empty() && report.hops.len() < 2 {
        return None;
    }
    if all.is_empty() {
        return Some(("branches", Tint::Faint, "unknown: no flow was answered".to_owned()));
    }
    let by = report.flows_method.map_or(String::new(), |method| format!(", {}", method_words(&method)));
    let least = all.iter().map(|b| b.confidence).fold(1.0, f64::min);
    let split: Vec<String> = all
        .iter()
        .filter(|b| b.branches > 1)
        .map(|b| {
            let packets = if b.per_packet { ", packet by packet" } else { "" };
            format!(
                "{} at hop {} ({} flows, {} sure of no more{packets})",
                b.branches,
                b.hop,
                b.flows,
                percent(b.confidence)
            )
        })
        .collect();
    let text = match split.is_empty() {
        true => format!("none: one address at each router, {} sure or more{by}", percent(least)),
        false => format!("{}{by}", split.join("; ")),
    };
    Some(("branches", Tint::Faint, text))
}

fn marks(report: &PathReport) -> Option<(&'static str, Tint, String)> {
    let verdict = &report.marks;
    let asked = report.request.octet() != 0;
    if !asked && verdict.changes.is_empty() {
        return None;
    }
    if let Some(why) = verdict.unknown {
        return Some(("marks", Tint::Faint, format!("unknown: {}", why_not(why))));
    }
    let changes: Vec<String> = verdict
        .changes
        .iter()
        .map(|change| {
            format!(
                "{} becomes {} between {} and {}",
                marks_words(change.from),
                marks_words(change.to),
                named(report, change.after),
                named(report, change.hop)
            )
        })
        .collect();
    let until =
        verdict.seen_until.map_or_else(String::new, |hop| format!(" as far as {}", named(report, hop)));
    Some(match changes.is_empty() {
        true => ("marks", Tint::Faint, format!("{} unchanged{until}", marks_words(verdict.sent))),
        false => ("marks", Tint::Doubtful, format!("{}; seen{until}", changes.join("; "))),
    })
}

fn notes(report: &PathReport) -> Vec<String> {
    let mut notes = Vec::new();
    if !report.reached {
        let last = report.hops.last().map_or(0, |hop| hop.number);
        let other = match report.method.protocol {
            ProbeProtocol::Tcp => "--icmp or --udp",
            _ => "--tcp",
        };
        let is_cut = last >= report.request.hops;
        let refused = report.hops.last().is_some_and(|hop| hop.kind == HopKind::Unreachable);
        notes.push(match refused {
            false if is_cut => format!("the path goes on behind hop {last}, the last by --hops"),
            true => format!("the destination can't be reached: {} says so", named(report, last)),
            false => format!(
                "the destination does not answer {} probes; the last answer is from {}; {other} may get through",
                report.method.protocol.name(),
                named(report, last)
            ),
        });
    }
    let wanted = report.request.interval;
    let gap = Nanos(report.hops.len() as u64 * 5_000_000);
    if gap > wanted {
        notes.push(format!("a hop was probed once in {gap}, as probes are 5 ms apart"));
    }
    notes
}

fn why_not(why: Unjudged) -> &'static str {
    match why {
        Unjudged::NotAsked => "not asked for",
        Unjudged::TooFewAnswers => "too few answers",
        Unjudged::RateLimited => "every hop limits its answers; --tcp, or -i 1s, loses fewer",
        Unjudged::Privilege => "reading the headers that routers quote takes root, or CAP_NET_RAW",
    }
}
