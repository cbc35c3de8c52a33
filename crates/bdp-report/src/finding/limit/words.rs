//! The wording of a limit.

use bdp_model::finding::{At, Fact, Finding};

use super::super::lines::lines;

/// The wording of a limit.
pub struct Words {
    /// Subject of a finding: `receive window of ams1`.
    pub subject: String,
    /// The claim alone.
    pub claim: String,
    /// The figures behind the claim.
    pub figures: fn(&Finding) -> Option<String>,
    /// Explanation and advice for readers who are not network engineers. `{from}` is the sending host, `{to}` the receiving
    /// one, `{host}` the one that the finding is about.
    pub reason: Option<[&'static str; 2]>,
}

impl Words {
    /// Returns a subject and a claim of its own; the figures are the first line of the evidence.
    pub fn new(subject: impl Into<String>, claim: impl Into<String>) -> Self {
        Self { subject: subject.into(), claim: claim.into(), figures: first_line, reason: None }
    }

    /// Returns a subject of which the claim says that it limits the transfer.
    pub fn limited_by(subject: impl Into<String>) -> Self {
        let subject = subject.into();
        let claim = format!("limited by {subject}");
        Self::new(subject, claim)
    }

    pub fn figures(self, figures: fn(&Finding) -> Option<String>) -> Self {
        Self { figures, ..self }
    }

    pub fn because(self, cause: &'static str, advice: &'static str) -> Self {
        Self { reason: Some([cause, advice]), ..self }
    }
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
