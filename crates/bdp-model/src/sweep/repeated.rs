//! Statistics of a point's repetitions: moments, the interval of the mean, and the goodput of loss models for its conditions.

use crate::case::route::Route;
use crate::case::segment::planned_mss;
use crate::path::loss::SegmentLoss;
use crate::path::{mathis, pftk};
use crate::statistics::{Moments, bootstrap_mean};
use crate::sweep::points::SweepPoint;
use crate::units::Nanos;

/// Confidence of the interval of the mean.
pub const CONFIDENCE: f64 = 0.95;
/// Seed of the bootstrap: the same records give the same interval.
const SEED: u64 = 1;
/// Segments per acknowledgement: every second one is acknowledged at once (RFC 9293, section 3.8.6.3).
pub const SEGMENTS_PER_ACK: f64 = 2.0;
/// Least time that Linux adds to the round trip for a timeout (`TCP_RTO_MIN`).
pub const TIMEOUT_MIN: Nanos = Nanos::millis(200);

/// Goodput statistics of the valid repetitions of a point, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeated {
    /// Moments of all repetitions.
    pub moments: Moments,
    /// Confidence interval of the mean; `None` if there are too few.
    pub mean_interval: Option<[f64; 2]>,
    /// Goodput of loss models; `None` if nothing is lost, or not by a pattern with a model.
    pub models: Option<LossModels>,
}

/// Conditions of a flow with loss, and the goodput that models of Reno predict, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossModels {
    /// Payload of a full segment, bytes.
    pub mss_bytes: u64,
    /// Smallest idle round trip.
    pub rtt: Nanos,
    /// Share of data segments lost.
    pub loss: f64,
    /// Whether losses are periodic, not independent.
    pub periodic: bool,
    /// First timeout of a series: the round trip plus [`TIMEOUT_MIN`].
    pub timeout: Nanos,
    /// Goodput by [`mathis`], with the constant for delayed acknowledgements.
    pub mathis_bps: f64,
    /// Goodput by the full model of [`pftk`], less the lost segments.
    pub pftk_bps: f64,
}

impl Repeated {
    /// Summarises a point; `None` if no valid record has a goodput.
    pub fn of(point: &SweepPoint<'_>) -> Option<Self> {
        let goodputs: Vec<f64> =
            point.valid().filter_map(|r| r.goodput_bps).filter(|bps| bps.is_finite()).collect();
        Some(Self {
            moments: Moments::of(&goodputs)?,
            mean_interval: bootstrap_mean(&goodputs, CONFIDENCE, SEED),
            models: LossModels::of(point),
        })
    }
}

impl LossModels {
    /// Applies the models to a point with one flow of one counted stream.
    fn of(point: &SweepPoint<'_>) -> Option<Self> {
        let record = point.representative()?;
        let case = &record.case;
        let mut counted = case
            .flows
            .iter()
            .zip(&record.flows)
            .filter(|(flow, _)| !flow.background && flow.spec.udp.is_none());
        let (flow, outcome) = counted.next().filter(|(flow, _)| flow.spec.streams == 1)?;
        if counted.next().is_some() {
            return None;
        }
        let index = case.flows.iter().position(|other| std::ptr::eq(other, flow))?;
        let all = Route::of(case, flow)?.segment_loss();
        // Packets of other flows are interleaved.
        let (loss, periodic) = match if case.flows.len() > 1 { all.shared() } else { all } {
            SegmentLoss::Independent(loss) => (loss, false),
            SegmentLoss::Periodic(loss) => (loss, true),
            SegmentLoss::None | SegmentLoss::Unmodelled => return None,
        };
        let idle = point.valid().filter_map(|r| r.flows.get(index)?.rtt_ns.idle).map(|idle| idle.min);
        let rtt = Nanos(idle.min()?);
        let mss_bytes = outcome.mss_bytes.unwrap_or_else(|| planned_mss(case, flow));
        let timeout = rtt + TIMEOUT_MIN;
        let c = if periodic { mathis::C_PERIODIC_DELAYED } else { mathis::C_INDEPENDENT_DELAYED };
        let ends = pftk::Ends { segments_per_ack: SEGMENTS_PER_ACK, timeout };
        Some(Self {
            mss_bytes,
            rtt,
            loss,
            periodic,
            timeout,
            mathis_bps: mathis::rate_bps(mss_bytes, rtt, loss, c),
            pftk_bps: pftk::full_rate_bps(mss_bytes, rtt, loss, ends) * (1.0 - loss),
        })
    }

    /// Returns Mathis' constant used.
    pub fn c(&self) -> f64 {
        if self.periodic { mathis::C_PERIODIC_DELAYED } else { mathis::C_INDEPENDENT_DELAYED }
    }
}
