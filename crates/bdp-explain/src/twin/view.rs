//! One direction of a measured path, as all modules here use it, and the notes that they collect.

use bdp_model::facts::Facts;
use bdp_model::measurement::ends::Direction;
use bdp_model::probes::ProbePoint;
use bdp_model::twin::{Learned, Parameter, Source, Unseen};

/// Notes collected while a twin is derived.
#[derive(Default)]
pub struct Notes {
    /// What was learned, with the source.
    pub learned: Vec<Learned>,
    /// What was not seen.
    pub unseen: Vec<Unseen>,
}

impl Notes {
    /// Adds a note of what was learned.
    pub fn learned(&mut self, way: impl Into<Option<Direction>>, what: Parameter, how: Source) {
        self.learned.push(Learned { way: way.into(), what, how });
    }
}

/// One direction of a path.
pub struct Path<'a> {
    /// The direction.
    pub way: Direction,
    /// The facts of its transfer.
    pub facts: &'a Facts,
    /// The minimum round trip.
    pub base_ns: u64,
    /// Variation of round trips without load.
    pub noise_ns: u64,
    /// Largest IP packet, bytes.
    pub mtu: u32,
}

impl Path<'_> {
    /// Bytes of a full segment on the wire.
    pub fn wire_bytes(&self) -> f64 {
        f64::from(self.mtu + bdp_model::link::ETHERNET_OVERHEAD_BYTES)
    }

    /// Waits of probes in the data's own direction, with their times; of the round trip if the directions cannot be told apart.
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
