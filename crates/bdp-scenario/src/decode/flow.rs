//! `[[flow]]`: who sends to whom, how, and for how long.

use super::application::{self, application};
use super::host::host_named;
use super::item::{Result, list, place, refused, time};
use super::tcp::congestion;
use crate::error::Problem;
use crate::read::check_keys;
use crate::tree::{Node, Table};
use bdp_model::case::network::Network;
use bdp_model::case::{CaseFlow, Family, HostSpec, LinkSpec, WindowMethod};
use bdp_model::flow::payload::Zerocopy;
use bdp_model::flow::socket::{Notation, SocketNumbers, SocketOption};
use bdp_model::flow::udp::UdpRequest;
use bdp_model::flow::window::WindowBytes;
use bdp_model::sweep::parameter::Parameter;
use bdp_model::units::{ByteCount, Nanos, Rate};

const FLOW_KEYS: [&str; 24] = [
    "from",
    "to",
    "direction",
    "window",
    "window_method",
    "streams",
    "length",
    "mss",
    "congestion",
    "nodelay",
    "zerocopy",
    "start",
    "start_spread",
    "duration",
    "bytes",
    "omit",
    "interval",
    "background",
    "protocol",
    "rate",
    "datagram",
    "reader",
    "writer",
    "messages",
];
/// Keys that apply to one protocol alone, besides those of sockets.
const OF_TCP: [&str; 7] = ["window", "window_method", "length", "mss", "congestion", "nodelay", "zerocopy"];
const OF_UDP: [&str; 2] = ["rate", "datagram"];

/// Reads the flows, in the order of the file.
pub(super) fn flows(
    root: &Table,
    family: Family,
    network: &Network<'_>,
    names: &[String],
    hosts: &[HostSpec],
) -> Result<Vec<CaseFlow>> {
    let all = list(root, "flow", "write [[flow]] with from = \"near\" and to = \"far\"")?;
    let build = |(i, node): (usize, &Node)| {
        let at = place("flow", i, all.len());
        let table = node.as_table(&at)?;
        let of_sockets = SocketOption::all().iter().map(|option| option.member);
        check_keys(table, "[[flow]]", &FLOW_KEYS.into_iter().chain(of_sockets).collect::<Vec<_>>())?;
        let (from, to) = ends(node, table, &at, network.links(), names)?;
        let path_mtu = path_mtu(node, table, &at, network, [&from, &to])?;
        let sender = hosts.iter().find(|host| host.name == from);
        let own = sender.and_then(|host| host.tcp.congestion.clone());
        let mut flow = CaseFlow::between(from, to, own.clone().unwrap_or_else(|| "cubic".to_owned()));
        if sender.is_some_and(|host| host.stack.as_ref().is_some_and(|stack| stack.in_steps().is_some())) {
            // Not every one of these stacks has CUBIC, so each uses its own default.
            flow.spec.congestion = own;
        }
        workload(table, &at, &mut flow)?;
        flow.spec.socket = sockets(table, &at, sender)?;
        extent(table, &at, &mut flow)?;
        flow.spec.udp = udp(node, table, &at, family, path_mtu)?;
        flow.spec.application = application(table, &at, flow.spec.streams)?;
        if let Some(n) = table.get("mss") {
            flow.spec.mss = mss(n, &format!("{at}.mss"), family, path_mtu)?;
        }
        if flow.spec.omit >= flow.spec.duration {
            let (n, key) = match (table.get("omit"), table.get("duration")) {
                // The error names the one that a sweep or an override set.
                (Some(o), Some(d)) if d.origin.by.is_some() && o.origin.by.is_none() => (d, "duration"),
                (Some(o), _) => (o, "omit"),
                (None, Some(d)) => (d, "duration"),
                (None, None) => (node, "omit"),
            };
            return Err(n.origin.error(Problem::Contradiction {
                at: format!("{at}.{key}"),
                found: n.describe(),
                other: if key == "omit" {
                    format!("a duration of {}", flow.spec.duration)
                } else {
                    format!("an omit of {}", flow.spec.omit)
                },
                rule: "omit must be shorter than the duration".into(),
            }));
        }
        Ok(flow)
    };
    let flows = all.iter().enumerate().map(build).collect::<Result<Vec<CaseFlow>>>()?;
    if let (true, Some(n)) = (flows.iter().all(|f| f.background), all.first()) {
        let expected = "false for at least one flow: not all flows can be background";
        let node = n.as_table("flow")?.get("background").unwrap_or(n);
        return Err(node.unexpected(&format!("{}.background", place("flow", 0, all.len())), expected));
    }
    Ok(flows)
}

