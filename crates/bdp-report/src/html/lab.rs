//! Report on lab records: one case, a sweep, repetitions, or several scenarios.

use bdp_model::finding::Limit;
use bdp_model::record::{ProgramEnd, ProgramRecord, Record};
use bdp_model::units::format_bps;
use maud::{Markup, html};

use super::conditions;
use super::curve::{Curve, curves};
use super::datagrams;
use super::overview::{self, TEXT};
use super::page::{About, facts, note, page};
use super::plain_language::{self, Described};
use super::sentence::lower_first;
use super::transfer::Transfer;
use super::verdict::{self, Verdict};
use super::{distribution, flight, queue, repetitions, shared_path, streams, time_share, timeline};
use crate::chart::Chart;
use crate::notes;
use crate::number::percent;
use crate::programs::programs;
use crate::style::Style;
use crate::summary::{Ending, Point, Spread, points};
use crate::varied::varied;

/// Most cases drawn individually, in total and for one swept scenario.
const MOST_CASES: usize = 12;
const MOST_OF_A_SWEEP: usize = 3;
/// Most flows of a case drawn individually.
const MOST_FLOWS: usize = 4;
/// Most curves of one scenario.
const MOST_CURVES: usize = 12;

/// Returns a self-contained HTML page about `records`.
pub fn html(records: &[Record], about: &About<'_>) -> String {
    let points = points(records);
    let (title, heading) = about.begin(title(records, about), environment(records, about));
    if records.is_empty() {
        return page(&title, html! { (heading) (Verdict::of("No case has ended yet.").markup()) });
    }
    let results = match points.as_slice() {
        _ if records.iter().all(|record| !record.programs.is_empty()) => own_programs(records),
        [point] => one(point),
        _ => several(&points),
    };
    page(&title, html! { (heading) (results) (conditions::section(records, &points, about)) })
}

/// Returns how the user's programs ended and what crossed the links.
fn own_programs(records: &[Record]) -> Markup {
    let headline = |record: &Record| {
        let ended = |one: &&ProgramRecord| one.end == ProgramEnd::Exited && one.exit_code == 0;
        let asked = || record.programs.iter().filter(|one| !one.service);
        match (asked().count(), asked().filter(ended).count()) {
            (1, 1) => "The program ended with exit code 0.".to_owned(),
            (all, well) => format!("{well} of {all} programs ended with exit code 0."),
        }
    };
    html! {
        @for record in records {
            (Verdict::of(headline(record)).markup())
            pre { code { (programs(record, &Style::plain())) } } "\n"
        }
    }
}

fn title(records: &[Record], about: &About<'_>) -> String {
    let mut titles: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.scenario.as_str()) {
            names.push(&record.scenario);
            titles.push(&record.title);
        }
    }
    match (names.as_slice(), about.label) {
        (_, Some(label)) => label.to_owned(),
        ([name], None) => format!("{name}: {}", titles[0]),
        (several, None) => format!("{} experiments: {}", several.len(), several.join(", ")),
    }
}

fn environment(records: &[Record], about: &About<'_>) -> Vec<String> {
    let mut line = Vec::new();
    if let Some(record) = records.first() {
        let e = &record.environment;
        let stacks = crate::summary::stacks(records);
        if !e.kernel.is_empty() && stacks.is_none() {
            line.push(format!("Linux {} {}", e.kernel, e.arch));
        }
        line.push(format!("bdp {}", e.bdp));
        let tcp = stacks.map_or_else(|| "kernel TCP".to_owned(), |stacks| format!("TCP of {stacks}"));
        line.push(format!("emulated path, {tcp}"));
    }
    if let Some(planned) = about.planned {
        let ended: std::collections::BTreeSet<String> =
            records.iter().map(|r| format!("{} {}", r.scenario, r.case.key())).collect();
        if ended.len() < planned {
            line.push(format!("{} of {planned} cases so far", ended.len()));
        }
    }
    line
}

/// Returns the verdict on a single point, then all its details.
fn one(point: &Point<'_>) -> Markup {
    let alone = std::slice::from_ref(point);
    html! {
        @if let Some(record) = point.representative() {
            (one_verdict(point, record))
            @if point.records.len() > 1 { (overview::table(alone, "")) }
            (shared_path::tables(alone))
            (case(record, ""))
        } @else {
            (summary(alone).markup())
            (overview::table(alone, ""))
        }
        @if let Some(chart) = repetitions::chart(alone, point.scenario) {
            h2 { "Repetitions" }
            (repetitions::tables(alone))
            (chart.figure())
        }
    }
}

