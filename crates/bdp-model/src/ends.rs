//! The two ends of a measurement, the directions between them, and what each end may be.

use serde::{Deserialize, Serialize};

/// A machine of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The one that asked.
    Near,
    /// The one that served.
    Far,
}

impl End {
    /// `near`, `far`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// What an end does in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// It sends the data.
    Sending,
    /// It receives it.
    Receiving,
}

impl Task {
    /// `sending`, `receiving`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Receiving => "receiving",
        }
    }
}

/// A direction across the path, as the measuring machine sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the near to the far machine.
    To,
    /// From the far to the near machine.
    From,
}

impl Direction {
    /// `to`, `from`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::To => "to",
            Self::From => "from",
        }
    }
}

impl Direction {
    /// The end that sends.
    pub const fn sender(self) -> End {
        match self {
            Self::To => End::Near,
            Self::From => End::Far,
        }
    }

    /// The other direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::To => Self::From,
            Self::From => Self::To,
        }
    }

    /// The end that receives.
    pub const fn receiver(self) -> End {
        match self {
            Self::To => End::Far,
            Self::From => End::Near,
        }
    }
}

/// A protocol of servers that are not bdp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PeerProtocol {
    /// iperf3's.
    Iperf3,
    /// iperf2's.
    Iperf2,
}

impl PeerProtocol {
    /// `iperf3`, `iperf2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Iperf2 => "iperf2",
        }
    }
}
