//! Translates `tc` queueing disciplines to a direction: netem, token buckets, and AQM queues.

use super::draft::{ImportError, Keys};
use super::netem::{COUNTED_HEADER, DEFAULT_LIMIT, Stated, netem_drops, packets_in_delay};
use super::words::{bytes, of_rate, rate, shown, time};
use bdp_model::link::queue::{Queue, QueueValue};
use bdp_model::units::{Nanos, Rate};

type Result<T> = std::result::Result<T, ImportError>;

/// Size of a full packet with the Ethernet header that tc counts, bytes.
const FULL: u64 = 1514;
/// Default queue length of a device, packets.
const DEVICE_PACKETS: u64 = 1000;

/// A queueing discipline or class.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Its handle, `1:` or `1:10`; empty if it has none.
    pub id: String,
    /// Its parent, or `root`.
    pub parent: String,
    /// Its kind: `netem`, `htb`.
    pub kind: String,
    /// The words after the kind.
    pub options: Vec<String>,
}

/// A queueing discipline and its effect.
#[derive(Debug)]
pub(super) enum Discipline {
    Netem(Box<Stated>),
    /// A rate limit and its queue.
    Shaper {
        kind: &'static str,
        rate: Rate,
        overhead: i64,
        limit: Limit,
    },
    /// An AQM queue as a scenario writes it; with the rate of `cake`.
    Queue {
        kind: String,
        text: String,
        rate: Option<(Rate, i64)>,
    },
    /// A FIFO with this limit.
    Fifo(Limit),
    /// A discipline without effect here.
    Plain,
}

/// The limit of a shaper's queue.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    Packets(u64),
    Bytes(u64),
    /// Set by the discipline below it.
    Below,
}

/// Whether a discipline has an effect, so that its class is one that is in use.
pub(super) fn acts(node: &Node) -> bool {
    ["netem", "tbf", "cake"].contains(&node.kind.as_str())
}

/// Applies `change` or `replace`: netem keeps rate, corruption and reordering that are not stated again.
pub(super) fn changed(before: &Node, after: &Node) -> Node {
    let mut node = after.clone();
    if node.kind == "netem" {
        for option in ["rate", "corrupt", "reorder"] {
            let place = before.options.iter().position(|word| word == option);
            if let Some(place) = place.filter(|_| !after.options.iter().any(|word| word == option)) {
                let values = before.options[place + 1..].iter().take_while(|word| is_number(word));
                node.options.push(option.to_owned());
                node.options.extend(values.cloned());
            }
        }
    }
    node
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.')
}

/// The options of a discipline with their values.
struct Options<'a> {
    kind: &'a str,
    words: std::slice::Iter<'a, String>,
}

impl<'a> Options<'a> {
    fn of(node: &'a Node) -> Self {
        Self { kind: &node.kind, words: node.options.iter() }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.words.next().map(String::as_str)
    }

    fn value(&mut self, option: &str) -> Result<&'a str> {
        self.next().ok_or_else(|| ImportError::new(format!("{}: '{option}' has no value", self.kind)))
    }

    fn unknown(&self, word: &str) -> ImportError {
        ImportError::new(format!("{}: option '{}' is not supported", self.kind, shown(word)))
    }
}

impl Discipline {
    /// Reads a discipline. `classes` are its htb classes from the leaf upwards; `has_child` tells whether another discipline is below it.
    pub(super) fn read(
        node: &Node,
        classes: &[&Node],
        has_child: bool,
        left_out: &mut Vec<String>,
    ) -> Result<Self> {
        match node.kind.as_str() {
            "netem" => Ok(Self::Netem(Box::new(Stated::of_words(&node.options, left_out)?))),
            "tbf" => tbf(node, has_child, left_out),
            "htb" => htb(node, classes, has_child, left_out),
            "cake" => cake(node, left_out),
            "pfifo" | "bfifo" => fifo(node),
            "pfifo_fast" | "noqueue" | "mq" | "noop" => Ok(Self::Plain),
            "fq" | "sfq" => {
                left_out.push(format!("{}: flows share one queue without pacing", node.kind));
                Ok(Self::Plain)
            }
            "prio" => {
                left_out.push("prio: its bands; all packets of a direction are treated alike".to_owned());
                Ok(Self::Plain)
            }
            other => match Queue::of_kind(other).filter(|queue| !queue.kind().own_words) {
                Some(read) => queue(node, read, left_out),
                None => Err(ImportError::new(format!(
                    "qdisc '{}' is not supported; supported: netem, tbf, htb, cake, {}, pfifo, bfifo, prio, sfq, fq",
                    shown(other),
                    imported().join(", ")
                ))),
            },
        }
    }
}

