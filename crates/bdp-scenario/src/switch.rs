//! `[[switch]]`: several hosts on one segment, each linked to a switch, which is a forwarding host.

use crate::error::{Problem, Result};
use crate::read::check_keys;
use crate::tree::{Entry, Node, Table, Value};

/// Maximum hosts of a switch.
const HOSTS_MAX: usize = 250;
const HOSTS: &str = "the names of 2 to 250 hosts, each once, such as [\"a\", \"b\", \"c\"]";

/// Replaces each switch by a forwarding host and its links. Keys of a switch other than its name and hosts apply to each link.
/// Only the names remain in `switch` ([`is_one`]).
pub(crate) fn expand(root: &mut Table) -> Result<()> {
    let Some(at) = root.entries.iter().position(|entry| entry.key == "switch") else { return Ok(()) };
    let Entry { node, .. } = root.entries.remove(at);
    let mut names = Vec::new();
    let switches = match &node.value {
        Value::Array(all) => all.clone(),
        Value::Table(_) => vec![node.clone()],
        _ => return Err(node.unexpected("switch", "a table, written [[switch]]")),
    };
    for (index, switch) in switches.iter().enumerate() {
        let at = if switches.len() == 1 { "switch".to_owned() } else { format!("switch.{index}") };
        names.push(one(root, switch, &at)?);
    }
    root.set("switch", Node { origin: node.origin, value: Value::Array(names) });
    Ok(())
}

/// Whether a host is a switch, after [`expand`].
pub(crate) fn is_one(root: &Table, host: &str) -> bool {
    let Some(Value::Array(names)) = root.get("switch").map(|node| &node.value) else { return false };
    names.iter().any(|name| matches!(&name.value, Value::Text(name) if name == host))
}

/// Expands a switch and returns its name.
fn one(root: &mut Table, node: &Node, at: &str) -> Result<Node> {
    let table = node.as_table(at)?;
    let missing = |key: &str, expected: &str| {
        node.origin.error(Problem::Missing { what: format!("{at}.{key}"), expected: expected.to_owned() })
    };
    let name = table.get("name").ok_or_else(|| missing("name", "the switch's name, such as \"s1\""))?;
    name.as_text(&format!("{at}.name"), "the switch's name, such as \"s1\"")?;
    let list = table.get("hosts").ok_or_else(|| missing("hosts", HOSTS))?;
    let place = format!("{at}.hosts");
    let Value::Array(hosts) = &list.value else { return Err(list.unexpected(&place, HOSTS)) };
    let mut names = Vec::with_capacity(hosts.len());
    for host in hosts {
        let name = host.as_text(&place, HOSTS)?;
        if names.contains(&name) {
            return Err(host.unexpected(&place, HOSTS));
        }
        names.push(name);
    }
    if !(2..=HOSTS_MAX).contains(&names.len()) {
        return Err(list.unexpected(&place, HOSTS));
    }
    forward(root, name, node)?;
    let links = hosts.iter().map(|host| {
        let between =
            Node { origin: list.origin.clone(), value: Value::Array(vec![host.clone(), name.clone()]) };
        let mut link = Table::default();
        link.set("between", between);
        let rest = table.entries.iter().filter(|entry| entry.key != "name" && entry.key != "hosts");
        link.entries.extend(rest.cloned());
        Node { origin: node.origin.clone(), value: Value::Table(link) }
    });
    let links: Vec<Node> = links.collect();
    match root.get_mut("link").map(|node| &mut node.value) {
        Some(Value::Array(all)) => all.extend(links),
        Some(_) => {}
        None => root.set("link", Node { origin: node.origin.clone(), value: Value::Array(links) }),
    }
    Ok(name.clone())
}

/// Adds the switch to the hosts, as a forwarding one.
fn forward(root: &mut Table, name: &Node, node: &Node) -> Result<()> {
    let Value::Text(text) = &name.value else { return Ok(()) };
    let of = |value| Node { origin: node.origin.clone(), value };
    if root.get("hosts").is_none() {
        root.set("hosts", of(Value::Table(Table::default())));
    }
    let Some(Value::Table(hosts)) = root.get_mut("hosts").map(|node| &mut node.value) else { return Ok(()) };
    if hosts.get(text).is_none() {
        hosts.set(text, of(Value::Table(Table::default())));
    }
    let Some(Value::Table(host)) = hosts.get_mut(text).map(|node| &mut node.value) else { return Ok(()) };
    // A switch has no other host settings.
    check_keys(host, &format!("[hosts.{text}], which is a switch"), &["sysctls", "stack"])?;
    host.set("router", of(Value::Boolean(true)));
    Ok(())
}
