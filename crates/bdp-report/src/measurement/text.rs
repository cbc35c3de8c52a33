//! Text report of a measurement: both ends, the figures, the limit of each direction, and next steps.

use bdp_model::facts::Facts;
use bdp_model::facts::ramp_up::RampUp;
use bdp_model::finding::caveat::Caveat;
use bdp_model::flow::method::WindowMechanism;
use bdp_model::measurement::figure::{Figure, Quantile, figure, values};
use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use bdp_model::record::{Bound, RttSummary, WindowReport};
use bdp_model::statistics::comparison::Interval;
use bdp_model::units::{Nanos, format_bps};

use super::answer::{Answered, answers, beside};
use super::command::{against, in_store, several};
use super::conclusion::conclusions;
use super::datagrams::{datagrams, datagrams_in_short};
use super::heading::{ends, far_name, hosts, troubled_hosts};
use super::latency::{latency, responsiveness};
use super::printed::printed;
use super::streams::streams;
use super::{arrow, ways};
use crate::caveat;
use crate::finding;
use crate::grid::{Cell, columns_of, drop_to_fit, narrow_to_fit, not_shown, render, tame, wrap};
use crate::number::{RateUnit, asked_size, loss, percent, size, three_digits};
use crate::style::{Style, Tint};
use crate::summary::Spread;
use crate::time_spent;

/// Returns the report of one measurement or several of one request, oldest first; `run` is their id in the store, `store` its
/// path unless it is the default. The answer comes first, then the main figures, then the time spent; everything else
/// only with [`Style::details`]. One line if there is no measurement.
pub fn measurements_text(
    measurements: &[Measurement],
    run: Option<&str>,
    store: Option<&str>,
    style: &Style,
) -> String {
    let Some(first) = measurements.first() else { return "no measurements\n".to_owned() };
    let unit = unit(measurements, style);
    let ways = ways(measurements);
    let typical: Vec<(Direction, &Measurement)> =
        ways.iter().filter_map(|&way| Some((way, typical(measurements, way)?))).collect();
    let mut text = failures(measurements, style);
    let answered: Vec<Answered<'_>> = typical
        .iter()
        .map(|&(way, typical)| Answered { way, typical, agreement: agreement(measurements, typical, way) })
        .collect();
    text.push_str(&answers(&answered, measurements, unit, style));
    text.push('\n');
    text.push_str(&figures(measurements, style));
    let directions: Vec<_> = typical.iter().filter_map(|&(way, m)| Some((way, of(m, way)?))).collect();
    let rows = streams(&directions, unit, style);
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&rows);
        text.push('\n');
    }
    for &(way, m) in &typical {
        text.push_str(&time(m, way, style));
        if !style.details {
            text.push_str(&tried(m, way, style));
        }
        text.push_str(&settled(m, way, unit, style));
    }
    if style.details {
        text.push_str(&details(first, &typical, measurements, style));
    } else {
        for &(way, m) in &typical {
            text.push_str(&beside(way, m, style));
            text.push_str(&datagrams_in_short(m, way, style));
            // If a window was requested, the user wants to know which of the three it became.
            let spec = &m.request.spec;
            let is_asked = spec.window.is_some() || spec.socket_buffer.is_some();
            let wanted =
                |d: &&DirectionResult| d.udp.is_none() && (is_asked || d.window.reached == Some(false));
            if let Some(direction) = of(m, way).filter(wanted) {
                text.push_str(&window_line(way, &direction.window, style));
            }
        }
        if let [one] = measurements {
            text.push_str(&responsiveness(one, style));
        } else {
            text.push_str(&spread(measurements, style));
        }
        text.push_str(&troubled_hosts(first, style));
    }
    text.push_str(&ends(first, run, style));
    text.push_str(&notes(measurements, style));
    text.push_str(&next(first, measurements.len(), run, store, style));
    text.push_str(&printed(measurements));
    text
}

