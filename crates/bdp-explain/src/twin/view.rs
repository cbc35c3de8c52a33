//! One way of a measured path, as all files here see it, and what comes together of it.

use bdp_model::ends::Direction;
use bdp_model::facts::Facts;
use bdp_model::probes::ProbePoint;
use bdp_model::twin::{Learned, Parameter, Source, Unseen};

/// What comes together while a twin is derived.
#[derive(Default)]
pub struct Notes {
    /// What was learned, and how.
    pub learned: Vec<Learned>,
    /// What was not seen.
    pub unseen: Vec<Unseen>,
}

impl Notes {
    /// Adds something that was learned.
    pub fn learned(&mut self, way: impl Into<Option<Direction>>, what: Parameter, how: Source) {
        self.learned.push(Learned { way: way.into(), what, how });
    }
}

/// One way, and what its files need of it.
pub struct Path<'a> {
    /// Which.
    pub way: Direction,
    /// What is known of its transfer.
    pub facts: &'a Facts,
    /// The least round trip.
    pub base_ns: u64,
    /// How far round trips vary without load.
    pub noise_ns: u64,
    /// Largest IP packet.
    pub mtu: u32,
}

impl Path<'_> {
    /// A full segment on the wire.
    pub fn wire_bytes(&self) -> f64 {
        f64::from(self.mtu + bdp_model::link::ETHERNET_OVERHEAD_BYTES)
    }

    /// What probes waited on the data's own way, each with its moment; of the round trip where the ways are not told apart.
    pub fn waits(&self) -> Vec<(u64, f64)> {
        let Some(series) = &self.facts.probes else { return Vec::new() };
        let own = |p: &ProbePoint| match self.way {
            Direction::To => p.there_ns,
            Direction::From => p.back_ns,
        };
        let of = |delay: &dyn Fn(&ProbePoint) -> Option<f64>| -> Vec<(u64, f64)> {
            let timed = |p: &ProbePoint| Some((u64::try_from(p.counts_from_ns()).ok()?, delay(p)?));
            series.points.iter().filter_map(timed).collect()
        };
        let each_way = of(&|p| own(p).map(|ns| ns as f64));
        let (delays, least) = match each_way.is_empty() {
            false => {
                let idle = self.facts.one_way.and_then(|ways| ways.idle).map(|idle| idle.min as f64);
                let least = each_way.iter().map(|d| d.1).reduce(f64::min).unwrap_or(0.0);
                (each_way, idle.unwrap_or(least).min(least))
            }
            true => (of(&|p| p.rtt_ns().map(|ns| ns as f64)), self.base_ns as f64),
        };
        let noise = self.noise_ns as f64;
        delays.into_iter().map(|(at, delay)| (at, (delay - least - noise).max(0.0))).collect()
    }
}
