//! Names and anchors of flows on the page.

/// Returns the anchor of a flow's section.
pub(super) fn anchor(prefix: &str, number: usize) -> String {
    format!("{prefix}flow-{number}")
}

/// Returns the ends with the arrow used on pages.
pub(super) fn arrowed(ends: &str) -> String {
    ends.replace("->", "→")
}
