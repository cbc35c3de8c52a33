//! Times of a capture, many of one kind.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedRtt {
    /// How many.
    pub samples: u64,
    /// The smallest.
    #[serde(rename = "min_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub min: Nanos,
    /// Their mean.
    #[serde(rename = "mean_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub mean: Nanos,
    /// Their median, a 256th off at the most.
    #[serde(rename = "p50_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub p50: Nanos,
    /// The 95th percentile, a 256th off at the most.
    #[serde(rename = "p95_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub p95: Nanos,
    /// The largest.
    #[serde(rename = "max_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub max: Nanos,
}
