//! The send method of a sender, if several were tried.

use bdp_model::flow::method::{SendMethod, TriedWay};
use bdp_model::measurement::DirectionResult;
use bdp_model::units::format_bps;

use crate::grid::tame;
use crate::number::size;

/// Returns a sentence without its full stop on the method chosen and the results of the others; `None` if there was no choice.
pub(crate) fn words(direction: &DirectionResult) -> Option<String> {
    of_tried(&direction.send_method, &direction.send_methods_tried)
}

fn of_tried(kept: &SendMethod, tried: &[TriedWay]) -> Option<String> {
    let named = |way: &TriedWay| {
        format!("{}, {} at once", tame(&way.method.to_string()), size(way.write_bytes as f64))
    };
    // Of two tries of one method, the faster one was chosen.
    let kept =
        tried.iter().filter(|way| way.method == *kept).max_by(|a, b| a.sent_bps.total_cmp(&b.sent_bps))?;
    let others = tried.iter().filter(|way| *way != kept);
    let others: Vec<String> =
        others.map(|way| format!("{} by {}", format_bps(way.sent_bps), named(way))).collect();
    let than = if others.is_empty() { String::new() } else { format!("; {}", others.join("; ")) };
    Some(format!("by {}, after a trial: {}{than}", named(kept), format_bps(kept.sent_bps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_that_was_kept_is_told_with_what_the_others_came_to() {
        let way = |method, write_bytes, sent_bps| TriedWay { method, write_bytes, sent_bps };
        assert_eq!(of_tried(&SendMethod::Write, &[]), None);
        let tried = [
            way(SendMethod::Write, 1_047_728, 84.1e9),
            way(SendMethod::Splice, 261_932, 75.2e9),
            way(SendMethod::Write, 131_072, 65.3e9),
        ];
        let said = "by write, 1023 KiB at once, after a trial: 84.1 Gbit/s; 75.2 Gbit/s by splice, 256 KiB at once; \
                    65.3 Gbit/s by write, 128 KiB at once";
        assert_eq!(of_tried(&SendMethod::Write, &tried).as_deref(), Some(said));
    }
}
