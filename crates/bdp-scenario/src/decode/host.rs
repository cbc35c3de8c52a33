//! `[hosts.NAME]`: sysctls, routing, the kernel and its TCP.

use std::collections::BTreeMap;

use super::item::{PARTS_MAX, Result, refused};
use super::{stack, tcp};
use crate::error::{Problem, hint};
use crate::path::get;
use crate::read::check_keys;
use crate::switch;
use crate::tree::{Node, Origin, Table, Value};
use bdp_model::case::network::{Network, changes};
use bdp_model::case::{HostSpec, LinkSpec, Route};
use bdp_model::units::Nanos;

const HOST_KEYS: [&str; 12] = [
    "sysctls",
    "router",
    "routes",
    "stack",
    "congestion",
    "sack",
    "window_scaling",
    "timestamps",
    "initial_window",
    "ecn",
    "receive_buffer",
    "send_buffer",
];
const ROUTES: &str = "a list such as [{ to = \"far\", via = \"r1\" }]";
pub(super) const HOST_NAME: &str = "a host name: 1 to 32 letters, digits, '-' or '_', a letter first";

pub(super) fn is_host_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Reads the hosts, in the scenario's order.
pub(super) fn hosts(root: &Table, names: &[String]) -> Result<Vec<HostSpec>> {
    let declared = match root.get("hosts") {
        Some(n) => Some(n.as_table("hosts")?),
        None => None,
    };
    let default_stack = root.get("stack").map(|n| stack::stack(n, "stack")).transpose()?;
    names
        .iter()
        .map(|name| {
            let Some(entry) = declared.and_then(|t| t.entries.iter().find(|e| &e.key == name)) else {
                let stack = default_stack.clone();
                return Ok(HostSpec { name: name.clone(), stack, ..Default::default() });
            };
            if !is_host_name(name) {
                let found = format!("[hosts.{name}]");
                return Err(entry.origin.error(Problem::Unexpected {
                    at: "hosts".into(),
                    found,
                    expected: HOST_NAME.into(),
                }));
            }
            let at = format!("hosts.{name}");
            let table = entry.node.as_table(&at)?;
            check_keys(table, &format!("[{at}]"), &HOST_KEYS)?;
            let router = match table.get("router") {
                Some(n) => n.as_bool(&format!("{at}.router"))?,
                None => false,
            };
            let routes = match table.get("routes") {
                Some(n) => routes(n, name, names)?,
                None => Vec::new(),
            };
            let stack = match table.get("stack") {
                Some(n) => Some(stack::stack(n, &format!("{at}.stack"))?),
                None => default_stack.clone(),
            };
            let sysctls = sysctls(table, &at)?;
            let tcp = tcp::settings(table, &at, &sysctls)?;
            let switch = switch::is_one(root, name);
            Ok(HostSpec { name: name.clone(), sysctls, router, switch, routes, stack, tcp })
        })
        .collect()
}

/// Reads the name of a host of the scenario.
pub(super) fn host_named(node: &Node, at: &str, names: &[String]) -> Result<String> {
    let host = node.as_text(at, "the name of a host")?;
    if !names.iter().any(|name| name == host) {
        return Err(node.origin.error(Problem::UnknownHost {
            at: at.to_owned(),
            host: host.chars().take(60).collect(),
            hint: hint(host, names.iter().map(String::as_str)),
            known: names.join(", "),
        }));
    }
    Ok(host.to_owned())
}

