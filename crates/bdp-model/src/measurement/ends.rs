//! The two ends of a measurement, the directions between them, and their roles.

use serde::{Deserialize, Serialize};

use crate::names;

/// An end of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The client.
    Near,
    /// The server.
    Far,
}

names!(End: Near = "near", Far = "far");

/// Role of an end in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// It sends the data.
    Sending,
    /// It receives the data.
    Receiving,
}

names!(Task: Sending = "sending", Receiving = "receiving");

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

names!(Direction: To = "to", From = "from");

impl Direction {
    /// Returns the end that sends.
    pub const fn sender(self) -> End {
        match self {
            Self::To => End::Near,
            Self::From => End::Far,
        }
    }

    /// Returns the opposite direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::To => Self::From,
            Self::From => Self::To,
        }
    }

    /// Returns the end that receives.
    pub const fn receiver(self) -> End {
        match self {
            Self::To => End::Far,
            Self::From => End::Near,
        }
    }
}

/// A protocol of servers other than bdp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PeerProtocol {
    /// The protocol of iperf3.
    Iperf3,
    /// The protocol of iperf2.
    Iperf2,
}

names!(PeerProtocol: Iperf3 = "iperf3", Iperf2 = "iperf2");
