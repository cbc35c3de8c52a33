//! TCP flows that carry nothing from the beginning, although small packets get through: they are ended early, since
//! nothing more can be learned. That a path silently drops long packets (RFC 2923) is a finding, not a failure.

use std::ops::Range;
use std::time::Duration;

use bdp_flow::session::peer::Outcome;
use bdp_model::flow::method::EndReason;
use bdp_model::measurement::Direction;
use bdp_sys::clock;
use bdp_sys::tcp_info::TcpInfo;

use super::flow::Flow;

/// Least time without data. By then, a Linux that discovers the path MTU itself (`tcp_mtu_probing`) has tried smaller
/// segments: after 15 times its timeout of 0.3 to 0.5 s on paths of up to 0.2 s. Shorter than the limit of a stall,
/// which is an error.
const PATIENCE: Duration = Duration::from_secs(8);
/// Most bytes that the opening of a connection moves: less than any segment that a path must carry.
const OPENING_BYTES: u64 = 536;
/// Retransmissions that show that a sender did try.
const RETRANSMITTED: u32 = 2;

/// Whether running flows carry nothing.
#[derive(Debug, Default)]
pub(super) struct Dry {
    /// When they began, by the monotonic clock.
    begun_ns: u64,
    /// Whether they are still watched: they have moved nothing so far.
    is_watched: bool,
    /// When they were found to move nothing.
    found_ns: Option<u64>,
}

impl Dry {
    /// Creates it for flows that begin now.
    pub(super) fn begun(is_watched: bool) -> Self {
        let begun_ns = if is_watched { clock::monotonic_ns() } else { 0 };
        Self { begun_ns, is_watched, found_ns: None }
    }

    /// Whether to end the flows now because they carry nothing, while `answered` reports answered probes.
    pub(super) fn look(&mut self, flows: &[Flow], answered: impl Fn(&Range<u64>) -> bool) -> bool {
        // Flows that have begun are guarded elsewhere. In a guest, reading the clock takes time.
        self.is_watched = self.is_watched && flows.iter().all(moved_nothing);
        if !self.is_watched {
            return false;
        }
        let (now, patience_ns) = (clock::monotonic_ns(), PATIENCE.as_nanos() as u64);
        if now.saturating_sub(self.begun_ns) < patience_ns {
            return false;
        }
        let is_dry = flows.iter().all(was_tried) && answered(&(now - patience_ns / 2..now));
        self.found_ns = is_dry.then_some(now);
        self.is_watched = !is_dry;
        is_dry
    }

    /// Returns the flow's outcome; if it moved nothing, with that fact and for how long.
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

/// Whether a flow's sender has retransmitted unacknowledged data; not yet known for the remote end.
fn was_tried(flow: &Flow) -> bool {
    let tried = |info: &TcpInfo| {
        info.unacked_segments.is_some_and(|segments| segments > 0)
            && info.total_retrans.is_some_and(|segments| segments >= RETRANSMITTED)
    };
    match flow.way {
        Direction::To => flow.work.sender_infos().iter().any(tried),
        Direction::From => true,
    }
}

/// Whether nothing of a flow has arrived; for what this end sends, the kernel counts the opening, too.
fn moved_nothing(flow: &Flow) -> bool {
    match flow.way {
        Direction::To => flow.work.bytes() < OPENING_BYTES,
        Direction::From => flow.work.bytes() == 0,
    }
}
