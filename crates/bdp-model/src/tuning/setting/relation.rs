//! How one value compares with another.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::default::{Basis, DefaultValue};
use crate::names;

/// How a value compares with a default or another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Equal.
    Equal,
    /// At least one number is smaller and none is larger.
    Below,
    /// At least one number is larger and none is smaller.
    Above,
    /// Some numbers are smaller and some larger, or the names differ.
    Differs,
}

names!(Relation: Equal = "equal", Below = "below", Above = "above", Differs = "differs");

impl Relation {
    /// Compares `value` with `other`.
    pub fn of(value: &str, other: &str) -> Self {
        Self::within(value, other, |number, other| number.cmp(&other))
    }

    /// Compares `value` with a default. A default computed from memory counts as equal within one sixteenth.
    pub fn to_default(value: &str, default: &DefaultValue) -> Self {
        match default.basis {
            Basis::Source | Basis::Build => Self::of(value, &default.value),
            Basis::Memory => Self::within(value, &default.value, |number, other| {
                let is_near = number.abs_diff(other) <= other.unsigned_abs() / 16;
                if is_near { Ordering::Equal } else { number.cmp(&other) }
            }),
        }
    }

    fn within(value: &str, other: &str, compare: impl Fn(i64, i64) -> Ordering) -> Self {
        let (Some(numbers), Some(others)) = (numbers(value), numbers(other)) else {
            let (value, other) = (value.split_whitespace(), other.split_whitespace());
            return if value.eq(other) { Self::Equal } else { Self::Differs };
        };
        if numbers.len() != others.len() {
            return Self::Differs;
        }
        // Some kernels print the largest 32-bit number as -1.
        let meant = |number: i64, beside: i64| if number == -1 && beside == MOST { MOST } else { number };
        let orders = || {
            numbers
                .iter()
                .zip(&others)
                .map(|(&number, &other)| compare(meant(number, other), meant(other, number)))
        };
        match (orders().any(Ordering::is_lt), orders().any(Ordering::is_gt)) {
            (false, false) => Self::Equal,
            (true, false) => Self::Below,
            (false, true) => Self::Above,
            (true, true) => Self::Differs,
        }
    }
}

/// The largest 32-bit number.
const MOST: i64 = u32::MAX as i64;

/// Returns the numbers in a value; None if it has none or contains anything else.
pub fn numbers(value: &str) -> Option<Vec<i64>> {
    let numbers: Vec<i64> = value.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_each_with_its_own() {
        for (value, other, relation) in [
            ("4096 131072 6291456", "4096 131072 6291456", Relation::Equal),
            ("4096\t131072\t6291456", "4096 131072 6291456", Relation::Equal),
            ("4096 131072 16777216", "4096 131072 6291456", Relation::Above),
            ("4096 87380 6291456", "4096 131072 6291456", Relation::Below),
            ("4096 87380 16777216", "4096 131072 6291456", Relation::Differs),
            ("9", "10", Relation::Below),
            ("-1", "4294967295", Relation::Equal),
            ("-1", "1", Relation::Below),
            ("bbr", "cubic", Relation::Differs),
            ("fq", "fq", Relation::Equal),
            ("1 2", "1", Relation::Differs),
        ] {
            assert_eq!(Relation::of(value, other), relation, "{value} to {other}");
        }
    }

    #[test]
    fn what_was_computed_from_memory_is_met_nearly() {
        let of = |value: &str, basis| {
            Relation::to_default(value, &DefaultValue { value: "30000 40000 60000".to_owned(), basis })
        };
        assert_eq!(of("29000 39000 58000", Basis::Memory), Relation::Equal);
        assert_eq!(of("29000 39000 58000", Basis::Source), Relation::Below);
        assert_eq!(of("20000 30000 40000", Basis::Memory), Relation::Below);
        assert_eq!(of("30000 40000 90000", Basis::Memory), Relation::Above);
    }
}
