//! What the data of one end waited for at each moment: its own program, the other end's, the path between them, the windows. Times are
//! those of [`super::half`]: what comes from the other end counts when it has reached this one.
//!
//! A wait is classified when the data that ends it arrives, since only that shows its cause. Between two segments of one end there
//! is either data of the other end, which makes it a turn of a conversation, or there is none, and then either an acknowledgement
//! triggered the second segment or the program did.

mod ending;

use bdp_model::facts::{Role, TimeState, is_round_amount};

use super::delays::Delays;
use super::timeline::Timeline;

pub(super) use ending::End;

/// Most states kept until their cause is known.
const RUNS: usize = 64;
/// Part of a round trip before which no answer can arrive.
const ANSWER: (u64, u64) = (4, 5);
/// Delay beyond one and a half round trips from which an acknowledgement was held at the receiver.
const ACKED_AT_ONCE_NS: u64 = 5_000_000;
/// Most bytes that an end sends just before it closes a connection: a TLS alert, a farewell.
const LAST_WORDS: u64 = 256;
/// Time (and two round trips) beyond which a program in the TLS setup is slow, so that the wait is for it and not for the setup.
const SLOW_NS: u64 = 50_000_000;
/// Shortest timeout of a sender's timer.
const TIMER_NS: u64 = 200_000_000;
/// Smallest segment that may be of full size, bytes.
const FULL: u32 = 1_000;
/// Segments beyond which data is not a request.
const MUCH: u64 = 8;
/// Smallest window of a multiplexed channel, bytes: a program that reads no more stops the sender.
const CHANNEL: u64 = 32 * 1024;
/// Shortest wait of a program that is counted.
const WAIT_NS: u64 = 1_000_000;

