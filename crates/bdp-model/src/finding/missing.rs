//! What is missing for an answer, or for a surer one.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// What is missing.
    pub enum Lack {
        /// `TCP_INFO` of the sender.
        TcpInfo = "tcp_info",
        /// Windows and segments in flight in it.
        TcpInfoWindows = "tcp_info_windows",
        /// More samples: `samples` are too few.
        LongerMeasurement = "longer_measurement",
        /// The same after what is omitted.
        LongerAfterOmit = "longer_after_omit",
        /// The segment size of `host`.
        SegmentSize = "segment_size",
        /// The idle round trip.
        IdleRoundTrip = "idle_round_trip",
        /// The round trip under load.
        LoadedRoundTrip = "loaded_round_trip",
        /// On which way a queue stands.
        QueueDirection = "queue_direction",
        /// The speed of the NICs.
        NicSpeed = "nic_speed",
        /// What keeps the window below what `tcp_rmem` allows.
        WindowBound = "window_bound",
        /// The kernel's count of the time limited by the send buffer.
        SendBufferCount = "send_buffer_count",
        /// What the receiving socket dropped.
        SocketDrops = "socket_drops",
        /// A connection that no program on the way ends.
        DirectConnection = "direct_connection",
        /// The figures of the sending `host`.
        SenderFigures = "sender_figures",
        /// A probe beside the connection, towards `host`.
        ProbeBeside = "probe_beside",
    }
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// What.
    pub what: Lack,
    /// Of which host.
    pub host: Option<String>,
    /// How many samples there are.
    pub samples: Option<u64>,
}

impl Missing {
    /// Without operands; methods add them.
    pub const fn new(what: Lack) -> Self {
        Self { what, host: None, samples: None }
    }

    /// Of which host.
    #[must_use]
    pub fn host(mut self, name: &str) -> Self {
        self.host = Some(name.to_owned());
        self
    }

    /// How many samples there are.
    #[must_use]
    pub const fn samples(mut self, samples: u64) -> Self {
        self.samples = Some(samples);
        self
    }
}
