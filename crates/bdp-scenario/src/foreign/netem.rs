//! Imports `tc qdisc add dev eth0 root netem ...` as a direction. Its options are those of tc-netem(8).

use std::iter::Peekable;
use std::vec::IntoIter;

use super::draft::{Draft, ImportError, Imported, Keys};
use super::words::{count, of_rate, of_share, of_time, percentage, rate, rest, time};
use bdp_model::link::netem::{Netem, TwoStates};
use bdp_model::units::{Nanos, Probability, Rate};

type Result<T> = std::result::Result<T, ImportError>;
type Words<'a> = Peekable<IntoIter<&'a str>>;

/// netem's default limit, packets.
pub(super) const DEFAULT_LIMIT: u64 = 1000;
/// Header of an Ethernet packet beside the IP packet as netem counts it, bytes.
pub(super) const COUNTED_HEADER: i64 = 14;

/// Imports commands: the first is the direction from the first host to the second, another one the way back.
pub fn import(commands: &[&str]) -> Result<Imported> {
    if commands.is_empty() || commands.len() > 2 {
        return Err(ImportError::new(format!(
            "{} netem commands; give one or two, one per direction",
            commands.len()
        )));
    }
    let mut draft = Draft::default();
    for (index, command) in commands.iter().enumerate() {
        let way = ["forward", "reverse"][index];
        let mut left_out = Vec::new();
        draft.directions[index] = Stated::read(command, &mut left_out)?.keys(false, &mut left_out);
        draft.left_out.extend(left_out.into_iter().map(|line| format!("{way}: {line}")));
    }
    Ok(draft.finish("Imported from netem"))
}

/// Returns what a command does to the packets of a device without Ethernet headers; fails if [`Netem`] cannot express it.
pub fn netem_of(command: &str) -> Result<Netem> {
    let mut left_out = Vec::new();
    let stated = Stated::read(command, &mut left_out)?;
    let others = [
        (stated.corrupt.is_some(), "corrupt"),
        (stated.distribution.as_deref().is_some_and(|kind| kind != "uniform"), "distribution"),
    ];
    left_out.extend(others.iter().filter(|(there, _)| *there).map(|(_, option)| (*option).to_owned()));
    if let Some(first) = left_out.first() {
        return Err(ImportError::new(format!("not supported: {first}")));
    }
    let (loss, loss_in_states) = match stated.loss {
        None => (Probability::default(), None),
        Some(StatedLoss::Alone(share)) => (share, None),
        Some(StatedLoss::States { to_bad, to_good, loss_bad, loss_good }) => {
            let loss_bad = loss_bad.unwrap_or_else(|| rest(Probability::default()));
            let loss_good = loss_good.unwrap_or_default();
            (Probability::default(), Some(TwoStates { to_bad, to_good, loss_bad, loss_good }))
        }
    };
    Ok(Netem {
        delay: stated.delay,
        jitter: stated.jitter,
        loss,
        loss_in_states,
        duplicate: stated.duplicate.unwrap_or_default(),
        at_once: stated.at_once.unwrap_or_default(),
        rate: stated.rate.map(|(rate, _)| rate),
        overhead_bytes: stated
            .rate
            .map_or(0, |(_, overhead)| overhead.saturating_add(COUNTED_HEADER).clamp(0, 1000) as u32),
        limit_packets: u32::try_from(stated.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(u32::MAX),
    })
}

/// Loss as a command states it.
#[derive(Debug, Clone, Copy)]
enum StatedLoss {
    Alone(Probability),
    /// Gilbert-Elliott model.
    States {
        to_bad: Probability,
        to_good: Probability,
        loss_bad: Option<Probability>,
        loss_good: Option<Probability>,
    },
}

impl StatedLoss {
    /// Returns the loss as a scenario writes it.
    fn text(self) -> String {
        let share = |p: Probability| format!("\"{}\"", of_share(p));
        match self {
            Self::Alone(p) => share(p),
            Self::States { to_bad, to_good, loss_bad, loss_good } => {
                let mut table = format!("to_bad = {}, to_good = {}", share(to_bad), share(to_good));
                for (key, p) in [("loss_bad", loss_bad), ("loss_good", loss_good)] {
                    table.extend(p.map(|p| format!(", {key} = {}", share(p))));
                }
                format!("{{ {table} }}")
            }
        }
    }
}

/// The settings in a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Stated {
    limit: Option<u64>,
    delay: Nanos,
    jitter: Nanos,
    distribution: Option<String>,
    loss: Option<StatedLoss>,
    corrupt: Option<Probability>,
    duplicate: Option<Probability>,
    at_once: Option<Probability>,
    /// One of this many packets may be sent at once.
    gap: u64,
    rate: Option<(Rate, i64)>,
}

