//! `queue`: drop-tail, or one that manages itself, with its options as `tc` names them.

use super::super::error::Problem;
use super::super::read::check_keys;
use super::super::tree::{Node, Table, Value};
use super::impairment;
use super::item::Result;
use crate::link::{DirectionConfig, QueueLimit};
use crate::parameter::Parameter;
use crate::queue::{Codel, FqCodel, Queue};
use crate::units::{ByteCount, Nanos};

/// Reads it; what is absent stays as it is.
pub(super) fn apply(table: &Table, at: &str, config: &mut DirectionConfig) -> Result<()> {
    let Some(node) = table.get("queue") else { return Ok(()) };
    let at = format!("{at}.queue");
    config.queue = match &node.value {
        Value::Table(options) => {
            let kind = options.get("kind").ok_or_else(|| node.unexpected(&at, expected()))?;
            named(kind, &format!("{at}.kind"))?.map(|queue| with(queue, options, &at)).transpose()?
        }
        _ => named(node, &at)?,
    };
    Ok(())
}

/// Whether a table is a queue by itself, and not a path to one of its options.
pub(super) fn is_value(table: &Table) -> bool {
    table.get("kind").is_some()
}

/// Gives a queue that manages itself its limit, and refuses what does not go with one. `find` finds a key of the direction.
pub(super) fn complete<'a>(
    config: &mut DirectionConfig,
    at: &str,
    find: impl Fn(&str) -> Option<&'a Node>,
) -> Result<()> {
    let (Some(queue), Some(node)) = (config.queue, find("queue")) else { return Ok(()) };
    let name = queue.name();
    let contradiction = |node: &Node, key: &str, found: String, other: &str, rule: &str| {
        let (at, other, rule) = (format!("{at}.{key}"), other.to_owned(), rule.to_owned());
        Err(node.origin.error(Problem::Contradiction { at, found, other, rule }))
    };
    if config.rate.is_none() {
        let rule = "nothing ever waits there, so give it a rate such as rate = \"10M\"";
        return contradiction(node, "queue", format!("\"{name}\""), "a link without a rate", rule);
    }
    if let Some(n) = find("ecn_threshold").filter(|_| config.ecn_threshold.is_some()) {
        let rule = "ecn_threshold is drop-tail's; this queue has ecn = true and ce_threshold";
        return contradiction(n, "ecn_threshold", n.describe(), &format!("queue = \"{name}\""), rule);
    }
    let own = match &node.value {
        Value::Table(options) => options.get("limit"),
        _ => None,
    };
    let limit = match (own, find("limit")) {
        (Some(own), Some(other)) => {
            let rule = "the limit stands in one of both";
            return contradiction(
                own,
                "queue.limit",
                own.describe(),
                &format!("limit = {}", other.describe()),
                rule,
            );
        }
        (Some(own), None) => (own, format!("{at}.queue.limit")),
        (None, Some(other)) => (other, format!("{at}.limit")),
        (None, None) => {
            config.limit = QueueLimit::Packets(queue.default_limit());
            return Ok(());
        }
    };
    const EXPECTED: &str = "packets that may wait, such as 1000 or \"1000p\"";
    match impairment::queue_length(limit.0, &limit.1, EXPECTED)? {
        Some(packets @ QueueLimit::Packets(_)) => config.limit = packets,
        _ => return Err(limit.0.unexpected(&limit.1, EXPECTED)),
    }
    Ok(())
}

fn expected() -> String {
    format!(
        "\"drop-tail\", \"{}\", or a table such as {{ kind = \"codel\", target = \"5ms\" }}",
        Queue::KINDS.join("\", \"")
    )
}

fn named(node: &Node, at: &str) -> Result<Option<Queue>> {
    let name = node.as_text(at, &expected())?;
    if matches!(name, "drop-tail" | "drop_tail") {
        return Ok(None);
    }
    Queue::of_kind(name).map(Some).ok_or_else(|| node.unexpected(at, expected()))
}

fn with(queue: Queue, options: &Table, at: &str) -> Result<Queue> {
    let read = Reader { options, at, name: queue.name() };
    const CODEL: [&str; 4] = ["target", "interval", "ecn", "ce_threshold"];
    let codel = |codel: Codel| -> Result<Codel> {
        Ok(Codel {
            target: read.time("target", codel.target)?,
            interval: read.time("interval", codel.interval)?,
            ecn: read.flag("ecn", codel.ecn)?,
            ce_threshold: read.time_or_none("ce_threshold", codel.ce_threshold)?,
        })
    };
    Ok(match queue {
        Queue::Codel(config) => {
            read.check(&CODEL)?;
            Queue::Codel(codel(config)?)
        }
        Queue::FqCodel(config) => {
            read.check(&[&CODEL[..], &["flows", "quantum"]].concat())?;
            Queue::FqCodel(FqCodel {
                codel: codel(config.codel)?,
                flows: read.count("flows", config.flows)?,
                quantum_bytes: read.bytes("quantum", config.quantum_bytes)?,
            })
        }
    })
}

struct Reader<'a> {
    options: &'a Table,
    at: &'a str,
    name: &'a str,
}

impl Reader<'_> {
    fn check(&self, known: &[&str]) -> Result<()> {
        let table = format!("{}'s table of kind \"{}\"", self.at, self.name);
        check_keys(self.options, &table, &[&["kind", "limit"], known].concat())
    }

    fn place(&self, key: &str) -> Option<(&Node, String)> {
        self.options.get(key).map(|node| (node, format!("{}.{key}", self.at)))
    }

    fn time(&self, key: &str, default: Nanos) -> Result<Nanos> {
        const EXPECTED: &str = "a time from 1us to 1h such as \"5ms\"";
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        let time: Nanos = node.as_quantity(&at, EXPECTED)?;
        let range = Nanos::micros(1)..=Nanos::secs(3600);
        if range.contains(&time) { Ok(time) } else { Err(node.unexpected(&at, EXPECTED)) }
    }

    fn time_or_none(&self, key: &str, default: Option<Nanos>) -> Result<Option<Nanos>> {
        match self.place(key) {
            Some((node, _)) if node.is_word(&["none"]) => Ok(None),
            Some(_) => self.time(key, Nanos::ZERO).map(Some),
            None => Ok(default),
        }
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool> {
        self.place(key).map_or(Ok(default), |(node, at)| node.as_bool(&at))
    }

    fn count(&self, key: &str, default: u32) -> Result<u32> {
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        let range = Parameter::at(&at).range;
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        Ok(node.as_count(&at, range, &expected)? as u32)
    }

    fn bytes(&self, key: &str, default: u32) -> Result<u32> {
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        let bytes: ByteCount = node.as_quantity(&at, "IP bytes such as 1514")?;
        let range = Parameter::at(&at).range;
        if range.contains(&bytes.as_bytes()) {
            return Ok(bytes.as_bytes() as u32);
        }
        Err(node.unexpected(&at, format!("IP bytes from {} to {}", range.start(), range.end())))
    }
}
