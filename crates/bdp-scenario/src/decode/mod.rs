//! Decodes the tree of one case into hosts, links and flows, checking each value by itself and against the others.

mod application;
mod flow;
mod host;
mod impairment;
mod item;
mod link;
mod over_time;
mod queue;
mod stack;
mod tcp;
mod traffic;

use crate::path::host_names;
use crate::tree::Table;
use bdp_model::case::network::Network;
use bdp_model::case::stack::Clock;
use bdp_model::case::traffic::Traffic;
use bdp_model::case::{CaseFlow, Family, HostSpec, LinkSpec, ProbeKind};
use bdp_model::units::Nanos;
use item::{Result, time};

pub use over_time::Traces;

/// Whether a table is a complete value read here rather than a path to part of one.
pub(crate) fn is_value(table: &Table) -> bool {
    impairment::is_value(table) || queue::is_value(table)
}

/// The decoded tree of a case.
pub(crate) struct Decoded {
    pub clock: Clock,
    pub family: Family,
    pub idle: Nanos,
    pub probe: ProbeKind,
    pub hosts: Vec<HostSpec>,
    pub links: Vec<LinkSpec>,
    pub flows: Vec<CaseFlow>,
    pub traffic: Vec<Traffic>,
}

/// Decodes clock, hosts, links, flows, family, idle and probe; the file's other tables are read elsewhere. Flows may be absent only if none
/// are needed. `traces` are those that the scenario names.
pub(crate) fn decode(root: &Table, traces: &Traces, needs_flows: bool) -> Result<Decoded> {
    let clock = match root.get("clock") {
        Some(n) => n.as_choice("clock", &Clock::NAMES)?,
        None => Clock::default(),
    };
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
    let hosts = host::hosts(root, &names)?;
    let links = link::links(root, family, traces)?;
    let network = Network::new(&hosts, &links);
    host::check_routes(root, &links, &hosts)?;
    let flows = match root.get("flow") {
        None if !needs_flows || root.get("traffic").is_some() => Vec::new(),
        _ => flow::flows(root, family, &network, &names, &hosts)?,
    };
    stack::check(root, clock, &hosts, &flows, probe)?;
    let traffic = traffic::traffic(root, &network, &names, &hosts)?;
    Ok(Decoded { clock, family, idle, probe, hosts, links, flows, traffic })
}
