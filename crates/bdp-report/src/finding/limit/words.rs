//! What is said of a limit, and what that is made of.

use bdp_model::finding::{At, Fact, Finding};

use super::super::lines::lines;

/// What is said of a limit.
pub struct Words {
    /// What a finding is about: `receive window of ams1`.
    pub subject: fn(&Finding) -> String,
    /// The claim alone.
    pub claim: fn(&Finding) -> String,
    /// What the claim rests on first, or is of.
    pub figures: fn(&Finding) -> Option<String>,
    /// Why, and what to do, for readers who are no network engineers; of data that goes from one host to another.
    pub reason: fn(&Finding, &str, &str) -> Option<(String, String)>,
}

/// The first line of what a finding rests on.
pub fn first_line(finding: &Finding) -> Option<String> {
    lines(finding).into_iter().next()
}

/// The name of where a limit is.
pub fn name(finding: &Finding) -> &str {
    finding.place.name.as_deref().unwrap_or("the host")
}

/// The device that dropped packets.
pub fn device(finding: &Finding) -> &str {
    let dropped = finding.observed(Fact::DroppedByDevice);
    dropped.and_then(|dropped| dropped.name.as_deref()).unwrap_or("its device")
}

/// The end that a finding is about.
pub fn end<'a>(finding: &'a Finding, from: &'a str, to: &'a str) -> &'a str {
    match finding.place.at {
        At::Sender => from,
        At::Receiver => to,
        _ => finding.place.name.as_deref().unwrap_or("one of the two"),
    }
}

/// Cause and advice that name no host.
pub fn plain(cause: &str, advice: &str) -> Option<(String, String)> {
    Some((cause.to_owned(), advice.to_owned()))
}
