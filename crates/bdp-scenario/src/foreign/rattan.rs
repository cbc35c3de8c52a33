//! Imports rattan's configuration: cells, and the links that chain them from left to right and back.

use super::draft::{Draft, ImportError, Imported, quoted};
use super::words::{of_rate, of_share, of_time, rate, time};
use crate::tree::{self, Node, Table, Value};
use bdp_model::units::{ByteCount, Probability, Rate};

type Result<T> = std::result::Result<T, ImportError>;

/// Maximum cells of a direction.
const CELLS_MAX: usize = 100;
/// Link-layer overhead of an IP packet as rattan counts it, bytes.
const LINK_LAYER: &str = "38";

/// Imports a configuration; the left side is the first host.
pub fn import(text: &str) -> Result<Imported> {
    let root = tree::parse(text).map_err(|error| ImportError::new(error.to_string().replace('\n', " ")))?;
    let table = |key: &str| match root.get(key).map(|node| &node.value) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    };
    // Older versions call the cells devices.
    let (Some(cells), Some(links)) = (table("cells").or_else(|| table("devices")), table("links")) else {
        return Err(ImportError::new("a rattan configuration needs [cells] and [links]"));
    };
    let mut draft = Draft::default();
    for (index, (from, to)) in [("left", "right"), ("right", "left")].into_iter().enumerate() {
        for name in chain(links, from, to)? {
            let Some(Value::Table(cell)) = cells.get(&name).map(|node| &node.value) else {
                return Err(ImportError::new(format!("cell '{}' is linked but not defined", tame(&name))));
            };
            self::cell(&name, cell, index, &mut draft)?;
        }
    }
    Ok(draft.finish("Imported from rattan"))
}

/// Returns the cells from one side to the other.
fn chain(links: &Table, from: &str, to: &str) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let mut at = from.to_owned();
    loop {
        let next = match links.get(&at).map(|node| &node.value) {
            Some(Value::Text(next)) => next.clone(),
            _ => {
                return Err(ImportError::new(format!(
                    "'{}' has no link: only chains are supported",
                    tame(&at)
                )));
            }
        };
        // Sides may be numbered: left0.
        if next.trim_end_matches(|c: char| c.is_ascii_digit()) == to {
            return Ok(names);
        }
        if names.contains(&next) || names.len() == CELLS_MAX {
            return Err(ImportError::new(format!("the links from {from} form a loop at '{}'", tame(&next))));
        }
        names.push(next.clone());
        at = next;
    }
}

fn cell(name: &str, cell: &Table, index: usize, draft: &mut Draft) -> Result<()> {
    let kind = text(cell, "type").unwrap_or_default().to_owned();
    let left_out =
        |draft: &mut Draft, what: &str| draft.left_out.push(format!("cell '{}': {what}", tame(name)));
    let keys = &mut draft.directions[index];
    match kind.as_str() {
        "Bw" | "BwReplay" => {
            if keys.has("rate") {
                left_out(draft, "a second rate in one direction; write a second link behind a router");
                return Ok(());
            }
            if kind == "Bw" {
                let Some(node) = cell.get("bandwidth") else { return Ok(()) };
                keys.set("rate", of_rate(bandwidth(node)?));
                let link_layer = text(cell, "bw_type") == Some("LinkLayer");
                keys.set("overhead", if link_layer { LINK_LAYER } else { "0" }.to_owned());
            } else {
                let file = text(cell, "trace").or_else(|| text(cell, "mahimahi_trace")).unwrap_or_default();
                let Some(file) = Some(file)
                    .filter(|file| !file.is_empty() && !file.ends_with(".json") && !file.ends_with(".toml"))
                else {
                    left_out(draft, "a trace that is not in mahimahi's format");
                    return Ok(());
                };
                keys.set("rate", format!("{{ trace = {} }}", quoted(file)));
                keys.set("overhead", "0".to_owned());
            }
            queue(name, cell, index, draft)
        }
        "Delay" => {
            let own = match cell.get("delay") {
                Some(node) => time(&plain(node))?,
                None => return Ok(()),
            };
            if keys.has("delay") {
                left_out(draft, "a second delay in one direction; add it to the first");
            } else {
                keys.set("delay", format!("\"{}\"", of_time(own)));
            }
            Ok(())
        }
        "Loss" => {
            let pattern: Vec<f64> = match cell.get("pattern").map(|node| &node.value) {
                Some(Value::Array(all)) => all.iter().filter_map(|node| plain(node).parse().ok()).collect(),
                _ => Vec::new(),
            };
            let [first, rest @ ..] = pattern.as_slice() else { return Ok(()) };
            let share = Probability::new(*first)
                .ok_or_else(|| ImportError::new(format!("a loss of {first} is not a fraction")))?;
            keys.set("loss", format!("\"{}\"", of_share(share)));
            if !rest.is_empty() {
                left_out(draft, "the losses after a loss; only the first rate is used");
            }
            Ok(())
        }
        "TokenBucket" => {
            let (Some(rate), Some(burst)) = (cell.get("rate"), cell.get("burst")) else {
                left_out(draft, "a token bucket without a rate or a burst");
                return Ok(());
            };
            let burst: ByteCount =
                plain(burst).parse().map_err(|_| ImportError::new("a burst that is not a size"))?;
            let bytes = burst.as_bytes().max(1500);
            keys.set("policer", format!("{{ rate = {}, burst = \"{bytes}B\" }}", of_rate(bandwidth(rate)?)));
            left_out(draft, "packets that the token bucket would queue are dropped");
            Ok(())
        }
        "Shadow" | "Spy" => Ok(()),
        "" => Err(ImportError::new(format!("the cell '{}' has no type", tame(name)))),
        other => {
            left_out(draft, &format!("its type {}", tame(other)));
            Ok(())
        }
    }
}

