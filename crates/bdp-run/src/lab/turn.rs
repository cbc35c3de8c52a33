//! An attempt at a case that waits or runs, and what it needs from the machine.

use std::time::Duration;

use bdp_model::case::route::Route;
use bdp_model::case::{CaseSpec, segment};
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

use crate::case::window::{self, Means};

/// Pause after the first INVALID attempt; each later pause is twice as long.
const FIRST_BACK_OFF: Duration = Duration::from_secs(1);
/// No pause is longer.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);
/// Below this round trip a case runs alone: a wake-up late by 100 us would be felt.
const SHORTEST_SHARED_RTT: Nanos = Nanos::millis(20);
/// Segments per second, both directions, that one shared driver carries in addition to serving its hosts.
pub(crate) const SHARED_SEGMENTS_PER_SECOND: f64 = 32_000.0;

/// A case that waits or runs, with its attempt and its demand.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) case: CaseSpec,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u32,
    pub(crate) demand: Demand,
    /// Earliest start, by the stage's clock.
    pub(crate) not_before: Duration,
}

impl Turn {
    /// Returns its block, and whether it needs the machine to itself.
    pub(crate) fn place(&self) -> (u32, bool) {
        (self.case.repetition, self.demand == Demand::Alone)
    }
}

/// What a case needs from the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Demand {
    /// The whole machine, with a driver that spins.
    Alone,
    /// This many segments per second of the shared driver.
    Shared(f64),
    /// An undisturbed processor for its guest.
    Processor,
}

impl Demand {
    /// Returns the demand of a case, by the path's round trip and the most that the window allows.
    pub(crate) fn of(case: &CaseSpec) -> Self {
        let ways: Vec<Option<Route<'_>>> = case.flows.iter().map(|flow| Route::of(case, flow)).collect();
        let rtt = ways.iter().flatten().map(Route::delay).min().unwrap_or_default();
        if rtt < SHORTEST_SHARED_RTT {
            return Self::Alone;
        }
        let demand = Self::segments_per_second(case);
        if demand <= SHARED_SEGMENTS_PER_SECOND { Self::Shared(demand) } else { Self::Alone }
    }

    /// Returns the most segments per second, including acknowledgements, on the links of a case, counted on each
    /// link.
    pub(crate) fn segments_per_second(case: &CaseSpec) -> f64 {
        let ways: Vec<Option<Route<'_>>> = case.flows.iter().map(|flow| Route::of(case, flow)).collect();
        let rtt = ways.iter().flatten().map(Route::delay).min().unwrap_or_default();
        let mut segments = 0.0;
        for (flow, route) in case.flows.iter().zip(&ways) {
            let mss = segment::planned_mss(case, flow) as f64;
            let fastest = route.as_ref().and_then(Route::fastest);
            let by_rate = fastest.map(|rate| rate.as_bps() as f64 / 8.0 / mss);
            let unscaled = case.hosts.iter().any(|h| {
                h.name == flow.to && h.sysctls.get(Setting::TcpWindowScaling.name).is_some_and(|v| v == "0")
            });
            let window = match window::choose(case, flow) {
                Ok(Means::Receiver { target_bytes }) => Some(target_bytes as f64),
                Ok(Means::Path { clamp_bytes }) => Some(f64::from(clamp_bytes)),
                _ => unscaled.then_some(65_535.0),
            };
            let by_window = window.map(|w| w * f64::from(flow.spec.streams) / rtt.as_secs_f64() / mss);
            // Each link that a segment crosses is work.
            let links = route.as_ref().map_or(1, Route::length) as f64;
            if let Some(offered_bps) = flow.spec.offered_bps() {
                // Offered traffic is work even if the link drops it.
                segments += links * offered_bps / 8.0 / mss;
                continue;
            }
            segments += links * by_rate.unwrap_or(f64::INFINITY).min(by_window.unwrap_or(f64::INFINITY));
        }
        // An acknowledgement for every other segment.
        segments * 1.5
    }

    /// Returns the demand of a later attempt: sixteen times that of the previous one, since its neighbours may have
    /// disturbed it, up to the machine to itself. So a hundred cases spoiled by one busy moment do not take a hundred
    /// times as long.
    pub(crate) fn at_attempt(self, attempt: u32) -> Self {
        match self {
            Self::Shared(part) => {
                let wider = part * 16f64.powi(attempt.saturating_sub(1).min(64) as i32);
                if wider <= SHARED_SEGMENTS_PER_SECOND { Self::Shared(wider) } else { Self::Alone }
            }
            Self::Alone | Self::Processor => self,
        }
    }
}

/// Returns another attempt, later and with a larger demand.
pub(crate) fn again(turn: Turn, now: Duration) -> Turn {
    let doublings = turn.attempt.saturating_sub(1).min(16);
    let back_off = (FIRST_BACK_OFF * 2u32.pow(doublings)).min(LONGEST_BACK_OFF);
    Turn { attempt: turn.attempt + 1, demand: turn.demand.at_attempt(2), not_before: now + back_off, ..turn }
}
