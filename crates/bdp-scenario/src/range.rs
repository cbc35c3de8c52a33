//! Expands a range of a sweep, `{ from = "4K", to = "64M", steps = 15, scale = "log" }`, to a list of values.

use crate::error::{Problem, Result, ScenarioError};
use crate::measure::{read, write};
use crate::read::check_keys;
use crate::tree::{Node, Table};
use bdp_model::sweep::parameter::{Kind, Parameter, Quantity};

/// Maximum cases of one run, repetitions included.
pub(crate) const CASES_MAX: u64 = 100_000;

/// Returns the values of a range. Its ends are kept as written; values between are rounded to whole bytes or counts, and
/// otherwise to four significant digits if the scale is logarithmic. Values that round to the same are merged.
pub(crate) fn range(table: &Table, path: &str, node: &Node) -> Result<Vec<Node>> {
    check_keys(table, &format!("the range of {path}"), &["from", "to", "steps", "step", "scale"])?;
    let parameter = Parameter::at(path);
    if parameter.kind == Kind::Word {
        return Err(node.unexpected(path, "a list: only quantities can have ranges"));
    }
    let end = |key: &str| -> Result<(&Node, Quantity)> {
        let n = table.get(key).ok_or_else(|| missing(node, path, key))?;
        let expected = "a quantity of the parameter that is swept, with its unit";
        let value = read(&parameter, n).ok_or_else(|| n.unexpected(&format!("{path}.{key}"), expected))?;
        Ok((n, value))
    };
    let ((first, Quantity { value: from, unit }), (last, to)) = (end("from")?, end("to")?);
    if to.unit != unit {
        return Err(last.unexpected(&format!("{path}.to"), "'to' in the same unit as 'from'"));
    }
    let to = to.value;
    let log = match table.get("scale") {
        Some(n) => n.as_choice(&format!("{path}.scale"), &[("linear", false), ("log", true)])?,
        None => false,
    };
    if log && (from <= 0.0 || to <= 0.0) {
        let (n, key) = if from <= 0.0 { (first, "from") } else { (last, "to") };
        return Err(n.unexpected(&format!("{path}.{key}"), "an end above 0 if the scale is \"log\""));
    }
    if from == to {
        return Err(last.unexpected(&format!("{path}.to"), "'to' different from 'from'"));
    }
    let positions = match (table.get("steps"), table.get("step")) {
        (Some(_), Some(n)) => {
            let expected = "either steps (number of values) or step (distance), not both";
            return Err(n.unexpected(&format!("{path}.step"), expected));
        }
        (Some(n), None) => by_number(n, path)?,
        (None, Some(n)) if !log => by_distance(n, path, &parameter, Quantity { value: to - from, unit })?,
        (None, Some(n)) => {
            return Err(n.unexpected(&format!("{path}.step"), "steps: a log scale has no fixed distance"));
        }
        (None, None) => return Err(missing(node, path, "steps")),
    };
    let digits = if log { 4 } else { 9 };
    let mut values = vec![first.clone()];
    for t in positions {
        let inner = if log { from * (to / from).powf(t) } else { from + (to - from) * t };
        let next = if (t - 1.0).abs() < 1e-12 {
            last.clone()
        } else {
            Node {
                origin: node.origin.clone(),
                value: write(&parameter, Quantity { value: inner, unit }, digits),
            }
        };
        if values.last().is_some_and(|before| read(&parameter, before) == read(&parameter, &next)) {
            // The later one is kept, as it may be the end as written; the start is never equal to it.
            if values.len() == 1 {
                continue;
            }
            values.pop();
        }
        values.push(next);
    }
    Ok(values)
}

fn missing(node: &Node, path: &str, key: &str) -> ScenarioError {
    node.origin.error(Problem::Missing {
        what: format!("'{key}' in the range of {path}"),
        expected: "a range needs from, to, and steps (number of values) or step (distance)".into(),
    })
}

/// Returns the positions of the values between the ends, without the first: 0 is `from`, 1 is `to`.
fn by_number(node: &Node, path: &str) -> Result<Vec<f64>> {
    let expected = "a number of values, both ends included, 2 to 100000";
    let steps = node.as_count(&format!("{path}.steps"), 2..=CASES_MAX, expected)?;
    Ok((1..steps).map(|i| i as f64 / (steps - 1) as f64).collect())
}

