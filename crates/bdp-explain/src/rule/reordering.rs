//! Segments that overtake others, so that the sender takes late ones for lost (RFC 4737).

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::threshold::{AT_PEAK, WINDOW_FREE};

use crate::observed;

/// Times that reordering was seen / segments delivered, from which on it matters.
const SEEN: f64 = 0.002;

/// Times that reordering was seen, where that is often enough to matter, and of how many segments.
pub fn seen(facts: &Facts) -> Option<(u64, u64)> {
    // Without SACK the kernel guesses.
    if facts.connection.is_some_and(|c| c.sack == Some(false)) {
        return None;
    }
    let (seen, delivered) = (facts.counted(|s| s.reorder_seen)?, facts.delivered()?);
    (seen as f64 >= SEEN * delivered as f64).then_some((seen, delivered))
}

/// Claims segments that overtake others, where they make the sender reduce its window.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let (seen, delivered) = seen(facts)?;
    let share = seen as f64 / delivered as f64;
    if facts.window_use().is_some_and(|w| w.receive_full >= WINDOW_FREE)
        || facts.of_peak().is_some_and(|reached| reached >= AT_PEAK)
    {
        return None;
    }
    let needless = facts.counted(|s| s.needless_retransmits).unwrap_or(0);
    let again = facts.counted(|s| s.retransmits).unwrap_or(0);
    let retransmits = (again > 0).then(|| {
        let share = again as f64 / delivered as f64;
        let evidence = Evidence::count(Fact::Retransmitted, again);
        let evidence = evidence.with(Quantity::count(delivered)).with(Quantity::share(share));
        [evidence, Evidence::count(Fact::NeedlessRetransmits, needless)]
    });
    let finding = Finding::new(Limit::Reordering, Place::path(), Confidence::Medium)
        .evidence([Evidence::share(Fact::Reordered, share)
            .at_least(SEEN)
            .with(Quantity::count(seen))
            .named(&facts.congestion_control)])
        .evidence(retransmits.into_iter().flatten())
        .evidence(observed::load_adds(facts))
        .remedy(Remedy::new(Action::FindSpreading));
    Some(finding)
}
