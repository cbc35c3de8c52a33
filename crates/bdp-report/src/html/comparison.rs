//! Comparison of two runs: for each point the medians with their spread, and the difference with its interval.

use bdp_model::statistics::comparison::{Interval, Values, Verdict as Shown};
use bdp_model::sweep::run_comparison::{Compared, Metric, Row};
use bdp_model::units::format_bps;
use maud::{Markup, html};

use super::page::{About, inline, note, numbers, page, strong, table, text, words};
use super::plain_language;
use super::sentence::sentence;
use super::verdict::Verdict;
use crate::chart::Drawing;
use crate::comparison::{ComparedText, MetricText, effect, verdict_words};
use crate::measurement::in_store;
use crate::number::{percent, three_digits};

/// Size of a drawing in a cell.
const SIZE: [f64; 2] = [150.0, 16.0];

/// Returns a self-contained HTML page about a comparison, with the title and note of `a`. `threshold` is the relative change beyond which
/// a figure counts as a regression.
pub fn html_of_comparison(compared: &Compared, a: &About<'_>, b: &About<'_>, threshold: f64) -> String {
    let name = |about: &About<'_>| about.label.or(about.run).unwrap_or("run").to_owned();
    let (title, heading) = a.heading(format!("{} against {}", name(b), name(a)));
    let body = html! {
        (heading)
        @for (letter, about) in [("A", a), ("B", b)] {
            p.facts { (letter) "  " (about.line(about.command.map(str::to_owned))) }
        }
        (verdict(compared, threshold).markup())
        (plain_language::paragraph(&sentences(compared)))
        // Each metric has its own scales, because different metrics can't share an axis.
        @for metric in Metric::ALL {
            @let rows: Vec<&Row> = compared.rows.iter().filter(|r| r.metric == metric).collect();
            @if !rows.is_empty() { (of_metric(metric, &rows)) }
        }
        h2 { "How to read it" }
        p {
            "Thin lines span the smallest to the largest run, upright marks are medians: A above, B below. The interval of "
            "the difference follows from order statistics of both sides and holds for any distribution and unequal "
            "spreads; where it excludes no difference, a change is shown. It needs 6 runs on each side, and 7 for 95 %."
        }
        @for (points, which) in [(&compared.only_a, "A"), (&compared.only_b, "B")] {
            @if !points.is_empty() { (note(format!("Only in {which}: {}.", points.join("; ")))) }
        }
        @if let (Some(run_a), Some(run_b)) = (a.run, b.run) {
            pre { code { (in_store(&format!("bdp compare {run_a} {run_b}"), a.store)) } }
        }
    };
    page(&title, body)
}

fn verdict(compared: &Compared, threshold: f64) -> Verdict {
    let goodput: Vec<&Row> = compared.rows.iter().filter(|r| r.metric == Metric::GoodputBps).collect();
    let count = |shown: Shown| goodput.iter().filter(|r| r.comparison.verdict == shown).count();
    let headline = match (goodput.as_slice(), compared.regressed()) {
        ([only], _) => {
            format!("Goodput of B against A: {}, {}.", effect(only), verdict_words(only))
        }
        (_, true) => {
            let n = compared.rows.iter().filter(|r| r.regressed).count();
            format!("{n} of {} rows REGRESSED beyond {}.", compared.rows.len(), percent(threshold))
        }
        (rows, false) => {
            let verdicts = [
                (Shown::Better, "better"),
                (Shown::Worse, "worse"),
                (Shown::NoDifferenceShown, "without a difference shown"),
                (Shown::TooFewRuns, "unknown, too few runs"),
            ];
            let some =
                verdicts.map(|(shown, words)| (count(shown), words)).into_iter().filter(|some| some.0 > 0);
            let some: Vec<String> = some.map(|(n, words)| format!("{n} {words}")).collect();
            format!("Goodput at {} points: {}.", rows.len(), some.join("; "))
        }
    };
    Verdict {
        headline,
        why: compared.sentences(threshold).iter().map(|l| sentence(l)).collect::<Vec<_>>().join(" "),
    }
}

/// Most points described individually in plain words.
const MOST_POINTS: usize = 3;

