//! For what each moment was waited, for the data of one end: its own program, that of the other end, the way between them, the windows. Times are those of
//! [`super::half`]: what comes from the other end counts when it has reached this one.
//!
//! A moment is told when the data that ends a wait has come, since only that says what was waited for. Between two segments of one end there
//! is either data of the other end, and then it was a turn of a conversation, or there is none, and then an acknowledgement set the second one off
//! or the program did.

mod ending;

use bdp_model::facts::{Role, TimeState, is_round_amount};

use super::delays::Delays;
use super::timeline::Timeline;

pub(super) use ending::End;

/// States that are remembered until it is known whether they hold, at the most.
const RUNS: usize = 64;
/// An answer comes no sooner than this part of a round trip.
const ANSWER: (u64, u64) = (4, 5);
/// An acknowledgement that takes longer than a round trip and a half waited at the receiver.
const ACKED_AT_ONCE_NS: u64 = 5_000_000;
/// An end that closes a connection says no more than so many bytes before it does: an alert of TLS, a farewell.
const LAST_WORDS: u64 = 256;
/// A program that takes longer in the setup of TLS, and longer than two round trips, is what is waited for, and not the setup.
const SLOW_NS: u64 = 50_000_000;
/// No timer of a sender runs out sooner.
const TIMER_NS: u64 = 200_000_000;
/// A smaller segment is hardly one of full size.
const FULL: u32 = 1_000;
/// Segments that are no question.
const MUCH: u64 = 8;
/// Bytes that fill the channel of a protocol which has several of them, at the least: a program that takes no more lets them stand.
const CHANNEL: u64 = 32 * 1024;
/// A wait of a program is worth counting.
const WAIT_NS: u64 = 1_000_000;

/// Data of this end, as it passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    pub kind: Sent,
    pub size: u32,
    pub mss: u64,
    /// The capture was taken elsewhere: what is lost before it is not seen.
    pub is_blind: bool,
    /// It was all that there was to send.
    pub ends_short: bool,
    /// Bytes that were not acknowledged before.
    pub outstanding: u64,
    /// From the sender to the receiver and back, at the least.
    pub rtt: Option<u64>,
    /// The same now, with its queues, of a capture taken elsewhere than at the sender.
    pub rtt_now: Option<u64>,
    /// What an acknowledgement set off follows it within this time.
    pub prompt: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    New,
    /// After a timer.
    Timer,
    /// Long before: the path held it.
    Held,
    /// After acknowledgements that showed a loss, or for an unknown reason.
    Again,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    line: Timeline,
    /// What held the sender since the last of its data, as far as the windows go: until when, and what.
    runs: Vec<(u64, TimeState)>,
    /// When its data passed last.
    spoke: Option<u64>,
    last: LastOwn,
    /// When data of the other end came since then: first, and last.
    heard: Option<(u64, u64)>,
    /// When an acknowledgement last gave room since then, and whether it carried data; and when the first one did.
    room: Option<(u64, bool)>,
    first_room: u64,
    /// When all of its data was acknowledged.
    all_acked: Option<u64>,
    /// Bytes since the other end spoke last, and those of the turn before.
    burst: u64,
    amount: u64,
    /// The first FIN or RST of either end.
    over: Option<u64>,
    /// Since when a server was silent before its last words.
    silence: Option<u64>,
    /// Since when a sender with more to send was silent before a segment of full size: a timer's, if the next one waits for its acknowledgement.
    suspect: Option<u64>,
    /// Bytes of those last words.
    words: u64,
    /// Whether it was this end that closed the connection first.
    closed_it: bool,
    is_made: bool,
    /// From when until when TLS agreed on its keys.
    setup: Option<(u64, u64)>,
    /// Of the gaps that an acknowledgement ended, those of one with data.
    prompted: [u64; 2],
    turns: u64,
    own_waits: u64,
    other_waits: u64,
    bulk_gaps: u64,
    stops: u64,
    /// Of the times that it stopped with much on its way, those at which the other program gave room before it had all of that.
    credits: u64,
    bursts: u64,
    /// Times that it stopped at the same round amount.
    rounds: u64,
    /// It carries the channels of SSH, whose windows the client's and the server's programs give each other.
    has_channels: bool,
    /// A silence at the end that nobody has ended.
    open_ns: u64,
    broken_off_ns: u64,
    /// What came first since the last of its data came before all of that was acknowledged.
    heard_amid: bool,
    /// By how much the segments of the other end are late, and by how much the way took longer of the turn that goes on.
    delays: Delays,
    delayed: u64,
    /// Times that Nagle's algorithm held a segment back.
    pub held: u64,
    mss: u64,
    vain: u64,
    vain_since: u64,
    rtt: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LastOwn {
    size: u32,
    ends_short: bool,
}