fn queue(name: &str, cell: &Table, index: usize, draft: &mut Draft) -> Result<()> {
    let empty = Table::default();
    let config = match cell.get("queue_config").map(|node| &node.value) {
        Some(Value::Table(config)) => config,
        _ => &empty,
    };
    let (packets, bytes) = (config.get("packet_limit").map(plain), config.get("byte_limit").map(plain));
    let limit = match (&packets, &bytes) {
        (Some(packets), _) => packets.clone(),
        (None, Some(bytes)) => format!("\"{bytes}B\""),
        (None, None) => "\"none\"".to_owned(),
    };
    if packets.is_some() && bytes.is_some() {
        draft.left_out.push(format!("cell '{}': its limit in bytes, beside that in packets", tame(name)));
    }
    match text(cell, "queue").unwrap_or("Infinite") {
        "Infinite" => draft.directions[index].set("limit", "\"none\"".to_owned()),
        "DropTail" => draft.directions[index].set("limit", limit),
        "CoDel" => {
            let mut table = "kind = \"codel\"".to_owned();
            for key in ["target", "interval"] {
                if let Some(node) = config.get(key) {
                    table.push_str(&format!(", {key} = \"{}\"", of_time(time(&plain(node))?)));
                }
            }
            if let Some(packets) = packets {
                table.push_str(&format!(", limit = {packets}"));
            } else if bytes.is_some() {
                draft
                    .left_out
                    .push(format!("cell '{}': its limit in bytes; CoDel's is in packets", tame(name)));
            }
            draft.directions[index].set("queue", format!("{{ {table} }}"));
        }
        other => {
            draft.left_out.push(format!(
                "cell '{}': its queue {}; drop-tail in its place",
                tame(name),
                tame(other)
            ));
            draft.directions[index].set("limit", limit);
        }
    }
    Ok(())
}

/// Reads `"30Mbps"`, which is in bits here, or `{ gbps = 1, bps = 200000000 }`.
fn bandwidth(node: &Node) -> Result<Rate> {
    if let Value::Table(parts) = &node.value {
        let part = |key: &str, unit: u64| {
            parts.get(key).and_then(|n| plain(n).parse::<u64>().ok()).unwrap_or(0).saturating_mul(unit)
        };
        let bps = part("gbps", 1_000_000_000).saturating_add(part("bps", 1));
        return if bps > 0 { Ok(Rate::bps(bps)) } else { Err(ImportError::new("a bandwidth of 0")) };
    }
    let text = plain(node).replace(' ', "").to_ascii_lowercase().replace("bps", "bit");
    rate(&text)
}

fn text<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    match table.get(key).map(|node| &node.value) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn plain(node: &Node) -> String {
    node.plain().trim().to_owned()
}

fn tame(text: &str) -> String {
    text.chars().take(60).collect::<String>().escape_debug().to_string()
}
