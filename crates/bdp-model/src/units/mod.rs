//! Quantities with units: parsed from what people type, printed as network tools do.
//!
//! Rates print in bit/s with SI prefixes, sizes in bytes with IEC prefixes. Input takes both:
//! `K` and `KiB` are 1024 bytes, `kB` is 1000 bytes; in a rate every prefix is decimal.

pub mod nanoseconds;

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Error in a quantity. The message states what was given and what is valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("'{given}' is not {what}: it must start with a number, for example {example}")]
    NoNumber {
        /// What was typed.
        given: String,
        /// The quantity's name with its article.
        what: &'static str,
        /// A correct example.
        example: &'static str,
    },
    /// The unit is not one of the quantity's.
    #[error("'{given}' is not {what}: unknown unit '{unit}', for example {example}")]
    UnknownUnit {
        /// What was typed.
        given: String,
        /// The quantity's name with its article.
        what: &'static str,
        /// The unit as typed.
        unit: String,
        /// A correct example.
        example: &'static str,
    },
    /// The number is negative, not finite, or too large for the type.
    #[error("'{given}' is out of range for {what} ({range})")]
    OutOfRange {
        /// What was typed.
        given: String,
        /// The quantity's name with its article.
        what: &'static str,
        /// The permitted range.
        range: &'static str,
    },
}

/// Splits `"2.5ms"` into its number and its unit (`""` if there is none).
fn split(text: &str, what: &'static str, example: &'static str) -> Result<(f64, String), UnitError> {
    let t = text.trim();
    let end = t
        .char_indices()
        .find(|&(i, c)| {
            let exponent = (c == 'e' || c == 'E')
                && i > 0
                && t[i + 1..].trim_start_matches(['+', '-']).starts_with(|d: char| d.is_ascii_digit());
            let sign = (c == '-' || c == '+') && (i == 0 || t[..i].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || c == '.' || c == '_' || exponent || sign)
        })
        .map_or(t.len(), |(i, _)| i);
    let number: f64 = t[..end].replace('_', "").parse().map_err(|_| UnitError::NoNumber {
        given: text.to_owned(),
        what,
        example,
    })?;
    Ok((number, t[end..].trim().to_owned()))
}

fn unknown_unit(text: &str, what: &'static str, unit: &str, example: &'static str) -> UnitError {
    UnitError::UnknownUnit { given: text.to_owned(), what, unit: unit.to_owned(), example }
}

fn to_u64(value: f64, text: &str, what: &'static str, range: &'static str) -> Result<u64, UnitError> {
    let rounded = value.round();
    // The bound itself is allowed: values just below it are printed as that.
    if !rounded.is_finite() || !(0.0..=9.2e18).contains(&rounded) {
        return Err(UnitError::OutOfRange { given: text.to_owned(), what, range });
    }
    Ok(rounded as u64)
}

/// A bit rate, in bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Creates a rate from bit/s.
    pub const fn bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }
    /// Creates a rate from Mbit/s.
    pub const fn mbps(megabits_per_second: u64) -> Self {
        Self(megabits_per_second * 1_000_000)
    }
    /// Returns bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Returns the time to send `bytes` at this rate, rounded up; zero for a rate of zero, which no link has.
    pub fn serialisation(self, bytes: u64) -> Nanos {
        if self.0 == 0 {
            return Nanos(0);
        }
        let ns = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const WHAT: &str = "a rate";
        const EXAMPLE: &str = "10M, 2.5Gbit/s or 64kbit";
        let (number, unit) = split(text, WHAT, EXAMPLE)?;
        let unknown = || unknown_unit(text, WHAT, &unit, EXAMPLE);
        let lower = unit.to_ascii_lowercase();
        let mut rest = lower.as_str();
        for suffix in ["bit/s", "bits/s", "bits", "bit", "bps", "b/s"] {
            if let Some(stripped) = rest.strip_suffix(suffix) {
                rest = stripped;
                break;
            }
        }
        let factor = match rest {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return Err(unknown()),
        };
        // "B/s" means bytes per second to most readers and is a typing error for the rest: reject it.
        if unit.ends_with("B/s") || unit.ends_with("Bps") {
            return Err(unknown());
        }
        to_u64(number * factor, text, WHAT, "0 to 9E bit/s").map(Self)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format_bps(self.0 as f64))
    }
}

