//! `[[traffic]]`: transfers that start and end during a case.

use std::ops::RangeInclusive;

use super::flow::{ends, path_mtu};
use super::item::{Result, list, place};
use super::tcp::congestion;
use crate::error::Problem;
use crate::read::check_keys;
use crate::tree::{Node, Table};
use bdp_model::case::HostSpec;
use bdp_model::case::network::Network;
use bdp_model::case::traffic::{MOST_REQUESTS, MOST_TRANSFERS, Pattern, Size, Traffic};
use bdp_model::units::{ByteCount, Nanos};

const KEYS: [&str; 16] = [
    "name",
    "from",
    "to",
    "direction",
    "congestion",
    "start",
    "duration",
    "pattern",
    "gap",
    "on",
    "off",
    "think",
    "clients",
    "request",
    "connections",
    "size",
];
/// Keys that apply only to some patterns.
const OF_PATTERNS: [&str; 7] = ["gap", "on", "off", "think", "clients", "request", "connections"];
const SIZE_KEYS: [&str; 6] = ["exponential", "pareto", "lognormal", "shape", "sigma", "most"];
/// Default maximum size of a transfer, bytes.
const USUAL_MOST: u64 = 100 << 20;
/// Default size of a request, bytes: that of a short HTTP request.
const USUAL_REQUEST: u64 = 300;
/// Allowed sizes of a request, bytes.
const REQUEST_BYTES: RangeInclusive<u64> = 16..=16 << 20;
const TRANSFER_BYTES: RangeInclusive<u64> = 1..=1 << 40;
const CLIENTS_MAX: u64 = 200;

/// Reads the traffic, in the order of the file.
pub(super) fn traffic(
    root: &Table,
    network: &Network<'_>,
    names: &[String],
    hosts: &[HostSpec],
) -> Result<Vec<Traffic>> {
    if root.get("traffic").is_none() {
        return Ok(Vec::new());
    }
    let all = list(root, "traffic", "write [[traffic]] with from, to, gap and size")?;
    if let (Some(host), Some(node)) =
        (hosts.iter().find(|host| host.stack.as_ref().is_some_and(|s| s.in_steps().is_some())), all.first())
    {
        return Err(node.origin.error(Problem::Contradiction {
            at: "traffic".to_owned(),
            found: "[[traffic]]".to_owned(),
            other: format!("stack of host '{}'", host.name),
            rule: "traffic needs kernels at both ends; remove the stack, or the traffic".to_owned(),
        }));
    }
    let build = |(i, node): (usize, &Node)| {
        let at = place("traffic", i, all.len());
        let table = node.as_table(&at)?;
        check_keys(table, "[[traffic]]", &KEYS)?;
        let (from, to) = ends(node, table, &at, network.links(), names)?;
        path_mtu(node, table, &at, network, [&from, &to])?;
        let sender = hosts.iter().find(|host| host.name == from);
        let words = match table.get("name") {
            Some(n) => n.as_text(&format!("{at}.name"), "a word or two")?.trim().to_owned(),
            None => format!("{from} -> {to}"),
        };
        let traffic = Traffic {
            name: words,
            congestion: match table.get("congestion") {
                Some(n) => Some(congestion(n, &format!("{at}.congestion"))?),
                None => sender.and_then(|host| host.tcp.congestion.clone()),
            },
            start: match table.get("start") {
                Some(n) => time(n, &format!("{at}.start"), Nanos::ZERO)?,
                None => Nanos::ZERO,
            },
            duration: match table.get("duration") {
                Some(n) => time(n, &format!("{at}.duration"), Nanos(1))?,
                None => Nanos::secs(10),
            },
            pattern: pattern(node, table, &at)?,
            size: size(node, table, &at)?,
            from,
            to,
        };
        let most = match traffic.pattern {
            Pattern::RequestResponse { .. } => MOST_REQUESTS,
            _ => MOST_TRANSFERS,
        };
        if traffic.expected() > most {
            let n = ["gap", "think", "duration"].iter().find_map(|key| table.get(key)).unwrap_or(node);
            return Err(n.origin.error(Problem::TooLong {
                what: at,
                found: format!("{} transfers", traffic.expected()),
                most: match traffic.pattern {
                    Pattern::RequestResponse { .. } => {
                        format!("{most}; use fewer clients, a longer think time or a shorter duration")
                    }
                    _ => format!("{most}; use a longer gap or a shorter duration"),
                },
            }));
        }
        Ok(traffic)
    };
    all.iter().enumerate().map(build).collect()
}

