//! A selftest's checks, as a table and in JSON.

use std::fmt::Write;

use bdp_model::record::Record;
use bdp_run::selftest::Check;
use serde_json::json;

/// Builds the document of these records and checks.
pub(super) fn document(records: &[Record], checks: &[Check]) -> serde_json::Value {
    let checks: Vec<_> = checks
        .iter()
        .map(|c| json!({ "what": c.what, "measured": c.measured, "bound": c.bound, "held": c.held }))
        .collect();
    let mut document = bdp_report::json(records, None);
    document["checks"] = checks.into();
    document
}

/// Formats the table of these checks.
pub(super) fn table(checks: &[Check]) -> String {
    let wide = |least: usize, text: &dyn Fn(&Check) -> &str| {
        checks.iter().map(|c| text(c).chars().count() + 2).max().unwrap_or(0).max(least)
    };
    let (measured, bound) = (wide(16, &|c| &c.measured), wide(16, &|c| &c.bound));
    let mut text = format!("{:<52}{:>measured$}{:>bound$}  verdict\n", "promise", "measured", "bound");
    for c in checks {
        let verdict = if c.held { "held" } else { "MISSED" };
        let _ = writeln!(text, "{:<52}{:>measured$}{:>bound$}  {verdict}", c.what, c.measured, c.bound);
    }
    text
}
