//! One way of a connection: the data of one end, and how the other end acknowledges it.
//!
//! What the sender did is told as it happened at the sender. Where the capture was taken elsewhere, an acknowledgement reaches the sender later
//! than it passed here, and what it set off comes back later still: each counts when that much time has passed.

use std::collections::VecDeque;

use bdp_model::capture::Retransmissions;
use bdp_model::record::{CongestionState, EpisodeKind, LossEpisode};

use super::rtt::RoundTrips;
use super::scoreboard::{Scoreboard, SeqRange};
use super::series::Series;
use crate::decode::{Packet, Segment};
use crate::notes::Notes;

/// Numbers are told apart across 2^32 by counting from here.
const ORIGIN: u64 = 1 << 32;
/// Duplicates of an acknowledgement that show a loss (RFC 5681).
const DUPLICATES: u32 = 3;
/// A segment that is late by no more is late and not lost, where nothing else tells the two apart.
const LATE_NS: u64 = 3_000_000;
/// Congestion events that are remembered.
const EPISODES: usize = 4096;
/// Ranges of retransmissions that are remembered, for the duplicates that a receiver reports.
const REMEMBERED: usize = 64;
/// Retransmissions, and closed windows, whose times are kept.
const MARKS: usize = 1000;

/// An acknowledgement on its way to the sender.
#[derive(Debug, Clone, Copy)]
struct Ack {
    /// When it reaches the sender, by the clock of the capture.
    due: u64,
    /// When it passed here.
    at: u64,
    ack: u64,
    edge: Option<u64>,
    blocks: [(u64, u64); 4],
    count: u8,
    /// Neither data, nor SYN, FIN or RST.
    is_pure: bool,
    /// Its own timestamp.
    stamp: Option<u32>,
}

/// What a reading over time has.
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
    /// Acknowledgements came, and it sent nothing.
    pub is_quiet: bool,
    /// Bytes that waited, as far as what came later shows.
    pub not_sent: Option<u64>,
    /// The last acknowledgement's own timestamp, when it passed, and the round trip from here that it told.
    pub ack_stamp: Option<(u32, u64, u64)>,
    /// The same of data that an acknowledgement set off: its timestamp, when it passed, and how long after that acknowledgement.
    pub own_stamp: Option<(u32, u64, u64)>,
}

/// The stretches of one smoothed round trip each.
#[derive(Debug, Clone, Copy, Default)]
struct Epoch {
    from: u64,
    una: u64,
    peak: u64,
    before: u64,
    /// In a row in which what was in flight grew by little.
    flat: u8,
    /// Whether anything but the congestion window held the sender back.
    was_free: bool,
    rate_bps: Option<u64>,
}

