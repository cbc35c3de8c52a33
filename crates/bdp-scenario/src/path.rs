//! Dotted paths: `flow.window` applies to every flow, `flow.0.window` and `flow[0].window` to the first one.

use crate::error::{Problem, Result, hint};
use crate::tree::{Node, Origin, Table, Value};
use bdp_model::case::filter::normalise;

/// Top-level keys that a sweep or an override can change.
const ROOTS: [&str; 9] = ["flow", "traffic", "link", "hosts", "clock", "stack", "family", "idle", "probe"];

/// Sets `path` to `node`. The last key is interpreted when the tree is decoded.
pub(crate) fn set(root: &mut Table, path: &str, node: Node) -> Result<()> {
    let parts: Vec<&str> = path.split('.').collect();
    let nothing = |reason: String| node.origin.error(Problem::NoParameter { path: path.to_owned(), reason });
    if parts.iter().any(|p| p.is_empty()) {
        return Err(nothing("it has an empty part".to_owned()));
    }
    match parts[0] {
        "clock" | "stack" | "family" | "idle" | "probe" if parts.len() == 1 => {
            root.set(parts[0], node);
            Ok(())
        }
        kind @ ("flow" | "traffic" | "link") => {
            let (index, rest) = match parts.get(1).map(|p| p.parse::<usize>()) {
                Some(Ok(index)) => (Some(index), &parts[2..]),
                _ => (None, &parts[1..]),
            };
            if rest.is_empty() {
                return Err(nothing(format!("it is a whole {kind}; give one of its keys")));
            }
            let Some(Value::Array(all)) = root.get_mut(kind).map(|n| &mut n.value) else {
                return Err(nothing(format!("the scenario has no [[{kind}]]")));
            };
            let count = all.len();
            let chosen: Vec<&mut Node> = match index {
                None => all.iter_mut().collect(),
                Some(i) => vec![all.get_mut(i).ok_or_else(|| {
                    nothing(format!("{kind}.{i} does not exist; the scenario has {count}, counted from 0"))
                })?],
            };
            for target in chosen {
                if let Value::Table(table) = &mut target.value {
                    set_in(table, rest, path, node.clone())?;
                }
            }
            Ok(())
        }
        "hosts" => set_host(root, &parts, path, node),
        other => {
            let known = ROOTS.join(", ");
            Err(nothing(format!("it must start with one of {known}{}", hint(other, ROOTS))))
        }
    }
}

fn set_host(root: &mut Table, parts: &[&str], path: &str, node: Node) -> Result<()> {
    let nothing = |reason: String| node.origin.error(Problem::NoParameter { path: path.to_owned(), reason });
    let hosts = host_names(root);
    let (Some(&host), Some(&key)) = (parts.get(1), parts.get(2)) else {
        return Err(nothing(
            "write hosts.NAME.sysctls.SYSCTL, hosts.NAME.congestion or another key of [hosts.NAME]"
                .to_owned(),
        ));
    };
    if !hosts.iter().any(|h| h == host) {
        let known = hosts.join(", ");
        return Err(nothing(format!(
            "unknown host '{host}'{}; hosts: {known}",
            hint(host, hosts.iter().map(String::as_str))
        )));
    }
    let sysctl = parts[3..].join(".");
    let rest: Vec<&str> = match (key, sysctl.is_empty()) {
        ("sysctls", false) => vec!["hosts", host, key, &sysctl],
        ("sysctls", true) => return Err(nothing("give the sysctl, such as net.ipv4.tcp_sack".to_owned())),
        _ => parts.to_vec(),
    };
    set_in(root, &rest, path, node)
}

/// Returns every host that the file declares or a link names, in that order.
pub(crate) fn host_names(root: &Table) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if let Some(Value::Table(hosts)) = root.get("hosts").map(|n| &n.value) {
        names.extend(hosts.entries.iter().map(|e| e.key.clone()));
    }
    if let Some(Value::Array(links)) = root.get("link").map(|n| &n.value) {
        for link in links {
            let Value::Table(link) = &link.value else { continue };
            let Some(Value::Array(between)) = link.get("between").map(|n| &n.value) else { continue };
            for name in between {
                if let Value::Text(name) = &name.value
                    && !names.contains(name)
                {
                    names.push(name.clone());
                }
            }
        }
    }
    names
}

