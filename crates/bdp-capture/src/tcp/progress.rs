//! The sender's progress: arrival of acknowledgements, round trips, readings.

use bdp_model::record::{CongestionState, EpisodeKind};

use crate::decode::Segment;

use super::half::{Ack, Epoch, HalfConnection, MARKS, Open, Reading, STEADY};

/// Share of self-timed sends from which a sender is not driven by acknowledgements.
const BY_ITSELF: f64 = 0.85;
/// Time within which a program that reads counts as reading at once.
const LATE_NS: u64 = 3_000_000;

impl HalfConnection {
    /// Records that the receive window is open again.
    pub(super) fn opened(&mut self, now: u64) {
        let Some(since) = self.zero_since.take() else { return };
        self.zero_window_ns += now.saturating_sub(since);
        if self.closed.len() < MARKS {
            self.closed.push((since, now.max(since), self.acked()));
        }
    }

    /// Delivers the oldest pending acknowledgement to the sender.
    pub(super) fn deliver_first(&mut self) {
        if let Some(ack) = self.pending.pop_front() {
            self.pending_news -= usize::from(ack.has_news);
            self.count(ack.due);
            self.apply(ack);
        }
    }

    /// Delivers the acknowledgements that the sender shows it has received, by its acknowledgement number and timestamp echo.
    pub(super) fn deliver_known(&mut self, now: u64, segment: &Segment) {
        let reached = |past: u32, at: u32| past.wrapping_sub(at) < 1 << 31;
        let echo = segment.options.timestamps.map(|(_, echo)| echo);
        let is_known = |ack: &Ack| {
            ack.has_news && segment.flags.ack() && reached(segment.ack, ack.carries_to)
                || ack.stamp.zip(echo).is_some_and(|(stamp, echo)| reached(echo, stamp))
        };
        let is_news = segment.ack != self.said;
        self.said = segment.ack;
        // They arrive in order: unless it acknowledges more than before, only the first can be known.
        if !is_news && !self.pending.front().is_some_and(is_known) {
            return;
        }
        let last = match is_news {
            true => {
                // Timestamps and numbers only grow, so a binary search finds the position. Acknowledgements without data have no number of their own.
                let by_stamp = self.pending.partition_point(|ack| {
                    ack.stamp.zip(echo).is_some_and(|(stamp, echo)| reached(echo, stamp))
                });
                let by_number = match self.pending_news {
                    0 => 0,
                    _ => self.pending.partition_point(|ack| reached(segment.ack, ack.carries_to)),
                };
                let beyond = self.pending.range(by_stamp.min(by_number)..by_number);
                let further = beyond.rev().position(is_known).map(|back| by_number - 1 - back);
                further.or(by_stamp.checked_sub(1))
            }
            false => self
                .pending
                .iter()
                .position(|ack| !is_known(ack))
                .unwrap_or(self.pending.len())
                .checked_sub(1),
        };
        let Some(last) = last else { return };
        for ack in &mut self.pending.range_mut(..=last) {
            ack.due = ack.due.min(now);
        }
        self.advance(now);
    }

    /// Advances the sender to this moment: acknowledgements arrive, and time is counted.
    pub(super) fn advance(&mut self, now: u64) {
        while self.pending.front().is_some_and(|ack| ack.due <= now) {
            self.deliver_first();
        }
        self.count(now);
    }

    /// Ends the capture: pending acknowledgements arrive.
    pub fn finish(&mut self) {
        if let Some(last) = self.pending.back().map(|ack| ack.due) {
            self.advance(last);
        }
        self.opened(self.last_at);
        if let Some(Open { episode, .. }) = self.open.take() {
            self.episodes.push(episode);
        }
    }

