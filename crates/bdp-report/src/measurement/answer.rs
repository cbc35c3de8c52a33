//! The answer: for each direction a line with its goodput and limit, and one with the remedy; directions with problems first.

use bdp_model::finding::caveat::Caveat;
use bdp_model::finding::{Finding, Limit};
use bdp_model::measurement::figure::{Figure, figure, values};
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::statistics::comparison::Interval;

use super::arrow;
use super::conclusion::word;
use super::heading::far_name;
use crate::finding::{confidence, missing, rate, remedy, subject, summary};
use crate::grid::{tame, width, wrap};
use crate::number::{RateUnit, percent};
use crate::style::{Style, Tint};

/// Longest name placed in the margin; a longer one would leave no room for the sentence.
const MARGIN: usize = 20;

/// A direction, its representative run, and how many of how many runs found the same limit.
pub(super) struct Answered<'a> {
    pub way: Direction,
    pub typical: &'a Measurement,
    pub agreement: (usize, usize),
}

/// Returns all directions, those with problems first.
pub(super) fn answers(
    answered: &[Answered<'_>],
    measurements: &[Measurement],
    unit: RateUnit,
    style: &Style,
) -> String {
    let mut parts: Vec<(u8, String)> =
        answered.iter().map(|one| answer(one, measurements, unit, style)).collect();
    parts.sort_by_key(|part| part.0);
    parts.into_iter().map(|part| part.1).collect()
}

/// Returns the lines of a direction, and its position in the order.
fn answer(
    Answered { way, typical, agreement }: &Answered<'_>,
    measurements: &[Measurement],
    unit: RateUnit,
    style: &Style,
) -> (u8, String) {
    let (way, (same, of)) = (*way, *agreement);
    // A single sentence uses the unit that fits its figure, unless one was requested.
    let own = figure(Figure::Goodput(way), measurements).map(|bps| RateUnit::spacious([bps]));
    let unit = style.rate_unit.or(own).unwrap_or(unit);
    let goodput = goodput(way, typical, measurements, unit);
    let findings = typical.directions.iter().find(|d| d.direction == way).map(|d| d.findings.as_slice());
    let finding = findings.and_then(<[Finding]>::first);
    let goodput = match typical.request.ordered.map(|ordered| ordered.of(way) as f64) {
        Some(ordered) => {
            let got = figure(Figure::Goodput(way), measurements).unwrap_or(f64::NAN);
            format!("{goodput}, {} of the {} ordered", percent(got / ordered), rate(ordered))
        }
        None => goodput,
    };
    let (name, arrow) = (far_name(typical), arrow(way, style));
    let (lead, begin) = if width(&name) > MARGIN {
        (format!("{arrow} "), format!("{name}: {goodput}"))
    } else {
        (format!("{arrow} {name}  "), goodput)
    };
    let Some(finding) = finding else { return (1, wrap(&lead, Tint::Strong, &begin, style)) };
    let (word, tint) = word(finding);
    let backed_off = backed_off(typical, way);
    // If a higher rate was requested, reaching the lower one is not the answer.
    let (word, tint) = if backed_off.is_some() { ("BACKED OFF", Tint::Bad) } else { (word, tint) };
    let (grade, sure) = match word {
        "LIMIT" => (0, format!("; {} confidence", confidence(finding.confidence))),
        "BACKED OFF" => (0, String::new()),
        "UNKNOWN" => (1, String::new()),
        _ => (2, String::new()),
    };
    let agreed = if of > 1 { format!("in {same} of {of} runs") } else { String::new() };
    let tail = if agreed.is_empty() { sure } else { format!("{sure}, {agreed}") };
    let said = backed_off.unwrap_or_else(|| tame(&summary(finding)));
    let mut text = wrap(&lead, tint, &format!("{begin}, {said}{tail}"), style);
    let indent = width(&lead);
    if let Some(cure) = cure(finding) {
        text.push_str(&wrap(&format!("{}cure: ", " ".repeat(indent)), Tint::Strong, &tame(&cure), style));
    } else if finding.limit == Limit::Unknown && !finding.missing.is_empty() {
        let lead = format!("{}missing: ", " ".repeat(indent));
        text.push_str(&wrap(&lead, Tint::Strong, &tame(&missing(finding).join(", ")), style));
    }
    (grade, text)
}

/// Returns that the rate was reduced because the requested one caused harm.
fn backed_off(m: &Measurement, way: Direction) -> Option<String> {
    m.caveats.iter().find_map(|caveat| match caveat {
        Caveat::BackedOff { direction, asked_bps, loss_ratio, .. } if *direction == way => Some(format!(
            "backed off from {}, which lost {} of the datagrams in the first second; --flood sends as asked",
            asked_bps.map_or_else(|| "full speed".to_owned(), rate),
            percent(*loss_ratio)
        )),
        _ => None,
    })
}

/// Returns what to change and the expected result.
fn cure(finding: &Finding) -> Option<String> {
    let remedy = remedy(finding)?;
    Some(match &finding.next {
        Some(next) => {
            format!(
                "{remedy}; the next limit that is known is {}, at {}",
                next.limit.noun(),
                rate(next.goodput_bps)
            )
        }
        None => remedy,
    })
}

/// Returns the goodput of one run, or the median of several with its interval.
fn goodput(way: Direction, typical: &Measurement, measurements: &[Measurement], unit: RateUnit) -> String {
    let figure_of = Figure::Goodput(way);
    if measurements.len() == 1 {
        let one = figure_of.of(typical).unwrap_or(f64::NAN);
        return format!("{} {}", unit.format(one), unit.name);
    }
    let all = values(figure_of, measurements);
    let median = figure(figure_of, measurements).unwrap_or(f64::NAN);
    let sure = Interval::of_median(&all).map_or_else(String::new, |i| {
        let (low, high) = (unit.format(i.low), unit.format(i.high));
        format!(", {:.0} %: {low}..{high}", (i.confidence * 100.0).floor())
    });
    format!("{} {} (median of {} runs{sure})", unit.format(median), unit.name, all.len())
}

/// Returns a line for each finding besides the binding one.
pub(super) fn beside(way: Direction, m: &Measurement, style: &Style) -> String {
    let findings = m.directions.iter().find(|d| d.direction == way).map(|d| d.findings.as_slice());
    let beside = findings.unwrap_or_default().iter().skip(1);
    let line = |finding: &Finding| {
        let said = format!("{} ({} confidence)", subject(finding), confidence(finding.confidence));
        wrap(&format!("also {}   ", arrow(way, style)), Tint::Doubtful, &tame(&said), style)
    };
    beside.map(line).collect()
}