/// Returns the details for experts: evidence of the findings, both hosts and the path, windows, delays, spreads.
fn details(
    first: &Measurement,
    typical: &[(Direction, &Measurement)],
    measurements: &[Measurement],
    style: &Style,
) -> String {
    let mut text = String::new();
    for &(way, m) in typical {
        text.push_str(&conclusions(m, way, Some(agreement(measurements, m, way)), style));
    }
    for &(way, m) in typical {
        text.push_str(&datagrams(m, way, style));
        let Some(direction) = of(m, way) else { continue };
        if direction.udp.is_none() {
            text.push_str(&window_line(way, &direction.window, style));
        }
        let lead = format!("pacing {} ", arrow(way, style));
        let said = direction.pacing.as_ref().map(|pacing| super::pacing::words(m, direction, pacing));
        text.push_str(&said.map_or_else(String::new, |said| wrap(&lead, Tint::None, &said, style)));
        let lead = format!("sent {}   ", arrow(way, style));
        let said = super::sending::words(direction);
        text.push_str(&said.map_or_else(String::new, |said| wrap(&lead, Tint::None, &said, style)));
    }
    if let [one] = measurements {
        text.push_str(&start(one, style));
        text.push_str(&latency(one, style));
    }
    text.push_str(&spread(measurements, style));
    text.push_str(&wrap("ceiling  ", Tint::Faint, &ceiling(first), style));
    text.push_str(&hosts(first, style));
    text
}

/// Returns where the time of a direction went.
fn time(m: &Measurement, way: Direction, style: &Style) -> String {
    let words = Facts::measured(m, way).as_ref().and_then(time_spent::in_words);
    let lead = format!("time {}   ", arrow(way, style));
    words.map_or_else(String::new, |words| wrap(&lead, Tint::Faint, &words, style))
}

/// Returns why a direction ended early, and the estimate for its full duration.
fn settled(m: &Measurement, way: Direction, unit: RateUnit, style: &Style) -> String {
    let direction = of(m, way);
    let words = direction.and_then(|d| Some((d.settled?, d.bytes))).map(|(settled, bytes)| {
        format!(
            "goodput settled after {} and {}: the {} would come to {} {} +/- {}",
            Nanos(settled.after_ns),
            size(bytes as f64),
            Nanos(settled.of_ns),
            unit.format(settled.goodput_bps),
            unit.name,
            percent(settled.error)
        )
    });
    words.map_or_else(String::new, |words| {
        wrap(&format!("until {}  ", arrow(way, style)), Tint::Faint, &words, style)
    })
}

/// Returns the results of experiments on a direction's limit.
fn tried(m: &Measurement, way: Direction, style: &Style) -> String {
    let first = of(m, way).and_then(|d| d.findings.first());
    let lead = format!("tried {}  ", arrow(way, style));
    let lines = first.map_or_else(Vec::new, finding::of_experiments);
    lines.iter().map(|line| wrap(&lead, Tint::Faint, line, style)).collect()
}

/// Returns the three windows of a direction in a line.
fn window_line(way: Direction, report: &WindowReport, style: &Style) -> String {
    wrap(&format!("window {} ", arrow(way, style)), Tint::None, &window(report), style)
}

/// Returns the unit of the rates: the requested one, or one that fits all.
fn unit(measurements: &[Measurement], style: &Style) -> RateUnit {
    let rates = measurements.iter().flat_map(|m| &m.directions).map(|d| d.goodput_bps);
    style.rate_unit.unwrap_or_else(|| RateUnit::spacious(rates))
}

fn of(m: &Measurement, way: Direction) -> Option<&DirectionResult> {
    m.directions.iter().find(|d| d.direction == way)
}

/// Returns the run with the (lower) median goodput of this direction.
fn typical(measurements: &[Measurement], way: Direction) -> Option<&Measurement> {
    let mut runs: Vec<(&Measurement, f64)> =
        measurements.iter().filter_map(|m| Some((m, Figure::Goodput(way).of(m)?))).collect();
    runs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let middle = runs.len().checked_sub(1)? / 2;
    runs.get(middle).map(|&(m, _)| m)
}

