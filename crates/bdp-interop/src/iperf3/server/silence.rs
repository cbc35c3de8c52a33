//! Detects stalled tests: a stopped client keeps its connections, since its kernel answers for it.

use std::time::Instant;

use bdp_model::units::Nanos;
use bdp_wire::iperf3::{Failure, Parameters, Protocol};

use super::ending::Ending;
use crate::iperf3::flow::Flow;
use bdp_agent::server::places::Activity;
use bdp_flow::error::FlowError;
use bdp_flow::stall::{self, LARGEST_SEGMENT, STALL, Still};

/// Grace beyond the requested duration of a test no longer than `STALL`: such a test ends by itself.
const SLACK: Nanos = Nanos::secs(2);

/// How long a test has made no progress.
pub(super) struct Silence {
    still: Still,
    longest: Nanos,
    looked: Instant,
    has_begun: bool,
}

impl Silence {
    /// Creates it for a client's request, starting now.
    pub(super) fn of(parameters: &Parameters) -> Self {
        let longest = patience(parameters);
        let still = Still::from_now(longest.to_duration());
        Self { still, longest, looked: Instant::now(), has_begun: false }
    }

    /// Checks the flows: with progress, the test has begun its work; without any for too long, it is over.
    pub(super) fn look(&mut self, flows: &[Flow], activity: &Activity) -> Result<(), Ending> {
        let since = self.looked.elapsed();
        self.looked = Instant::now();
        let shown = moved(flows);
        // A test that only sends continues as requested, and nobody shows that it is read.
        activity.note_moved(flows.iter().map(Flow::bytes).sum());
        if shown != Some(0) && !std::mem::replace(&mut self.has_begun, true) {
            activity.note_heard();
        }
        match shown {
            Some(bytes) if self.still.look(bytes, since) => {
                let why = FlowError::Stalled { within: self.longest };
                Err(Ending::refused(Failure::SILENCE, why.to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the bytes that show the client's presence: those received from it, and those that its kernel acknowledged.
/// `None` if there can be none, since it only receives datagrams.
fn moved(flows: &[Flow]) -> Option<u64> {
    let shown = flows.iter().filter(|flow| !matches!(flow, Flow::Datagrams(flow) if flow.sends()));
    shown.map(Flow::bytes).reduce(|sum, bytes| sum + bytes)
}

/// How long nothing may move.
fn patience(parameters: &Parameters) -> Nanos {
    let together = parameters.length_bytes.saturating_mul(parameters.burst.max(1));
    let least = if parameters.protocol == Protocol::Tcp { LARGEST_SEGMENT } else { 0 };
    let between = stall::patience_between(together.max(least), parameters.asked_rate_bps());
    let asked = Nanos::secs(parameters.seconds + parameters.omit_seconds);
    if parameters.seconds > 0 && asked <= STALL { between.max(asked + SLACK) } else { between }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paced_sender_is_not_silent() {
        let plain = Parameters::over(Protocol::Tcp);
        let udp = Parameters::over(Protocol::Udp);
        for (parameters, longest) in [
            (Parameters { seconds: 300, ..plain.clone() }, STALL),
            (Parameters { bytes: 1 << 40, ..plain.clone() }, STALL),
            // A path that lets nothing through is measured by a test of the usual length.
            (Parameters { seconds: 10, ..plain.clone() }, Nanos::secs(12)),
            (Parameters { seconds: 10, omit_seconds: 3, ..plain.clone() }, STALL),
            (Parameters { seconds: 300, rate_bps: 1_000_000_000, ..plain.clone() }, STALL),
            // A write of 128 KiB each 10.5 s.
            (Parameters { seconds: 300, rate_bps: 100_000, ..plain.clone() }, Nanos(41_943_040_000)),
            (Parameters { seconds: 300, kernel_rate_bps: 100_000, ..plain }, Nanos(41_943_040_000)),
            (Parameters { seconds: 300, rate_bps: 1_000, ..udp.clone() }, Nanos::millis(46_720)),
            (Parameters { seconds: 300, rate_bps: 10_000, burst: 10, ..udp }, Nanos::millis(46_720)),
        ] {
            assert_eq!(patience(&parameters), longest, "{parameters:?}");
        }
    }
}