fn one_verdict(point: &Point<'_>, record: &Record) -> Markup {
    let transfers: Vec<Transfer<'_>> = transfers(record);
    let shown: Vec<_> = transfers.iter().take(MOST_FLOWS).collect();
    let described = record.flows.iter();
    let described: Vec<_> = described
        .map(|flow| Described { from: &flow.from, to: &flow.to, transfer: &flow.transfer })
        .collect();
    let opening = "This test emulated a network path on one computer, sent data over it and measured how fast it arrived.";
    let mut sentences = vec![opening.to_owned()];
    sentences.extend(plain_language::sentences(&described));
    html! {
        @if let [transfer] = transfers.as_slice() {
            @let of_transfer = verdict_on(record, transfer);
            @let why = format!("{}{}", of_transfer.why, repeated(point, record).unwrap_or_default());
            (Verdict { why, ..of_transfer }.markup())
            (verdict::bar(transfer, record.expected_bps))
            (remedies(record))
        } @else {
            (summary(std::slice::from_ref(point)).markup())
            @for (transfer, bar) in shown.iter().zip(verdict::bars(&shown, None)) { (note(transfer.name())) (bar) }
            (found(record))
        }
        (plain_language::paragraph(&sentences))
    }
}

/// Describes several tests for readers who are not network engineers: how close to the model they came, and where a curve stops rising.
fn in_plain_language(points: &[Point<'_>], curves: &[Curve<'_, '_>]) -> Markup {
    let counting = points.iter().filter(|p| p.count(Ending::Valid) > 0).count();
    if counting == 0 {
        return plain_language::paragraph(&[format!(
            "None of {} tests gave a figure that counts.",
            points.len()
        )]);
    }
    let without = match points.len() - counting {
        0 => String::new(),
        1 => " One more gave no figure that counts.".to_owned(),
        n => format!(" {n} more gave no figure that counts."),
    };
    let mut sentences = vec![format!(
        "This series of {counting} tests emulated network paths on one computer, sent data over them and measured how fast it arrived.{without}"
    )];
    let ratios = Spread::of(points.iter().filter_map(|p| p.model_ratio()).map(|r| r.median));
    sentences.extend(ratios.map(|ratio| {
        let range = match (percent(ratio.min), percent(ratio.max)) {
            (low, high) if low == high => low,
            (low, high) => format!("between {low} and {high}"),
        };
        match with_model(points) {
            modelled if modelled == points.len() => format!("They reached {range} of what theory predicts."),
            modelled => {
                format!("{modelled} of them can be predicted by theory, and reached {range} of that.")
            }
        }
    }));
    sentences.extend(curves.iter().take(2).filter_map(|curve| match curves {
        [_] => curve.plain_words(),
        _ => Some(format!("{}: {}", curve.name, lower_first(&curve.plain_words()?))),
    }));
    plain_language::paragraph(&sentences)
}

/// Returns several points: a table of all first, then each scenario.
fn several(points: &[Point<'_>]) -> Markup {
    let mut verdict = summary(points);
    let mut drawn = Vec::new();
    if points.iter().all(|p| p.scenario == points[0].scenario) {
        // For a sweep, the position of the knee is the main result.
        drawn = curves(points);
        let words: Vec<String> = drawn.iter().filter_map(Curve::headline).take(2).collect();
        if !words.is_empty() {
            verdict.why = format!("{} {}", verdict.headline, verdict.why);
            verdict.headline = words.join(" ");
        }
    }
    let scenarios: Vec<&[Point<'_>]> = points.chunk_by(|a, b| a.scenario == b.scenario).collect();
    let mut left = MOST_CASES;
    html! {
        (verdict.markup())
        (in_plain_language(points, &drawn))
        (overview::table(points, ""))
        @for (i, members) in scenarios.iter().enumerate() {
            @let (id, first) = (format!("s{}", i + 1), &members[0]);
            @let title = first.records.first().map_or("", |r| r.title.as_str());
            @let content = scenario(members, &mut left, scenarios.len() - i - 1);
            // With many scenarios, the page shows results, and the charts of each are collapsed.
            @if scenarios.len() > 2 {
                details id=(id) { summary { h2 { (first.scenario) } " " (title) } (content) }
            } @else {
                h2 id=(id) { (first.scenario) } p.lead { (title) } "\n" (content)
            }
            "\n"
        }
    }
}

/// Returns one of several scenarios: its curves, repetitions and some cases, limited by `left`.
fn scenario(points: &[Point<'_>], left: &mut usize, following: usize) -> Markup {
    let curves = curves(points);
    let known: Vec<bdp_model::sweep::curve::Curve> = curves.iter().filter_map(|c| c.known.clone()).collect();
    let memory = bdp_model::sweep::curve::Memory::of(&known);
    let chosen = chosen(points, &curves);
    let room = left.saturating_sub(following).min(*left);
    let shown = &chosen[..chosen.len().min(room)];
    *left -= shown.len();
    let (few, all) = (shown.len(), points.len());
    html! {
        @for curve in curves.iter().take(MOST_CURVES) {
            @if curves.len() > 1 { h3 { (curve.name) } }
            (curve.goodput_chart().figure())
            @if let Some(chart) = curve.delay_chart() { (chart.figure()) }
        }
        @if let Some(memory) = memory {
            (note(format!("Memory {}.", crate::sweep_report::memory_words(&memory, &TEXT))))
        }
        @if let more @ 1.. = curves.len().saturating_sub(MOST_CURVES) {
            (note(format!("{more} more curves are in the table and in the CSV alone.")))
        }
        (shared_path::tables(points))
        (repetitions::tables(points))
        @if let Some(chart) = repetitions::chart(points, points[0].scenario) { (chart.figure()) }
        @for point in shown { (drawn_point(point, all > 1)) }
        @if few < all && all > 1 {
            (note(format!("{few} of {all} points are drawn one by one; the table and the CSV have all.")))
        }
    }
}

/// Returns one point of a scenario, named if there are others.
fn drawn_point(point: &Point<'_>, is_named: bool) -> Markup {
    let Some(record) = point.representative() else { return Markup::default() };
    let what = varied(point, &TEXT, Some("segment"));
    html! {
        @if is_named { h3 { (what) } }
        @if let [transfer] = transfers(record).as_slice() {
            (verdict_on(record, transfer).paragraph())
            (verdict::bar(transfer, record.expected_bps))
            (remedies(record))
        } @else {
            (found(record))
        }
        (case(record, &what))
    }
}

/// Returns the points to draw in detail: all if there are few; of a curve its ends and middle.
fn chosen<'p, 'a>(points: &'p [Point<'a>], curves: &[Curve<'p, 'a>]) -> Vec<&'p Point<'a>> {
    let measured: Vec<&'p Point<'a>> = points.iter().filter(|p| p.goodput_bps().is_some()).collect();
    match curves.first() {
        None if measured.len() <= MOST_OF_A_SWEEP => measured,
        None => spread(&measured),
        Some(curve) => {
            let members: Vec<&'p Point<'a>> =
                curve.members.iter().filter_map(|m| m.point).filter(|p| p.goodput_bps().is_some()).collect();
            spread(&members)
        }
    }
}

fn spread<'p, 'a>(points: &[&'p Point<'a>]) -> Vec<&'p Point<'a>> {
    match points.len() {
        0..=MOST_OF_A_SWEEP => points.to_vec(),
        n => vec![points[0], points[n / 2], points[n - 1]],
    }
}

/// Returns what limits the only flow of a record: by its finding, or by the known bounds if no rule applies.
fn verdict_on(record: &Record, transfer: &Transfer<'_>) -> Verdict {
    let model = record.expected_bps.zip(record.expected_by.as_deref());
    let finding = record.flows.first().and_then(|flow| flow.findings.first());
    match finding.filter(|finding| finding.limit != Limit::Unknown) {
        Some(finding) => verdict::of_finding(&format_bps(transfer.goodput_bps), finding),
        None => verdict::of_transfer(transfer, model),
    }
}

/// Returns how many repetitions of a point have the same finding as the representative one.
fn repeated(point: &Point<'_>, record: &Record) -> Option<String> {
    let finding = record.flows.first()?.findings.first()?;
    let words = notes::in_repetitions(notes::agreement(point, 0, finding))?;
    Some(format!(" Found {words}."))
}

/// Returns what limits each of several flows.
fn found(record: &Record) -> Markup {
    let found = record.flows.iter().take(MOST_FLOWS).filter_map(|flow| {
        let here = format!("{} → {}, {}", flow.from, flow.to, format_bps(flow.goodput_bps));
        Some(verdict::of_finding(&here, flow.findings.first()?))
    });
    html! { @for verdict in found { (verdict.paragraph()) } }
}

fn remedies(record: &Record) -> Markup {
    html! { @for flow in &record.flows { (verdict::further(&flow.findings)) } }
}

fn transfers(record: &Record) -> Vec<Transfer<'_>> {
    (0..record.flows.len()).filter_map(|i| Transfer::of_flow(record, i)).collect()
}

/// Returns the charts of one case. Each of several flows has its own round trips; those of a single flow come last.
fn case(record: &Record, what: &str) -> Markup {
    let transfers = transfers(record);
    let flows = || record.flows.iter().zip(&transfers).take(MOST_FLOWS);
    let is_several = transfers.len() > 1;
    let of_streams = flows().map(|(flow, transfer)| (transfer.name(), flow.stream_goodput_bps.as_slice()));
    let title = if what.is_empty() { record.scenario.as_str() } else { what };
    let of_all = match record.flows.as_slice() {
        [] => Some(&record.rtt_ns),
        [flow] => Some(&flow.rtt_ns),
        _ => None,
    };
    let of_flow = |transfer: &Transfer<'_>| match what {
        "" => transfer.name(),
        _ => format!("{}, {what}", transfer.name()),
    };
    html! {
        @for (flow, transfer) in flows() {
            @let title = of_flow(transfer);
            @if is_several { h3 { (transfer.name()) } }
            (charts(transfer, &title, is_several.then(|| distribution::chart(&flow.rtt_ns, &title)).flatten()))
        }
        @for (flow, transfer) in flows() {
            @if let Some(udp) = &flow.udp {
                (facts(&format!("Datagrams, {}", transfer.name()), &datagrams::rows(udp)))
            }
        }
        (streams::of_transfers(&of_streams.collect::<Vec<_>>()))
        @if let Some(chart) = of_all.and_then(|rtt| distribution::chart(rtt, title)) { (chart.figure()) }
        @for chart in queue::charts(record, title) { (chart.figure()) }
        @if let more @ 1.. = transfers.len().saturating_sub(MOST_FLOWS) {
            (note(format!("{more} more flows are not drawn.")))
        }
    }
}

/// Returns the charts of one transfer, without the distribution of round trips, which belongs to the path.
pub(crate) fn charts(transfer: &Transfer<'_>, title: &str, round_trips: Option<Chart>) -> Markup {
    let charts = [
        timeline::chart(transfer, title),
        flight::chart(transfer, title),
        round_trips,
        time_share::chart(transfer, title),
    ];
    html! { @for chart in charts.into_iter().flatten() { (chart.figure()) } }
}

/// Number of points with both a model's figure and a valid one.
fn with_model(points: &[Point<'_>]) -> usize {
    points.iter().filter(|p| p.model_ratio().is_some()).count()
}

/// Returns the verdict on many points: how many are valid, and how close to the model they came.
fn summary(points: &[Point<'_>]) -> Verdict {
    let counting = points.iter().filter(|p| p.count(Ending::Valid) > 0).count();
    let missed: usize = points.iter().map(|p| p.missed().count()).sum();
    let valid: usize = points.iter().map(|p| p.count(Ending::Valid)).sum();
    let noun = if points.len() == 1 { "point" } else { "points" };
    let ratios = Spread::of(points.iter().filter_map(|p| p.model_ratio()).map(|r| r.median));
    let headline = match (counting, ratios) {
        (0, _) => format!("None of {} {noun} gave a figure that counts.", points.len()),
        (_, Some(ratio)) => {
            let range = match (percent(ratio.min), percent(ratio.max)) {
                (low, high) if low == high => low,
                (low, high) => format!("{} to {high}", low.trim_end_matches(" %")),
            };
            let all = if counting == points.len() { String::new() } else { format!("{counting} of ") };
            let modelled = with_model(points);
            let of_which = match modelled == counting {
                true => String::new(),
                false => {
                    format!("; {modelled} of them {} a model", if modelled == 1 { "has" } else { "have" })
                }
            };
            format!("{all}{} {noun}{of_which}: {range} of what the model gives.", points.len())
        }
        (_, None) => format!("{counting} of {} {noun} measured; no model applies.", points.len()),
    };
    let invalid: usize = points.iter().map(|p| p.count(Ending::Invalid)).sum();
    let failed: usize = points.iter().map(|p| p.count(Ending::Failed)).sum();
    let mut why = match missed {
        0 if points.iter().flat_map(Point::valid).any(|r| r.expectation.is_some()) => {
            let of = if counting == points.len() { "" } else { " of what counts" };
            format!("Every expectation{of} that was written down before the run is met.")
        }
        0 => "Nothing was expected of them beforehand.".to_owned(),
        n => format!("{n} of {valid} attempts missed what was expected before the run."),
    };
    if invalid > 0 {
        why.push_str(&format!(
            " {invalid} INVALID attempts are left out: the emulator had not kept its promise."
        ));
    }
    if failed > 0 {
        why.push_str(&format!(" {failed} attempts FAILED."));
    }
    let skipped = points.iter().filter(|p| p.count(Ending::Skipped) > 0).count();
    if skipped > 0 {
        why.push_str(&format!(" {skipped} of {} {noun} SKIPPED.", points.len()));
    }
    Verdict { headline, why }
}
