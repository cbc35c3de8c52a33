//! A queue on the path that marks packets instead of dropping them, so that the sender slows down without a loss (RFC 3168).

use bdp_model::facts::Facts;
use bdp_model::finding::fact;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::path::{cubic, mathis};
use bdp_model::record::EpisodeKind;

/// Marked / delivered segments.
const MARKED: f64 = 0.000_5;
/// Rate allowed by the window reductions / the sender's rate from which there is room: a response function is a mean over many, and a transfer has
/// few.
const MORE: f64 = 3.0;

/// Claims marks if the sender reduces its window for them and not for losses.
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
    // With as many losses, or marks that leave room for much more, something else may hold the sender back.
    let by_marks = 2 * lost <= reduced
        && allowed_bps(facts, reduced + lost, delivered)
            .is_none_or(|allowed| allowed <= MORE * facts.stream_bps());
    let confidence = if by_marks { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::EcnMarks, Place::path(), confidence)
        .evidence([
            Evidence::share(fact::Marked { marked, delivered }, share).at_least(MARKED),
            Evidence::count(fact::WindowReductions { for_losses: lost as u64 }, reduced as u64)
                .named(&facts.congestion_control),
        ])
        .remedy(Remedy::new(Action::RaiseMarking));
    Some(finding)
}

/// Rate by the congestion control's response function with this many window reductions; `None` if it has none.
fn allowed_bps(facts: &Facts, reductions: usize, delivered: u64) -> Option<f64> {
    let (mss, rtt) = facts.mss_bytes.zip(facts.rtt_loaded())?;
    let signals = (reductions as f64 / delivered as f64).min(1.0);
    match facts.congestion_control.as_str() {
        _ if signals <= 0.0 => None,
        "reno" => Some(mathis::rate_bps(mss, rtt, signals, mathis::C_INDEPENDENT)),
        "cubic" => Some(cubic::independent_rate_bps(mss, rtt, signals)),
        _ => None,
    }
}