fn set_in(table: &mut Table, rest: &[&str], path: &str, node: Node) -> Result<()> {
    let [key, deeper @ ..] = rest else { return Ok(()) };
    if deeper.is_empty() {
        check_not_hidden(table, key, path, &node)?;
        table.set(key, node);
        return Ok(());
    }
    if table.get(key).is_none() {
        table.set(key, Node { origin: node.origin.clone(), value: Value::Table(Table::default()) });
    }
    match table.get_mut(key).map(|n| &mut n.value) {
        Some(Value::Table(inner)) => set_in(inner, deeper, path, node),
        _ => Err(node.origin.error(Problem::NoParameter {
            path: path.to_owned(),
            reason: format!("'{key}' is a value, not a table"),
        })),
    }
}

/// Refuses `link.delay` if the file sets `delay` for a direction: it would have no effect.
fn check_not_hidden(table: &Table, key: &str, path: &str, node: &Node) -> Result<()> {
    for direction in ["forward", "reverse"] {
        let Some(Value::Table(inner)) = table.get(direction).map(|n| &n.value) else { continue };
        if let Some(Node { origin: Origin { line: Some(line), .. }, .. }) = inner.get(key) {
            return Err(node.origin.error(Problem::NoParameter {
                path: path.to_owned(),
                reason: format!(
                    "link.{direction}.{key} on line {line} would override it; set link.forward.{key} and link.reverse.{key}"
                ),
            }));
        }
    }
    Ok(())
}

/// Returns the node at a path, of the first flow or link if the path applies to all; `None` if it is not set.
pub(crate) fn get<'a>(root: &'a Table, path: &str) -> Option<&'a Node> {
    let mut parts = path.split('.').peekable();
    let first = parts.next()?;
    let mut node = root.get(first)?;
    if let Value::Array(all) = &node.value {
        let index = parts.peek().and_then(|p| p.parse::<usize>().ok());
        if index.is_some() {
            parts.next();
        }
        node = all.get(index.unwrap_or(0))?;
    }
    let rest: Vec<&str> = parts.collect();
    let mut i = 0;
    while i < rest.len() {
        let Value::Table(table) = &node.value else { return None };
        node = table.get(rest[i])?;
        i += 1;
        if first == "hosts" && i == 2 && rest[1] == "sysctls" {
            let Value::Table(sysctls) = &node.value else { return None };
            return sysctls.get(&rest[2..].join("."));
        }
    }
    Some(node)
}

/// Converts nested tables to dotted keys: `a.b = 1` and `"a.b" = 1` mean the same. `is_value` recognises a table that is
/// a value itself.
pub(crate) fn flatten(
    table: &Table,
    is_value: impl Fn(&Table) -> bool + Copy,
) -> Result<Vec<(String, Node)>> {
    let mut out: Vec<(String, Node)> = Vec::new();
    flatten_into(table, "", is_value, &mut out);
    let mut seen = std::collections::BTreeMap::new();
    for (path, node) in &out {
        if let Some(line) = seen.insert(path.clone(), node.origin.line) {
            let other = line.map_or_else(|| "elsewhere".to_owned(), |l| format!("on line {l}"));
            return Err(node.origin.error(Problem::SetTwice { what: path.clone(), other }));
        }
    }
    Ok(out)
}

fn flatten_into(
    table: &Table,
    prefix: &str,
    is_value: impl Fn(&Table) -> bool + Copy,
    out: &mut Vec<(String, Node)>,
) {
    for entry in &table.entries {
        let path = if prefix.is_empty() {
            normalise(&entry.key)
        } else {
            format!("{prefix}.{}", normalise(&entry.key))
        };
        match &entry.node.value {
            Value::Table(inner) if !is_value(inner) => flatten_into(inner, &path, is_value, out),
            _ => out.push((path, entry.node.clone())),
        }
    }
}