/// Reads tc-tbf(8).
fn tbf(node: &Node, has_child: bool, left_out: &mut Vec<String>) -> Result<Discipline> {
    let mut words = Options::of(node);
    let (mut stated, mut burst, mut latency, mut limit) = (None, None, None, None);
    let mut overhead = 0;
    while let Some(word) = words.next() {
        match word {
            "rate" => stated = Some(rate(words.value(word)?)?),
            "burst" | "buffer" | "maxburst" => burst = Some(bytes(words.value(word)?)?),
            "latency" | "lat" => latency = Some(time(words.value(word)?)?),
            "limit" => limit = Some(bytes(words.value(word)?)?),
            "overhead" => overhead = whole(words.value(word)?)?,
            "peakrate" => left_out.push(format!("tbf: peakrate {}", shown(words.value(word)?))),
            "mtu" | "minburst" | "mpu" | "linklayer" => {
                words.value(word)?;
            }
            other => return Err(words.unknown(other)),
        }
    }
    let rate = stated.ok_or_else(|| ImportError::new("tbf: it has no rate"))?;
    let burst = burst.unwrap_or(0);
    if burst > 2 * FULL {
        left_out.push(format!(
            "tbf: its burst of {burst} bytes, sent at once after a pause; here packets always leave at the rate"
        ));
    }
    let queued = match (has_child, limit, latency) {
        (true, ..) => Limit::Below,
        (_, Some(bytes), _) => Limit::Bytes(bytes),
        // Computed as by tc.
        (_, None, Some(latency)) => Limit::Bytes(burst.saturating_add(bits(rate, latency) / 8)),
        (_, None, None) => return Err(ImportError::new("tbf: it has neither limit nor latency")),
    };
    Ok(Discipline::Shaper { kind: "tbf", rate, overhead: COUNTED_HEADER + overhead, limit: queued })
}

/// Reads tc-htb(8): the rate of the class, as far as those above lend it.
fn htb(node: &Node, classes: &[&Node], has_child: bool, left_out: &mut Vec<String>) -> Result<Discipline> {
    let mut words = Options::of(node);
    while let Some(word) = words.next() {
        match word {
            "default" | "r2q" | "direct_packets_stat" | "direct_qlen" | "ver" => {
                words.value(word)?;
            }
            "offload" => {}
            other => return Err(words.unknown(other)),
        }
    }
    let mut may_have: Option<Rate> = None;
    let mut overhead = 0;
    for class in classes.iter().rev() {
        let class = Class::read(class)?;
        overhead = class.overhead;
        let least = class.rate;
        let lent = may_have.map_or(least, |above| if above > least { above } else { least });
        may_have = Some(if lent < class.ceil { lent } else { class.ceil });
        if let Some(burst) = class.burst.filter(|burst| *burst > 2 * FULL) {
            left_out.push(format!("htb: a burst of {burst} bytes, sent at once after a pause; here packets always leave at the rate"));
        }
    }
    let Some(rate) = may_have else { return Ok(Discipline::Plain) };
    let limit = if has_child { Limit::Below } else { Limit::Packets(DEVICE_PACKETS) };
    Ok(Discipline::Shaper { kind: "htb", rate, overhead: COUNTED_HEADER + overhead, limit })
}

struct Class {
    rate: Rate,
    ceil: Rate,
    burst: Option<u64>,
    overhead: i64,
}