fn time(node: &Node, at: &str, least: Nanos) -> Result<Nanos> {
    let expected = "a time up to 24h, such as \"100ms\"";
    let value: Nanos = node.as_quantity(at, expected)?;
    let fits = value >= least && value <= Nanos::secs(86_400);
    if fits { Ok(value) } else { Err(node.unexpected(at, expected)) }
}

fn pattern(node: &Node, table: &Table, at: &str) -> Result<Pattern> {
    #[derive(Clone, Copy)]
    enum Kind {
        Poisson,
        Periodic,
        OnOff,
        RequestResponse,
    }
    let kind = match table.get("pattern") {
        Some(n) => n.as_choice(
            &format!("{at}.pattern"),
            &[
                ("poisson", Kind::Poisson),
                ("periodic", Kind::Periodic),
                ("on-off", Kind::OnOff),
                ("request-response", Kind::RequestResponse),
            ],
        )?,
        None => Kind::Poisson,
    };
    let own: &[&str] = match kind {
        Kind::Poisson | Kind::Periodic => &["gap"],
        Kind::OnOff => &["on", "off"],
        Kind::RequestResponse => &["think", "clients", "request", "connections"],
    };
    if let Some((key, n)) =
        OF_PATTERNS.iter().filter(|key| !own.contains(key)).find_map(|key| table.get(key).map(|n| (key, n)))
    {
        let name = table.get("pattern").map_or_else(|| "\"poisson\"".to_owned(), Node::describe);
        return Err(n.origin.error(Problem::Contradiction {
            at: format!("{at}.{key}"),
            found: n.describe(),
            other: format!("pattern = {name}"),
            rule: format!("that pattern has {}", own.join(", ")),
        }));
    }
    let needed = |key: &str, expected: &str| match table.get(key) {
        Some(n) => time(n, &format!("{at}.{key}"), Nanos(1)),
        None => {
            let what = format!("{at}.{key}");
            Err(node.origin.error(Problem::Missing { what, expected: expected.to_owned() }))
        }
    };
    let thinking = table.get("think").map(|n| thinking(n, &format!("{at}.think"))).transpose()?.flatten();
    let gap = || needed("gap", "the time between two transfers, such as \"100ms\"");
    Ok(match kind {
        Kind::Poisson => Pattern::Poisson { gap: gap()? },
        Kind::Periodic => Pattern::Periodic { gap: gap()? },
        Kind::OnOff => Pattern::OnOff {
            on: needed("on", "the mean time of sending, such as \"1s\"")?,
            off: needed("off", "the mean time of silence, such as \"1s\"")?,
        },
        Kind::RequestResponse => Pattern::RequestResponse {
            think: match thinking {
                Some((think, _)) => think,
                None => needed(
                    "think",
                    "the mean time between an answer and the next request, such as \"500ms\"",
                )?,
            },
            think_fixed: thinking.is_some_and(|(_, fixed)| fixed),
            clients: match table.get("clients") {
                Some(n) => {
                    n.as_count(&format!("{at}.clients"), 1..=CLIENTS_MAX, "a whole number, 1 to 200")? as u32
                }
                None => 1,
            },
            request: match table.get("request") {
                Some(n) => bytes(n, &format!("{at}.request"), REQUEST, REQUEST_BYTES)?,
                None => Size::Fixed { bytes: USUAL_REQUEST },
            },
            kept: match table.get("connections") {
                Some(n) => n.as_choice(&format!("{at}.connections"), &[("kept", true), ("new", false)])?,
                None => true,
            },
        },
    })
}

