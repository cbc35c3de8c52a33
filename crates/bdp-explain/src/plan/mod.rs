//! From what limits a path to the smallest change of its hosts' settings. Pure: the hosts' settings come with the measurement.

mod buffers;
mod draft;
mod host;
mod path;
mod remedies;

use bdp_model::facts::Facts;
use bdp_model::measurement::ends::Direction;
use bdp_model::measurement::{HostFacts, Measurement};
use bdp_model::tuning::{Plan, PlanDirection, PlanHost, PlanPath};

use draft::Draft;
use host::Host;
use path::Way;
pub use path::{Described, Wish};

/// Plans changes for a measured path. `capacity` returns a direction's capacity, if another measurement of the path showed it.
pub fn measured(
    run: Option<&str>,
    measurement: &Measurement,
    wish: &Wish,
    capacity: impl Fn(Direction) -> Option<f64>,
) -> Plan {
    let directions = measurement.directions.iter().map(|result| result.direction);
    let wanted = directions.filter(|direction| wish.direction.is_none_or(|only| only == *direction));
    let ways: Vec<Way> = wanted
        .filter_map(|direction| {
            let facts = Facts::measured(measurement, direction)?;
            let findings = crate::explain(&facts);
            let rate_bps = wish.rate_bps.or_else(|| path::rate(&facts, &findings, capacity(direction)));
            Some(Way { direction, facts, findings, rate_bps })
        })
        .collect();
    let rtt_ns = measurement.path.rtt_min_ns.or(measurement.rtt_idle_ns.map(|rtt| rtt.p50)).unwrap_or(0);
    let path = PlanPath {
        rtt_ns,
        mss_bytes: measurement.path.mss_bytes,
        streams: measurement.request.spec.streams.max(1),
        directions: ways.iter().map(Way::planned).collect(),
    };
    let (near, far) = (Host::new(&measurement.near), Host::new(&measurement.far));
    let mut draft = Draft::default();
    for way in &ways {
        remedies::add(&mut draft, way, &near, &far);
    }
    draft.into_plan(run, path, described_by(&measurement.near), Some(described_by(&measurement.far)))
}

/// Plans changes for a path described by figures, on this host only: as a sender and as a receiver.
pub fn described(near: &HostFacts, path: &Described) -> Plan {
    let host = Host::new(near);
    let mut draft = Draft::default();
    buffers::for_both_roles(&mut draft, &host, path);
    remedies::add_what_is_off(&mut draft, &host);
    let direction = |direction| PlanDirection {
        direction,
        limit: None,
        goodput_bps: None,
        rate_bps: Some(path.rate_bps),
    };
    let figures = PlanPath {
        rtt_ns: path.rtt_ns,
        mss_bytes: None,
        streams: path.streams.max(1),
        directions: vec![direction(Direction::To), direction(Direction::From)],
    };
    draft.into_plan(None, figures, described_by(near), None)
}

fn described_by(host: &HostFacts) -> PlanHost {
    PlanHost {
        name: host.name.clone(),
        address: host.address.clone(),
        kernel: host.kernel.clone(),
        device: host.device.as_ref().map(|device| device.name.clone()),
    }
}