/// Describes what was compared and what changed, for readers who are not network engineers.
fn sentences(compared: &Compared) -> Vec<String> {
    let mut sentences = vec!["This page compares two series of measurements, A and B.".to_owned()];
    let goodput: Vec<&Row> = compared.rows.iter().filter(|r| r.metric == Metric::GoodputBps).collect();
    for row in goodput.iter().take(MOST_POINTS) {
        let c = &row.comparison;
        let change = match (c.effect.map(f64::abs), c.difference > 0.0) {
            (Some(share), _) if share < 0.0005 => "as fast as A".to_owned(),
            (Some(share), true) if share >= 1.0 => format!("{} times as fast", three_digits(1.0 + share)),
            (Some(share), true) => format!("{} faster", percent(share)),
            (Some(share), false) => format!("{} slower", percent(share)),
            (None, true) => "faster".to_owned(),
            (None, false) => "slower".to_owned(),
        };
        let point = if goodput.len() > 1 { format!("{}: ", row.point) } else { String::new() };
        sentences.push(format!(
            "{point}A reached {}, B {}: {change}. {}",
            format_bps(c.a.p50),
            format_bps(c.b.p50),
            match c.verdict {
                Shown::Better | Shown::Worse => "The change is larger than the runs vary by themselves.",
                Shown::NoDifferenceShown => "The runs vary by as much themselves, so it may be chance.",
                Shown::TooFewRuns => "The runs are too few to exclude chance.",
            }
        ));
    }
    let more = goodput.len().saturating_sub(MOST_POINTS);
    if more > 0 {
        sentences.push(format!("The table has {more} more points."));
    }
    sentences
}

fn of_metric(metric: Metric, rows: &[&Row]) -> Markup {
    let values = rows.iter().flat_map(|r| [r.comparison.a.max, r.comparison.b.max]);
    let largest = values.fold(0.0, f64::max);
    let headings = [
        words("case"),
        numbers("A, median"),
        strong("B, median"),
        numbers("runs, A / B"),
        words(format!("0 to {}", metric.printed(largest))),
        words("B against A, interval"),
        words(""),
    ];
    let cells = |row: &&Row| {
        let c = &row.comparison;
        let interval = c.effect.zip(c.effect_interval);
        [
            text(&row.point),
            text(metric.printed(c.a.p50)),
            text(metric.printed(c.b.p50)),
            text(format!("{} / {}", c.a.n, c.b.n)),
            ranges(&c.a, &c.b, largest),
            html! { (effect(row)) @if let Some((share, interval)) = interval { (difference(share, &interval)) } },
            html! { span.bad[row.regressed] { (verdict_words(row)) } },
        ]
    };
    html! { h2 { (heading(metric)) } (table("", &headings, rows.iter().map(cells))) }
}

fn heading(metric: Metric) -> &'static str {
    match metric {
        Metric::GoodputBps => "Goodput, Mbit/s",
        Metric::RttIdleNs => "Round trip, idle, median, ms",
        Metric::RttLoadedP95Ns => "Round trip, loaded, 95th percentile, ms",
        Metric::Retransmits => "Retransmits",
        Metric::RetransmitRatio => "Retransmits, % of segments sent",
        Metric::LossRatio => "Loss, % of what was sent",
    }
}

/// Draws spread and median of both sides, A above B, from zero.
fn ranges(a: &Values, b: &Values, largest: f64) -> Markup {
    let at = |value: f64| 3.0 + 144.0 * (value / largest.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    let mut drawing = Drawing::default();
    drawing.line([3.0, 0.0], [3.0, SIZE[1]], "axis");
    for (values, y, line, mark) in [(a, 4.5, "third-range", "third"), (b, 11.5, "range", "here")] {
        drawing.line([at(values.min), y], [at(values.max), y], line);
        drawing.line([at(values.p50), y - 3.5], [at(values.p50), y + 3.5], mark);
    }
    inline(SIZE, "A above, B below", &drawing)
}

/// Draws the effect with its interval around zero; values beyond 20 % are placed at the end.
fn difference(effect: f64, interval: &Interval) -> Markup {
    const FULL: f64 = 0.2;
    let at = |share: f64| 75.0 + 70.0 * (share / FULL).clamp(-1.0, 1.0);
    let mut drawing = Drawing::default();
    drawing.line([5.0, 8.0], [145.0, 8.0], "grid");
    drawing.line([75.0, 1.0], [75.0, 15.0], "axis");
    drawing.line([at(interval.low), 8.0], [at(interval.high), 8.0], "range");
    drawing.dot([at(effect), 8.0], 3.0, "here-dot");
    inline(SIZE, "difference, no change in the middle, ends at 20 %", &drawing)
}
