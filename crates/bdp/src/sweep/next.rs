//! The line that ends a sweep.

/// What can be done with a sweep that is stored.
pub(super) fn next(run: Option<&str>, again: Option<&str>) -> String {
    match (run, again) {
        (Some(run), Some(again)) => {
            // The store's option, where it was given.
            let store = again.strip_prefix(&format!("bdp show {run}")).unwrap_or_default();
            format!("next  {again}\n      bdp report {run}{store}\n      bdp show {run} --json{store}\n")
        }
        _ => String::new(),
    }
}