/// Reads the datagrams of a UDP flow.
fn udp(node: &Node, table: &Table, at: &str, family: Family, path_mtu: u32) -> Result<Option<UdpRequest>> {
    let protocol = table.get("protocol");
    let is_udp = match protocol {
        Some(n) => n.as_choice(&format!("{at}.protocol"), &[("tcp", false), ("udp", true)])?,
        None => false,
    };
    let misplaced: Vec<&str> = match is_udp {
        true => {
            let sockets = SocketOption::all().iter().filter(|option| option.is_of_tcp);
            let sockets = sockets.map(|option| option.member);
            OF_TCP.into_iter().chain(application::KEYS).chain(sockets).collect()
        }
        false => OF_UDP.to_vec(),
    };
    if let Some((n, key)) = misplaced.iter().find_map(|&key| Some((table.get(key)?, key))) {
        return Err(n.origin.error(Problem::Contradiction {
            at: format!("{at}.{key}"),
            found: n.describe(),
            other: format!("protocol = \"{}\"", if is_udp { "udp" } else { "tcp" }),
            rule: format!("{key} belongs to the other protocol; remove one of them"),
        }));
    }
    if !is_udp {
        return Ok(None);
    }
    let expected = "payload of each stream per second, above 0, such as \"110M\"";
    let Some(n) = table.get("rate") else {
        let what = format!("{at}.rate");
        return Err(node.origin.error(Problem::Missing { what, expected: expected.to_owned() }));
    };
    let rate: Rate = n.as_quantity(&format!("{at}.rate"), expected)?;
    if rate.as_bps() == 0 {
        return Err(n.unexpected(&format!("{at}.rate"), expected));
    }
    let headers = match family {
        Family::Ipv4 => 28,
        Family::Ipv6 => 48,
    };
    // The MTU of the path may exceed what a datagram can hold.
    let range = Parameter::at("datagram").range;
    let fits = path_mtu.saturating_sub(headers).min(*range.end() as u32);
    let datagram_bytes = match table.get("datagram") {
        None => fits,
        Some(n) => {
            let least = range.start();
            let expected = format!("bytes of payload from {least} to {fits}, the maximum for the MTU");
            let size: ByteCount = n.as_quantity(&format!("{at}.datagram"), &expected)?;
            match size.as_bytes() {
                bytes if (*least..=u64::from(fits)).contains(&bytes) => bytes as u32,
                _ => return Err(n.unexpected(&format!("{at}.datagram"), &expected)),
            }
        }
    };
    Ok(Some(UdpRequest {
        rate_bps: Some(rate.as_bps()),
        search: None,
        datagram_bytes: Some(datagram_bytes),
        dont_fragment: false,
    }))
}

/// Returns the two ends, swapped if the direction is `reverse`.
pub(super) fn ends(
    node: &Node,
    table: &Table,
    at: &str,
    links: &[LinkSpec],
    names: &[String],
) -> Result<(String, String)> {
    let end = |key: &str, default: usize| -> Result<String> {
        let at = format!("{at}.{key}");
        let Some(n) = table.get(key) else {
            // With one link the ends are unambiguous.
            return match links {
                [only] => Ok(only.between[default].clone()),
                _ => {
                    let expected =
                        format!("with several links a flow must name its hosts, one of {}", names.join(", "));
                    Err(node.origin.error(Problem::Missing { what: at, expected }))
                }
            };
        };
        host_named(n, &at, names)
    };
    let (mut from, mut to) = (end("from", 0)?, end("to", 1)?);
    if let Some(n) = table.get("direction")
        && n.as_choice(&format!("{at}.direction"), &[("forward", false), ("reverse", true)])?
    {
        std::mem::swap(&mut from, &mut to);
    }
    Ok((from, to))
}

/// Returns the largest IP packet that can cross the path in both directions; fails if there is no path.
pub(super) fn path_mtu(
    node: &Node,
    table: &Table,
    at: &str,
    network: &Network<'_>,
    ends: [&str; 2],
) -> Result<u32> {
    let [from, to] = ends;
    let at_node = table.get("to").or_else(|| table.get("from")).unwrap_or(node);
    let mut mtu = u32::MAX;
    for (from, to) in [(from, to), (to, from)] {
        let path = network.path(from, to).map_err(|e| refused(e, &at_node.origin, at, network.links()))?;
        mtu = path.iter().map(|hop| network.links()[hop.link].config.mtu).fold(mtu, u32::min);
    }
    Ok(mtu)
}

/// Reads a size within the range of a parameter.
fn size(n: &Node, at: &str, key: &str, expected: &str) -> Result<ByteCount> {
    let at = format!("{at}.{key}");
    let value: ByteCount = n.as_quantity(&at, expected)?;
    if Parameter::at(key).range.contains(&value.as_bytes()) {
        Ok(value)
    } else {
        Err(n.unexpected(&at, expected))
    }
}

