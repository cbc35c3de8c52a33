//! What was expected, held against what was found.

use bdp_model::expectation::Expectation;
use bdp_model::measurement::Measurement;

use crate::exit::Exit;
use crate::output;

/// Names each expectation that was missed with the value found, and gives the exit code that follows.
pub fn judge(expectations: &[Expectation], measured: &[Measurement]) -> Exit {
    let mut exit = Exit::Done;
    for expectation in expectations {
        let judgement = expectation.judge(measured);
        if judgement.met {
            continue;
        }
        exit = Exit::Missed;
        let median = if measured.len() > 1 { ", the median of the runs" } else { "" };
        output::note(&match judgement.found {
            Some(found) => format!("MISSED  {expectation}: {}{median}", expectation.figure.format(found)),
            None => format!("MISSED  {expectation}: not measured, or too few samples for this percentile"),
        });
    }
    exit
}
