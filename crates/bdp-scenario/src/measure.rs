//! Quantities in a scenario file, so that values in different units can be compared and ranges filled.

use crate::tree::{Node, Value};
use bdp_model::sweep::parameter::{Kind, Parameter, Quantity, Unit};

/// Returns the value in the base unit; `None` if it is a word ("auto", "none") or not such a quantity.
pub(crate) fn read(parameter: &Parameter, node: &Node) -> Option<Quantity> {
    match &node.value {
        Value::Text(t) => parameter.read(t),
        Value::Integer(i) => parameter.read(&i.to_string()),
        Value::Float(f) => parameter.read(&f.to_string()),
        _ => None,
    }
}

/// Formats a value for a scenario with `digits` significant digits; sizes and counts are rounded to whole numbers.
pub(crate) fn write(parameter: &Parameter, Quantity { value, unit }: Quantity, digits: usize) -> Value {
    match parameter.kind {
        Kind::Size => write_size(value.round().max(0.0) as u64),
        // Without a unit it would mean packets.
        Kind::QueueLength if unit == Unit::Bytes => Value::Text(format!("{}B", value.round())),
        Kind::QueueLength | Kind::Count | Kind::Word => Value::Integer(value.round() as i64),
        Kind::Fraction => Value::Float(rounded(value, digits)),
        Kind::Rate => {
            Value::Text(scaled(value, digits, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "bit/s")]))
        }
        Kind::Time => {
            Value::Text(scaled(value, digits, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")]))
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

/// Rounds to this many significant digits.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same_quantity() {
        use Unit::{BitsPerSecond, Bytes, Nanoseconds, Number, Packets, Share};
        for (name, value, unit, text) in [
            ("window", 65_536.0, Bytes, "64K"),
            ("window", 46_341.2, Bytes, "46341"),
            ("rate", 2_154_434.7, BitsPerSecond, "2.154M"),
            ("delay", 13_274_100.0, Nanoseconds, "13.27ms"),
            ("delay", 0.0, Nanoseconds, "0ns"),
            ("loss", 0.000_316_227_7, Share, "0.0003162"),
            ("streams", 7.4, Number, "7"),
            ("limit", 7.4, Packets, "7"),
            ("limit", 1_500.4, Bytes, "1500B"),
        ] {
            let parameter = Parameter::at(name);
            let written = write(&parameter, Quantity { value, unit }, 4);
            let node = Node { origin: Default::default(), value: written };
            assert_eq!(node.plain(), text);
            let back = read(&parameter, &node).unwrap();
            assert_eq!(back.unit, unit);
            assert!((back.value - value).abs() <= 0.1 * value.abs().max(1e-9), "{back:?} {value}");
        }
    }
}