/// Reads what a flow sends, and how.
fn workload(table: &Table, at: &str, flow: &mut CaseFlow) -> Result<()> {
    if let Some(n) = table.get("window") {
        let expected = "bytes on the wire from 1 to 1073725440, such as \"64K\", or \"auto\"";
        flow.spec.window = if n.is_word(&["auto", "default"]) {
            None
        } else {
            WindowBytes::new(size(n, at, "window", expected)?.as_bytes())
        };
    }
    if let Some(n) = table.get("window_method") {
        let choices = [
            ("auto", WindowMethod::Auto),
            ("receiver", WindowMethod::Receiver),
            ("path", WindowMethod::Path),
        ];
        flow.window_method = n.as_choice(&format!("{at}.window_method"), &choices)?;
    }
    if let Some(n) = table.get("streams") {
        let expected = "a number of connections, 1 to 10000";
        flow.spec.streams =
            n.as_count(&format!("{at}.streams"), Parameter::at("streams").range, expected)? as u32;
    }
    if let Some(n) = table.get("length") {
        flow.spec.length = size(n, at, "length", "bytes of one write from 1 to 64M, such as \"128K\"")?;
    }
    if let Some(n) = table.get("congestion") {
        flow.spec.congestion = Some(congestion(n, &format!("{at}.congestion"))?);
    }
    if let Some(n) = table.get("nodelay") {
        flow.spec.nodelay = n.as_bool(&format!("{at}.nodelay"))?;
    }
    if let Some(n) = table.get("zerocopy") {
        let choices = Zerocopy::ALL.map(|zerocopy| (zerocopy.name(), zerocopy));
        flow.spec.zerocopy = n.as_choice(&format!("{at}.zerocopy"), &choices)?;
    }
    if let Some(n) = table.get("background") {
        flow.background = n.as_bool(&format!("{at}.background"))?;
    }
    Ok(())
}

/// Reads the options of a flow's sockets, which only kernels have.
fn sockets(table: &Table, at: &str, sender: Option<&HostSpec>) -> Result<SocketNumbers> {
    let stepped = sender.filter(|host| host.stack.as_ref().is_some_and(|stack| stack.in_steps().is_some()));
    SocketNumbers::try_of(|option| {
        let Some(node) = table.get(option.member).filter(|node| !node.is_word(&["default"])) else {
            return Ok(None);
        };
        let at = format!("{at}.{}", option.member);
        if let Some(host) = stepped {
            return Err(node.origin.error(Problem::Contradiction {
                at,
                found: node.describe(),
                other: format!("stack of host '{}'", host.name),
                rule: format!("{} is an option of kernels; remove it, or the stack", option.kernel),
            }));
        }
        let expected = format!("{}, or \"default\"", option.range());
        let number = match option.notation {
            Notation::Size => node.as_quantity::<ByteCount>(&at, &expected)?.as_bytes(),
            Notation::Number => node.as_count(&at, 0..=option.most, &expected)?,
        };
        match number <= option.most {
            true => Ok(Some(number)),
            false => Err(node.unexpected(&at, &expected)),
        }
    })
}

/// Reads when a flow starts and ends, and which part counts.
fn extent(table: &Table, at: &str, flow: &mut CaseFlow) -> Result<()> {
    if let Some(n) = table.get("start") {
        let expected = "a time up to 24h after the earliest start of flows, such as \"5s\" or 0";
        flow.start = time(n, &format!("{at}.start"), expected)?;
    }
    if let Some(n) = table.get("start_spread") {
        let expected = "the maximum random delay of the start, up to 1h, such as \"100ms\" or 0";
        flow.start_spread = time(n, &format!("{at}.start_spread"), expected)?;
        if flow.start_spread > Nanos::secs(3600) {
            return Err(n.unexpected(&format!("{at}.start_spread"), expected));
        }
    }
    if let Some(n) = table.get("duration") {
        let (at, expected) =
            (format!("{at}.duration"), "a time above 0 and up to 24h, such as \"10s\", omit included");
        flow.spec.duration = time(n, &at, expected)?;
        if flow.spec.duration == Nanos::ZERO {
            return Err(n.unexpected(&at, expected));
        }
    }
    if let Some(n) = table.get("interval") {
        let expected = "the time between two readings, 10ms to 1h, such as \"1s\"";
        flow.spec.interval = time(n, &format!("{at}.interval"), expected)?;
    }
    if let Some(n) = table.get("bytes") {
        flow.spec.bytes = if n.is_word(&["none"]) {
            None
        } else {
            Some(size(n, at, "bytes", "bytes to send in total, such as \"10M\", or \"none\"")?)
        };
    }
    if let Some(n) = table.get("omit") {
        flow.spec.omit = time(n, &format!("{at}.omit"), "a time such as \"2s\" or 0")?;
    }
    Ok(())
}

fn mss(node: &Node, at: &str, family: Family, mtu: u32) -> Result<Option<u32>> {
    if node.is_word(&["default"]) {
        return Ok(None);
    }
    let headers = match family {
        Family::Ipv4 => 40,
        Family::Ipv6 => 60,
    };
    let range = Parameter::at("mss").range;
    let (least, room) = (*range.start(), u64::from(mtu).saturating_sub(headers));
    if room < least {
        let expected =
            format!("\"default\": an MTU of {mtu} is too small for the minimum MSS of {least} bytes");
        return Err(node.unexpected(at, expected));
    }
    let most = room.min(*range.end());
    let why = match most == room {
        true => format!("MTU {mtu} minus {headers} of headers"),
        false => "the maximum in Linux".to_owned(),
    };
    let expected = format!("bytes from {least} to {most} ({why}), or \"default\"");
    Ok(Some(node.as_count(at, least..=most, &expected)? as u32))
}
