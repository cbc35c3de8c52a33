//! A path that carried nothing for a while.

use bdp_model::facts::{Facts, Gap, Source};
use bdp_model::finding::fact;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::units::Nanos;

/// Claims an outage: nothing arrived for much longer than a timeout takes, but data flowed before and after.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// A shorter gap is a retransmission timeout (RFC 6298).
    const LEAST: Nanos = Nanos::millis(600);
    /// The gap is longer than this many idle and loaded round trips.
    const ROUND_TRIPS: (f64, f64) = (5.0, 4.0);
    /// Share of the time from which it is the limit.
    const SHARE: f64 = 0.05;
    /// Fewest probes unanswered during the gap.
    const PROBES_MIN: usize = 3;
    /// Fewest unanswered retransmissions; the last one is answered, and it is the only one that reaches the receiver.
    const TRIES_MIN: u64 = 1;
    /// A run of unanswered probes, with answered ones before the connection retried.
    const SILENCE: Nanos = Nanos::millis(500);
    /// If more of the other probes are lost, the path loses as it always does.
    const OTHERS: f64 = 0.05;
    // A probe sent just before the path came back may be answered.
    let most_answered = |sent: usize| sent / 20;
    let Gap { took: gap, share, probes, silence, retransmitted } = facts.longest_gap()?;
    let (idle, loaded) = (facts.rtt_idle()?, facts.rtt_loaded()?);
    let rtt = idle.max(loaded);
    let least = (ROUND_TRIPS.0 * idle.0 as f64).max(ROUND_TRIPS.1 * loaded.0 as f64).max(LEAST.0 as f64);
    // A backed-off timeout affects only the connection; an outage affects everything.
    let all_silent =
        probes.is_some_and(|(answered, sent)| sent >= PROBES_MIN && answered <= most_answered(sent));
    let silent = (SILENCE.0 as f64).max(ROUND_TRIPS.0 * idle.0 as f64);
    let silence = silence.filter(|silence| silence.took.0 as f64 >= silent && silence.others <= OTHERS);
    // A capture has no probes: repeated retransmission timeouts, for longer than a single one takes, replace them.
    let is_captured = facts.source == Source::Captured && retransmitted >= TRIES_MIN;
    // Away from the sender it shows by what was sent meanwhile.
    let sent_meanwhile = facts.conversation.as_ref().is_some_and(|all| all.outage_ns >= gap.0 / 2);
    if !all_silent && silence.is_none() && !is_captured && !sent_meanwhile {
        return None;
    }
    let is_long = gap.0 as f64 >= least && share >= SHARE;
    // A receiver without samples was not running, and a closed window is caused by a reader.
    let reads = facts.receiver_paused().is_none()
        && facts.window_use().is_none_or(|w| w.receive_smallest_bytes >= facts.mss_bytes.unwrap_or(1) as f64);
    let again = facts.counted(|s| s.retransmits).filter(|&again| again > 0);
    if !is_long || !reads || again.is_none() && !sent_meanwhile {
        return None;
    }
    let round_trips = gap.as_secs_f64() / rtt.as_secs_f64().max(1e-9);
    let finding = Finding::new(Limit::PathChanged, Place::path(), Confidence::Medium)
        .evidence([
            Evidence::time(fact::Gap { round_trips: round_trips.round() as u64 }, gap).at_least(least),
            Evidence::share(fact::GapShare, share).at_least(SHARE),
        ])
        .evidence(again.map(|again| Evidence::count(fact::RetransmittedMeanwhile, again).at_least(1.0)))
        .evidence(probes.map(|(answered, sent)| {
            let evidence = Evidence::count(fact::ProbesMeanwhile, answered as u64);
            let evidence = if all_silent { evidence.at_most(most_answered(sent) as f64) } else { evidence };
            evidence.samples((sent - answered) as u64, sent as u64)
        }))
        .evidence(
            silence
                .filter(|_| !all_silent)
                .map(|silence| Evidence::time(fact::ProbesSilent, silence.took).at_least(silent)),
        )
        .remedy(Remedy::new(Action::FindOutage));
    Some(finding)
}
