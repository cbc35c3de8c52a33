//! Whether the programs of a connection take turns, how many turns there were, and whose turn it is.

use std::ops::RangeInclusive;

use bdp_model::facts::{Role, TimeSpent, TimeState};
use bdp_sys::tcp_info::TcpInfo;

use super::account::{Account, ONE_WAY, TICK_NS, count, grown};
use super::history::{OPENING, Reading, Segments};

/// Share of the resumptions after a finished message that follow a message of the other end; from this share on, the
/// ends take turns.
const IN_TURN: f64 = 0.7;
/// Pauses, at the least, that say whether they end when the other end has spoken; and segments of one that has said little.
const PAUSES: u64 = 3;
const FEW_WORDS: u32 = 20;
/// Round trips of the turns / time with nothing to send, from which on they take turns too: all of that time is in
/// flight.
const ON_THE_WAY: f64 = 0.5;
/// Round trips of turns / time, for an end that continues each time after the other has spoken; and the least number
/// of turns.
const EACH_TRIP: RangeInclusive<f64> = 0.75..=1.2;
const TURNS_MIN: u32 = 10;
/// Before that a kernel has acknowledged data alone.
const PATIENCE_NS: u64 = 60_000_000;
/// Bare acknowledgements / segments that ask: a program that takes longer than its kernel's patience has one for each.
const ACKNOWLEDGED_ALONE: f64 = 0.5;
/// Least number of questions that show that each comes in two parts.
const HELD_MIN: u32 = 5;

