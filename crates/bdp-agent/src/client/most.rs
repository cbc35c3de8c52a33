//! Upper bound of an end's report of a flow, from the request: a longer one is not a valid answer, and is not kept.

use std::time::Duration;

use bdp_model::measurement::MeasureRequest;
use bdp_wire::control::Answer;

/// Bytes of a sample as JSON, all its members with large numbers.
const SAMPLE_BYTES: usize = 1_500;
/// Bytes reported per stream.
const STREAM_BYTES: usize = 500;
/// Samples in addition to those of the elapsed time: the first, the last, and those at marks.
const MORE_SAMPLES: usize = 100;
/// Most congestion events; an end keeps 400.
const EPISODES: usize = 1_000;
const EPISODE_BYTES: usize = 300;

/// Longest lists in an outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    samples: usize,
    streams: usize,
}

impl Most {
    /// Returns the bounds for a flow that began this long ago.
    pub(super) fn of(request: &MeasureRequest, ago: Duration) -> Self {
        let intervals = ago.as_nanos() / u128::from(request.spec.interval.as_ns().max(1));
        Self {
            samples: usize::try_from(intervals).unwrap_or(usize::MAX).saturating_add(MORE_SAMPLES),
            streams: request.spec.streams as usize,
        }
    }

    /// Returns the longest such outcome in bytes.
    pub(super) fn bytes(self) -> usize {
        let samples = self.samples.saturating_mul(SAMPLE_BYTES);
        samples.saturating_add(self.streams * STREAM_BYTES).saturating_add(EPISODES * EPISODE_BYTES)
    }

    /// Checks an outcome for longer lists; the error says which.
    pub(super) fn check(self, answer: &Answer) -> Result<(), String> {
        let lists = match answer {
            Answer::Received(received) => vec![
                ("bytes of streams", received.stream_bytes.len(), self.streams),
                ("samples", received.samples.len(), self.samples),
            ],
            Answer::Sent(sent) => vec![
                ("streams", sent.streams.len(), self.streams),
                ("samples", sent.samples.len(), self.samples),
                ("congestion events", sent.loss_episodes.len(), EPISODES),
            ],
            _ => Vec::new(),
        };
        match lists.into_iter().find(|(_, found, most)| found > most) {
            Some((what, found, most)) => {
                Err(format!("it reported {found} {what}, more than the {most} requested"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::record::{ReceiverSample, SenderSample};
    use bdp_wire::control::{Received, Sent};

    use super::*;

    #[test]
    fn outcome_is_bounded_by_what_was_asked() {
        let request = MeasureRequest::to("ams1");
        let most = Most::of(&request, Duration::from_secs(10));
        let received = |streams, samples| {
            let samples = vec![ReceiverSample::default(); samples];
            Answer::Received(Received { stream_bytes: vec![7; streams], samples, ..Default::default() })
        };
        assert_eq!(most.check(&received(1, 100)), Ok(()));
        let wrong = most.check(&received(2, 0)).unwrap_err();
        assert_eq!(wrong, "it reported 2 bytes of streams, more than the 1 requested");
        assert!(most.check(&received(1, 1_000_000)).is_err());
        let sent = Sent { samples: vec![SenderSample::default(); 1_000_000], ..Default::default() };
        assert!(most.check(&Answer::Sent(sent)).is_err());
        // A measurement of ten seconds reads little, whatever the other end says.
        assert!((100_000..4_000_000).contains(&most.bytes()), "{}", most.bytes());
    }

    #[test]
    fn samples_of_the_largest_numbers_have_room() {
        let text = serde_json::to_string(&SenderSample {
            at_ns: u64::MAX,
            acked_bytes: Some(u64::MAX),
            unacked: Some(u32::MAX),
            cwnd: Some(u32::MAX),
            snd_wnd_bytes: Some(u64::MAX),
            srtt_ns: Some(u64::MAX),
            retransmits: Some(u64::MAX),
            busy_ns: Some(u64::MAX),
            rwnd_limited_ns: Some(u64::MAX),
            sndbuf_limited_ns: Some(u64::MAX),
            reorder_seen: Some(u64::MAX),
            needless_retransmits: Some(u64::MAX),
            delivered: Some(u64::MAX),
            delivered_ce: Some(u64::MAX),
            timeouts: Some(u64::MAX),
            min_rtt_ns: Some(u64::MAX),
            delivery_rate_bps: Some(u64::MAX),
            pacing_bps: Some(u64::MAX),
            not_sent_bytes: Some(u64::MAX),
            write_blocked_ns: Some(u64::MAX),
            write_idle_ns: Some(u64::MAX),
            cpu_ns: Some(u64::MAX),
            thread_cpu_ns: Some(u64::MAX),
            run_wait_ns: Some(u64::MAX),
            ..Default::default()
        })
        .unwrap();
        assert!(text.len() < SAMPLE_BYTES, "{}", text.len());
    }
}
