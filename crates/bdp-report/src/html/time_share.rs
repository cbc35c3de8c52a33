//! Time spent: a bar with the share of each state, and below it a column for each interval on the common time axis.

use std::collections::BTreeMap;

use bdp_model::facts::{Stretch, TimeState};

use super::patterns::class;
use super::timeline::MOST;
use super::transfer::Transfer;
use crate::chart::{Axis, Chart, Marks, Panel, Series, Unit, Vertical};
use crate::number::{percent, three_digits};
use crate::time_spent::{about, words};

/// Smallest share that is drawn.
const LEAST: f64 = 0.0005;
/// Smallest share for which the key explains the state.
const EXPLAINED: f64 = 0.05;

/// Returns the chart; `None` if the sender's kernel does not measure these times.
pub(crate) fn chart(transfer: &Transfer<'_>, title: &str) -> Option<Chart> {
    let whole = transfer.time_spent.as_ref()?;
    let counted = whole.clone().since(transfer.omit_ns);
    let counted = if counted.stretches.is_empty() { whole.clone() } else { counted };
    let last = whole.stretches.last()?.to_ns as f64 / 1e9;
    let mut from = 0.0;
    let mut bar = Vec::new();
    // In stacking order rather than by size, so that each state has a fixed position.
    for &state in TimeState::ALL {
        let share = counted.share(state);
        if share < LEAST && whole.share(state) < LEAST {
            continue;
        }
        let about = if share >= EXPLAINED { format!(": {}", about(state)) } else { String::new() };
        let name = format!("{} {}{about}", percent(share), words(state));
        let shares = Marks::Boxes(vec![[[from, 0.0], [from + share, 1.0]]]);
        bar.push(Series::new(class(state), name, shares).labelled(words(state)));
        from += share;
    }
    let description = bar.iter().map(|series| series.name.as_str()).collect::<Vec<_>>().join("; ");
    let mut panels = vec![Panel { y: Vertical::Shares, height: 24.0, series: bar }];
    let omit = transfer.omit_ns as f64 / 1e9;
    if omit > 0.0 {
        let name = format!("first {} s: not in the shares", three_digits(omit));
        let omitted = Series::new("fill-rest", name, Marks::Boxes(vec![[[0.0, 0.0], [omit, 1.0]]]));
        panels.push(Panel::strip(6.0, vec![omitted]));
    }
    let stride = whole.stretches.len().div_ceil(MOST).max(1);
    panels.push(band(&whole.stretches, stride));
    let notes = [
        Some("Above, the shares of the time; below, of each interval, from bottom to top in the order of the keys.".to_owned()),
        (transfer.streams > 1).then(|| format!("Of the first of {} streams.", transfer.streams)),
        (stride > 1).then(|| format!("Each column is {stride} intervals.")),
    ];
    Some(Chart {
        heading: "Where the time went".to_owned(),
        title: format!("{title}: where the sender's time went"),
        description,
        x: Axis::linear([0.0, last], Unit::SECONDS, 8),
        panels,
        notes: notes.into_iter().flatten().collect(),
        zoom: None,
    })
}

/// Returns the stacked shares of each interval, `stride` of them merged.
fn band(stretches: &[Stretch], stride: usize) -> Panel {
    let mut boxes: BTreeMap<TimeState, Vec<[[f64; 2]; 2]>> = BTreeMap::new();
    for column in stretches.chunks(stride) {
        let (Some(first), Some(end)) = (column.first(), column.last()) else { continue };
        let took = (end.to_ns - first.from_ns).max(1) as f64;
        let [left, right] = [first.from_ns, end.to_ns].map(|ns| ns as f64 / 1e9);
        let mut below = 0.0;
        for &state in TimeState::ALL {
            let own = column.iter().flat_map(|s| &s.states).filter(|s| s.0 == state).map(|s| s.1);
            let share = own.sum::<u64>() as f64 / took;
            if share > 0.0 {
                boxes.entry(state).or_default().push([[left, below], [right, below + share]]);
                below += share;
            }
        }
    }
    let series = boxes.into_iter().map(|(state, boxes)| Series::and(class(state), Marks::Boxes(boxes)));
    let y = Axis::linear([0.0, 1.0], Unit::Share, 2).with_ticks(vec![0.0, 0.5, 1.0]);
    Panel::new(y, 110.0, series.collect())
}