/// Formats a rate in bit/s with an SI prefix and three or four significant digits: `941.5 Mbit/s`.
pub fn format_bps(bps: f64) -> String {
    const UNITS: [(f64, &str); 5] =
        [(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s")];
    with_unit(bps, &UNITS)
}

/// Formats a value in the first of the ascending units that fits after rounding.
fn with_unit(value: f64, units: &[(f64, &str)]) -> String {
    let reaches =
        |text: &str, unit: f64, next: f64| text.parse().is_ok_and(|digits: f64| digits * unit >= next);
    let mut text = String::new();
    for (index, &(unit, name)) in units.iter().enumerate() {
        let digits = significant(value / unit);
        let is_within = units.get(index + 1).is_none_or(|&(next, _)| !reaches(&digits, unit, next));
        text = format!("{digits} {name}");
        if is_within {
            break;
        }
    }
    text
}

/// Formats three significant digits, or four from 100 on if there is a fraction.
pub fn significant(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a fraction as a percentage: `100 %`, `9.3 %`; with two significant digits if it is less than one in a hundred, as `0.05 %`.
pub fn format_percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        v if v >= 9.95 => format!("{value:.0} %"),
        v if v >= 0.95 => format!("{value:.1} %"),
        0.0 => "0 %".to_owned(),
        v => {
            let decimals = (1.0 - v.log10().floor()).min(17.0) as usize;
            let digits = format!("{value:.decimals$}");
            format!("{} %", digits.trim_end_matches('0'))
        }
    }
}

/// Returns a size in the largest binary unit in which it is at least 1 after rounding: 65,160 bytes are 63.6 `KiB`.
pub fn in_binary_unit(bytes: f64) -> (f64, &'static str) {
    let mut value = bytes;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    (value, unit)
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(u64);

impl ByteCount {
    /// Creates a size from bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// Creates a size from KiB.
    pub const fn kib(kib: u64) -> Self {
        Self(kib * 1024)
    }
    /// Returns bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteCount {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const WHAT: &str = "a size";
        const EXAMPLE: &str = "1448, 64K, 64KiB (both 65536) or 64kB (64000)";
        let (number, unit) = split(text, WHAT, EXAMPLE)?;
        let factor = match unit.as_str() {
            "" | "B" | "b" | "byte" | "bytes" => 1.0,
            "k" | "K" | "KiB" | "kiB" | "Ki" => 1024.0,
            "m" | "M" | "MiB" | "Mi" => 1024.0 * 1024.0,
            "g" | "G" | "GiB" | "Gi" => 1024.0 * 1024.0 * 1024.0,
            "t" | "T" | "TiB" | "Ti" => 1024.0f64.powi(4),
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            _ => return Err(unknown_unit(text, WHAT, &unit, EXAMPLE)),
        };
        to_u64(number * factor, text, WHAT, "0 B to 8 EiB").map(Self)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KIB: f64 = 1024.0;
        const UNITS: [(f64, &str); 5] = [
            (1.0, "B"),
            (KIB, "KiB"),
            (KIB * KIB, "MiB"),
            (KIB * KIB * KIB, "GiB"),
            (KIB * KIB * KIB * KIB, "TiB"),
        ];
        f.pad(&with_unit(self.0 as f64, &UNITS))
    }
}

/// A span of time, or an instant on a clock that starts at zero, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Creates a time from microseconds.
    pub const fn micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// Creates a time from milliseconds.
    pub const fn millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Creates a time from seconds.
    pub const fn secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// Creates a time from fractional seconds; negative and non-finite values become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round().max(0.0) as u64)
    }
    /// Returns nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// Returns seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns the difference, or zero if `earlier` is later.
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
    /// Converts to the standard library's duration.
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    /// Panics in debug builds if `other` is later: use [`Nanos::saturating_sub`] if that can happen.
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const WHAT: &str = "a time";
        const EXAMPLE: &str = "41ms, 2.5ms, 50us or 10s; seconds if no unit is given";
        let (number, unit) = split(text, WHAT, EXAMPLE)?;
        let factor = match unit.as_str() {
            "ns" => 1.0,
            "us" | "µs" | "usec" => 1e3,
            "ms" | "msec" => 1e6,
            "" | "s" | "sec" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(unknown_unit(text, WHAT, &unit, EXAMPLE)),
        };
        to_u64(number * factor, text, WHAT, "0 ns to 292 years").map(Self)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
        match self.0 {
            0 => f.pad("0 s"),
            ns => f.pad(&with_unit(ns as f64, &UNITS)),
        }
    }
}

/// A difference of two times, in nanoseconds; negative for earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(i64);

impl Offset {
    /// Creates an offset from nanoseconds.
    pub const fn ns(ns: i64) -> Self {
        Self(ns)
    }
    /// Returns nanoseconds.
    pub const fn as_ns(self) -> i64 {
        self.0
    }
}

