//! One direction of a connection: the data of one end, and the other end's acknowledgements.
//!
//! The sender's behaviour is reconstructed as it was at the sender. If the capture was taken elsewhere, an acknowledgement reaches the sender later
//! than it passed here, and the data it triggers returns later still: each counts once that time has passed.

use std::collections::VecDeque;

use bdp_model::capture::Retransmissions;
use bdp_model::facts::{Oversized, Role};
use bdp_model::record::{CongestionState, LossEpisode};

use super::account::{Account, Own, Sent};
use super::numbers::{Numbers, Stamps};
use super::rhythm::{LateReads, Rhythm};
use super::scoreboard::{Scoreboard, SeqRange};
use super::series::Series;
use crate::decode::{Packet, Segment};
use crate::notes::Notes;
use crate::rtt::RoundTrips;

/// Fraction by which round trips vary.
pub(super) const SOONER: u64 = 16;
/// Consecutive round trips with the same amount in flight after which it is considered constant.
pub(super) const STEADY: u8 = 6;
/// Origin of the unwrapped sequence numbers, so that earlier ones are positive.
const ORIGIN: u64 = 1 << 32;
/// Most congestion events kept.
pub(super) const EPISODES: usize = 4096;
/// Most retransmissions and closed windows whose times are kept.
pub(super) const MARKS: usize = 1000;

/// An acknowledgement on its way to the sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    /// Time at which it reaches the sender, by the capture's clock.
    pub(super) due: u64,
    /// Time at which it passed the capture.
    pub(super) at: u64,
    pub(super) ack: u64,
    pub(super) edge: Option<u64>,
    pub(super) blocks: [(u64, u64); 4],
    pub(super) count: u8,
    /// Whether it has no data, SYN, FIN or RST.
    pub(super) is_pure: bool,
    /// Whether it carries data that had not passed before.
    pub(super) has_news: bool,
    /// End of its own data, in sequence numbers of the other direction.
    pub(super) carries_to: u32,
    /// Its own timestamp.
    pub(super) stamp: Option<u32>,
}

/// A reading over time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    pub sent: u64,
    pub acked: u64,
    pub in_flight: u64,
    pub congestion_window: u64,
    pub window: Option<u64>,
    pub srtt: Option<u64>,
    pub min_rtt: Option<u64>,
    pub retransmitted: u64,
    pub needless: u64,
    pub reordered: u64,
    pub timeouts: u64,
    pub marks: u64,
    pub busy: u64,
    pub window_limited: u64,
    pub threshold: Option<u64>,
    pub state: Option<CongestionState>,
    pub rate_bps: Option<u64>,
    pub is_starved: bool,
    /// Whether acknowledgements arrived without any data being sent.
    pub is_quiet: bool,
    /// Bytes waiting to be sent, as far as later packets show.
    pub not_sent: Option<u64>,
    /// Timestamp of the last acknowledgement, its time, and the round trip measured from here.
    pub ack_stamp: Option<(u32, u64, u64)>,
    /// Timestamp of data triggered by an acknowledgement, its time, and its delay after that acknowledgement.
    pub own_stamp: Option<(u32, u64, u64)>,
}

/// Periods of one smoothed round trip each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Epoch {
    pub(super) from: u64,
    pub(super) una: u64,
    pub(super) peak: u64,
    pub(super) before: u64,
    /// Consecutive periods in which the amount in flight hardly grew.
    pub(super) flat: u8,
    /// Periods with a constant amount in flight, the first of these, and consecutive ones with less.
    pub(super) steady: u8,
    pub(super) anchor: u64,
    pub(super) lower: u8,
    /// Whether something other than the congestion window held the sender back.
    pub(super) was_free: bool,
    pub(super) rate_bps: Option<u64>,
}

