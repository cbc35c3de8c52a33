//! Queue occupancy of links over time.

use bdp_model::record::{DirectionFidelity, Record};

use super::series::{largest, thin};
use super::timeline::MOST;
use crate::chart::{Axis, Chart, Panel, Series, Unit, plain};
use crate::number::three_digits;

/// Most directions drawn; the record has all.
const MOST_QUEUES: usize = 4;

/// Returns a chart for each direction whose queue was recorded and had waiting packets, longest wait first.
pub(crate) fn charts(record: &Record, title: &str) -> Vec<Chart> {
    let waited = |d: &DirectionFidelity| {
        let samples = d.queue_samples.as_ref()?;
        samples.delay_ns.iter().chain(&samples.packets).copied().max().filter(|&most| most > 0)
    };
    let mut queues: Vec<(u64, &DirectionFidelity)> =
        record.fidelity.directions.iter().filter_map(|d| Some((waited(d)?, d))).collect();
    queues.sort_by_key(|(most, _)| std::cmp::Reverse(*most));
    queues.into_iter().take(MOST_QUEUES).filter_map(|(_, direction)| chart(direction, title)).collect()
}

fn chart(direction: &DirectionFidelity, title: &str) -> Option<Chart> {
    let samples = direction.queue_samples.as_ref()?;
    let step = samples.interval_ns as f64 / 1e9;
    let readings = |values: &[u64], unit: f64| -> Vec<[f64; 2]> {
        values.iter().enumerate().map(|(i, &value)| [i as f64 * step, value as f64 / unit]).collect()
    };
    let (packets, delay) = (readings(&samples.packets, 1.0), readings(&samples.delay_ns, 1e6));
    let last = packets.last()?[0];
    let name = direction.name.replace("->", " → ");
    let mut stride = 1;
    let panels = [
        (&packets, Unit::Named("packets", 1.0), "here", format!("packets that wait, {name}")),
        (&delay, Unit::MILLISECONDS, "third", "how long the packet on the wire had waited for it".to_owned()),
    ]
    .map(|(points, unit, class, meaning)| {
        let thinned = thin(points, 2 * MOST);
        stride = stride.max(thinned.stride);
        let y = Axis::from_zero(largest(points), unit, 3);
        Panel::new(y, 108.0, vec![Series::line(class, meaning, thinned.points)])
    });
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
    Some(Chart {
        heading: "Queue over time".to_owned(),
        title: format!("{title}: queue of {name} over time"),
        description: format!(
            "Queue of {name} over {} seconds: at most {} packets, at most {} ms.",
            three_digits(last),
            plain(most),
            three_digits(largest(&delay))
        ),
        x: Axis::linear([0.0, last], Unit::SECONDS, 8),
        panels: panels.into(),
        notes,
        zoom: None,
    })
}
