//! Congestion events of a connection, detected by reading `TCP_INFO` about twice per round trip: the kernel's state
//! just before each, and what it did until the event was over.

use bdp_model::record::{CongestionState, EpisodeKind, LOSS_EPISODES_KEPT, LossEpisode};
use bdp_sys::tcp_info::TcpInfo;

/// Shortest time between two readings.
const SHORTEST_NS: u64 = 2_000_000;

/// The events of one connection so far.
#[derive(Debug, Default)]
pub struct LossEpisodes {
    episodes: Vec<LossEpisode>,
    /// The last reading outside an event.
    before: Option<Reading>,
    /// The current event, and the segments retransmitted when it began.
    current: Option<(LossEpisode, u64)>,
    srtt_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    info: TcpInfo,
    retransmits: u64,
}

impl LossEpisodes {
    /// Returns the events in these readings, given in order of time.
    pub fn of<'a>(readings: impl IntoIterator<Item = (u64, &'a TcpInfo)>) -> Vec<LossEpisode> {
        let mut episodes = Self::default();
        for (at_ns, info) in readings {
            episodes.observe(at_ns, info);
        }
        episodes.finish()
    }

    /// Returns how long to wait for the next reading: half a round trip, at most a sample interval.
    pub fn cadence_ns(&self, interval_ns: u64) -> u64 {
        match self.srtt_ns {
            0 => interval_ns.min(5 * SHORTEST_NS),
            srtt => (srtt / 2).max(SHORTEST_NS).min(interval_ns),
        }
    }

    /// Adds a reading.
    pub fn observe(&mut self, at_ns: u64, info: &TcpInfo) {
        let (Some(state), Some(retransmits)) = (info.congestion_state, info.total_retrans.map(u64::from))
        else {
            return;
        };
        if info.cwnd_segments.is_none_or(|segments| segments == 0) {
            // A socket that was reset reports zeros.
            return;
        }
        self.srtt_ns = info.rtt_ns.unwrap_or(self.srtt_ns);
        let kind = kind(CongestionState::of_linux(state));
        match (&mut self.current, kind) {
            (Some((episode, at_begin)), Some(kind)) => {
                episode.retransmits = retransmits.saturating_sub(*at_begin);
                // A recovery that ends in a timeout is one.
                episode.kind = episode.kind.max(kind);
            }
            (Some((episode, at_begin)), None) => {
                episode.retransmits = retransmits.saturating_sub(*at_begin);
                episode.took_ns = at_ns.saturating_sub(episode.at_ns);
                let episode = *episode;
                self.current = None;
                self.keep(episode);
            }
            (None, kind) => {
                let again = self.before.map_or(0, |before| retransmits.saturating_sub(before.retransmits));
                // One that began and ended between two readings has left its retransmissions.
                if kind.is_some() || again > 0 {
                    let before = self.before.unwrap_or(Reading { info: *info, retransmits: 0 });
                    let episode = begin(at_ns, kind.unwrap_or(EpisodeKind::Recovery), &before.info, again);
                    match kind {
                        Some(_) => self.current = Some((episode, before.retransmits)),
                        None => self.keep(episode),
                    }
                }
            }
        }
        if kind.is_none() {
            self.before = Some(Reading { info: *info, retransmits });
        }
    }

    /// Returns the detected events; the last may not be over.
    pub fn finish(mut self) -> Vec<LossEpisode> {
        if let Some((episode, _)) = self.current.take() {
            self.keep(episode);
        }
        self.episodes
    }

    fn keep(&mut self, episode: LossEpisode) {
        if self.episodes.len() < LOSS_EPISODES_KEPT {
            self.episodes.push(episode);
        }
    }
}

fn kind(state: Option<CongestionState>) -> Option<EpisodeKind> {
    match state? {
        CongestionState::Open | CongestionState::Disorder => None,
        CongestionState::Reduced => Some(EpisodeKind::Reduced),
        CongestionState::Recovery => Some(EpisodeKind::Recovery),
        CongestionState::Loss => Some(EpisodeKind::Timeout),
    }
}

fn begin(at_ns: u64, kind: EpisodeKind, before: &TcpInfo, retransmits: u64) -> LossEpisode {
    LossEpisode {
        at_ns,
        kind,
        cwnd: before.cwnd_segments.unwrap_or(0),
        unacked: before.unacked_segments.unwrap_or(0),
        srtt_ns: before.rtt_ns.unwrap_or(0),
        delivered: before.delivered_segments.map_or(0, u64::from),
        delivery_rate_bps: before.delivery_rate_bps,
        slow_start: before
            .cwnd_segments
            .zip(before.ssthresh_segments)
            .is_none_or(|(cwnd, ssthresh)| cwnd < ssthresh),
        retransmits,
        took_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(state: u8, cwnd: u32, retransmits: u32) -> TcpInfo {
        TcpInfo {
            congestion_state: Some(state),
            cwnd_segments: Some(cwnd),
            unacked_segments: Some(cwnd),
            total_retrans: Some(retransmits),
            rtt_ns: Some(40_000_000),
            ssthresh_segments: Some(10),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn an_event_has_the_window_before_it_and_what_was_retransmitted_in_it() {
        let mut log = LossEpisodes::default();
        log.observe(0, &reading(0, 20, 0));
        log.observe(20, &reading(1, 21, 0));
        log.observe(40, &reading(3, 15, 1));
        log.observe(60, &reading(3, 11, 3));
        log.observe(80, &reading(0, 10, 3));
        log.observe(100, &reading(0, 11, 3));
        let all = log.finish();
        assert_eq!(all.len(), 1, "{all:?}");
        let one = all[0];
        assert_eq!((one.at_ns, one.took_ns, one.cwnd, one.retransmits), (40, 40, 21, 3));
        assert_eq!((one.kind, one.slow_start), (EpisodeKind::Recovery, false));
    }

    #[test]
    fn an_event_between_two_readings_is_noticed_and_a_timeout_outranks_recovery() {
        let mut log = LossEpisodes::default();
        log.observe(0, &reading(0, 20, 0));
        log.observe(20, &reading(0, 10, 2));
        log.observe(40, &reading(3, 9, 3));
        log.observe(60, &reading(4, 1, 4));
        let all = log.finish();
        assert_eq!(
            all.iter().map(|e| (e.kind, e.retransmits)).collect::<Vec<_>>(),
            [(EpisodeKind::Recovery, 2), (EpisodeKind::Timeout, 2)]
        );
    }

    #[test]
    fn readings_come_twice_a_round_trip_within_bounds() {
        let mut log = LossEpisodes::default();
        assert_eq!(log.cadence_ns(100_000_000), 10_000_000);
        log.observe(0, &reading(0, 20, 0));
        assert_eq!((log.cadence_ns(100_000_000), log.cadence_ns(10_000_000)), (20_000_000, 10_000_000));
    }
}
