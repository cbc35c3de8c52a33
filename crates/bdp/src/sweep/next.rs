//! The last line of a sweep.

/// Next commands for a stored sweep.
pub(super) fn next(run: Option<&str>, again: Option<&str>) -> String {
    match (run, again) {
        (Some(run), Some(again)) => {
            // The store's option, if it was given.
            let store = again.strip_prefix(&format!("bdp show {run}")).unwrap_or_default();
            format!("next  {again}\n      bdp report {run}{store}\n      bdp show {run} --json{store}\n")
        }
        _ => String::new(),
    }
}