/// Reads the time of a table and whether it is fixed; `None` for a plain time, which is a mean.
fn thinking(node: &Node, at: &str) -> Result<Option<(Nanos, bool)>> {
    let Ok(parts) = node.as_table(at) else { return Ok(None) };
    check_keys(parts, "think", &["exponential", "fixed"])?;
    let of = |key: &str| parts.get(key).map(|n| time(n, &format!("{at}.{key}"), Nanos(1))).transpose();
    match (of("exponential")?, of("fixed")?) {
        (Some(mean), None) => Ok(Some((mean, false))),
        (None, Some(think)) => Ok(Some((think, true))),
        _ => Err(node.unexpected(at, "a mean time such as \"500ms\", or { fixed = \"500ms\" }")),
    }
}

const SIZE: &str = "bytes of a transfer such as \"100K\", or { pareto = \"30K\", shape = 1.2, most = \"10M\" }, \
                    { lognormal = \"30K\", sigma = 1.5 }, { exponential = \"30K\" }";
const REQUEST: &str = "16 bytes to 16M of a request, such as \"300\" or { exponential = \"2K\" }";

fn size(node: &Node, table: &Table, at: &str) -> Result<Size> {
    let at = format!("{at}.size");
    // On-off transfers end by time.
    let by_time = table.get("pattern").filter(|pattern| pattern.plain() == "on-off");
    match (table.get("size"), by_time) {
        (Some(n), None) => bytes(n, &at, SIZE, TRANSFER_BYTES),
        (None, Some(_)) => Ok(Size::Fixed { bytes: 0 }),
        (Some(n), Some(pattern)) => Err(n.origin.error(Problem::Contradiction {
            at,
            found: n.describe(),
            other: format!("pattern = {}", pattern.describe()),
            rule: "these transfers end by time; remove the size".to_owned(),
        })),
        (None, None) => Err(node.origin.error(Problem::Missing { what: at, expected: SIZE.to_owned() })),
    }
}

/// Reads a size, or its distribution.
fn bytes(n: &Node, at: &str, expected: &str, range: RangeInclusive<u64>) -> Result<Size> {
    let one = |n: &Node, at: &str| -> Result<u64> {
        let value: ByteCount = n.as_quantity(at, expected)?;
        if range.contains(&value.as_bytes()) { Ok(value.as_bytes()) } else { Err(n.unexpected(at, expected)) }
    };
    let Ok(parts) = n.as_table(at) else { return Ok(Size::Fixed { bytes: one(n, at)? }) };
    check_keys(parts, at.rsplit('.').next().unwrap_or(at), &SIZE_KEYS)?;
    let number = |key: &str, usual: f64, least: f64, most: f64| match parts.get(key) {
        None => Ok(usual),
        Some(n) => {
            let value = n.plain().parse::<f64>().ok().filter(|value| *value > least && *value <= most);
            let expected = format!("a number above {least}, up to {most}, such as {usual}");
            value.ok_or_else(|| n.unexpected(&format!("{at}.{key}"), expected))
        }
    };
    let usual_most = USUAL_MOST.min(*range.end());
    let most_bytes = parts.get("most").map_or(Ok(usual_most), |n| one(n, &format!("{at}.most")))?;
    let mean = |key: &str| parts.get(key).map(|n| one(n, &format!("{at}.{key}"))).transpose();
    match (mean("exponential")?, mean("pareto")?, mean("lognormal")?) {
        (Some(mean_bytes), None, None) => Ok(Size::Exponential { mean_bytes }),
        (None, Some(mean_bytes), None) => {
            Ok(Size::Pareto { mean_bytes, shape: number("shape", 1.2, 1.0, 100.0)?, most_bytes })
        }
        (None, None, Some(mean_bytes)) => {
            Ok(Size::Lognormal { mean_bytes, sigma: number("sigma", 1.0, 0.0, 10.0)?, most_bytes })
        }
        _ => Err(n.unexpected(at, expected)),
    }
}
