//! A queue on the path that marks packets instead of dropping them, so that the sender slows down without a loss (RFC 3168).

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::record::EpisodeKind;

/// Marked / delivered segments.
const MARKED: f64 = 0.000_5;

/// Claims marks, where the sender reduces its window for them and not for losses.
pub fn judge(facts: &Facts) -> Option<Finding> {
    // Of the whole transfer: the end of slow start may have met the queue, and the window still grows.
    let last = facts.sent.last()?;
    let (marked, delivered) = (last.delivered_ce?, last.delivered.filter(|&segments| segments > 0)?);
    let share = marked as f64 / delivered as f64;
    let of =
        |wanted: &dyn Fn(EpisodeKind) -> bool| facts.loss_episodes.iter().filter(|e| wanted(e.kind)).count();
    let (reduced, lost) =
        (of(&|kind| kind == EpisodeKind::Reduced), of(&|kind| kind != EpisodeKind::Reduced));
    if share < MARKED || lost > reduced {
        return None;
    }
    let finding = Finding::new(Limit::EcnMarks, Place::path(), Confidence::High)
        .evidence([
            Evidence::share(Fact::Marked, share)
                .at_least(MARKED)
                .with(Quantity::count(marked))
                .with(Quantity::count(delivered)),
            Evidence::count(Fact::WindowReductions, reduced as u64)
                .with(Quantity::count(lost as u64))
                .named(&facts.congestion_control),
        ])
        .remedy(Remedy::new(Action::RaiseMarking));
    Some(finding)
}
