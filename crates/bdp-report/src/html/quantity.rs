//! The quantity varied by a sweep, derived from its values.

use bdp_model::sweep::curve as model;
use bdp_model::sweep::parameter::{self, Parameter, Unit};
use serde_json::Value;

use crate::summary::Point;

/// Fewest points of a curve.
pub(crate) const LEAST_POINTS: usize = 3;

/// The varied quantity, in one unit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    pub path: String,
    parameter: Parameter,
    pub unit: Unit,
}

impl Quantity {
    /// Returns the quantity of a curve's axis.
    pub fn of_axis(axis: model::Axis) -> Self {
        let parameter = Parameter::of_axis(axis);
        Self { path: parameter.name.to_owned(), unit: parameter.unit, parameter }
    }

    /// Returns the quantity of a parameter with these values; `None` if their units differ.
    fn of<'v>(path: &str, values: impl IntoIterator<Item = &'v Value>) -> Option<Self> {
        let parameter = Parameter::at(path);
        let mut units = values.into_iter().map(|value| read(&parameter, value).map(|q| q.unit));
        let unit = units.next()??;
        let one = units.all(|other| other == Some(unit));
        one.then(|| Self { path: path.to_owned(), parameter, unit })
    }

    pub fn is_window(&self) -> bool {
        self.parameter.axis == Some(model::Axis::WindowOnTheWire)
    }

    pub fn value(&self, value: &Value) -> Option<f64> {
        read(&self.parameter, value).filter(|q| q.unit == self.unit).map(|q| q.value)
    }

    pub fn label(&self, value: f64) -> String {
        crate::chart::Unit::from(self.unit).label(value)
    }

    pub fn words(&self, on_the_wire: bool) -> String {
        match (self.is_window(), on_the_wire) {
            (true, true) => "window on the wire".to_owned(),
            (true, false) => "window asked for".to_owned(),
            _ => self.path.rsplit('.').next().unwrap_or(&self.path).replace('_', " "),
        }
    }
}

/// Returns the quantity along which these points form a curve: the window if it is swept, otherwise the one with the most values.
pub(crate) fn axis(points: &[Point<'_>]) -> Option<Quantity> {
    let first = points.first()?;
    let distinct = |path: &String| {
        let written: Vec<&Value> = points.iter().map(|p| p.params.get(path)).collect::<Option<_>>()?;
        let quantity = Quantity::of(path, written.iter().copied())?;
        let mut values: Vec<f64> = written.into_iter().map(|v| quantity.value(v)).collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        values.dedup();
        (values.len() >= LEAST_POINTS).then_some((quantity, values.len()))
    };
    let candidates: Vec<(Quantity, usize)> = first.params.keys().filter_map(distinct).collect();
    candidates
        .iter()
        .find(|(q, _)| q.is_window())
        .or_else(|| candidates.iter().max_by_key(|(_, n)| *n))
        .map(|(q, _)| q.clone())
}

fn read(parameter: &Parameter, value: &Value) -> Option<parameter::Quantity> {
    match value {
        Value::String(text) => parameter.read(text),
        Value::Number(number) => parameter.read(&number.to_string()),
        _ => None,
    }
}
