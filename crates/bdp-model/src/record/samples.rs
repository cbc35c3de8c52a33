//! Readings of a flow while it runs, at either end.

use serde::{Deserialize, Serialize};

/// One reading at the receiver. Absent fields are ones that the kernel did not return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiverSample {
    /// Since the flow's first byte was read, or since its connections were made where none came.
    pub at_ns: u64,
    /// Bytes read so far, all streams.
    pub bytes: u64,
    /// Window that the receiver's kernel means to advertise, first stream; not what is on the wire.
    pub rcv_wnd_bytes: Option<u64>,
    /// Segments that came out of order so far, all streams.
    pub out_of_order: Option<u64>,
    /// Bytes that have come and that the program has not read, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_bytes: Option<u64>,
    /// For how long so far the program that reads the first stream waited for data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_waited_ns: Option<u64>,
    /// For how long so far it did not read though it might have: it was to hold back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_paused_ns: Option<u64>,
    /// Processor time of the receiving threads so far, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// The same of the busiest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpu_ns: Option<u64>,
    /// For how long so far one of them at the most was ready to run while others had its processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_wait_ns: Option<u64>,
    /// Round trip as the receiver's kernel estimates it, of a socket that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
}

/// One reading of `TCP_INFO` at the sender. Absent fields are ones that the kernel did not return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SenderSample {
    /// Since all connections were made.
    pub at_ns: u64,
    /// Bytes acknowledged so far, all streams.
    pub acked_bytes: Option<u64>,
    /// Segments in flight, first stream.
    pub unacked: Option<u32>,
    /// Congestion window in segments, first stream.
    pub cwnd: Option<u32>,
    /// Receive window as the sender sees it, first stream.
    pub snd_wnd_bytes: Option<u64>,
    /// Smoothed round trip, first stream.
    pub srtt_ns: Option<u64>,
    /// Retransmitted segments so far, all streams.
    pub retransmits: Option<u64>,
    /// Time with data to send or in flight so far, first stream.
    pub busy_ns: Option<u64>,
    /// Of that, limited by the receive window as the kernel counts it, first stream; known to under-report.
    pub rwnd_limited_ns: Option<u64>,
    /// Of that, limited by the send buffer, first stream.
    pub sndbuf_limited_ns: Option<u64>,
    /// State of congestion control, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_state: Option<CongestionState>,
    /// Slow start threshold in segments, first stream; null before the first congestion event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u32>,
    /// Segments thought lost and not yet retransmitted, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u32>,
    /// Segments that may arrive out of order before a gap counts as a loss, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering: Option<u32>,
    /// Times so far that segments were seen to have been reordered, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_seen: Option<u64>,
    /// Segments so far that the receiver had already (DSACK, RFC 2883), all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needless_retransmits: Option<u64>,
    /// Segments delivered so far, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Of them with a Congestion Experienced mark, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_ce: Option<u64>,
    /// Retransmission timeouts so far, all streams (Linux 6.7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Smallest round trip of the last minutes, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Latest sample of the rate of delivery, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_rate_bps: Option<u64>,
    /// Whether the sender had too little to send when that was sampled, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_limited: Option<bool>,
    /// Rate that the kernel spaces segments by, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// Bytes in the send buffer that were never sent, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sent_bytes: Option<u64>,
    /// For how long so far the program that writes the first stream had bytes and waited for its socket to take them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_blocked_ns: Option<u64>,
    /// For how long so far it had nothing to write, or was to write later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_idle_ns: Option<u64>,
    /// Processor time of the sending threads so far, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// The same of the busiest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpu_ns: Option<u64>,
    /// For how long so far one of them at the most was ready to run while others had its processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_wait_ns: Option<u64>,
}

impl SenderSample {
    /// Whether less than a segment waits in the send buffer behind the few in flight, though both windows have room for it: as Nagle's algorithm holds a small
    /// write back until the one before it is acknowledged (RFC 896). `None` where a figure is missing.
    pub fn holds_small_write(&self, mss: u64) -> Option<bool> {
        /// A program that writes a little all the time has more in flight.
        const IN_FLIGHT: u32 = 2;
        let (unacked, not_sent) = (self.unacked?, self.not_sent_bytes?);
        let few = (1..=IN_FLIGHT).contains(&unacked) && unacked + 2 < self.cwnd?;
        let fits = (u64::from(unacked) + 2) * mss <= self.snd_wnd_bytes?;
        Some(few && fits && (1..mss).contains(&not_sent))
    }
}

/// State of congestion control as Linux has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CongestionState {
    /// Nothing unusual.
    Open,
    /// Duplicate acknowledgements, or selective ones: something was lost or reordered.
    Disorder,
    /// The window is being reduced after an ECN mark, or drops in the host.
    Reduced,
    /// A loss is being repaired by fast retransmit.
    Recovery,
    /// A retransmission timeout has expired.
    Loss,
}

impl CongestionState {
    /// By its number in Linux, `enum tcp_ca_state`.
    pub const fn of_linux(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Reduced,
            3 => Self::Recovery,
            4 => Self::Loss,
            _ => return None,
        })
    }
}

/// Of a connection so many congestion events are kept: one that loses all the time has told what it has to tell by then.
pub const LOSS_EPISODES_KEPT: usize = 400;

/// A congestion event of a connection: from when its sender's kernel noticed a loss or a mark until the event was over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossEpisode {
    /// Since all connections were made.
    pub at_ns: u64,
    /// Until it was over; 0 of one that began and ended between two readings, and of one that was not over at the end.
    pub took_ns: u64,
    /// What the sender did.
    pub kind: EpisodeKind,
    /// Congestion window just before it, in segments.
    pub cwnd: u32,
    /// Segments in flight just before it.
    pub unacked: u32,
    /// Smoothed round trip just before it.
    pub srtt_ns: u64,
    /// Segments delivered so far.
    pub delivered: u64,
    /// Latest sample of the rate of delivery before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_rate_bps: Option<u64>,
    /// Whether the sender was in slow start.
    pub slow_start: bool,
    /// Segments retransmitted in it.
    pub retransmits: u64,
}

/// What a sender did about a congestion event, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EpisodeKind {
    /// It reduced its window after an ECN mark, or drops in its own host.
    Reduced,
    /// It repaired a loss by fast retransmit (RFC 6675).
    Recovery,
    /// A retransmission timeout expired (RFC 6298).
    Timeout,
}
