//! What currently holds the sender of one direction, as far as its windows and queue show.

use bdp_model::facts::TimeState;
use bdp_model::finding::threshold::{QUEUE_NOISE, QUEUE_SHARE};
use bdp_model::path::delayed_ack;
use bdp_model::record::EpisodeKind;
use bdp_model::units::Nanos;

use super::half::{HalfConnection, SOONER, STEADY};

/// Window that a few large segments fill, bytes.
const SMALL_WINDOW: u64 = 32 * 1024;

impl HalfConnection {
    /// Whether the receive window is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.edge.is_some_and(|edge| edge <= self.una)
    }

    /// Returns what holds the sender now, as far as its windows show.
    pub(super) fn held_by(&self) -> TimeState {
        // From elsewhere, the data acknowledged at the sender when it stopped is less certain.
        let blur = if self.is_at_sender() { 0 } else { self.in_flight() * 3 / 2 / SOONER };
        let is_full = self.edge.is_some_and(|edge| edge < self.next + self.least_room() + blur);
        if self.has_data() && (self.is_closed() || is_full) {
            let window = self.edge.unwrap_or(0).saturating_sub(self.una);
            let is_shrunk = self.window_most.is_some_and(|most| window < most / 2);
            // A small window appears half used even if the program reads at once.
            let is_large = self.window_most > Some(SMALL_WINDOW);
            let reads_late = is_shrunk && (is_large || self.zero_windows > 0 || self.late_reads.are_seen());
            return if reads_late || self.late_reads.are_usual() {
                TimeState::ReceiverApplication
            } else {
                TimeState::ReceiveWindow
            };
        }
        match &self.open {
            Some(open) => match open.episode.kind {
                EpisodeKind::Reduced => TimeState::EcnReduction,
                EpisodeKind::Recovery => TimeState::Recovery,
                EpisodeKind::Timeout => TimeState::Timeout,
            },
            None if self.is_queued() => TimeState::FullPath,
            None if self.epoch.steady >= STEADY && self.retransmissions.segments == 0 && self.echoes == 0 => {
                match self.edge {
                    // No window and no buffer is that small.
                    _ if self.epoch.anchor < self.offered() => TimeState::SenderApplication,
                    Some(_) if self.is_at_sender() => TimeState::SendBuffer,
                    None if self.fits_by_a_scale() => TimeState::ReceiveWindow,
                    _ => TimeState::Unknown,
                }
            }
            None if self.threshold.is_none() => TimeState::SlowStart,
            None => TimeState::CongestionAvoidance,
        }
    }

    /// Whether the amount in flight equals the unscaled window by some scale, for a connection whose SYNs were not captured.
    fn fits_by_a_scale(&self) -> bool {
        const SCALES: std::ops::RangeInclusive<u32> = 0..=14;
        let most = self.epoch.anchor;
        self.written > 0
            && SCALES.into_iter().any(|shift| {
                let window = self.written << shift;
                window >= most && window - most < self.mss()
            })
    }

    /// Whether the round trip shows a standing queue. With few segments, the acknowledgement may have been delayed.
    fn is_queued(&self) -> bool {
        let (Some(least), Some(now)) = (self.least_rtt(), self.round_trip()) else { return false };
        let segments = self.in_flight() / self.mss();
        let turn = delayed_ack::longest_turn(segments, Nanos(least)).as_ns();
        now > turn + QUEUE_NOISE.as_ns().max((least as f64 * QUEUE_SHARE) as u64)
    }

    /// Whether no further segment fits the receive window.
    pub(super) fn is_window_full(&self) -> bool {
        self.edge.is_some_and(|edge| edge < self.next + self.least_room())
    }

    /// Returns the smallest room for which anything is sent: a segment, or half of the largest window (RFC 9293, section 3.8.6.2.1).
    fn least_room(&self) -> u64 {
        self.window_most.map_or(u64::MAX, |most| most / 2).min(self.mss()).max(1)
    }

    /// Whether the windows have room and the last segment was not full, so that there is nothing to send.
    pub(super) fn is_starved(&self) -> bool {
        self.last_is_short && !self.is_window_full() && self.open.is_none()
    }
}
