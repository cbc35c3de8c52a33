//! Summaries of times in a capture.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// A distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedRtt {
    /// Number of samples.
    pub samples: u64,
    /// The minimum.
    #[serde(rename = "min_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub min: Nanos,
    /// The mean.
    #[serde(rename = "mean_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub mean: Nanos,
    /// The median, within 1/256.
    #[serde(rename = "p50_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub p50: Nanos,
    /// The 95th percentile, within 1/256.
    #[serde(rename = "p95_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub p95: Nanos,
    /// The maximum.
    #[serde(rename = "max_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub max: Nanos,
}