/// Returns how many runs found the same limit as the typical one, and how many there are.
fn agreement(measurements: &[Measurement], typical: &Measurement, way: Direction) -> (usize, usize) {
    let limit = |m: &Measurement| of(m, way).and_then(|d| d.findings.first()).map(|f| f.limit);
    let wanted = limit(typical);
    let all = measurements.iter().filter(|m| of(m, way).is_some());
    (all.clone().filter(|m| limit(m) == wanted).count(), all.count())
}

/// Returns the table: a row for the idle path, and one for each direction and run.
fn figures(measurements: &[Measurement], style: &Style) -> String {
    let unit = unit(measurements, style);
    let several = measurements.len() > 1;
    let mut rows: Vec<[Cell; 8]> = Vec::new();
    if let Some(idle) = idle(measurements) {
        let blank = Cell::default;
        rows.push([Cell::plain("idle"), blank(), blank(), blank(), blank(), blank(), idle, blank()]);
    }
    let mut breaks = Vec::new();
    for way in ways(measurements) {
        if several && !rows.is_empty() {
            breaks.push(rows.len());
        }
        for m in measurements {
            let Some(d) = of(m, way) else { continue };
            let end =
                if way == Direction::To || !m.far.name.is_empty() { far_name(m) } else { "far".to_owned() };
            let name = format!("{} {end}", arrow(way, style));
            let name = if several { format!("{name} #{}", m.repetition) } else { name };
            let share = m.ceiling.as_ref().map(|c| percent(d.goodput_bps / c.goodput_bps));
            let dash = || "-".to_owned();
            let of_tcp = |cell| if d.udp.is_none() { cell } else { Cell::default() };
            rows.push([
                Cell::plain(name),
                Cell::tinted(format!("{} {}", unit.format(d.goodput_bps), unit.name), Tint::Strong),
                Cell::plain(share.unwrap_or_else(dash)),
                d.udp.as_ref().map_or_else(Cell::default, |udp| Cell::plain(loss(udp.loss_ratio))),
                d.udp
                    .as_ref()
                    .and_then(|udp| udp.jitter_ns)
                    .map_or_else(Cell::default, |ns| Cell::plain(three_digits(ns as f64 / 1e6))),
                of_tcp(Cell::plain(d.retransmits.map_or_else(dash, |n| n.to_string()))),
                rtt(d.rtt_ns.loaded),
                of_tcp(Cell::plain(d.window.on_the_wire_bytes.map_or_else(dash, |b| size(b as f64)))),
            ]);
        }
    }
    let heads = [
        ["", ""],
        ["", "goodput"],
        ["of", "ceiling"],
        ["", "lost"],
        ["jitter", "ms"],
        ["", "retrans"],
        ["RTT ms", "p50/p95/p99"],
        ["window on", "the wire"],
    ];
    let mut columns = columns_of(heads, &rows, 1);
    // Too narrow: columns repeated below, or least important, are dropped first.
    let expendable = [("the wire", "window on the wire"), ("retrans", "retrans"), ("ceiling", "of ceiling")];
    let hidden = drop_to_fit(&mut columns, &expendable, style);
    narrow_to_fit(&mut columns, 0, 4, style);
    render(&columns, &breaks, style) + &not_shown(&hidden, style)
}

/// Returns the idle round trips of one run, or the medians over several.
fn idle(measurements: &[Measurement]) -> Option<Cell> {
    if let [one] = measurements {
        return one.rtt_idle_ns.map(|idle| rtt(Some(idle)));
    }
    let ms = |quantile| Some(three_digits(figure(Figure::RttIdle(quantile), measurements)? / 1e6));
    let known = |quantile| ms(quantile).unwrap_or_else(|| "-".to_owned());
    let (p50, p95, p99) = (ms(Quantile::P50)?, known(Quantile::P95), known(Quantile::P99));
    Some(Cell::plain(format!("{p50}/{p95}/{p99}")))
}

