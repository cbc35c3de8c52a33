//! `[[flow]]`: who sends to whom, how, and for how long.

use std::collections::BTreeMap;

use super::super::error::{Problem, hint};
use super::super::read::check_keys;
use super::super::tree::{Node, Table};
use super::super::{Family, FlowSpec, LinkSpec, WindowMethod};
use super::host::congestion;
use super::{Result, list, place, time};
use crate::units::{ByteCount, Nanos};

const FLOW_KEYS: [&str; 13] = [
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
    "duration",
    "bytes",
    "omit",
];
/// 65535 << 14, RFC 7323, section 2.3.
const WINDOW_MAX_BYTES: u64 = 1_073_725_440;

/// The flows in the order of the file.
pub(super) fn flows(
    root: &Table,
    family: Family,
    links: &[LinkSpec],
    names: &[String],
    congestions: &BTreeMap<String, String>,
) -> Result<Vec<FlowSpec>> {
    let all = list(root, "flow", "write [[flow]] with from = \"near\" and to = \"far\"")?;
    let build = |(i, node): (usize, &Node)| {
        let at = place("flow", i, all.len());
        let table = node.as_table(&at)?;
        check_keys(table, "[[flow]]", &FLOW_KEYS)?;
        let (from, to, link) = ends(node, table, &at, links, names)?;
        let default = congestions.get(&from).map_or("cubic", String::as_str);
        let mut flow = FlowSpec {
            from,
            to,
            window: None,
            window_method: WindowMethod::Auto,
            streams: 1,
            length: ByteCount::kib(128),
            mss: None,
            congestion: default.to_owned(),
            nodelay: false,
            start: Nanos::ZERO,
            duration: Nanos::secs(10),
            bytes: None,
            omit: Nanos::secs(2),
        };
        workload(table, &at, &mut flow)?;
        if let Some(n) = table.get("mss") {
            flow.mss = mss(n, &format!("{at}.mss"), family, link.config.mtu)?;
        }
        if flow.omit >= flow.duration {
            let (n, key) = match (table.get("omit"), table.get("duration")) {
                // The one that a sweep or an override put there is the one to name.
                (Some(o), Some(d)) if d.origin.by.is_some() && o.origin.by.is_none() => (d, "duration"),
                (Some(o), _) => (o, "omit"),
                (None, Some(d)) => (d, "duration"),
                (None, None) => (node, "omit"),
            };
            return Err(n.origin.error(Problem::Contradiction {
                at: format!("{at}.{key}"),
                found: n.describe(),
                other: if key == "omit" {
                    format!("a duration of {}", flow.duration)
                } else {
                    format!("an omit of {}", flow.omit)
                },
                rule: "omit must be shorter than the duration, or nothing is left to count".into(),
            }));
        }
        Ok(flow)
    };
    all.iter().enumerate().map(build).collect()
}

/// The two ends, swapped where the direction is `reverse`, and the link that joins them.
fn ends<'a>(
    node: &Node,
    table: &Table,
    at: &str,
    links: &'a [LinkSpec],
    names: &[String],
) -> Result<(String, String, &'a LinkSpec)> {
    let end = |key: &str, default: usize| -> Result<String> {
        let at = format!("{at}.{key}");
        let Some(n) = table.get(key) else {
            // One link leaves no doubt.
            return match links {
                [only] => Ok(only.between[default].clone()),
                _ => {
                    let expected =
                        format!("with several links a flow names its hosts, one of {}", names.join(", "));
                    Err(node.origin.error(Problem::Missing { what: at, expected }))
                }
            };
        };
        let host = n.as_text(&at, "the name of a host")?;
        if !names.iter().any(|name| name == host) {
            return Err(n.origin.error(Problem::UnknownHost {
                at,
                host: host.chars().take(60).collect(),
                hint: hint(host, names.iter().map(String::as_str)),
                known: names.join(", "),
            }));
        }
        Ok(host.to_owned())
    };
    let (mut from, mut to) = (end("from", 0)?, end("to", 1)?);
    if let Some(n) = table.get("direction")
        && n.as_choice(&format!("{at}.direction"), &[("forward", false), ("reverse", true)])?
    {
        std::mem::swap(&mut from, &mut to);
    }
    let joined = links.iter().find(|l| from != to && l.between.contains(&from) && l.between.contains(&to));
    match joined {
        Some(link) => Ok((from, to, link)),
        None => {
            let links: Vec<String> = links.iter().map(|l| l.between.join(" - ")).collect();
            let at_node = table.get("to").or_else(|| table.get("from")).unwrap_or(node);
            Err(at_node.origin.error(Problem::NoLink {
                at: at.to_owned(),
                from,
                to,
                links: links.join(", "),
            }))
        }
    }
}

fn workload(table: &Table, at: &str, flow: &mut FlowSpec) -> Result<()> {
    let size = |n: &Node, key: &str, most: u64, expected: &str| -> Result<ByteCount> {
        let at = format!("{at}.{key}");
        let value: ByteCount = n.as_quantity(&at, expected)?;
        if (1..=most).contains(&value.as_bytes()) { Ok(value) } else { Err(n.unexpected(&at, expected)) }
    };
    if let Some(n) = table.get("window") {
        let expected = "bytes on the wire from 1 to 1073725440, such as \"64K\", or \"auto\"";
        flow.window = if n.is_word(&["auto", "default"]) {
            None
        } else {
            Some(size(n, "window", WINDOW_MAX_BYTES, expected)?)
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
        flow.streams = n.as_count(&format!("{at}.streams"), 1..=10_000, expected)? as u32;
    }
    if let Some(n) = table.get("length") {
        flow.length = size(n, "length", 64 << 20, "bytes of one write from 1 to 64M, such as \"128K\"")?;
    }
    if let Some(n) = table.get("congestion") {
        flow.congestion = congestion(n, &format!("{at}.congestion"))?;
    }
    if let Some(n) = table.get("nodelay") {
        flow.nodelay = n.as_bool(&format!("{at}.nodelay"))?;
    }
    if let Some(n) = table.get("duration") {
        let (at, expected) =
            (format!("{at}.duration"), "a time above 0 and up to 24h, such as \"10s\", omit included");
        flow.duration = time(n, &at, expected, Nanos::secs(86_400))?;
        if flow.duration == Nanos::ZERO {
            return Err(n.unexpected(&at, expected));
        }
    }
    if let Some(n) = table.get("bytes") {
        flow.bytes = if n.is_word(&["none"]) {
            None
        } else {
            Some(size(n, "bytes", 1 << 60, "bytes to send in total, such as \"10M\", or \"none\"")?)
        };
    }
    if let Some(n) = table.get("omit") {
        flow.omit = time(n, &format!("{at}.omit"), "a time such as \"2s\" or 0", Nanos::secs(86_400))?;
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
    // Linux takes 88 (TCP_MIN_MSS) and up.
    let most = 65483.min(u64::from(mtu).saturating_sub(headers));
    if most < 88 {
        let expected = format!("\"default\": an MTU of {mtu} leaves no room for the least MSS, 88 bytes");
        return Err(node.unexpected(at, expected));
    }
    let expected = format!("bytes from 88 to {most} (MTU {mtu} less {headers} of headers), or \"default\"");
    Ok(Some(node.as_count(at, 88..=most, &expected)? as u32))
}
