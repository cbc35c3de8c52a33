//! Report on measurements between two machines: one, several of one request, or a sweep.

use std::collections::BTreeMap;

use bdp_model::measurement::figure::{Figure, Quantile};
use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use bdp_model::record::RttReport;
use bdp_model::statistics::median;
use bdp_model::units::{format_bps, significant};
use serde_json::Value;

use super::lab::charts;
pub use super::measured_table::Varied;
use super::measured_table::{Columns, arrow, ends, from_to, quantiles};
use super::page::{About, page};
use super::plain_language::{self, Described};
use super::repetitions::{self, Row};
use super::streams;
use super::transfer::Transfer;
use super::verdict::{self, Verdict};
use super::{datagrams, distribution};
use super::{measured_conditions, measured_sweep};
use crate::markup::Markup;
use crate::measurement::latency;
use crate::number::percent;

/// Returns a self-contained HTML page about measurements.
pub fn html_of_measurements(measurements: &[Varied<'_>], about: &About<'_>) -> String {
    let mut m = Markup::default();
    let Some((_, first)) = measurements.first() else {
        let title = about.begin(&mut m, about.label.unwrap_or("No measurement").to_owned(), []);
        Verdict { headline: "No measurement has ended yet.".to_owned(), why: String::new() }.write(&mut m);
        return page(&title, m);
    };
    let path = ends(first).join(" – ");
    let own = about.label.or(first.label.as_deref()).map_or(path.clone(), |l| format!("{l}: {path}"));
    let title = about.begin(&mut m, own, line(first));
    let groups = groups(measurements);
    match groups.as_slice() {
        [(_, runs)] => alike(&mut m, runs),
        _ => measured_sweep::write(&mut m, measurements, &groups),
    }
    measured_conditions::write(&mut m, measurements, about);
    page(&title, m)
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

/// Writes the runs of one request: the verdict on each direction, the figures, the charts.
fn alike(m: &mut Markup, runs: &[&Measurement]) {
    let ways = ways(runs);
    for error in runs.iter().filter_map(|r| r.error.as_deref()) {
        Verdict { headline: "A measurement failed.".to_owned(), why: error.to_owned() }.write(m);
    }
    let judged: Vec<_> = ways.iter().filter_map(|&way| typical(runs, way)).collect();
    let transfers: Vec<_> = judged.iter().map(|(run, d)| Transfer::of_direction(run, d)).collect();
    let bars = verdict::bars(&transfers.iter().collect::<Vec<_>>(), None);
    for ((measurement, direction), bar) in judged.into_iter().zip(bars) {
        verdict_on(measurement, direction).write(m);
        m.append(bar);
        verdict::further(m, &direction.findings);
    }
    in_plain_language(m, runs, &ways);
    figures(m, runs, &ways);
    let typical: Vec<_> = ways.iter().filter_map(|&way| typical(runs, way)).collect();
    let of_streams = typical.iter().map(|(run, d)| {
        let number = if runs.len() > 1 { format!(" #{}", run.repetition) } else { String::new() };
        (format!("{}{number}", arrow(run, d.direction)), d.stream_goodput_bps.as_slice())
    });
    streams::table(m, &of_streams.collect::<Vec<_>>());
    let rows = ways.iter().map(|&way| Row {
        name: runs.first().map(|r| arrow(r, way)).unwrap_or_default(),
        values_bps: runs.iter().filter_map(|r| Some((of(r, way)?.goodput_bps, true))).collect(),
        model_bps: None,
    });
    if let Some(chart) = repetitions::of_rows(rows.collect(), "goodput") {
        m.add(chart.figure());
    }
    for (measurement, direction) in typical {
        let (way, title) = (direction.direction, arrow(measurement, direction.direction));
        m.leaf("h2", &[("id", way.name())], &title);
        if runs.len() > 1 {
            let text = format!(
                "Run {} of {}, the one whose goodput is the median of this direction.",
                measurement.repetition,
                runs.len()
            );
            m.leaf("p", &[("class", "note")], &text);
        }
        datagrams::of_direction(m, measurement, direction, &title);
        let idle = direction.rtt_ns.idle.or(measurement.rtt_idle_ns);
        let round_trips = distribution::chart(&RttReport { idle, ..direction.rtt_ns.clone() }, &title);
        charts(m, &Transfer::of_direction(measurement, direction), &title, round_trips);
    }
}

/// Describes, for readers who are not network engineers, the measurement, what limits each direction and what to do.
fn in_plain_language(m: &mut Markup, runs: &[&Measurement], ways: &[Direction]) {
    let all: Vec<_> = ways.iter().filter_map(|&way| typical(runs, way)).collect();
    let [(first, _), ..] = all.as_slice() else { return };
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
    plain_language::write(m, &sentences);
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

/// Writes the terminal's table: the idle path, and each direction of each run.
fn figures(m: &mut Markup, runs: &[&Measurement], ways: &[Direction]) {
    let columns = Columns::of(runs.iter().copied(), false);
    m.element("div", &[("class", "scroll")], |m| {
        m.element("table", &[], |m| {
            columns.head(m);
            m.element("tbody", &[], |m| {
                if let Some((name, round_trips)) = idle(runs) {
                    columns.idle(m, &name, round_trips);
                }
                for &way in ways {
                    for run in runs {
                        let Some(direction) = of(run, way) else { continue };
                        let number =
                            if runs.len() > 1 { format!(" #{}", run.repetition) } else { String::new() };
                        columns.row(m, &format!("{}{number}", arrow(run, way)), "", run, direction);
                    }
                }
            });
        });
    });
    for &way in ways {
        let Some((run, direction)) = typical(runs, way) else { continue };
        if let Some(words) = latency::in_words(direction) {
            m.leaf("p", &[("class", "note")], &format!("{}: {words}.", arrow(run, way)));
        }
    }
    if let Some(ceiling) = runs.iter().find_map(|r| r.ceiling.as_ref()) {
        let text = format!(
            "Ceiling {} from {}; the path may allow less.",
            format_bps(ceiling.goodput_bps),
            ceiling.by
        );
        m.leaf("p", &[("class", "note")], &text);
    }
    m.line();
}