impl Account {
    /// Memory that it has beside its own place.
    pub fn held_bytes(&self) -> usize {
        self.line.held_bytes() + self.runs.capacity() * size_of::<(u64, TimeState)>()
    }

    /// Tells for what was waited until a moment. Of what TLS takes to agree on its keys that is its setup, unless something went wrong or a program was slow.
    fn tell(&mut self, until: u64, state: TimeState) {
        let Some((from, to)) = self.setup else { return self.line.add(until, state) };
        self.line.add(until.min(from), state);
        let took = until.min(to).saturating_sub(self.line.until());
        let is_setup = match state {
            TimeState::RoundTrips
            | TimeState::SlowStart
            | TimeState::CongestionAvoidance
            | TimeState::SendBuffer
            | TimeState::Nagle
            | TimeState::Unknown => true,
            TimeState::NotAsked
            | TimeState::Answering
            | TimeState::SenderApplication
            | TimeState::OtherWay => took < SLOW_NS.max(2 * self.rtt.unwrap_or(0)),
            _ => false,
        };
        self.line.add(until.min(to), if is_setup { TimeState::TlsSetup } else { state });
        self.line.add(until, state);
    }

    /// SSH begins.
    pub const fn channels_begin(&mut self) {
        self.has_channels = true;
    }

    /// TLS begins to agree on its keys.
    pub const fn setup_begins(&mut self, now: u64) {
        self.setup = Some((now, u64::MAX));
    }

    /// It is done.
    pub const fn setup_ends(&mut self, now: u64) {
        if let Some((_, to)) = &mut self.setup {
            *to = now;
        }
    }

    /// Something passed before this moment that the capture lacks.
    pub fn lacks(&mut self, now: u64) {
        self.line.lacks(now);
    }

    /// A packet of the connection passes, of either end, and no data has.
    pub fn begin(&mut self, now: u64) {
        self.line.begin(now);
    }

    /// A SYN of either end passes; `again` if it is sent once more.
    pub fn syn(&mut self, now: u64, again: bool) {
        self.line.begin(now);
        self.tell(now, if again { TimeState::Unanswered } else { TimeState::Handshake });
    }

    /// The connection is made.
    pub fn established(&mut self, now: u64) {
        if !self.is_made {
            self.is_made = true;
            self.tell(now, TimeState::Handshake);
        }
    }

    /// Nobody has more to say. A server that ends a connection may say so with its last words, after a silence in which nobody asked.
    pub fn over(&mut self, now: u64, by_this_end: bool) {
        const LAST_WORDS_NS: u64 = 500_000_000;
        if self.over.is_some() {
            return;
        }
        (self.over, self.closed_it) = (Some(now), by_this_end);
        let spoke = self.spoke.unwrap_or(0);
        if let Some(since) = self.silence.take()
            && now.saturating_sub(spoke) <= LAST_WORDS_NS
            && self.heard.is_none()
        {
            self.line.retell(since, TimeState::SenderApplication, TimeState::NotAsked);
        }
    }

    /// What held the sender from the last event until now, as far as windows go.
    pub fn held_by(&mut self, now: u64, state: TimeState) {
        let since = self.runs.last().map_or(self.line.until(), |run| run.0);
        if now <= since {
            return;
        }
        let is_full = self.runs.len() >= RUNS;
        match self.runs.last_mut() {
            Some(last) if last.1 == state || is_full => last.0 = now,
            _ => self.runs.push((now, state)),
        }
    }

    /// Data of the other end reaches this one.
    pub fn heard(&mut self, now: u64, is_amid: bool, stamp: Option<u32>) {
        if let Some(stamp) = stamp {
            self.delays.add(now, stamp);
        }
        if self.heard.is_none() {
            (self.heard_amid, self.delayed) = (is_amid, self.delays.of_turn());
        }
        self.heard = Some(self.heard.map_or((now, now), |(first, _)| (first, now)));
    }

    /// An acknowledgement reaches this end that gives room, with data or without.
    pub fn room(&mut self, now: u64, with_data: bool, is_all: bool) {
        if self.room.is_none() {
            self.first_room = now;
        }
        self.room = Some((now, with_data));
        // One that comes with data waited for it.
        if is_all && !with_data {
            self.all_acked.get_or_insert(now);
        }
        self.vain = 0;
    }

