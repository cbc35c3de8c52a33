//! Quantities in the formats of `tc` and of a scenario.

use super::draft::ImportError;
use bdp_model::units::{Nanos, Probability, Rate, typed_rate};

/// Reads a time in `tc` format; a bare number is in microseconds.
pub(super) fn time(text: &str) -> Result<Nanos, ImportError> {
    let (number, unit) = split(text);
    let factor = match unit {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return Err(wrong(text, "a time such as 50ms")),
    };
    let ns = positive(number).map(|number| number * factor).filter(|ns| *ns <= 3.6e12);
    ns.map(|ns| Nanos(ns.round() as u64)).ok_or_else(|| wrong(text, "a time such as 50ms, up to 1h"))
}

/// Reads a rate in `tc` format: `mbit` is bits, `mbps` bytes.
pub(super) fn rate(text: &str) -> Result<Rate, ImportError> {
    let (number, unit) = split(text);
    let unit = unit.to_ascii_lowercase();
    let (prefix, each) = match (unit.strip_suffix("bit"), unit.strip_suffix("bps")) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) => (prefix, 8.0),
        _ => (unit.as_str(), 1.0),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong(text, "a rate such as 10mbit")),
    };
    let bps = positive(number)
        .map(|number| (number * each * factor).round())
        .filter(|bps| *bps >= 1.0 && *bps < 1e18);
    bps.map(|bps| Rate::bps(bps as u64)).ok_or_else(|| wrong(text, "a rate such as 10mbit, above 0"))
}

/// Reads a size in `tc` format, in bytes: `k` and `kb` are 1024, `kbit` 1024 bits. The part after a slash is the kernel's rounding.
pub(super) fn bytes(text: &str) -> Result<u64, ImportError> {
    let (number, unit) = split(text.split('/').next().unwrap_or_default());
    let unit = unit.to_ascii_lowercase();
    let (prefix, each) = match (unit.strip_suffix("bit"), unit.strip_suffix('b')) {
        (Some(prefix), _) => (prefix, 0.125),
        (_, Some(prefix)) => (prefix, 1.0),
        _ => (unit.as_str(), 1.0),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "g" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong(text, "a size such as 32kbit or 1540")),
    };
    let bytes = positive(number).map(|number| (number * each * factor).round()).filter(|bytes| *bytes < 1e12);
    bytes.map(|bytes| bytes as u64).ok_or_else(|| wrong(text, "a size such as 32kbit or 1540"))
}

/// Makes foreign text safe to quote in one line.
pub(super) fn shown(text: &str) -> String {
    let shown: String = text.chars().take(80).collect();
    shown.escape_debug().to_string()
}

/// Reads a percentage, with or without its sign.
pub(super) fn percentage(text: &str) -> Result<Probability, ImportError> {
    let number = positive(text.strip_suffix('%').unwrap_or(text));
    number
        .and_then(|number| Probability::new(number / 100.0))
        .ok_or_else(|| wrong(text, "a percentage such as 1%"))
}

/// Reads a share of one.
pub(super) fn share(text: &str) -> Result<Probability, ImportError> {
    positive(text).and_then(Probability::new).ok_or_else(|| wrong(text, "a share such as 0.02"))
}

/// Reads a whole number.
pub(super) fn count(text: &str) -> Result<u64, ImportError> {
    text.parse().map_err(|_| wrong(text, "a whole number"))
}

/// Formats a rate for a scenario.
pub(super) fn of_rate(rate: Rate) -> String {
    format!("\"{}\"", typed_rate(rate.as_bps()))
}

/// Formats a time for a scenario and for `tc`.
pub(super) fn of_time(time: Nanos) -> String {
    let ns = time.as_ns();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let short = units
        .iter()
        .find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit))
        .map(|(unit, name)| format!("{}{name}", ns / unit));
    short.unwrap_or_else(|| format!("{ns}ns"))
}

/// Formats a share as a percentage, with enough digits to read it back exactly.
pub(super) fn of_share(share: Probability) -> String {
    let percent = share.fraction() * 100.0;
    let rounded = format!("{percent:.7}").trim_end_matches('0').trim_end_matches('.').to_owned();
    let back = rounded.parse::<f64>().ok().map(|percent| percent / 100.0);
    if back == Some(share.fraction()) { format!("{rounded}%") } else { format!("{percent}%") }
}

/// Returns one minus a share, to as many digits as the share has.
pub(super) fn rest(share: Probability) -> Probability {
    const DIGITS: f64 = 1e12;
    Probability::new(((1.0 - share.fraction()) * DIGITS).round() / DIGITS).unwrap_or_default()
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

fn positive(text: &str) -> Option<f64> {
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0 && !text.starts_with(['+', '-']))
}

fn wrong(text: &str, expected: &str) -> ImportError {
    let shown: String = text.chars().take(40).collect();
    ImportError::new(format!("'{}' is not {expected}", shown.escape_debug()))
}
