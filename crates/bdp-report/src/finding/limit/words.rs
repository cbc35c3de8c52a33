//! The wording of a limit.

use bdp_model::finding::{At, Fact, Finding};

use super::super::lines::lines;

/// The wording of a limit.
pub struct Words {
    /// Subject of a finding: `receive window of ams1`.
    pub subject: fn(&Finding) -> String,
    /// The claim alone.
    pub claim: fn(&Finding) -> String,
    /// The figures behind the claim.
    pub figures: fn(&Finding) -> Option<String>,
    /// Explanation and advice for readers who are not network engineers; the arguments are the sending and receiving host.
    pub reason: fn(&Finding, &str, &str) -> Option<(String, String)>,
}

/// Returns the first line of a finding's evidence.
pub fn first_line(finding: &Finding) -> Option<String> {
    lines(finding).into_iter().next()
}

/// Returns the name of the limit's location.
pub fn name(finding: &Finding) -> &str {
    finding.place.name.as_deref().unwrap_or("the host")
}

/// Returns the device that dropped packets.
pub fn device(finding: &Finding) -> &str {
    let dropped = finding.observed(Fact::DroppedByDevice);
    dropped.and_then(|dropped| dropped.name.as_deref()).unwrap_or("its device")
}

/// Returns the end that a finding is about.
pub fn end<'a>(finding: &'a Finding, from: &'a str, to: &'a str) -> &'a str {
    match finding.place.at {
        At::Sender => from,
        At::Receiver => to,
        _ => finding.place.name.as_deref().unwrap_or("one of the two"),
    }
}

/// Returns explanation and advice that name no host.
pub fn plain(cause: &str, advice: &str) -> Option<(String, String)> {
    Some((cause.to_owned(), advice.to_owned()))
}
