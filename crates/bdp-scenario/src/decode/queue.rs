//! `queue`: drop-tail or an AQM, with its options named as in `tc`.

use std::ops::RangeInclusive;

use super::impairment;
use super::item::{Result, time};
use crate::error::{Problem, ScenarioError};
use crate::read::check_keys;
use crate::tree::{Node, Origin, Table, Value};
use bdp_model::link::queue::{Queue, QueueParameter, QueueValue, Red};
use bdp_model::link::{DirectionConfig, QueueLimit};
use bdp_model::units::{ByteCount, Nanos, Probability};

/// Reads the queue; absent keys leave the configuration unchanged.
pub(super) fn apply(table: &Table, at: &str, config: &mut DirectionConfig) -> Result<()> {
    if let Some(node) = table.get("queue_samples") {
        const EXPECTED: &str =
            "the time between two readings, from 100us to 1h such as \"10ms\", or \"none\"";
        let at = format!("{at}.queue_samples");
        config.queue_samples = match node.is_word(&["none"]) {
            true => None,
            false => Some(time(node, &at, EXPECTED)?),
        };
    }
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

/// Whether a table is a whole queue rather than a path to one of its options.
pub(super) fn is_value(table: &Table) -> bool {
    table.get("kind").is_some()
}

/// Sets the limit of an AQM queue, and refuses what cannot be combined with it. `find` looks up a key of the direction.
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
    if config.rate.is_none() && config.rate_over_time.is_none() {
        let rule = "it has no queue; give it a rate such as rate = \"10M\"";
        return contradiction(node, "queue", format!("\"{name}\""), "a link without a rate", rule);
    }
    if let Some(n) = find("ecn_threshold").filter(|_| config.ecn_threshold.is_some()) {
        let rule = "ecn_threshold is only for drop-tail; for this queue use ecn = true and ce_threshold";
        return contradiction(n, "ecn_threshold", n.describe(), &format!("queue = \"{name}\""), rule);
    }
    let own = match &node.value {
        Value::Table(options) => options.get("limit"),
        _ => None,
    };
    let limit = match (own, find("limit")) {
        (Some(own), Some(other)) => {
            let rule = "give the limit in only one of them";
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
            config.limit = queue.kind().limit;
            return Ok(());
        }
    };
    let expected = match queue.kind().takes_bytes() {
        true => "a queue limit: packets such as 1000 or \"1000p\", or IP bytes with a unit such as \"400K\"",
        false => "a queue limit in packets, such as 1000 or \"1000p\"",
    };
    match impairment::queue_length(limit.0, &limit.1, expected)? {
        Some(packets @ QueueLimit::Packets(_)) => config.limit = packets,
        Some(bytes @ QueueLimit::Bytes(_)) if queue.kind().takes_bytes() => config.limit = bytes,
        _ => return Err(limit.0.unexpected(&limit.1, expected)),
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

fn with(mut queue: Queue, options: &Table, at: &str) -> Result<Queue> {
    let read = Reader { options, at, name: queue.name() };
    let mut parameters = queue.parameters();
    let known: Vec<&str> = parameters.iter().map(|parameter| parameter.key).collect();
    read.check(&known)?;
    for QueueParameter { key, value, .. } in &mut parameters {
        match value {
            QueueValue::Time(time, least) => **time = read.time(key, **time, *least)?,
            QueueValue::OptionalTime(time) => **time = read.time_or_none(key, **time)?,
            QueueValue::Count(count, range) | QueueValue::SmallCount(count, range) => {
                **count = read.count(key, **count, range.clone())?;
            }
            QueueValue::Bytes(bytes, range) => **bytes = read.bytes(key, **bytes, range.clone())?,
            QueueValue::Flag(flag) | QueueValue::SmallFlag(flag) => **flag = read.flag(key, **flag)?,
            QueueValue::Fraction(fraction) => **fraction = read.fraction(key, **fraction)?,
            QueueValue::Choice(choice) => {
                let words: Vec<(&str, usize)> =
                    choice.words().iter().zip(0..).map(|((word, _), index)| (*word, index)).collect();
                let chosen = read.choice(key, choice.index(), &words)?;
                choice.choose(chosen);
            }
        }
    }
    match queue {
        Queue::Red(config) => red(&read, config).map(Queue::Red),
        other => Ok(other),
    }
}

/// Checks that RED's thresholds leave room between them and that its burst suits the lower one; the default burst is tc's.
fn red(read: &Reader<'_>, config: Red) -> Result<Red> {
    let Red { min_bytes: min, max_bytes: max, avpkt_bytes: avpkt, .. } = config;
    if max <= min {
        let at = if read.options.get("max").is_some() { "max" } else { "min" };
        return Err(read.unexpected(at, "thresholds with max above min"));
    }
    let keeps_burst = read.options.get("burst").is_some() || read.options.entries.len() <= 1;
    let burst = (2 * u64::from(min) + u64::from(max)).div_ceil(3 * u64::from(avpkt)) as u32;
    let red = Red { burst: if keeps_burst { config.burst } else { burst }, ..config };
    if red.weight_log().is_none() {
        let least = min / avpkt + 1;
        return Err(read.unexpected(
            "burst",
            &format!("packets that may arrive in a burst, at least min / avpkt: {least}"),
        ));
    }
    Ok(red)
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

    fn time(&self, key: &str, default: Nanos, least: Nanos) -> Result<Nanos> {
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        let expected = format!("a time from {} to 1h such as \"5ms\"", least.to_string().replace(' ', ""));
        let time: Nanos = node.as_quantity(&at, &expected)?;
        let range = least..=Nanos::secs(3600);
        if range.contains(&time) { Ok(time) } else { Err(node.unexpected(&at, expected)) }
    }

    fn time_or_none(&self, key: &str, default: Option<Nanos>) -> Result<Option<Nanos>> {
        match self.place(key) {
            Some((node, _)) if node.is_word(&["none"]) => Ok(None),
            Some(_) => self.time(key, Nanos::ZERO, Nanos::micros(1)).map(Some),
            None => Ok(default),
        }
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool> {
        self.place(key).map_or(Ok(default), |(node, at)| node.as_bool(&at))
    }

    fn fraction(&self, key: &str, default: Probability) -> Result<Probability> {
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        node.as_quantity(&at, "a fraction such as \"2%\" or 0.02")
    }

    fn unexpected(&self, key: &str, expected: &str) -> ScenarioError {
        match self.place(key) {
            Some((node, at)) => node.unexpected(&at, expected),
            None => Origin::default().error(Problem::Missing {
                what: format!("{}.{key}", self.at),
                expected: expected.to_owned(),
            }),
        }
    }

    fn choice<T: Copy>(&self, key: &str, default: T, choices: &[(&str, T)]) -> Result<T> {
        self.place(key).map_or(Ok(default), |(node, at)| node.as_choice(&at, choices))
    }

    fn count(&self, key: &str, default: u32, range: RangeInclusive<u64>) -> Result<u32> {
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        Ok(node.as_count(&at, range, &expected)? as u32)
    }

    fn bytes(&self, key: &str, default: u32, range: RangeInclusive<u64>) -> Result<u32> {
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        let bytes: ByteCount = node.as_quantity(&at, "IP bytes such as 1514")?;
        if range.contains(&bytes.as_bytes()) {
            return Ok(bytes.as_bytes() as u32);
        }
        Err(node.unexpected(&at, format!("IP bytes from {} to {}", range.start(), range.end())))
    }
}
