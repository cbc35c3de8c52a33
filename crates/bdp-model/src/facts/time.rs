//! Where the time of a transfer went: each moment of the sender belongs to one state, and the states add up to all of it. How
//! they are told apart is in [`super::attribution`]'s rules; `docs/time.md` has them for users.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a sender's time went to. The names are those of JSON and of `docs/time.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeState {
    /// The path carried all that it can: a queue stood, or the ceiling was reached.
    FullPath,
    /// The congestion window doubled each round trip and was below the slow start threshold.
    SlowStart,
    /// The congestion window was full and below what the path holds, and grew in congestion avoidance.
    CongestionAvoidance,
    /// The congestion control probed by its own model of the path, as BBR does.
    Probing,
    /// The congestion window was reduced after ECN marks, or drops in the sending host.
    EcnReduction,
    /// A loss was repaired by fast retransmit.
    Recovery,
    /// A retransmission timeout had expired, and its losses were repaired.
    Timeout,
    /// The receive window was full.
    ReceiveWindow,
    /// The send buffer was full of data in flight.
    SendBuffer,
    /// Segments were spaced to a rate that was asked for, or that the sender was held to.
    Pacing,
    /// The sending program had nothing to write, or less than a segment.
    SenderApplication,
    /// The receiving program left data in its socket, and the receive window was full.
    ReceiverApplication,
    /// The thread that sends used up a processor, or waited for one.
    SenderProcessor,
    /// The thread that receives used up a processor, or waited for one.
    ReceiverProcessor,
    /// None of these fits what the sender's kernel reports.
    Unknown,
}

impl TimeState {
    /// All of them, in the order in which they are drawn.
    pub const ALL: [Self; 15] = [
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
        Self::Unknown,
    ];

    /// As JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FullPath => "full_path",
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Probing => "probing",
            Self::EcnReduction => "ecn_reduction",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::ReceiveWindow => "receive_window",
            Self::SendBuffer => "send_buffer",
            Self::Pacing => "pacing",
            Self::SenderApplication => "sender_application",
            Self::ReceiverApplication => "receiver_application",
            Self::SenderProcessor => "sender_processor",
            Self::ReceiverProcessor => "receiver_processor",
            Self::Unknown => "unknown",
        }
    }

    /// What happened in it.
    pub const fn about(self) -> &'static str {
        match self {
            Self::FullPath => "the path carried all that it can: a queue stood, or the ceiling was reached",
            Self::SlowStart => {
                "the congestion window doubled each round trip and was below the slow start threshold"
            }
            Self::CongestionAvoidance => {
                "the congestion window was full and below what the path holds, and grew in congestion avoidance"
            }
            Self::Probing => "the congestion control probed by its own model of the path, as BBR does",
            Self::EcnReduction => {
                "the congestion window was reduced after ECN marks, or drops in the sending host"
            }
            Self::Recovery => "a loss was repaired by fast retransmit",
            Self::Timeout => "a retransmission timeout had expired, and its losses were repaired",
            Self::ReceiveWindow => "the receive window was full",
            Self::SendBuffer => "the send buffer was full of data in flight",
            Self::Pacing => {
                "segments were spaced to a rate that was asked for, or that the sender was held to"
            }
            Self::SenderApplication => "the sending program had nothing to write, or less than a segment",
            Self::ReceiverApplication => {
                "the receiving program left data in its socket, and the receive window was full"
            }
            Self::SenderProcessor => "the thread that sends used up a processor, or waited for one",
            Self::ReceiverProcessor => "the thread that receives used up a processor, or waited for one",
            Self::Unknown => "none of these fits what the sender's kernel reports",
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
    /// The stretches that begin at a moment or later.
    pub fn since(self, at_ns: u64) -> Self {
        Self { stretches: self.stretches.into_iter().filter(|s| s.from_ns >= at_ns).collect() }
    }

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
