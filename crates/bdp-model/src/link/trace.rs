//! Traces of delivery opportunities in mahimahi's format: one millisecond per line, each an opportunity to deliver
//! [`OPPORTUNITY_BYTES`] bytes.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

pub use crate::link::radio::OPPORTUNITY_BYTES;
use crate::link::radio::Radio;
use crate::units::{Nanos, Rate};

/// Bytes that mahimahi counts in addition to each IP packet.
pub const TRACE_OVERHEAD_BYTES: u32 = 4;

/// Largest trace file, bytes.
pub const TRACE_MAX_BYTES: u64 = 16 << 20;
/// Most opportunities.
const OPPORTUNITIES_MAX: u64 = 10_000_000;
/// Most opportunities in one millisecond: 1.2 Tbit/s.
const AT_ONCE_MAX: u64 = 100_000;
/// Longest trace: a day.
const LONGEST_MS: u64 = 24 * 3_600_000;
/// Longest trace of a radio model.
pub const RADIO_LONGEST: Nanos = Nanos::secs(600);
/// Longest encoded form in a record, bytes.
const ENCODED_MAX_BYTES: usize = 2 << 20;

/// A trace of delivery opportunities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    /// File name in the scenario.
    file: String,
    /// Whether it repeats after its last millisecond.
    repeat: bool,
    /// Milliseconds with opportunities, ascending, and their number.
    at: Vec<(u64, u64)>,
    /// Model that generated it, if not read from a file.
    radio: Option<Radio>,
}

/// Error in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// It is empty.
    #[error("it is empty; a trace has one line per delivery opportunity, with its time in ms")]
    Empty,
    /// A line is not a time.
    #[error("line {line}: '{found}' is not a time in whole ms")]
    NotATime {
        /// Line number, from 1.
        line: usize,
        /// Text of the line, shortened.
        found: String,
    },
    /// A time is before the one above it.
    #[error("line {line}: {found} ms is before the previous time, {before} ms")]
    Back {
        /// Line number, from 1.
        line: usize,
        /// Time of the line.
        found: u64,
        /// Time of the line before.
        before: u64,
    },
    /// It would repeat without ever ending.
    #[error("all its times are 0 ms, so it can't be repeated")]
    Endless,
    /// It exceeds a limit.
    #[error("it is too large: {found}, at most {most}")]
    TooLarge {
        /// Actual size.
        found: String,
        /// Limit.
        most: String,
    },
    /// Its encoded form is damaged.
    #[error("its stored form is damaged")]
    Damaged,
}

impl Trace {
    /// Parses mahimahi's format. `file` is the name in the scenario.
    pub fn parse(file: &str, text: &str) -> Result<Self, TraceError> {
        if text.len() as u64 > TRACE_MAX_BYTES {
            return Err(too_large(format!("{} bytes", text.len()), format!("{TRACE_MAX_BYTES} bytes")));
        }
        let mut at: Vec<(u64, u64)> = Vec::new();
        for (line, words) in (1..).zip(text.lines()) {
            let words = words.trim();
            let found = words.parse::<u64>().ok().filter(|_| !words.starts_with('+'));
            let Some(ms) = found else {
                let found = words.chars().take(40).collect::<String>().escape_debug().to_string();
                return Err(TraceError::NotATime { line, found });
            };
            match at.last_mut() {
                Some((before, _)) if ms < *before => {
                    return Err(TraceError::Back { line, found: ms, before: *before });
                }
                Some((same, count)) if *same == ms => *count += 1,
                _ => at.push((ms, 1)),
            }
        }
        let trace = Self::new(file, true, at)?;
        let stored = trace.encode().len();
        if stored > ENCODED_MAX_BYTES {
            return Err(too_large(
                format!("{stored} bytes in each record"),
                format!("{ENCODED_MAX_BYTES}; use a shorter part of it"),
            ));
        }
        Ok(trace)
    }

    /// Creates a trace from opportunities by millisecond.
    pub fn new(file: &str, repeat: bool, at: Vec<(u64, u64)>) -> Result<Self, TraceError> {
        let Some(&(last, _)) = at.last() else { return Err(TraceError::Empty) };
        if last == 0 {
            return Err(TraceError::Endless);
        }
        if last > LONGEST_MS {
            return Err(too_large(format!("{last} ms long"), format!("{LONGEST_MS} ms (a day)")));
        }
        let all = at.iter().fold(0u64, |all, (_, count)| all.saturating_add(*count));
        if all > OPPORTUNITIES_MAX {
            return Err(too_large(format!("{all} opportunities"), OPPORTUNITIES_MAX.to_string()));
        }
        if let Some((ms, count)) = at.iter().find(|(_, count)| *count > AT_ONCE_MAX) {
            return Err(too_large(format!("{count} opportunities at {ms} ms"), AT_ONCE_MAX.to_string()));
        }
        Ok(Self(Arc::new(Inner { file: file.to_owned(), repeat, at, radio: None })))
    }