impl Account<'_> {
    /// Whether the programs take turns: each continues after it has heard from the other.
    pub(super) fn take_turns(&self, base: Option<&TimeSpent>) -> bool {
        let Segments { data_in, data_out, .. } = self.whole;
        if data_in == 0 || data_out == 0 {
            // A question that waits for its answer, asked by the end that made the connection.
            let (asked, by) = if data_in == 0 { (data_out, Role::Client) } else { (data_in, Role::Server) };
            let is_out = self.moments.last().is_some_and(|m| m.1.queued == 0 && m.1.unread == 0);
            return (1..=OPENING).contains(&asked) && self.own == by && is_out;
        }
        if !self.sending {
            return self.comes_when_asked();
        }
        let (mut again, mut after, mut on_the_way, mut heard_before) = (0u64, 0u64, 0u64, false);
        for pair in self.moments.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            let heard = count(|i| i.bytes_received, &a.2, &b.2) > 0;
            if a.1.queued == 0 && count(|i| i.bytes_sent.or(i.bytes_acked), &a.2, &b.2) > 0 {
                again += 1;
                // An answer may be made between two readings, or go out in two parts.
                after += u64::from(heard || heard_before);
            }
            heard_before = heard;
            let most = (b.0 - a.0).max(self.rtt_ns);
            on_the_way += self.turns(a.1, b.1).saturating_mul(self.rtt_ns).min(most);
        }
        let total = base.map_or(0, |spent| {
            let idle = spent.share_of(|s| matches!(s, TimeState::SenderApplication | TimeState::Unknown));
            (idle * spent.total_ns() as f64) as u64
        });
        let by_count =
            data_out <= ONE_WAY * data_in && on_the_way as f64 >= ON_THE_WAY * total as f64 && on_the_way > 0;
        let one_at_a_time =
            again == 0 && data_out <= 2 * data_in && self.moments.iter().all(|m| m.1.unread == 0);
        let few_words = again < PAUSES && data_out <= FEW_WORDS.min(ONE_WAY * data_in);
        // However much it sends, it waits for a message of the other end each round trip.
        let by_pace = data_in >= TURNS_MIN && EACH_TRIP.contains(&self.of_turns());
        again > 0 && after as f64 >= IN_TURN * again as f64
            || by_pace
            || by_count
            || one_at_a_time
            || few_words
    }

    /// Whether data after a pause arrives because this end has spoken.
    pub(super) fn comes_when_asked(&self) -> bool {
        let (mut again, mut after, mut spoke, mut paused) = (0u64, 0u64, false, false);
        for pair in self.moments.windows(2) {
            let grown = |of: fn(&TcpInfo) -> Option<u64>| count(of, &pair[0].2, &pair[1].2) > 0;
            let said = grown(|i| i.bytes_sent.or(i.bytes_acked));
            let came = grown(|i| i.bytes_received);
            spoke |= said;
            if came {
                again += u64::from(paused);
                after += u64::from(paused && spoke);
                spoke = said;
            }
            paused = !came;
        }
        again < PAUSES || after as f64 >= IN_TURN * again as f64
    }

    /// Returns the round trips of all turns / the time.
    pub(super) fn of_turns(&self) -> f64 {
        let turns = u64::from(self.whole.data_in.min(self.whole.data_out));
        turns.saturating_mul(self.rtt_ns) as f64 / self.took().max(1) as f64
    }

    /// Returns the number of questions with answers between two readings.
    pub(super) fn turns(&self, a: &Reading, b: &Reading) -> u64 {
        let between = grown(a, b);
        u64::from(between.data_in.min(between.data_out))
    }

    /// Whether this end's program is waited for, or the other's; `None` while a message of either is in flight.
    pub(super) fn is_waited_for(&self, b: &Reading) -> Option<bool> {
        if b.unread > 0 {
            return Some(true);
        }
        let (now, last) = (b.at_ns as i64, b.last());
        let apart = last.sent_ns - last.received_ns;
        let spoke_last = match apart {
            _ if self.whole.data_in == 0 => true,
            _ if self.whole.data_out == 0 => false,
            _ if b.queued > 0 || apart > TICK_NS => true,
            _ if apart < -TICK_NS => false,
            // An acknowledgement long after the other end's data was for this end's data.
            _ if last.acknowledged_ns - last.received_ns > TICK_NS => true,
            _ => self.is_acknowledged_alone(),
        };
        match spoke_last {
            true => (now - last.sent_ns > self.rtt_ns as i64 + TICK_NS).then_some(false),
            false => (now - last.received_ns > TICK_NS).then_some(true),
        }
    }

    /// Whether this end's program is waited for at most of the readings, or by what the kernels acknowledged.
    pub(super) fn is_usually_waited_for(&self) -> bool {
        let said: Vec<bool> = self.moments.iter().filter_map(|m| self.is_waited_for(m.1)).collect();
        match said.iter().filter(|&&own| own).count() * 2 {
            _ if said.is_empty() => !self.is_acknowledged_alone(),
            own => own > said.len(),
        }
    }

    /// Whether questions are acknowledged before they are answered, at the end that asks less often than it is
    /// answered.
    pub(super) fn is_acknowledged_alone(&self) -> bool {
        let Segments { data_in, data_out, bare_in, bare_out } = self.whole;
        if data_out <= data_in {
            f64::from(bare_in) >= ACKNOWLEDGED_ALONE * f64::from(data_out.max(1))
        } else {
            f64::from(bare_out) < ACKNOWLEDGED_ALONE * f64::from(data_in.max(1))
        }
    }

    /// Whether each question comes in two segments, the second after this end has acknowledged the first alone:
    /// Nagle's algorithm delays it at the other end.
    pub(super) fn is_asked_in_two_parts(&self) -> bool {
        const TWO: RangeInclusive<f64> = 1.8..=2.2;
        // A large second part is acknowledged alone, too, before it is answered.
        const ALONE: RangeInclusive<f64> = 0.8..=2.2;
        let Segments { data_in, data_out, bare_out, .. } = self.whole;
        let each = |count: u32| f64::from(count) / f64::from(data_out.max(1));
        // No kernel waits for longer before it acknowledges the first part alone.
        let took = self.took() / u64::from(data_out.max(1));
        !self.sending
            && took <= PATIENCE_NS + 2 * self.rtt_ns
            && data_out >= HELD_MIN
            && self.moments.last().is_some_and(|m| m.2.total_retrans == self.moments[0].2.total_retrans)
            && TWO.contains(&each(data_in))
            && ALONE.contains(&each(bare_out))
    }

    /// Returns how much of the time before a reading this end's last message, or the answer to it, was in flight, if
    /// a round trip takes most of that time.
    pub(super) fn under_way(&self, b: &Reading, ns: u64) -> u64 {
        let last = b.last();
        if self.rtt_ns.saturating_mul(2) <= ns || last.sent_ns < last.received_ns {
            return 0;
        }
        let until = last.sent_ns.saturating_add(self.rtt_ns as i64).min(b.at_ns as i64);
        let from = last.sent_ns.max(b.at_ns as i64 - ns as i64);
        (until - from).max(0) as u64
    }
}
