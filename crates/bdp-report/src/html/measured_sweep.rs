//! A sweep between two machines: its curves and the table of all points.

use std::collections::BTreeMap;

use bdp_model::measurement::{Direction, Measurement};
use bdp_model::sweep::measured_curves::{measured_curves, toward};
use bdp_model::sweep::parameter::{Parameter, Unit};
use bdp_model::units::format_bps;
use maud::{Markup, html};
use serde_json::Value;

use super::curve;
use super::measured_table::{Columns, Varied, arrow, ends};
use super::overview::TEXT;
use super::page::note;
use super::plain_language;
use super::sentence::lower_first;
use super::verdict::Verdict;
use crate::number::asked_size;
use crate::summary::Spread;

/// Returns measurements with varied parameters: a curve for each direction, and the table of all.
pub(super) fn section(
    all: &[Varied<'_>],
    groups: &[(&BTreeMap<String, Value>, Vec<&Measurement>)],
) -> Markup {
    let curves: Vec<curve::Curve<'_, '_>> =
        measured_curves(all).into_iter().filter_map(curve::of_known).collect();
    let failed = all.iter().filter(|(_, m)| m.error.is_some()).count();
    // Curve names begin with their path, which is replaced by an arrow to or from the remote end.
    let pointed = |name: &str| {
        let of = |way| Some(arrow(all.first()?.1, way) + name.strip_prefix(&toward(way, all.first()?.1))?);
        of(Direction::To).or_else(|| of(Direction::From)).unwrap_or_else(|| name.to_owned())
    };
    let mut headline: Vec<String> = curves
        .iter()
        .filter_map(|drawn| Some(format!("{}: {}", pointed(&drawn.name), lower_first(&drawn.headline()?))))
        .take(2)
        .collect();
    if headline.is_empty() {
        let goodputs = all.iter().flat_map(|(_, m)| &m.directions).map(|d| d.goodput_bps);
        headline.push(match Spread::of(goodputs) {
            Some(s) => format!("{} points, {} to {}.", groups.len(), format_bps(s.min), format_bps(s.max)),
            None => format!("None of {} points gave a figure.", groups.len()),
        });
    }
    let why = if failed > 0 { format!("{failed} measurements failed.") } else { String::new() };
    let verdict = Verdict { headline: headline.join(" "), why };
    let mut sentences = vec![format!(
        "This test repeated a measurement with {} different settings, to find the smallest that reaches nearly all of the speed.",
        groups.len()
    )];
    sentences.extend(curves.iter().filter_map(|c| {
        let [near, far] = ends(all.first()?.1);
        let is_to = pointed(&c.name).starts_with('→');
        let (from, to) = if is_to { (near, far) } else { (far, near) };
        Some(format!("From {from} to {to}, {}", lower_first(&c.plain_words()?)))
    }));
    let known: Vec<bdp_model::sweep::curve::Curve> = curves.iter().filter_map(|c| c.known.clone()).collect();
    let memory = bdp_model::sweep::curve::Memory::by_path(&known);
    let columns = Columns::of(all.iter().map(|(_, m)| *m), true);
    let mut rows = Vec::new();
    for (params, runs) in groups {
        let params: Vec<String> = params.iter().map(|(k, v)| format!("{k} {}", shown(k, v))).collect();
        for (run, direction) in runs.iter().flat_map(|run| run.directions.iter().map(move |d| (run, d))) {
            rows.push(columns.row(&arrow(run, direction.direction), &params.join(", "), run, direction));
        }
    }
    html! {
        (verdict.markup())
        (plain_language::paragraph(&sentences))
        @for drawn in &curves {
            @if curves.len() > 1 { h3 { (pointed(&drawn.name)) } }
            (drawn.goodput_chart().figure())
            @if let Some(chart) = drawn.delay_chart() { (chart.figure()) }
        }
        @for (path, memory) in memory {
            @let words = crate::sweep_report::memory_words(&memory, &TEXT);
            (note(format!("{}: memory {words}.", pointed(&path))))
        }
        (columns.table(rows))
    }
}

/// Returns a value as on the axes: sizes in one notation, however they were typed.
fn shown(name: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match Parameter::at(name).read(&text) {
        Some(size) if size.unit == Unit::Bytes => asked_size(size.value as u64),
        _ => text,
    }
}
