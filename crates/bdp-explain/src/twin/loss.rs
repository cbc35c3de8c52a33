//! Losses by kind: independent of load (single or in bursts), at the bottleneck's queue, or at a policer. Outages and reordering.

use bdp_model::facts::{Facts, LossPicture};
use bdp_model::finding::Limit;
use bdp_model::record::SenderSample;
use bdp_model::twin::{Parameter, Source, TwinLoss, TwinOutage, TwinPolicer, TwinReorder};

use super::delivery::Delivery;
use super::view::{Notes, Path};

/// Segments per loss from which losses come in bursts.
const BURST: f64 = 1.7;

/// The kind of the losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// No significant losses.
    None,
    /// Losses at any load.
    Random,
    /// Overflow of the bottleneck's queue.
    Queue,
    /// A policer that drops what exceeds a rate.
    Policer,
}

impl Kind {
    /// Determines the kind of the losses in a direction.
    pub fn of(path: &Path<'_>, delivery: &Delivery, limit: Limit) -> Self {
        let facts = path.facts;
        let lost = facts.retransmits.unwrap_or(0).saturating_sub(facts.needless_retransmits.unwrap_or(0));
        if lost == 0 {
            return Self::None;
        }
        match limit {
            Limit::RandomLoss => return Self::Random,
            Limit::Policer => return Self::Policer,
            Limit::ShallowQueue | Limit::CongestionLoss | Limit::PathRate | Limit::CrossTraffic => {
                return Self::Queue;
            }
            _ => {}
        }
        let Some(picture) = facts.loss_picture() else { return Self::Queue };
        let queued = delivery.queued().count() as f64 / delivery.stretches.len().max(1) as f64;
        let waited = picture.queue.as_ns() > path.base_ns / 10 + 2 * path.noise_ns;
        match waited || queued > 0.5 || picture.settled == 0 {
            true => Self::Queue,
            false => Self::Random,
        }
    }

    /// Whether the losses show that the bottleneck was full.
    pub const fn are_the_bottlenecks(&self) -> bool {
        matches!(self, Self::Queue)
    }

    /// Losses that do not depend on the load.
    pub fn loss(&self, path: &Path<'_>, notes: &mut Notes) -> Option<TwinLoss> {
        if *self != Self::Random {
            return None;
        }
        let share = lost_share(path.facts)?;
        let picture = path.facts.loss_picture();
        let bursts = picture.as_ref().map_or(1.0, mean_burst);
        notes.learned(
            path.way,
            Parameter::Loss,
            match bursts >= BURST {
                true => Source::LossEpisodes,
                false => Source::Retransmits,
            },
        );
        Some(match bursts >= BURST {
            true => TwinLoss::Bursts { begins: share / bursts, packets: bursts },
            false => TwinLoss::Random { share },
        })
    }

    /// A policer, derived from what passed it.
    pub fn policer(&self, path: &Path<'_>, delivery: &Delivery, notes: &mut Notes) -> Option<TwinPolicer> {
        if *self != Self::Policer {
            return None;
        }
        let ip = f64::from(path.mtu) / path.wire_bytes();
        let passed = delivery.percentile_bps(50.0)? * ip;
        let kept_to = path.facts.loss_picture().filter(|p| p.settled >= SETTLED).map(|picture| {
            // Of the data sent in the round trip of a loss, the excess over the rate is dropped.
            let payload = path.facts.mss_bytes.unwrap_or(1448) as f64 / f64::from(path.mtu);
            picture.rate_bps / payload * (1.0 - picture.lost_share)
        });
        notes.learned(
            path.way,
            Parameter::Policer,
            match kept_to {
                Some(_) => Source::LossEpisodes,
                None => Source::Delivery,
            },
        );
        let streams = f64::from(path.facts.streams());
        let rate_bps = kept_to.map_or(passed, |bps| (streams * bps).max(passed));
        Some(TwinPolicer { rate_bps, burst_bytes: burst_bytes(path, delivery, rate_bps) })
    }
}

/// Losses after slow start from which a policer's rate can be derived.
const SETTLED: usize = 3;

/// The most that passed in any time beyond the rate: the size of the token bucket.
fn burst_bytes(path: &Path<'_>, delivery: &Delivery, rate_bps: f64) -> u64 {
    let ip = f64::from(path.mtu) / path.wire_bytes();
    let (mut least, mut most) = (f64::INFINITY, 0f64);
    for &(at, bytes) in &delivery.arrived {
        let beyond = bytes * ip - rate_bps * at as f64 / 8e9;
        least = least.min(beyond);
        most = most.max(beyond - least);
    }
    most.max(3.0 * f64::from(path.mtu)) as u64
}

/// Lost segments / segments sent, without the overshoot at the end of slow start, which is lost only once.
fn lost_share(facts: &Facts) -> Option<f64> {
    /// Segments of one loss, and their share of those in flight, from which it was an overshoot.
    const OVERSHOT: (u64, f64) = (10, 0.2);
    let overshot = facts.loss_picture().and_then(|picture| picture.overshoot);
    let overshot = overshot.filter(|&(lost, share)| lost >= OVERSHOT.0 && share >= OVERSHOT.1);
    let overshot = overshot.map_or(0, |(lost, _)| lost);
    // Only of the stream with samples, like its loss picture and delivered segments.
    let most = |of: fn(&SenderSample) -> Option<u64>| facts.sent.iter().filter_map(of).max();
    let again = most(|s| s.retransmits).or(facts.retransmits.filter(|_| facts.streams() == 1))?;
    let needless = most(|s| s.needless_retransmits).unwrap_or(0);
    let again = again.saturating_sub(needless + overshot) as f64;
    let delivered = facts.sent.iter().filter_map(|s| s.delivered).max()? as f64;
    (delivered > 0.0 && again > 0.0).then(|| again / (delivered + again))
}

/// Mean number of segments per loss.
fn mean_burst(picture: &LossPicture) -> f64 {
    picture.lost_each.max(1.0)
}

/// The time in which nothing arrived, if the path was silent.
pub fn outages(path: &Path<'_>, limit: Limit) -> Vec<TwinOutage> {
    let _ = (path, limit);
    Vec::new()
}

/// Reordering as the sender's kernel counts it.
pub fn reordering(path: &Path<'_>) -> Option<TwinReorder> {
    /// Smallest number of reordering events / segments.
    const LEAST: f64 = 0.002;
    let delivered = path.facts.delivered()? as f64;
    let seen = path.facts.counted(|s| s.reorder_seen)? as f64;
    let share = seen / delivered.max(1.0);
    (share >= LEAST).then(|| TwinReorder { share: share.min(0.5), by_ns: (path.base_ns / 8).max(1_000_000) })
}