/// A congestion event that goes on.
#[derive(Debug, Clone, Copy)]
struct Open {
    episode: LossEpisode,
    /// It is over when this is acknowledged.
    until: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct HalfConnection {
    /// The first byte of data.
    start: Option<u64>,
    /// Whether that is known by the SYN.
    pub knows_start: bool,
    /// The number of its FIN.
    fin: Option<u64>,
    next: u64,
    una: u64,
    /// Acknowledged as it passed here.
    acked_here: u64,
    /// Whether anything but a SYN acknowledged it.
    is_acked: bool,
    edge: Option<u64>,
    scoreboard: Scoreboard,
    pending: VecDeque<Ack>,
    /// The least from here to the sender and back.
    pub own_side: Option<u64>,
    /// The same now, smoothed.
    own_now: Option<u64>,
    pub options: u32,
    pub mss_offer: Option<u32>,
    last_at: u64,
    last_sent: u64,
    last_size: u32,
    /// It was less than a full one, and the last of what there was.
    last_is_short: bool,
    /// When an acknowledgement last reached the sender.
    last_applied: u64,
    /// Times that it went on to send, and of those such as no acknowledgement set off.
    starts: u64,
    unprompted: u64,
    /// The last acknowledgement's own timestamp, when it passed, and the round trip that it told.
    ack_stamp: Option<(u32, u64, u64)>,
    /// Acknowledgements since then that gave room.
    acks_since: u32,
    duplicates_now: u32,
    last_identification: u32,
    own_stamp: Option<(u32, u64, u64)>,
    open: Option<Open>,
    epoch: Epoch,
    threshold: Option<u64>,
    busy: u64,
    window_limited: u64,
    full_since: Option<u64>,
    recent: VecDeque<(u64, u64)>,
    delivered: u64,
    /// What remains of a window after a loss: before it, and where the peak of a round trip counts from.
    shrinking: Option<(u64, u64, u64)>,

    pub first_data_at: Option<u64>,
    last_ack_at: u64,
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
    /// From here to the receiver and back.
    pub rtt: RoundTrips,
    /// From the sender to the receiver and back.
    pub whole: RoundTrips,
    pub waits: RoundTrips,
    pub in_flight_most: u64,
    pub window_most: Option<u64>,
    pub window_least: Option<u64>,
    pub window_full: u64,
    pub zero_windows: u64,
    pub zero_window_ns: u64,
    zero_since: Option<u64>,
    /// From when to when the window was closed, and what was acknowledged then.
    pub closed: Vec<(u64, u64, u64)>,
    /// When each of the first retransmissions passed, and its first byte.
    pub retransmitted_at: Vec<(u64, u64)>,
    pub probes: u64,
    pub keep_alives: u64,
    pub duplicate_acks: u64,
    pub dsacks: u64,
    pub largest: u32,
    pub marked: u64,
    pub echoes: u64,
    pub reductions: u64,
    pub initial_flight: u64,
    /// Small segments that waited for a delayed acknowledgement.
    pub held: u64,
    pub episodes: Vec<LossEpisode>,
    pub shares_kept: Vec<f64>,
    pub series: Series<Reading>,
}

impl HalfConnection {
    /// A number of this way as one that doesn't wrap.
    fn absolute(&self, number: u32) -> u64 {
        let near = if self.next == 0 { ORIGIN + u64::from(number) } else { self.next };
        near.wrapping_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
    }

    /// Payload bytes of a full segment.
    pub fn mss(&self) -> u64 {
        let offered = self.mss_offer.map(|mss| mss.saturating_sub(self.options));
        match offered {
            // A super-packet holds several. A path may carry less than the receiver takes; small writes fill no segment.
            Some(mss) if mss > 0 && self.in_flight_most >= 4 * u64::from(self.largest) => {
                u64::from(mss.min(self.largest))
            }
            Some(mss) if mss > 0 => u64::from(mss),
            _ => u64::from(self.largest.clamp(1, 1460)),
        }
    }

