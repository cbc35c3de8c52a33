//! The suite against smoltcp.

use bdp_model::case::stack::StepStack;
use bdp_stack::conformance::{POINTS, Stepped, run, settings};

#[test]
fn smoltcp_meets_what_it_is_known_to_meet() {
    let outcomes = run(|| Ok(Box::new(Stepped::new(bdp_stack::open(&StepStack::Smoltcp, settings())?))));
    for outcome in &outcomes {
        println!("{:<24}{:?} {}", outcome.point, outcome.met, outcome.note);
    }
    assert_eq!(outcomes.len(), POINTS.len());
    let missed: Vec<&str> =
        outcomes.iter().filter(|o| o.met != Some(true)).map(|o| o.point.as_str()).collect();
    // smoltcp takes every reset that lies in the window (RFC 5961, section 3, asks for the expected number).
    assert_eq!(missed, ["reset, received"]);
}
