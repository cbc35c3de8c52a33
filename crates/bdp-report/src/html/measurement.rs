//! Report on measurements between two machines: one, several of one request, or a sweep.

use std::collections::BTreeMap;

use bdp_model::measurement::figure::{Figure, Quantile};
use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use bdp_model::record::RttReport;
use bdp_model::statistics::median;
use bdp_model::units::{format_bps, significant};
use maud::{Markup, html};
use serde_json::Value;

use super::lab::charts;
pub use super::measured_table::Varied;
use super::measured_table::{Columns, arrow, ends, from_to, quantiles};
use super::page::{About, note, page};
use super::plain_language::{self, Described};
use super::repetitions::{self, Row};
use super::streams;
use super::transfer::Transfer;
use super::verdict::{self, Verdict};
use super::{datagrams, distribution};
use super::{measured_conditions, measured_sweep};
use crate::measurement::latency;
use crate::number::percent;

/// Returns a self-contained HTML page about measurements.
pub fn html_of_measurements(measurements: &[Varied<'_>], about: &About<'_>) -> String {
    let Some((_, first)) = measurements.first() else {
        let (title, heading) = about.begin(about.label.unwrap_or("No measurement").to_owned(), []);
        return page(&title, html! { (heading) (Verdict::of("No measurement has ended yet.").markup()) });
    };
    let path = ends(first).join(" – ");
    let own = about.label.or(first.label.as_deref()).map_or(path.clone(), |l| format!("{l}: {path}"));
    let (title, heading) = about.begin(own, line(first));
    let groups = groups(measurements);
    let results = match groups.as_slice() {
        [(_, runs)] => alike(runs),
        _ => measured_sweep::section(measurements, &groups),
    };
    page(&title, html! { (heading) (results) (measured_conditions::section(measurements, about)) })
}

fn line(m: &Measurement) -> Vec<String> {
    let ms = |ns: u64| significant(ns as f64 / 1e6);
    let both = |a: Option<u32>, b: Option<u32>| {
        let text = |mtu: Option<u32>| mtu.map_or_else(|| "unknown".to_owned(), |v| v.to_string());
        if a == b { text(a) } else { format!("{} out, {} back", text(a), text(b)) }
    };
    let mut line = Vec::new();
    line.extend(m.path.rtt_min_ns.map(|ns| format!("smallest round trip {} ms", ms(ns))));
    line.push(format!("path MTU {}", both(m.path.mtu_to, m.path.mtu_from)));
    line.extend(
        m.path
            .mtu_black_hole
            .map(|hole| format!("a black hole for packets from there to {} B", hole.known_mtu)),
    );
    line.extend(m.path.mss_bytes.map(|mss| format!("MSS {mss}")));
    line
}

/// Groups measurements by varied parameters, in order of appearance.
fn groups<'a>(measurements: &[Varied<'a>]) -> Vec<(&'a BTreeMap<String, Value>, Vec<&'a Measurement>)> {
    let mut groups: Vec<(&BTreeMap<String, Value>, Vec<&Measurement>)> = Vec::new();
    for &(params, measurement) in measurements {
        match groups.iter_mut().find(|(p, _)| *p == params) {
            Some((_, members)) => members.push(measurement),
            None => groups.push((params, vec![measurement])),
        }
    }
    groups
}

fn ways(runs: &[&Measurement]) -> Vec<Direction> {
    let mut ways = Vec::new();
    for direction in runs.iter().flat_map(|m| &m.directions) {
        if !ways.contains(&direction.direction) {
            ways.push(direction.direction);
        }
    }
    ways
}

fn of(m: &Measurement, way: Direction) -> Option<&DirectionResult> {
    m.directions.iter().find(|d| d.direction == way)
}

/// Returns the run with the (lower) median goodput.
fn typical<'a>(runs: &[&'a Measurement], way: Direction) -> Option<(&'a Measurement, &'a DirectionResult)> {
    let mut all: Vec<(&Measurement, &DirectionResult)> =
        runs.iter().filter_map(|m| Some((*m, of(m, way)?))).collect();
    all.sort_by(|a, b| a.1.goodput_bps.total_cmp(&b.1.goodput_bps));
    let middle = all.len().checked_sub(1)? / 2;
    all.get(middle).copied()
}

/// Returns the runs of one request: the verdict on each direction, the figures, the charts.
fn alike(runs: &[&Measurement]) -> Markup {
    let ways = ways(runs);
    let judged: Vec<_> = ways.iter().filter_map(|&way| typical(runs, way)).collect();
    let transfers: Vec<_> = judged.iter().map(|(run, d)| Transfer::of_direction(run, d)).collect();
    let bars = verdict::bars(&transfers.iter().collect::<Vec<_>>(), None);
    let of_streams =
        judged.iter().map(|(run, d)| (numbered(runs, run, d.direction), d.stream_goodput_bps.as_slice()));
    let rows = ways.iter().map(|&way| Row {
        name: runs.first().map(|r| arrow(r, way)).unwrap_or_default(),
        values_bps: runs.iter().filter_map(|r| Some((of(r, way)?.goodput_bps, true))).collect(),
        model_bps: None,
    });
    html! {
        @for error in runs.iter().filter_map(|r| r.error.as_deref()) {
            (Verdict { headline: "A measurement failed.".to_owned(), why: error.to_owned() }.markup())
        }
        @for ((measurement, direction), bar) in judged.iter().zip(bars) {
            (verdict_on(measurement, direction).markup()) (bar) (verdict::further(&direction.findings))
        }
        (in_plain_language(runs, &ways))
        (figures(runs, &ways))
        (streams::of_transfers(&of_streams.collect::<Vec<_>>()))
        @if let Some(chart) = repetitions::of_rows(rows.collect(), "goodput") { (chart.figure()) }
        @for (measurement, direction) in judged { (details(runs, measurement, direction)) }
    }
}

