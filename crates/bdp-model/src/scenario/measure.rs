//! The quantity behind a parameter's path, so that values written in different units compare and ranges can be filled.

use super::tree::{Node, Value};
use crate::units::{ByteCount, Nanos, Probability, Rate};

/// What a parameter measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Bytes.
    Size,
    /// bit/s.
    Rate,
    /// Nanoseconds.
    Time,
    /// 0..=1.
    Fraction,
    /// A whole number.
    Count,
    /// Words: compared, never measured.
    Word,
}

impl Measure {
    /// By the last part of the path; a sysctl is a count as far as it is a number.
    pub(super) fn of(path: &str) -> Self {
        if path.starts_with("hosts.") {
            return if path.contains(".sysctls.") { Self::Count } else { Self::Word };
        }
        match path.rsplit('.').next().unwrap_or(path) {
            "window" | "length" | "bytes" | "burst" => Self::Size,
            "rate" => Self::Rate,
            "delay" | "start" | "duration" | "omit" | "idle" | "jitter" | "uniform" | "normal" | "by"
            | "guard" | "turn" => Self::Time,
            "loss" | "to_bad" | "to_good" | "loss_bad" | "loss_good" | "probability" | "duplicate"
            | "corrupt" => Self::Fraction,
            "streams" | "mss" | "mtu" | "overhead" | "window_field_max" | "window_scale" | "limit"
            | "every" | "capture_snap" | "drop_above" | "ecn_threshold" => Self::Count,
            _ => Self::Word,
        }
    }

    /// The value in the base unit; `None` where it is a word ("auto", "none") or not such a quantity.
    pub(super) fn read(self, node: &Node) -> Option<f64> {
        let text = match &node.value {
            Value::Text(t) => t.clone(),
            Value::Integer(i) => i.to_string(),
            Value::Float(f) => f.to_string(),
            _ => return None,
        };
        self.read_text(text.trim())
    }

    /// As [`Measure::read`].
    pub(super) fn read_text(self, text: &str) -> Option<f64> {
        let value = match self {
            Self::Size => text.parse::<ByteCount>().ok()?.as_bytes() as f64,
            Self::Rate => text.parse::<Rate>().ok()?.as_bps() as f64,
            Self::Time => text.parse::<Nanos>().ok()?.as_ns() as f64,
            Self::Fraction => text.parse::<Probability>().ok()?.fraction(),
            // A queue in packets is a count; one in bytes is not comparable with it.
            Self::Count => text.strip_suffix('p').unwrap_or(text).parse::<i64>().ok()? as f64,
            Self::Word => return None,
        };
        value.is_finite().then_some(value)
    }

    /// Writes a value as a scenario would, with `digits` significant digits; sizes and counts become whole.
    pub(super) fn write(self, value: f64, digits: usize) -> Value {
        match self {
            Self::Size => write_size(value.round().max(0.0) as u64),
            Self::Count | Self::Word => Value::Integer(value.round() as i64),
            Self::Fraction => Value::Float(rounded(value, digits)),
            Self::Rate => {
                Value::Text(scaled(value, digits, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "bit/s")]))
            }
            Self::Time => {
                Value::Text(scaled(value, digits, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")]))
            }
        }
    }
}

fn write_size(bytes: u64) -> Value {
    for (unit, suffix) in [(1u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return Value::Text(format!("{}{suffix}", bytes / unit));
        }
    }
    Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn scaled(value: f64, digits: usize, units: &[(f64, &str)]) -> String {
    let (unit, suffix) = units.iter().find(|(unit, _)| value >= *unit).unwrap_or(&units[units.len() - 1]);
    format!("{}{suffix}", rounded(value / unit, digits))
}

/// To so many significant digits.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same_quantity() {
        for (measure, value, text) in [
            (Measure::Size, 65_536.0, "64K"),
            (Measure::Size, 46_341.2, "46341"),
            (Measure::Rate, 2_154_434.7, "2.154M"),
            (Measure::Time, 13_274_100.0, "13.27ms"),
            (Measure::Time, 0.0, "0ns"),
            (Measure::Fraction, 0.000_316_227_7, "0.0003162"),
            (Measure::Count, 7.4, "7"),
        ] {
            let node = Node { origin: Default::default(), value: measure.write(value, 4) };
            assert_eq!(node.plain(), text);
            let back = measure.read(&node).unwrap();
            assert!((back - value).abs() <= 0.1 * value.abs().max(1e-9), "{back} {value}");
        }
    }

    #[test]
    fn paths_tell_their_quantity() {
        assert_eq!(Measure::of("flow.0.window"), Measure::Size);
        assert_eq!(Measure::of("link.forward.delay"), Measure::Time);
        assert_eq!(Measure::of("hosts.far.sysctls.net.ipv4.tcp_sack"), Measure::Count);
        assert_eq!(Measure::of("flow.congestion"), Measure::Word);
    }
}
