//! Reordered segments, which the sender takes for lost (RFC 4737).

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Share};
use bdp_model::finding::threshold::{AT_PEAK, WINDOW_FREE};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};

use crate::observed;
use crate::rule::part::MOST;

/// Reordering events / segments delivered from which it matters; also for needless retransmissions.
const SEEN: f64 = 0.002;
/// Smallest share, and number, of retransmitted segments that had arrived after all (DSACK, RFC 3708): they were late, not lost. The
/// kernel does not count segments later than a round trip as reordering.
const NEEDLESS: (f64, u64) = (0.5, 5);

/// Largest ratio of duplicates received to segments retransmitted; the kernel may retransmit a segment twice.
const COPIES: u64 = 2;
/// Share of the time in recovery from which losses hold back the sender, if more was lost than was late.
const REPAIRS: f64 = 0.1;

/// Fewest losses to judge by; fewer, as at the end of slow start, affect too little of the time.
const SEVERAL: usize = 3;

/// How reordering was seen.
pub enum Seen {
    /// The kernel's count of events, and of segments.
    Counted(u64, u64),
    /// Most retransmitted segments, this many, had arrived after all.
    Late(u64),
}

/// The reordering seen, if frequent enough to matter.
pub fn seen(facts: &Facts) -> Option<Seen> {
    // Without SACK the kernel guesses.
    if facts.connection.is_some_and(|c| c.sack == Some(false)) {
        return None;
    }
    let delivered = facts.delivered()?;
    let matters = |count: u64| count as f64 >= SEEN * delivered as f64;
    if losses_rule(facts) {
        return None;
    }
    let counted = often_counted(facts);
    counted.map(|count| Seen::Counted(count, delivered)).or_else(|| {
        let again = facts.counted(|s| s.retransmits)?;
        let needless = facts.counted(|s| s.needless_retransmits)?;
        // A spurious timeout retransmits needlessly too.
        let timeouts = facts.counted(|s| s.timeouts).unwrap_or(0);
        // More copies than retransmissions are duplicates from the network.
        let late = needless >= NEEDLESS.1
            && needless <= COPIES * again
            && needless as f64 >= NEEDLESS.0 * again as f64
            && matters(needless)
            && 2 * timeouts < needless;
        late.then_some(Seen::Late(delivered))
    })
}

/// The kernel's count of reordering events, if frequent enough to matter.
pub fn often_counted(facts: &Facts) -> Option<u64> {
    let delivered = facts.delivered()?;
    facts.counted(|s| s.reorder_seen).filter(|&count| count as f64 >= SEEN * delivered as f64)
}

/// Whether recovery takes a good part of the time, and most retransmitted segments had really been lost: despite reordering, the sender
/// reduces its window for losses.
fn losses_rule(facts: &Facts) -> bool {
    let counts = facts.counted(|s| s.retransmits).zip(facts.counted(|s| s.needless_retransmits));
    counts.is_some_and(|(again, needless)| again > 2 * needless)
        && facts.time_counted().is_some_and(|spent| {
            let repairs = spent.repairs();
            let several = facts.loss_picture().is_some_and(|picture| picture.events >= SEVERAL);
            repairs >= MOST || several && repairs >= REPAIRS
        })
}

/// Whether reordering holds back the sender, with a goodput below the peak of a round trip.
pub fn hinders(facts: &Facts) -> bool {
    seen(facts).is_some() && facts.of_peak().is_none_or(|reached| reached < AT_PEAK)
}

/// Claims reordering if it makes the sender reduce its window.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let seen = seen(facts)?;
    let (Seen::Counted(_, delivered) | Seen::Late(delivered)) = seen;
    if facts.window_use().is_some_and(|w| w.receive_full >= WINDOW_FREE) || !hinders(facts) {
        return None;
    }
    let needless = facts.counted(|s| s.needless_retransmits).unwrap_or(0);
    let again = facts.counted(|s| s.retransmits).unwrap_or(0);
    let retransmits = (again > 0).then(|| {
        let share = again as f64 / delivered as f64;
        let evidence =
            Evidence::count(fact::Retransmitted { segments: delivered, share: Share(share) }, again);
        let late = Evidence::count(fact::NeedlessRetransmits, needless);
        [
            evidence,
            if matches!(seen, Seen::Late(..)) { late.at_least(NEEDLESS.0 * again as f64) } else { late },
        ]
    });
    let counted = match seen {
        Seen::Counted(times, _) => Some(
            Evidence::share(fact::Reordered { times }, times as f64 / delivered as f64)
                .at_least(SEEN)
                .named(&facts.congestion_control),
        ),
        Seen::Late(..) => None,
    };
    let finding = Finding::new(Limit::Reordering, Place::path(), Confidence::Medium)
        .evidence(counted)
        .evidence(retransmits.into_iter().flatten())
        .evidence(observed::load_adds(facts))
        .remedy(Remedy::new(Action::FindSpreading));
    Some(finding)
}