/// Data of this end, as it passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    pub kind: Sent,
    pub size: u32,
    pub mss: u64,
    /// Whether the capture was taken elsewhere, so that earlier losses are not visible.
    pub is_blind: bool,
    /// Whether it was all the data available.
    pub ends_short: bool,
    /// Unacknowledged bytes before it.
    pub outstanding: u64,
    /// Smallest round trip from the sender to the receiver.
    pub rtt: Option<u64>,
    /// Current round trip including queues, if the capture was taken elsewhere than at the sender.
    pub rtt_now: Option<u64>,
    /// Time within which data triggered by an acknowledgement follows it.
    pub prompt: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    New,
    /// Retransmitted by a timer.
    Timer,
    /// Sent long before and held by the path.
    Held,
    /// Retransmitted after acknowledgements that showed a loss, or for an unknown reason.
    Again,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    line: Timeline,
    /// What held the sender since its last data, as far as windows show: until when, and what.
    runs: Vec<(u64, TimeState)>,
    /// Time of its last data.
    spoke: Option<u64>,
    last: LastOwn,
    /// Times of the first and last data of the other end since then.
    heard: Option<(u64, u64)>,
    /// Time of the last acknowledgement since then that opened the window, and whether it carried data; and the time of the first.
    room: Option<(u64, bool)>,
    first_room: u64,
    /// Time at which all its data was acknowledged.
    all_acked: Option<u64>,
    /// Bytes since the other end last sent, and those of the turn before.
    burst: u64,
    amount: u64,
    /// Time of the first FIN or RST of either end.
    over: Option<u64>,
    /// Start of a server's silence before its last bytes.
    silence: Option<u64>,
    /// Start of a pause before a full segment although more data was available: a timeout, if the next segment waits for its acknowledgement.
    suspect: Option<u64>,
    /// Number of those last bytes.
    words: u64,
    /// Whether this end closed the connection first.
    closed_it: bool,
    is_made: bool,
    /// Start and end of the TLS handshake.
    setup: Option<(u64, u64)>,
    /// Number of gaps ended by an acknowledgement, and those by one with data.
    prompted: [u64; 2],
    turns: u64,
    own_waits: u64,
    other_waits: u64,
    bulk_gaps: u64,
    stops: u64,
    /// Number of stops with much in flight at which the other program opened its window before it had received all of it.
    credits: u64,
    bursts: u64,
    /// Number of stops at the same round amount.
    rounds: u64,
    /// Whether it carries SSH channels, whose windows are managed by the client's and the server's programs.
    has_channels: bool,
    /// Silence at the end of the capture, nanoseconds.
    open_ns: u64,
    broken_off_ns: u64,
    /// Whether the first data heard arrived before all own data was acknowledged.
    heard_amid: bool,
    /// Delay of the other end's segments, and additional delay of the path in the current turn.
    delays: Delays,
    delayed: u64,
    /// Number of segments held back by Nagle's algorithm.
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
    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> usize {
        self.line.held_bytes() + self.runs.capacity() * size_of::<(u64, TimeState)>()
    }

    /// Records what was waited for until a moment. Time in the TLS handshake counts as its setup, unless a loss or a slow program caused it.
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

    /// Records the start of SSH.
    pub const fn channels_begin(&mut self) {
        self.has_channels = true;
    }

    /// Records the start of the TLS handshake.
    pub const fn setup_begins(&mut self, now: u64) {
        self.setup = Some((now, u64::MAX));
    }

    /// Records the end of the TLS handshake.
    pub const fn setup_ends(&mut self, now: u64) {
        if let Some((_, to)) = &mut self.setup {
            *to = now;
        }
    }

    /// Records that the capture lacks something from before this moment.
    pub fn lacks(&mut self, now: u64) {
        self.line.lacks(now);
    }

    /// Records a packet of either end, before any data.
    pub fn begin(&mut self, now: u64) {
        self.line.begin(now);
    }

    /// Records a SYN of either end; `again` if it is a retransmission.
    pub fn syn(&mut self, now: u64, again: bool) {
        self.line.begin(now);
        self.tell(now, if again { TimeState::Unanswered } else { TimeState::Handshake });
    }

    /// Records that the connection is established.
    pub fn established(&mut self, now: u64) {
        if !self.is_made {
            self.is_made = true;
            self.tell(now, TimeState::Handshake);
        }
    }

    /// Records that neither end has more to send. A server may close a connection with a few last bytes, after a silence without a request.
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

    /// Records what held the sender since the last event, as far as windows show.
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

    /// Records that data of the other end reached this one.
    pub fn heard(&mut self, now: u64, is_amid: bool, stamp: Option<u32>) {
        if let Some(stamp) = stamp {
            self.delays.add(now, stamp);
        }
        if self.heard.is_none() {
            (self.heard_amid, self.delayed) = (is_amid, self.delays.of_turn());
        }
        self.heard = Some(self.heard.map_or((now, now), |(first, _)| (first, now)));
    }

    /// Records that an acknowledgement that opens the window reached this end, with data or without.
    pub fn room(&mut self, now: u64, with_data: bool, is_all: bool) {
        if self.room.is_none() {
            self.first_room = now;
        }
        self.room = Some((now, with_data));
        // An acknowledgement with data was delayed until that data.
        if is_all && !with_data {
            self.all_acked.get_or_insert(now);
        }
        self.vain = 0;
    }

    /// Records data of this end.
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
                // A client that has sent much and continues with a full segment is not asking but writing.
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
            // This end speaks first.
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
            // Paced by its kernel if its data does not end, or by its program.
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

    /// Records data triggered by an acknowledgement that opened the window at `at`.
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
        // It waited for what held it until then, not for what has held it since.
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

    /// Records data that nothing triggered, after a pause of `gap`: its program waited, unless a window, loss or queue held it.
    fn data_after_pause(&mut self, now: u64, own: Own, role: Role, gap: u64) {
        self.own_waits += u64::from(gap >= WAIT_NS);
        // A client that sent little asks again; one that sends much continues.
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
        // With a queue in between, what passes here left its sender earlier.
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

    /// Whether the first data heard may be an answer to what was sent last.
    fn is_answer(&self, first: u64) -> bool {
        let rtt = self.rtt.unwrap_or(0);
        self.spoke.is_none_or(|spoke| first >= spoke + rtt * ANSWER.0 / ANSWER.1)
    }

    /// Returns what the connection waits for while the other end is silent: for its program to send or, if a channel is full, to read.
    const fn other_waits_for(&self, role: Role, goes_on: bool) -> TimeState {
        match self.has_channels && self.burst >= CHANNEL && goes_on {
            true => TimeState::ReceiverApplication,
            false => role.other().wait(),
        }
    }

    /// Records a turn of the other end since this one sent; the time of its program counts as this state.
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

    /// Records the path time of the last data sent and of the first answer.
    fn way_and_back(&mut self, first: u64) {
        let from = self.line.until();
        let rtt = self.rtt.unwrap_or(0);
        let acked = self.all_acked.map(|at| at.saturating_sub(from));
        let way = acked.filter(|&ns| ns <= rtt * 3 / 2 + ACKED_AT_ONCE_NS).unwrap_or(0).max(rtt);
        // Bulk data makes a queue of its own, which is not a delay of the path.
        let way = if self.burst < MUCH * self.mss { way + self.delayed } else { way };
        // Time in which a receiver that does not read stops the sender is not path time.
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

    /// Records that the program of this end was waited for.
    fn wait_of(&mut self, now: u64, state: TimeState) {
        self.own_waits += u64::from(now.saturating_sub(self.line.until()) >= WAIT_NS);
        self.tell(now, state);
    }

    /// Records what held the sender as what it waited for.
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

    /// Whether its last data was retransmitted and never acknowledged.
    pub const fn is_in_vain(&self) -> bool {
        self.vain > 0
    }

    /// Whether a moment is after the first unsuccessful transmission.
    pub const fn is_since_vain(&self, at: u64) -> bool {
        self.vain > 0 && at > self.vain_since
    }
}
