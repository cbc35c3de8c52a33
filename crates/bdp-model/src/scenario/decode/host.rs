//! `[hosts.NAME]`: sysctls and the default congestion control.

use std::collections::BTreeMap;

use super::super::HostSpec;
use super::super::error::Problem;
use super::super::read::check_keys;
use super::super::tree::{Node, Table, Value};
use super::{PARTS_MAX, Result};

const HOST_KEYS: [&str; 2] = ["sysctls", "congestion"];
pub(super) const HOST_NAME: &str = "a host name: 1 to 32 letters, digits, '-' or '_', a letter first";

pub(super) fn is_host_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// The hosts in the scenario's order.
pub(super) fn hosts(root: &Table, names: &[String]) -> Result<Vec<HostSpec>> {
    let declared = match root.get("hosts") {
        Some(n) => Some(n.as_table("hosts")?),
        None => None,
    };
    names
        .iter()
        .map(|name| {
            let Some(entry) = declared.and_then(|t| t.entries.iter().find(|e| &e.key == name)) else {
                return Ok(HostSpec { name: name.clone(), ..Default::default() });
            };
            if !is_host_name(name) {
                let found = format!("[hosts.{name}]");
                return Err(entry.origin.error(Problem::Unexpected {
                    at: "hosts".into(),
                    found,
                    expected: HOST_NAME.into(),
                }));
            }
            Ok(HostSpec { name: name.clone(), sysctls: sysctls(&entry.node, name)?, ..Default::default() })
        })
        .collect()
}

fn sysctls(host: &Node, name: &str) -> Result<BTreeMap<String, String>> {
    let at = format!("hosts.{name}");
    let table = host.as_table(&at)?;
    check_keys(table, &format!("[{at}]"), &HOST_KEYS)?;
    let Some(node) = table.get("sysctls") else { return Ok(BTreeMap::new()) };
    let entries = &node.as_table(&format!("{at}.sysctls"))?.entries;
    if entries.len() > PARTS_MAX {
        return Err(node.origin.error(Problem::TooLong {
            what: format!("{at}.sysctls"),
            found: format!("{} entries", entries.len()),
            most: PARTS_MAX.to_string(),
        }));
    }
    let mut out = BTreeMap::new();
    for entry in entries {
        let at = format!("{at}.sysctls.{}", entry.key);
        // Only net.* belongs to a network namespace; anything else would change the machine that runs the lab.
        let plain = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        };
        if !entry.key.starts_with("net.") || !entry.key.split('.').all(plain) {
            let expected =
                "a sysctl of the host's own network namespace, such as net.ipv4.tcp_window_scaling";
            return Err(entry.node.unexpected(&at, expected));
        }
        let value = match &entry.node.value {
            Value::Text(t) if t.len() <= 256 && !t.chars().any(|c| c.is_control() && c != '\t') => t.clone(),
            Value::Integer(i) => i.to_string(),
            Value::Boolean(b) => u8::from(*b).to_string(),
            _ => {
                return Err(entry
                    .node
                    .unexpected(&at, "a number or a line of text such as \"4096 131072 6291456\""));
            }
        };
        out.insert(entry.key.clone(), value);
    }
    Ok(out)
}

/// Each host's default congestion control.
pub(super) fn congestions(root: &Table) -> Result<BTreeMap<String, String>> {
    let mut out = BTreeMap::new();
    if let Some(Value::Table(hosts)) = root.get("hosts").map(|n| &n.value) {
        for entry in &hosts.entries {
            if let Value::Table(host) = &entry.node.value
                && let Some(node) = host.get("congestion")
            {
                let at = format!("hosts.{}.congestion", entry.key);
                out.insert(entry.key.clone(), congestion(node, &at)?);
            }
        }
    }
    Ok(out)
}

/// Any name that a kernel could know; whether it does is found out when the case runs.
pub(super) fn congestion(node: &Node, at: &str) -> Result<String> {
    const EXPECTED: &str = "the name of a congestion control, such as \"reno\", \"cubic\" or \"bbr\"";
    let name = node.as_text(at, EXPECTED)?;
    // TCP_CA_NAME_MAX is 16, the terminating NUL included.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=15).contains(&name.len()) || !name.chars().all(plain) {
        return Err(node.unexpected(at, EXPECTED));
    }
    Ok(name.to_owned())
}