    /// Counts the time since the last event as what held the sender then.
    pub(super) fn count(&mut self, now: u64) {
        let took = now.saturating_sub(self.last_at);
        if self.last_at > 0 && took > 0 {
            self.account.held_by(now, self.held_by());
            let is_full =
                self.has_data() && (self.is_closed() || self.is_window_full() && self.full_since.is_some());
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

    /// Ends a round trip: its maximum in flight becomes the window of the next.
    pub(super) fn turn(&mut self, now: u64) {
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
        let mss = self.mss();
        // A send buffer refilled only when it has room leaves the sender idle for a moment: some round trips have less in flight, none
        // more.
        let is_held = !self.is_window_full() && self.open.is_none() && self.epoch.before > 0;
        let is_more = self.epoch.peak > self.epoch.anchor + mss;
        if !is_held || self.epoch.steady == 0 || is_more || self.epoch.lower >= STEADY {
            (self.epoch.steady, self.epoch.anchor, self.epoch.lower) =
                (u8::from(is_held), self.epoch.peak, 0);
        } else if self.epoch.peak + mss.max(self.epoch.anchor / 8) >= self.epoch.anchor {
            (self.epoch.steady, self.epoch.lower) = (self.epoch.steady.saturating_add(1), 0);
        } else {
            self.epoch.lower += 1;
        }
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

    pub(super) fn apply(&mut self, ack: Ack) {
        self.last_applied = ack.due;
        let (newly, mut sent, is_clear) = self.acknowledge(&ack);
        self.selective(&ack, &mut sent);
        if let Some(at) = sent.filter(|&at| is_clear && at <= ack.at) {
            self.ack_stamp = ack.stamp.map(|stamp| (stamp, ack.at, ack.at - at));
            self.note_read(newly, ack.at - at);
            self.rtt.add(ack.at - at);
            if self.own_side.is_none() || self.is_at_sender() {
                self.whole.add(ack.at - at + self.own_now.unwrap_or(0));
            }
        }
        let edge = ack
            .edge
            .map(|edge| self.edge.map_or(edge, |old| if ack.ack >= self.una { edge } else { old.max(edge) }));
        let was = self.edge;
        if newly == 0
            && let Some((old, new)) = was.zip(edge).filter(|(old, new)| new > old)
        {
            self.note_opened(new - old, ack.at.saturating_sub(self.progressed_at));
        }
        if newly > 0 {
            self.progressed_at = ack.at;
        }
        if edge.is_some() || self.is_closed() {
            self.edge = edge;
        }
        if ack.has_news {
            self.account.heard(ack.due, self.una < self.next, ack.stamp);
        }
        if newly > 0 || self.edge > was || self.duplicates_now > 0 || ack.count > 0 {
            self.account.room(ack.due, ack.has_news, self.una >= self.next);
        }
        if !self.is_window_full()
            && let Some(since) = self.full_since.take()
        {
            let waited = ack.due.saturating_sub(since);
            self.waits.add(waited);
            if self.whole.min().is_some_and(|rtt| waited >= rtt / 2) {
                self.stalls.add(waited);
            }
        }
        if newly > 0
            && let Some(open) = self.open.filter(|open| self.una >= open.until)
        {
            debug_assert!(open.until <= self.una);
            self.close(ack.due);
        }
        self.read(ack.due);
    }

    /// Removes acknowledged bytes from the scoreboard; returns the number of new bytes, the time of the newest segment sent only once, and whether
    /// that gives a round trip.
    fn acknowledge(&mut self, ack: &Ack) -> (u64, Option<u64>, bool) {
        let mut sent = None::<u64>;
        let mut is_clear = true;
        if ack.ack <= self.una {
            let is_repeat = ack.is_pure && ack.ack == self.una && self.next > self.una;
            self.duplicates_now += u32::from(is_repeat && ack.edge == self.edge);
            return (0, sent, is_clear);
        }
        let newly = ack.ack - self.una;
        let was_in_order = self.duplicates_now == 0;
        let mut never_seen = 0;
        let (mut largest, mss) = (self.passed_most, self.mss());
        self.scoreboard.acknowledge(ack.ack, |piece| {
            if piece.times == 0 {
                never_seen += piece.to - piece.from;
            } else {
                largest = largest.max((piece.to - piece.from).min(mss));
            }
            if piece.times != 1 {
                is_clear = false;
            } else if !piece.is_sacked {
                sent = sent.max(Some(piece.at));
            }
        });
        self.passed_most = largest;
        self.missing += never_seen;
        if !was_in_order && self.scoreboard.sacked() == 0 {
            is_clear = false;
        }
        self.una = ack.ack;
        self.delivered += newly;
        self.duplicates_now = 0;
        self.acks_since += 1;
        (newly, sent, is_clear)
    }

    /// Processes SACK blocks, the first of which may report a duplicate (RFC 2883).
    pub(super) fn selective(&mut self, ack: &Ack, sent: &mut Option<u64>) {
        let blocks = ack.blocks.into_iter().take(usize::from(ack.count));
        let within = |a: (u64, u64), b: (u64, u64)| a.0 >= b.0 && a.1 <= b.1;
        for (i, (from, to)) in blocks.enumerate() {
            if to <= from || to > self.next {
                continue;
            }
            let is_duplicate =
                i == 0 && (to <= ack.ack || ack.count > 1 && within((from, to), ack.blocks[1]));
            if is_duplicate {
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

    /// Takes a reading if one is due.
    pub(super) fn read(&mut self, at: u64) {
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

    /// Records an acknowledgement of `bytes` bytes and the time since the last of them passed here or was sent.
    pub(super) fn note_read(&mut self, bytes: u64, took_ns: u64) {
        let (Some(window), Some(least)) = (self.window_most, self.rtt.min()) else { return };
        let is_late = took_ns > least + LATE_NS.max(self.least_rtt().unwrap_or(0) / 4);
        self.late_reads.add(bytes, is_late && bytes >= window / 2 && window > 0);
    }

    /// Records that the window opened by `bytes` bytes, and the time since data was last acknowledged.
    pub(super) const fn note_opened(&mut self, bytes: u64, after_ns: u64) {
        if after_ns > LATE_NS {
            self.late_reads.add(bytes, true);
        }
    }

    /// Whether neither acknowledgements, a queue nor losses determine when data is sent: neither the path nor a window limits the sender.
    pub(super) fn sends_by_its_own_clock(&self) -> bool {
        self.paced_share().is_some_and(|share| share >= BY_ITSELF) && self.is_at_floor()
    }

    /// Whether it sends evenly, independent of acknowledgements, and always has more to send: its host enforces a rate.
    pub(super) fn keeps_a_rate(&self) -> bool {
        self.paced_share().is_some()
            && self.is_at_floor()
            && self.rhythm.is_even()
            && !self.rhythm.ends_short()
    }

    /// Whether there is no queue and no loss.
    fn is_at_floor(&self) -> bool {
        let is_low = self.whole.report().is_some_and(|rtt| {
            let above = rtt.p95.as_ns().saturating_sub(rtt.min.as_ns());
            let even = if self.rhythm.is_even() { self.rhythm.mean_ns } else { 0 };
            above <= (rtt.min.as_ns() / 20).max(1_000_000) + even
        });
        is_low && self.retransmissions.segments == 0
    }
}
