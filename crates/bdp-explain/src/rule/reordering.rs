//! Segments that overtake others, so that the sender takes late ones for lost (RFC 4737).

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Share};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::threshold::{AT_PEAK, WINDOW_FREE};

use crate::observed;
use crate::rule::part::MOST;

/// Times that reordering was seen / segments delivered, from which on it matters; likewise of retransmissions for nothing.
const SEEN: f64 = 0.002;
/// Of what was retransmitted so much had arrived all the same (DSACK, RFC 3708), and in so many segments, at the least: those were late, and not lost. The
/// kernel does not count what comes later than a round trip as reordering.
const NEEDLESS: (f64, u64) = (0.5, 5);

/// Copies that arrive / segments that were retransmitted, at the most: the kernel may send one twice.
const COPIES: u64 = 2;
/// Share of the time that repairs take, from which on losses hold back the sender, where more was lost than was late.
const REPAIRS: f64 = 0.1;

/// Fewest losses to judge by; fewer, as at the end of slow start, affect too little of the time.
const SEVERAL: usize = 3;

/// How segments were seen to overtake others.
pub enum Seen {
    /// The kernel counted so many times, of so many segments.
    Counted(u64, u64),
    /// Most of what was retransmitted arrived all the same, of so many segments.
    Late(u64),
}

/// What was seen of it, where that is often enough to matter.
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
        // A timeout that was too early retransmits for nothing too.
        let timeouts = facts.counted(|s| s.timeouts).unwrap_or(0);
        // More copies than were sent again are the network's own.
        let late = needless >= NEEDLESS.1
            && needless <= COPIES * again
            && needless as f64 >= NEEDLESS.0 * again as f64
            && matters(needless)
            && 2 * timeouts < needless;
        late.then_some(Seen::Late(delivered))
    })
}

/// How often the kernel saw it, where that is often enough to matter.
pub fn often_counted(facts: &Facts) -> Option<u64> {
    let delivered = facts.delivered()?;
    facts.counted(|s| s.reorder_seen).filter(|&count| count as f64 >= SEEN * delivered as f64)
}

/// Whether repairs take a good part of the time, and most of what was retransmitted had been lost indeed: whatever arrives in another order besides, the sender
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

/// Whether what was seen of it holds back the sender, whose goodput stays below what the path gave for a round trip.
pub fn hinders(facts: &Facts) -> bool {
    seen(facts).is_some() && facts.of_peak().is_none_or(|reached| reached < AT_PEAK)
}

/// Claims segments that overtake others, where they make the sender reduce its window.
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
