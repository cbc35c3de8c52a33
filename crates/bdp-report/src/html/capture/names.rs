//! How a flow is called on the page, and where its section is.

/// Where a flow's section is.
pub(super) fn anchor(prefix: &str, number: usize) -> String {
    format!("{prefix}flow-{number}")
}

/// With the arrow that pages have.
pub(super) fn arrowed(ends: &str) -> String {
    ends.replace("->", "→")
}
