//! The sweep of a scenario: lists and ranges form a grid, points set several parameters at once.

use std::sync::Arc;

use crate::decode;
use crate::error::{Problem, Result};
use crate::path::flatten;
use crate::published::figure;
use crate::range::range;
use crate::tree::{Node, Table, Value};
use bdp_model::case::Published;

/// A parameter and its values.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub path: String,
    pub values: Vec<Node>,
}

/// Parameters that are set together.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub settings: Vec<(String, Node)>,
    pub published: Option<Published>,
}

/// Everything that a scenario varies: every point with every combination of the axes, the last axis fastest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sweep {
    pub axes: Vec<Axis>,
    pub points: Vec<Point>,
}

impl Point {
    /// Its published figure, as an entry of `published` has one.
    pub(crate) fn published_json(&self) -> Option<serde_json::Value> {
        let when: serde_json::Map<_, _> =
            self.settings.iter().map(|(path, node)| (path.clone(), node.json())).collect();
        self.published.map(
            |figure| serde_json::json!({ "when": when, "goodput_bps": figure, "note": null, "rows": [] }),
        )
    }
}

impl Sweep {
    /// Reads `[sweep]` and `[[point]]`.
    pub(crate) fn read(root: &Table) -> Result<Self> {
        let axes = match root.get("sweep") {
            Some(n) => flatten(n.as_table("sweep")?, is_value)?
                .into_iter()
                .map(|(path, node)| axis(path, node))
                .collect::<Result<Vec<_>>>()?,
            None => Vec::new(),
        };
        let points = match root.get("point").map(|n| (&n.value, n)) {
            None => Vec::new(),
            Some((Value::Array(all), _)) => all.iter().map(point).collect::<Result<Vec<_>>>()?,
            Some((_, n)) => vec![point(n)?],
        };
        for (i, p) in points.iter().enumerate() {
            for (path, node) in &p.settings {
                if axes.iter().any(|a| &a.path == path) {
                    let other = "in [sweep]".to_owned();
                    return Err(node.origin.error(Problem::SetTwice { what: path.clone(), other }));
                }
            }
            let same = |q: &&Point| signature(q) == signature(p);
            if points[..i].iter().find(same).is_some() {
                let what = format!("the point {}", signature(p));
                let origin = &p.settings[0].1.origin;
                return Err(origin.error(Problem::SetTwice { what, other: "above it".into() }));
            }
        }
        Ok(Self { axes, points })
    }

    /// Fixes a swept parameter at one value; returns `false` if no axis varies it.
    pub(crate) fn pin(&mut self, path: &str, node: &Node) -> Result<bool> {
        self.refuse_points(path, node)?;
        let Some(axis) = self.axes.iter_mut().find(|a| a.path == path) else { return Ok(false) };
        axis.values = vec![node.clone()];
        Ok(true)
    }

    /// Varies a parameter, replacing its axis or adding one as the last and fastest. Equal values are
    /// merged.
    pub(crate) fn vary(&mut self, path: String, values: Vec<Node>) -> Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        let values: Vec<Node> = values.into_iter().filter(|v| seen.insert(v.plain())).collect();
        if let Some(first) = values.first() {
            self.refuse_points(&path, first)?;
        }
        match self.axes.iter_mut().find(|a| a.path == path) {
            Some(axis) => axis.values = values,
            None => self.axes.push(Axis { path, values }),
        }
        Ok(())
    }

    fn refuse_points(&self, path: &str, node: &Node) -> Result<()> {
        if self.points.iter().any(|p| p.settings.iter().any(|(set, _)| set == path)) {
            let other = "by the scenario's points: select with a filter".to_owned();
            return Err(node.origin.error(Problem::SetTwice { what: path.to_owned(), other }));
        }
        Ok(())
    }

    /// Whether `path` is swept.
    pub(crate) fn varies(&self, path: &str) -> bool {
        self.axes.iter().any(|a| a.path == path)
            || self.points.iter().any(|p| p.settings.iter().any(|(set, _)| set == path))
    }

    /// Returns the number of combinations, without repetitions.
    pub(crate) fn len(&self) -> u64 {
        let points = self.points.len().max(1) as u64;
        self.axes.iter().fold(points, |n, a| n.saturating_mul(a.values.len() as u64))
    }

    /// Returns the settings of combination `index` in natural order, and the figures published for its point.
    pub(crate) fn combination(&self, index: u64) -> (Vec<(&str, &Node)>, Option<Published>) {
        let mut rest = index;
        let mut chosen: Vec<(&str, &Node)> = Vec::new();
        for axis in self.axes.iter().rev() {
            let n = axis.values.len() as u64;
            chosen.push((&axis.path, &axis.values[(rest % n) as usize]));
            rest /= n;
        }
        chosen.reverse();
        let Some(point) = self.points.get(rest as usize) else { return (chosen, None) };
        let mut settings: Vec<(&str, &Node)> = point.settings.iter().map(|(p, n)| (p.as_str(), n)).collect();
        settings.append(&mut chosen);
        (settings, point.published)
    }
}

