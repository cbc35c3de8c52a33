//! Conditions of a run, how well the emulator met its guarantees, and the command that repeats it.

use std::collections::{BTreeMap, BTreeSet};

use bdp_model::case::{CaseFlow, Family};
use bdp_model::link::over_time::{Outage, RateOverTime, Timeline};
use bdp_model::link::{DirectionConfig, Loss, Medium, QueueLimit};
use bdp_model::record::Record;
use bdp_model::units::{Nanos, Rate};
use maud::{Markup, html};

use super::glossary::on_demand;
use super::page::{About, Heading, facts, note, numbers, table, text, words};
use crate::breach::why_invalid;
use crate::measurement::in_store;
use crate::number::{asked_size, percent, three_digits};
use crate::summary::{Ending, Point, ending};
use crate::varied::name;
use crate::virtual_clock;

/// Most invalid attempts listed individually.
const MOST_REASONS: usize = 60;

/// Returns the section of a lab run: conditions of each scenario, fidelity, commands.
pub(crate) fn section(records: &[Record], points: &[Point<'_>], about: &About<'_>) -> Markup {
    let scenarios = points.chunk_by(|a, b| a.scenario == b.scenario).filter_map(|points| {
        let (point, record) = (points.first()?, points.first()?.records.first()?);
        let swept: Vec<&str> = point.params.keys().map(String::as_str).collect();
        let caption = match swept.is_empty() {
            true => point.scenario.to_owned(),
            false => format!("{}, its first point; varied: {}", point.scenario, swept.join(", ")),
        };
        Some(facts(&caption, &path(record)))
    });
    let content = html! {
        (note("To repeat it, and to see the stored records:"))
        pre { code { (commands(records, about).join("\n")) } } "\n"
        (facts("The machine", &machine(records)))
        @for scenario in scenarios { (scenario) }
        (fidelity(points))
        (excluded(points))
    };
    on_demand("conditions", "Conditions and fidelity", &content)
}

fn commands(records: &[Record], about: &About<'_>) -> Vec<String> {
    let mut lines: Vec<String> = about.command.map(str::to_owned).into_iter().collect();
    lines.extend(about.run.map(|run| in_store(&format!("bdp show {run}"), about.store)));
    if lines.is_empty() {
        let names: BTreeSet<&str> = records.iter().map(|r| r.scenario.as_str()).collect();
        lines.push(format!("bdp lab run {}", names.into_iter().collect::<Vec<_>>().join(" ")));
    }
    lines
}

fn distinct<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let set: BTreeSet<&str> = values.into_iter().filter(|v| !v.is_empty()).collect();
    set.into_iter().collect::<Vec<_>>().join(", ")
}

