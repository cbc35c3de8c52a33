//! What repetitions of a point come to: moments, the interval of the mean, and what models of loss give for the conditions.

use crate::path::loss::SegmentLoss;
use crate::path::{mathis, pftk};
use crate::points::SweepPoint;
use crate::route::Route;
use crate::segment::planned_mss;
use crate::stats::{Moments, bootstrap_mean};
use crate::units::Nanos;

/// Confidence of the interval of the mean.
pub const CONFIDENCE: f64 = 0.95;
/// Seed of its bootstrap: the same records have the same interval.
const SEED: u64 = 1;
/// Segments that an acknowledgement acknowledges: every second one is sent at once (RFC 9293, section 3.8.6.3).
pub const SEGMENTS_PER_ACK: f64 = 2.0;
/// The least that Linux lets a timeout be above the round trip (`TCP_RTO_MIN`).
pub const TIMEOUT_MIN: Nanos = Nanos::millis(200);

/// Goodput of the valid repetitions of a point, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeated {
    /// Of all of them.
    pub moments: Moments,
    /// The interval of their mean; `None` of too few.
    pub mean_interval: Option<[f64; 2]>,
    /// What models give; `None` where nothing is lost, or not by a pattern that has one.
    pub models: Option<LossModels>,
}

/// Conditions of a flow under loss, and the goodput that models of Reno give for them, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossModels {
    /// Payload of a full segment, bytes.
    pub mss_bytes: u64,
    /// The smallest idle round trip.
    pub rtt: Nanos,
    /// Share of the data segments that is lost.
    pub loss: f64,
    /// Whether it is lost evenly, and not each by itself.
    pub periodic: bool,
    /// The first timeout of a series: the round trip and [`TIMEOUT_MIN`].
    pub timeout: Nanos,
    /// By [`mathis`], with the constant for delayed acknowledgements.
    pub mathis_bps: f64,
    /// By the full model of [`pftk`], less what is lost.
    pub pftk_bps: f64,
}

impl Repeated {
    /// Of a point; `None` where no valid record has a goodput.
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
    /// Of a point with one flow of one stream that counts.
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
        // The packets of other flows come in between.
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

    /// Mathis' constant that was taken.
    pub fn c(&self) -> f64 {
        if self.periodic { mathis::C_PERIODIC_DELAYED } else { mathis::C_INDEPENDENT_DELAYED }
    }
}
