//! Reads published figures and table rows.

use crate::error::{Problem, Result};
use crate::read::check_keys;
use crate::tree::{Node, Value};
use bdp_model::case::{Published, PublishedRow};
use bdp_model::units::Rate;

/// Reads `"2.77M"`, `"5.57M..5.60M"` or a bare number, in bit/s.
pub(crate) fn figure(node: &Node, at: &str) -> Result<Published> {
    const EXPECTED: &str = "a bit rate such as \"2.77M\", or two such as \"5.57M..5.60M\"";
    let part = |text: &str| -> Result<f64> {
        let end = Node { origin: node.origin.clone(), value: Value::Text(text.trim().to_owned()) };
        end.as_quantity::<Rate>(at, EXPECTED).map(|r| r.as_bps() as f64)
    };
    if let Value::Text(text) = &node.value
        && let Some((low, high)) = text.split_once("..")
    {
        let (low, high) = (part(low)?, part(high)?);
        return if low <= high {
            Ok(Published::Range([low, high]))
        } else {
            Err(node.unexpected(at, EXPECTED))
        };
    }
    node.as_quantity::<Rate>(at, EXPECTED).map(|r| Published::Number(r.as_bps() as f64))
}

/// Maximum rows of a table.
const ROWS_MAX: usize = 100;
/// Maximum length of a row's name, characters.
const NAME_MAX: usize = 40;

/// Reads the rows of a table: a name each, and those of min, mean, max and sd that are known.
pub(crate) fn rows(node: &Node, at: &str) -> Result<Vec<PublishedRow>> {
    const EXPECTED: &str = "a list such as [{ name = \"Linux 2.4.27\", min = \"154k\", mean = \"207k\", max = \"249k\", sd = \"23k\" }]";
    let Value::Array(all) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
    if all.len() > ROWS_MAX {
        let found = format!("{} entries", all.len());
        return Err(node.origin.error(Problem::TooLong {
            what: at.into(),
            found,
            most: ROWS_MAX.to_string(),
        }));
    }
    let mut out: Vec<PublishedRow> = Vec::with_capacity(all.len());
    for node in all {
        let Value::Table(table) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
        check_keys(table, at, &["name", "min", "mean", "max", "sd"])?;
        let rate = |key: &str| -> Result<Option<f64>> {
            let at = format!("{at}.{key}");
            let Some(n) = table.get(key) else { return Ok(None) };
            n.as_quantity::<Rate>(&at, "a bit rate such as \"207k\"").map(|r| Some(r.as_bps() as f64))
        };
        let expected = "a name of 1 to 40 characters";
        let Some(n) = table.get("name") else {
            let what = format!("{at}.name");
            return Err(node.origin.error(Problem::Missing { what, expected: expected.into() }));
        };
        let name = n.as_text(&format!("{at}.name"), expected)?.trim();
        let fits = (1..=NAME_MAX).contains(&name.chars().count()) && !name.chars().any(char::is_control);
        if !fits {
            return Err(n.unexpected(&format!("{at}.name"), expected));
        }
        if out.iter().any(|row| row.name == name) {
            let what = format!("{at}: the row {name}");
            return Err(n.origin.error(Problem::SetTwice { what, other: "above it".into() }));
        }
        out.push(PublishedRow {
            name: name.to_owned(),
            min_bps: rate("min")?,
            mean_bps: rate("mean")?,
            max_bps: rate("max")?,
            sd_bps: rate("sd")?,
        });
    }
    Ok(out)
}
