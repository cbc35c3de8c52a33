//! Where the time of a transfer went: each moment of the sender belongs to one state, and the states add up to all of it.
//!
//! Between two readings of `TCP_INFO` the kernel's chronographs say for how long nothing was to be sent, the receive window was full, and the send buffer was
//! (`tcp_chrono_start` in Linux); the rest belongs to the congestion window, and by the state of congestion control, the slow start
//! threshold and the round trip to what it was doing. The chronograph of the receive window is known to count too little, so that an interval at whose ends no further segment fits
//! the window is the window's as a whole.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Facts;
use crate::record::{CongestionState, SenderSample};
use crate::threshold::{BUSY_THREAD, QUEUE_NOISE, QUEUE_SHARE};

/// What a sender's time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeState {
    /// The sending program wrote nothing, or less than the connection could carry.
    SenderApplication,
    /// The receiving program left data in its socket, and the receive window shrank.
    ReceiverApplication,
    /// The send buffer was full of data in flight.
    SendBuffer,
    /// The receive window was full.
    ReceiveWindow,
    /// The congestion window was growing in slow start.
    SlowStart,
    /// The congestion window was below what the path holds, after losses, and growing in congestion avoidance.
    CongestionAvoidance,
    /// The congestion window was being reduced after ECN marks.
    EcnReduction,
    /// A loss was being repaired by fast retransmit.
    Recovery,
    /// A retransmission timeout had expired, and its losses were being repaired.
    Timeout,
    /// The congestion control probed by its own model of the path, as BBR does.
    Probing,
    /// Segments were spaced to a rate that was asked for.
    Pacing,
    /// A queue stood on the path: its bottleneck was full.
    FullPath,
    /// The thread that sends used up a processor.
    SenderProcessor,
    /// The thread that receives used up a processor.
    ReceiverProcessor,
}

impl TimeState {
    /// All of them, in the order in which they are drawn.
    pub const ALL: [Self; 14] = [
        Self::FullPath,
        Self::SlowStart,
        Self::CongestionAvoidance,
        Self::Probing,
        Self::EcnReduction,
        Self::Recovery,
        Self::Timeout,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::Pacing,
        Self::SenderApplication,
        Self::ReceiverApplication,
        Self::SenderProcessor,
        Self::ReceiverProcessor,
    ];

    /// As JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SenderApplication => "sender_application",
            Self::ReceiverApplication => "receiver_application",
            Self::SendBuffer => "send_buffer",
            Self::ReceiveWindow => "receive_window",
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::EcnReduction => "ecn_reduction",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::Probing => "probing",
            Self::Pacing => "pacing",
            Self::FullPath => "full_path",
            Self::SenderProcessor => "sender_processor",
            Self::ReceiverProcessor => "receiver_processor",
        }
    }
}

impl fmt::Display for TimeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The time between two readings, by state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Since all connections were made.
    pub from_ns: u64,
    /// Likewise.
    pub to_ns: u64,
    /// Nanoseconds in each state; they add up to the stretch.
    pub states: Vec<(TimeState, u64)>,
}

/// Where the time went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSpent {
    /// In order of time, without gaps.
    pub stretches: Vec<Stretch>,
}

impl TimeSpent {
    /// The time that all stretches together took.
    pub fn total_ns(&self) -> u64 {
        self.stretches.iter().map(|s| s.to_ns - s.from_ns).sum()
    }

    /// Share of the time that went to a state.
    pub fn share(&self, state: TimeState) -> f64 {
        self.share_of(|other| other == state)
    }

    /// Share of the time that went to any of several states.
    pub fn share_of(&self, is_one: impl Fn(TimeState) -> bool) -> f64 {
        let spent: u64 = self
            .stretches
            .iter()
            .flat_map(|s| &s.states)
            .filter(|(state, _)| is_one(*state))
            .map(|(_, ns)| ns)
            .sum();
        spent as f64 / self.total_ns().max(1) as f64
    }

