//! Adjusts a twin after a pass that misses: the one parameter that its figures point to, by the ratio to the measured
//! value.

use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::record::Record;
use bdp_model::twin::{Adjusted, Bottleneck, DirectionFigures, Discipline, Figure, Parameter, Twin, Unseen};

/// Most passes after the first.
pub const ROUNDS: u32 = 3;
/// A figure that is off by less is left alone.
const NEAR: f64 = 0.03;
const NEAR_DELAY: f64 = 0.08;
/// Packets of a queue that nothing was lost to, as Linux and the lab have it.
const UNSEEN_QUEUE: u64 = 1000;
/// Most that one round changes a parameter by, as a factor.
const MOST: f64 = 2.0;

/// A twin and its results.
pub struct Pass {
    /// The twin.
    pub twin: Twin,
    /// Its figures.
    pub figures: Vec<DirectionFigures>,
    /// Its records.
    pub records: Vec<Record>,
}

impl Pass {
    /// Returns its distance from the measurement: 1 is at a limit of repeatability.
    fn distance(&self) -> f64 {
        let off = |figure: &Figure, bound: f64| {
            figure.ratio().map_or(0.0, |ratio| ratio.max(1e-3).ln().abs() / bound)
        };
        let of = |d: &DirectionFigures| {
            off(&d.goodput_bps, 0.1) + d.loaded_p50_ns.as_ref().map_or(0.0, |figure| off(figure, 0.2))
        };
        self.figures.iter().map(of).fold(0.0, f64::max)
    }
}

/// Returns the pass nearest to the measurement, out of at least one, and how many preceded it.
pub fn nearest(mut passes: Vec<Pass>) -> (u32, Pass) {
    let distances = passes.iter().map(Pass::distance).enumerate();
    let best = distances.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index);
    (best as u32, passes.swap_remove(best))
}

/// Returns the twin of the next pass, and its changes; `None` if no adjustable parameter is off.
pub fn next(measurement: &Measurement, passes: &[Pass]) -> Option<(Twin, Vec<Adjusted>)> {
    let (round, pass) = (passes.len() as u32, passes.last()?);
    let mut twin = pass.twin.clone();
    let mut changes = Vec::new();
    for figures in &pass.figures {
        let way = figures.direction;
        let idle = measurement.rtt_idle_ns.map_or(twin.round_trip().as_ns(), |idle| idle.p50) as f64;
        changes.extend(adjust(&mut twin, way, figures, idle).into_iter().map(|(what, from, to)| Adjusted {
            round,
            way,
            what,
            from,
            to,
        }));
    }
    (!changes.is_empty()).then_some((twin, changes))
}

fn adjust(
    twin: &mut Twin,
    direction: Direction,
    figures: &DirectionFigures,
    idle_ns: f64,
) -> Vec<(Parameter, f64, f64)> {
    let mut changes = Vec::new();
    let Some(more) = figures.goodput_bps.ratio().map(|ratio| 1.0 / ratio.max(1e-3)) else { return changes };
    let perhaps = twin.unseen.iter().find_map(|unseen| match unseen {
        Unseen::Rate { way, perhaps_bps, .. } if *way == direction => *perhaps_bps,
        _ => None,
    });
    let is_cubic = twin.flow.congestion == "cubic";
    let way = twin.way_mut(direction);
    let delay_off = figures
        .loaded_p50_ns
        .as_ref()
        .filter(|figure| figure.ratio().is_some_and(|ratio| (ratio - 1.0).abs() > NEAR_DELAY));
    if let (Some(bottleneck), Some(delay)) = (&mut way.bottleneck, delay_off)
        && bottleneck.discipline == Discipline::DropTail
    {
        let queue =
            (delay.measured - idle_ns).max(idle_ns * 0.01) / (delay.twin - idle_ns).max(idle_ns * 0.01);
        let before = bottleneck.limit_packets;
        let after = ((before as f64 * queue.clamp(1.0 / MOST, MOST)).round() as u64).max(1);
        if after != before {
            bottleneck.limit_packets = after;
            changes.push((Parameter::Queue, before as f64, after as f64));
        }
    }
    if (more - 1.0).abs() <= NEAR {
        return changes;
    }
    let by = more.clamp(1.0 / MOST, MOST);
    if let Some(loss) = way.loss {
        // Goodput goes by the losses to the power of -3/4 of CUBIC, and of -1/2 of Reno.
        let power = if is_cubic { 4.0 / 3.0 } else { 2.0 };
        let scaled = loss.scaled(by.powf(-power));
        way.loss = Some(scaled);
        changes.push((Parameter::Loss, loss.share(), scaled.share()));
    } else if let Some(policer) = &mut way.policer {
        let before = policer.rate_bps;
        policer.rate_bps *= by;
        changes.push((Parameter::Policer, before, policer.rate_bps));
    } else if let Some(bottleneck) = &mut way.bottleneck {
        let before = bottleneck.rate_bps;
        bottleneck.rate_bps *= by;
        bottleneck.steps.iter_mut().for_each(|step| step.1 *= by);
        changes.push((Parameter::Rate, before, bottleneck.rate_bps));
    } else if let Some(rate_bps) = perhaps {
        // The capacity of a send buffer depends on the spacing of acknowledgements.
        way.bottleneck = Some(Bottleneck {
            rate_bps,
            steps: Vec::new(),
            limit_packets: UNSEEN_QUEUE,
            discipline: Discipline::DropTail,
            mark_packets: None,
        });
        changes.push((Parameter::Rate, 0.0, rate_bps));
    }
    changes
}