fn machine(records: &[Record]) -> Vec<(String, String)> {
    let each = |of: fn(&Record) -> &str| distinct(records.iter().map(of));
    let cpus: BTreeSet<u32> = records.iter().map(|r| r.environment.cpus).collect();
    let seeds: BTreeSet<u64> = records.iter().map(|r| r.seed).collect();
    let took: u64 = records.iter().map(|r| r.environment.took_ms).sum();
    let highest = |of: fn(&Record) -> f64| records.iter().map(of).fold(0.0, f64::max);
    vec![
        ("bdp".to_owned(), each(|r| &r.environment.bdp)),
        ("clock".to_owned(), each(|r| r.environment.clock.name())),
        ("kernel".to_owned(), each(|r| &r.environment.kernel)),
        ("architecture".to_owned(), each(|r| &r.environment.arch)),
        ("processors".to_owned(), cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        ("privilege".to_owned(), each(|r| r.environment.privilege.name())),
        (
            "seed".to_owned(),
            match seeds.first() {
                Some(seed) if seeds.len() == 1 => seed.to_string(),
                _ => "one for each case, in its record".to_owned(),
            },
        ),
        ("attempts".to_owned(), format!("{}, {} s of machine time", records.len(), took / 1000)),
        (
            "busiest attempt".to_owned(),
            format!(
                "{} of all processors busy; most taken by a hypervisor {}",
                percent(highest(|r| r.fidelity.host_cpu_busy)),
                percent(highest(|r| r.fidelity.host_cpu_steal))
            ),
        ),
    ]
}

fn path(record: &Record) -> Vec<(String, String)> {
    let case = &record.case;
    let mut rows = vec![("title".to_owned(), case.title.clone())];
    for link in &case.links {
        let [a, b] = &link.between;
        let (forward, reverse) = (direction(&link.config.forward), direction(&link.config.reverse));
        let medium = match link.config.medium {
            Medium::FullDuplex => String::new(),
            Medium::HalfDuplex(turns) => {
                format!("; half duplex, {} guard, turns of {}", turns.guard, turns.turn)
            }
        };
        let profile = link.profile.as_ref().map_or_else(String::new, |name| format!("; profile {name}"));
        let mtu = format!("; MTU {}{profile}", link.config.mtu);
        if forward == reverse {
            rows.push((format!("{a} – {b}"), format!("each way {forward}{mtu}{medium}")));
        } else {
            rows.push((format!("{a} → {b}"), format!("{forward}{mtu}{medium}")));
            rows.push((format!("{b} → {a}"), reverse));
        }
    }
    for (spec, i) in case.flows.iter().zip(0..) {
        let used = record.flows.get(i).map(|f| f.congestion_control.as_str());
        rows.push((format!("flow {} → {}", spec.from, spec.to), flow(spec, used)));
    }
    rows.push((
        "IP".to_owned(),
        match case.family {
            Family::Ipv4 => "version 4".to_owned(),
            Family::Ipv6 => "version 6".to_owned(),
        },
    ));
    if let Some(expectation) = &record.expectation {
        rows.push(("written down before the run".to_owned(), expectation.text.clone()));
    }
    for (host, values) in &record.environment.sysctls {
        rows.push((format!("sysctls of {host}"), sysctls(values)));
    }
    rows
}

fn sysctls(values: &BTreeMap<String, String>) -> String {
    let each = values.iter().map(|(k, v)| {
        format!(
            "{} = {}",
            k.strip_prefix("net.ipv4.").unwrap_or(k),
            v.split_whitespace().collect::<Vec<_>>().join(" ")
        )
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Returns a link direction in words, with only the effects that are configured.
fn direction(config: &DirectionConfig) -> String {
    let beside = format!("on the wire with {} B beside each packet", config.overhead_bytes);
    let mut parts = vec![match (&config.rate_over_time, config.rate) {
        (Some(RateOverTime::Trace(trace)), _) => format!("rate from the trace {trace}, {beside}"),
        (Some(RateOverTime::Timeline(timeline)), _) => {
            format!("rate {} {beside}", course(timeline, Rate::to_string))
        }
        (None, Some(rate)) => format!("{rate} {beside}"),
        (None, None) => "no rate".to_owned(),
    }];
    parts.push(match &config.delay_over_time {
        Some(delay) => format!("delay {}", course(&delay.timeline_ns, |ns| Nanos(*ns).to_string())),
        None => format!("delay {}", config.delay),
    });
    parts.extend(config.outages.iter().map(outage));
    match &config.loss {
        Loss::None => {}
        Loss::Independent(p) => parts.push(format!("loss {} each by itself", percent(p.fraction()))),
        Loss::Periodic(n) => parts.push(format!("every {n}th packet lost")),
        Loss::GilbertElliott { .. } => {
            parts.push(format!(
                "loss in bursts (Gilbert-Elliott), {} in all",
                percent(config.loss.probability())
            ));
        }
        Loss::OverTime(timeline) => {
            parts.push(format!("loss {}", course(timeline, |p| percent(p.fraction()))))
        }
        Loss::States { good_for, bad_for, .. } => {
            let all = percent(config.loss.probability());
            parts.push(format!("loss in bursts by time ({good_for} good, {bad_for} bad), {all} in all"));
        }
        Loss::List(list) => parts.push(format!("{} named packets lost", list.len())),
    }
    parts.push(match config.limit {
        QueueLimit::Packets(n) => format!("queue of {n} packets"),
        QueueLimit::Bytes(n) => format!("queue of {n}"),
        QueueLimit::Unlimited => "queue without limit".to_owned(),
    });
    parts.extend(config.queue.map(|queue| format!("managed by {}", queue.name())));
    let more: [(bool, String); 8] = [
        (!config.rewrite.is_none(), "TCP headers rewritten".to_owned()),
        (config.drop_above.is_some(), format!("packets above {} B vanish", config.drop_above.unwrap_or(0))),
        (config.corrupt.fraction() > 0.0, format!("{} corrupted", percent(config.corrupt.fraction()))),
        (config.duplicate.fraction() > 0.0, format!("{} duplicated", percent(config.duplicate.fraction()))),
        (config.policer.is_some(), "policed".to_owned()),
        (config.ecn_threshold.is_some(), "ECN marks".to_owned()),
        (config.jitter.is_some(), "jitter".to_owned()),
        (config.reorder.is_some(), "reordering".to_owned()),
    ];
    parts.extend(more.into_iter().filter(|(there, _)| *there).map(|(_, text)| text));
    parts.join(", ")
}

/// Returns a course of changes: the first values with their times, and their number.
fn course<T>(timeline: &Timeline<T>, text: impl Fn(&T) -> String) -> String {
    const SHOWN: usize = 6;
    let (how, moments) = match timeline {
        Timeline::Steps(moments) => ("in steps", moments),
        Timeline::Ramp(moments) => ("in ramps", moments),
    };
    let mut shown: Vec<String> = moments
        .iter()
        .take(SHOWN)
        .map(|moment| format!("{} at {}", text(&moment.value), moment.at))
        .collect();
    if moments.len() > SHOWN {
        shown.push(format!("{} more", moments.len() - SHOWN));
    }
    format!("{how} ({})", shown.join(", "))
}

fn outage(outage: &Outage) -> String {
    let what = if outage.drop { "drops all" } else { "holds all back" };
    let again = outage.every.map_or_else(String::new, |every| format!(" and every {every}"));
    format!("{what} for {} from {}{again}", outage.lasts, outage.at)
}

fn flow(flow: &CaseFlow, used: Option<&str>) -> String {
    let spec = &flow.spec;
    let mut parts = vec![match spec.window {
        Some(window) => format!("window {} asked for on the wire", asked_size(window.as_bytes())),
        None => "window autotuned".to_owned(),
    }];
    if spec.streams > 1 {
        parts.push(format!("{} streams", spec.streams));
    }
    // A failed flow has no value read back by the sender.
    let used = used.filter(|name| !name.is_empty()).or(spec.congestion.as_deref());
    parts.extend(used.map(str::to_owned));
    parts.push(format!("writes of {}", spec.length));
    if let Some(mss) = spec.mss {
        parts.push(format!("MSS {mss}"));
    }
    parts.push(format!("{} of which the first {} do not count", spec.duration, spec.omit));
    parts.join(", ")
}

fn fidelity(points: &[Point<'_>]) -> Markup {
    let valid: Vec<&Record> = points.iter().flat_map(Point::valid).collect();
    if valid.is_empty() {
        return Markup::default();
    }
    let ms = |ns: u64| three_digits(ns as f64 / 1e6);
    let range = |of: &dyn Fn(&Record) -> Option<f64>| -> [String; 3] {
        match crate::summary::Spread::of(valid.iter().filter_map(|r| of(r))) {
            Some(s) => [s.min, s.median, s.max].map(three_digits),
            None => ["–", "–", "–"].map(str::to_owned),
        }
    };
    let excess = |r: &Record| {
        let configured = r.fidelity.rtt_idle_configured_ns? as f64;
        Some((r.fidelity.rtt_idle_measured_ns? as f64 - configured) / 1e3)
    };
    let rows = [
        ("packets late at the mean, µs", range(&|r| Some(r.fidelity.release_lateness_ns.mean as f64 / 1e3))),
        ("99th percentile, µs", range(&|r| Some(r.fidelity.release_lateness_ns.p99 as f64 / 1e3))),
        ("the latest packet, ms", range(&|r| ms(r.fidelity.release_lateness_ns.max).parse().ok())),
        ("smallest idle round trip above the configured one, µs", range(&excess)),
        ("processors busy, %", range(&|r| Some(r.fidelity.host_cpu_busy * 100.0))),
    ];
    let conserved = valid.iter().flat_map(|r| &r.fidelity.directions).all(|d| d.conserved);
    let attempts = match valid.len() {
        1 => "attempt that counts".to_owned(),
        n => format!("{n} attempts that count"),
    };
    let accounted = if conserved { "; every packet is accounted for" } else { "" };
    let caption = format!("How well the emulator kept its promise in the {attempts}{accounted}");
    let headings = [words("over the attempts"), numbers("smallest"), numbers("median"), numbers("largest")];
    table(&caption, &headings, rows.map(|(what, [min, median, max])| [what.to_owned(), min, median, max]))
}

/// Returns every invalid attempt and missed expectation, with its reason.
fn excluded(points: &[Point<'_>]) -> Markup {
    let mut rows: Vec<(String, &str, String)> = Vec::new();
    for point in points {
        for record in &point.records {
            let case = format!("{} #{} attempt {}", name(point, None), record.repetition, record.attempt);
            match ending(record) {
                Ending::Invalid => rows.push((case, "INVALID", why_invalid(&record.fidelity))),
                Ending::Failed => rows.push((case, "FAILED", record.error.clone().unwrap_or_default())),
                Ending::Skipped => rows.push((case, "SKIPPED", record.skipped.clone().unwrap_or_default())),
                Ending::Valid => {
                    let missed = record.expectation.as_ref().filter(|e| e.met == Some(false));
                    if let Some(expectation) = missed {
                        rows.push((case, "MISSED", expectation.text.clone()));
                    }
                }
            }
        }
    }
    if rows.is_empty() {
        return Markup::default();
    }
    let more = rows.len().saturating_sub(MOST_REASONS);
    let headings = [words("case"), words(""), Heading { text: "why".to_owned(), class: Some("why") }];
    let shown = rows
        .iter()
        .take(MOST_REASONS)
        .map(|(case, what, why)| [text(case), html! { span.bad[*what != "INVALID"] { (what) } }, text(why)]);
    let caption = "Attempts that count for nothing, and expectations that were missed";
    html! {
        (table(caption, &headings, shown))
        @if more > 0 { (note(format!("And {more} more, which the CSV lists."))) }
        @for command in virtual_clock::commands(points) {
            (note(html! { "Next, " (virtual_clock::WHY) ": " code { (command) } }))
        }
    }
}