impl Class {
    fn read(node: &Node) -> Result<Self> {
        if node.kind != "htb" {
            return Err(ImportError::new(format!(
                "class {}: '{}'; only htb classes are supported",
                shown(&node.id),
                shown(&node.kind)
            )));
        }
        let mut words = Options::of(node);
        let (mut least, mut ceil, mut burst, mut overhead) = (None, None, None, 0);
        while let Some(word) = words.next() {
            match word {
                "rate" => least = Some(rate(words.value(word)?)?),
                "ceil" => ceil = Some(rate(words.value(word)?)?),
                "burst" | "buffer" | "maxburst" => burst = Some(bytes(words.value(word)?)?),
                "overhead" => overhead = whole(words.value(word)?)?,
                "cburst" | "cbuffer" | "cmaxburst" | "prio" | "quantum" | "mtu" | "mpu" | "linklayer"
                | "level" => {
                    words.value(word)?;
                }
                other => return Err(words.unknown(other)),
            }
        }
        let rate =
            least.ok_or_else(|| ImportError::new(format!("class {}: it has no rate", shown(&node.id))))?;
        Ok(Self { rate, ceil: ceil.unwrap_or(rate), burst, overhead })
    }
}

/// Reads tc-cake(8).
fn cake(node: &Node, left_out: &mut Vec<String>) -> Result<Discipline> {
    let mut words = Options::of(node);
    let (mut stated, mut overhead) = (None, 0);
    let mut keys = vec!["kind = \"cake\"".to_owned()];
    while let Some(word) = words.next() {
        match word {
            "bandwidth" => {
                let text = words.value(word)?;
                stated = if text == "unlimited" { None } else { Some(rate(text)?) };
            }
            "unlimited" => {}
            "rtt" => keys.push(format!("rtt = \"{}\"", super::words::of_time(time(words.value(word)?)?))),
            "overhead" => overhead = whole(words.value(word)?)?,
            "besteffort" | "diffserv3" | "diffserv4" => keys.push(format!("diffserv = \"{word}\"")),
            "flows" | "triple-isolate" => keys.push(format!("isolation = \"{word}\"")),
            // Defaults, or without effect here.
            "nonat" | "nowash" | "no-ack-filter" | "split-gso" | "noatm" | "raw" => {}
            "memlimit" | "fwmark" | "mpu" => {
                left_out.push(format!("cake: {word} {}", shown(words.value(word)?)))
            }
            other if is_number(other) => return Err(words.unknown(other)),
            other => left_out.push(format!("cake: {}", shown(other))),
        }
    }
    let text = format!("{{ {} }}", keys.join(", "));
    Ok(Discipline::Queue { kind: "cake".to_owned(), text, rate: stated.map(|rate| (rate, overhead)) })
}

/// Returns the kinds of queues that [`queue`] reads.
fn imported() -> Vec<&'static str> {
    let all = Queue::all().into_iter().map(|queue| queue.kind());
    all.filter(|kind| !kind.own_words).map(|kind| kind.name).collect()
}

