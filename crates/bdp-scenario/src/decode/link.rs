//! `[[link]]`: what a link between two hosts does to packets in each direction.

use super::host::{HOST_NAME, is_host_name};
use super::item::{Result, list, place, time};
use super::over_time::{self, Traces};
use super::{impairment, queue};
use crate::error::Problem;
use crate::profile::with_profile;
use crate::read::check_keys;
use crate::tree::{Node, Table, Value};
use bdp_model::case::{Family, LinkSpec, WHOLE_PACKETS};
use bdp_model::link::{Delivery, DirectionConfig, LinkConfig, Medium, QueueLimit, Turns, WindowScaleRewrite};
use bdp_model::sweep::parameter::Parameter;
use bdp_model::units::Nanos;

const DIRECTION_KEYS: [&str; 17] = [
    "rate",
    "delay",
    "loss",
    "limit",
    "queue",
    "queue_samples",
    "overhead",
    "jitter",
    "reorder",
    "outage",
    "duplicate",
    "corrupt",
    "drop_above",
    "policer",
    "ecn_threshold",
    "window_field_max",
    "window_scale",
];
/// Keys of a link that do not belong to a direction.
const LINK_KEYS: [&str; 8] =
    ["profile", "mtu", "half_duplex", "delivery", "forward", "reverse", "capture", "capture_snap"];
/// Maximum delay of a timeline.
const LONGEST_DELAY: Nanos = Nanos::secs(3600);
const DELAY: &str =
    "a one-way delay up to 1h, such as \"20.5ms\" (per direction; the RTT is the sum of both)";

/// Reads the links, in the order of the file.
pub(super) fn links(root: &Table, family: Family, traces: &Traces) -> Result<Vec<LinkSpec>> {
    let all = list(root, "link", "write [[link]] with between = [\"near\", \"far\"]")?;
    let mut out: Vec<LinkSpec> = Vec::with_capacity(all.len());
    for (i, node) in all.iter().enumerate() {
        let at = place("link", i, all.len());
        let link = link(node, &at, family, traces)?;
        let joins = |l: &&LinkSpec| l.between.iter().all(|h| link.between.contains(h));
        if out.iter().find(joins).is_some() {
            let [a, b] = &link.between;
            let what = format!("{at}: a link between {a} and {b}");
            return Err(node.origin.error(Problem::SetTwice { what, other: "above it".into() }));
        }
        out.push(link);
    }
    Ok(out)
}

fn link(node: &Node, at: &str, family: Family, traces: &Traces) -> Result<LinkSpec> {
    let own = node.as_table(at)?;
    let (profile, table) = with_profile(own, at)?;
    let table = &table;
    check_keys(table, "[[link]]", &[&["between"], DIRECTION_KEYS.as_slice(), &LINK_KEYS].concat())?;
    let between = between(node, table, at)?;
    let mtu = table.get("mtu").map_or(Ok(1500), |n| mtu(n, &format!("{at}.mtu"), family))?;
    let mut both = DirectionConfig::default();
    apply(table, at, traces, &mut both)?;
    let config = LinkConfig {
        forward: direction(table, at, "forward", &both, mtu, traces)?,
        reverse: direction(table, at, "reverse", &both, mtu, traces)?,
        mtu,
        medium: match table.get("half_duplex") {
            Some(n) => medium(n, &format!("{at}.half_duplex"))?,
            None => Medium::default(),
        },
        delivery: match table.get("delivery") {
            Some(n) => n.as_choice(
                &format!("{at}.delivery"),
                &[("auto", Delivery::Auto), ("segment", Delivery::Segment), ("super", Delivery::Super)],
            )?,
            None => Delivery::default(),
        },
    };
    if let (Medium::HalfDuplex(_), Some(queue)) =
        (config.medium, config.forward.queue.or(config.reverse.queue))
        && let Some(n) = table.get("half_duplex")
    {
        return Err(n.origin.error(Problem::Contradiction {
            at: format!("{at}.half_duplex"),
            found: n.describe(),
            other: format!("queue = \"{}\"", queue.name()),
            rule: "on a shared medium queues must be drop-tail".into(),
        }));
    }
    let capture = match table.get("capture") {
        Some(n) => capture(n, &format!("{at}.capture"), &between)?,
        None => [false; 2],
    };
    let capture_snap = match table.get("capture_snap") {
        Some(n) => {
            // Less than IPv6 and TCP headers with options reveals nothing about a flow.
            let expected = "bytes of each packet to keep in a capture, 64 to 65535";
            n.as_count(&format!("{at}.capture_snap"), Parameter::at("capture_snap").range, expected)? as u32
        }
        None => WHOLE_PACKETS,
    };
    Ok(LinkSpec { between, config, capture, capture_snap, profile, netem: [None; 2] })
}

