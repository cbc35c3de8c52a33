//! Time spent: a bar with the share of each state, and below it a column for each interval on the common time axis.

use std::collections::BTreeMap;

use bdp_model::facts::{Stretch, TimeState};

use super::page::{Figure, Sign};
use super::patterns::class;
use super::timeline::{MOST, plain};
use super::transfer::Transfer;
use crate::number::{percent, three_digits};
use crate::svg::{Anchor, Axis, Drawing, Frame, GUTTER, MARGIN, WIDTH, number};
use crate::time_spent::{about, words};

/// Top and bottom of the bar, and baseline of its labels.
const BAR: [f64; 2] = [6.0, 30.0];
const NAMES: f64 = 44.0;
/// Bottom and top of the columns.
const BAND: [f64; 2] = [172.0, 62.0];
/// Mark of the omitted start, above the columns.
const OMITTED: [f64; 2] = [53.0, 59.0];
const HEIGHT: f64 = 198.0;
/// Smallest share that is drawn.
const LEAST: f64 = 0.0005;
/// Smallest share for which the key explains the state.
const EXPLAINED: f64 = 0.05;
/// Width of a character in a label.
const CHARACTER: f64 = 6.4;

/// Returns the figure; `None` if the sender's kernel does not measure these times.
pub(crate) fn figure(transfer: &Transfer<'_>, title: &str) -> Option<Figure<'static>> {
    let whole = transfer.time_spent.as_ref()?;
    let counted = whole.clone().since(transfer.omit_ns);
    let counted = if counted.stretches.is_empty() { whole.clone() } else { counted };
    let last = whole.stretches.last()?.to_ns as f64 / 1e9;
    let x = Axis::linear([0.0, last], [GUTTER, WIDTH - MARGIN]);
    let mut drawing = Drawing::default();
    // In stacking order rather than by size, so that each state has a fixed position.
    let shares: Vec<(TimeState, f64)> = TimeState::ALL
        .iter()
        .map(|&state| (state, counted.share(state)))
        .filter(|&(state, share)| share >= LEAST || whole.share(state) >= LEAST)
        .collect();
    bar(&mut drawing, &shares);
    let stride = band(&mut drawing, &whole.stretches, x);
    let mut keys: Vec<(Sign, String)> = shares
        .iter()
        .map(|&(state, share)| {
            let about = if share >= EXPLAINED { format!(": {}", about(state)) } else { String::new() };
            (Sign::Field(class(state)), format!("{} {}{about}", percent(share), words(state)))
        })
        .collect();
    let description = keys.iter().map(|k| k.1.as_str()).collect::<Vec<_>>().join("; ");
    let omit = transfer.omit_ns as f64 / 1e9;
    if omit > 0.0 {
        drawing.rect([x.at(0.0), OMITTED[0]], [x.at(omit) - x.at(0.0), OMITTED[1] - OMITTED[0]], "fill-rest");
        keys.push((Sign::Field("fill-rest"), format!("first {} s: not in the shares", three_digits(omit))));
    }
    let notes = [
        Some("Above, the shares of the time; below, of each interval, from bottom to top in the order of the keys.".to_owned()),
        (transfer.streams > 1).then(|| format!("Of the first of {} streams.", transfer.streams)),
        (stride > 1).then(|| format!("Each column is {stride} intervals.")),
    ];
    let chart = drawing.finish(HEIGHT, &format!("{title}: where the sender's time went"), &description);
    Some(Figure {
        title: "Where the time went",
        keys,
        notes: notes.into_iter().flatten().collect(),
        chart: chart.into(),
    })
}

/// Draws the shares side by side, each labelled if there is room.
fn bar(drawing: &mut Drawing, shares: &[(TimeState, f64)]) {
    let width = WIDTH - MARGIN - GUTTER;
    let mut x = GUTTER;
    for &(state, share) in shares {
        let own = share * width;
        // A gap of one unit separates neighbours even without colour.
        drawing.rect([x, BAR[0]], [(own - 1.0).max(0.5), BAR[1] - BAR[0]], class(state));
        let room = |text: &str| text.chars().count() as f64 * CHARACTER <= own;
        let named = format!("{} {}", words(state), percent(share));
        for text in [named, percent(share)] {
            if room(&text) {
                drawing.text([x, NAMES], Anchor::Start, "name", &text);
                break;
            }
        }
        x += own;
    }
}

/// Draws the stacked shares of each interval, merging neighbours if there are many; returns how many intervals a column covers.
fn band(drawing: &mut Drawing, stretches: &[Stretch], x: Axis) -> usize {
    let frame = Frame { x, y: Axis::linear([0.0, 1.0], BAND) };
    frame.rules(drawing, &[0.0, 0.5, 1.0], "", percent);
    let stride = stretches.len().div_ceil(MOST).max(1);
    let mut paths: BTreeMap<TimeState, String> = BTreeMap::new();
    for column in stretches.chunks(stride) {
        let (Some(first), Some(end)) = (column.first(), column.last()) else { continue };
        let took = (end.to_ns - first.from_ns).max(1) as f64;
        let [left, right] = [first.from_ns, end.to_ns].map(|ns| number(x.at(ns as f64 / 1e9)));
        let mut below = 0.0;
        for &state in TimeState::ALL {
            let own =
                column.iter().flat_map(|s| &s.states).filter(|s| s.0 == state).map(|s| s.1).sum::<u64>();
            if own == 0 {
                continue;
            }
            let share = own as f64 / took;
            let [bottom, top] = [below, below + share].map(|at| number(frame.y.at(at)));
            paths.entry(state).or_default().push_str(&format!("M{left} {bottom}H{right}V{top}H{left}Z"));
            below += share;
        }
    }
    for (state, path) in paths {
        drawing.path(&path, class(state));
    }
    frame.bottom(drawing, &x.ticks(8), |s| format!("{} s", plain(s)));
    stride
}
