//! Figures of a sweep or comparison for papers: the report's charts as self-contained SVG and PDF files.

mod comparison;
mod paint;
mod pdf;
mod scene;

use std::collections::BTreeMap;

use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_model::sweep::measured_curves::measured_curves;
use bdp_model::sweep::run_comparison::Compared;
use serde_json::Value;

use crate::html::{Curve, curves, of_known};
use crate::summary::points;
use scene::Scene;

/// A figure in both formats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorFigure {
    /// File name without extension: letters, digits, `-` and `.`.
    pub name: String,
    /// SVG 1.1 that uses only attributes, for compatibility with drawing programs.
    pub svg: String,
    /// PDF 1.4, one page of the figure's size.
    pub pdf: Vec<u8>,
}

/// Returns the curves of scenarios: goodput and equivalent delay against the swept parameter.
pub fn figures_of_cases(records: &[Record]) -> Vec<VectorFigure> {
    let points = points(records);
    let mut scenes = Vec::new();
    for one in points.chunk_by(|a, b| a.scenario == b.scenario) {
        let scenario = one.first().map_or("", |point| point.scenario);
        let name = |curve: &Curve<'_, '_>| match curve.name.strip_prefix(scenario) {
            Some(_) => curve.name.clone(),
            None => format!("{scenario} {}", curve.name),
        };
        scenes.extend(curves(one).iter().flat_map(|curve| of_curve(&name(curve), curve)));
    }
    files(scenes)
}

/// Returns the curves of a sweep to a host, for each direction.
pub fn figures_of_measurements(
    measurements: &[(&BTreeMap<String, Value>, &Measurement)],
) -> Vec<VectorFigure> {
    let curves = measured_curves(measurements).into_iter().filter_map(of_known);
    files(curves.flat_map(|curve| of_curve(&curve.name.clone(), &curve)).collect())
}

/// Returns the differences of a comparison with their intervals, a figure for each quantity.
pub fn figures_of_comparison(compared: &Compared, a: &str, b: &str) -> Vec<VectorFigure> {
    files(comparison::scenes(compared, a, b))
}

fn of_curve(name: &str, curve: &Curve<'_, '_>) -> Vec<(String, Scene)> {
    let charts = [("goodput", Some(curve.goodput_chart())), ("delay", curve.delay_chart())];
    let scene = |(kind, chart)| Some((format!("{name} {kind}"), Scene::of_chart(name, &chart?)));
    charts.into_iter().filter_map(scene).collect()
}

/// Gives each figure a unique name.
fn files(scenes: Vec<(String, Scene)>) -> Vec<VectorFigure> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let file = |(name, scene): (String, Scene)| {
        let mut name = plain_name(&name);
        let times = taken.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            name = format!("{name}-{times}");
        }
        VectorFigure { name, svg: scene.svg(), pdf: pdf::write(&scene) }
    };
    scenes.into_iter().map(file).collect()
}

/// Returns `flow.window=64K to ams1` as `flow.window-64K-to-ams1`.
fn plain_name(text: &str) -> String {
    let kept = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { ' ' });
    let words: String = kept.collect();
    let name = words.split_whitespace().collect::<Vec<_>>().join("-");
    let name = name.trim_matches(['.', '-']);
    let end = name.char_indices().nth(100).map_or(name.len(), |(at, _)| at);
    if name.is_empty() { "figure".to_owned() } else { name[..end].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(plain_name("to ams1: flow.window=64K goodput"), "to-ams1-flow.window-64K-goodput");
        assert_eq!(plain_name("../../etc/passwd"), "etc-passwd");
        assert_eq!(plain_name("→ ü"), "figure");
    }
}