    /// Creates a trace from a radio model.
    pub fn of_radio(radio: Radio, repeat: bool) -> Result<Self, TraceError> {
        let all = Self::new("", repeat, radio.opportunities())?;
        Ok(Self(Arc::new(Inner { file: String::new(), repeat, at: all.0.at.clone(), radio: Some(radio) })))
    }

    /// Returns the trace, repeated or not.
    pub fn repeated(&self, repeat: bool) -> Self {
        if repeat == self.0.repeat {
            return self.clone();
        }
        let Inner { file, at, radio, .. } = &*self.0;
        Self(Arc::new(Inner { file: file.clone(), repeat, at: at.clone(), radio: radio.clone() }))
    }

    /// Returns the model that generated it, if not read from a file.
    pub fn radio(&self) -> Option<&Radio> {
        self.0.radio.as_ref()
    }

    /// Returns the file name in the scenario; empty if generated.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// Whether it repeats after its last millisecond.
    pub fn repeats(&self) -> bool {
        self.0.repeat
    }

    /// Returns the milliseconds with opportunities, ascending, and their number; at least one, the last not at 0.
    pub fn opportunities(&self) -> &[(u64, u64)] {
        &self.0.at
    }

    /// Returns its length before it repeats, milliseconds.
    pub fn length_ms(&self) -> u64 {
        self.0.at.last().map_or(1, |(ms, _)| *ms)
    }

    /// Returns the mean rate of the whole trace.
    pub fn mean(&self) -> Rate {
        let all: u64 = self.0.at.iter().map(|(_, count)| count).sum();
        Rate::bps((all * OPPORTUNITY_BYTES * 8 * 1_000 / self.length_ms()).max(1))
    }

    /// Returns the rate of the millisecond with the most opportunities.
    pub fn peak(&self) -> Rate {
        let most = self.0.at.iter().map(|(_, count)| *count).max().unwrap_or(0);
        Rate::bps(most * OPPORTUNITY_BYTES * 8 * 1_000)
    }

    /// Encodes the number of each millisecond from 0 on, as runs: `A` is none, `B` one, `Y` 24, and `(30)` any number. Decimals
    /// after it are the length of the run, 1 if absent.
    fn encode(&self) -> String {
        let mut text = String::new();
        let (mut next, mut run) = (0, (0, 0));
        for &(ms, count) in &self.0.at {
            if ms > next {
                push_run(&mut text, &mut run, 0, ms - next);
            }
            push_run(&mut text, &mut run, count, 1);
            next = ms + 1;
        }
        push_run(&mut text, &mut run, u64::MAX, 0);
        text
    }

    fn decode(text: &str) -> Option<Vec<(u64, u64)>> {
        let mut at = Vec::new();
        let (mut rest, mut ms, mut all) = (text, 0u64, 0u64);
        while let Some(first) = rest.chars().next() {
            let count;
            if first == '(' {
                let end = rest.find(')')?;
                count = rest[1..end].parse().ok()?;
                rest = &rest[end + 1..];
            } else {
                count = u64::from(u32::from(first).checked_sub(u32::from('A')).filter(|&n| n <= NAMED)?);
                rest = &rest[1..];
            }
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let run: u64 = if digits == 0 { 1 } else { rest[..digits].parse().ok()? };
            rest = &rest[digits..];
            if count > 0 {
                all = all.saturating_add(count.saturating_mul(run));
                if all > OPPORTUNITIES_MAX {
                    return None;
                }
                at.extend((ms..ms.checked_add(run)?).map(|ms| (ms, count)));
            }
            ms = ms.checked_add(run)?;
        }
        Some(at)
    }
}

/// Largest number with its own letter.
const NAMED: u32 = 24;

/// Extends the run, or writes it and starts another.
fn push_run(text: &mut String, run: &mut (u64, u64), count: u64, length: u64) {
    if run.0 == count {
        run.1 += length;
        return;
    }
    let (of, long) = std::mem::replace(run, (count, length));
    if long == 0 {
        return;
    }
    match u8::try_from(of) {
        Ok(of) if u32::from(of) <= NAMED => text.push(char::from(b'A' + of)),
        _ => text.push_str(&format!("({of})")),
    }
    if long > 1 {
        text.push_str(&long.to_string());
    }
}