/// Returns positions like [`by_number`]; the end is omitted if it is not a whole number of steps away.
fn by_distance(node: &Node, path: &str, parameter: &Parameter, span: Quantity) -> Result<Vec<f64>> {
    let at = format!("{path}.step");
    let expected = "a distance above 0 in the parameter's unit, at most 100000 in the range";
    let step = read(parameter, node).filter(|step| step.unit == span.unit && step.value > 0.0);
    let step = step.ok_or_else(|| node.unexpected(&at, expected))?;
    let count = span.value.abs() / step.value;
    let whole = (count + 1e-9).floor();
    if !(1.0..CASES_MAX as f64).contains(&whole) {
        return Err(node.unexpected(&at, expected));
    }
    let exact = (count - whole).abs() < 1e-9;
    let position = |i: u64| if exact && i as f64 == whole { 1.0 } else { i as f64 / count };
    Ok((1..=whole as u64).map(position).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Value, parse};

    fn values(path: &str, text: &str) -> std::result::Result<Vec<String>, String> {
        let root = parse(&format!("r = {text}")).unwrap();
        let node = root.get("r").unwrap();
        let Value::Table(table) = &node.value else { panic!("not a table") };
        let nodes = range(table, path, node).map_err(|e| e.problem.to_string())?;
        Ok(nodes.iter().map(Node::plain).collect())
    }

    #[test]
    fn ranges_are_filled_from_end_to_end() {
        for (path, text, expected) in [
            (
                "flow.window",
                "{ from = \"4K\", to = \"64K\", steps = 5, scale = \"log\" }",
                "4K 8K 16K 32K 64K",
            ),
            ("flow.window", "{ from = 1000, to = 2000, steps = 4 }", "1000 1333 1667 2000"),
            ("link.delay", "{ from = \"10ms\", to = \"45ms\", step = \"10ms\" }", "10ms 20ms 30ms 40ms"),
            ("link.delay", "{ from = \"0.3s\", to = \"0\", step = \"100ms\" }", "0.3s 200ms 100ms 0"),
            ("link.rate", "{ from = \"1M\", to = \"1G\", steps = 4, scale = \"log\" }", "1M 10M 100M 1G"),
            ("link.loss", "{ from = 1e-4, to = \"1%\", steps = 3, scale = \"log\" }", "0.0001 0.001 1%"),
            ("flow.streams", "{ from = 1, to = 4, steps = 20, scale = \"log\" }", "1 2 3 4"),
            ("link.limit", "{ from = \"10p\", to = \"40p\", step = 15 }", "10p 25 40p"),
            ("link.limit", "{ from = \"2K\", to = \"4K\", step = \"1K\" }", "2K 3072B 4K"),
        ] {
            assert_eq!(values(path, text).unwrap().join(" "), expected, "{text}");
        }
    }

    #[test]
    fn wrong_ranges_say_what_is_wrong() {
        for (path, text, part) in [
            ("flow.congestion", "{ from = 1, to = 2, steps = 2 }", "only quantities can have ranges"),
            ("flow.window", "{ from = 1, to = 2 }", "'steps' in the range of flow.window is missing"),
            ("flow.window", "{ from = 1, steps = 2 }", "'to' in the range"),
            (
                "flow.window",
                "{ from = 0, to = 2, steps = 2, scale = \"log\" }",
                "from = 0: expected an end above 0",
            ),
            ("flow.window", "{ from = 2, to = 2, steps = 2 }", "different from 'from'"),
            ("flow.window", "{ from = 1, to = 2, steps = 1 }", "2 to 100000"),
            ("flow.window", "{ from = 1, to = 2, steps = 2, step = 1 }", "not both"),
            ("flow.window", "{ from = 0, to = \"1G\", step = 1 }", "at most 100000"),
            ("flow.window", "{ from = 1, to = 2, step = 5 }", "at most 100000"),
            (
                "link.delay",
                "{ from = \"1p\", to = \"2s\", steps = 2 }",
                "link.delay.from = \"1p\": expected a quantity",
            ),
            ("link.delay", "{ from = 0, to = \"2s\", step = \"0s\" }", "a distance above 0"),
            ("link.limit", "{ from = 10, to = \"64K\", steps = 3 }", "'to' in the same unit as 'from'"),
        ] {
            let text = values(path, text).unwrap_err();
            assert!(text.contains(part), "{text}");
        }
    }
}
