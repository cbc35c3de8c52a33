//! Report on lab records: one case, a sweep, repetitions, or several scenarios.

use bdp_model::finding::Limit;
use bdp_model::record::{ProgramEnd, ProgramRecord, Record};
use bdp_model::units::format_bps;

use super::conditions;
use super::curve::{Curve, curves};
use super::datagrams;
use super::overview::{self, TEXT};
use super::page::{About, facts, page};
use super::plain_language::{self, Described};
use super::sentence::lower_first;
use super::transfer::Transfer;
use super::verdict::{self, Verdict};
use super::{distribution, flight, queue, repetitions, shared_path, streams, time_share, timeline};
use crate::chart::Chart;
use crate::markup::Markup;
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
    let mut m = Markup::default();
    let title = about.begin(&mut m, title(records, about), environment(records, about));
    if records.is_empty() {
        Verdict { headline: "No case has ended yet.".to_owned(), why: String::new() }.write(&mut m);
        return page(&title, m);
    }
    match points.as_slice() {
        _ if records.iter().all(|record| !record.programs.is_empty()) => own_programs(&mut m, records),
        [point] => one(&mut m, point),
        _ => several(&mut m, &points),
    }
    conditions::section(&mut m, records, &points, about);
    page(&title, m)
}

/// Writes how the user's programs ended and what crossed the links.
fn own_programs(m: &mut Markup, records: &[Record]) {
    for record in records {
        let ended = |one: &&ProgramRecord| one.end == ProgramEnd::Exited && one.exit_code == 0;
        let asked = || record.programs.iter().filter(|one| !one.service);
        let (all, well) = (asked().count(), asked().filter(ended).count());
        let headline = match (all, well) {
            (1, 1) => "The program ended with exit code 0.".to_owned(),
            _ => format!("{well} of {all} programs ended with exit code 0."),
        };
        Verdict { headline, why: String::new() }.write(m);
        m.element("pre", &[], |m| m.leaf("code", &[], &programs(record, &Style::plain())));
        m.line();
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

/// Writes the verdict on a single point, then all its details.
fn one(m: &mut Markup, point: &Point<'_>) {
    match point.representative() {
        Some(record) => {
            let transfers: Vec<Transfer<'_>> = transfers(record);
            let model = record.expected_bps.zip(record.expected_by.as_deref());
            match transfers.as_slice() {
                [transfer] => {
                    let mut verdict = verdict_on(record, transfer, model);
                    verdict.why.extend(repeated(point, record));
                    verdict.write(m);
                    m.append(verdict::bar(transfer, record.expected_bps));
                    remedies(m, record);
                }
                _ => {
                    summary(std::slice::from_ref(point)).write(m);
                    let shown: Vec<_> = transfers.iter().take(MOST_FLOWS).collect();
                    for (transfer, bar) in shown.iter().zip(verdict::bars(&shown, None)) {
                        m.leaf("p", &[("class", "note")], &transfer.name());
                        m.append(bar);
                    }
                    found(m, record);
                }
            }
            let opening = "This test emulated a network path on one computer, sent data over it and measured how fast it arrived.";
            let flows = record.flows.iter();
            let described: Vec<_> = flows
                .map(|flow| Described { from: &flow.from, to: &flow.to, transfer: &flow.transfer })
                .collect();
            let mut sentences = vec![opening.to_owned()];
            sentences.extend(plain_language::sentences(&described));
            plain_language::write(m, &sentences);
            if point.records.len() > 1 {
                overview::table(m, std::slice::from_ref(point), "");
            }
            shared_path::tables(m, std::slice::from_ref(point));
            case(m, record, "");
        }
        None => {
            summary(std::slice::from_ref(point)).write(m);
            overview::table(m, std::slice::from_ref(point), "");
        }
    }
    if let Some(chart) = repetitions::chart(std::slice::from_ref(point), point.scenario) {
        m.leaf("h2", &[], "Repetitions");
        repetitions::table(m, std::slice::from_ref(point));
        m.add(chart.figure());
    }
}

/// Describes several tests for readers who are not network engineers: how close to the model they came, and where a curve stops rising.
fn in_plain_language(m: &mut Markup, points: &[Point<'_>], curves: &[Curve<'_, '_>]) {
    let counting = points.iter().filter(|p| p.count(Ending::Valid) > 0).count();
    if counting == 0 {
        return plain_language::write(
            m,
            &[format!("None of {} tests gave a figure that counts.", points.len())],
        );
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
    plain_language::write(m, &sentences);
}

/// Writes several points: a table of all first, then each scenario.
fn several(m: &mut Markup, points: &[Point<'_>]) {
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
    verdict.write(m);
    in_plain_language(m, points, &drawn);
    overview::table(m, points, "");
    let scenarios: Vec<&[Point<'_>]> = points.chunk_by(|a, b| a.scenario == b.scenario).collect();
    // With many scenarios, the page shows results, and the charts of each are collapsed.
    let is_folded = scenarios.len() > 2;
    let mut left = MOST_CASES;
    for (i, members) in scenarios.iter().enumerate() {
        let id = format!("s{}", i + 1);
        let first = &members[0];
        let title = first.records.first().map_or("", |r| r.title.as_str());
        let following = scenarios.len() - i - 1;
        if is_folded {
            m.element("details", &[("id", &id)], |m| {
                m.element("summary", &[], |m| {
                    m.leaf("h2", &[], first.scenario);
                    m.text(&format!(" {title}"));
                });
                scenario(m, members, &mut left, following);
            });
        } else {
            m.leaf("h2", &[("id", &id)], first.scenario);
            m.leaf("p", &[("class", "lead")], title);
            m.line();
            scenario(m, members, &mut left, following);
        }
        m.line();
    }
}

/// Writes one of several scenarios: its curves, repetitions and some cases, limited by `left`.
fn scenario(m: &mut Markup, points: &[Point<'_>], left: &mut usize, following: usize) {
    let curves = curves(points);
    for curve in curves.iter().take(MOST_CURVES) {
        if curves.len() > 1 {
            m.leaf("h3", &[], &curve.name);
        }
        m.add(curve.goodput_chart().figure());
        if let Some(chart) = curve.delay_chart() {
            m.add(chart.figure());
        }
    }
    let known: Vec<bdp_model::sweep::curve::Curve> = curves.iter().filter_map(|c| c.known.clone()).collect();
    if let Some(memory) = bdp_model::sweep::curve::Memory::of(&known) {
        let text = format!("Memory {}.", crate::sweep_report::memory_words(&memory, &TEXT));
        m.leaf("p", &[("class", "note")], &text);
        m.line();
    }
    if curves.len() > MOST_CURVES {
        let more = curves.len() - MOST_CURVES;
        m.leaf(
            "p",
            &[("class", "note")],
            &format!("{more} more curves are in the table and in the CSV alone."),
        );
    }
    shared_path::tables(m, points);
    repetitions::table(m, points);
    if let Some(chart) = repetitions::chart(points, points[0].scenario) {
        m.add(chart.figure());
    }
    let chosen = chosen(points, &curves);
    let room = left.saturating_sub(following).min(*left);
    let shown = &chosen[..chosen.len().min(room)];
    for point in shown {
        let Some(record) = point.representative() else { continue };
        let what = varied(point, &TEXT, Some("segment"));
        if points.len() > 1 {
            m.leaf("h3", &[], &what);
        }
        let model = record.expected_bps.zip(record.expected_by.as_deref());
        match transfers(record).as_slice() {
            [transfer] => {
                let verdict = verdict_on(record, transfer, model);
                m.leaf("p", &[], &format!("{} {}", verdict.headline, verdict.why));
                m.append(verdict::bar(transfer, record.expected_bps));
                remedies(m, record);
            }
            _ => found(m, record),
        }
        case(m, record, &what);
    }
    *left -= shown.len();
    if shown.len() < points.len() && points.len() > 1 {
        let text = format!(
            "{} of {} points are drawn one by one; the table and the CSV have all.",
            shown.len(),
            points.len()
        );
        m.leaf("p", &[("class", "note")], &text);
        m.line();
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
fn verdict_on(record: &Record, transfer: &Transfer<'_>, model: Option<(f64, &str)>) -> Verdict {
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

/// Writes what limits each of several flows.
fn found(m: &mut Markup, record: &Record) {
    for flow in record.flows.iter().take(MOST_FLOWS) {
        let Some(finding) = flow.findings.first() else { continue };
        let here = format!("{} → {}, {}", flow.from, flow.to, format_bps(flow.goodput_bps));
        let verdict = verdict::of_finding(&here, finding);
        m.leaf("p", &[], &format!("{} {}", verdict.headline, verdict.why));
        m.line();
    }
}

fn remedies(m: &mut Markup, record: &Record) {
    for flow in &record.flows {
        verdict::further(m, &flow.findings);
    }
}

fn transfers(record: &Record) -> Vec<Transfer<'_>> {
    (0..record.flows.len()).filter_map(|i| Transfer::of_flow(record, i)).collect()
}

/// Writes the charts of one case. Each of several flows has its own round trips; those of a single flow come last.
fn case(m: &mut Markup, record: &Record, what: &str) {
    let transfers = transfers(record);
    for (flow, transfer) in record.flows.iter().zip(&transfers).take(MOST_FLOWS) {
        let mut title = transfer.name();
        if !what.is_empty() {
            title = format!("{title}, {what}");
        }
        if transfers.len() > 1 {
            m.leaf("h3", &[], &transfer.name());
        }
        let own = (transfers.len() > 1).then(|| distribution::chart(&flow.rtt_ns, &title)).flatten();
        charts(m, transfer, &title, own);
    }
    for (flow, transfer) in record.flows.iter().zip(&transfers).take(MOST_FLOWS) {
        if let Some(udp) = &flow.udp {
            facts(m, &format!("Datagrams, {}", transfer.name()), &datagrams::rows(udp));
        }
    }
    let flows = record.flows.iter().zip(&transfers).take(MOST_FLOWS);
    let of_streams = flows.map(|(flow, transfer)| (transfer.name(), flow.stream_goodput_bps.as_slice()));
    streams::table(m, &of_streams.collect::<Vec<_>>());
    let title = if what.is_empty() { record.scenario.as_str() } else { what };
    let of_all = match record.flows.as_slice() {
        [] => Some(&record.rtt_ns),
        [flow] => Some(&flow.rtt_ns),
        _ => None,
    };
    if let Some(chart) = of_all.and_then(|rtt| distribution::chart(rtt, title)) {
        m.add(chart.figure());
    }
    for chart in queue::charts(record, title) {
        m.add(chart.figure());
    }
    if transfers.len() > MOST_FLOWS {
        let more = transfers.len() - MOST_FLOWS;
        m.leaf("p", &[("class", "note")], &format!("{more} more flows are not drawn."));
    }
}

/// Writes the charts of one transfer, without the distribution of round trips, which belongs to the path.
pub(crate) fn charts(m: &mut Markup, transfer: &Transfer<'_>, title: &str, round_trips: Option<Chart>) {
    let charts = [
        timeline::chart(transfer, title),
        flight::chart(transfer, title),
        round_trips,
        time_share::chart(transfer, title),
    ];
    for chart in charts.into_iter().flatten() {
        m.add(chart.figure());
    }
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