/// Reads tc-codel(8), tc-pie(8) and the like: their options have the same names in a scenario.
fn queue(node: &Node, mut queue: Queue, left_out: &mut Vec<String>) -> Result<Discipline> {
    let mut words = Options::of(node);
    let mut keys = vec![format!("kind = \"{}\"", node.kind)];
    while let Some(word) = words.next() {
        if word == "limit" {
            let text = words.value(word)?;
            keys.push(match queue.kind().takes_bytes() {
                true => format!("limit = \"{}B\"", bytes(text)?),
                false => format!("limit = {}", super::words::count(text.trim_end_matches('p'))?),
            });
            continue;
        }
        // A switch is `ecn`, and off `noecn` or `no_ecn`.
        let on = word.strip_prefix("no").map(|key| key.trim_start_matches('_'));
        if let Some(parameter) = queue.parameter(word) {
            let value = match parameter.value {
                QueueValue::Flag(_) | QueueValue::SmallFlag(_) => "true".to_owned(),
                QueueValue::Time(..) | QueueValue::OptionalTime(_) => {
                    format!("\"{}\"", super::words::of_time(time(words.value(word)?)?))
                }
                QueueValue::Bytes(..) => bytes(words.value(word)?)?.to_string(),
                QueueValue::Count(..) | QueueValue::SmallCount(..) => {
                    super::words::count(words.value(word)?)?.to_string()
                }
                QueueValue::Fraction(_) => {
                    format!("\"{}\"", super::words::of_share(super::words::share(words.value(word)?)?))
                }
                QueueValue::Choice(_) => format!("\"{}\"", shown(words.value(word)?)),
            };
            keys.push(format!("{word} = {value}"));
        } else if let Some(key) = on.filter(|key| queue.parameter(key).is_some()) {
            keys.push(format!("{key} = false"));
        } else {
            match word {
                "memory_limit" | "drop_batch" | "bandwidth" => drop(words.value(word)?),
                "bytemode" | "dq_rate_estimator" | "adaptive" | "nodrop" => {
                    left_out.push(format!("{}: {word}", node.kind));
                }
                "nobytemode" | "no_dq_rate_estimator" => {}
                other => return Err(words.unknown(other)),
            }
        }
    }
    if node.kind == "red" {
        keys.extend(lacking_thresholds(node)?);
    }
    Ok(Discipline::Queue { kind: node.kind.clone(), text: format!("{{ {} }}", keys.join(", ")), rate: None })
}

/// Returns the thresholds that the words of RED lack, computed as by tc.
fn lacking_thresholds(node: &Node) -> Result<Vec<String>> {
    let stated = |option: &str| {
        let place = node.options.iter().position(|word| word == option);
        place.and_then(|place| node.options.get(place + 1)).map(|text| bytes(text)).transpose()
    };
    let [limit, min, max] = [stated("limit")?, stated("min")?, stated("max")?];
    let of_others = min.map(|min| min.saturating_mul(3)).or(limit.map(|limit| limit / 4));
    let Some(upper) = max.or(of_others) else { return Ok(Vec::new()) };
    let lower = min.is_none().then(|| format!("min = {}", upper / 3));
    Ok(lower.into_iter().chain(max.is_none().then(|| format!("max = {upper}"))).collect())
}

fn fifo(node: &Node) -> Result<Discipline> {
    let mut words = Options::of(node);
    let mut limit = None;
    while let Some(word) = words.next() {
        match word {
            "limit" => limit = Some(words.value(word)?),
            other => return Err(words.unknown(other)),
        }
    }
    Ok(Discipline::Fifo(match (node.kind.as_str(), limit) {
        ("pfifo", Some(text)) => Limit::Packets(super::words::count(text.trim_end_matches('p'))?),
        ("pfifo", None) => Limit::Packets(DEVICE_PACKETS),
        (_, Some(text)) => Limit::Bytes(bytes(text)?),
        (_, None) => Limit::Bytes(DEVICE_PACKETS * FULL),
    }))
}

/// Reads `rate 1mbit burst 10k drop`, and returns rate and burst of a scenario's policer as TOML.
pub(super) fn policer(words: &[String]) -> Result<(String, String)> {
    let after = |word: &str| {
        let place = words.iter().position(|known| known == word)?;
        words.get(place + 1).map(String::as_str)
    };
    let missing = |what: &str| ImportError::new(format!("police: it has no {what}"));
    let stated = rate(after("rate").ok_or_else(|| missing("rate"))?)?;
    let burst = bytes(after("burst").or_else(|| after("buffer")).ok_or_else(|| missing("burst"))?)?;
    Ok((of_rate(stated), format!("\"{}B\"", burst.max(FULL))))
}

/// Nested disciplines, by effect.
#[derive(Default)]
struct Chain<'a> {
    netem: Option<Stated>,
    shapers: Vec<(&'a str, Rate, i64, Limit)>,
    /// Its kind and its form in a scenario.
    queue: Option<(&'a str, &'a str)>,
    fifo: Option<Limit>,
}

