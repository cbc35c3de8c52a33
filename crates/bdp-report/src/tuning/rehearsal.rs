//! `bdp rehearse`: a rehearsal in words.

use bdp_model::measurement::ends::Direction;
use bdp_model::statistics::Estimate;
use bdp_model::tuning::{BEFORE, Predicted, Rehearsal, Rehearsed};
use bdp_model::units::Nanos;

use super::{plan, words};
use crate::finding::{rate, time};
use crate::grid::{tame, wrap};
use crate::measurement::arrow;
use crate::number::{loss, three_digits};
use crate::style::{Style, Tint};

/// Returns the plan, a table with the result of each variant, and the recommendation.
pub fn rehearsal(rehearsal: &Rehearsal, style: &Style) -> String {
    let mut text = plan::plan(&rehearsal.plan, style);
    let kernel =
        rehearsal.kernel.as_deref().map_or_else(String::new, |kernel| format!(", Linux {}", tame(kernel)));
    let times = match rehearsal.runs {
        1 => "once".to_owned(),
        runs => format!("{runs} times"),
    };
    let line = format!("on the path's twin, by the virtual clock, each {times}{kernel}");
    text.push_str(&wrap("rehearsed   ", Tint::Faint, &line, style));
    for (direction, repeats) in &rehearsal.repeats {
        if !repeats {
            let line = format!(
                "{} the twin does not repeat the measurement closely: what it predicts there is a direction, not a figure",
                arrow(*direction, style)
            );
            text.push_str(&wrap("caution     ", Tint::Doubtful, &line, style));
        }
    }
    for (direction, _) in &rehearsal.repeats {
        text.push_str(&table(rehearsal, *direction, style));
    }
    for variant in &rehearsal.variants {
        for target in &variant.not_shown {
            let line = format!(
                "{} of '{}': the twin can't show what it does",
                words::target(target),
                tame(&variant.name)
            );
            text.push_str(&wrap("not shown   ", Tint::Faint, &line, style));
        }
    }
    text.push_str(&warnings(rehearsal, style));
    text.push_str(&choice(rehearsal, style));
    text
}

/// Returns the recommendation and its expected result.
pub fn choice(rehearsal: &Rehearsal, style: &Style) -> String {
    let (tint, line) = match &rehearsal.choice {
        Some(name) => (Tint::Good, format!("{}, {}", tame(name), summary(rehearsal, style))),
        None if takes_from_others(rehearsal) => (
            Tint::Doubtful,
            "nothing: what gains takes from others at the bottleneck; where the path is this transfer's alone, --alone".to_owned(),
        ),
        None => (Tint::Doubtful, "nothing: no change is better than what is there".to_owned()),
    };
    wrap("apply       ", tint, &line, style)
}

/// `→ 51.8 -> 93.1 Mbit/s, round trip under load 40.1 -> 44.6 ms`.
fn summary(rehearsal: &Rehearsal, style: &Style) -> String {
    let (Some(before), Some(chosen)) = (rehearsal.variant(BEFORE), rehearsal.chosen()) else {
        return String::new();
    };
    let parts = chosen.directions.iter().filter_map(|now| {
        let then = before.direction(now.direction)?;
        let delay = then.loaded_p50_ns.zip(now.loaded_p50_ns).map_or_else(String::new, |(then, now)| {
            format!(", round trip under load {} -> {}", delay(&then), delay(&now))
        });
        let way = arrow(now.direction, style);
        Some(format!("{way} {} -> {}{delay}", rate(then.goodput_bps.mean), rate(now.goodput_bps.mean)))
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn delay(estimate: &Estimate) -> String {
    time(Nanos(estimate.mean.max(0.0) as u64))
}

/// Whether a change would be a gain if it did not harm other traffic.
fn takes_from_others(rehearsal: &Rehearsal) -> bool {
    let Some(before) = rehearsal.variant(BEFORE) else { return false };
    rehearsal.variants.iter().any(|variant| variant.gains_at_others_cost(before))
}

/// Returns what the changes cost other traffic, or the round trip.
fn warnings(rehearsal: &Rehearsal, style: &Style) -> String {
    let Some(before) = rehearsal.variant(BEFORE) else { return String::new() };
    let mut text = String::new();
    for variant in rehearsal.variants.iter().filter(|variant| variant.name != BEFORE) {
        for predicted in &variant.directions {
            if variant.builds_queue(before, predicted.direction) {
                let way = arrow(predicted.direction, style);
                let line = format!(
                    "'{}' builds a queue {way}: the round trip under load grows",
                    tame(&variant.name)
                );
                text.push_str(&wrap("caution     ", Tint::Doubtful, &line, style));
            }
        }
        if !variant.spares_others(before) {
            let line =
                format!("'{}' leaves a flow beside it less than half of what it had", tame(&variant.name));
            text.push_str(&wrap("caution     ", Tint::Doubtful, &line, style));
        }
    }
    text
}

const COLUMNS: [&str; 7] =
    ["", "goodput", "95 %", "RTT ms p50/p95", "retrans", "beside another", "the other"];

fn table(rehearsal: &Rehearsal, direction: Direction, style: &Style) -> String {
    let mut rows: Vec<Vec<String>> = vec![COLUMNS.iter().map(|&name| name.to_owned()).collect()];
    rows[0][0] = arrow(direction, style).to_owned();
    for variant in &rehearsal.variants {
        rows.extend(variant.direction(direction).map(|predicted| row(variant, predicted)));
    }
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let tint = if i == 0 { Tint::Strong } else { Tint::None };
        text.push_str(&style.paint(tint, line.trim_end()));
        text.push('\n');
    }
    text
}

fn row(variant: &Rehearsed, predicted: &Predicted) -> Vec<String> {
    let goodput = &predicted.goodput_bps;
    let interval = goodput.interval.map_or_else(
        || "-".to_owned(),
        |[low, high]| format!("{}..{}", three_digits(low.max(0.0) / 1e6), three_digits(high / 1e6)),
    );
    let ms = |estimate: Option<Estimate>| {
        estimate.map_or_else(|| "-".to_owned(), |of| format!("{:.1}", of.mean / 1e6))
    };
    let beside = predicted.beside.as_ref();
    vec![
        tame(&variant.name),
        rate(goodput.mean),
        interval,
        format!("{}/{}", ms(predicted.loaded_p50_ns), ms(predicted.loaded_p95_ns)),
        predicted.retransmitted.map_or_else(|| "-".to_owned(), |share| loss(share.mean)),
        beside.map_or_else(|| "-".to_owned(), |beside| rate(beside.goodput_bps)),
        beside.map_or_else(|| "-".to_owned(), |beside| rate(beside.other_bps)),
    ]
}