fn signature(point: &Point) -> String {
    let mut all: Vec<String> = point.settings.iter().map(|(p, n)| format!("{p}={}", n.plain())).collect();
    all.sort();
    all.join(" ")
}

/// Whether a table is a single value: a range, or a value that a link takes as a table, such as `loss = { every = 1000 }`.
///
/// A list or range inside makes it a sweep: `half_duplex = { guard = ["1us", "2us"] }` varies the guard.
fn is_value(table: &Table) -> bool {
    const SCALAR_KEYS: [&str; 4] = ["from", "to", "step", "scale"];
    let has = |key: &str| table.get(key).is_some();
    let scalar =
        |key: &str| table.get(key).is_some_and(|n| !matches!(n.value, Value::Array(_) | Value::Table(_)));
    let varied = |table: &Table| {
        table.entries.iter().any(|e| matches!(e.node.value, Value::Array(_) | Value::Table(_)))
    };
    has("steps") || SCALAR_KEYS.iter().any(|k| scalar(k)) || (decode::is_value(table) && !varied(table))
}

fn axis(path: String, node: Node) -> Result<Axis> {
    let by: Arc<str> = format!("sweep of {path}").into();
    const EXPECTED: &str = "a list such as [\"30K\", \"64K\"], or a range such as { from = \"4K\", to = \"64M\", steps = 13, scale = \"log\" }";
    let values = match &node.value {
        Value::Array(all) => all.clone(),
        Value::Table(t) if !decode::is_value(t) => range(t, &path, &node)?,
        _ => return Err(node.unexpected(&path, EXPECTED)),
    };
    if values.is_empty() {
        return Err(node.unexpected(&path, EXPECTED));
    }
    let mut seen = std::collections::BTreeSet::new();
    for value in &values {
        if !seen.insert(value.plain()) {
            let what = format!("sweep of {path}: {}", value.describe());
            return Err(value.origin.error(Problem::SetTwice { what, other: "in the same list".into() }));
        }
    }
    Ok(Axis { path, values: values.into_iter().map(|n| n.from(&by)).collect() })
}

fn point(node: &Node) -> Result<Point> {
    let mut table = node.as_table("point")?.clone();
    let mut published = None;
    if let Some(i) = table.entries.iter().position(|e| e.key == "published") {
        published = Some(figure(&table.entries.remove(i).node, "point.published")?);
    }
    let by: Arc<str> = "point".into();
    let settings: Vec<(String, Node)> =
        flatten(&table, decode::is_value)?.into_iter().map(|(p, n)| (p, n.from(&by))).collect();
    if settings.is_empty() {
        let expected = "at least one parameter, such as \"link.forward.delay\" = \"40ms\"";
        return Err(node
            .origin
            .error(Problem::Missing { what: "what the point sets".into(), expected: expected.into() }));
    }
    if let Some((path, n)) = settings.iter().find(|(_, n)| matches!(n.value, Value::Array(_))) {
        return Err(n.unexpected(path, "one value; lists belong in [sweep]"));
    }
    Ok(Point { settings, published })
}
