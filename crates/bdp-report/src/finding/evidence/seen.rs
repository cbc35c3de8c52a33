//! What a sentence is made of: what was observed, and how its value is said.

use bdp_model::finding::{Evidence, Finding, Unit};
use bdp_model::units::Nanos;

use super::super::quantity::{self, percent, rate, size};

/// What was observed, and the finding that rests on it.
pub struct Seen<'a> {
    pub finding: &'a Finding,
    pub evidence: &'a Evidence,
    pub value: f64,
}

impl<'a> Seen<'a> {
    pub fn of(finding: &'a Finding, evidence: &'a Evidence) -> Self {
        Self { finding, evidence, value: evidence.value }
    }

    /// The value as a share.
    pub fn share(&self) -> String {
        percent(self.value)
    }

    /// The value as a time.
    pub fn time(&self) -> String {
        quantity::time(nanos(self.value))
    }

    /// The value, in its unit.
    pub fn number(&self) -> String {
        match self.evidence.unit {
            Unit::Bytes => size(self.value),
            Unit::Ns => self.time(),
            Unit::Bps => rate(self.value),
            Unit::Share => self.share(),
            Unit::Count | Unit::Flag => format!("{:.0}", self.value),
        }
    }

    /// The host that the fact is of, or the one that the finding is about.
    pub fn host(&self) -> &str {
        let host = self.evidence.host.as_deref().or(self.finding.place.name.as_deref());
        host.unwrap_or("the host")
    }

    /// What the fact is of.
    pub fn name(&self) -> &str {
        self.evidence.name.as_deref().unwrap_or("unknown")
    }

    /// Things of which some meet the fact: `9 of 10 probes`.
    pub fn samples(&self, things: &str) -> String {
        match self.evidence.samples {
            Some(samples) => format!("{} of {} {things}", samples.met, samples.of),
            None => things.to_owned(),
        }
    }
}

/// How much of a rate was reached; no share is more than all.
pub fn reached(share: f64, of_it: &str) -> String {
    /// Less above all of it is the noise of two figures.
    const NOISE: f64 = 0.005;
    match share - 1.0 {
        more if more <= 0.0 => format!("{} {of_it}reached", percent(share)),
        more if more <= NOISE => format!("all {of_it}reached"),
        more => format!("all {of_it}reached and {} more", percent(more)),
    }
}

/// Nanoseconds as they were; findings come from files too.
pub fn nanos(value: f64) -> Nanos {
    Nanos(value.max(0.0) as u64)
}
