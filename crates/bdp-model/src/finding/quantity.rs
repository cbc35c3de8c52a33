//! Numbers with their units.

use serde::{Deserialize, Serialize};

use super::named::named;
use crate::units::Nanos;

named! {
    /// The unit of a number.
    pub enum Unit {
        /// Bytes.
        Bytes = "bytes",
        /// Nanoseconds.
        Ns = "ns",
        /// Bit/s.
        Bps = "bps",
        /// A share: 1 is all.
        Share = "share",
        /// A number of things.
        Count = "count",
        /// 1 or 0, yes or no.
        Flag = "flag",
    }
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantity {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Quantity {
    /// Bytes.
    pub const fn bytes(value: f64) -> Self {
        Self { value, unit: Unit::Bytes }
    }

    /// A time.
    pub const fn time(value: Nanos) -> Self {
        Self { value: value.0 as f64, unit: Unit::Ns }
    }

    /// A rate, bit/s.
    pub const fn rate(bps: f64) -> Self {
        Self { value: bps, unit: Unit::Bps }
    }

    /// A share of one.
    pub const fn share(value: f64) -> Self {
        Self { value, unit: Unit::Share }
    }

    /// A number of things.
    pub const fn count(value: u64) -> Self {
        Self { value: value as f64, unit: Unit::Count }
    }
}
