//! Accounts for a socket's time: which side each moment between two readings belongs to, in the states of
//! `bdp_model::facts::TimeState`.
//!
//! The sender's kernel counts (`Facts::time_spent`) come first. The time in which it had nothing to send, or too
//! little to fill anything, belongs to the programs: the one that spoke last is not the one being waited for. The
//! kernel reports when this end last sent and received data, and how many data segments went either way; if both
//! moments are in one tick of its clock, bare acknowledgements decide: a program that answers at once never needs
//! one.

use bdp_model::facts::{Conversation, Facts, Role, SocketFacts, Stretch, TimeSpent, TimeState};
use bdp_model::statistics::median;
use bdp_model::watch::ConnectionState;
use bdp_sys::tcp_info::TcpInfo;

use super::arrivals;
use super::history::{Reading, Segments};

/// Turns between two readings.
#[derive(Debug, Clone, Copy)]
struct Turns {
    turns: u64,
    /// Whether this end ended the silence that the time between two readings is part of, and the one after it.
    ended_by: [Option<bool>; 2],
    /// Whether data was lost and retransmitted.
    repaired: bool,
}
/// A reading with its time.
pub(super) type Moment<'a> = (u64, &'a Reading, TcpInfo);

/// The longest tick of a kernel's clock: moments that are no farther apart are considered equal.
pub(super) const TICK_NS: i64 = 10_000_000;
/// An end that sends this many times the other's segments does not wait for it after each.
pub(super) const ONE_WAY: u32 = 10;
/// A program that takes less than this for a turn is not waited for.
const AT_ONCE_NS: u64 = 1_000_000;
/// Sum of the turns' round trips / elapsed time, above which turns overlap.
const OVERLAP: f64 = 1.3;
/// Segments in flight behind which Nagle's algorithm holds a small one back for long.
const HELD_BEHIND: std::ops::RangeInclusive<u32> = 1..=4;
/// A receiver that got nothing for this long, and this many round trips, waits.
const SILENT: (u64, u64) = (20_000_000, 2);
/// Unread data / the socket's capacity.
const UNREAD: f64 = 0.25;
/// Goodput / what its own window carries per round trip.
const WINDOW_USED: std::ops::RangeInclusive<f64> = 0.7..=1.25;
/// Largest / usual window of its own, of one that still grows.
const GROWING: f64 = 2.0;
/// Share of a quota's periods that used it up, and the least number of periods.
const THROTTLED: (f64, u64) = (0.5, 3);

/// What a time account is made from.
pub(super) struct Account<'a> {
    pub(super) moments: &'a [Moment<'a>],
    pub(super) sending: bool,
    pub(super) own: Role,
    pub(super) facts: &'a Facts,
    pub(super) rtt_ns: u64,
    pub(super) whole: Segments,
    take_turns: bool,
    /// Whether this end is the one waited for, if the readings do not show it.
    usual: bool,
    /// The state of time with data in flight that fills neither window.
    in_flight: Option<TimeState>,
    /// The state of a receiver's time while data arrives.
    flowing: TimeState,
    /// Whether the receive window limits the sender, although its kernel may not count that.
    window_taken: bool,
    /// Whether its round trips are those of a program that reads late.
    reads_late: bool,
    /// Whether questions are sent before the previous one is answered.
    overlap: bool,
    throttled: bool,
    pub(super) has_channels: bool,
    /// For each time between two readings: whether this end ended the silence that it is part of, and the one after
    /// it; `None` for an unfinished silence or none.
    ended_by: Vec<[Option<bool>; 2]>,
    pub(super) stalled_since: Option<u64>,
}