impl FromStr for Offset {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let (negative, magnitude) = match trimmed.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
        };
        // A second sign would be parsed as part of the number.
        if magnitude.starts_with(['-', '+']) {
            let (what, example) = ("a time", "-1.5ms or 2ms");
            return Err(UnitError::NoNumber { given: text.to_owned(), what, example });
        }
        let ns = magnitude.parse::<Nanos>()?.as_ns();
        // A parsed time is below 2^63.
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        Ok(Self(if negative { -ns } else { ns }))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        f.pad(&format!("{sign}{}", Nanos(self.0.unsigned_abs())))
    }
}

/// A probability or a fraction in 0..=1, typed as `5%`, `0.05` or `1e-4`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Creates it from a fraction; `None` outside 0..=1.
    pub fn new(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }
    /// Returns the fraction.
    pub const fn fraction(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const WHAT: &str = "a fraction";
        const EXAMPLE: &str = "5%, 0.05 or 1e-4";
        let (number, unit) = split(text, WHAT, EXAMPLE)?;
        let value = match unit.as_str() {
            "" => number,
            "%" => number / 100.0,
            _ => return Err(unknown_unit(text, WHAT, &unit, EXAMPLE)),
        };
        Self::new(value).ok_or(UnitError::OutOfRange {
            given: text.to_owned(),
            what: WHAT,
            range: "0 to 100 %",
        })
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        // Do not print a small one as zero.
        let decimals = if percent > 0.0 && percent < 0.1 { 2.0 - percent.log10().floor() } else { 0.0 };
        if decimals > 3.0 {
            let digits = format!("{percent:.*}", decimals.min(300.0) as usize);
            return f.pad(&format!("{}%", digits.trim_end_matches('0')));
        }
        f.pad(&format!("{}%", significant(percent)))
    }
}

/// Deserialises text or a bare number as the quantity; serialises a bare number of its base unit.
macro_rules! quantity_serde {
    ($type:ident, $expecting:literal, $serialize:expr, $bare:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct V;
                impl Visitor<'_> for V {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, v: u64) -> Result<$type, E> {
                        $bare(v as f64).map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, v: i64) -> Result<$type, E> {
                        $bare(v as f64).map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, v: f64) -> Result<$type, E> {
                        $bare(v).map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(V)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $serialize(self, serializer)
            }
        }
    };
}

quantity_serde!(
    Rate,
    "a rate such as \"100M\" or \"1Gbit/s\"",
    |r: &Rate, s: S| s.serialize_u64(r.0),
    |v: f64| to_u64(v, &v.to_string(), "a rate", "0 to 9E bit/s").map(Rate)
);
quantity_serde!(
    ByteCount,
    "a size such as 1448, \"64K\" or \"64kB\"",
    |b: &ByteCount, s: S| s.serialize_u64(b.0),
    |v: f64| to_u64(v, &v.to_string(), "a size", "0 B to 8 EiB").map(ByteCount)
);
quantity_serde!(
    Nanos,
    "a time such as \"41ms\"",
    |t: &Nanos, s: S| s.serialize_str(&format!("{}ns", t.0)),
    |v: f64| v.to_string().parse::<Nanos>()
);
quantity_serde!(
    Offset,
    "a time, earlier or later, such as \"-1.5ms\"",
    |t: &Offset, s: S| s.serialize_str(&format!("{}ns", t.0)),
    |v: f64| v.to_string().parse::<Offset>()
);
quantity_serde!(
    Probability,
    "a fraction such as \"5%\" or 0.05",
    |p: &Probability, s: S| s.serialize_f64(p.0),
    |v: f64| Probability::new(v).ok_or(UnitError::OutOfRange {
        given: v.to_string(),
        what: "a fraction",
        range: "0 to 1"
    })
);

/// Formats a requested size as the user would have typed it if that is short: `64 KiB`, `319 kB`, `30660 B`;
/// otherwise rounded.
pub fn asked_size(bytes: u64) -> String {
    let iec = ByteCount::bytes(bytes).to_string();
    if iec.parse() == Ok(ByteCount::bytes(bytes)) {
        iec
    } else if bytes.is_multiple_of(1_000_000) {
        format!("{} MB", bytes / 1_000_000)
    } else if bytes.is_multiple_of(1000) {
        format!("{} kB", bytes / 1000)
    } else if bytes < 100_000 {
        format!("{bytes} B")
    } else {
        iec
    }
}

