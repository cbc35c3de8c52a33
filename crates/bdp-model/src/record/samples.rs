//! Samples of a running flow, at either end.

use serde::{Deserialize, Serialize};

/// A sample at the receiver. Fields that the kernel did not return are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiverSample {
    /// Time since the flow's first byte was read, or since its connections were established if none arrived.
    pub at_ns: u64,
    /// Bytes read so far, all streams.
    pub bytes: u64,
    /// Receive window that the receiver's kernel intends to advertise, first stream; not the one on the wire.
    pub rcv_wnd_bytes: Option<u64>,
    /// Segments received out of order so far, all streams.
    pub out_of_order: Option<u64>,
    /// Bytes received but not read by the program, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_bytes: Option<u64>,
    /// Time that the program reading the first stream has waited for data so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_waited_ns: Option<u64>,
    /// Time that it has deliberately not read so far, to limit its rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_paused_ns: Option<u64>,
    /// Processor time of all receiving threads so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Processor time of the busiest receiving thread so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpu_ns: Option<u64>,
    /// Longest time so far that a receiving thread was runnable while others had its processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_wait_ns: Option<u64>,
    /// Round trip estimated by the receiver's kernel, for a socket that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
}

/// A sample of `TCP_INFO` at the sender. Fields that the kernel did not return are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SenderSample {
    /// Time since all connections were established.
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
    /// Time so far with data to send or in flight, first stream.
    pub busy_ns: Option<u64>,
    /// Busy time limited by the receive window so far, first stream; the kernel is known to under-report it.
    pub rwnd_limited_ns: Option<u64>,
    /// Busy time limited by the send buffer so far, first stream.
    pub sndbuf_limited_ns: Option<u64>,
    /// Congestion control state, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_state: Option<CongestionState>,
    /// Slow start threshold in segments, first stream; absent before the first congestion event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u32>,
    /// Segments considered lost and not yet retransmitted, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u32>,
    /// Segments that may arrive out of order before a gap counts as a loss, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering: Option<u32>,
    /// Reordering events so far, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_seen: Option<u64>,
    /// Retransmitted segments so far that the receiver already had (DSACK, RFC 2883), all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needless_retransmits: Option<u64>,
    /// Segments delivered so far, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Delivered segments so far with a Congestion Experienced mark, all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_ce: Option<u64>,
    /// Retransmission timeouts so far, all streams (Linux 6.7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Smallest round trip of the last minutes, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Latest delivery rate sample, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_rate_bps: Option<u64>,
    /// Whether that sample was limited by too little data to send, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_limited: Option<bool>,
    /// Pacing rate of the kernel, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// Unsent bytes in the send buffer, first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sent_bytes: Option<u64>,
    /// Time that the program writing the first stream has had data and waited for its socket so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_blocked_ns: Option<u64>,
    /// Time that it has had nothing to write, or was to write later, so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_idle_ns: Option<u64>,
    /// Processor time of all sending threads so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Processor time of the busiest sending thread so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpu_ns: Option<u64>,
    /// Longest time so far that a sending thread was runnable while others had its processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_wait_ns: Option<u64>,
}

impl SenderSample {
    /// Whether the send buffer holds less than a segment behind the few in flight, though both windows have room: Nagle's algorithm holds a small
    /// write back until the previous one is acknowledged (RFC 896). `None` if a figure is missing.
    pub fn holds_small_write(&self, mss: u64) -> Option<bool> {
        /// A program that makes small writes all the time has more in flight.
        const IN_FLIGHT: u32 = 2;
        let (unacked, not_sent) = (self.unacked?, self.not_sent_bytes?);
        let few = (1..=IN_FLIGHT).contains(&unacked) && unacked + 2 < self.cwnd?;
        let fits = (u64::from(unacked) + 2) * mss <= self.snd_wnd_bytes?;
        Some(few && fits && (1..mss).contains(&not_sent))
    }
}

/// State of congestion control in Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CongestionState {
    /// Nothing unusual.
    Open,
    /// Duplicate or selective acknowledgements arrived: a segment was lost or reordered.
    Disorder,
    /// The window is being reduced after an ECN mark or drops in the host.
    Reduced,
    /// A loss is being repaired by fast retransmit.
    Recovery,
    /// A retransmission timeout has expired.
    Loss,
}

impl CongestionState {
    /// Returns the state with this number in Linux, `enum tcp_ca_state`.
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

/// Maximum number of congestion events kept per connection; more would tell nothing new.
pub const LOSS_EPISODES_KEPT: usize = 400;

/// A congestion event of a connection: from the first loss or mark that the sender's kernel noticed until recovery.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossEpisode {
    /// Start, since all connections were established.
    pub at_ns: u64,
    /// Duration; 0 if it began and ended between two samples, or had not ended by the end of the flow.
    pub took_ns: u64,
    /// The sender's reaction.
    pub kind: EpisodeKind,
    /// Congestion window just before the event, in segments.
    pub cwnd: u32,
    /// Segments in flight just before the event.
    pub unacked: u32,
    /// Smoothed round trip just before the event.
    pub srtt_ns: u64,
    /// Segments delivered so far.
    pub delivered: u64,
    /// Latest delivery rate sample before the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_rate_bps: Option<u64>,
    /// Whether the sender was in slow start.
    pub slow_start: bool,
    /// Segments retransmitted during the event.
    pub retransmits: u64,
}

/// A sender's reaction to a congestion event, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EpisodeKind {
    /// It reduced its window after an ECN mark or drops in its own host.
    Reduced,
    /// It recovered from a loss by fast retransmit (RFC 6675).
    Recovery,
    /// Its retransmission timer expired (RFC 6298).
    Timeout,
}
