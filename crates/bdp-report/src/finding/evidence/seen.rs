//! An observed fact and the formatting of its value.

use bdp_model::finding::{Evidence, Finding, Unit};
use bdp_model::units::Nanos;

use super::super::quantity::{self, percent, rate, size};

/// An observed fact and the finding that rests on it.
pub struct Seen<'a> {
    pub finding: &'a Finding,
    pub evidence: &'a Evidence,
    pub value: f64,
}

impl<'a> Seen<'a> {
    pub fn of(finding: &'a Finding, evidence: &'a Evidence) -> Self {
        Self { finding, evidence, value: evidence.value }
    }

    /// Returns the value as a share.
    pub fn share(&self) -> String {
        percent(self.value)
    }

    /// Returns the value as a time.
    pub fn time(&self) -> String {
        quantity::time(nanos(self.value))
    }

    /// Returns the value with its unit.
    pub fn number(&self) -> String {
        match self.evidence.unit {
            Unit::Bytes => size(self.value),
            Unit::Ns => self.time(),
            Unit::Bps => rate(self.value),
            Unit::Share => self.share(),
            Unit::Count | Unit::Flag => format!("{:.0}", self.value),
        }
    }

    /// Returns the host of the fact, or else that of the finding.
    pub fn host(&self) -> &str {
        let host = self.evidence.host.as_deref().or(self.finding.place.name.as_deref());
        host.unwrap_or("the host")
    }

    /// Returns the name of the fact's subject.
    pub fn name(&self) -> &str {
        self.evidence.name.as_deref().unwrap_or("unknown")
    }

    /// Returns how many of some things meet the fact: `9 of 10 probes`.
    pub fn samples(&self, things: &str) -> String {
        match self.evidence.samples {
            Some(samples) => format!("{} of {} {things}", samples.met, samples.of),
            None => things.to_owned(),
        }
    }
}

/// Returns how much of a rate was reached, at most all of it.
pub fn reached(share: f64, of_it: &str) -> String {
    /// An excess below this is noise between two figures.
    const NOISE: f64 = 0.005;
    match share - 1.0 {
        more if more <= 0.0 => format!("{} {of_it}reached", percent(share)),
        more if more <= NOISE => format!("all {of_it}reached"),
        more => format!("all {of_it}reached and {} more", percent(more)),
    }
}

/// Returns a value as nanoseconds; negative ones, possible in findings from files, become 0.
pub fn nanos(value: f64) -> Nanos {
    Nanos(value.max(0.0) as u64)
}
