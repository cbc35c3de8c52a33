//! How closely a sender kept the requested rate, in words.

use bdp_model::measurement::{Direction, DirectionResult, Measurement, Pacer, Pacing};
use bdp_model::units::format_bps;

use crate::grid::tame;

/// Returns a sentence without its full stop.
pub(crate) fn words(m: &Measurement, direction: &DirectionResult, pacing: &Pacing) -> String {
    let sender = if direction.direction == Direction::To { &m.near } else { &m.far };
    let device = sender.device.as_ref();
    let name = device.map_or_else(|| "the device".to_owned(), |device| tame(&device.name));
    let qdisc = match device.and_then(|device| device.qdisc.as_deref()) {
        Some(qdisc) => format!("{name} has {}, not fq", tame(qdisc)),
        None => format!("{name} does not report fq"),
    };
    let each = if m.request.spec.streams > 1 { " each stream" } else { "" };
    let rate = format_bps(pacing.rate_bps as f64);
    match pacing.by {
        Pacer::Fq => format!("{rate}{each}, paced by fq on {name}"),
        Pacer::Tcp => format!("{rate}{each}, paced by TCP itself, whose timers are coarser: {qdisc}"),
        Pacer::Bdp => format!("{rate}{each}, paced by the times of send calls, each one burst: {qdisc}"),
        Pacer::BdpAndFq => {
            format!("{rate}{each}, paced by the times of send calls, each spread out by fq on {name}")
        }
    }
}