/// Returns `24.2/24.6/25.3`, or words if no probe was answered.
fn rtt(summary: Option<RttSummary>) -> Cell {
    match summary {
        None => Cell::plain("-"),
        Some(rtt) if rtt.received == 0 => Cell::plain("no answer"),
        Some(rtt) => {
            Cell::plain(rtt.bounds().map(|bound| bound.map_or_else(|| "-".to_owned(), ms)).join("/"))
        }
    }
}

/// Returns `24.2`, or `>1000` for a percentile among unanswered probes.
fn ms(bound: Bound) -> String {
    let sign = if bound.exact { "" } else { ">" };
    format!("{sign}{}", three_digits(bound.ns as f64 / 1e6))
}

fn ceiling(m: &Measurement) -> String {
    match &m.ceiling {
        Some(c) => {
            let by = tame(&c.by);
            format!("{} from {by}; the path may allow less", exact(c.goodput_bps))
        }
        None => "unknown: neither end's device reports its speed".to_owned(),
    }
}

/// Formats a rate to a hundredth of its unit: a ceiling is calculated, not measured.
fn exact(bps: f64) -> String {
    let scale = if bps >= 1e9 { 1e7 } else { 1e4 };
    format_bps((bps / scale).round() * scale).to_string()
}

/// Returns the three windows: requested, socket buffer, on the wire.
fn window(w: &WindowReport) -> String {
    let known = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), |b| size(b as f64));
    let most = match (w.on_the_wire_bytes, w.on_the_wire_max_bytes) {
        (Some(median), Some(max)) if max as f64 > 1.1 * median as f64 => {
            format!(" (up to {})", size(max as f64))
        }
        _ => String::new(),
    };
    let (asked, method) = match (w.asked_bytes, &w.method) {
        (None, WindowMechanism::Autotuned) => ("autotuned".to_owned(), String::new()),
        (None, method) => ("asked none".to_owned(), format!(" ({method})")),
        (Some(bytes), method) => (format!("asked {}", asked_size(bytes)), format!(" ({method})")),
    };
    let (buffer, wire) = (known(w.socket_buffer_bytes), known(w.on_the_wire_bytes));
    let mut text = format!("{asked}, socket buffer {buffer}{method}, on the wire {wire}{most}");
    if w.reached == Some(false) {
        let why = w
            .note
            .as_ref()
            .map_or_else(|| "no reason recorded".to_owned(), |note| tame(&caveat::window_shortfall(note)));
        text.push_str(&format!("; NOT REACHED: {why}"));
    }
    text
}

/// Returns slow start separately if it is visible: nothing is omitted unless requested.
fn start(m: &Measurement, style: &Style) -> String {
    let unit = unit(std::slice::from_ref(m), style);
    let of_way = |way: Direction| {
        let direction = of(m, way)?;
        let start = RampUp::of(&direction.received, direction.omit_ns)?;
        let after = unit.format(start.goodput_after_bps);
        Some(format!("{} {}, then {after} {}", arrow(way, style), start.took, unit.name))
    };
    let parts: Vec<String> = ways(std::slice::from_ref(m)).into_iter().filter_map(of_way).collect();
    if parts.is_empty() {
        return String::new();
    }
    wrap("start    ", Tint::None, &format!("{} (time to 90 % of the later rate)", parts.join("; ")), style)
}

