//! Combines what both ends report of a flow of datagrams.

use bdp_model::flow::method::TimestampSource;
use bdp_model::flow::udp::{Distribution, OneWayDelay, UdpReport};
use bdp_wire::control::{Received, Sent};

/// Returns the datagrams' fate; nothing for a flow of connections. `asked_bps` is for all streams together; `clocks`
/// holds the nanoseconds by which the receiver's clock is ahead of the sender's, and the error bound.
pub fn report(
    asked_bps: Option<f64>,
    received: &Received,
    sent: &Sent,
    clocks: Option<(i64, u64)>,
) -> Option<UdpReport> {
    let (got, gave) = (received.datagrams.as_ref()?, sent.datagrams.as_ref()?);
    let lost = gave.sent.saturating_sub(got.counts.received);
    // The last datagrams, whose number no end mark gave.
    let at_end =
        got.open_end.map_or(0, |end| end.dropped_at_most.min(gave.sent.saturating_sub(end.numbered)));
    let seconds = gave.duration_ns.max(1) as f64 / 1e9;
    Some(UdpReport {
        asked_bps,
        sent_bps: sent.bytes as f64 * 8.0 / seconds,
        datagram_bytes: gave.payload_bytes,
        sent: gave.sent,
        left_out: gave.left_out,
        received: got.counts.received,
        lost,
        loss_ratio: lost as f64 / gave.sent.max(1) as f64,
        dropped_by_receiver: got.dropped.map(|dropped| (dropped + at_end).min(lost)),
        duplicated: Some(got.counts.duplicated),
        reordered: Some(got.counts.reordered),
        reorder_displacement_max: Some(got.counts.displacement_max),
        jitter_ns: got.jitter_ns,
        delay_variation_ns: got.transits.map(|t| Distribution {
            count: t.count,
            p50: t.p50.abs_diff(t.min),
            p95: t.p95.map(|p95| p95.abs_diff(t.min)),
            p99: t.p99.map(|p99| p99.abs_diff(t.min)),
            max: t.max.abs_diff(t.min),
        }),
        one_way_delay_ns: got.transits.zip(clocks).map(|(t, (ahead, clock_error))| OneWayDelay {
            min: t.min.wrapping_sub(ahead),
            p50: t.p50.wrapping_sub(ahead),
            p95: t.p95.map(|p95| p95.wrapping_sub(ahead)),
            p99: t.p99.map(|p99| p99.wrapping_sub(ahead)),
            max: t.max.wrapping_sub(ahead),
            clock_error,
        }),
        send_gap_ns: gave.gaps,
        burst_max: gave.burst_max,
        timestamps: if got.stamped { TimestampSource::Kernel } else { TimestampSource::Read },
        receive_buffer_bytes: received.receive_buffer_bytes,
        trials: Vec::new(),
        search: None,
    })
}
