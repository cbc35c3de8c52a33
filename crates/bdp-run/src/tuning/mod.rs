//! Makes plans of settings from stored measurements of a path and this machine's settings.

pub mod fix;
pub mod host_settings;
pub mod measured_path;
pub mod verify;

use std::net::Ipv4Addr;

use bdp_explain::plan;
pub use bdp_explain::plan::{Described, Wish};
use bdp_flow::host::Baseline;
use bdp_model::case::Family;
use bdp_model::measurement::ends::Direction;
use bdp_model::measurement::{HostFacts, Measurement};
use bdp_model::path::overhead::{Medium, Transport, payload_share};
use bdp_model::tuning::Plan;

/// Returns the plan for a measured path, using other measurements of it too.
pub fn plan(run: Option<&str>, measurement: &Measurement, others: &[Measurement], wish: &Wish) -> Plan {
    plan::measured(run, measurement, wish, |direction| capacity(others, direction))
}

/// Returns this machine's plan for a path that is described by figures.
pub fn plan_described(path: &Described) -> Plan {
    plan::described(&this_host(), path)
}

/// Returns the goodput of a bottleneck with this rate on the wire: full Ethernet segments, with timestamps.
pub fn goodput_of(rate_bps: f64) -> f64 {
    let share = payload_share(1500, Medium::Ethernet, Family::Ipv4, Transport::TcpTimestamps);
    share.map_or(rate_bps, |share| rate_bps * share)
}

/// Returns the capacity of a path's direction by other measurements of the same path: the highest goodput.
pub fn capacity(others: &[Measurement], direction: Direction) -> Option<f64> {
    let results = others.iter().flat_map(|measurement| &measurement.directions);
    let goodputs = results.filter(|result| result.direction == direction).map(|result| result.goodput_bps);
    goodputs.max_by(f64::total_cmp)
}

/// Returns this machine's settings; for no path, so that its device is the loopback.
fn this_host() -> HostFacts {
    Baseline::take(Ipv4Addr::LOCALHOST.into()).facts()
}