fn mtu(node: &Node, at: &str, family: Family) -> Result<u32> {
    let range = Parameter::at("mtu").range;
    let (least, packet) = match family {
        Family::Ipv4 => (*range.start(), "IPv4"),
        // RFC 8200, section 5.
        Family::Ipv6 => (1280, "IPv6"),
    };
    let expected = format!("bytes of an {packet} packet, {least} to {}", range.end());
    Ok(node.as_count(at, least..=*range.end(), &expected)? as u32)
}

/// Reads the direction under `key`: its own values take precedence over those for both. A full-size packet must pass it.
fn direction(
    table: &Table,
    at: &str,
    key: &str,
    both: &DirectionConfig,
    mtu: u32,
    traces: &Traces,
) -> Result<DirectionConfig> {
    let mut config = both.clone();
    let at = format!("{at}.{key}");
    let own = table.get(key).map(|n| n.as_table(&at)).transpose()?;
    if let Some(own) = own {
        check_keys(own, &format!("[link.{key}]"), &DIRECTION_KEYS)?;
        apply(own, &at, traces, &mut config)?;
    }
    let node = |key: &str| own.and_then(|t| t.get(key)).or_else(|| table.get(key));
    queue::complete(&mut config, &at, node)?;
    let packet = u64::from(mtu) + u64::from(config.overhead_bytes);
    if let (QueueLimit::Bytes(limit), Some(n)) = (config.limit, node("limit"))
        && limit.as_bytes() < packet
    {
        return Err(n.origin.error(Problem::Contradiction {
            at: format!("{at}.limit"),
            found: n.describe(),
            other: format!("an MTU of {mtu} and {} bytes of overhead", config.overhead_bytes),
            rule: format!("no full-size packet would pass; use at least {packet} bytes"),
        }));
    }
    if let Some(policer) = config.policer.filter(|p| p.burst.as_bytes() < u64::from(mtu))
        && let Some(n) = node("policer")
    {
        return Err(n.origin.error(Problem::Contradiction {
            at: format!("{at}.policer"),
            found: format!("a burst of {}", policer.burst),
            other: format!("an MTU of {mtu}"),
            rule: format!("no full-size packet would pass; use at least {mtu} bytes"),
        }));
    }
    Ok(config)
}

fn between(node: &Node, table: &Table, at: &str) -> Result<[String; 2]> {
    const EXPECTED: &str = "two different hosts, such as [\"near\", \"far\"]";
    let at = format!("{at}.between");
    let Some(list) = table.get("between") else {
        return Err(node.origin.error(Problem::Missing { what: at, expected: EXPECTED.into() }));
    };
    let Value::Array(pair) = &list.value else { return Err(list.unexpected(&at, EXPECTED)) };
    let [a, b] = pair.as_slice() else { return Err(list.unexpected(&at, EXPECTED)) };
    let name = |n: &Node| {
        let name = n.as_text(&at, HOST_NAME)?;
        if is_host_name(name) { Ok(name.to_owned()) } else { Err(n.unexpected(&at, HOST_NAME)) }
    };
    let (a, b) = (name(a)?, name(b)?);
    if a == b {
        return Err(list.unexpected(&at, EXPECTED));
    }
    Ok([a, b])
}