impl Stated {
    fn read(command: &str, left_out: &mut Vec<String>) -> Result<Self> {
        // A comment ends the command.
        let command = command.split(" #").next().unwrap_or_default();
        let options = match command.split_whitespace().position(|word| word == "netem") {
            Some(at) => at + 1,
            None => 0,
        };
        let words: Vec<&str> = command.split_whitespace().skip(options).collect();
        if options == 0 && words.is_empty() {
            return Err(ImportError::new("empty netem command; example: 'delay 50ms loss 1%'"));
        }
        Self::of(words, left_out)
    }

    /// Reads the options of netem.
    pub(super) fn of_words(options: &[String], left_out: &mut Vec<String>) -> Result<Self> {
        Self::of(options.iter().map(String::as_str).collect(), left_out)
    }

    fn of(words: Vec<&str>, left_out: &mut Vec<String>) -> Result<Self> {
        let mut words = words.into_iter().peekable();
        let mut stated = Self::default();
        while let Some(word) = words.next() {
            stated.option(word, &mut words, left_out)?;
        }
        if stated.gap > 1 {
            // Without a share it applies to every such packet.
            let share = stated.at_once.map_or(1.0, Probability::fraction) / stated.gap as f64;
            stated.at_once = Probability::new(share);
        }
        Ok(stated)
    }

