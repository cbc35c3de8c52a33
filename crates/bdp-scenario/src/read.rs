//! Reads nodes as the types that a scenario needs; each error says what was found and what was expected.

use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::{Problem, Result, ScenarioError, hint};
use crate::tree::{Node, Table, Value};
use bdp_model::units::{ByteCount, Nanos, Offset, Probability, Rate, UnitError};

/// A quantity that can be written as text or as a bare number.
pub(crate) trait Quantity: FromStr<Err = UnitError> {}
impl Quantity for Rate {}
impl Quantity for ByteCount {}
impl Quantity for Nanos {}
impl Quantity for Offset {}
impl Quantity for Probability {}

impl Node {
    /// Returns an error at the position of this node.
    pub(crate) fn unexpected(&self, at: &str, expected: impl Into<String>) -> ScenarioError {
        self.origin.error(Problem::Unexpected {
            at: at.to_owned(),
            found: self.describe(),
            expected: expected.into(),
        })
    }

    pub(crate) fn as_table(&self, at: &str) -> Result<&Table> {
        match &self.value {
            Value::Table(t) => Ok(t),
            _ => Err(self.unexpected(at, "a table")),
        }
    }

    pub(crate) fn as_text(&self, at: &str, expected: &str) -> Result<&str> {
        match &self.value {
            Value::Text(t) => Ok(t),
            _ => Err(self.unexpected(at, expected)),
        }
    }

    pub(crate) fn as_bool(&self, at: &str) -> Result<bool> {
        match self.value {
            Value::Boolean(b) => Ok(b),
            _ => Err(self.unexpected(at, "true or false")),
        }
    }

    /// Whether the value is one of the words for "not set".
    pub(crate) fn is_word(&self, words: &[&str]) -> bool {
        matches!(&self.value, Value::Text(t) if words.iter().any(|w| t.eq_ignore_ascii_case(w)))
    }

    /// Reads a whole number, bare or as text.
    pub(crate) fn as_count(&self, at: &str, range: RangeInclusive<u64>, expected: &str) -> Result<u64> {
        let count = match &self.value {
            Value::Integer(i) => u64::try_from(*i).ok(),
            Value::Text(t) => t.trim().parse().ok(),
            _ => None,
        };
        count.filter(|c| range.contains(c)).ok_or_else(|| self.unexpected(at, expected))
    }

    pub(crate) fn as_quantity<T: Quantity>(&self, at: &str, expected: &str) -> Result<T> {
        let text = match &self.value {
            Value::Text(t) => t.clone(),
            Value::Integer(i) => i.to_string(),
            Value::Float(f) => f.to_string(),
            _ => return Err(self.unexpected(at, expected)),
        };
        text.parse().map_err(|source: UnitError| {
            // Without a unit there is nothing to quote, and overlong text is of no help.
            let plain =
                text.len() > 60 || matches!(&source, UnitError::UnknownUnit { unit, .. } if unit.is_empty());
            if plain {
                return self.unexpected(at, expected);
            }
            self.origin.error(Problem::Quantity { at: at.to_owned(), source, expected: expected.to_owned() })
        })
    }

    /// Reads one of several words.
    pub(crate) fn as_choice<T: Copy>(&self, at: &str, choices: &[(&str, T)]) -> Result<T> {
        let given = match &self.value {
            Value::Text(t) => t.as_str(),
            _ => "",
        };
        choices.iter().find(|(word, _)| *word == given).map(|&(_, value)| value).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(w, _)| format!("\"{w}\"")).collect();
            self.unexpected(at, words.join(" or "))
        })
    }
}

/// Refuses unknown keys of a table.
pub(crate) fn check_keys(table: &Table, name: &str, known: &[&str]) -> Result<()> {
    for entry in &table.entries {
        if !known.contains(&entry.key.as_str()) {
            let key = entry.key.chars().take(60).collect::<String>();
            let meant = SYNONYMS
                .iter()
                .find(|(word, meant, _)| word.eq_ignore_ascii_case(&key) && known.contains(meant))
                .map_or_else(
                    || hint(&key, known.iter().copied()),
                    |(_, meant, why)| format!(", did you mean '{meant}'{why}?"),
                );
            // The node's origin, as a sweep may have put it there.
            return Err(entry.node.origin.error(Problem::UnknownKey {
                key,
                table: name.to_owned(),
                hint: meant,
                known: known.join(", "),
            }));
        }
    }
    Ok(())
}

/// Names used by other tools, the scenario's name, and the difference.
const SYNONYMS: &[(&str, &str, &str)] = &[
    ("rtt", "delay", " (one-way: half the RTT)"),
    ("latency", "delay", " (one-way)"),
    ("bandwidth", "rate", ""),
    ("speed", "rate", ""),
    ("capacity", "rate", ""),
    ("drop", "loss", ""),
    ("plr", "loss", ""),
    ("buffer", "limit", ""),
    ("aqm", "queue", ""),
    ("qdisc", "queue", ""),
    ("variation", "jitter", ""),
    ("duplex", "half_duplex", ""),
    ("ecn", "ecn_threshold", ""),
    ("corruption", "corrupt", ""),
    ("duplication", "duplicate", ""),
    ("reordering", "reorder", ""),
    ("police", "policer", ""),
    ("wscale", "window_scale", ""),
    ("parallel", "streams", ""),
    ("time", "duration", ""),
    ("len", "length", ""),
    ("buffer_length", "length", ""),
    ("cc", "congestion", ""),
    ("congestion_control", "congestion", ""),
    ("num", "bytes", ""),
    ("offset", "start", ""),
    ("forward", "router", ""),
    ("forwarding", "router", ""),
    ("route", "routes", ""),
    ("gateway", "via", ""),
    ("next_hop", "via", ""),
    ("sender", "from", ""),
    ("client", "from", ""),
    ("receiver", "to", ""),
    ("server", "to", ""),
    ("endpoints", "between", ""),
    ("description", "about", ""),
    ("runs", "repetitions", ""),
    ("repeat", "repetitions", ""),
    ("links", "link", ""),
    ("flows", "flow", ""),
    ("host", "hosts", ""),
    ("points", "point", ""),
    ("expected", "expect", ""),
    ("name", "title", " (the scenario's name is the file's)"),
];
