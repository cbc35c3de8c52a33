//! The kernel's own emulator, netem, as the emulator is compared with it.

use serde::{Deserialize, Serialize};

use crate::units::{Nanos, Probability, Rate};

/// A netem discipline at the end of a link, for what its host sends there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Netem {
    /// Added to each packet.
    #[serde(rename = "delay_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub delay: Nanos,
    /// Half the width of the even distribution about it.
    #[serde(rename = "jitter_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub jitter: Nanos,
    /// Packets lost, each alone.
    pub loss: Probability,
    /// Loss in two states, in place of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_in_states: Option<TwoStates>,
    /// Packets sent twice.
    pub duplicate: Probability,
    /// Packets sent at once, without the delay.
    pub at_once: Probability,
    /// Bit rate.
    pub rate: Option<Rate>,
    /// Bytes beside each IP packet that take time at that rate.
    pub overhead_bytes: u32,
    /// Packets inside, those that merely propagate included.
    pub limit_packets: u32,
}

/// Loss in a good and a bad state (Gilbert-Elliott).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwoStates {
    /// From good to bad.
    pub to_bad: Probability,
    /// From bad to good.
    pub to_good: Probability,
    /// Loss in the bad state.
    pub loss_bad: Probability,
    /// Loss in the good state.
    pub loss_good: Probability,
}

impl Default for Netem {
    /// Nothing happens to a packet.
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
