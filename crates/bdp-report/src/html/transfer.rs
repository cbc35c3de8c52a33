//! Data of one flow in one direction, from the lab or a measurement, for the charts.

use bdp_model::facts::{Facts, TimeSpent, WindowBound};
use bdp_model::measurement::{Ceiling, DirectionResult, Measurement};
use bdp_model::probes::ProbeSeries;
use bdp_model::record::{self, ReceiverSample, Record, SenderSample};

use super::measured_table::from_to;
use crate::chart::{Marks, Series};

/// Minimum length of a goodput interval in round trips.
const ROUND_TRIPS: u64 = 4;

/// A transfer. Its bounds are those of the rules, so that charts and findings agree.
#[derive(Default)]
pub(crate) struct Transfer<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub goodput_bps: f64,
    pub omit_ns: u64,
    pub streams: usize,
    pub mss_bytes: Option<u64>,
    pub retransmits: Option<u64>,
    /// Whether the transfer is of datagrams, for which no kernel has round trips, windows and retransmissions.
    pub is_udp: bool,
    pub received: &'a [ReceiverSample],
    pub sent: &'a [SenderSample],
    /// Concurrent probes, with times from the first byte.
    pub probes: Option<ProbeSeries>,
    /// Smallest idle round trip between the transfer's hosts.
    pub rtt_min_ns: Option<u64>,
    /// Rate allowed by the receive window.
    pub window_bound: Option<WindowBound>,
    /// Share of readings in which no further segment fitted the receive window.
    pub window_full: Option<f64>,
    /// Upper limit of the path.
    pub ceiling: Option<Ceiling>,
    /// Rate ordered from the provider.
    pub ordered_bps: Option<f64>,
    /// Ceiling x idle round trip, per stream.
    pub needed_bytes: Option<f64>,
    /// Goodput x idle round trip, per stream.
    pub carried_bytes: Option<f64>,
    /// Time spent by the sender in each state.
    pub time_spent: Option<TimeSpent>,
}

impl<'a> Transfer<'a> {
    /// Returns the transfer of a case's flow.
    pub fn of_flow(record: &'a Record, index: usize) -> Option<Self> {
        let flow = record.flows.get(index)?;
        Some(Self::of(&flow.from, &flow.to, flow).bounded(&Facts::emulated(record, index)?))
    }

    /// Returns the transfer of a measured direction.
    pub fn of_direction(m: &'a Measurement, d: &'a DirectionResult) -> Self {
        let [from, to] = from_to(m, d.direction);
        let all = Self::of(from, to, d);
        let idle = all.rtt_min_ns.or(m.rtt_idle_ns.as_ref().map(|idle| idle.min));
        let all = Self {
            mss_bytes: d.mss_bytes.or(m.path.mss_bytes),
            rtt_min_ns: idle.or(m.path.rtt_min_ns),
            ordered_bps: m.request.ordered.map(|ordered| ordered.of(d.direction) as f64),
            ..all
        };
        match Facts::measured(m, d.direction) {
            Some(facts) => all.bounded(&facts),
            None => all,
        }
    }

    /// Returns the transfer of one direction of a captured connection.
    pub fn of_capture(facts: &'a Facts) -> Self {
        Self::of(&facts.sender.name, &facts.receiver.name, facts).bounded(facts)
    }

    fn of(from: &'a str, to: &'a str, results: &'a record::Transfer) -> Self {
        Self {
            from,
            to,
            goodput_bps: results.goodput_bps,
            omit_ns: results.omit_ns,
            streams: results.stream_goodput_bps.len().max(1),
            mss_bytes: results.mss_bytes,
            retransmits: results.retransmits,
            is_udp: results.udp.is_some(),
            received: &results.received,
            sent: &results.sent,
            rtt_min_ns: results.rtt_ns.idle.as_ref().map(|idle| idle.min),
            ..Self::default()
        }
    }

    fn bounded(self, facts: &Facts) -> Self {
        let carried =
            |idle: bdp_model::Nanos| self.goodput_bps * idle.as_secs_f64() / 8.0 / self.streams as f64;
        Self {
            probes: facts.probes.clone(),
            window_bound: facts.window_bound(),
            window_full: facts.window_use().map(|used| used.receive_full),
            ceiling: facts.ceiling.clone(),
            needed_bytes: facts.needed_bytes(),
            carried_bytes: facts.rtt_idle().map(carried),
            time_spent: facts.time_spent(),
            ..self
        }
    }

    /// Returns `near → far`.
    pub fn name(&self) -> String {
        format!("{} → {}", self.from, self.to)
    }

    /// Returns the time at the start that is not in the figures as an area; none without such a time, as no reading is at the
    /// first byte itself.
    pub fn omitted(&self, name: &str) -> Option<Series> {
        let end = self.omit_ns as f64 / 1e9;
        (end > 0.0).then(|| Series::new("shade", name, Marks::Band(0.0, [0.0, end])))
    }

    /// Returns intervals as start, end (seconds) and goodput, at most `most`, none much shorter than [`ROUND_TRIPS`] round trips:
    /// a shorter one would show the arrival of single windows. Neighbouring readings are merged
    /// for that; also returns how many readings make an interval.
    pub fn intervals(&self, most: usize) -> (Vec<[f64; 3]>, usize) {
        let readings = self.received.len().saturating_sub(1);
        let apart_ns = self.received.last().map_or(0, |l| l.at_ns) / readings.max(1) as u64;
        let least_ns = ROUND_TRIPS * self.rtt_min_ns.unwrap_or(0);
        let patient = (least_ns as f64 / apart_ns.max(1) as f64).round() as usize;
        // A short flow keeps a few intervals, whatever its round trip.
        let patient = patient.min(readings / 8);
        let stride = readings.div_ceil(most.max(1)).max(patient).max(1);
        let mut chosen: Vec<&ReceiverSample> = self.received.iter().step_by(stride).collect();
        if let Some(last) = self.received.last().filter(|l| chosen.last().is_some_and(|c| c.at_ns < l.at_ns))
        {
            chosen.push(last);
        }
        // The rest at the end is added to the last interval, so that none is too short.
        if let [.., _, before, last] = chosen.as_slice()
            && 2 * (last.at_ns - before.at_ns) < stride as u64 * apart_ns
        {
            chosen.remove(chosen.len() - 2);
        }
        let intervals = chosen
            .windows(2)
            .filter(|pair| pair[1].at_ns > pair[0].at_ns)
            .map(|pair| {
                let bytes = pair[1].bytes.saturating_sub(pair[0].bytes) as f64;
                let time = (pair[1].at_ns - pair[0].at_ns) as f64;
                [pair[0].at_ns as f64 / 1e9, pair[1].at_ns as f64 / 1e9, bytes * 8e9 / time]
            })
            .collect();
        (intervals, stride)
    }
}
