//! Where packets are lost, told apart from routers that answer no more often.
//!
//! What is lost on the way to a hop is missing at all later ones too. So a hop that loses more than those behind it limits its answers, or
//! drops them. Where all that follow lose as much, the destination may be one that limits its answers as the others do (Linux sends one "port
//! unreachable" a second, `net.ipv4.icmp_ratelimit`): such hops are asked again at a pace that no usual limit binds at, and what is lost on
//! the path is lost then too.

use super::extent;
use bdp_model::hops::{Hop, HopKind, HopLoss, HopProbe, LossStep, LossVerdict, Phase, Share, Unjudged};

/// How likely a difference by chance alone may be, at most.
const BY_CHANCE: f64 = 0.01;
/// The same of a hop that is asked again slowly.
const BY_CHANCE_SLOW: f64 = 0.05;
/// Least losses that are placed.
const LEAST_LOST: u64 = 3;

/// What a hop lost in a phase.
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

/// Hops that are worth asking again slowly: they lost probes without load, as did those behind them.
pub fn suspects(probes: &[HopProbe]) -> Vec<u8> {
    let counts = counted(probes, Phase::Idle);
    let limited = by_later_hops(&counts);
    counts.iter().filter(|c| c.lost >= 2 && !limited.contains(&c.hop)).map(|c| c.hop).collect()
}

/// Judges, and enters what it finds of each hop.
pub(super) fn judge(hops: &mut [Hop], probes: &[HopProbe]) -> LossVerdict {
    let (idle, loaded) = (counted(probes, Phase::Idle), counted(probes, Phase::Loaded));
    let slow = counted(probes, Phase::Slow);
    let mut limited: Vec<u8> = by_later_hops(&idle);
    limited.extend(idle.iter().filter(|count| is_rare_when_slow(**count, &slow)).map(|count| count.hop));
    // A limit that load alone reaches there is none: the pace is the same.
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

/// What each hop lost that ever answered.
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

/// Hops that lose more than those behind them, which on the path can't be.
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

/// Whether a hop answers when it is asked slowly.
fn is_rare_when_slow(count: Count, slow: &[Count]) -> bool {
    slow.iter().any(|slow| slow.hop == count.hop && chance(count, *slow) < BY_CHANCE_SLOW)
}

/// Where losses begin or grow, among hops that answer as they should.
fn steps(counts: &[Count], loaded: bool) -> Vec<LossStep> {
    let mut bounds = Vec::new();
    split(counts, 0, &mut bounds);
    let first = pool(&counts[..bounds.first().copied().unwrap_or(counts.len())]);
    // Losses that all hops have begin before the first.
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

/// Splits hops where those behind lose most more than those before, and either part again, as long as chance does not explain
/// it (binary segmentation). `at` is the place of the first; bounds are in order.
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

/// How likely it is that the first lost so much more by chance alone: Fisher's exact test, one-sided.
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

/// How many answers a second a hop gives: one in the median time from one to the next, as some come at once when it has been
/// left alone. `None` of fewer than three.
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
