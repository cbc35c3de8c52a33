//! Locates losses, and tells them from routers that rate-limit their answers.
//!
//! What is lost before a hop is missing at all later ones too. So a hop that loses more than later ones limits its answers, or
//! drops them. If all later hops lose as much, the destination may limit its answers like the others (Linux sends one "port
//! unreachable" per second, `net.ipv4.icmp_ratelimit`): such hops are probed again below any usual rate limit, and what is lost on
//! the path is still lost then.

use super::extent;
use bdp_model::probes::hops::{
    Hop, HopKind, HopLoss, HopProbe, LossStep, LossVerdict, Phase, Share, Unjudged,
};

/// Highest probability that a difference is due to chance.
const BY_CHANCE: f64 = 0.01;
/// Highest probability of chance for a hop that is probed again slowly.
const BY_CHANCE_SLOW: f64 = 0.05;
/// Smallest number of losses that are located.
const LEAST_LOST: u64 = 3;

/// Losses of a hop in a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    hop: u8,
    sent: u64,
    lost: u64,
}

impl Count {
    fn plus(self, other: Self) -> Self {
        Self { hop: self.hop, sent: self.sent + other.sent, lost: self.lost + other.lost }
    }

    fn share(self) -> Share {
        Share::of(self.lost, self.sent)
    }
}

/// Hops worth probing again slowly: they lost probes without load, as did later hops.
pub fn suspects(probes: &[HopProbe]) -> Vec<u8> {
    let counts = counted(probes, Phase::Idle);
    let limited = by_later_hops(&counts);
    counts.iter().filter(|c| c.lost >= 2 && !limited.contains(&c.hop)).map(|c| c.hop).collect()
}

/// Judges the losses of the path, and enters the result of each hop.
pub(super) fn judge(hops: &mut [Hop], probes: &[HopProbe]) -> LossVerdict {
    let (idle, loaded) = (counted(probes, Phase::Idle), counted(probes, Phase::Loaded));
    let slow = counted(probes, Phase::Slow);
    let mut limited: Vec<u8> = by_later_hops(&idle);
    limited.extend(idle.iter().filter(|count| is_rare_when_slow(**count, &slow)).map(|count| count.hop));
    // There is no rate limit that only load reaches: probes are sent at the same rate.
    limited.extend(by_later_hops(&without(&loaded, &limited)));
    let (idle_kept, loaded_kept) = (without(&idle, &limited), without(&loaded, &limited));
    let mut steps = steps(&idle_kept, false);
    for step in self::steps(&loaded_kept, true) {
        if !steps.iter().any(|known| known.hop == step.hop) {
            steps.push(step);
        }
    }
    steps.sort_by_key(|step| step.hop);
    for hop in hops.iter_mut() {
        let number = hop.number;
        hop.loss = if hop.kind == HopKind::Silent {
            HopLoss::Silent
        } else if limited.contains(&number) {
            HopLoss::RateLimit { answers_per_s: answers_per_s(number, probes) }
        } else if steps.iter().any(|step| step.hop == number) {
            HopLoss::Path
        } else {
            HopLoss::None
        };
    }
    let (whole, probes) = match idle_kept.last() {
        Some(_) => {
            let since = steps.iter().filter(|step| !step.loaded).map(|step| step.hop).max().unwrap_or(0);
            let end = pool(idle_kept.iter().filter(|count| count.hop >= since));
            (Some(end.share()), end.sent)
        }
        None => (None, 0),
    };
    let unknown = match (idle_kept.is_empty(), idle.is_empty()) {
        (true, true) => Some(Unjudged::TooFewAnswers),
        (true, false) => Some(Unjudged::RateLimited),
        _ => None,
    };
    LossVerdict { steps, whole, probes, unknown }
}

/// Losses of each hop that ever answered.
fn counted(probes: &[HopProbe], phase: Phase) -> Vec<Count> {
    let end = extent::end_of(probes).unwrap_or(0);
    let count = |hop: u8| {
        let of_hop = || probes.iter().filter(move |p| p.hop == hop);
        let sent = of_hop().filter(|p| p.phase == phase).count() as u64;
        let lost = of_hop().filter(|p| p.phase == phase && !p.is_answered()).count() as u64;
        (sent > 0 && of_hop().any(HopProbe::is_answered)).then_some(Count { hop, sent, lost })
    };
    (1..=end).filter_map(count).collect()
}

fn without(counts: &[Count], hops: &[u8]) -> Vec<Count> {
    counts.iter().filter(|count| !hops.contains(&count.hop)).copied().collect()
}

fn pool<'a>(counts: impl IntoIterator<Item = &'a Count>) -> Count {
    counts.into_iter().fold(Count::default(), |all, &count| all.plus(count))
}