/// An ongoing congestion event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) episode: LossEpisode,
    /// Sequence number whose acknowledgement ends it.
    pub(super) until: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct HalfConnection {
    /// First byte of data.
    pub(super) start: Option<u64>,
    /// Sequence number of the FIN.
    pub(super) fin: Option<u64>,
    pub(super) next: u64,
    pub(super) una: u64,
    /// Bytes acknowledged, by acknowledgements that passed here.
    pub(super) acked_here: u64,
    /// Whether anything beyond the SYN was acknowledged.
    pub(super) is_acked: bool,
    pub(super) edge: Option<u64>,
    pub(super) scoreboard: Scoreboard,
    pub(super) pending: VecDeque<Ack>,
    /// Number of these that carry data.
    pub(super) pending_news: usize,
    /// Smallest round trip from here to the sender.
    pub own_side: Option<u64>,
    /// Current smoothed round trip from here to the sender.
    pub(super) own_now: Option<u64>,
    /// Smallest round trips of the other direction: from here to the receiver, and to the sender.
    pub(super) other_way: [Option<u64>; 2],
    /// Receive window as last written in a segment, unscaled.
    pub(super) written: u64,
    /// What was waited for at each moment.
    pub account: Account,
    pub role: Option<Role>,
    /// Data segments that echo the latest timestamp of the other end, and those that echo an older one although a newer had passed here.
    pub(super) echoes_late: [u32; 2],
    /// Its last acknowledgement number.
    pub(super) said: u32,
    /// Whether its SYN was captured.
    pub(super) has_syn: bool,
    /// Bytes acknowledged before they passed here, and when.
    pub(super) unseen: VecDeque<(u64, u64, u64)>,
    /// IP identifications of its packets.
    pub(super) numbers: Numbers,
    /// Packets sent since the last one captured that are missing from the capture.
    pub(super) skipped: u64,
    /// Timestamp clock of its data.
    pub(super) stamps: Stamps,
    /// Longest time for which the path held or lost everything.
    pub outage: u64,
    /// A byte beyond a closed window, sent to probe it.
    pub(super) probe_byte: Option<u64>,
    pub options: u32,
    pub mss_offer: Option<u32>,
    pub(super) last_at: u64,
    pub(super) last_sent: u64,
    pub(super) last_size: u32,
    /// Whether the last segment was not full and was the last data available.
    pub(super) last_is_short: bool,
    /// Whether the last segment was smaller than the receiver accepts, and was the last data available.
    pub(super) last_ends_write: bool,
    /// Time at which an acknowledgement last reached the sender.
    pub(super) last_applied: u64,
    /// Number of times it resumed sending, and how many of these no acknowledgement triggered.
    pub(super) starts: u64,
    pub(super) unprompted: u64,
    pub(super) rhythm: Rhythm,
    pub(super) late_reads: LateReads,
    /// Largest segment acknowledged, and time at which the other end was last heard.
    pub(super) passed_most: u64,
    /// Time at which new data was last acknowledged here.
    pub(super) progressed_at: u64,
    pub(super) heard_at: u64,
    /// Timestamp of the last acknowledgement, its time, and the round trip it showed.
    pub(super) ack_stamp: Option<(u32, u64, u64)>,
    /// Acknowledgements since then that opened the window.
    pub(super) acks_since: u32,
    pub(super) duplicates_now: u32,
    pub(super) own_stamp: Option<(u32, u64, u64)>,
    pub(super) open: Option<Open>,
    pub(super) epoch: Epoch,
    pub(super) threshold: Option<u64>,
    pub(super) busy: u64,
    pub(super) window_limited: u64,
    pub(super) full_since: Option<u64>,
    pub(super) recent: VecDeque<(u64, u64)>,
    pub(super) delivered: u64,
    /// Window reduction after a loss: the window before it, and the start of the current peak measurement.
    pub(super) shrinking: Option<(u64, u64, u64)>,

    pub first_data_at: Option<u64>,
    pub(super) last_ack_at: u64,
    pub last_data_at: u64,
    pub payload: u64,
    pub segments: u64,
    pub retransmissions: Retransmissions,
    pub reordered: u64,
    pub reordered_most: u64,
    pub duplicates: u64,
    pub duplicated_by_network: u64,
    pub missing: u64,
    pub lost_before: u64,
    /// Round trips from here to the receiver.
    pub rtt: RoundTrips,
    /// Round trips from the sender to the receiver.
    pub whole: RoundTrips,
    pub waits: RoundTrips,
    /// Waits of half a round trip and more.
    pub stalls: RoundTrips,
    pub in_flight_most: u64,
    pub window_most: Option<u64>,
    pub window_least: Option<u64>,
    pub window_full: u64,
    pub zero_windows: u64,
    pub zero_window_ns: u64,
    pub(super) zero_since: Option<u64>,
    /// Start and end of each closed window, and the bytes acknowledged by then.
    pub closed: Vec<(u64, u64, u64)>,
    /// Time and first byte of each of the first retransmissions.
    pub retransmitted_at: Vec<(u64, u64)>,
    pub probes: u64,
    pub keep_alives: u64,
    pub duplicate_acks: u64,
    pub largest: u32,
    pub marked: u64,
    pub echoes: u64,
    pub initial_flight: u64,
    pub episodes: Vec<LossEpisode>,
    pub shares_kept: Vec<f64>,
    pub series: Series<Reading>,
}

