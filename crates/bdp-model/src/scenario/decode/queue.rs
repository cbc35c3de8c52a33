//! `queue`: drop-tail, or one that manages itself, with its options as `tc` names them.

use std::ops::RangeInclusive;

use super::super::error::{Problem, ScenarioError};
use super::super::read::check_keys;
use super::super::tree::{Node, Origin, Table, Value};
use super::impairment;
use super::item::{Result, time};
use crate::link::{DirectionConfig, QueueLimit};
use crate::queue::{Cake, Codel, DualPi2, FqCodel, Isolation, Pie, Queue, Red, Tins};
use crate::units::{ByteCount, Nanos};

/// Reads it; what is absent stays as it is.
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
            config.limit = queue.default_limit();
            return Ok(());
        }
    };
    let expected = match queue.takes_bytes() {
        true => "a queue limit: packets such as 1000 or \"1000p\", or IP bytes with a unit such as \"400K\"",
        false => "a queue limit in packets, such as 1000 or \"1000p\"",
    };
    match impairment::queue_length(limit.0, &limit.1, expected)? {
        Some(packets @ QueueLimit::Packets(_)) => config.limit = packets,
        Some(bytes @ QueueLimit::Bytes(_)) if queue.takes_bytes() => config.limit = bytes,
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
                flows: read.count("flows", config.flows, 1..=65_536)?,
                quantum_bytes: read.bytes("quantum", config.quantum_bytes, 256..=1 << 20)?,
            })
        }
        Queue::Pie(config) => {
            read.check(&["target", "tupdate", "alpha", "beta", "ecn"])?;
            Queue::Pie(Pie {
                target: read.time("target", config.target)?,
                tupdate: read.period("tupdate", config.tupdate)?,
                alpha: read.count("alpha", config.alpha, 0..=32)?,
                beta: read.count("beta", config.beta, 0..=32)?,
                ecn: read.flag("ecn", config.ecn)?,
            })
        }
        Queue::Red(config) => Queue::Red(red(&read, config)?),
        Queue::Cake(config) => {
            read.check(&["diffserv", "isolation", "rtt"])?;
            let tins = [
                ("besteffort", Tins::Besteffort),
                ("diffserv3", Tins::Diffserv3),
                ("diffserv4", Tins::Diffserv4),
            ];
            let isolations = [("flows", Isolation::Flows), ("triple-isolate", Isolation::TripleIsolate)];
            Queue::Cake(Cake {
                diffserv: read.choice("diffserv", config.diffserv, &tins)?,
                isolation: read.choice("isolation", config.isolation, &isolations)?,
                rtt: read.time("rtt", config.rtt)?,
            })
        }
        Queue::DualPi2(config) => {
            const KEYS: [&str; 8] = [
                "target",
                "tupdate",
                "alpha",
                "beta",
                "coupling_factor",
                "step_thresh",
                "drop_on_overload",
                "c_protection",
            ];
            read.check(&KEYS)?;
            Queue::DualPi2(DualPi2 {
                target: read.time("target", config.target)?,
                tupdate: read.period("tupdate", config.tupdate)?,
                alpha: read.count("alpha", config.alpha, 1..=65_535)?,
                beta: read.count("beta", config.beta, 1..=65_535)?,
                coupling_factor: read.count("coupling_factor", config.coupling_factor, 1..=255)?,
                step_thresh: read.time("step_thresh", config.step_thresh)?,
                drop_on_overload: read.flag("drop_on_overload", config.drop_on_overload)?,
                c_protection_percent: read.count("c_protection", config.c_protection_percent, 0..=100)?,
            })
        }
    })
}

/// RED's thresholds must leave room between them, and its burst must suit the lower one.
fn red(read: &Reader<'_>, config: Red) -> Result<Red> {
    read.check(&["min", "max", "avpkt", "burst", "probability", "ecn", "harddrop"])?;
    let [min, max, avpkt] =
        [("min", config.min_bytes), ("max", config.max_bytes), ("avpkt", config.avpkt_bytes)]
            .map(|(key, default)| read.bytes(key, default, 64..=1 << 20));
    let (min, max, avpkt) = (min?, max?, avpkt?);
    if max <= min {
        let at = if read.options.get("max").is_some() { "max" } else { "min" };
        return Err(read.unexpected(at, "thresholds with max above min"));
    }
    // tc's default.
    let burst = (2 * u64::from(min) + u64::from(max)).div_ceil(3 * u64::from(avpkt)) as u32;
    let red = Red {
        min_bytes: min,
        max_bytes: max,
        avpkt_bytes: avpkt,
        burst: read.count(
            "burst",
            if read.options.entries.len() > 1 { burst } else { config.burst },
            1..=10_000,
        )?,
        probability: match read.place("probability") {
            Some((node, at)) => node.as_quantity(&at, "a fraction such as \"2%\" or 0.02")?,
            None => config.probability,
        },
        ecn: read.flag("ecn", config.ecn)?,
        harddrop: read.flag("harddrop", config.harddrop)?,
    };
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

    fn time(&self, key: &str, default: Nanos) -> Result<Nanos> {
        const EXPECTED: &str = "a time from 1us to 1h such as \"5ms\"";
        let Some((node, at)) = self.place(key) else { return Ok(default) };
        let time: Nanos = node.as_quantity(&at, EXPECTED)?;
        let range = Nanos::micros(1)..=Nanos::secs(3600);
        if range.contains(&time) { Ok(time) } else { Err(node.unexpected(&at, EXPECTED)) }
    }

    fn period(&self, key: &str, default: Nanos) -> Result<Nanos> {
        match self.time(key, default)? {
            period if period >= Nanos::millis(1) => Ok(period),
            _ => Err(self.unexpected(key, "a time of at least 1ms such as \"15ms\"")),
        }
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