    /// Each state that took any time, with its share, the longest first.
    pub fn shares(&self) -> Vec<(TimeState, f64)> {
        let mut all: Vec<_> = TimeState::ALL
            .map(|state| (state, self.share(state)))
            .into_iter()
            .filter(|s| s.1 > 0.0)
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}

impl Facts {
    /// Where the time of the first stream went; `None` where the sender's kernel does not count it.
    pub fn time_spent(&self) -> Option<TimeSpent> {
        if self.udp.is_some() || self.through_tunnel {
            return None;
        }
        let cut = Cut::of(self);
        let mut stretches = Vec::new();
        let mut largest_window = 0;
        for pair in self.sent.windows(2) {
            largest_window = largest_window.max(pair[1].snd_wnd_bytes.unwrap_or(0));
            stretches.push(cut.stretch(&pair[0], &pair[1], largest_window)?);
        }
        (!stretches.is_empty()).then_some(TimeSpent { stretches })
    }
}

/// What is the same for all intervals of a transfer.
struct Cut {
    mss: u64,
    /// From this round trip on a queue stands.
    queued_ns: Option<u64>,
    is_probing: bool,
    is_paced: bool,
    sender_busy: bool,
    receiver_busy: bool,
}

impl Cut {
    fn of(facts: &Facts) -> Self {
        let least = facts.sent.iter().filter_map(|s| s.min_rtt_ns).min();
        let idle = facts.rtt_idle().map(|rtt| rtt.as_ns()).into_iter().chain(least).min();
        Self {
            mss: facts.mss_bytes.unwrap_or(0),
            queued_ns: idle.map(|ns| ns + QUEUE_NOISE.as_ns().max((ns as f64 * QUEUE_SHARE) as u64)),
            is_probing: facts.congestion_control.starts_with("bbr"),
            is_paced: facts.paced_bps.is_some(),
            sender_busy: facts.sender_thread() >= BUSY_THREAD,
            receiver_busy: facts.receiver_thread() >= BUSY_THREAD,
        }
    }

    fn stretch(&self, a: &SenderSample, b: &SenderSample, largest_window: u64) -> Option<Stretch> {
        let took = b.at_ns.checked_sub(a.at_ns)?;
        let grown =
            |count: fn(&SenderSample) -> Option<u64>| Some(count(b)?.saturating_sub(count(a)?).min(took));
        let busy = grown(|s| s.busy_ns)?;
        let mut window = grown(|s| s.rwnd_limited_ns).unwrap_or(0).min(busy);
        let buffer = grown(|s| s.sndbuf_limited_ns).unwrap_or(0).min(busy - window);
        if self.window_is_full(a) && self.window_is_full(b) {
            window = busy - buffer;
        }
        let rest = busy - window - buffer;
        let shrunk = b.snd_wnd_bytes.is_some_and(|bytes| bytes < largest_window / 2);
        let mut states = Vec::new();
        let mut add = |state, ns| {
            if ns > 0 {
                states.push((state, ns));
            }
        };
        add(TimeState::SenderApplication, took - busy);
        add(if shrunk { TimeState::ReceiverApplication } else { TimeState::ReceiveWindow }, window);
        add(TimeState::SendBuffer, buffer);
        add(self.of_congestion_window(a, b), rest);
        Some(Stretch { from_ns: a.at_ns, to_ns: b.at_ns, states })
    }

    fn window_is_full(&self, s: &SenderSample) -> bool {
        let (Some(unacked), Some(cwnd), Some(window)) = (s.unacked, s.cwnd, s.snd_wnd_bytes) else {
            return false;
        };
        (u64::from(unacked) + 1) * self.mss > window && cwnd > unacked
    }

    /// What the congestion window was doing, whose the time is that nothing else held the sender back.
    fn of_congestion_window(&self, a: &SenderSample, b: &SenderSample) -> TimeState {
        match b.congestion_state {
            Some(CongestionState::Loss) => return TimeState::Timeout,
            Some(CongestionState::Recovery) => return TimeState::Recovery,
            Some(CongestionState::Reduced) => return TimeState::EcnReduction,
            _ => {}
        }
        let room =
            b.unacked.zip(b.cwnd).is_some_and(|(unacked, cwnd)| u64::from(unacked) * 5 < u64::from(cwnd) * 4);
        let nothing_left = b.not_sent_bytes.is_some_and(|bytes| bytes < self.mss.max(1));
        let is_dry = b.app_limited == Some(true) && nothing_left && room;
        if self.queued_ns.zip(b.srtt_ns).is_some_and(|(queued, srtt)| srtt > queued) && !is_dry {
            return TimeState::FullPath;
        }
        match () {
            () if self.sender_busy && room => TimeState::SenderProcessor,
            () if self.receiver_busy && room => TimeState::ReceiverProcessor,
            () if is_dry && self.is_paced => TimeState::Pacing,
            () if is_dry => TimeState::SenderApplication,
            () if self.is_paced && room => TimeState::Pacing,
            () if self.is_probing => TimeState::Probing,
            () if b.ssthresh.or(a.ssthresh).is_none_or(|t| b.cwnd.is_some_and(|cwnd| cwnd < t)) => {
                TimeState::SlowStart
            }
            () => TimeState::CongestionAvoidance,
        }
    }
}
