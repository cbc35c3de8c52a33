//! Retransmissions: their causes, and the congestion events they belong to.

use bdp_model::record::{EpisodeKind, LossEpisode};

use super::half::{EPISODES, HalfConnection, MARKS, Open};
use super::numbers::is_of_a_timer;
use super::scoreboard::SeqRange;
use crate::decode::Segment;
use crate::notes::Notes;

/// Shortest retransmission timeout (RFC 6298 has 1 s, Linux 200 ms).
const TIMER_NS: u64 = 200_000_000;
/// Duplicate acknowledgements that indicate a loss (RFC 5681).
const DUPLICATES: u32 = 3;
/// Delay up to which a segment counts as late rather than lost, if nothing else distinguishes the two.
const LATE_NS: u64 = 3_000_000;
/// Retransmitted ranges kept, for duplicates reported by a receiver.
const REMEMBERED: usize = 64;

/// Cause of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fast,
    Timeout,
    TailLossProbe,
    Unclear,
}

impl HalfConnection {
    /// Whether this is a copy of a packet already seen: by identification or, without one, by timestamp and time. Parts of a segment
    /// captured again after a network card or interface split it have other identifications, but follow too soon for a retransmission.
    pub(super) fn is_same_packet(
        &self,
        first: u64,
        to: u64,
        stamp: u32,
        identification: u32,
        now: u64,
    ) -> bool {
        const PART_NS: u64 = 500_000;
        let soon = self.rtt.min().map_or(PART_NS / 5, |ns| (ns / 4).min(PART_NS));
        let mut covered = first;
        let is_part = self.scoreboard.of(first, to).all(|piece| {
            let is_next = piece.from <= covered && piece.times > 0 && piece.stamp == stamp;
            covered = piece.to;
            is_next && now.saturating_sub(piece.at) < soon
        });
        if is_part && covered >= to {
            return true;
        }
        self.scoreboard.of(first, to).next().is_some_and(|piece| {
            let is_whole = piece.from == first && piece.to == to && piece.times > 0;
            let by_number = identification != 0 && piece.identification == identification;
            let by_time = identification == 0 && stamp != 0 && now.saturating_sub(piece.at) < 10_000;
            is_whole && piece.stamp == stamp && (by_number || by_time)
        })
    }

    /// Classifies bytes below the highest sequence number seen.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn retransmitted(
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

    /// Whether data in order was sent before but lost with all that followed it: missing identifications show that, and a timer sent it again.
    pub(super) fn was_lost_before(&self, now: u64, segment: &Segment) -> bool {
        let quiet = now.saturating_sub(self.last_sent);
        self.skipped > 0
            && self.last_sent > 0
            && quiet >= TIMER_NS.max(self.least_rtt().unwrap_or(0))
            && is_of_a_timer(segment, self.mss(), self.last_is_short)
    }

    /// Records data that, by its timestamp, was sent long before and held by the path; never at the sender.
    pub(super) fn held_by_path(&mut self, now: u64, first: u64, stamp: u32) -> Option<u64> {
        if stamp == 0 || first < self.next {
            return None;
        }
        let held = self.stamps.data(now, stamp);
        let quiet = now.saturating_sub(self.last_sent);
        let least = TIMER_NS.max(2 * self.round_trip().unwrap_or(0));
        (self.last_sent > 0 && !self.is_at_sender() && held >= least && held >= quiet / 2).then_some(held)
    }

    /// Counts a timeout retransmission whose original was not captured.
    pub(super) fn lost_and_again(&mut self, now: u64, bytes: u64, notes: &mut Notes) {
        let segments = self.segments_of(bytes);
        notes.add(Notes::RETRANSMISSION);
        notes.add(Notes::TIMEOUT);
        let kinds = &mut self.retransmissions;
        (kinds.segments, kinds.bytes) = (kinds.segments + segments, kinds.bytes + bytes);
        kinds.timeout += segments;
        self.lost_before += segments;
        self.event(now, Kind::Timeout, segments);
    }

    /// Whether data that fills a gap was sent before what caused the gap: by timestamp, identification, or delay.
    pub(super) fn is_late(&self, gap: &SeqRange, now: u64, stamp: u32, identification: u32) -> bool {
        let later = |a: u32, b: u32| a != b && a.wrapping_sub(b) < 1 << 31;
        if stamp != 0 && gap.stamp != 0 && stamp != gap.stamp {
            return later(gap.stamp, stamp);
        }
        let (id, of_gap) = (identification as u16, gap.identification as u16);
        // Identifications of one connection, which Linux increments by one.
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

    pub(super) fn kind_of(&self, now: u64, first: u64, to: u64, sack: bool) -> Kind {
        if let Some(open) = &self.open {
            match open.episode.kind {
                EpisodeKind::Recovery if first < open.until => {
                    // A timeout ends a recovery whose own retransmission was lost.
                    if first == self.una && self.waited(now) && self.timer_fired(now) {
                        return Kind::Timeout;
                    }
                    return Kind::Fast;
                }
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

    /// Whether nothing was sent or acknowledged for most of a round trip.
    pub(super) fn waited(&self, now: u64) -> bool {
        let quiet = now.saturating_sub(self.last_sent);
        quiet >= self.round_trip().map_or(LATE_NS, |ns| ns / 2)
    }

    /// Whether the time exceeds what a recovery waits for its retransmissions.
    pub(super) fn timer_fired(&self, now: u64) -> bool {
        let quiet = now.saturating_sub(self.last_sent);
        quiet >= self.round_trip().unwrap_or(0).saturating_mul(3) / 2 && quiet >= 150_000_000
    }

    /// Whether the time is so long that a tail loss probe would have been sent before (RFC 8985, section 7.2).
    pub(super) fn timer_fired_long(&self, now: u64) -> bool {
        let rtt = self.round_trip().unwrap_or(0);
        now.saturating_sub(self.last_sent) >= rtt.saturating_mul(3) + 400_000_000
    }

    /// Records a congestion event, or retransmissions within one.
    pub(super) fn event(&mut self, now: u64, kind: Kind, segments: u64) {
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
        let mss = self.mss();
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

    /// Records a reduction after an ECN mark.
    pub(super) fn reduced(&mut self, now: u64) {
        if self.open.is_some() {
            return;
        }
        self.event(now, Kind::Fast, 0);
        if let Some(open) = &mut self.open {
            open.episode.kind = EpisodeKind::Reduced;
        }
    }

    pub(super) fn close(&mut self, now: u64) {
        let Some(Open { mut episode, .. }) = self.open.take() else { return };
        episode.took_ns = now.saturating_sub(episode.at_ns);
        let mss = self.mss();
        let before = u64::from(episode.cwnd) * mss;
        self.threshold = Some(self.in_flight().max(2 * mss).min(before.max(2 * mss)));
        if episode.kind == EpisodeKind::Recovery && episode.cwnd >= 10 {
            let rtt = self.round_trip().unwrap_or(0);
            self.shrinking = Some((before, now + rtt, 0));
        }
        (self.epoch.peak, self.epoch.before, self.epoch.flat, self.epoch.steady) = (0, 0, 0, 0);
        if self.episodes.len() < EPISODES {
            self.episodes.push(episode);
        }
    }
}