fn routes(node: &Node, name: &str, names: &[String]) -> Result<Vec<Route>> {
    let at = format!("hosts.{name}.routes");
    let Value::Array(all) = &node.value else { return Err(node.unexpected(&at, ROUTES)) };
    if all.len() > PARTS_MAX {
        return Err(node.origin.error(Problem::TooLong {
            what: at,
            found: format!("{} entries", all.len()),
            most: PARTS_MAX.to_string(),
        }));
    }
    let mut out: Vec<Route> = Vec::with_capacity(all.len());
    for node in all {
        let Value::Table(table) = &node.value else { return Err(node.unexpected(&at, ROUTES)) };
        check_keys(table, &at, &["to", "via", "at"])?;
        let end = |key: &str| -> Result<String> {
            let at = format!("{at}.{key}");
            let Some(n) = table.get(key) else {
                return Err(node.origin.error(Problem::Missing { what: at, expected: ROUTES.to_owned() }));
            };
            let host = host_named(n, &at, names)?;
            if host == name {
                return Err(n.unexpected(&at, "another host than the one with the route"));
            }
            Ok(host)
        };
        let from = match table.get("at") {
            Some(n) => start(n, &format!("{at}.at"))?,
            None => Nanos::ZERO,
        };
        let route = Route { to: end("to")?, via: end("via")?, at: from };
        if out.iter().any(|r| r.to == route.to && r.at == route.at) {
            let what = format!("{at}: the route to {}", route.to);
            return Err(node.origin.error(Problem::SetTwice { what, other: "above it".into() }));
        }
        out.push(route);
    }
    Ok(out)
}

/// Reads the time from which a route is valid.
fn start(node: &Node, at: &str) -> Result<Nanos> {
    const EXPECTED: &str = "a time up to 24h, such as \"5s\" or 0";
    let value: Nanos = node.as_quantity(at, EXPECTED)?;
    if value > Nanos::secs(24 * 3600) { Err(node.unexpected(at, EXPECTED)) } else { Ok(value) }
}

/// Checks static routes against the links: the next hop must be a forwarding neighbour, and the path must reach its destination.
pub(super) fn check_routes(root: &Table, links: &[LinkSpec], hosts: &[HostSpec]) -> Result<()> {
    let routes = || hosts.iter().flat_map(|host| host.routes.iter().map(move |route| (host, route)));
    for (host, route) in routes() {
        check_via(root, links, hosts, host, route)?;
    }
    for moment in [Nanos::ZERO].into_iter().chain(changes(hosts)) {
        let network = Network::new(hosts, links).as_of(moment);
        for (host, route) in routes().filter(|(_, route)| route.at <= moment) {
            let (at, origin) = (format!("hosts.{}.routes", host.name), origin(root, host, route));
            network.path(&host.name, &route.to).map_err(|e| refused(e, &origin, &at, links))?;
        }
    }
    Ok(())
}

fn check_via(
    root: &Table,
    links: &[LinkSpec],
    hosts: &[HostSpec],
    host: &HostSpec,
    route: &Route,
) -> Result<()> {
    let contradiction = |other: String, rule: &str| {
        Err(origin(root, host, route).error(Problem::Contradiction {
            at: format!("hosts.{}.routes.via", host.name),
            found: format!("\"{}\"", route.via),
            other,
            rule: rule.to_owned(),
        }))
    };
    let neighbours: Vec<&str> = links
        .iter()
        .filter(|l| l.between.contains(&host.name))
        .flat_map(|l| &l.between)
        .filter(|h| **h != host.name)
        .map(String::as_str)
        .collect();
    if !neighbours.contains(&route.via.as_str()) {
        let other = format!("the links of '{}' ({})", host.name, neighbours.join(", "));
        return contradiction(other, "the next hop of a route must be a neighbour");
    }
    if route.via != route.to && hosts.iter().any(|h| h.name == route.via && !h.router) {
        let other = format!("'{}', which is not a router", route.via);
        return contradiction(other, "only a router forwards packets; set router = true in its table");
    }
    Ok(())
}

/// Returns the position of a static route in the file.
fn origin(root: &Table, host: &HostSpec, route: &Route) -> Origin {
    let node = get(root, &format!("hosts.{}.routes", host.name));
    let all = node.map(|n| (&n.value, &n.origin));
    let index = host.routes.iter().position(|r| r == route).unwrap_or(0);
    match all {
        Some((Value::Array(all), origin)) => all.get(index).map_or(origin, |n| &n.origin).clone(),
        Some((_, origin)) => origin.clone(),
        None => Origin::default(),
    }
}

fn sysctls(table: &Table, at: &str) -> Result<BTreeMap<String, String>> {
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
