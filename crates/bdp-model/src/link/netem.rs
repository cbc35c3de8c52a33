//! netem, the kernel's own emulator, for comparison with bdp's.

use serde::{Deserialize, Serialize};

use crate::units::{Nanos, Probability, Rate};

/// A netem queueing discipline at the end of a link, for traffic that its host sends there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Netem {
    /// Delay of each packet.
    #[serde(rename = "delay_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub delay: Nanos,
    /// Half the width of the uniform distribution around the delay.
    #[serde(rename = "jitter_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub jitter: Nanos,
    /// Share of packets lost, independently.
    pub loss: Probability,
    /// Two-state loss, used instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_in_states: Option<TwoStates>,
    /// Share of packets duplicated.
    pub duplicate: Probability,
    /// Share of packets sent immediately, without the delay.
    pub at_once: Probability,
    /// Bit rate.
    pub rate: Option<Rate>,
    /// Bytes added to each IP packet at that rate.
    pub overhead_bytes: u32,
    /// Most packets queued, including those that are merely delayed.
    pub limit_packets: u32,
}

/// Two-state loss (Gilbert-Elliott).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwoStates {
    /// Probability of going from good to bad.
    pub to_bad: Probability,
    /// Probability of going from bad to good.
    pub to_good: Probability,
    /// Loss in the bad state.
    pub loss_bad: Probability,
    /// Loss in the good state.
    pub loss_good: Probability,
}

impl Default for Netem {
    /// A discipline that changes nothing.
    fn default() -> Self {
        Self {
            delay: Nanos::ZERO,
            jitter: Nanos::ZERO,
            loss: Probability::default(),
            loss_in_states: None,
            duplicate: Probability::default(),
            at_once: Probability::default(),
            rate: None,
            overhead_bytes: 0,
            limit_packets: 1_000_000,
        }
    }
}