impl HalfConnection {
    /// Returns a sequence number of this direction without wraps.
    pub(super) fn absolute(&self, number: u32) -> u64 {
        let near = if self.next == 0 { ORIGIN + u64::from(number) } else { self.next };
        near.wrapping_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
    }

    /// Returns the payload of a full segment, at least one byte.
    pub fn mss(&self) -> u64 {
        let offered = self.mss_offer.map(|mss| mss.saturating_sub(self.options));
        match offered {
            // A super-packet holds several. A path may carry less than the receiver accepts, and small writes fill no segment.
            Some(mss) if mss > 0 && self.in_flight_most >= 4 * u64::from(self.largest) => {
                u64::from(mss.min(self.largest).max(1))
            }
            Some(mss) if mss > 0 => u64::from(mss),
            _ => u64::from(self.largest.clamp(1, 1460)),
        }
    }

    /// Returns the full segment that the receiver accepts, however little the sender writes.
    pub(super) fn offered(&self) -> u64 {
        self.mss_offer.map_or(self.mss(), |mss| u64::from(mss.saturating_sub(self.options).max(1)))
    }

    pub(super) fn segments_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss())
    }

    pub(super) fn begin(&mut self, first: u64) {
        if self.start.is_none() {
            (self.start, self.next, self.una, self.acked_here) = (Some(first), first, first, first);
            self.epoch.una = first;
        }
    }

    /// Whether it ever carried data.
    pub const fn has_data(&self) -> bool {
        self.first_data_at.is_some()
    }

    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> usize {
        let round_trips = [&self.rtt, &self.whole, &self.waits, &self.stalls];
        self.scoreboard.held_bytes()
            + self.series.held_bytes()
            + self.account.held_bytes()
            + self.pending.capacity() * size_of::<Ack>()
            + self.recent.capacity() * size_of::<(u64, u64)>()
            + self.closed.capacity() * size_of::<(u64, u64, u64)>()
            + self.retransmitted_at.capacity() * size_of::<(u64, u64)>()
            + self.episodes.capacity() * size_of::<LossEpisode>()
            + self.shares_kept.capacity() * size_of::<f64>()
            + round_trips.into_iter().map(RoundTrips::held_bytes).sum::<usize>()
    }

    /// Number of bytes sent and acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked_here.saturating_sub(self.start.unwrap_or(0))
    }

    /// Time at which its last byte was acknowledged, or else captured.
    pub fn data_until(&self) -> u64 {
        if self.acked() > 0 { self.last_ack_at } else { self.last_data_at }
    }

    /// Records a SYN: that of the other end, or the sender's own.
    pub fn on_syn(&mut self, segment: &Segment) {
        let first = self.absolute(segment.seq.wrapping_add(1));
        self.has_syn = true;
        if !self.has_data() {
            self.start = None;
            self.begin(first);
        }
    }

    /// Whether a segment leaves a gap of uncaptured bytes before it.
    pub fn is_ahead(&self, segment: &Segment) -> bool {
        segment.payload > 0 && self.start.is_some() && self.absolute(segment.seq) > self.next
    }

    /// Whether a segment acknowledges bytes that were not captured.
    pub fn is_answered_ahead(&self, segment: &Segment) -> bool {
        let ack = self.absolute(segment.ack);
        segment.flags.ack() && self.start.is_some() && self.fin.map_or(ack, |fin| ack.min(fin)) > self.next
    }

    /// Adds a packet of this direction's sender.
    pub fn on_segment(&mut self, now: u64, packet: &Packet, segment: &Segment, sack: bool) -> Notes {
        let mut notes = Notes::default();
        let first = self.absolute(segment.seq);
        self.skipped = self.numbers.packet(packet, self.segments_of(u64::from(segment.payload)));
        if segment.flags.syn() {
            return notes;
        }
        self.begin(first);
        self.deliver_known(now, segment);
        self.advance(now);
        let length = u64::from(segment.payload);
        if segment.flags.cwr() {
            self.reduced(now);
        }
        if length <= 1
            && !segment.flags.fin()
            && !segment.flags.rst()
            && first + 1 == self.acked_here
            && self.next == self.acked_here
        {
            let is_closed = self.is_closed();
            notes.add(if is_closed { Notes::PROBE } else { Notes::KEEP_ALIVE });
            *(if is_closed { &mut self.probes } else { &mut self.keep_alives }) += 1;
            return notes;
        }
        // Some stacks probe with the next byte, which is rejected while the window is closed.
        if length == 1 && first == self.next && self.is_closed() {
            notes.add(Notes::PROBE);
            self.probes += 1;
            self.probe_byte = Some(first);
            return notes;
        }
        if length > 0 {
            self.data(now, packet, segment, first, sack, &mut notes);
        }
        if segment.flags.fin() {
            self.fin = Some(first + length);
        }
        notes
    }

    /// Adds data.
    pub(super) fn data(
        &mut self,
        now: u64,
        packet: &Packet,
        segment: &Segment,
        first: u64,
        sack: bool,
        notes: &mut Notes,
    ) {
        let to = first + u64::from(segment.payload);
        let stamp = segment.options.timestamps.map_or(0, |(own, _)| own);
        let identification = packet.identification.unwrap_or(0);
        self.first_data_at.get_or_insert(now);
        self.last_data_at = now;
        self.largest = self.largest.max(segment.payload);
        self.options = segment.options.length();
        if packet.ecn == 3 {
            self.marked += 1;
        }
        if first < self.next && self.is_same_packet(first, to, stamp, identification, now) {
            notes.add(Notes::DUPLICATE);
            self.duplicates += 1;
            return;
        }
        let outstanding = self.next.saturating_sub(self.una);
        let segments = self.segments_of(u64::from(segment.payload));
        self.segments += segments;
        if self.is_logged_late(first, to, now) {
            self.payload += to - first;
            self.missing = self.missing.saturating_sub(to - first);
            self.spoke(now, segment, outstanding, Sent::New, to);
            return;
        }
        if first < self.next {
            self.retransmitted(now, first, to, stamp, identification, sack, notes);
        }
        let held = self.held_by_path(now, first, stamp);
        let is_again = held.is_none() && first == self.next && self.was_lost_before(now, segment);
        if first > self.next && !self.has_syn && self.segments == segments {
            // Data in flight when the capture began.
            self.next = first;
        }
        let range = SeqRange { from: first, to, at: now, times: 1, is_sacked: false, stamp, identification };
        self.remember(range, notes);
        if is_again {
            self.lost_and_again(now, to - first, notes);
        }
        if self.open.is_none() && self.una == self.start.unwrap_or(0) {
            self.initial_flight = self.next - self.una;
        }
        self.note_start(now, segment.payload);
        let kind = match () {
            () if notes.has(Notes::TIMEOUT) || notes.has(Notes::TAIL_LOSS_PROBE) => Sent::Timer,
            () if held.is_some() => Sent::Held,
            () if notes.has(Notes::RETRANSMISSION) => Sent::Again,
            () => Sent::New,
        };
        self.spoke(now, segment, outstanding, kind, to);
        if held.is_some() || is_again {
            self.outage = self.outage.max(now - self.last_sent);
        }
        self.note_sent(now, segment, to, notes);
        self.read(now);
    }

    /// Adds the new part of this range to the scoreboard, after a gap for uncaptured bytes.
    fn remember(&mut self, range: SeqRange, notes: &mut Notes) {
        if range.to <= self.next {
            return;
        }
        if range.from > self.next {
            notes.add(Notes::GAP);
            self.scoreboard.push(SeqRange { from: self.next, to: range.from, times: 0, ..range });
        }
        let from = range.from.max(self.next);
        self.payload += range.to - from;
        self.scoreboard.push(SeqRange { from, ..range });
        self.next = range.to;
    }

    /// Records the segment as the last one sent, and updates the maximum in flight and whether the window is full.
    fn note_sent(&mut self, now: u64, segment: &Segment, to: u64, notes: &mut Notes) {
        let length = u64::from(segment.payload);
        (self.last_sent, self.last_size, self.acks_since) = (now, segment.payload, 0);
        self.last_is_short = length % self.mss() != 0 && segment.flags.psh() && to == self.next;
        self.last_ends_write = segment.flags.psh() && length % self.offered() != 0;
        let in_flight = self.in_flight();
        self.in_flight_most = self.in_flight_most.max(in_flight);
        self.epoch.peak = self.epoch.peak.max(in_flight);
        if let Some((_, until, peak)) = &mut self.shrinking
            && now <= *until
        {
            *peak = (*peak).max(in_flight);
        }
        if self.is_window_full() {
            notes.add(Notes::WINDOW_FULL);
            self.window_full += 1;
            self.full_since.get_or_insert(now);
        }
    }

    /// Records that the sender resumes, by itself or triggered by an acknowledgement.
    pub(super) fn note_start(&mut self, now: u64, payload: u32) {
        let prompt_ns = self.prompt_ns();
        if !self.is_at_sender()
            || self.last_sent == 0
            || now - self.last_sent < prompt_ns
            || self.una + u64::from(payload) >= self.next
        {
            return;
        }
        self.starts += 1;
        self.rhythm.add(now - self.last_sent, self.last_ends_write);
        self.unprompted += u64::from(now.saturating_sub(self.last_applied) >= prompt_ns);
    }

    /// Returns the time within which a segment counts as sent at once. It allows for transmission time between the sender and this place,
    /// and for a slow host: a quarter of the spacing of two segments here.
    fn prompt_ns(&self) -> u64 {
        const AT_ONCE_NS: u64 = 20_000;
        const LATEST_NS: u64 = 500_000;
        const BESIDE_NS: u64 = 5_000;
        // Round trips to a remote sender vary.
        let varies = if self.is_at_sender() { 0 } else { self.own_now.unwrap_or(0) * 2 / SOONER };
        let spacing = self.round_trip().map(|ns| ns / (self.in_flight() / self.mss()).max(1));
        match spacing.filter(|_| self.own_side.is_some_and(|ns| ns >= BESIDE_NS)) {
            Some(ns) => varies + (ns / 4).clamp(AT_ONCE_NS, LATEST_NS),
            None => varies + AT_ONCE_NS,
        }
    }

    /// Reports data to the account: if Nagle's algorithm may have delayed it (RFC 896), the last reading is updated.
    fn spoke(&mut self, now: u64, segment: &Segment, outstanding: u64, kind: Sent, to: u64) {
        const PROMPT_NS: u64 = 200_000;
        let is_short = u64::from(segment.payload) % self.mss() != 0;
        let own = Own {
            kind,
            size: segment.payload,
            mss: self.mss(),
            is_blind: !self.is_at_sender(),
            ends_short: is_short && segment.flags.psh() && to == self.next,
            outstanding,
            rtt: self.least_rtt(),
            rtt_now: self.round_trip().filter(|_| !self.is_at_sender()),
            prompt: self.prompt_ns(),
        };
        let held = self.account.held;
        self.account.own(now, own, self.role.unwrap_or(Role::Client));
        if self.account.held > held {
            let from = self.last_sent.saturating_sub(PROMPT_NS);
            self.series.change_since(from, |reading| {
                if reading.in_flight > 0 {
                    (reading.not_sent, reading.is_starved) = (Some(u64::from(segment.payload)), false);
                }
            });
        }
    }

    /// Whether data acknowledged a moment before it was captured is only out of order, from several CPUs or interfaces.
    fn is_logged_late(&mut self, first: u64, to: u64, now: u64) -> bool {
        const LATE_NS: u64 = 2_000_000;
        let soon = self.rtt.min().map_or(LATE_NS, |ns| (ns / 2).min(LATE_NS));
        let place = self
            .unseen
            .iter()
            .position(|&(from, until, at)| first >= from && to <= until && now.saturating_sub(at) <= soon);
        let Some(place) = place else { return false };
        if let Some((from, until, at)) = self.unseen.remove(place) {
            let rest = [(from, first, at), (to, until, at)];
            self.unseen.extend(rest.into_iter().filter(|part| part.0 < part.1));
        }
        true
    }

    /// Returns the share of resumptions that no acknowledgement triggered; `None` if too few, or if captured elsewhere.
    pub fn paced_share(&self) -> Option<f64> {
        (self.starts >= 50).then(|| self.unprompted as f64 / self.starts as f64)
    }

    /// Returns the bytes in flight, as far as the sender can know.
    pub(super) fn in_flight(&self) -> u64 {
        self.next.saturating_sub(self.una).saturating_sub(self.scoreboard.sacked())
    }

    /// Returns the smallest congestion window that explains the bytes in flight in the last round trips.
    pub(super) fn congestion_window(&self) -> u64 {
        self.epoch.peak.max(self.epoch.before)
    }

    /// Returns the first byte sent.
    pub fn first_sent(&self) -> u64 {
        self.start.unwrap_or(0)
    }

    /// Whether something sent before the last captured segment was neither captured nor acknowledged.
    pub fn has_hole(&self) -> bool {
        self.una < self.next && self.scoreboard.of(self.una, self.next).any(|piece| piece.times == 0)
    }

    /// Returns the segment size that never got through, if it exceeds all acknowledged ones.
    pub fn oversized(&self) -> Option<Oversized> {
        let first = self.scoreboard.of(self.una, self.next).next()?;
        let is_vain = self.outstanding() > 0 && self.account.is_in_vain();
        let bytes = (first.to - first.from).min(self.mss());
        let is_heard = self.account.is_since_vain(self.heard_at);
        Oversized::of(bytes, self.passed_most, is_heard).filter(|_| is_vain)
    }

    /// Returns the end of the data sent.
    pub const fn sent(&self) -> u64 {
        self.next
    }

    /// Returns the bytes sent and not acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.next.saturating_sub(self.acked_here)
    }
}
