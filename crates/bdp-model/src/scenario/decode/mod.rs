//! The tree of one case -> hosts, links and flows, each value checked by itself and against the others.

mod flow;
mod host;
mod impairment;
mod link;

use super::error::{Problem, ScenarioError};
use super::path::host_names;
use super::route::{Network, RouteError};
use super::tree::{Node, Origin, Table, Value};
use super::{CaseFlow, Family, HostSpec, LinkSpec, ProbeKind};
use crate::parameter::Parameter;
use crate::units::Nanos;

pub(super) use impairment::is_value;

type Result<T> = std::result::Result<T, ScenarioError>;

/// What a case's tree states.
pub(super) struct Decoded {
    pub family: Family,
    pub idle: Nanos,
    pub probe: ProbeKind,
    pub hosts: Vec<HostSpec>,
    pub links: Vec<LinkSpec>,
    pub flows: Vec<CaseFlow>,
}

/// Decodes hosts, links, flows, family, idle and probe; the file's other tables are read elsewhere.
pub(super) fn decode(root: &Table) -> Result<Decoded> {
    let family = match root.get("family") {
        Some(n) => n.as_choice("family", &[("ipv4", Family::Ipv4), ("ipv6", Family::Ipv6)])?,
        None => Family::default(),
    };
    let idle = match root.get("idle") {
        Some(n) => time(n, "idle", "a time up to 1h, such as \"1s\" or 0")?,
        None => Nanos::secs(1),
    };
    let probe = match root.get("probe") {
        Some(n) => {
            n.as_choice("probe", &[("udp", ProbeKind::Udp), ("tcp-connect", ProbeKind::TcpConnect)])?
        }
        None => ProbeKind::default(),
    };
    let names = host_names(root);
    let congestion = host::congestions(root)?;
    let hosts = host::hosts(root, &names)?;
    let links = link::links(root, family)?;
    let network = Network::new(&hosts, &links);
    host::check_routes(root, &network, &hosts)?;
    let flows = flow::flows(root, family, &network, &names, &congestion)?;
    Ok(Decoded { family, idle, probe, hosts, links, flows })
}

/// Links that an error lists.
const LINKS_SHOWN: usize = 20;
/// Most hosts, links or flows of a scenario; most sysctls of a host.
const PARTS_MAX: usize = 1000;

fn list<'a>(root: &'a Table, key: &str, example: &str) -> Result<&'a [Node]> {
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

/// `link` where there is one, `link.2` where there are more: as a path of the sweep would name it.
fn place(key: &str, index: usize, count: usize) -> String {
    if count == 1 { key.to_owned() } else { format!("{key}.{index}") }
}

/// A time within the bounds of the parameter at `at`.
fn time(node: &Node, at: &str, expected: &str) -> Result<Nanos> {
    let value: Nanos = node.as_quantity(at, expected)?;
    if !Parameter::at(at).range.contains(&value.as_ns()) {
        Err(node.unexpected(at, expected))
    } else {
        Ok(value)
    }
}

/// What is wrong with a path, at the place that needs it.
fn refused(error: RouteError, origin: &Origin, at: &str, links: &[LinkSpec]) -> ScenarioError {
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
            let rule = "correct the 'via' of one of these hosts, or leave it out for the shortest way";
            Problem::Routing { at, message, rule }
        }
        RouteError::TooLong { .. } => {
            Problem::Routing { at, message, rule: "take out some of the routers between them" }
        }
    })
}