    fn option(&mut self, word: &str, words: &mut Words<'_>, left_out: &mut Vec<String>) -> Result<()> {
        match word {
            "limit" => self.limit = Some(count(value(words, word)?)?),
            "delay" | "latency" => {
                self.delay = time(value(words, word)?)?;
                if let Some(jitter) = number(words) {
                    self.jitter = time(jitter)?;
                    correlation(words, "delay", left_out)?;
                }
            }
            "distribution" => self.distribution = Some(value(words, word)?.to_owned()),
            "loss" | "drop" => self.loss(words, left_out)?,
            "corrupt" => {
                self.corrupt = Some(percentage(value(words, word)?)?);
                correlation(words, word, left_out)?;
            }
            "duplicate" => {
                self.duplicate = Some(percentage(value(words, word)?)?);
                correlation(words, word, left_out)?;
            }
            "reorder" => {
                self.at_once = Some(percentage(value(words, word)?)?);
                correlation(words, word, left_out)?;
            }
            "gap" => {
                self.gap = count(value(words, word)?)?;
                if self.gap > 1 {
                    left_out.push("gap: any packet may be sent at once, not every N-th".to_owned());
                }
            }
            "rate" => {
                let rate = rate(value(words, word)?)?;
                let overhead = number(words).map(signed).transpose()?.unwrap_or(0);
                self.rate = Some((rate, overhead));
                if number(words).is_some() {
                    number(words);
                    left_out.push("rate: cells; a packet takes the time of its bytes".to_owned());
                }
            }
            // In the form of 'tc qdisc show'.
            "packetoverhead" => {
                let overhead = signed(value(words, word)?)?;
                self.rate = self.rate.map(|(rate, _)| (rate, overhead));
            }
            "cellsize" | "celloverhead" => {
                value(words, word)?;
                left_out.push(format!("rate: {word}; a packet takes the time of its bytes"));
            }
            "ecn" => left_out.push("ecn: packets are lost, not marked".to_owned()),
            "slot" | "seed" => {
                while words.peek().is_some_and(|next| !OPTIONS.contains(next)) {
                    words.next();
                }
                let why = if word == "slot" { "packets leave one by one" } else { "a scenario has its own" };
                left_out.push(format!("{word}: {why}"));
            }
            other => {
                let shown: String = other.chars().take(40).collect();
                return Err(ImportError::new(format!(
                    "'{}' is not an option of netem; options: {}",
                    shown.escape_debug(),
                    OPTIONS.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn loss(&mut self, words: &mut Words<'_>, left_out: &mut Vec<String>) -> Result<()> {
        let kind = words.next_if(|word| ["random", "state", "gemodel"].contains(word)).unwrap_or("random");
        // 'tc qdisc show' prints the name of each.
        let named = |words: &mut Words<'_>| {
            let names = ["p", "r", "1-h", "1-k", "p13", "p31", "p32", "p23", "p14"];
            words.next_if(|word| kind != "random" && names.contains(word));
        };
        named(words);
        let first = percentage(value(words, "loss")?)?;
        let mut more = Vec::new();
        while more.len() < 4 && kind != "random" {
            named(words);
            let Some(text) = number(words) else { break };
            more.push(percentage(text)?);
        }
        let to_good = more.first().copied().unwrap_or_else(|| rest(first));
        self.loss = Some(match kind {
            // Transition from good to bad, back, and loss in the two states.
            "gemodel" => StatedLoss::States {
                to_bad: first,
                to_good,
                loss_bad: more.get(1).copied(),
                loss_good: more.get(2).copied(),
            },
            "state" => {
                if more.iter().skip(1).any(|p| p.fraction() > 0.0) {
                    left_out.push(
                        "loss state: only two of the four states; p32, p23 and p14 are not supported"
                            .to_owned(),
                    );
                }
                StatedLoss::States { to_bad: first, to_good, loss_bad: None, loss_good: None }
            }
            _ => {
                correlation(words, "loss", left_out)?;
                StatedLoss::Alone(first)
            }
        });
        Ok(())
    }

    /// Returns its rate.
    pub(super) fn stated_rate(&self) -> Option<Rate> {
        self.rate.map(|(rate, _)| rate)
    }

    /// Returns its delay.
    pub(super) const fn stated_delay(&self) -> Nanos {
        self.delay
    }

    /// Returns its limit in packets.
    pub(super) const fn stated_limit(&self) -> Option<u64> {
        self.limit
    }

    /// Removes and returns its rate.
    pub(super) fn take_rate(&mut self) -> Option<Rate> {
        self.rate.take().map(|(rate, _)| rate)
    }

    /// Combines two settings in sequence, this one first.
    pub(super) fn and_then(self, next: &Self, left_out: &mut Vec<String>) -> Result<Self> {
        let both = |name: &str| ImportError::new(format!("two netem, one in the other, both with {name}"));
        let mut all = next.clone();
        if self.at_once.is_some() || next.at_once.is_some() {
            return Err(both("a delay, and one reorders"));
        }
        all.delay = Nanos(self.delay.as_ns().saturating_add(next.delay.as_ns()));
        match (self.jitter > Nanos::ZERO, next.jitter > Nanos::ZERO) {
            (true, true) => return Err(both("jitter")),
            (true, false) => (all.jitter, all.distribution) = (self.jitter, self.distribution),
            _ => {}
        }
        all.loss = match (self.loss, next.loss) {
            (Some(StatedLoss::Alone(a)), Some(StatedLoss::Alone(b))) => {
                let kept = rest(a).fraction() * rest(b).fraction();
                Some(StatedLoss::Alone(rest(Probability::new(kept).unwrap_or_default())))
            }
            (Some(_), Some(_)) => return Err(both("losses")),
            (a, b) => a.or(b),
        };
        let one = |a: Option<Probability>, b: Option<Probability>, name| match (a, b) {
            (Some(_), Some(_)) => Err(both(name)),
            (a, b) => Ok(a.or(b)),
        };
        all.corrupt = one(self.corrupt, next.corrupt, "corruption")?;
        all.duplicate = one(self.duplicate, next.duplicate, "duplication")?;
        match (self.rate, next.rate) {
            (Some((own, _)), Some((other, _))) if own.as_bps() < other.as_bps() => {
                left_out.push("rate: the faster of two".to_owned());
                (all.rate, all.limit) = (self.rate, self.limit);
            }
            (Some(_), Some(_)) => left_out.push("rate: the faster of two".to_owned()),
            (Some(_), None) => (all.rate, all.limit) = (self.rate, self.limit),
            _ => {}
        }
        Ok(all)
    }

    /// Returns the keys of a direction; `waits_elsewhere` means that another queue holds the packets.
    pub(super) fn keys(self, waits_elsewhere: bool, left_out: &mut Vec<String>) -> Keys {
        let mut keys = Keys::default();
        let share = |p: Probability| format!("\"{}\"", of_share(p));
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if let Some((rate, overhead)) = self.rate {
            let beside = overhead.saturating_add(COUNTED_HEADER).clamp(0, 1000) as u64;
            keys.set("rate", of_rate(rate));
            keys.set("overhead", beside.to_string());
            let held = packets_in_delay(rate, beside, self.delay);
            if limit <= held {
                left_out.push(netem_drops(limit, held));
            }
            keys.set("limit", limit.saturating_sub(held).max(1).to_string());
        } else if limit == 0 {
            left_out.push("limit: with 0 netem drops every packet; 'loss 100%' says it".to_owned());
        } else if !waits_elsewhere && self.delay > Nanos::ZERO {
            // With a delay but no rate, the packet limit limits the rate.
            const NO_LIMIT_BPS: u128 = 100_000_000_000;
            let bps = u128::from(limit) * 8 * 1514 * 1_000_000_000 / u128::from(self.delay.as_ns());
            if bps < NO_LIMIT_BPS {
                left_out.push(format!(
                    "limit: netem drops all beyond {limit} packets in its delay of {}, which full packets fill at {} Mbit/s; here none is",
                    of_time(self.delay),
                    bps / 1_000_000
                ));
            }
        }
        match self.at_once {
            Some(_) if self.jitter > Nanos::ZERO => {
                keys.set("delay", format!("\"{}\"", of_time(self.delay)));
                left_out.push(
                    "reorder: the share that netem sends at once; jitter already lets packets overtake"
                        .to_owned(),
                );
            }
            // netem sends these at once and delays the others, which amounts to holding the others back.
            Some(at_once) if self.delay > Nanos::ZERO => {
                let held = rest(at_once);
                keys.set(
                    "reorder",
                    format!("{{ probability = {}, by = \"{}\" }}", share(held), of_time(self.delay)),
                );
            }
            Some(_) => left_out.push("reorder: without a delay it does nothing".to_owned()),
            None if self.delay > Nanos::ZERO => keys.set("delay", format!("\"{}\"", of_time(self.delay))),
            None => {}
        }
        if self.jitter > Nanos::ZERO {
            let kind = match self.distribution.as_deref() {
                None | Some("uniform") => "uniform",
                Some("normal") => "normal",
                Some(other) => {
                    left_out.push(format!("distribution {other}: a normal one in its place"));
                    "normal"
                }
            };
            keys.set("jitter", format!("{{ {kind} = \"{}\", reorder = true }}", of_time(self.jitter)));
        }
        let drawn = [("corrupt", self.corrupt), ("duplicate", self.duplicate)];
        self.loss.into_iter().for_each(|loss| keys.set("loss", loss.text()));
        drawn.into_iter().filter_map(|(key, p)| Some((key, p?))).for_each(|(key, p)| keys.set(key, share(p)));
        keys
    }
}

const OPTIONS: [&str; 16] = [
    "limit",
    "delay",
    "distribution",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "gap",
    "rate",
    "ecn",
    "slot",
    "seed",
    "latency",
    "packetoverhead",
    "cellsize",
    "celloverhead",
];

/// Reports that netem's limit is less than the packets in its delay.
pub(super) fn netem_drops(limit: u64, held: u64) -> String {
    format!(
        "limit: netem drops all beyond {limit} packets, and its delay holds {held} at this rate; use 'limit {}'",
        held.saturating_add(limit)
    )
}

/// Returns the full-size packets in a delay at a rate, which netem counts in its limit.
pub(super) fn packets_in_delay(rate: Rate, overhead: u64, delay: Nanos) -> u64 {
    let bits = u128::from(rate.as_bps()) * u128::from(delay.as_ns()) / 1_000_000_000;
    u64::try_from(bits.div_ceil(u128::from(8 * (1500 + overhead)))).unwrap_or(u64::MAX)
}

fn value<'a>(words: &mut Words<'a>, option: &str) -> Result<&'a str> {
    words.next().ok_or_else(|| ImportError::new(format!("'{option}' has no value")))
}

/// Returns the next word if it begins like a number.
fn number<'a>(words: &mut Words<'a>) -> Option<&'a str> {
    words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.'))
}

fn signed(text: &str) -> Result<i64> {
    text.parse().map_err(|_| ImportError::new(format!("'{text}' is not a number of bytes")))
}

fn correlation(words: &mut Words<'_>, option: &str, left_out: &mut Vec<String>) -> Result<()> {
    if let Some(text) = number(words)
        && percentage(text)?.fraction() > 0.0
    {
        left_out.push(format!("{option}: its correlation; each packet is drawn independently"));
    }
    Ok(())
}