    /// Data of this end passes.
    pub fn own(&mut self, now: u64, own: Own, role: Role) {
        self.line.begin(now);
        (self.rtt, self.mss) = (own.rtt.or(self.rtt), own.mss);
        if let Some((since, rtt)) = self.suspect.take().zip(self.rtt) {
            let then = now.saturating_sub(self.spoke.unwrap_or(now));
            if self.heard.is_none() && (rtt / 2..=2 * rtt + ACKED_AT_ONCE_NS).contains(&then) {
                self.line.retell(since, TimeState::SenderApplication, TimeState::Timeout);
            }
        }
        match own.kind {
            Sent::Timer => {
                self.vain += 1;
                if self.vain == 1 {
                    self.vain_since = self.line.until();
                }
                self.tell(now, TimeState::Timeout);
            }
            Sent::Held => self.tell(now, TimeState::Timeout),
            Sent::Again => self.pour(now, |state| state),
            Sent::New => self.new_data(now, own, role),
        }
        self.words += u64::from(own.size);
        if self.heard.is_some() || self.words > LAST_WORDS {
            self.silence = None;
        }
        self.burst += u64::from(own.size);
        self.last = LastOwn { size: own.size, ends_short: own.ends_short };
        (self.spoke, self.room, self.all_acked) = (Some(now), None, None);
        if own.kind == Sent::New || self.heard.is_some_and(|(_, last)| last <= now) && own.outstanding == 0 {
            self.heard = None;
        }
        self.runs.clear();
    }

    fn new_data(&mut self, now: u64, own: Own, role: Role) {
        let rtt = self.rtt.unwrap_or(0);
        if let Some((first, last)) = self.heard {
            let is_answer = self.is_answer(first);
            if is_answer || own.outstanding == 0 {
                let waits = self.other_waits_for(role, u64::from(own.size) >= own.mss);
                self.turn(first, last, is_answer, waits);
                // A client that has sent much, and goes on with a full segment, has no question: it writes.
                let is_writing = self.amount >= MUCH * own.mss && u64::from(own.size) >= own.mss;
                let wait = if role == Role::Client && is_writing {
                    TimeState::SenderApplication
                } else {
                    role.wait()
                };
                self.wait_of(now, wait);
                return;
            }
        }
        let Some(spoke) = self.spoke else {
            // It speaks first.
            self.wait_of(now, role.wait());
            return;
        };
        let gap = now.saturating_sub(spoke);
        let prompted = self.room.filter(|&(at, _)| now.saturating_sub(at) <= own.prompt);
        if gap <= own.prompt {
            self.pour(now, |state| state);
        } else if let Some((at, with_data)) = prompted {
            self.prompted_data(now, own, at, with_data);
        } else if !self.last.ends_short
            && own.outstanding > 0
            && gap < rtt.max(own.prompt).max(own.rtt_now.unwrap_or(0))
        {
            // Spaced by its kernel, whose data does not end, or by its program.
            self.bulk_gaps += 1;
            self.pour(now, |state| match state {
                TimeState::SlowStart | TimeState::CongestionAvoidance | TimeState::SendBuffer => {
                    TimeState::Pacing
                }
                other => other,
            });
        } else {
            self.data_after_pause(now, own, role, gap);
        }
    }

    /// Data that an acknowledgement set off, which gave room at `at`.
    fn prompted_data(&mut self, now: u64, own: Own, at: u64, with_data: bool) {
        let is_small = u64::from(own.size) < own.mss && u64::from(self.last.size) < own.mss;
        if is_small && self.last.ends_short && own.outstanding == 0 && self.all_acked == Some(at) {
            self.held += 1;
            self.tell(now, TimeState::Nagle);
            return;
        }
        if !self.last.ends_short {
            self.bulk_gaps += 1;
            self.prompted[usize::from(with_data)] += 1;
        }
        // What held it until then is what it waited for, and not what holds it since.
        let first = if now - self.first_room <= own.prompt { self.first_room } else { at };
        if let Some(place) = self.runs.iter().position(|run| run.0 >= first) {
            self.runs.truncate(place + 1);
        }
        let is_of_channel = self.has_channels && with_data;
        self.pour(now, |state| match state {
            TimeState::SlowStart | TimeState::CongestionAvoidance | TimeState::SendBuffer
                if is_of_channel =>
            {
                TimeState::ProgramWindow
            }
            other => other,
        });
    }