/// Computes the time account, including what is known about the socket.
pub(super) fn of(
    moments: &[Moment<'_>],
    sending: bool,
    own: Role,
    facts: &Facts,
    known: SocketFacts,
) -> Option<(Conversation, SocketFacts)> {
    let (first, last) = (moments.first()?, moments.last()?);
    let rtt = moments
        .iter()
        .filter_map(|(_, _, info)| info.min_rtt_ns.filter(|&ns| ns > 0 && ns < u64::from(u32::MAX) * 1000));
    let smoothed = moments.iter().filter_map(|(_, _, info)| info.rtt_ns.filter(|&ns| ns > 0));
    let mut account = Account {
        moments,
        sending,
        own,
        facts,
        rtt_ns: rtt.min().or_else(|| smoothed.min()).unwrap_or(0),
        // If the first question is all that was said, it belongs to what is observed, and so does the whole
        // connection if nothing was said since.
        whole: match grown(first.1, last.1) {
            Segments { data_in: 0, data_out: 0, .. } => last.1.segments(),
            _ if first.1.is_opening() => last.1.segments(),
            seen => seen,
        },
        take_turns: false,
        usual: false,
        in_flight: None,
        flowing: TimeState::Unknown,
        window_taken: false,
        reads_late: false,
        overlap: false,
        throttled: known.quota.is_some_and(|q| {
            q.throttled >= THROTTLED.1 && q.throttled as f64 >= THROTTLED.0 * q.periods as f64
        }),
        has_channels: known.has_channels,
        ended_by: silences(moments),
        stalled_since: None,
    };
    let buffer_taken = account.buffer_taken();
    account.stalled_since = account.stalled();
    let base = if sending { facts.time_spent() } else { None };
    account.take_turns = account.take_turns(base.as_ref());
    account.usual = account.is_usually_waited_for();
    // Round trips of turns take more time than there is.
    account.overlap = account.of_turns() > OVERLAP;
    account.window_taken = sending && account.window_is_taken();
    account.reads_late = sending && account.reads_late();
    let plateau = account.plateau();
    account.in_flight = account.of_flight(buffer_taken, plateau);
    account.flowing = account.of_flow();
    let known = SocketFacts {
        buffer_taken,
        small_ones_pass: account.small_ones_pass(),
        full_segment_waits: account.full_segment_waits(),
        least_rtt_ns: Some(account.rtt_ns).filter(|&ns| ns > 0),
        ..known
    };
    let plateau = if account.in_flight == Some(TimeState::ProgramWindow) { plateau } else { (0, 0) };
    Some((account.conversation(base, plateau), known))
}

pub(super) fn grown(a: &Reading, b: &Reading) -> Segments {
    let (a, b) = (a.segments(), b.segments());
    Segments {
        data_in: b.data_in.saturating_sub(a.data_in),
        data_out: b.data_out.saturating_sub(a.data_out),
        bare_in: b.bare_in.saturating_sub(a.bare_in),
        bare_out: b.bare_out.saturating_sub(a.bare_out),
    }
}

/// Between each two readings: which end spoke first after the silence that it is part of, and after the one that follows it.
fn silences(moments: &[Moment<'_>]) -> Vec<[Option<bool>; 2]> {
    let mut next = None;
    let mut ended_by: Vec<[Option<bool>; 2]> = moments
        .windows(2)
        .rev()
        .map(|pair| {
            let (grown, then) = (grown(pair[0].1, pair[1].1), next);
            match (grown.data_out > 0, grown.data_in > 0) {
                (false, false) => return [next, then],
                (true, true) => next = None,
                (own, _) => next = Some(own),
            }
            [None, then]
        })
        .collect();
    ended_by.reverse();
    ended_by
}

/// Returns for each time between two readings whether its silence, or the one that it ends, is one in which this end
/// retransmitted lost data.
fn repairs(moments: &[Moment<'_>]) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(moments.len());
    let mut since = 0;
    for pair in moments.windows(2) {
        let grown = |of: fn(&TcpInfo) -> Option<u64>| count(of, &pair[0].2, &pair[1].2) > 0;
        found.push(false);
        if grown(|i| i.total_retrans.map(u64::from)) {
            found[since..].fill(true);
        }
        if grown(|i| i.bytes_received) {
            since = found.len();
        }
    }
    found
}

pub(super) fn count(of: fn(&TcpInfo) -> Option<u64>, a: &TcpInfo, b: &TcpInfo) -> u64 {
    of(b).unwrap_or(0).saturating_sub(of(a).unwrap_or(0))
}

impl Account<'_> {
    fn conversation(&self, base: Option<TimeSpent>, (stops, amount): (u64, u64)) -> Conversation {
        let from = self.moments.first().map_or(0, |m| m.0);
        let mut base = base.map_or_else(Vec::new, |spent| spent.stretches).into_iter().peekable();
        let mut stretches: Vec<Stretch> = Vec::new();
        let (mut turns, mut waits, mut before) = (0, [0, 0], None);
        let repairs = repairs(self.moments);
        for ((pair, ended_by), repaired) in self.moments.windows(2).zip(&self.ended_by).zip(repairs) {
            let (a, b) = (&pair[0], &pair[1]);
            let (from_ns, to_ns) = (a.0 - from, b.0 - from);
            if to_ns <= from_ns {
                continue;
            }
            while base.peek().is_some_and(|s| s.from_ns < from_ns) {
                base.next();
            }
            let counted = base.next_if(|s| s.from_ns == from_ns && s.to_ns == to_ns).map(|s| s.states);
            let took = to_ns - from_ns;
            let states = match counted {
                Some(states) => states,
                None => vec![(TimeState::Unknown, took)],
            };
            let n = self.turns(a.1, b.1);
            let states = self.states(a, b, states, Turns { turns: n, ended_by: *ended_by, repaired });
            turns += n;
            let waited =
                [self.program(true), self.program(false)].map(|state| states.iter().any(|s| s.0 == state));
            for (index, _) in waited.iter().enumerate().filter(|(_, waited)| **waited) {
                if n > 0 || before != Some(index) {
                    waits[index] += n.max(1);
                }
            }
            before = waited.iter().position(|&waited| waited);
            stretches.push(Stretch { from_ns, to_ns, states });
        }
        let sender = if self.sending { self.own } else { self.own.other() };
        let (own, other) = if self.sending { (waits[0], waits[1]) } else { (waits[1], waits[0]) };
        let (tries, tried_ns) = self.in_vain();
        Conversation {
            sender,
            refused: None,
            syns: 0,
            missing: 0.0,
            is_minor: false,
            open_silence: self.open_silence(),
            broken_off_ns: 0,
            spent: TimeSpent { stretches },
            turns,
            own_waits: own,
            other_waits: other,
            bulk_gaps: 0,
            stops_at_amount: stops,
            amount_bytes: amount,
            gives_room: Conversation::giver(sender, self.has_channels),
            sent_in_vain: tries,
            outage_ns: 0,
            in_vain_ns: tried_ns,
            oversized: self.oversized(),
        }
    }

    /// Whose turn it is when a program of this machine is waited for, or of the other end. A client that sends far more than it hears asks for nothing: it writes.
    const fn program(&self, own: bool) -> TimeState {
        let whose = if own { self.own } else { self.own.other() };
        let Segments { data_in, data_out, .. } = self.whole;
        let (said, heard) = if own { (data_out, data_in) } else { (data_in, data_out) };
        let writes = own == self.sending && said > heard.saturating_mul(ONE_WAY) && heard > 0;
        match whose {
            Role::Client if writes => TimeState::SenderApplication,
            whose => whose.wait(),
        }
    }

    /// Adds the states of the time between two readings; `states` is what the kernel's clocks say.
    fn states(
        &self,
        a: &Moment<'_>,
        b: &Moment<'_>,
        states: Vec<(TimeState, u64)>,
        turns: Turns,
    ) -> Vec<(TimeState, u64)> {
        let took = b.0 - a.0;
        if let Some(state) = handshake(b.1).or_else(|| handshake(a.1)) {
            return vec![(state, took)];
        }
        let mut parts = Parts::default();
        if !self.sending {
            self.receiving(a, b, turns, &mut parts);
        } else if self.is_stalled(a.0) {
            let again = count(|i| i.total_retrans.map(u64::from), &self.at_stall(), &b.2);
            let closed = b.2.snd_wnd.zip(b.2.snd_mss).is_some_and(|(window, mss)| window < mss);
            match (closed, again > 0) {
                (true, _) => parts.add(TimeState::ReceiverApplication, took),
                (false, true) => parts.add(TimeState::Timeout, took),
                (false, false) => parts.add(TimeState::Unknown, took),
            }
        } else {
            for (state, ns) in states {
                match state {
                    TimeState::SenderApplication | TimeState::Unknown => {
                        self.nothing_to_send(a, b, turns, ns, &mut parts)
                    }
                    // A program that has nothing more to write leaves a buffer as full as one that has no room.
                    TimeState::SendBuffer => {
                        let counted = count(|i| i.sndbuf_limited_ns, &a.2, &b.2).min(ns);
                        parts.add(state, counted);
                        self.nothing_to_send(a, b, turns, ns - counted, &mut parts);
                    }
                    // The load on the path is limited to what a window or a buffer lets through.
                    TimeState::Probing if self.in_flight.is_some() => {
                        parts.add(self.in_flight.unwrap_or(state), ns)
                    }
                    TimeState::Probing | TimeState::FullPath if self.window_taken => {
                        parts.add(TimeState::ReceiveWindow, ns)
                    }
                    TimeState::ReceiveWindow if self.reads_late => {
                        parts.add(TimeState::ReceiverApplication, ns)
                    }
                    other => parts.add(other, ns),
                }
            }
        }
        if self.has_channels {
            parts.give_to_channels(self, turns.turns > 0);
        }
        if self.throttled {
            parts.give_to_processor(self);
        }
        debug_assert_eq!(parts.0.iter().map(|part| part.1).sum::<u64>(), took, "each moment has one state");
        parts.0
    }

    /// Adds time in which this end's kernel had nothing to send, or data that fills no window.
    fn nothing_to_send(&self, a: &Moment<'_>, b: &Moment<'_>, turns: Turns, ns: u64, parts: &mut Parts) {
        let mss = u64::from(b.2.snd_mss.unwrap_or(0)).max(1);
        // With more in flight, the next acknowledgement is near.
        let is_held = b.2.notsent_bytes.is_some_and(|bytes| bytes > 0 && bytes < mss)
            && b.2.unacked_segments.is_some_and(|segments| HELD_BEHIND.contains(&segments));
        let is_busy = count(|i| i.busy_ns, &a.2, &b.2) > 0 || b.1.queued > 0;
        match self.in_flight.filter(|_| is_busy) {
            Some(state) => parts.add(state, ns),
            None if is_held && b.2.busy_ns.is_some() => parts.add(TimeState::Nagle, ns),
            None if self.take_turns => self.programs(b.1, turns, ns, parts),
            // Without the kernel's clocks it is unknown whether there was anything to send.
            None if b.2.busy_ns.is_none() || self.has_filled(a, b) => parts.add(TimeState::Unknown, ns),
            None => parts.add(TimeState::SenderApplication, ns),
        }
    }

    /// Whether something waits to be sent at both moments, or fills the congestion window.
    fn has_filled(&self, a: &Moment<'_>, b: &Moment<'_>) -> bool {
        let is_full = |info: &TcpInfo| {
            let mss = u64::from(info.snd_mss.unwrap_or(0)).max(1);
            info.notsent_bytes.is_some_and(|bytes| bytes >= mss)
                || info
                    .unacked_segments
                    .zip(info.cwnd_segments)
                    .is_some_and(|(out, cwnd)| out > 0 && out >= cwnd)
        };
        is_full(&a.2) && is_full(&b.2)
    }

    /// Time that belongs to a conversation: its round trips first, the rest to the program that is waited for.
    fn programs(
        &self,
        b: &Reading,
        Turns { turns, ended_by: [ended_by, _], repaired }: Turns,
        ns: u64,
        parts: &mut Parts,
    ) {
        let turn = turns.saturating_mul(self.rtt_ns);
        // The last message may be in flight for longer than the time between two readings.
        let on_the_way = if turns == 0 { self.under_way(b, ns) } else { ns.min(turn) };
        let rest = ns - on_the_way;
        let at_once = AT_ONCE_NS.max(self.rtt_ns / 2);
        if turns > 0 && rest / turns < at_once {
            return parts.add(TimeState::RoundTrips, ns);
        }
        parts.add(TimeState::RoundTrips, on_the_way);
        // The end that breaks a silence was the one waited for, not the one that spoke last; a program held up by its
        // quota is waited for until it speaks.
        if repaired {
            return parts.add(TimeState::Timeout, rest);
        }
        let own = ended_by
            .or_else(|| self.throttled.then_some(true))
            .or_else(|| self.is_waited_for(b))
            .unwrap_or(self.usual);
        let held_there = own && self.is_asked_in_two_parts();
        parts.add(if held_there { TimeState::Nagle } else { self.program(own) }, rest);
    }

    /// Adds the time of an end that mainly receives data.
    fn receiving(&self, a: &Moment<'_>, b: &Moment<'_>, turns: Turns, parts: &mut Parts) {
        let took = b.0 - a.0;
        let holds = u64::from(b.1.unread) + b.2.rcv_wnd.map_or(u64::from(b.1.unread), u64::from);
        if b.1.unread > 0 && f64::from(b.1.unread) >= UNREAD * holds as f64 {
            // A question that waits is its own server's, and data that waits the reader's.
            let asks = self.take_turns && u64::from(b.1.unread) <= u64::from(b.2.snd_mss.unwrap_or(1));
            return parts.add(if asks { self.program(true) } else { TimeState::ReceiverApplication }, took);
        }
        if !self.take_turns {
            return parts.add(self.flowing, took);
        }
        let is_small = self.whole.data_in <= ONE_WAY * self.whole.data_out;
        let since = (b.0 as i64 - b.1.last().received_ns).max(0) as u64;
        let silent = if count(|i| i.bytes_received, &a.2, &b.2) == 0 { took } else { since.min(took) };
        let waits = since > SILENT.0.max(SILENT.1 * self.rtt_ns);
        match (is_small, waits) {
            // Turns that take longer than there is time are none.
            (true, false) if self.overlap && self.flowing == TimeState::FullPath => {
                parts.add(self.flowing, took)
            }
            (true, _) => self.programs(b.1, turns, took, parts),
            (false, true) => {
                parts.add(self.flowing, took - silent);
                let then = turns.ended_by[1];
                self.programs(b.1, Turns { ended_by: [then; 2], ..turns }, silent, parts);
            }
            (false, false) => {
                // Data that fills the path waits for no word of this end.
                let turns = if self.overlap || self.flowing == TimeState::FullPath { 0 } else { turns.turns };
                let on_the_way = (turns * self.rtt_ns).min(took);
                parts.add(TimeState::RoundTrips, on_the_way);
                parts.add(self.flowing, took - on_the_way);
            }
        }
    }

    pub(super) fn took(&self) -> u64 {
        self.moments.last().zip(self.moments.first()).map_or(0, |(last, first)| last.0 - first.0)
    }

    /// Returns what limits arriving data: this end's window, if that is what it carries per round trip, or what its
    /// arrival shows about the path.
    fn of_flow(&self) -> TimeState {
        let mut windows: Vec<f64> = self.moments.iter().filter_map(|m| m.2.rcv_wnd).map(f64::from).collect();
        let mut rtts: Vec<f64> =
            self.moments.iter().filter_map(|m| m.2.rcv_rtt_ns).map(|ns| ns as f64).collect();
        if self.sending {
            return TimeState::Unknown;
        }
        let is_measured = windows.len().min(rtts.len()) >= bdp_model::finding::threshold::SAMPLES_MIN;
        let carries =
            median(&mut windows).zip(median(&mut rtts)).map(|(window, rtt)| window * 8e9 / rtt.max(1.0));
        let usual = self.facts.arrival_rates().map_or(0.0, |rates| rates[1]);
        let came_bps = self.facts.goodput_bps.max(usual);
        // A window that still grows is ahead of the arriving data.
        let largest = windows.iter().copied().fold(0.0, f64::max);
        let has_grown = median(&mut windows).is_some_and(|usual| largest <= GROWING * usual);
        let used = has_grown && carries.is_some_and(|bps| WINDOW_USED.contains(&(came_bps / bps)));
        match arrivals::waits_for(self.moments, came_bps) {
            // A window lets something through each round trip, and as much each time.
            state @ (TimeState::SenderApplication | TimeState::SlowStart) => state,
            _ if used && is_measured => TimeState::ReceiveWindow,
            other => other,
        }
    }

    /// Returns the share of the time in unfinished silences, or in silences whose end the readings cannot attribute.
    fn open_silence(&self) -> f64 {
        let (first, last) = (self.moments[0].0, self.moments[self.moments.len() - 1].0);
        let is_open = |(pair, ended_by): &(&[Moment<'_>], &[Option<bool>; 2])| {
            let grown = grown(pair[0].1, pair[1].1);
            grown.data_in == 0 && grown.data_out == 0 && ended_by[0].is_none()
        };
        let open = self.moments.windows(2).zip(&self.ended_by).filter(is_open);
        let took: u64 = open.map(|(pair, _)| pair[1].0 - pair[0].0).sum();
        took as f64 / (last - first).max(1) as f64
    }
}

/// Returns what a connection that is not yet established waits for.
pub(super) const fn handshake(reading: &Reading) -> Option<TimeState> {
    match reading.state {
        ConnectionState::SynSent | ConnectionState::SynReceived if reading.tries > 0 => {
            Some(TimeState::Unanswered)
        }
        ConnectionState::SynSent | ConnectionState::SynReceived => Some(TimeState::Handshake),
        _ => None,
    }
}

/// The parts of the time between two readings.
#[derive(Default)]
struct Parts(Vec<(TimeState, u64)>);

impl Parts {
    fn add(&mut self, state: TimeState, ns: u64) {
        match self.0.iter_mut().find(|(other, _)| *other == state) {
            Some((_, sum)) => *sum += ns,
            None if ns > 0 => self.0.push((state, ns)),
            None => {}
        }
    }

    /// Reassigns bulk data over SSH channels: what waits for the other end's message waits for room in a channel, and
    /// a program that gives none does not read.
    fn give_to_channels(&mut self, account: &Account<'_>, has_word: bool) {
        let Segments { data_in, data_out, .. } = account.whole;
        let (bulk, words) = if account.sending { (data_out, data_in) } else { (data_in, data_out) };
        if bulk <= words.saturating_mul(ONE_WAY) || words == 0 {
            return;
        }
        let reader = account.program(!account.sending);
        for (state, ns) in std::mem::take(&mut self.0) {
            let state = match state {
                TimeState::RoundTrips => TimeState::ProgramWindow,
                TimeState::SenderApplication if has_word => TimeState::ProgramWindow,
                state if state == reader => TimeState::ReceiverApplication,
                other => other,
            };
            self.add(state, ns);
        }
    }

    /// The time of this machine's program is its quota's.
    fn give_to_processor(&mut self, account: &Account<'_>) {
        let (program, processor) = match account.sending {
            true => (TimeState::SenderApplication, TimeState::SenderProcessor),
            false => (TimeState::ReceiverApplication, TimeState::ReceiverProcessor),
        };
        let own = account.program(true);
        for (state, ns) in std::mem::take(&mut self.0) {
            self.add(if state == own || state == program { processor } else { state }, ns);
        }
    }
}