impl<'a> Chain<'a> {
    fn of(disciplines: &'a [Discipline], left_out: &mut Vec<String>) -> Result<Self> {
        let mut all = Self::default();
        for discipline in disciplines {
            match discipline {
                Discipline::Netem(stated) => {
                    all.netem = Some(match all.netem.take() {
                        Some(before) => before.and_then(stated, left_out)?,
                        None => (**stated).clone(),
                    });
                }
                Discipline::Shaper { kind, rate, overhead, limit } => {
                    all.shapers.push((kind, *rate, *overhead, *limit));
                }
                Discipline::Queue { kind, text, rate } => {
                    all.shapers.extend(rate.map(|(rate, overhead)| ("cake", rate, overhead, Limit::Below)));
                    all.queue = Some((kind, text));
                }
                Discipline::Fifo(limit) => all.fifo = Some(*limit),
                Discipline::Plain => {}
            }
        }
        Ok(all)
    }
}

/// Returns the keys of a direction with these nested disciplines; `None` if they have no effect.
pub(super) fn keys(chain: &[Discipline], left_out: &mut Vec<String>) -> Result<Option<Keys>> {
    let Chain { netem, shapers, queue, fifo } = Chain::of(chain, left_out)?;
    let of_netem = netem.as_ref().and_then(Stated::stated_rate);
    let slowest = shapers.iter().min_by_key(|(_, rate, ..)| rate.as_bps()).copied();
    let delay = netem.as_ref().map_or(Nanos::ZERO, Stated::stated_delay);
    let limit = netem.as_ref().and_then(Stated::stated_limit);
    let shaper = slowest.filter(|(_, rate, ..)| of_netem.is_none_or(|own| rate.as_bps() < own.as_bps()));
    for (kind, rate, ..) in &shapers {
        if shaper.is_none_or(|(_, used, ..)| used != *rate) {
            left_out.push(format!(
                "{kind}: its rate of {}; another rate on the path is slower",
                of_rate(*rate).trim_matches('"')
            ));
        }
    }
    let mut keys = match (netem, shaper) {
        (Some(mut stated), Some(_)) => {
            if stated.take_rate().is_some() {
                left_out.push("netem: its rate; another one on the way is slower".to_owned());
            }
            stated.keys(true, left_out)
        }
        (Some(stated), None) => stated.keys(false, left_out),
        (None, _) => Keys::default(),
    };
    if let Some((_, rate, overhead, own)) = shaper {
        let overhead = overhead.clamp(0, 1000) as u64;
        keys.set("rate", of_rate(rate));
        keys.set("overhead", overhead.to_string());
        let waiting = match own {
            Limit::Below => match (fifo, limit) {
                (Some(limit), _) => limit,
                (None, limit) => {
                    let inside = limit.unwrap_or(DEFAULT_LIMIT);
                    let held = packets_in_delay(rate, overhead, delay);
                    if inside <= held {
                        left_out.push(netem_drops(inside, held));
                    }
                    Limit::Packets(inside.saturating_sub(held).max(1))
                }
            },
            own => own,
        };
        match (queue, waiting) {
            (Some(_), _) | (None, Limit::Below) => {}
            (None, Limit::Packets(packets)) => keys.set("limit", packets.max(1).to_string()),
            (None, Limit::Bytes(bytes)) => keys.set("limit", format!("\"{}B\"", bytes.max(1500 + overhead))),
        }
    }
    match queue {
        Some((_, text)) if keys.has("rate") => {
            keys.remove("limit");
            keys.set("queue", text.to_owned());
        }
        Some((kind, _)) => left_out.push(format!("{kind}: no queue without a rate")),
        None if fifo.is_some() && !keys.has("rate") => {
            left_out.push("its queue: no queue without a rate".to_owned());
        }
        None => {}
    }
    Ok(Some(keys).filter(|keys| !keys.is_none()))
}

fn whole(text: &str) -> Result<i64> {
    text.parse().map_err(|_| ImportError::new(format!("'{}' is not a number of bytes", shown(text))))
}

fn bits(rate: Rate, time: Nanos) -> u64 {
    u64::try_from(u128::from(rate.as_bps()) * u128::from(time.as_ns()) / 1_000_000_000).unwrap_or(u64::MAX)
}