/// Returns the variation of the goodput over the intervals of one run, or over several runs.
fn spread(measurements: &[Measurement], style: &Style) -> String {
    let unit = unit(measurements, style);
    let mut parts = Vec::new();
    let mut which = "p5..p95";
    for way in ways(measurements) {
        let range = match measurements {
            [one] => of(one, way).and_then(|d| d.spread).and_then(|s| s.range()).map(|(low, high, of)| {
                which = of;
                (low, high)
            }),
            several => Spread::of(values(Figure::Goodput(way), several)).map(|s| (s.min, s.max)),
        };
        if let Some((low, high)) = range {
            parts.push(format!("{} {}..{}", arrow(way, style), unit.format(low), unit.format(high)));
        }
    }
    if parts.is_empty() {
        return String::new();
    }
    let of_what = match measurements.len() {
        1 => format!("{which} of intervals; one run: no confidence interval"),
        n => {
            let medians: Vec<String> = ways(measurements)
                .into_iter()
                .filter_map(|way| {
                    let median = figure(Figure::Goodput(way), measurements)?;
                    let interval = Interval::of_median(&values(Figure::Goodput(way), measurements));
                    let sure = interval.map_or_else(String::new, |i| {
                        let (low, high) = (unit.format(i.low), unit.format(i.high));
                        format!(" ({:.0} %: {low}..{high})", (i.confidence * 100.0).floor())
                    });
                    Some(format!("{} {}{sure}", arrow(way, style), unit.format(median)))
                })
                .collect();
            let made = measurements.iter().filter(|m| m.error.is_none()).count();
            let of = if made < n { format!("{made} of {n}") } else { n.to_string() };
            format!("smallest..largest of {of} runs; median {}", medians.join(", "))
        }
    };
    wrap("spread   ", Tint::None, &format!("{} {} ({of_what})", parts.join(", "), unit.name), style)
}

/// Returns the failed runs with their reasons.
fn failures(measurements: &[Measurement], style: &Style) -> String {
    let failed = measurements.iter().filter_map(|m| Some((m.repetition, m.error.as_ref()?)));
    failed
        .map(|(number, error)| wrap("FAILED   ", Tint::Bad, &format!("#{number}: {}", tame(error)), style))
        .collect()
}

/// Returns the caveats, each once.
fn notes(measurements: &[Measurement], style: &Style) -> String {
    let mut text = String::new();
    let all: Vec<&Measurement> = measurements.iter().collect();
    // For a single run, the reason for a missed window is shown next to it.
    let is_shown = |caveat: &Caveat| match caveat {
        Caveat::WindowNotReached { .. } => measurements.len() == 1,
        // Already shown as the answer.
        Caveat::BackedOff { .. } => true,
        _ => !style.details && caveat::is_detail(&all, caveat),
    };
    for line in caveat::said(&all, is_shown) {
        text.push_str(&wrap("NOTE     ", Tint::Doubtful, &tame(&line), style));
    }
    for m in measurements {
        let is_noted = |d: &DirectionResult| {
            let is_it = |caveat: &Caveat| matches!(caveat, Caveat::EndedEarly { direction, .. } if *direction == d.direction);
            m.caveats.iter().any(is_it)
        };
        for d in m.directions.iter().filter(|d| !d.ended.is_complete() && !is_noted(d)) {
            let line = format!("{} ended early ({})", arrow(d.direction, style), tame(d.ended.name()));
            text.push_str(&wrap("NOTE     ", Tint::Doubtful, &line, style));
        }
    }
    text
}

/// Returns follow-up commands, each on its own line, ready for a shell.
fn next(m: &Measurement, runs: usize, run: Option<&str>, store: Option<&str>, style: &Style) -> String {
    let Some(run) = run else { return String::new() };
    let mut commands = vec![in_store(&format!("bdp report {run}"), store)];
    if style.details {
        commands.push(against(m, run, store));
        if runs == 1 {
            commands.push(several(m, 6, store));
        }
    } else {
        commands.push(in_store(&format!("bdp show {run} -v"), store));
    }
    let lead = style.paint(Tint::Faint, "next     ");
    let lines = commands.iter().enumerate();
    lines.map(|(i, command)| format!("{}{command}\n", if i == 0 { &lead } else { "         " })).collect()
}