fn too_large(found: String, most: String) -> TraceError {
    TraceError::TooLarge { found, most }
}

/// Writes `lte.trace, 60 s, 9.62 Mbit/s in the mean`.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.length_ms() as f64 / 1e3;
        let file = if self.0.radio.is_some() { "model of a radio" } else { self.file() };
        write!(f, "{file}, {seconds} s, {} in the mean", self.mean())
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    /// Name of the file that it was read from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    file: String,
    /// Whether it starts again at its end.
    repeat: bool,
    /// Opportunities to deliver 1504 bytes in each millisecond: `A` none, `B` one, `Y` 24, `(30)` any number; digits after it are the
    /// number of milliseconds for which it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opportunities: Option<String>,
    /// The model of a radio channel that it was drawn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    radio: Option<Radio>,
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Inner { file, repeat, radio, .. } = &*self.0;
        let opportunities = radio.is_none().then(|| self.encode());
        Stored { file: file.clone(), repeat: *repeat, opportunities, radio: radio.clone() }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { file, repeat, opportunities, radio } = Stored::deserialize(deserializer)?;
        let read = || match (opportunities, radio) {
            (Some(text), None) if text.len() <= ENCODED_MAX_BYTES => {
                Self::new(&file, repeat, Self::decode(&text).ok_or(TraceError::Damaged)?)
            }
            // Longer ones are rejected before they are generated.
            (None, Some(radio)) if radio.length <= RADIO_LONGEST => Self::of_radio(radio, repeat),
            _ => Err(TraceError::Damaged),
        };
        read().map_err(|error| D::Error::custom(format!("the trace '{file}': {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Trace, TraceError> {
        Trace::parse("t", text)
    }

    #[test]
    fn a_trace_is_read_and_stored() {
        let trace = parse("0\n0\n3\n10\n10\n10\n").unwrap();
        assert_eq!(trace.opportunities(), [(0, 2), (3, 1), (10, 3)]);
        assert_eq!((trace.length_ms(), trace.mean(), trace.repeats()), (10, Rate::bps(7_219_200), true));
        assert_eq!(trace.encode(), "CA2BA6D");
        let json = serde_json::to_string(&trace).unwrap();
        assert_eq!(json, r#"{"file":"t","repeat":true,"opportunities":"CA2BA6D"}"#);
        assert_eq!(serde_json::from_str::<Trace>(&json).unwrap(), trace);
    }

    #[test]
    fn an_even_trace_is_short_however_long() {
        let lines: String = (1..=600_000).map(|ms| format!("{ms}\n")).collect();
        let trace = parse(&lines).unwrap();
        assert_eq!(trace.encode(), "AB600000");
        assert_eq!(trace.mean(), Rate::bps(12_032_000));
        let many = Trace::new("t", false, vec![(1, 25), (2, 25), (3, 24), (9, 100_000)]).unwrap();
        assert_eq!(many.encode(), "A(25)2YA5(100000)");
        assert_eq!(Trace::decode(&many.encode()).unwrap(), many.opportunities());
    }

    #[test]
    fn a_wrong_trace_is_refused_in_one_line() {
        let line = |text: &str| parse(text).unwrap_err().to_string();
        assert!(line("").starts_with("it is empty"));
        assert_eq!(line("1\n\n2"), "line 2: '' is not a time in whole ms");
        assert_eq!(line("1\n2.5"), "line 2: '2.5' is not a time in whole ms");
        assert_eq!(line("-1"), "line 1: '-1' is not a time in whole ms");
        assert_eq!(line("5\n4"), "line 2: 4 ms is before the previous time, 5 ms");
        assert!(line("0\n0").starts_with("all its times are 0 ms"));
        assert!(line("86400001").starts_with("it is too large: 86400001 ms long"));
        assert!(line(&"7\n".repeat(100_001)).starts_with("it is too large: 100001 opportunities at 7 ms"));
    }

    #[test]
    fn damage_is_an_error() {
        for text in ["a", "B(", "B()", "(x)", "B99999999999999999999", "B18446744073709551615B", "é", "A5"] {
            let json = serde_json::json!({"file": "t", "repeat": true, "opportunities": text}).to_string();
            assert!(serde_json::from_str::<Trace>(&json).is_err(), "{text}");
        }
    }
}
