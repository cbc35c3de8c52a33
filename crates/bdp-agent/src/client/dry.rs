//! Flows of TCP of which nothing comes through from the beginning, though small packets do: they are ended before their time, for there is all that can be
//! learned of them. What a path does that swallows long packets without a word (RFC 2923) is a finding, and no failure.

use std::ops::Range;
use std::time::Duration;

use bdp_flow::session::peer::Outcome;
use bdp_model::measurement::Direction;
use bdp_model::method::EndReason;
use bdp_sys::clock;
use bdp_sys::tcp_info::TcpInfo;

use super::flow::Flow;

/// How long nothing comes, at least: a sender on a path of 0.2 s has retransmitted three times by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same in round trips.
const ROUND_TRIPS: u32 = 16;
/// What the opening of a connection moves at the most: less than any segment that a path must carry.
const OPENING_BYTES: u64 = 536;
/// Retransmissions that show that a sender did try.
const RETRANSMITTED: u32 = 2;

/// Whether that is the case of flows that run.
#[derive(Debug, Default)]
pub(super) struct Dry {
    /// When they began, by the monotonic clock.
    begun_ns: u64,
    /// How long they may move nothing; `None` once that was looked at, and of flows that are not watched.
    patience_ns: Option<u64>,
    /// When they were found to move nothing.
    found_ns: Option<u64>,
}

impl Dry {
    /// Of flows that begin now, over a path of such round trips.
    pub(super) fn begun(is_watched: bool, round_trip: Duration) -> Self {
        let patience = PATIENCE.max(ROUND_TRIPS * round_trip);
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        Self {
            begun_ns: if is_watched { clock::monotonic_ns() } else { 0 },
            patience_ns: is_watched.then_some(patience_ns),
            found_ns: None,
        }
    }

    /// Whether the flows are to end now since nothing comes of them, though `answered` tells of probes meanwhile.
    pub(super) fn look(&mut self, flows: &[Flow], answered: impl Fn(&Range<u64>) -> bool) -> bool {
        // In a guest a reading of the clock takes time of its own.
        let Some(patience_ns) = self.patience_ns else { return false };
        let now = clock::monotonic_ns();
        if now.saturating_sub(self.begun_ns) < patience_ns {
            return false;
        }
        // Once: what has begun by then is guarded by others.
        self.patience_ns = None;
        let is_dry = flows.iter().all(moves_nothing) && answered(&(now - patience_ns / 2..now));
        self.found_ns = is_dry.then_some(now);
        is_dry
    }

    /// What came of a flow: of one that moved nothing, that and for how long.
    pub(super) fn concluded(&self, mut outcome: Outcome) -> Outcome {
        if let Some(found_ns) = self.found_ns
            && outcome.received.bytes == 0
        {
            outcome.begun_at_ns = Some(self.begun_ns);
            outcome.received.duration_ns = found_ns - self.begun_ns;
            outcome.received.ended = EndReason::Silence;
        }
        outcome
    }
}

/// Whether nothing came of a flow; of what this end sends, though it was sent again.
fn moves_nothing(flow: &Flow) -> bool {
    let tried = |info: &TcpInfo| {
        info.unacked_segments.is_some_and(|n| n > 0) && info.total_retrans.is_some_and(|n| n >= RETRANSMITTED)
    };
    let is_tried = match flow.way {
        Direction::To => flow.work.sender_infos().iter().any(tried),
        Direction::From => true,
    };
    flow.work.bytes() < OPENING_BYTES && is_tried
}
