//! What plans of settings are made from: stored measurements of a path, and what this machine is set to.

use std::net::{IpAddr, Ipv4Addr};

use bdp_explain::plan;
pub use bdp_explain::plan::{Described, Wish};
use bdp_flow::host::Baseline;
use bdp_model::ends::Direction;
use bdp_model::measurement::{HostFacts, Measurement};
use bdp_model::tuning::Plan;

/// The plan for a path that was measured, and by others besides.
pub fn plan(run: Option<&str>, measurement: &Measurement, others: &[Measurement], wish: &Wish) -> Plan {
    plan::measured(run, measurement, wish, |direction| capacity(others, direction))
}

/// The plan of this machine for a path that is described by figures.
pub fn plan_described(path: &Described) -> Plan {
    plan::described(&this_host(None), path)
}

/// Goodput of full segments of Ethernet / the rate on the wire: 1448 bytes of 1538.
const GOODPUT_SHARE: f64 = 1448.0 / 1538.0;

/// The goodput of a bottleneck of this rate on the wire.
pub fn goodput_of(rate_bps: f64) -> f64 {
    rate_bps * GOODPUT_SHARE
}

/// What a direction of a path can carry, as other measurements of the same path showed: the most of what came through.
pub fn capacity(others: &[Measurement], direction: Direction) -> Option<f64> {
    let results = others.iter().flat_map(|measurement| &measurement.directions);
    let goodputs = results.filter(|result| result.direction == direction).map(|result| result.goodput_bps);
    goodputs.max_by(f64::total_cmp)
}

/// What this machine is set to, on the path from this address.
pub fn this_host(address: Option<IpAddr>) -> HostFacts {
    Baseline::take(address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))).facts()
}
