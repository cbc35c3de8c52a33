//! Queue occupancy of links over time.

use bdp_model::record::{DirectionFidelity, Record};

use super::page::{Figure, Sign};
use super::series::thin;
use super::timeline::{MOST, plain};
use crate::number::three_digits;
use crate::svg::{Axis, Drawing, Frame, GUTTER, MARGIN, WIDTH};

/// Most directions drawn; the record has all.
const MOST_QUEUES: usize = 4;
const PACKETS: [f64; 2] = [120.0, 8.0];
const DELAY: [f64; 2] = [250.0, 146.0];
/// Height of the labels below the lower axis.
const LABELS: f64 = 26.0;

/// Returns a figure for each direction whose queue was recorded and had waiting packets, longest wait first.
pub(crate) fn figures(record: &Record, title: &str) -> Vec<Figure<'static>> {
    let waited = |d: &DirectionFidelity| {
        let samples = d.queue_samples.as_ref()?;
        samples.delay_ns.iter().chain(&samples.packets).copied().max().filter(|&most| most > 0)
    };
    let mut queues: Vec<(u64, &DirectionFidelity)> =
        record.fidelity.directions.iter().filter_map(|d| Some((waited(d)?, d))).collect();
    queues.sort_by_key(|(most, _)| std::cmp::Reverse(*most));
    queues.into_iter().take(MOST_QUEUES).filter_map(|(_, direction)| figure(direction, title)).collect()
}

fn figure(direction: &DirectionFidelity, title: &str) -> Option<Figure<'static>> {
    let samples = direction.queue_samples.as_ref()?;
    let step = samples.interval_ns as f64 / 1e9;
    let readings = |values: &[u64], unit: f64| -> Vec<[f64; 2]> {
        values.iter().enumerate().map(|(i, &value)| [i as f64 * step, value as f64 / unit]).collect()
    };
    let (packets, delay) = (readings(&samples.packets, 1.0), readings(&samples.delay_ns, 1e6));
    let last = packets.last()?[0];
    let largest = |points: &[[f64; 2]]| points.iter().map(|p| p[1]).fold(0.0, f64::max);
    let x = Axis::linear([0.0, last], [GUTTER, WIDTH - MARGIN]);
    let mut drawing = Drawing::default();
    let mut stride = 1;
    for (points, plot, unit, class) in
        [(&packets, PACKETS, "packets", "here"), (&delay, DELAY, "ms", "third")]
    {
        let frame = Frame { x, y: Axis::from_zero(largest(points), plot) };
        frame.rules(&mut drawing, &frame.y.ticks(3), unit, plain);
        let thinned = thin(points, 2 * MOST);
        stride = stride.max(thinned.stride);
        drawing.polyline(thinned.points.into_iter().map(|[at, value]| Some(frame.at(at, value))), class);
        if unit == "ms" {
            frame.bottom(&mut drawing, &x.ticks(8), |s| format!("{} s", plain(s)));
        }
    }
    let mut sorted = samples.delay_ns.clone();
    sorted.sort_unstable();
    let at = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        three_digits(sorted.get(rank).map_or(0.0, |&ns| ns as f64 / 1e6))
    };
    let most = largest(&packets);
    let mut notes = vec![format!(
        "A reading every {} ms. Of the readings of the wait half are up to {} ms and 95 % up to {} ms; at most {} packets waited.",
        three_digits(step * 1e3),
        at(50),
        at(95),
        plain(most),
    )];
    let lost = ["queue", "aqm"].map(|cause| direction.dropped.get(cause).copied().unwrap_or(0));
    notes.push(format!(
        "Of {} packets {} found no room and {} were dropped by the queue's own decision; {} were marked.",
        direction.packets_in, lost[0], lost[1], direction.marked
    ));
    if stride > 1 {
        notes.push(format!("Of each {stride} readings, the smallest and the largest."));
    }
    let name = direction.name.replace("->", " → ");
    let description = format!(
        "Queue of {name} over {} seconds: at most {} packets, at most {} ms.",
        three_digits(last),
        plain(most),
        three_digits(largest(&delay))
    );
    let chart =
        drawing.finish(DELAY[0] + LABELS, &format!("{title}: queue of {name} over time"), &description);
    let keys = vec![
        (Sign::Line("here"), format!("packets that wait, {name}")),
        (Sign::Line("third"), "how long the packet on the wire had waited for it".to_owned()),
    ];
    Some(Figure { title: "Queue over time", keys, notes, chart: chart.into() })
}