/// Hops that lose more than later ones, which losses on the path cannot explain.
fn by_later_hops(counts: &[Count]) -> Vec<u8> {
    let (mut later, mut limited) = (Count::default(), Vec::new());
    for &count in counts.iter().rev() {
        if later.sent > 0 && chance(count, later) < BY_CHANCE {
            limited.push(count.hop);
        } else {
            later = later.plus(count);
        }
    }
    limited
}

/// Whether a hop answers slow probes.
fn is_rare_when_slow(count: Count, slow: &[Count]) -> bool {
    slow.iter().any(|slow| slow.hop == count.hop && chance(count, *slow) < BY_CHANCE_SLOW)
}

/// Where losses begin or grow, among hops that answer normally.
fn steps(counts: &[Count], loaded: bool) -> Vec<LossStep> {
    let mut bounds = Vec::new();
    split(counts, 0, &mut bounds);
    let first = pool(&counts[..bounds.first().copied().unwrap_or(counts.len())]);
    // Losses common to all hops begin before the first.
    if first.lost >= LEAST_LOST {
        bounds.insert(0, 0);
    }
    let part = |at: usize| {
        let end = bounds.get(at + 1).copied().unwrap_or(counts.len());
        pool(&counts[bounds[at]..end]).share()
    };
    let before = |at: usize| match at {
        0 => pool(&counts[..bounds[0]]).share(),
        _ => part(at - 1),
    };
    (0..bounds.len())
        .map(|at| LossStep {
            hop: counts[bounds[at]].hop,
            after: bounds[at].checked_sub(1).map_or(0, |before| counts[before].hop),
            loaded,
            loss: part(at),
            before: if bounds[at] == 0 { Share::default() } else { before(at) },
        })
        .collect()
}

/// Splits hops where later ones lose most more than earlier ones, and each part again, unless chance explains
/// it (binary segmentation). `at` is the index of the first; bounds are in order.
fn split(counts: &[Count], at: usize, bounds: &mut Vec<usize>) {
    let best = (1..counts.len())
        .map(|bound| {
            let (before, behind) = counts.split_at(bound);
            (bound, chance(pool(behind), pool(before)), pool(behind).lost)
        })
        .filter(|&(_, by_chance, lost)| by_chance < BY_CHANCE && lost >= LEAST_LOST)
        .min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((bound, ..)) = best {
        split(&counts[..bound], at, bounds);
        bounds.push(at + bound);
        split(&counts[bound..], at + bound, bounds);
    }
}

/// Probability that so many more losses are due to chance: Fisher's exact test, one-sided.
fn chance(first: Count, second: Count) -> f64 {
    let (sent, lost) = (first.sent + second.sent, first.lost + second.lost);
    let most = lost.min(first.sent);
    let least = first.lost.max(lost.saturating_sub(second.sent));
    let all = log_choose(sent, lost);
    let one = |n: u64| (log_choose(first.sent, n) + log_choose(second.sent, lost - n) - all).exp();
    (least..=most).map(one).sum::<f64>().min(1.0)
}

/// The logarithm of a binomial coefficient.
fn log_choose(n: u64, k: u64) -> f64 {
    (1..=k.min(n - k)).map(|i| ((n + 1 - i) as f64 / i as f64).ln()).sum()
}

