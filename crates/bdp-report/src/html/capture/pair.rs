//! Two captures of one path: losses, changes and delays in between, with the queueing delay of each direction over time.

use bdp_model::capture::pair::{BetweenDirection, PairedConnection};
use bdp_model::units::Nanos;
use maud::{Markup, html};

use super::curves::curve;
use super::names::{anchor, arrowed};
use super::section::verdict;
use crate::capture::ends;
use crate::capture::pair::Paired;
use crate::chart::{Chart, Fit, Marks, Series, Unit};
use crate::finding::time;
use crate::html::page::{facts, note};

/// Most connections of a pair with a section.
const MOST: usize = 20;

/// Returns the pair and each of its connections.
pub(super) fn section(paired: &Paired<'_>) -> Markup {
    let connections = &paired.pair.connections;
    html! {
        h2 { (paired.title()) } "\n"
        @for caveat in paired.caveats() { (note(format!("Note: {caveat}."))) }
        @for connection in connections.iter().take(MOST) { (of_connection(paired, connection)) }
        @if let more @ 1.. = connections.len().saturating_sub(MOST) {
            (note(format!("{more} more connections with fewer bytes have no section.")))
        }
    }
}

fn of_connection(paired: &Paired<'_>, connection: &PairedConnection) -> Markup {
    let Some(found) = paired.flow(connection) else { return Markup::default() };
    let place = connection.explained_by.min(1);
    let name = arrowed(&ends(found));
    let prefix = format!("capture-{}-", paired.pair.captures[place] + 1);
    let rows: Vec<(String, String)> =
        paired.lines(connection).into_iter().map(|(name, words)| (name.to_owned(), words)).collect();
    let main = paired.main(connection);
    let charts = [(main, "Queueing delay of the data"), (1 - main, "Queueing delay of the way back")]
        .map(|(direction, heading)| queueing(&connection.directions[direction], heading, &name));
    html! {
        h3 { (name) } "\n"
        @if found.facts[found.main_direction()].is_some() {
            p.why {
                b { (verdict(found, None).headline) } " "
                a href={ "#" (anchor(&prefix, connection.flows[place])) } { "As " (paired.name(place)) " shows it" }
            }
            "\n"
        }
        (facts(&format!("Between {} and {}", paired.name(0), paired.name(1)), &rows))
        @for chart in charts.into_iter().flatten() { (chart.figure()) }
    }
}

/// Returns the chart of the delay above the minimum, with the times of losses.
fn queueing(way: &BetweenDirection, heading: &str, name: &str) -> Option<Chart> {
    let last = [way.delays.last().map(|point| point.at_ns), way.losses.last().map(|point| point.at_ns)];
    let seconds = last.into_iter().flatten().max()? as f64 / 1e9;
    let most_ns = way.delays.iter().map(|point| point.queueing_ns).max().filter(|&ns| ns > 0)?;
    if seconds <= 0.0 {
        return None;
    }
    let points =
        way.delays.iter().map(|point| (point.at_ns as f64 / 1e9, Some(point.queueing_ns as f64 / 1e6)));
    let meaning = "delay above the least of this way, the most of each moment";
    let delay = curve("here", "queueing", meaning, points.collect());
    let lost = way.lost();
    // The delay at the time of the loss.
    let losses = way.losses.iter().map(|point| {
        let next = way.delays.partition_point(|delay| delay.at_ns <= point.at_ns);
        let delay = next.checked_sub(1).and_then(|i| way.delays.get(i)).map_or(0, |delay| delay.queueing_ns);
        [point.at_ns as f64 / 1e9, delay as f64 / 1e6]
    });
    let meaning = format!("lost between the two ({lost} packets in all)");
    let losses = Series::new("retransmitted", meaning, Marks::Dots(0.0, losses.collect()));
    let description = format!("Up to {} above the least delay; {lost} packets lost.", time(Nanos(most_ns)));
    let words = [heading.to_owned(), format!("{name}: queueing delay over time"), description];
    let y = (seconds, most_ns as f64 / 1e6, Unit::MILLISECONDS);
    Some(Chart::zooming(words, y, Fit::FromZero, vec![delay, losses]))
}
