//! Where the time of a transfer went: each moment of the sender belongs to one state, and the states add up to all of it. The
//! rules are in [`super::attribution`]; `docs/time.md` explains the states to users.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::finding::named::named;

named! {
    /// The state of a connection at a moment, for the data of one end: who was waiting for whom, and for what. In the order in which they are drawn.
    pub enum TimeState {
        /// A SYN was not answered, and was retransmitted.
        Unanswered = "unanswered",
        /// The connection was being made: a SYN and its answer.
        Handshake = "handshake",
        /// TLS agreed on its keys.
        TlsSetup = "tls_setup",
        /// The client had not asked: its program, or a person, paused.
        NotAsked = "not_asked",
        /// The server had been asked and had not yet begun to answer.
        Answering = "answering",
        /// A question or an answer was on its way: a round trip of a conversation.
        RoundTrips = "round_trips",
        /// It was the other end's turn, whose data was coming.
        OtherWay = "other_way",
        /// The path carried all that it can: a queue stood, or the ceiling was reached.
        FullPath = "full_path",
        /// The congestion window doubled each round trip and was below the slow start threshold.
        SlowStart = "slow_start",
        /// The congestion window was full and below what the path holds, and grew in congestion avoidance.
        CongestionAvoidance = "congestion_avoidance",
        /// The congestion control probed by its own model of the path, as BBR does.
        Probing = "probing",
        /// The congestion window was reduced after ECN marks, or drops in the sending host.
        EcnReduction = "ecn_reduction",
        /// A loss was repaired by fast retransmit.
        Recovery = "recovery",
        /// A retransmission timeout had expired, and its losses were repaired.
        Timeout = "timeout",
        /// The receive window was full.
        ReceiveWindow = "receive_window",
        /// The send buffer was full of data in flight.
        SendBuffer = "send_buffer",
        /// What the sending program's own protocol allows was in flight, until the other program gave room.
        ProgramWindow = "program_window",
        /// Segments were paced to a rate that the test, the server or the sending host sets.
        Pacing = "pacing",
        /// A small write waited for the acknowledgement of the one before it.
        Nagle = "nagle",
        /// The sending program had nothing to write, or less than a segment.
        SenderApplication = "sender_application",
        /// The receiving program left data in its socket, and the receive window was full.
        ReceiverApplication = "receiver_application",
        /// The thread that sends used up a processor, or waited for one.
        SenderProcessor = "sender_processor",
        /// The thread that receives used up a processor, or waited for one.
        ReceiverProcessor = "receiver_processor",
        /// Both ends had sent everything, or the connection was closing.
        Finished = "finished",
        /// The capture lacks the packets of this time.
        NotCaptured = "not_captured",
        /// None of these fits what is known.
        Unknown = "unknown",
    }
}

/// What is waited for: a grouping of the states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waits {
    /// An answer to a SYN.
    Connection,
    /// A request from the client.
    Client,
    /// The start of the server's response.
    Server,
    /// Round trips of requests and responses: of the handshake, of TLS and of the programs.
    RoundTrips,
    /// Data from the other end.
    OtherWay,
    /// The path: its rate, its losses, and the congestion window that results from them.
    Path,
    /// The growth of the congestion window in slow start.
    SlowStart,
    /// The receive window.
    ReceiveWindow,
    /// The receiving program.
    Reader,
    /// Room in the send buffer.
    SendBuffer,
    /// Room in the programs' own window.
    ProgramWindow,
    /// The rate that the sender is limited to.
    Pacing,
    /// The acknowledgement required by Nagle's algorithm.
    Nagle,
    /// The sending program.
    Writer,
    /// A processor.
    Processor,
    /// Nothing.
    Nothing,
    /// Not known: it is missing from the capture.
    Uncaptured,
    /// Not known.
    Unknown,
}

