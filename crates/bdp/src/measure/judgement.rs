//! What was expected, held against what was found.

use bdp_model::expectation::Judgement;

use crate::exit::Exit;
use crate::output;

/// Prints what became of each expectation, and gives the exit code that follows.
pub fn report(judged: &[Judgement], runs: usize) -> Exit {
    let median = if runs > 1 { ", the median of the runs" } else { "" };
    for judgement in judged {
        output::note(&format!("{judgement}{}", if judgement.found.is_some() { median } else { "" }));
    }
    if judged.iter().all(|judgement| judgement.met) { Exit::Done } else { Exit::Missed }
}