    /// Data that nothing set off, after a pause of `gap`: its program waited, if no window, loss or queue held it.
    fn data_after_pause(&mut self, now: u64, own: Own, role: Role, gap: u64) {
        self.own_waits += u64::from(gap >= WAIT_NS);
        // A client that has asked little asks again; one that sends much goes on.
        let is_question = role == Role::Client && self.last.ends_short && self.burst < 2 * own.mss;
        let waits = match () {
            () if self.has_channels && self.heard.is_some() && !is_question => TimeState::ProgramWindow,
            () if is_question => TimeState::NotAsked,
            () => TimeState::SenderApplication,
        };
        let is_full = |size: u32| u64::from(size) >= own.mss && size >= FULL;
        let is_bulk = is_full(own.size) && is_full(self.last.size) && self.burst >= MUCH * own.mss;
        let is_timer = is_bulk && gap >= TIMER_NS.max(self.rtt.unwrap_or(0)) && own.is_blind;
        self.suspect = is_timer.then(|| self.line.until());
        self.silence = (role == Role::Server && self.last.ends_short).then(|| self.line.until());
        self.words = 0;
        // Behind a queue what passes here left its sender before.
        let is_behind = own.outstanding > MUCH * own.mss && gap < own.rtt_now.unwrap_or(0);
        self.pour(now, |state| match state {
            TimeState::ReceiveWindow
            | TimeState::ReceiverApplication
            | TimeState::Recovery
            | TimeState::Timeout => state,
            TimeState::FullPath if is_behind => state,
            _ => waits,
        });
    }

    /// Whether what was heard first may answer what was said last.
    fn is_answer(&self, first: u64) -> bool {
        let rtt = self.rtt.unwrap_or(0);
        self.spoke.is_none_or(|spoke| first >= spoke + rtt * ANSWER.0 / ANSWER.1)
    }

    /// What the connection waits for while the other end is silent: for its program to say something, or, of one that has a channel full of data, to take that.
    const fn other_waits_for(&self, role: Role, goes_on: bool) -> TimeState {
        match self.has_channels && self.burst >= CHANNEL && goes_on {
            true => TimeState::ReceiverApplication,
            false => role.other().wait(),
        }
    }

    /// The other end had its turn since this one spoke; its program was waited for in this state.
    fn turn(&mut self, first: u64, last: u64, is_answer: bool, waits: TimeState) {
        self.turns += 1;
        let until = self.line.until();
        if self.spoke.is_some() && is_answer {
            self.way_and_back(first);
            self.other_waits += u64::from(first.saturating_sub(self.line.until()) >= WAIT_NS);
            self.tell(first, waits);
        } else if self.spoke.is_none() {
            self.tell(first, waits);
        } else {
            self.tell(first, TimeState::OtherWay);
        }
        let is_same = self.burst.abs_diff(self.amount) <= self.amount / 16;
        self.stops += u64::from(is_answer && is_same && self.burst > 0);
        self.rounds += u64::from(is_answer && is_same && is_round_amount(self.burst));
        if is_answer && self.burst >= MUCH * self.mss {
            self.bursts += 1;
            self.credits += u64::from(self.heard_amid);
        }
        (self.amount, self.burst) = (self.burst, 0);
        self.tell(last.max(until), TimeState::OtherWay);
    }

    /// What was said last is on its way, and the first that can come back.
    fn way_and_back(&mut self, first: u64) {
        let from = self.line.until();
        let rtt = self.rtt.unwrap_or(0);
        let acked = self.all_acked.map(|at| at.saturating_sub(from));
        let way = acked.filter(|&ns| ns <= rtt * 3 / 2 + ACKED_AT_ONCE_NS).unwrap_or(0).max(rtt);
        // Data in bulk makes a queue of its own, which is no delay of the path's.
        let way = if self.burst < MUCH * self.mss { way + self.delayed } else { way };
        // What a receiver that does not read keeps from being sent is no way.
        let closed =
            self.runs.iter().rev().find(|run| run.1 == TimeState::ReceiverApplication).map(|run| run.0);
        if let Some(closed) = closed.filter(|&at| at > from + way) {
            self.pour(closed.min(first), |state| state);
            return;
        }
        let is_of_channel = self.has_channels && self.burst >= CHANNEL / 4;
        let state = if is_of_channel { TimeState::ProgramWindow } else { TimeState::RoundTrips };
        self.tell(first.min(from + way), state);
    }

    /// The program of this end let others wait.
    fn wait_of(&mut self, now: u64, state: TimeState) {
        self.own_waits += u64::from(now.saturating_sub(self.line.until()) >= WAIT_NS);
        self.tell(now, state);
    }

    /// What held the sender is what it waited for.
    fn pour(&mut self, now: u64, as_state: impl Fn(TimeState) -> TimeState) {
        let runs = std::mem::take(&mut self.runs);
        for &(until, state) in &runs {
            self.tell(until.min(now), as_state(state));
        }
        let last = runs.last().map_or(TimeState::Unknown, |run| run.1);
        self.tell(now, as_state(last));
        self.runs = runs;
        self.runs.clear();
    }

    /// Whether what it sent last was sent again and not acknowledged.
    pub const fn is_in_vain(&self) -> bool {
        self.vain > 0
    }

    /// Whether a moment is after the first of what was sent in vain.
    pub const fn is_since_vain(&self, at: u64) -> bool {
        self.vain > 0 && at > self.vain_since
    }
}
