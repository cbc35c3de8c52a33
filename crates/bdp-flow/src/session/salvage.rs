//! What one end alone knows of a flow whose other end stops answering.

use bdp_model::flow::method::{EndReason, ReceiveMethod};
use bdp_model::record::ReceiverSample;
use bdp_model::units::Nanos;
use bdp_wire::control::{Mark, Received, Sent};

/// Returns the bytes acknowledged before any payload was sent.
pub fn acknowledged_at_first(sent: &Sent) -> u64 {
    sent.samples.first().and_then(|s| s.acked_bytes).unwrap_or(0)
}

/// Returns what the other end received on this many streams, as far as the sender's kernel knows: the acknowledged
/// bytes.
pub fn acknowledged(sent: &Sent, omit: Nanos, streams: usize) -> Received {
    let first = acknowledged_at_first(sent);
    let mut most = 0;
    let samples: Vec<ReceiverSample> = sent
        .samples
        .iter()
        .filter_map(|s| Some((s.at_ns, s.acked_bytes?)))
        .map(|(at_ns, acked)| {
            // An acknowledged end of a connection is to the kernel a byte more, and of one that was reset it reports zero.
            most = acked.saturating_sub(first).min(sent.bytes).max(most);
            ReceiverSample { at_ns, bytes: most, ..Default::default() }
        })
        .collect();
    let last = samples.last().copied().unwrap_or_default();
    let from = samples.iter().find(|s| s.at_ns >= omit.as_ns()).copied().unwrap_or_default();
    Received {
        bytes: last.bytes,
        duration_ns: last.at_ns,
        counted_from: Mark { at_ns: from.at_ns, bytes: from.bytes },
        stream_bytes: if streams == 1 { vec![last.bytes - from.bytes] } else { Vec::new() },
        samples,
        method: ReceiveMethod::Acknowledged,
        ended: EndReason::Reset,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::record::SenderSample;

    use super::*;

    #[test]
    fn what_was_acknowledged_before_a_reset_stands() {
        let sample = |ms: u64, acked| SenderSample {
            at_ns: ms * 1_000_000,
            acked_bytes: Some(acked),
            ..SenderSample::default()
        };
        let samples = vec![sample(0, 1), sample(100, 1001), sample(200, 3001), sample(250, 0)];
        let sent = Sent { bytes: 4000, samples, ..Sent::default() };
        let received = acknowledged(&sent, Nanos::millis(100), 1);
        assert_eq!((received.bytes, received.duration_ns), (3000, 250_000_000));
        assert_eq!((received.counted_bytes(), received.counted_ns()), (2000, 150_000_000));
        assert_eq!(received.ended, EndReason::Reset);
    }
}