/// Returns the name of a direction, with the run's number if there are several.
fn numbered(runs: &[&Measurement], run: &Measurement, way: Direction) -> String {
    let number = if runs.len() > 1 { format!(" #{}", run.repetition) } else { String::new() };
    format!("{}{number}", arrow(run, way))
}

/// Returns the charts of one direction.
fn details(runs: &[&Measurement], measurement: &Measurement, direction: &DirectionResult) -> Markup {
    let (way, title) = (direction.direction, arrow(measurement, direction.direction));
    let idle = direction.rtt_ns.idle.or(measurement.rtt_idle_ns);
    let round_trips = distribution::chart(&RttReport { idle, ..direction.rtt_ns.clone() }, &title);
    let (repetition, all) = (measurement.repetition, runs.len());
    html! {
        h2 id=(way.name()) { (title) }
        @if all > 1 {
            (note(format!("Run {repetition} of {all}, the one whose goodput is the median of this direction.")))
        }
        (datagrams::of_direction(measurement, direction, &title))
        (charts(&Transfer::of_direction(measurement, direction), &title, round_trips))
    }
}

/// Describes, for readers who are not network engineers, the measurement, what limits each direction and what to do.
fn in_plain_language(runs: &[&Measurement], ways: &[Direction]) -> Markup {
    let all: Vec<_> = ways.iter().filter_map(|&way| typical(runs, way)).collect();
    let [(first, _), ..] = all.as_slice() else { return Markup::default() };
    let [near, far] = ends(first);
    let described: Vec<_> = all
        .iter()
        .map(|(run, direction)| {
            let [from, to] = from_to(run, direction.direction);
            Described { from, to, transfer: &direction.transfer }
        })
        .collect();
    let mut sentences = vec![format!(
        "This test sent data {} and measured how fast it arrived.",
        match ways {
            [Direction::To] => format!("from {near} to {far}"),
            [Direction::From] => format!("from {far} to {near}"),
            _ => format!("both ways between {near} and {far}"),
        }
    )];
    if runs.len() > 1 {
        sentences.push(format!("It ran {} times; the figures are medians.", runs.len()));
    }
    sentences.extend(plain_language::sentences(&described));
    plain_language::paragraph(&sentences)
}

/// Returns the verdict on a direction from its finding, or only figures without one.
fn verdict_on(m: &Measurement, d: &DirectionResult) -> Verdict {
    let ordered = m.request.ordered.map(|ordered| ordered.of(d.direction) as f64);
    let of_ordered = ordered.map_or_else(String::new, |bps| {
        format!(", {} of the {} ordered", percent(d.goodput_bps / bps), format_bps(bps))
    });
    let here = format!("{} {}{of_ordered}", arrow(m, d.direction), format_bps(d.goodput_bps));
    let Some(finding) = d.findings.first() else {
        let inferred = verdict::of_transfer(&Transfer::of_direction(m, d), None);
        return Verdict { headline: format!("{} {}", arrow(m, d.direction), inferred.headline), ..inferred };
    };
    verdict::of_finding(&here, finding)
}

/// Returns the idle round trips, of one run or as medians of several, and the name of the row.
fn idle(runs: &[&Measurement]) -> Option<(String, String)> {
    let known =
        |quantile| -> Vec<f64> { runs.iter().filter_map(|run| Figure::RttIdle(quantile).of(run)).collect() };
    let all = known(Quantile::P50).len();
    let name = if all > 1 { format!("idle, median of {all} runs") } else { "idle".to_owned() };
    let shown = [Quantile::P50, Quantile::P95, Quantile::P99].map(|quantile| median(&mut known(quantile)));
    (all > 0).then(|| (name, quantiles(shown)))
}

/// Returns the terminal's table: the idle path, and each direction of each run.
fn figures(runs: &[&Measurement], ways: &[Direction]) -> Markup {
    let columns = Columns::of(runs.iter().copied(), false);
    let mut rows: Vec<_> =
        idle(runs).into_iter().map(|(name, round_trips)| Columns::idle(name, round_trips)).collect();
    for &way in ways {
        let measured = runs.iter().filter_map(|run| Some((run, of(run, way)?)));
        rows.extend(
            measured.map(|(run, direction)| columns.row(&numbered(runs, run, way), "", run, direction)),
        );
    }
    let latencies = ways.iter().filter_map(|&way| {
        let (run, direction) = typical(runs, way)?;
        Some(format!("{}: {}.", arrow(run, way), latency::in_words(direction)?))
    });
    html! {
        (columns.table(rows))
        @for words in latencies { (note(words)) }
        @if let Some(ceiling) = runs.iter().find_map(|r| r.ceiling.as_ref()) {
            @let goodput = format_bps(ceiling.goodput_bps);
            (note(format!("Ceiling {goodput} from {}; the path may allow less.", ceiling.by)))
        }
    }
}
