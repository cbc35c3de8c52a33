//! Expectations compared with the results.

use bdp_model::measurement::expectation::Judgement;

use crate::output;

/// Prints the result of each expectation.
pub fn report(judged: &[Judgement], runs: usize) {
    let median = if runs > 1 { ", the median of the runs" } else { "" };
    for judgement in judged {
        output::note(&format!("{judgement}{}", if judgement.found.is_some() { median } else { "" }));
    }
}