    fn segments_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss().max(1))
    }

    fn begin(&mut self, first: u64) {
        if self.start.is_none() {
            (self.start, self.next, self.una, self.acked_here) = (Some(first), first, first, first);
            self.epoch.una = first;
        }
    }

    /// Whether it ever carried data.
    pub const fn has_data(&self) -> bool {
        self.first_data_at.is_some()
    }

    /// Bytes acknowledged of those sent.
    pub fn acked(&self) -> u64 {
        self.acked_here.saturating_sub(self.start.unwrap_or(0))
    }

    /// When its last byte was acknowledged, or seen.
    pub fn data_until(&self) -> u64 {
        if self.acked() > 0 { self.last_ack_at } else { self.last_data_at }
    }

    /// The end that sends took the SYN of the other, or its own passed by.
    pub fn on_syn(&mut self, segment: &Segment) {
        let first = self.absolute(segment.seq.wrapping_add(1));
        if self.start.is_none() || !self.has_data() {
            self.start = None;
            self.begin(first);
        }
        self.knows_start = true;
    }

    /// A packet of this way's sender.
    pub fn on_segment(&mut self, now: u64, packet: &Packet, segment: &Segment, sack: bool) -> Notes {
        let mut notes = Notes::default();
        let first = self.absolute(segment.seq);
        if segment.flags.syn() {
            return notes;
        }
        self.begin(first);
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
            let is_closed = self.edge.is_some_and(|edge| edge <= self.una);
            notes.add(if is_closed { Notes::PROBE } else { Notes::KEEP_ALIVE });
            *(if is_closed { &mut self.probes } else { &mut self.keep_alives }) += 1;
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

    fn data(
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
        self.segments += self.segments_of(u64::from(segment.payload));
        if first < self.next {
            self.retransmitted(now, first, to, stamp, identification, sack, notes);
        }
        if to > self.next {
            if first > self.next {
                notes.add(Notes::GAP);
                let gap = SeqRange {
                    from: self.next,
                    to: first,
                    at: now,
                    times: 0,
                    is_sacked: false,
                    stamp,
                    identification,
                };
                self.scoreboard.push(gap);
            }
            let from = first.max(self.next);
            self.payload += to - from;
            self.scoreboard.push(SeqRange {
                from,
                to,
                at: now,
                times: 1,
                is_sacked: false,
                stamp,
                identification,
            });
            self.next = to;
        }
        if self.open.is_none() && self.una == self.start.unwrap_or(0) {
            self.initial_flight = self.next - self.una;
        }
        self.note_start(now, segment.payload);
        self.note_held(now, segment.payload);
        let is_short = u64::from(segment.payload) % self.mss().max(1) != 0;
        (self.last_sent, self.last_size, self.acks_since) = (now, segment.payload, 0);
        self.last_is_short = is_short && segment.flags.psh() && to == self.next;
        self.last_identification = identification;
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
        self.read(now);
    }

    /// The sender goes on: by itself, or because an acknowledgement came.
    fn note_start(&mut self, now: u64, payload: u32) {
        const PROMPT_NS: u64 = 20_000;
        let is_here = self.own_side.is_some_and(|ns| ns < super::HERE_NS);
        if !is_here
            || self.last_sent == 0
            || now - self.last_sent < PROMPT_NS
            || self.una + u64::from(payload) >= self.next
        {
            return;
        }
        self.starts += 1;
        self.unprompted += u64::from(now.saturating_sub(self.last_applied) >= PROMPT_NS);
    }

    /// Nagle's algorithm held a small segment back until the one before it was acknowledged (RFC 896), for longer than a round trip takes: the
    /// last reading is told that it waited.
    fn note_held(&mut self, now: u64, payload: u32) {
        const PROMPT_NS: u64 = 200_000;
        const DELAYED_NS: u64 = 15_000_000;
        let (mss, least) = (self.mss(), self.rtt.min().unwrap_or(0));
        let are_small = u64::from(payload) < mss && u64::from(self.last_size) < mss;
        let was_acked =
            self.una + u64::from(payload) >= self.next && now.saturating_sub(self.last_applied) < PROMPT_NS;
        let waited = self.last_applied.saturating_sub(self.last_sent);
        if !are_small || !was_acked || waited < least + DELAYED_NS {
            return;
        }
        self.held += 1;
        let from = self.last_sent.saturating_sub(PROMPT_NS);
        self.series.change_since(from, |reading| {
            if reading.in_flight > 0 {
                (reading.not_sent, reading.is_starved) = (Some(u64::from(payload)), false);
            }
        });
    }

    /// Of the times that the sender went on to send, the part that no acknowledgement set off; `None` of too few, and seen from elsewhere.
    pub fn paced_share(&self) -> Option<f64> {
        (self.starts >= 50).then(|| self.unprompted as f64 / self.starts as f64)
    }

    /// Whether this very packet was seen before: by its identification, or, without one, by its timestamp and the time.
    fn is_same_packet(&self, first: u64, to: u64, stamp: u32, identification: u32, now: u64) -> bool {
        self.scoreboard.of(first, to).next().is_some_and(|piece| {
            let is_whole = piece.from == first && piece.to == to && piece.times > 0;
            let by_number = identification != 0 && piece.identification == identification;
            let by_time = identification == 0 && stamp != 0 && now.saturating_sub(piece.at) < 10_000;
            is_whole && piece.stamp == stamp && (by_number || by_time)
        })
    }

    /// Bytes with numbers below the highest seen.
    #[allow(clippy::too_many_arguments)]
    fn retransmitted(
        &mut self,
        now: u64,
        first: u64,
        to: u64,
        stamp: u32,
        identification: u32,
        sack: bool,
        notes: &mut Notes,
    ) {
        let to = to.min(self.next);
        let gap = self.scoreboard.of(first, to).find(|piece| piece.times == 0).copied();
        let was_seen = to <= self.una || self.scoreboard.of(first, to).any(|piece| piece.times > 0);
        if let Some(gap) = gap.filter(|_| !was_seen) {
            if self.is_late(&gap, now, stamp, identification) {
                notes.add(Notes::REORDERED);
                self.reordered += 1;
                self.reordered_most = self.reordered_most.max(self.segments_of(self.next - to));
                self.payload += to - first;
                self.scoreboard.seen(first, to, now, stamp, identification);
                return;
            }
            self.payload += to - first;
            self.lost_before += self.segments_of(to - first);
        }
        notes.add(Notes::RETRANSMISSION);
        let segments = self.segments_of(to - first);
        let kind = self.kind_of(now, first, to, sack);
        let kinds = &mut self.retransmissions;
        kinds.segments += segments;
        kinds.bytes += to - first;
        match kind {
            Kind::Fast => {
                kinds.fast += segments;
                notes.add(Notes::FAST);
            }
            Kind::Timeout => {
                kinds.timeout += segments;
                notes.add(Notes::TIMEOUT);
            }
            Kind::TailLossProbe => {
                kinds.tail_loss_probe += segments;
                notes.add(Notes::TAIL_LOSS_PROBE);
            }
            Kind::Unclear => kinds.unclear += segments,
        }
        let had = to <= self.acked_here || self.scoreboard.of(first, to).all(|piece| piece.is_sacked);
        if had {
            kinds.needless += segments;
            notes.add(Notes::NEEDLESS);
        }
        if self.recent.len() >= REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back((first, to));
        if self.retransmitted_at.len() < MARKS {
            self.retransmitted_at.push((now, first.saturating_sub(self.start.unwrap_or(0))));
        }
        self.event(now, kind, segments);
        self.scoreboard.seen(first, to, now, stamp, identification);
    }

    /// Whether what fills a gap was sent before what made it: by timestamp, by identification, or by how late it comes.
    fn is_late(&self, gap: &SeqRange, now: u64, stamp: u32, identification: u32) -> bool {
        let later = |a: u32, b: u32| a != b && a.wrapping_sub(b) < 1 << 31;
        if stamp != 0 && gap.stamp != 0 && stamp != gap.stamp {
            return later(gap.stamp, stamp);
        }
        let (id, of_gap) = (identification as u16, gap.identification as u16);
        // Numbers of one connection, which Linux counts up one by one.
        if id != 0
            && of_gap != 0
            && id != of_gap
            && of_gap.wrapping_sub(id).min(id.wrapping_sub(of_gap)) < 1024
        {
            return of_gap.wrapping_sub(id) < 1024;
        }
        let half = self.rtt.min().map_or(LATE_NS, |ns| ns / 2);
        now.saturating_sub(gap.at) < half.min(LATE_NS)
    }

    fn kind_of(&self, now: u64, first: u64, to: u64, sack: bool) -> Kind {
        if let Some(open) = &self.open {
            let shown = self.scoreboard.is_sacked_behind(to);
            match open.episode.kind {
                EpisodeKind::Recovery if first < open.until => {
                    // The timer ends a recovery whose own retransmission was lost.
                    if first == self.una && self.waited(now) && self.timer_fired(now) {
                        return Kind::Timeout;
                    }
                    return Kind::Fast;
                }
                EpisodeKind::Timeout if first < open.until && !shown => return Kind::Timeout,
                EpisodeKind::Timeout if first < open.until => return Kind::Timeout,
                _ => {}
            }
        }
        if self.scoreboard.is_sacked_behind(to) || !sack && self.duplicates_now >= DUPLICATES {
            return Kind::Fast;
        }
        let was_before = self.scoreboard.of(first, to).any(|piece| piece.times > 1);
        if sack && to == self.next && !was_before && !(first == self.una && self.timer_fired_long(now)) {
            return Kind::TailLossProbe;
        }
        if first <= self.una && self.waited(now) {
            return Kind::Timeout;
        }
        if self.duplicates_now > 0 {
            return Kind::Fast;
        }
        Kind::Unclear
    }

    /// Nothing was sent and nothing acknowledged for the better part of a round trip.
    fn waited(&self, now: u64) -> bool {
        let quiet = now.saturating_sub(self.last_sent);
        quiet >= self.round_trip().map_or(LATE_NS, |ns| ns / 2)
    }

    /// Longer than a recovery waits for what it sent.
    fn timer_fired(&self, now: u64) -> bool {
        now.saturating_sub(self.last_sent) >= self.round_trip().unwrap_or(0).saturating_mul(3) / 2
            && now.saturating_sub(self.last_sent) >= 150_000_000
    }

    /// So long that a probe of the tail would have come first (RFC 8985, section 7.2).
    fn timer_fired_long(&self, now: u64) -> bool {
        let rtt = self.round_trip().unwrap_or(0);
        now.saturating_sub(self.last_sent) >= rtt.saturating_mul(3) + 400_000_000
    }

    /// Notes a congestion event, or what was retransmitted in one.
    fn event(&mut self, now: u64, kind: Kind, segments: u64) {
        let kind = match kind {
            Kind::Fast => EpisodeKind::Recovery,
            Kind::Timeout => EpisodeKind::Timeout,
            // Neither reduces the window by itself.
            Kind::TailLossProbe | Kind::Unclear => return,
        };
        if let Some(open) = &mut self.open {
            if open.episode.kind >= kind {
                open.episode.retransmits += segments;
                return;
            }
            // A timeout ends a recovery.
            self.close(now);
        }
        let mss = self.mss().max(1);
        let in_flight = self.in_flight();
        let before = self.congestion_window().max(in_flight);
        let episode = LossEpisode {
            at_ns: now,
            took_ns: 0,
            kind,
            cwnd: (before / mss) as u32,
            unacked: (in_flight.div_ceil(mss)) as u32,
            srtt_ns: self.round_trip().unwrap_or(0),
            delivered: self.segments_of(self.delivered),
            delivery_rate_bps: self.epoch.rate_bps,
            slow_start: self.threshold.is_none(),
            retransmits: segments,
        };
        self.open = Some(Open { episode, until: self.next });
    }

    /// A reduction after a mark.
    fn reduced(&mut self, now: u64) {
        self.reductions += 1;
        if self.open.is_some() {
            return;
        }
        self.event(now, Kind::Fast, 0);
        if let Some(open) = &mut self.open {
            open.episode.kind = EpisodeKind::Reduced;
        }
    }

    fn close(&mut self, now: u64) {
        let Some(Open { mut episode, .. }) = self.open.take() else { return };
        episode.took_ns = now.saturating_sub(episode.at_ns);
        let mss = self.mss();
        let before = u64::from(episode.cwnd) * mss;
        self.threshold = Some(self.in_flight().max(2 * mss).min(before.max(2 * mss)));
        if episode.kind == EpisodeKind::Recovery && episode.cwnd >= 10 {
            let rtt = self.round_trip().unwrap_or(0);
            self.shrinking = Some((before, now + rtt, 0));
        }
        (self.epoch.peak, self.epoch.before, self.epoch.flat) = (0, 0, 0);
        if self.episodes.len() < EPISODES {
            self.episodes.push(episode);
        }
    }

    /// What is in flight, as far as the sender can know.
    fn in_flight(&self) -> u64 {
        (self.next - self.una).saturating_sub(self.scoreboard.sacked())
    }

    /// No further segment fits the receive window.
    fn is_window_full(&self) -> bool {
        self.edge.is_some_and(|edge| edge < self.next + self.mss().max(1))
    }

    /// The least congestion window that explains what was in flight in the last round trips.
    fn congestion_window(&self) -> u64 {
        self.epoch.peak.max(self.epoch.before)
    }

    /// From the sender to the receiver and back, smoothed.
    fn round_trip(&self) -> Option<u64> {
        Some(self.rtt.smoothed()? + self.own_now.unwrap_or(0))
    }

    /// What went to this way's sender was answered after so long.
    pub fn on_own_side_rtt(&mut self, now: u64, ns: u64, stamp: Option<u32>) {
        self.own_stamp = stamp.map(|stamp| (stamp, now, ns));
        self.own_side = Some(self.own_side.map_or(ns, |least| least.min(ns)));
        // As RFC 6298 smooths, but quicker: what is sent by then has to find its acknowledgement.
        self.own_now = Some(self.own_now.map_or(ns, |now| now - now / 4 + ns / 4));
        if let Some(most) = self.full_rtt() {
            self.whole.add(most);
        }
    }

    /// The latest round trip from the sender to the receiver and back.
    fn full_rtt(&self) -> Option<u64> {
        Some(self.rtt.latest()? + self.own_now?)
    }

    /// Whether what is sent now may have waited for something else than an acknowledgement: all that was seen is acknowledged, and for the
    /// better part of the time to the sender and back nothing came.
    pub fn is_idle(&self, now: u64) -> bool {
        let quiet = now.saturating_sub(self.last_sent);
        self.acked_here >= self.next && self.own_side.is_none_or(|ns| quiet >= ns / 5 * 4)
    }

    /// An acknowledgement of the other end passes. `shift` is by how many bits its window is shifted; unknown without both SYNs.
    pub fn on_ack(&mut self, now: u64, segment: &Segment, shift: Option<u8>) -> Notes {
        let mut notes = Notes::default();
        if !segment.flags.ack() || segment.flags.rst() {
            return notes;
        }
        let ack = self.absolute(segment.ack);
        self.begin(ack);
        let is_pure = segment.payload == 0 && !segment.flags.syn() && !segment.flags.fin();
        let window = if segment.flags.syn() {
            Some(u64::from(segment.window))
        } else {
            shift.map(|shift| u64::from(segment.window) << shift)
        };
        if segment.window == 0 && !segment.flags.syn() {
            notes.add(Notes::ZERO_WINDOW);
            self.zero_windows += 1;
            self.zero_since.get_or_insert(now);
        } else {
            self.opened(now);
        }
        if let Some(window) = window.filter(|_| !segment.flags.syn()) {
            self.window_most = Some(self.window_most.map_or(window, |most| most.max(window)));
            self.window_least = Some(self.window_least.map_or(window, |least| least.min(window)));
        }
        // A FIN has a number of its own, and no byte.
        let ack = self.fin.map_or(ack, |fin| ack.min(fin));
        if ack > self.next {
            notes.add(Notes::ACKED_UNSEEN);
            self.missing += ack - self.next;
            self.next = ack;
        }
        let blocks = segment.options.sack.as_slice();
        let mut known = [(0, 0); 4];
        for (place, &(from, to)) in known.iter_mut().zip(blocks) {
            let from = self.absolute(from);
            *place = (from, from + u64::from(to.wrapping_sub(self.wire(from))));
        }
        let edge = window.map(|window| ack + window);
        let is_repeat = is_pure && ack == self.acked_here && self.next > ack;
        let is_same_window = self.pending.back().map_or(self.edge, |last| last.edge) == edge;
        if is_repeat && is_same_window {
            notes.add(Notes::DUPLICATE_ACK);
            self.duplicate_acks += 1;
        } else if is_pure && self.is_acked && ack == self.acked_here && !is_same_window && blocks.is_empty() {
            notes.add(Notes::WINDOW_UPDATE);
        }
        // The handshake's own has another window than the SYN, and is no update.
        self.is_acked |= !segment.flags.syn();
        if ack > self.acked_here {
            (self.acked_here, self.last_ack_at) = (ack, now);
        }
        if segment.flags.ece() && !segment.flags.syn() {
            self.echoes += 1;
        }
        let due = now + self.own_now.unwrap_or(0);
        self.pending.push_back(Ack {
            due,
            at: now,
            ack,
            edge,
            blocks: known,
            count: blocks.len() as u8,
            is_pure,
            stamp: segment.options.timestamps.map(|(own, _)| own),
        });
        self.advance(now);
        notes
    }

    /// The receive window is no longer closed.
    fn opened(&mut self, now: u64) {
        let Some(since) = self.zero_since.take() else { return };
        self.zero_window_ns += now.saturating_sub(since);
        if self.closed.len() < MARKS {
            self.closed.push((since, now.max(since), self.acked()));
        }
    }

    const fn wire(&self, absolute: u64) -> u32 {
        absolute as u32
    }

    /// Brings the sender to this moment: acknowledgements reach it, and time is counted.
    fn advance(&mut self, now: u64) {
        while let Some(ack) = self.pending.front().copied().filter(|ack| ack.due <= now) {
            self.pending.pop_front();
            self.count(ack.due);
            self.apply(ack);
        }
        self.count(now);
    }

    /// The end of the capture: what was on its way arrives.
    pub fn finish(&mut self) {
        if let Some(last) = self.pending.back().map(|ack| ack.due) {
            self.advance(last);
        }
        self.opened(self.last_at);
        if let Some(Open { episode, .. }) = self.open.take() {
            self.episodes.push(episode);
        }
    }

    /// Counts the time since the last event for what held the sender then.
    fn count(&mut self, now: u64) {
        let took = now.saturating_sub(self.last_at);
        if self.last_at > 0 && took > 0 {
            let is_full = self.has_data() && self.is_window_full() && self.full_since.is_some();
            if self.next > self.una || is_full {
                self.busy += took;
            }
            if is_full {
                self.window_limited += took;
            }
        }
        self.last_at = self.last_at.max(now);
        self.turn(now);
    }

    /// A round trip is over: what was in flight in it is the window of the next.
    fn turn(&mut self, now: u64) {
        let Some(rtt) = self.round_trip() else { return };
        if now < self.epoch.from + rtt.max(1_000) {
            return;
        }
        let took = now - self.epoch.from;
        if took < 4 * rtt.max(1_000) && self.una > self.epoch.una {
            self.epoch.rate_bps = Some(((self.una - self.epoch.una) as f64 * 8e9 / took as f64) as u64);
        }
        let grew = self.epoch.before > 0 && self.epoch.peak * 4 > self.epoch.before * 5;
        let is_bound = !self.epoch.was_free && self.open.is_none() && self.epoch.before > 0;
        self.epoch.flat = if grew || !is_bound { 0 } else { self.epoch.flat.saturating_add(1) };
        if self.epoch.flat >= 3 && self.threshold.is_none() {
            self.threshold = Some(self.epoch.before);
        }
        if let Some((before, until, peak)) = self.shrinking
            && now > until
        {
            self.shrinking = None;
            if before > 0 && peak > 0 && self.shares_kept.len() < 64 {
                self.shares_kept.push(peak as f64 / before as f64);
            }
        }
        self.epoch = Epoch {
            from: now,
            una: self.una,
            peak: self.in_flight(),
            before: self.epoch.peak.max(if took < 4 * rtt { 0 } else { self.epoch.before }),
            was_free: self.is_window_full() || self.is_starved() || self.acks_since >= 2,
            ..self.epoch
        };
    }

    /// The windows have room, and the last segment was less than a full one: there is nothing to send.
    fn is_starved(&self) -> bool {
        self.last_is_short && !self.is_window_full() && self.open.is_none()
    }

    fn apply(&mut self, ack: Ack) {
        self.last_applied = ack.due;
        let mut newly = 0;
        // The newest of the segments that were sent once, by when it passed.
        let mut sent = None::<u64>;
        let mut is_clear = true;
        if ack.ack > self.una {
            newly = ack.ack - self.una;
            let was_in_order = self.duplicates_now == 0;
            self.scoreboard.acknowledge(ack.ack, |piece| {
                if piece.times != 1 {
                    is_clear = false;
                } else if !piece.is_sacked {
                    sent = sent.max(Some(piece.at));
                }
            });
            if !was_in_order && self.scoreboard.sacked() == 0 {
                is_clear = false;
            }
            self.una = ack.ack;
            self.delivered += newly;
            self.duplicates_now = 0;
            self.acks_since += 1;
        } else if ack.is_pure && ack.ack == self.una && self.next > self.una && ack.edge == self.edge {
            self.duplicates_now += 1;
        }
        self.selective(&ack, &mut sent);
        if let Some(at) = sent.filter(|&at| is_clear && at <= ack.at) {
            self.ack_stamp = ack.stamp.map(|stamp| (stamp, ack.at, ack.at - at));
            self.rtt.add(ack.at - at);
            if self.own_side.is_none_or(|ns| ns < super::HERE_NS) {
                self.whole.add(ack.at - at + self.own_now.unwrap_or(0));
            }
        }
        let edge = ack
            .edge
            .map(|edge| self.edge.map_or(edge, |old| if ack.ack >= self.una { edge } else { old.max(edge) }));
        if edge.is_some() {
            self.edge = edge;
        }
        if !self.is_window_full()
            && let Some(since) = self.full_since.take()
        {
            self.waits.add(ack.due.saturating_sub(since));
        }
        if newly > 0
            && let Some(open) = self.open.filter(|open| self.una >= open.until)
        {
            debug_assert!(open.until <= self.una);
            self.close(ack.due);
        }
        self.read(ack.due);
    }

    /// Blocks beyond the acknowledgement, and the first one where it reports a duplicate (RFC 2883).
    fn selective(&mut self, ack: &Ack, sent: &mut Option<u64>) {
        let blocks = ack.blocks.into_iter().take(usize::from(ack.count));
        let within = |a: (u64, u64), b: (u64, u64)| a.0 >= b.0 && a.1 <= b.1;
        for (i, (from, to)) in blocks.enumerate() {
            if to <= from || to > self.next {
                continue;
            }
            let is_duplicate =
                i == 0 && (to <= ack.ack || ack.count > 1 && within((from, to), ack.blocks[1]));
            if is_duplicate {
                self.dsacks += 1;
                let was_sent_again = self.recent.iter().any(|&(a, b)| a < to && b > from);
                if was_sent_again {
                    self.retransmissions.needless_reported += self.segments_of(to - from);
                } else {
                    self.duplicated_by_network += 1;
                }
                continue;
            }
            if from < self.una {
                continue;
            }
            let newest =
                self.scoreboard.of(from, to).filter(|p| p.times == 1 && !p.is_sacked).map(|p| p.at).max();
            let news = self.scoreboard.sack(from, to);
            if news > 0 {
                self.delivered += news;
                *sent = (*sent).max(newest);
            }
        }
    }

    /// Takes a reading where one is due.
    fn read(&mut self, at: u64) {
        if !self.series.wants(at) && !self.series.has_at(at) {
            return;
        }
        let start = self.start.unwrap_or(0);
        let is_starved = self.is_starved();
        let state = match &self.open {
            Some(open) => match open.episode.kind {
                EpisodeKind::Reduced => CongestionState::Reduced,
                EpisodeKind::Recovery => CongestionState::Recovery,
                EpisodeKind::Timeout => CongestionState::Loss,
            },
            None if self.scoreboard.sacked() > 0 || self.duplicates_now > 0 => CongestionState::Disorder,
            None => CongestionState::Open,
        };
        let reading = Reading {
            sent: self.next - start,
            acked: self.una - start,
            in_flight: self.in_flight(),
            congestion_window: self.congestion_window(),
            window: self.edge.map(|edge| edge.saturating_sub(self.una)),
            srtt: self.round_trip(),
            min_rtt: self.rtt.min().map(|ns| ns + self.own_side.unwrap_or(0)),
            retransmitted: self.retransmissions.segments,
            needless: self.retransmissions.needless_reported,
            reordered: self.reordered,
            timeouts: self.retransmissions.timeout,
            marks: self.echoes,
            busy: self.busy,
            window_limited: self.window_limited,
            threshold: self.threshold,
            state: Some(state),
            rate_bps: self.epoch.rate_bps,
            is_starved,
            is_quiet: self.acks_since >= 2 && !self.is_window_full() && self.open.is_none(),
            not_sent: is_starved.then_some(0),
            ack_stamp: self.ack_stamp,
            own_stamp: self.own_stamp,
        };
        self.series.push(at, reading);
    }
}

/// What set a retransmission off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fast,
    Timeout,
    TailLossProbe,
    Unclear,
}