/// Reads the ends at which packets are captured: `near` and `far`, or the hosts' names, mean the first and second host.
fn capture(node: &Node, at: &str, between: &[String; 2]) -> Result<[bool; 2]> {
    let [first, second] = between;
    let expected = format!(
        "\"near\" (the first host, '{first}'), \"far\" (the second, '{second}'), \"both\" or \"none\""
    );
    match node.as_text(at, &expected)? {
        "none" => Ok([false, false]),
        "both" => Ok([true, true]),
        // A host's own name takes precedence: the first one may be called 'far'.
        host if host == first => Ok([true, false]),
        host if host == second => Ok([false, true]),
        "near" => Ok([true, false]),
        "far" => Ok([false, true]),
        _ => Err(node.unexpected(at, expected)),
    }
}

/// Reads the keys of a direction; absent keys leave the configuration unchanged.
fn apply(table: &Table, at: &str, traces: &Traces, config: &mut DirectionConfig) -> Result<()> {
    if let Some(n) = table.get("rate") {
        over_time::rate(n, &format!("{at}.rate"), traces, config)?;
    }
    if let Some(n) = table.get("delay") {
        let at = format!("{at}.delay");
        config.delay_over_time = match &n.value {
            Value::Table(table) => Some(over_time::delay(table, n, &at, LONGEST_DELAY)?),
            _ => None,
        };
        config.delay = match &config.delay_over_time {
            Some(delay) => delay.at(Nanos::ZERO),
            None => time(n, &at, DELAY)?,
        };
    }
    if let Some(n) = table.get("outage") {
        config.outages = over_time::outages(n, &format!("{at}.outage"))?;
    }
    if let Some(n) = table.get("limit") {
        config.limit = limit(n, &format!("{at}.limit"))?;
    }
    if let Some(n) = table.get("overhead") {
        let expected = "overhead bytes per IP packet, 0 to 1000 (Ethernet: 38)";
        config.overhead_bytes =
            n.as_count(&format!("{at}.overhead"), Parameter::at("overhead").range, expected)? as u32;
    }
    if let Some(n) = table.get("window_field_max") {
        let expected = "a value of the TCP window field, 1 to 65535, or \"none\"";
        config.rewrite.window_field_max = if n.is_word(&["none"]) {
            None
        } else {
            Some(n.as_count(
                &format!("{at}.window_field_max"),
                Parameter::at("window_field_max").range,
                expected,
            )? as u16)
        };
    }
    if let Some(n) = table.get("window_scale") {
        // RFC 7323, section 2.3: the largest shift is 14.
        let expected = "\"strip\", a shift count from 0 to 14, or \"keep\"";
        config.rewrite.window_scale = if n.is_word(&["keep"]) {
            None
        } else if n.is_word(&["strip"]) {
            Some(WindowScaleRewrite::Strip)
        } else {
            let shift =
                n.as_count(&format!("{at}.window_scale"), Parameter::at("window_scale").range, expected)?;
            Some(WindowScaleRewrite::Set(shift as u8))
        };
    }
    queue::apply(table, at, config)?;
    impairment::apply(table, at, config)
}

fn limit(node: &Node, at: &str) -> Result<QueueLimit> {
    const EXPECTED: &str =
        "packets such as 1000 or \"1000p\", wire bytes with a unit such as \"64KiB\", or \"none\"";
    Ok(impairment::queue_length(node, at, EXPECTED)?.unwrap_or(QueueLimit::Unlimited))
}

fn medium(node: &Node, at: &str) -> Result<Medium> {
    const EXPECTED: &str = "{ guard = \"50us\", turn = \"2ms\" }, or \"none\"";
    if node.is_word(&["none"]) {
        return Ok(Medium::FullDuplex);
    }
    let Value::Table(t) = &node.value else { return Err(node.unexpected(at, EXPECTED)) };
    check_keys(t, &format!("{at}'s table"), &["guard", "turn"])?;
    let (Some(guard), Some(turn)) = (t.get("guard"), t.get("turn")) else {
        return Err(node.unexpected(at, EXPECTED));
    };
    let bound = |n: &Node, key: &str, expected| time(n, &format!("{at}.{key}"), expected);
    Ok(Medium::HalfDuplex(Turns {
        guard: bound(guard, "guard", "the gap when the sending end changes, up to 10s, such as \"50us\"")?,
        turn: bound(
            turn,
            "turn",
            "the time that one end sends while the other waits, up to 10s, such as \"2ms\"",
        )?,
    }))
}
