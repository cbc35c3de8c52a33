//! Determines which mechanism held a sender to the requested rate.

use bdp_model::measurement::{Direction, DirectionResult, HostFacts, MeasureRequest, Pacer, Pacing};

/// Records the mechanism, if a rate was requested: `fq` on the sender's device spaces packets; without it TCP paces
/// by its own timers, and UDP not at all.
pub fn note(request: &MeasureRequest, direction: &mut DirectionResult, near: &HostFacts, far: &HostFacts) {
    let sender = if direction.direction == Direction::To { near } else { far };
    let qdisc = sender.device.as_ref().and_then(|device| device.qdisc.as_deref());
    let has_fq = qdisc.is_some_and(|kinds| kinds.split('/').all(|kind| kind == "fq"));
    let of_datagrams = direction.udp.as_ref().and_then(|udp| udp.asked_bps);
    direction.pacing = match of_datagrams {
        Some(all_bps) => Some(Pacing {
            rate_bps: (all_bps / f64::from(request.spec.streams.max(1))).round() as u64,
            by: if has_fq { Pacer::BdpAndFq } else { Pacer::Bdp },
        }),
        None => request
            .spec
            .pacing_bps
            .map(|rate_bps| Pacing { rate_bps, by: if has_fq { Pacer::Fq } else { Pacer::Tcp } }),
    };
}