/// Formats a size as typed: `64K`, `1M`, `1500`.
pub fn typed_size(size: ByteCount) -> String {
    match size.as_bytes() {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

/// Formats a rate in bit/s as typed: `100M`, `64k`, `1500`.
pub fn typed_rate(bps: u64) -> String {
    let prefix = |(unit, letter): (u64, char)| {
        (bps >= unit && bps.is_multiple_of(unit)).then(|| format!("{}{letter}", bps / unit))
    };
    [(1_000_000_000, 'G'), (1_000_000, 'M'), (1_000, 'k')]
        .into_iter()
        .find_map(prefix)
        .unwrap_or_else(|| bps.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_are_neither_doubled_nor_none() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_33, "0.033 %"),
            (0.000_5, "0.05 %"),
            (0.000_001, "0.0001 %"),
            (0.009_4, "0.94 %"),
            (0.009_96, "1.0 %"),
            (0.093, "9.3 %"),
            (0.0996, "10 %"),
            (1.0, "100 %"),
            (-0.000_5, "-0.05 %"),
        ] {
            assert_eq!(format_percent(share), text);
        }
        for (fraction, text) in
            [(1e-6, "0.0001%"), (0.000_5, "0.05%"), (0.0, "0%"), (0.05, "5%"), (3.3e-4, "0.033%")]
        {
            let probability = Probability::new(fraction).unwrap();
            assert_eq!(probability.to_string(), text);
            let back: Probability = text.parse().unwrap();
            assert!((back.fraction() - fraction).abs() <= 1e-3 * fraction, "{text}");
        }
    }

    #[test]
    fn sizes_follow_the_house_rule_for_prefixes() {
        for (text, bytes) in [
            ("1448", 1448),
            ("64K", 65_536),
            ("64k", 65_536),
            ("64KiB", 65_536),
            ("64 KiB", 65_536),
            ("64kB", 64_000),
            ("2.25MB", 2_250_000),
            ("128MiB", 134_217_728),
            ("1e3", 1000),
        ] {
            assert_eq!(text.parse::<ByteCount>().map(ByteCount::as_bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_rounds_up_to_the_next_unit_is_of_that() {
        assert_eq!(Rate::bps(999_949_999_999).to_string(), "999.9 Gbit/s");
        assert_eq!(Rate::bps(999_999_999_999).to_string(), "1 Tbit/s");
        assert_eq!(Rate::bps(9_999_600_000_000_000).to_string(), "10000 Tbit/s");
        assert_eq!(ByteCount::bytes((1 << 20) - 1).to_string(), "1 MiB");
        assert_eq!(ByteCount::bytes(1023 << 10).to_string(), "1023 KiB");
        assert_eq!(Nanos(999_999).to_string(), "1 ms");
        assert_eq!(Nanos(999).to_string(), "999 ns");
    }

    #[test]
    fn rates_are_decimal() {
        for (text, bps) in [
            ("10M", 10_000_000),
            ("10m", 10_000_000),
            ("1Gbit/s", 1_000_000_000),
            ("64kbit", 64_000),
            ("941.48Mbit/s", 941_480_000),
            ("100", 100),
        ] {
            assert_eq!(text.parse::<Rate>().map(Rate::as_bps), Ok(bps), "{text}");
        }
        assert!("10MB/s".parse::<Rate>().is_err());
    }

    #[test]
    fn times_without_a_unit_are_seconds() {
        assert_eq!("2.55ms".parse(), Ok(Nanos(2_550_000)));
        assert_eq!("0".parse(), Ok(Nanos(0)));
        assert_eq!("41".parse(), Ok(Nanos::secs(41)));
        assert_eq!("0.5".parse(), Ok(Nanos::millis(500)));
        assert!("-1".parse::<Nanos>().is_err());
    }

    #[test]
    fn wrong_input_names_the_way_out() {
        let text = "12parsec".parse::<Nanos>().unwrap_err().to_string();
        assert!(text.contains("parsec") && text.contains("41ms"), "{text}");
        for bad in ["", "-5K", "K", "1e400", "nan", "inf"] {
            assert!(bad.parse::<ByteCount>().is_err(), "{bad}");
        }
        assert!("101%".parse::<Probability>().is_err());
    }

    #[test]
    fn serialisation_is_exact_and_rounded_up() {
        assert_eq!(Rate::mbps(1000).serialisation(1538), Nanos(12_304));
        assert_eq!(Rate::bps(3).serialisation(1), Nanos(2_666_666_667));
    }

    #[test]
    fn what_is_written_reads_back() {
        let json = serde_json::to_string(&(Rate::mbps(7), ByteCount::kib(3), Nanos(41_000_001))).unwrap();
        let back: (Rate, ByteCount, Nanos) = serde_json::from_str(&json).unwrap();
        assert_eq!(back, (Rate::mbps(7), ByteCount::kib(3), Nanos(41_000_001)));
    }

    #[test]
    fn what_was_asked_is_printed_as_it_would_be_typed() {
        for (bytes, text) in [
            (65_536, "64 KiB"),
            (319_000, "319 kB"),
            (30_660, "30660 B"),
            (512, "512 B"),
            (100_000_000, "100 MB"),
            (318_592, "311.1 KiB"),
        ] {
            assert_eq!(asked_size(bytes), text);
        }
    }
}