/// Answers per second of a hop: one per median interval, since several come at once after an idle
/// time. `None` of fewer than three.
fn answers_per_s(hop: u8, probes: &[HopProbe]) -> Option<f64> {
    let of_phase = |phase: Phase| {
        let answered = |p: &&HopProbe| p.hop == hop && p.phase == phase && p.is_answered();
        probes.iter().filter(answered).map(|p| p.sent_ns).collect::<Vec<u64>>()
    };
    let mut gaps: Vec<u64> = [Phase::Idle, Phase::Loaded]
        .into_iter()
        .flat_map(|phase| of_phase(phase).windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>())
        .collect();
    gaps.sort_unstable();
    let median = gaps.get(gaps.len() / 2).filter(|&&gap| gaps.len() > 1 && gap > 0)?;
    Some(1e9 / *median as f64)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Samples, ms};
    use super::*;

    /// Every so many probes, which of them depends on the hop.
    fn every(n: u64, hop: u8, period: u64) -> bool {
        (n + u64::from(hop) * 7).is_multiple_of(period)
    }

    #[test]
    fn losses_of_a_link_begin_at_the_hop_behind_it() {
        let mut samples = Samples::of_hops(5);
        samples.idle(100, |hop, n| (hop < 3 || !every(n, hop, 10)).then_some(ms(1)));
        let report = samples.report(false);
        let [step] = report.loss.steps[..] else { panic!("{:?}", report.loss) };
        assert_eq!((step.hop, step.after, step.loaded), (3, 2, false));
        assert!(step.loss.low < 0.1 && step.loss.high > 0.1 && step.before.value == 0.0, "{step:?}");
        assert_eq!(report.hops.iter().filter(|hop| hop.loss == HopLoss::Path).count(), 1);
        assert_eq!(suspects(&samples.probes), [3, 4, 5]);
    }

    #[test]
    fn a_router_that_limits_its_answers_loses_nothing_of_the_path() {
        let mut samples = Samples::of_hops(4);
        samples.idle(40, |hop, n| (hop != 2 || n % 4 == 0).then_some(ms(1)));
        let report = samples.report(false);
        assert_eq!(report.loss.steps, []);
        assert_eq!(report.loss.whole.unwrap().value, 0.0);
        let HopLoss::RateLimit { answers_per_s: Some(answers_per_s) } = report.hops[1].loss else {
            panic!("{:?}", report.hops[1])
        };
        assert!((0.9..1.2).contains(&answers_per_s), "{answers_per_s}");
        assert_eq!(suspects(&samples.probes), Vec::<u8>::new());
    }

    #[test]
    fn where_all_hops_limit_their_answers_the_slow_pace_tells() {
        let mut samples = Samples::of_hops(3);
        samples.idle(40, |_, n| (n % 4 == 0).then_some(ms(1)));
        assert_eq!(suspects(&samples.probes), [1, 2, 3]);
        let taken_for_loss = samples.report(false);
        assert_eq!(taken_for_loss.loss.steps.len(), 1);
        samples.interval_ns = ms(1100);
        samples.rounds(Phase::Slow, 6, |_, _| Some(ms(1)));
        let report = samples.report(false);
        assert_eq!(report.loss.steps, []);
        assert_eq!(report.loss.unknown, Some(Unjudged::RateLimited));
        assert!(report.hops.iter().all(|hop| matches!(hop.loss, HopLoss::RateLimit { .. })));
    }

    #[test]
    fn losses_that_stay_when_asked_slowly_are_the_paths() {
        let mut samples = Samples::of_hops(3);
        samples.idle(40, |hop, n| (hop < 2 || !every(n, hop, 4)).then_some(ms(1)));
        samples.rounds(Phase::Slow, 6, |hop, n| (hop < 2 || n % 3 > 0).then_some(ms(1)));
        let steps = samples.report(false).loss.steps;
        assert_eq!(steps.iter().map(|step| step.hop).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_limit_before_a_lossy_link_is_told_from_it() {
        let mut samples = Samples::of_hops(5);
        samples.idle(100, |hop, n| {
            let answers = match hop {
                2 => n % 4 == 0,
                4.. => !every(n, hop, 8),
                _ => true,
            };
            answers.then_some(ms(1))
        });
        let report = samples.report(false);
        assert_eq!(report.loss.steps.iter().map(|s| (s.after, s.hop)).collect::<Vec<_>>(), [(3, 4)]);
        assert!(matches!(report.hops[1].loss, HopLoss::RateLimit { .. }));
    }

    #[test]
    fn losses_on_the_first_link_and_further_ones() {
        let mut samples = Samples::of_hops(6);
        samples.idle(200, |hop, n| {
            let lost = every(n, hop, 20) || hop >= 4 && every(n, hop, 3);
            (!lost).then_some(ms(1))
        });
        let steps = samples.report(false).loss.steps;
        assert_eq!(steps.iter().map(|s| (s.after, s.hop)).collect::<Vec<_>>(), [(0, 1), (3, 4)]);
    }

    #[test]
    fn one_lost_probe_is_placed_nowhere() {
        let mut samples = Samples::of_hops(4);
        samples.idle(20, |hop, n| (hop != 3 || n != 7).then_some(ms(1)));
        let report = samples.report(false);
        assert_eq!(report.loss.steps, []);
        assert!(report.loss.whole.unwrap().value > 0.0);
    }

    #[test]
    fn losses_under_load_alone_are_marked_so() {
        let mut samples = Samples::of_hops(3);
        samples.idle(40, |_, _| Some(ms(1)));
        samples.loaded(40, |hop, n| (hop < 3 || !every(n, hop, 4)).then_some(ms(9)));
        let report = samples.report(true);
        assert_eq!(report.loss.steps.iter().map(|s| (s.hop, s.loaded)).collect::<Vec<_>>(), [(3, true)]);
        assert_eq!(report.loss.whole.unwrap().value, 0.0);
    }

    #[test]
    fn the_exact_test_is_that_of_the_books() {
        // R. A. Fisher's lady tasting tea: all four right of eight, 1 in 70.
        let right = |lost| Count { hop: 0, sent: 4, lost };
        assert!((chance(right(4), right(0)) - 1.0 / 70.0).abs() < 1e-12);
        assert!((chance(right(3), right(1)) - 17.0 / 70.0).abs() < 1e-12);
        assert!((chance(right(0), right(4)) - 1.0).abs() < 1e-12);
    }
}
