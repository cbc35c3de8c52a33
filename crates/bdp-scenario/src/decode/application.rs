//! `reader`, `writer` and `messages` of a flow: how its programs behave if they are slower than the network.

use super::item::Result;
use crate::error::Problem;
use crate::read::check_keys;
use crate::tree::{Node, Table};
use bdp_model::flow::application::{Application, IoPattern, MOST_STREAMS, Messages};
use bdp_model::units::{ByteCount, Nanos, Rate};

/// Keys of a flow that are read here.
pub(super) const KEYS: [&str; 3] = ["reader", "writer", "messages"];
const SLOWEST: Rate = Rate::bps(8_000);
const FASTEST: Rate = Rate::mbps(1_000);
const SHORTEST: Nanos = Nanos::millis(1);
const LONGEST: Nanos = Nanos::secs(3_600);
const PATTERN: &str = "{ rate = \"10M\" }, from 8k to 1G, or { pause = \"300ms\", every = \"1s\" }";
const MESSAGES: &str = "{ size = \"3000\", writes = 2 }: 1 to 16M bytes in 1 to 16 writes";

/// Reads how the programs of a flow with this many streams behave.
pub(super) fn application(table: &Table, at: &str, streams: u32) -> Result<Application> {
    let place = |key: &str| format!("{at}.{key}");
    let pattern = |key: &str| table.get(key).map(|n| pattern(n, &place(key), key)).transpose();
    let application = Application {
        reader: pattern("reader")?,
        writer: pattern("writer")?,
        messages: table.get("messages").map(|n| messages(n, &place("messages"))).transpose()?,
    };
    if let (Some(n), true) = (table.get("messages"), application.writer.is_some()) {
        return Err(n.origin.error(Problem::Contradiction {
            at: place("messages"),
            found: n.describe(),
            other: "a writer".to_owned(),
            rule: "answers decide when the next message is written; remove one of them".to_owned(),
        }));
    }
    if let (Some((key, n)), true) =
        (KEYS.iter().find_map(|key| Some((key, table.get(key)?))), streams > MOST_STREAMS)
    {
        return Err(n.origin.error(Problem::Contradiction {
            at: place(key),
            found: n.describe(),
            other: format!("{streams} streams"),
            rule: format!("at most {MOST_STREAMS} streams can have programs with their own pace"),
        }));
    }
    Ok(application)
}

fn pattern(node: &Node, at: &str, name: &str) -> Result<IoPattern> {
    let Ok(parts) = node.as_table(at) else { return Err(node.unexpected(at, PATTERN)) };
    check_keys(parts, name, &["rate", "pause", "every"])?;
    let time = |key: &str| -> Result<Option<Nanos>> {
        let Some(n) = parts.get(key) else { return Ok(None) };
        let (at, expected) = (format!("{at}.{key}"), "a time from 1ms to 1h, such as \"300ms\"");
        let time: Nanos = n.as_quantity(&at, expected)?;
        if (SHORTEST..=LONGEST).contains(&time) { Ok(Some(time)) } else { Err(n.unexpected(&at, expected)) }
    };
    match (parts.get("rate"), time("pause")?, time("every")?) {
        (Some(n), None, None) => {
            let (at, expected) = (format!("{at}.rate"), "payload per second from 8k to 1G, such as \"10M\"");
            let rate: Rate = n.as_quantity(&at, expected)?;
            match (SLOWEST..=FASTEST).contains(&rate) {
                true => Ok(IoPattern::Rate { rate_bps: rate.as_bps() }),
                false => Err(n.unexpected(&at, expected)),
            }
        }
        (None, Some(pause), Some(every)) if pause < every => Ok(IoPattern::Pauses { pause, every }),
        (None, Some(pause), Some(every)) => {
            let n = parts.get("pause").unwrap_or(node);
            Err(n.origin.error(Problem::Contradiction {
                at: format!("{at}.pause"),
                found: pause.to_string(),
                other: format!("every = {every}"),
                rule: "a pause must be shorter than its period".to_owned(),
            }))
        }
        _ => Err(node.unexpected(at, PATTERN)),
    }
}

fn messages(node: &Node, at: &str) -> Result<Messages> {
    let Ok(parts) = node.as_table(at) else { return Err(node.unexpected(at, MESSAGES)) };
    check_keys(parts, "messages", &["size", "writes"])?;
    let Some(n) = parts.get("size") else { return Err(node.unexpected(at, MESSAGES)) };
    let (size_at, expected) = (format!("{at}.size"), "bytes of a message, 1 to 16M, such as \"3000\"");
    let size: ByteCount = n.as_quantity(&size_at, expected)?;
    if !(1..=16 << 20).contains(&size.as_bytes()) {
        return Err(n.unexpected(&size_at, expected));
    }
    let writes = match parts.get("writes") {
        Some(n) => n.as_count(&format!("{at}.writes"), 1..=16, "a number of writes, 1 to 16")? as u32,
        None => 2,
    };
    Ok(Messages { size_bytes: size.as_bytes(), writes })
}
