//! From a measurement to its twin: the emulation that gives the same transfer in the lab.
//!
//! Each file derives one property. What nothing shows is not invented: it is left out and listed as unseen.

mod delay;
mod delivery;
mod flow;
mod loss;
mod queue;
mod rate;
mod view;

use bdp_model::case::Family;
use bdp_model::facts::Facts;
use bdp_model::finding::Limit;
use bdp_model::measurement::ends::{Direction, End};
use bdp_model::measurement::{HostFacts, Measurement};
use bdp_model::twin::{Bottleneck, Parameter, Source, Twin, TwinHost, TwinWay, Unseen};

use delay::Delays;
use delivery::Delivery;
use view::{Notes, Path};

/// Properties of the path that the measurement does not show.
#[derive(Debug, Clone, Default)]
pub struct TwinOptions {
    /// Bottleneck rate in the direction of the data, bit/s on the wire.
    pub rate_bps: Option<f64>,
    /// Another run on the same path, which may have seen more of it.
    pub also: Option<Box<Measurement>>,
}

/// Derives the twin of a direction, or of both if they ran at once; `None` if it was not measured, or no round trip is known.
pub fn derive(measurement: &Measurement, direction: Direction, options: &TwinOptions) -> Option<Twin> {
    let facts = Facts::measured(measurement, direction)?;
    let mut notes = Notes::default();
    let delays = Delays::of(measurement, &facts, &mut notes)?;
    let ipv6 = measurement.request.family == Some(Family::Ipv6) || measurement.near.address.contains(':');
    let known = [measurement.path.mtu_to, measurement.path.mtu_from].into_iter().flatten().min();
    let mtu = known.unwrap_or(1500).clamp(if ipv6 { 1280 } else { 576 }, 65_535);
    let learn = |way: Direction, notes: &mut Notes| {
        let mut learned = TwinWay {
            delay_ns: delays.of_way(way).0,
            jitter: delays.of_way(way).1.clone(),
            ..TwinWay::default()
        };
        let asked = options.rate_bps.filter(|_| way == direction);
        let also = options.also.as_deref().and_then(|also| Facts::measured(also, way));
        match Facts::measured(measurement, way) {
            Some(facts) => {
                let path =
                    Path { way, facts: &facts, base_ns: delays.base_ns(), noise_ns: delays.noise_ns(), mtu };
                learn_way(&path, asked, also.as_ref(), way == direction, &mut learned, notes);
            }
            None => notes.unseen.push(Unseen::WayBack { way }),
        }
        learned
    };
    let to = learn(Direction::To, &mut notes);
    let from = learn(Direction::From, &mut notes);
    let both = facts.both_directions;
    let other = both.then(|| Facts::measured(measurement, direction.opposite())).flatten();
    if facts.udp.is_some() {
        notes.unseen.push(Unseen::Datagrams);
    }
    let mut host = |end, host: &HostFacts| {
        let sysctls = TwinHost::settable(&host.sysctls);
        if sysctls.is_empty() {
            notes.unseen.push(Unseen::Settings { end });
        }
        TwinHost { name: host.name.clone(), kernel: host.kernel.clone(), sysctls, window_factor: None }
    };
    let (near, far) = (host(End::Near, &measurement.near), host(End::Far, &measurement.far));
    Some(Twin {
        direction,
        both_directions: other.is_some(),
        near,
        far,
        ipv6,
        mtu,
        to,
        from,
        flow: flow::of(&facts),
        other_flow: other.as_ref().map(flow::of),
        stack: None,
        learned: notes.learned,
        unseen: notes.unseen,
    })
}

fn learn_way(
    path: &Path<'_>,
    asked_bps: Option<f64>,
    also: Option<&Facts>,
    is_own: bool,
    learned: &mut TwinWay,
    notes: &mut Notes,
) {
    let limit = crate::explain(path.facts).first().map_or(Limit::Unknown, |finding| finding.limit);
    let delivery = Delivery::of(path);
    let losses = loss::Kind::of(path, &delivery, limit);
    learned.loss = losses.loss(path, notes);
    learned.policer = losses.policer(path, &delivery, notes);
    learned.strips_window_scaling = flow::is_scaling_stripped(path.facts);
    if learned.strips_window_scaling {
        notes.learned(path.way, Parameter::WindowScaling, Source::Handshake);
    }
    learned.outages = loss::outages(path, limit);
    if !learned.outages.is_empty() {
        notes.learned(path.way, Parameter::Outage, Source::ProbesUnderLoad);
    }
    learned.reorder = loss::reordering(path);
    if learned.reorder.is_some() {
        notes.learned(path.way, Parameter::Reordering, Source::KernelCounters);
    }
    if learned.policer.is_some() && asked_bps.is_none() {
        return;
    }
    let rate = match asked_bps {
        Some(bps) => Some(rate::Known::flat(bps, Source::Asked)),
        None => rate::Known::of(path, &delivery, limit, &losses)
            .or_else(|| rate::Known::of_another(path, also?))
            .or_else(|| rate::Known::of_nic(path)),
    };
    let Some(rate) = rate else {
        // The rate of the reverse path matters little if nothing shows it.
        if is_own {
            let at_least_bps = delivery.most_bps();
            let perhaps_bps = rate::by_own_bursts(path).filter(|&bps| bps > at_least_bps);
            notes.unseen.push(Unseen::Rate { way: path.way, at_least_bps, perhaps_bps });
        }
        return;
    };
    notes.learned(path.way, Parameter::Rate, rate.how);
    if !rate.steps.is_empty() {
        notes.learned(path.way, Parameter::RateSteps, rate.how);
    }
    let queue = queue::Found::of(path, &rate, limit, notes);
    learned.bottleneck = Some(Bottleneck {
        rate_bps: rate.bps,
        steps: rate.steps,
        limit_packets: queue.packets,
        discipline: queue.discipline,
        mark_packets: queue.mark_packets,
    });
}
