//! The table on the terminal: each point of each scenario with its model and published figures.

use std::collections::BTreeSet;

use bdp_model::case::Published;
use bdp_model::case::stack::Clock;
use bdp_model::record::Record;
use bdp_model::sweep::curve::{self, DeliveryDelay};

use crate::grid::{Align, Cell, Column, narrow_to_fit, not_shown, render, tame, total_width, wrap};
use crate::notes::{limits, notes};
use crate::number::{RateUnit, percent, size, three_digits};
use crate::programs::programs;
use crate::repeated::repeated;
use crate::style::{Style, Tint};
use crate::summary::{Ending, Point, points, rtt_idle_text, stacks};
use crate::sweep::{knees, sweeps};
use crate::varied::{varied, window};
use bdp_model::sweep::record_curves::window_curves;

/// Returns the knee of each sweep of windows, or what limits a single point; then facts about the lab, one row per point, notes on invalid
/// attempts and missed expectations, and the curves. Ends with a newline. Goodput is the median of the valid repetitions, with
/// minimum and maximum if there are several.
pub fn table(records: &[Record], style: &Style) -> String {
    if records.is_empty() {
        return "no cases\n".to_owned();
    }
    if records.iter().all(|record| !record.programs.is_empty()) {
        return records.iter().map(|record| programs(record, style)).collect::<Vec<_>>().join("\n");
    }
    let points = points(records);
    let curves = window_curves(&points);
    // The main result first: the knee of a sweep, or what limits a point, or why there is none. For several scenarios it is the table.
    let is_sweep = points.windows(2).all(|pair| pair[0].scenario == pair[1].scenario);
    let found = knees(&curves, style);
    let mut text = if is_sweep { found.clone() } else { String::new() };
    let (notes, limits) = (notes(&points, style), limits(&points, style));
    let is_one = points.len() == 1;
    if is_one {
        text.push_str(&notes);
        text.push_str(&limits);
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&wrap("lab  ", Tint::Strong, &facts(records, &points), style));
    text.push_str(&body(&points, style));
    let flows = crate::flows::flows(&points, unit(&points), style);
    for part in [
        repeated(&points, style),
        flows,
        crate::traffic::traffic(&points, unit(&points), style),
        if is_one { String::new() } else { notes },
        if is_one { String::new() } else { limits },
        if is_sweep { String::new() } else { found },
        sweeps(&curves, style),
    ] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

/// Returns the heading of a sweep in the lab: facts about it, and invalid attempts.
pub fn sweep_heading(records: &[Record], style: &Style) -> String {
    let points = points(records);
    let mut text = wrap("lab  ", Tint::Strong, &facts(records, &points), style);
    text.push_str(&notes(&points, style));
    text.push('\n');
    text
}

/// Kernel, congestion control, seed, version, fidelity.
fn facts(records: &[Record], points: &[Point<'_>]) -> String {
    fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> String {
        let set: BTreeSet<String> = words.map(tame).filter(|w| !w.is_empty()).collect();
        set.into_iter().collect::<Vec<_>>().join("/")
    }
    let kernel = distinct(records.iter().map(|r| r.environment.kernel.as_str()));
    let used = distinct(records.iter().flat_map(|r| &r.flows).map(|f| f.congestion_control.as_str()));
    let asked =
        || distinct(records.iter().flat_map(|r| &r.case.flows).filter_map(|f| f.spec.congestion.as_deref()));
    let congestion = if used.is_empty() { asked() } else { used };
    let seeds: BTreeSet<u64> = records.iter().map(|r| r.seed).collect();
    let version = distinct(records.iter().map(|r| r.environment.bdp.as_str()));
    let mut facts = Vec::new();
    match stacks(records) {
        Some(stacks) => facts.push(stacks),
        None if !kernel.is_empty() => facts.push(format!("Linux {kernel}")),
        None => {}
    }
    let clock =
        distinct(records.iter().map(|r| r.environment.clock).filter(|c| !c.is_real()).map(Clock::name));
    if !clock.is_empty() {
        facts.push(format!("{clock} clock"));
    }
    facts.extend(calls_a_segment(records));
    if !congestion.is_empty() {
        facts.push(congestion);
    }
    facts.push(match seeds.first() {
        Some(seed) if seeds.len() == 1 => format!("seed {seed}"),
        _ => "a seed for each case".to_owned(),
    });
    if !version.is_empty() {
        facts.push(format!("bdp {version}"));
    }
    facts.push(fidelity(points));
    facts.join(", ")
}

/// Returns, for guests that count them, the system calls per data segment, including those of both ends and of concurrent probes.
fn calls_a_segment(records: &[Record]) -> Option<String> {
    let guests = records.iter().filter_map(|record| record.environment.guest);
    let counted = guests.filter_map(|guest| guest.system_calls.zip(guest.segments));
    let (calls, segments) = counted.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (segments > 0).then(|| format!("{:.1} system calls a segment", calls as f64 / segments as f64))
}

/// Returns whether the emulator met its guarantees, over all cases.
fn fidelity(points: &[Point<'_>]) -> String {
    let (mut cases, mut without, mut failed, mut skipped, mut repeated) = (0, 0, 0, 0, 0);
    for point in points {
        let repetitions: BTreeSet<u32> = point.records.iter().map(|r| r.repetition).collect();
        for repetition in repetitions {
            let attempts: Vec<&&Record> =
                point.records.iter().filter(|r| r.repetition == repetition).collect();
            let invalid =
                attempts.iter().filter(|r| !r.valid && r.error.is_none() && r.skipped.is_none()).count();
            cases += 1;
            if attempts.iter().any(|r| r.valid) {
                repeated += invalid;
            } else if invalid > 0 {
                without += 1;
            } else if attempts.iter().any(|r| r.skipped.is_some()) {
                skipped += 1;
            } else {
                failed += 1;
            }
        }
    }
    let mut text = match (without, repeated) {
        (0, _) if failed + skipped == cases => "fidelity unknown".to_owned(),
        (0, 0) => "fidelity OK".to_owned(),
        (0, 1) => "fidelity OK after 1 INVALID attempt".to_owned(),
        (0, n) => format!("fidelity OK after {n} INVALID attempts"),
        (n, _) => format!("fidelity INVALID in {n} of {cases} cases"),
    };
    if failed > 0 {
        text.push_str(&format!(", {failed} of {cases} cases FAILED"));
    }
    if skipped > 0 {
        text.push_str(&format!(", {skipped} of {cases} cases SKIPPED"));
    }
    text
}

/// Columns to show, and the unit of segments in the first.
#[derive(Debug, Clone, Copy)]
struct Shape {
    segment: Option<&'static str>,
    fidelity: bool,
    rtt: bool,
    delay: bool,
    wire: bool,
    spread: bool,
    published: bool,
    model: bool,
    ratio: bool,
}

const FULL: Shape = Shape {
    segment: Some("segment"),
    fidelity: true,
    rtt: true,
    delay: true,
    wire: true,
    spread: true,
    published: true,
    model: true,
    ratio: true,
};

/// Columns dropped one by one on a narrow terminal; the flag is set if every attempt was valid, so
/// that the heading already covers the fidelity column.
const CONCESSIONS: [fn(&mut Shape, bool); 11] = [
    |s, _| s.delay = false,
    |s, _| s.segment = Some("seg"),
    |s, all_valid| s.fidelity &= !all_valid,
    |s, _| s.segment = None,
    |s, _| s.fidelity = false,
    |s, _| s.rtt = false,
    |s, _| s.wire = false,
    |s, _| s.spread = false,
    |s, _| s.published = false,
    |s, _| s.model = false,
    |s, _| s.ratio = false,
];

/// Number of drops that lose nothing stated elsewhere; they precede any truncation.
const PAINLESS: usize = 4;
/// Text columns by index, and the width to which they are truncated before a column of numbers is dropped: the
/// varied parameter, then the name.
const CUT_FIRST: [(usize, usize); 2] = [(1, 24), (0, 20)];
/// Widths to which they are truncated once no column is left to drop.
const CUT_LAST: [(usize, usize); 2] = [(1, 1), (0, 1)];

fn body(points: &[Point<'_>], style: &Style) -> String {
    let unit = unit(points);
    let mut shape = FULL;
    let mut columns = self::columns(points, shape, unit, style);
    for (step, concede) in CONCESSIONS.into_iter().enumerate() {
        let spare = CUT_FIRST.iter().map(|&(i, least)| columns[i].width().saturating_sub(least)).sum();
        if total_width(&columns) <= style.columns() + if step < PAINLESS { 0 } else { spare } {
            break;
        }
        concede(&mut shape, all_valid(points));
        columns = self::columns(points, shape, unit, style);
    }
    for (index, least) in CUT_FIRST.into_iter().chain(CUT_LAST) {
        narrow_to_fit(&mut columns, index, least, style);
    }
    let breaks: Vec<usize> = if points.windows(2).any(|p| p[0].scenario == p[1].scenario) {
        (1..points.len()).filter(|&i| points[i].scenario != points[i - 1].scenario).collect()
    } else {
        Vec::new()
    };
    render(&columns, &breaks, style) + &not_shown(&hidden(points, shape, unit, style), style)
}

fn all_valid(points: &[Point<'_>]) -> bool {
    points.iter().all(|p| p.count(Ending::Valid) == p.records.len())
}

fn unit(points: &[Point<'_>]) -> RateUnit {
    RateUnit::fitting(points.iter().flat_map(|p| {
        let published = match p.published_bps() {
            Some(Published::Number(n)) => Some(n),
            Some(Published::Range([_, high])) => Some(high),
            None => None,
        };
        [p.goodput_bps().map(|g| g.max), p.expected_bps().map(|e| e.median), published].into_iter().flatten()
    }))
}

/// Returns the names of the dropped columns that would have had values.
fn hidden(points: &[Point<'_>], shape: Shape, unit: RateUnit, style: &Style) -> Vec<&'static str> {
    let there = |head: [&str; 2]| columns(points, FULL, unit, style).iter().any(|c| c.head == head);
    [
        (!shape.fidelity && !all_valid(points), "fidelity"),
        (!shape.spread && there(["min..max", unit.name]), "min..max"),
        (!shape.wire && there(["on the", "wire"]), "on the wire"),
        (!shape.rtt && there(["RTT", "ms"]), "RTT"),
        (!shape.delay && there(DELAY), "delivery delay"),
        (!shape.published && there(["published", unit.name]), "published"),
        (!shape.model && there(["model", unit.name]), "model"),
        (!shape.ratio && there(["here/", "model"]), "here/model"),
    ]
    .into_iter()
    .filter_map(|(missing, name)| missing.then_some(name))
    .collect()
}

/// Returns the columns of `shape`, without those that are empty in all rows.
fn columns(points: &[Point<'_>], shape: Shape, unit: RateUnit, style: &Style) -> Vec<Column> {
    let mut names: Vec<Cell> = Vec::new();
    for (i, point) in points.iter().enumerate() {
        let first = i == 0 || points[i - 1].scenario != point.scenario;
        names.push(if first { Cell::tinted(tame(point.scenario), Tint::Strong) } else { Cell::default() });
    }
    let varied = points.iter().map(|p| Cell::plain(varied(p, style, shape.segment))).collect();
    let mut columns =
        vec![Column::new(["", "case"], Align::Left, names), Column::new(["", "varied"], Align::Left, varied)];
    let here = Column::new(["here", unit.name], Align::Point, points.iter().map(|p| here(p, unit)).collect());
    let filled = |columns: Vec<(bool, Column)>| {
        columns.into_iter().filter(|(wanted, column)| *wanted && !column.is_blank()).map(|(_, column)| column)
    };
    columns.extend(filled(known_before(points, shape, unit)));
    columns.push(here);
    columns.extend(filled(found(points, shape, unit)));
    columns
}

fn number(text: Option<String>) -> Cell {
    Cell::plain(text.unwrap_or_else(|| "-".to_owned()))
}

/// Returns the columns left of the goodput and whether each is shown: path, window, published figures and model.
fn known_before(points: &[Point<'_>], shape: Shape, unit: RateUnit) -> Vec<(bool, Column)> {
    let each = |cell: &dyn Fn(&Point<'_>) -> Option<String>| points.iter().map(|p| number(cell(p))).collect();
    let published = |p: &Point<'_>| {
        p.published_bps().map(|published| match published {
            Published::Number(n) => unit.format(n),
            Published::Range([low, high]) => format!("{}-{}", unit.format(low), unit.format(high)),
        })
    };
    let wire = |p: &Point<'_>| p.on_the_wire_bytes().map(|w| size(w.median));
    let model = |p: &Point<'_>| p.expected_bps().map(|e| unit.format(e.median));
    vec![
        (shape.rtt, Column::new(["RTT", "ms"], Align::Point, each(&rtt_idle_text))),
        (shape.wire, Column::new(["on the", "wire"], Align::Point, each(&wire))),
        (shape.published, Column::new(["published", unit.name], Align::Point, each(&published))),
        (shape.model, Column::new(["model", unit.name], Align::Point, each(&model))),
    ]
}

/// Returns the columns right of the goodput and whether each is shown: variation, ratio to the model, validity.
fn found(points: &[Point<'_>], shape: Shape, unit: RateUnit) -> Vec<(bool, Column)> {
    let each = |cell: &dyn Fn(&Point<'_>) -> Cell| points.iter().map(cell).collect::<Vec<_>>();
    let several = points.iter().any(|p| p.count(Ending::Valid) > 1);
    let spread = |p: &Point<'_>| {
        let spread = p.goodput_bps().filter(|_| p.count(Ending::Valid) > 1);
        number(spread.map(|g| format!("{}..{}", unit.format(g.min), unit.format(g.max))))
    };
    let lost = |p: &Point<'_>| Cell::plain(lost(p).unwrap_or_default());
    let count = |p: &Point<'_>| Cell::plain(p.count(Ending::Valid).to_string());
    let ratio = |p: &Point<'_>| number(p.model_ratio().map(|r| percent(r.median)));
    let delays = shape.delay && is_window_sweep(points);
    vec![
        (shape.spread && several, Column::new(["min..max", unit.name], Align::Point, each(&spread))),
        (true, Column::new(["", "lost"], Align::Point, each(&lost))),
        (several, Column::new(["", "n"], Align::Point, each(&count))),
        (shape.ratio, Column::new(["here/", "model"], Align::Point, each(&ratio))),
        (delays, Column::new(DELAY, Align::Point, each(&delivery_delay))),
        (shape.fidelity, Column::new(["", "fidelity"], Align::Left, each(&kept))),
        (true, Column::new(["", ""], Align::Left, each(&met))),
    ]
}

/// Returns the share of datagrams lost, over all flows and repetitions; `None` if none were sent.
fn lost(point: &Point<'_>) -> Option<String> {
    let udp = || point.valid().flat_map(|r| &r.flows).filter_map(|flow| flow.udp.as_ref());
    let sent: u64 = udp().map(|udp| udp.sent).sum();
    let lost: u64 = udp().map(|udp| udp.lost).sum();
    (sent > 0).then(|| crate::number::loss(lost as f64 / sent as f64))
}

/// Heading of the equivalent delivery delay.
const DELAY: [&str; 2] = ["delivery", "delay ms"];

/// Whether all points belong to sweeps of the window; otherwise the column would be noise.
fn is_window_sweep(points: &[Point<'_>]) -> bool {
    let swept = |p: &Point<'_>| p.params.iter().any(|(path, value)| window(path, value).is_some());
    points.iter().all(swept) && !window_curves(points).is_empty()
}

fn delivery_delay(point: &Point<'_>) -> Cell {
    let streams =
        point.valid().next().and_then(|r| r.case.flows.first()).map_or(1, |f| f.spec.streams.max(1));
    let delay = || {
        let window = point.on_the_wire_bytes()?.median * f64::from(streams);
        curve::delivery_delay(window, point.goodput_bps()?.median, point.rtt_idle_min_ns()?)
    };
    Cell::plain(match delay() {
        None => "-".to_owned(),
        Some(DeliveryDelay::Ns(ns)) => three_digits(ns as f64 / 1e6),
        Some(DeliveryDelay::BelowResolution) => "below".to_owned(),
    })
}

/// Returns the goodput, or a word on why there is none.
fn here(point: &Point<'_>, unit: RateUnit) -> Cell {
    match point.goodput_bps() {
        Some(goodput) => Cell::tinted(unit.format(goodput.median), Tint::Strong),
        None => kept(point),
    }
}

/// Returns whether the emulator met its guarantees at this point, and how many attempts are invalid.
fn kept(point: &Point<'_>) -> Cell {
    let (valid, invalid, failed) =
        (point.count(Ending::Valid), point.count(Ending::Invalid), point.count(Ending::Failed));
    match (valid, invalid, failed) {
        (0, 0, 0) => Cell::tinted("SKIPPED", Tint::Doubtful),
        (0, 0, _) => Cell::tinted("FAILED", Tint::Bad),
        (0, _, _) => Cell::tinted("INVALID", Tint::Doubtful),
        (_, 0, 0) => Cell::tinted("OK", Tint::Good),
        (_, n, 0) => Cell::tinted(format!("{n} INVALID"), Tint::Doubtful),
        (_, 0, n) => Cell::tinted(format!("{n} FAILED"), Tint::Bad),
        (_, n, m) => Cell::tinted(format!("{n} INVALID, {m} FAILED"), Tint::Bad),
    }
}

/// Returns a word if the expectation was missed, otherwise an empty cell.
fn met(point: &Point<'_>) -> Cell {
    match (point.missed().count(), point.count(Ending::Valid)) {
        (0, _) => Cell::default(),
        (1, 1) => Cell::tinted("MISSED", Tint::Bad),
        (missed, valid) => Cell::tinted(format!("MISSED {missed}/{valid}"), Tint::Bad),
    }
}
