//! Where a queue stands: at the first hop from which on round trips exceed their minimum.
//!
//! A packet's wait in a queue also delays every packet that goes further. So the part of a hop's delay on the path is no more than every later hop
//! has; the rest is the router's own, which answers more slowly than it forwards.

use bdp_model::probes::hops::{Hop, HopProbe, Phase, QueueStep, QueueVerdict, Unjudged};

/// Fewest answers of a hop that is judged.
const LEAST_ANSWERS: usize = 3;
/// A smaller rise is not reported as a queue.
const LEAST_RISE_NS: u64 = 500_000;

/// A hop's delay above its minimum, with the interval of its median.
#[derive(Debug, Clone, Copy)]
struct Delay {
    hop: u8,
    value: u64,
    low: u64,
    high: u64,
}

/// Judges the round trips, under load if there was one, and enters the result of each hop.
pub(super) fn judge(hops: &mut [Hop], probes: &[HopProbe], load: bool) -> QueueVerdict {
    let phase = if load { Phase::Loaded } else { Phase::Idle };
    let delays: Vec<Delay> = hops.iter().filter_map(|hop| delay(hop.number, phase, probes)).collect();
    let mut on_path = delays.clone();
    for at in (0..on_path.len().saturating_sub(1)).rev() {
        let (own, later) = (on_path[at], on_path[at + 1]);
        if later.value < own.value {
            on_path[at] = Delay { hop: own.hop, ..later };
        }
    }
    for (own, shared) in delays.iter().zip(&on_path) {
        let Some(hop) = hops.iter_mut().find(|hop| hop.number == own.hop) else { continue };
        hop.delay_ns = Some(own.value);
        hop.queue_ns = Some(shared.value);
        let rest = own.value - shared.value;
        hop.slow_answers_ns = (rest >= LEAST_RISE_NS && own.low > shared.high).then_some(rest);
    }
    let mut steps = Vec::new();
    let mut before = Delay { hop: 0, value: 0, low: 0, high: 0 };
    for here in on_path {
        let rise = here.value.saturating_sub(before.value);
        if rise >= LEAST_RISE_NS && here.low > before.high {
            steps.push(QueueStep {
                hop: here.hop,
                after: before.hop,
                added_ns: rise,
                low_ns: here.low - before.high,
                high_ns: here.high.saturating_sub(before.low),
            });
        }
        before = here;
    }
    steps.sort_by_key(|step| std::cmp::Reverse(step.added_ns));
    let unknown = delays.is_empty().then_some(Unjudged::TooFewAnswers);
    QueueVerdict { steps, unknown }
}

/// `None` if there are too few answers.
fn delay(hop: u8, phase: Phase, probes: &[HopProbe]) -> Option<Delay> {
    let of_rounds = |p: &&HopProbe| p.hop == hop && !matches!(p.phase, Phase::Sizes | Phase::Branches);
    let smallest = probes.iter().filter(of_rounds).filter_map(HopProbe::rtt_ns).min()?;
    let mut rtts: Vec<u64> =
        probes.iter().filter(|p| p.hop == hop && p.phase == phase).filter_map(HopProbe::rtt_ns).collect();
    rtts.sort_unstable();
    let n = rtts.len();
    if n < LEAST_ANSWERS {
        return None;
    }
    // The ranks between which the median is (H. A. David, "Order Statistics", section 2.5, by the normal approximation).
    let half_width = 0.98 * (n as f64).sqrt();
    let low = (n as f64 / 2.0 - half_width).floor().max(0.0) as usize;
    let high = ((n as f64 / 2.0 + half_width).ceil() as usize).min(n - 1);
    let above = |rtt: u64| rtt - smallest;
    Some(Delay { hop, value: above(rtts[(n - 1) / 2]), low: above(rtts[low]), high: above(rtts[high]) })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Samples, ms};
    use super::*;

    #[test]
    fn the_queue_is_at_the_hop_from_which_on_all_wait() {
        let mut samples = Samples::of_hops(5);
        samples.idle(20, |hop, _| Some(ms(2) * u64::from(hop)));
        samples.loaded(20, |hop, n| {
            Some(ms(2) * u64::from(hop) + if hop >= 3 { ms(40) + n % 5 * ms(1) } else { n % 3 * 10_000 })
        });
        let report = samples.report(true);
        let [step] = report.queue.steps[..] else { panic!("{:?}", report.queue) };
        assert_eq!((step.hop, step.after), (3, 2));
        assert!((ms(39)..ms(44)).contains(&step.added_ns), "{step:?}");
        assert!(step.low_ns <= step.added_ns && step.added_ns <= step.high_ns, "{step:?}");
    }

    #[test]
    fn a_router_that_answers_slowly_is_no_queue() {
        let mut samples = Samples::of_hops(4);
        let slow = |hop: u8, n: u64| if hop == 2 && !n.is_multiple_of(4) { ms(30) + n * 1_000 } else { 0 };
        samples.idle(30, |hop, n| Some(ms(5) * u64::from(hop) + slow(hop, n)));
        let report = samples.report(false);
        assert_eq!(report.queue.steps, []);
        let own: Vec<bool> = report.hops.iter().map(|hop| hop.slow_answers_ns.is_some()).collect();
        assert_eq!(own, [false, true, false, false]);
    }

    #[test]
    fn two_queues_are_two_steps_and_the_longer_one_is_first() {
        let mut samples = Samples::of_hops(4);
        samples.idle(20, |hop, _| Some(ms(1) * u64::from(hop)));
        samples.loaded(20, |hop, _| {
            Some(ms(1) * u64::from(hop) + if hop >= 2 { ms(3) } else { 0 } + if hop >= 4 { ms(9) } else { 0 })
        });
        let steps = samples.report(true).queue.steps;
        assert_eq!(steps.iter().map(|s| (s.hop, s.added_ns)).collect::<Vec<_>>(), [(4, ms(9)), (2, ms(3))]);
    }

    #[test]
    fn without_answers_nothing_is_said() {
        let mut samples = Samples::of_hops(2);
        samples.idle(20, |hop, n| (n < 2).then_some(ms(1) * u64::from(hop)));
        let report = samples.report(false);
        assert_eq!(report.queue.unknown, Some(Unjudged::TooFewAnswers));
    }

    #[test]
    fn noise_of_few_samples_is_no_queue() {
        let mut samples = Samples::of_hops(3);
        // One of three waits: a median of three may be any of them.
        samples.idle(3, |hop, n| Some(ms(1) * u64::from(hop) + if hop == 3 { n * ms(4) } else { 0 }));
        assert_eq!(samples.report(false).queue.steps, []);
    }
}
