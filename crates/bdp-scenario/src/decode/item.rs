//! Helpers for reading hosts, links and flows: lists of tables, their paths, times, and route errors.

pub(super) use crate::error::Result;
use crate::error::{Problem, ScenarioError};
use crate::tree::{Node, Origin, Table, Value};
use bdp_model::case::LinkSpec;
use bdp_model::case::network::RouteError;
use bdp_model::sweep::parameter::Parameter;
use bdp_model::units::Nanos;

/// Maximum links listed in an error.
const LINKS_SHOWN: usize = 20;
/// Maximum hosts, links or flows of a scenario, and sysctls of a host.
pub(super) const PARTS_MAX: usize = 1000;

pub(super) fn list<'a>(root: &'a Table, key: &str, example: &str) -> Result<&'a [Node]> {
    let missing = || {
        let what = format!("[[{key}]]");
        Origin::default().error(Problem::Missing { what, expected: example.to_owned() })
    };
    match root.get(key).map(|n| (&n.value, n)) {
        None => Err(missing()),
        Some((Value::Array(all), _)) if all.is_empty() => Err(missing()),
        Some((Value::Array(all), n)) if all.len() > PARTS_MAX => Err(n.origin.error(Problem::TooLong {
            what: format!("[[{key}]]"),
            found: format!("{} entries", all.len()),
            most: PARTS_MAX.to_string(),
        })),
        Some((Value::Array(all), _)) => Ok(all),
        Some((_, n)) => Err(n.unexpected(key, format!("a table, written [[{key}]]"))),
    }
}

/// Returns the path of an entry as a sweep would name it: `link` if there is one, `link.2` if there are more.
pub(super) fn place(key: &str, index: usize, count: usize) -> String {
    if count == 1 { key.to_owned() } else { format!("{key}.{index}") }
}

/// Reads a time within the range of the parameter at `at`.
pub(super) fn time(node: &Node, at: &str, expected: &str) -> Result<Nanos> {
    let value: Nanos = node.as_quantity(at, expected)?;
    if !Parameter::at(at).range.contains(&value.as_ns()) {
        Err(node.unexpected(at, expected))
    } else {
        Ok(value)
    }
}

/// Converts a route error to one at the parameter that needs the route.
pub(super) fn refused(error: RouteError, origin: &Origin, at: &str, links: &[LinkSpec]) -> ScenarioError {
    let at = at.to_owned();
    let message = error.to_string();
    origin.error(match error {
        RouteError::NoWay { from, to, would_forward } => {
            let tables: Vec<String> = would_forward.iter().map(|h| format!("[hosts.{h}]")).collect();
            let hint = match tables.as_slice() {
                [] => String::new(),
                tables => format!("; router = true in {} would", tables.join(" and ")),
            };
            let links: Vec<String> = links.iter().take(LINKS_SHOWN).map(|l| l.between.join(" - ")).collect();
            Problem::NoWay { at, from, to, links: links.join(", "), hint }
        }
        RouteError::Loop { .. } => {
            let rule = "correct the 'via' of one of these hosts, or remove it for the shortest path";
            Problem::Routing { at, message, rule }
        }
        RouteError::TooLong { .. } => {
            Problem::Routing { at, message, rule: "remove some of the routers between them" }
        }
    })
}