impl TimeState {
    /// Returns what is waited for in this state.
    pub const fn waits(self) -> Waits {
        match self {
            Self::Unanswered => Waits::Connection,
            Self::NotAsked => Waits::Client,
            Self::Answering => Waits::Server,
            Self::Handshake | Self::TlsSetup | Self::RoundTrips => Waits::RoundTrips,
            Self::OtherWay => Waits::OtherWay,
            Self::FullPath
            | Self::CongestionAvoidance
            | Self::Probing
            | Self::EcnReduction
            | Self::Recovery
            | Self::Timeout => Waits::Path,
            Self::SlowStart => Waits::SlowStart,
            Self::ReceiveWindow => Waits::ReceiveWindow,
            Self::ReceiverApplication => Waits::Reader,
            Self::SendBuffer => Waits::SendBuffer,
            Self::ProgramWindow => Waits::ProgramWindow,
            Self::Pacing => Waits::Pacing,
            Self::Nagle => Waits::Nagle,
            Self::SenderApplication => Waits::Writer,
            Self::SenderProcessor | Self::ReceiverProcessor => Waits::Processor,
            Self::Finished => Waits::Nothing,
            Self::NotCaptured => Waits::Uncaptured,
            Self::Unknown => Waits::Unknown,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stretch {
    /// Its start, since all connections were established.
    pub from_ns: u64,
    /// Its end, since all connections were established.
    pub to_ns: u64,
    /// Nanoseconds in each state; they add up to the stretch.
    pub states: Vec<(TimeState, u64)>,
}

/// Where the time went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeSpent {
    /// The stretches in order of time, without gaps.
    pub stretches: Vec<Stretch>,
}

impl TimeSpent {
    /// Keeps the stretches that begin at this time or later.
    pub fn since(self, at_ns: u64) -> Self {
        Self { stretches: self.stretches.into_iter().filter(|s| s.from_ns >= at_ns).collect() }
    }

    /// Counts the time of one state as another.
    #[must_use]
    pub fn renamed(mut self, from: TimeState, to: TimeState) -> Self {
        for stretch in &mut self.stretches {
            let moved: u64 = stretch.states.iter().filter(|state| state.0 == from).map(|state| state.1).sum();
            stretch.states.retain(|state| state.0 != from);
            match stretch.states.iter_mut().find(|state| state.0 == to) {
                _ if moved == 0 => {}
                Some(own) => own.1 += moved,
                None => stretch.states.push((to, moved)),
            }
        }
        self
    }

    /// Total time of all stretches.
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

    /// Share of the time spent in loss recovery.
    pub fn repairs(&self) -> f64 {
        self.share_of(|state| matches!(state, TimeState::Recovery | TimeState::Timeout))
    }

    /// Everything that was waited for, with its share of the time.
    pub fn parts(&self) -> Vec<(Waits, f64)> {
        let mut parts: Vec<(Waits, f64)> = Vec::new();
        for (state, share) in self.shares() {
            let waits = state.waits();
            match parts.iter_mut().find(|part| part.0 == waits) {
                Some(part) => part.1 += share,
                None => parts.push((waits, share)),
            }
        }
        parts
    }

    /// What was waited for most, with its share, except the other end's turn and nothing. A full path is as it should be:
    /// a program that pauses for a good part of the time precedes it, unless the path is full nearly all the time.
    pub fn waited_for(&self) -> Option<(Waits, f64)> {
        const NEARLY_ALL: f64 = 0.8;
        const GOOD_PART: f64 = 0.2;
        let mut parts = self.parts();
        parts.retain(|part| !matches!(part.0, Waits::OtherWay | Waits::Nothing));
        let active: f64 = parts.iter().map(|part| part.1).sum();
        let most = |parts: &[(Waits, f64)]| parts.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let largest = most(&parts)?;
        let full = self.share_of(|state| matches!(state, TimeState::FullPath | TimeState::Probing));
        if largest.0 == Waits::Path && full < NEARLY_ALL * active {
            parts.iter_mut().filter(|part| part.0 == Waits::Path).for_each(|part| part.1 -= full);
            let pauses = |part: &(Waits, f64)| {
                matches!(part.0, Waits::Writer | Waits::Reader) && part.1 >= GOOD_PART * active
            };
            return most(&parts).filter(pauses).or(Some(largest));
        }
        Some(largest)
    }

    /// Every state that took any time, with its share, longest first.
    pub fn shares(&self) -> Vec<(TimeState, f64)> {
        let mut all: Vec<_> =
            TimeState::ALL.iter().map(|&state| (state, self.share(state))).filter(|s| s.1 > 0.0).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_pauses_comes_before_a_path_that_is_full_in_between() {
        let spent = |states: &[(TimeState, u64)]| TimeSpent {
            stretches: vec![Stretch {
                from_ns: 0,
                to_ns: states.iter().map(|s| s.1).sum(),
                states: states.to_vec(),
            }],
        };
        let waited_for = |states: &[(TimeState, u64)]| spent(states).waited_for().unwrap().0;
        use TimeState::{CongestionAvoidance, FullPath, ReceiverApplication, SenderApplication};
        let held = [(FullPath, 33), (CongestionAvoidance, 27), (ReceiverApplication, 40)];
        assert_eq!(waited_for(&held), Waits::Reader);
        assert_eq!(
            waited_for(&[(FullPath, 66), (CongestionAvoidance, 3), (SenderApplication, 31)]),
            Waits::Writer
        );
        assert_eq!(waited_for(&[(FullPath, 80), (SenderApplication, 20)]), Waits::Path, "nearly all");
        assert_eq!(
            waited_for(&[(FullPath, 60), (CongestionAvoidance, 25), (SenderApplication, 15)]),
            Waits::Path
        );
        assert_eq!(waited_for(&[(CongestionAvoidance, 60), (ReceiverApplication, 40)]), Waits::Path);
        assert_eq!(waited_for(&[(TimeState::OtherWay, 90), (FullPath, 10)]), Waits::Path);
    }
}
