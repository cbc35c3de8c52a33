//! The end of a connection from the view of one end, and the totals of its time.

use bdp_model::facts::{Conversation, Role, TimeState};

use super::{Account, MUCH, TIMER_NS};

/// Number of stops, mostly for a window opened by the other program bit by bit, from which a program has its own window.
const CREDITS: u64 = 5;

/// How a connection ends for one end.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct End {
    pub role: Role,
    /// Bytes never acknowledged.
    pub outstanding: u64,
    /// Whether the receive window is closed.
    pub is_closed: bool,
    /// Cause of the spacing of data that no acknowledgement triggered.
    pub spaced: TimeState,
    /// Whether the other end's last data was never acknowledged.
    pub other_in_vain: bool,
    /// Whether the capture lacks much of the traffic.
    pub is_lacking: bool,
    /// Whether the capture was taken elsewhere than at the sender.
    pub is_blind: bool,
    /// Whether something sent before the last captured data is missing.
    pub has_hole: bool,
}

impl Account {
    /// Records the end of the connection's capture.
    pub fn finish(&mut self, now: u64, end: End) {
        let now = now.max(self.line.until());
        if end.is_closed && self.spoke.is_some() {
            self.pour(now, |_| TimeState::ReceiverApplication);
        }
        let (role, outstanding) = (end.role, end.outstanding);
        let said = self.over.map_or(now, |over| over.clamp(self.line.until(), now));
        match (self.spoke, self.heard) {
            (None, None) if !self.is_made => self.tell(now, TimeState::Unanswered),
            (None, None) => self.tell(said, TimeState::NotAsked),
            (_, Some((first, last))) => {
                let is_answer = self.is_answer(first);
                self.turn(first.min(said), last.min(said), is_answer, role.other().wait());
                // It is unknown whether the other end's unacknowledged data arrived.
                let left = if end.other_in_vain { TimeState::OtherWay } else { self.left_over(role, true) };
                self.leave(said, left);
            }
            (Some(_), None) if outstanding > 0 && self.vain > 0 => self.tell(now, TimeState::Timeout),
            (Some(_), None) if outstanding > 0 && self.all_acked.is_none() && self.rtt.is_none() => {
                self.tell(said, TimeState::Unknown);
            }
            (Some(spoke), None) if self.is_broken_off(&end, said.saturating_sub(spoke)) => {
                self.broken_off_ns = said - self.line.until();
                self.tell(said, TimeState::Timeout);
            }
            (Some(_), None) => {
                self.way_and_back(said);
                let left = match self.left_over(role.other(), false) {
                    TimeState::Answering => self.other_waits_for(role, true),
                    left => left,
                };
                self.leave(said, left);
            }
        }
        self.tell(now, TimeState::Finished);
        if end.is_lacking {
            self.line.doubt();
        }
        self.line.rename(TimeState::Pacing, end.spaced);
        if end.spaced == TimeState::Pacing {
            self.line.rename(TimeState::SendBuffer, TimeState::Pacing);
        }
        if self.prompted[1] > 2 * self.prompted[0] {
            self.line.rename(TimeState::SendBuffer, TimeState::ProgramWindow);
        }
    }

    /// Records the last silence, which nothing ended.
    fn leave(&mut self, until: u64, state: TimeState) {
        if state != TimeState::Finished {
            self.open_ns = until - self.line.until();
        }
        self.tell(until, state);
    }

    /// Whether a transfer seen from elsewhere broke off: in the middle of a write, or with data missing before its last segment, followed
    /// by silence.
    fn is_broken_off(&self, end: &End, silent_ns: u64) -> bool {
        let is_full = u64::from(self.last.size).is_multiple_of(self.mss.max(1));
        let is_amid = is_full && self.burst >= MUCH * self.mss;
        let has_said_all = self.over.is_some() && self.closed_it;
        let is_long = silent_ns >= TIMER_NS.max(2 * self.rtt.unwrap_or(0));
        is_long && end.is_blind && !end.is_lacking && !has_said_all && (is_amid || end.has_hole)
    }

    /// Returns what the connection waits for at its end: a client that asks nothing more has all it wanted, and a server that closes has
    /// nothing to send.
    fn left_over(&self, role: Role, is_own: bool) -> TimeState {
        match role {
            Role::Server if self.over.is_none() || self.closed_it != is_own => TimeState::Answering,
            _ => TimeState::Finished,
        }
    }

    /// Whether it stops at the amount in flight allowed by the programs, rather than for an answer.
    pub const fn has_window(&self) -> bool {
        let by_credits =
            self.credits >= CREDITS && self.credits * 2 > self.bursts && self.bursts * 2 > self.turns;
        by_credits || self.rounds >= CREDITS && self.rounds * 2 > self.turns
    }

    /// Reclassifies the round trips of both directions as waits for such a window.
    pub fn of_window(&mut self) {
        self.line.rename(TimeState::RoundTrips, TimeState::ProgramWindow);
    }

    /// Returns the totals.
    pub fn report(&self, now: u64, outstanding: u64, role: Role) -> Conversation {
        let is_vain = outstanding > 0 && self.vain > 0;
        Conversation {
            sender: role,
            refused: None,
            syns: 0,
            spent: self.line.spent(),
            turns: self.turns,
            own_waits: self.own_waits,
            other_waits: self.other_waits,
            bulk_gaps: self.bulk_gaps,
            stops_at_amount: self.stops,
            amount_bytes: self.amount,
            gives_room: Conversation::giver(role, self.has_channels),
            is_minor: false,
            open_silence: self.open_ns as f64 / now.saturating_sub(self.line.began()).max(1) as f64,
            broken_off_ns: self.broken_off_ns,
            missing: 0.0,
            outage_ns: 0,
            sent_in_vain: if is_vain { self.vain } else { 0 },
            in_vain_ns: if is_vain { now.saturating_sub(self.vain_since) } else { 0 },
            oversized: None,
        }
    }
}
