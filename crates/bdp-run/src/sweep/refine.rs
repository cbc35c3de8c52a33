//! Plans that add cases based on the outcomes so far: more points where a curve bends.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bdp_model::case::CaseSpec;
use bdp_model::record::Record;
use bdp_model::sweep::curve::Curve;

use crate::case::key::key;
use crate::case::runner::CaseRunner;
use crate::guest::Guests;
use crate::lab::schedule::{Keep, RunOptions, run};
use crate::lab::stage::Lab;
use crate::{Event, Result};

/// Rounds of one point for each curve.
const ROUNDS: usize = 3;
/// Neighbours whose ratio is no larger are close enough.
const CLOSEST: f64 = 1.1;

/// Chooses points to add to a sweep, one round at a time.
#[derive(Debug, Clone)]
pub struct Refinement {
    asked: BTreeSet<u64>,
    rounds: usize,
}

/// Returns more cases for the outcomes so far; none ends the run.
pub(crate) type Next<'a> = dyn FnMut(&[Record]) -> Result<Vec<CaseSpec>> + 'a;

impl Refinement {
    /// Creates the refinement of a sweep that has these points.
    pub fn of(asked: impl IntoIterator<Item = u64>) -> Self {
        Self { asked: asked.into_iter().collect(), rounds: ROUNDS }
    }

    /// Returns the next points: between the knee of each curve and the point before it. Empty if every knee is known
    /// well enough, none lies in the sweep, or the rounds are used up.
    pub fn next(&mut self, curves: &[Curve]) -> Vec<u64> {
        if self.rounds == 0 {
            return Vec::new();
        }
        self.rounds -= 1;
        let bends = curves.iter().filter_map(|c| c.bend(CLOSEST)).map(|x| x as u64);
        let new: BTreeSet<u64> = bends.filter(|x| !self.asked.contains(x)).collect();
        self.asked.extend(&new);
        new.into_iter().collect()
    }
}

/// The cases of one run, round by round.
pub(crate) struct Rounds<'a, 'c> {
    pub(crate) runner: Arc<CaseRunner>,
    pub(crate) guests: Option<Arc<Guests>>,
    /// Keys of cases that an earlier start settled.
    pub(crate) settled: HashSet<String>,
    pub(crate) options: RunOptions,
    pub(crate) keep: Option<Keep<'a>>,
    /// Records of an earlier start.
    pub(crate) before: Vec<Record>,
    /// Has no further case begin once it is raised.
    pub(crate) cancel: &'c AtomicBool,
}

impl Rounds<'_, '_> {
    /// Runs these cases, then any that `next` adds given every record so far. On an error the measured results are
    /// returned alongside.
    pub(crate) fn run(
        &mut self,
        cases: &[CaseSpec],
        next: &mut Next<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> (Vec<Record>, Result<()>) {
        let mut new = Vec::new();
        let result = self.run_into(&mut new, cases.to_vec(), next, tell);
        (new, result)
    }

    fn run_into(
        &mut self,
        new: &mut Vec<Record>,
        mut round: Vec<CaseSpec>,
        next: &mut Next<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let mut keys: HashSet<String> = round.iter().map(key).collect();
        let mut planned = round.len();
        loop {
            let Self { runner, guests, settled, options, keep, cancel, .. } = self;
            let lab = Lab { runner, guests: guests.as_ref(), cancel };
            let (made, result) = run(lab, &round, settled, options, keep.as_mut(), tell);
            new.extend(made);
            result?;
            let so_far: Vec<Record> = self.before.iter().chain(new.iter()).cloned().collect();
            round = next(&so_far)?;
            round.retain(|case| keys.insert(key(case)));
            if round.is_empty() {
                return Ok(());
            }
            planned += round.len();
            if let Some(keep) = &mut self.keep {
                keep.store.replan(&keep.run, u32::try_from(planned).unwrap_or(u32::MAX))?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::statistics::comparison::Values;
    use bdp_model::sweep::curve::{Axis, Point};

    use super::*;

    /// Returns the goodput of a window on a path of 1 Gbit/s and 2.55 ms.
    fn curve(windows: &BTreeSet<u64>) -> Curve {
        let points = windows.iter().map(|&w| Point {
            asked: w.to_string(),
            x: w as f64,
            goodput_bps: Values::of(&[(w as f64 * 8.0 / 2.55e-3).min(941.48e6)]).unwrap(),
            not_counted: 0,
            expected_bps: None,
            streams: 1,
            mss_bytes: Some(1448),
            window_asked_bytes: Some(w),
            socket_buffer_bytes: None,
            on_the_wire_bytes: Some(w),
            rtt_idle_ns: Some(2_550_000),
            rtt_idle_p95_ns: None,
            rtt_loaded_p95_ns: None,
            retransmits: None,
        });
        Curve::new(String::new(), String::new(), Axis::WindowOnTheWire, None, points.collect())
    }

    #[test]
    fn the_knee_is_closed_in_on_and_then_left_alone() {
        let mut windows: BTreeSet<u64> = (12..=26).map(|power| 1 << power).collect();
        let mut refinement = Refinement::of(windows.clone());
        let mut added = Vec::new();
        loop {
            let next = refinement.next(&[curve(&windows)]);
            if next.is_empty() {
                break;
            }
            windows.extend(&next);
            added.extend(next);
        }
        // 95 % of the ceiling needs 285 kB, between 256 KiB and 512 KiB; each round halves the way.
        assert_eq!(added, [370_728, 311_744, 285_870]);
        let curve = curve(&windows);
        let Some(bdp_model::sweep::curve::Knee::At(at)) = curve.knee() else { panic!("no knee") };
        assert_eq!(curve.points[at].x, 285_870.0);
        assert!(curve.points[at].x / curve.points[at - 1].x < 1.1);
    }

    #[test]
    fn a_curve_without_a_knee_asks_for_nothing() {
        let rising: BTreeSet<u64> = (10..=15).map(|power| 1 << power).collect();
        assert!(Refinement::of(rising.clone()).next(&[curve(&rising)]).is_empty());
    }
}
