//! Two captures of one path: losses, changes and delays in between, with the queueing delay of each direction over time.

use bdp_model::capture::pair::{BetweenDirection, PairedConnection};

use super::curves::curve;
use super::names::{anchor, arrowed};
use super::section::verdict;
use crate::capture::ends;
use crate::capture::pair::Paired;
use crate::chart::{Chart, Fit, Marks, Series, Unit};
use crate::finding::time;
use crate::html::page::facts;
use crate::markup::Markup;
use bdp_model::units::Nanos;

/// Most connections of a pair with a section.
const MOST: usize = 20;

/// Writes the pair and each of its connections.
pub(super) fn write(m: &mut Markup, paired: &Paired<'_>) {
    m.leaf("h2", &[], &paired.title());
    m.line();
    for caveat in paired.caveats() {
        m.leaf("p", &[("class", "note")], &format!("Note: {caveat}."));
        m.line();
    }
    for connection in paired.pair.connections.iter().take(MOST) {
        section(m, paired, connection);
    }
    if paired.pair.connections.len() > MOST {
        let text = format!(
            "{} more connections with fewer bytes have no section.",
            paired.pair.connections.len() - MOST
        );
        m.leaf("p", &[("class", "note")], &text);
        m.line();
    }
}

fn section(m: &mut Markup, paired: &Paired<'_>, connection: &PairedConnection) {
    let Some(found) = paired.flow(connection) else { return };
    let place = connection.explained_by.min(1);
    let name = arrowed(&ends(found));
    m.leaf("h3", &[], &name);
    m.line();
    if found.facts[found.main_direction()].is_some() {
        m.element("p", &[("class", "why")], |m| {
            m.leaf("b", &[], &verdict(found, None).headline);
            let prefix = format!("capture-{}-", paired.pair.captures[place] + 1);
            let link = format!("#{}", anchor(&prefix, connection.flows[place]));
            m.text(" ");
            m.leaf("a", &[("href", &link)], &format!("As {} shows it", paired.name(place)));
        });
        m.line();
    }
    let rows: Vec<(String, String)> =
        paired.lines(connection).into_iter().map(|(name, words)| (name.to_owned(), words)).collect();
    facts(m, &format!("Between {} and {}", paired.name(0), paired.name(1)), &rows);
    let main = paired.main(connection);
    for (direction, heading) in
        [(main, "Queueing delay of the data"), (1 - main, "Queueing delay of the way back")]
    {
        if let Some(chart) = queueing(&connection.directions[direction], heading, &name) {
            m.add(chart.figure());
        }
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
