//! Observations: a fact, its numbers with units, the threshold that they meet, and the samples that meet it.

use serde::{Deserialize, Serialize};

use super::fact::{Fact, Figures, Observed};
use super::quantity::{Quantity, Unit};
use crate::units::Nanos;

/// The number of samples that meet a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// Samples that meet it.
    pub met: u64,
    /// All samples.
    pub of: u64,
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The fact that was observed.
    pub fact: Fact,
    /// The number that the threshold applies to.
    pub value: f64,
    /// The unit of the value.
    pub unit: Unit,
    /// Further numbers, in the order of the fact's description.
    with: Vec<Quantity>,
    /// The rule's lower threshold: the value is at least this.
    pub at_least: Option<f64>,
    /// The rule's upper threshold: the value is at most this.
    pub at_most: Option<f64>,
    /// The samples that meet it, if the value is a share of samples.
    pub samples: Option<Samples>,
    /// The setting, device or congestion control that it belongs to.
    pub name: Option<String>,
    /// The host that it belongs to.
    pub host: Option<String>,
}

impl Evidence {
    /// Creates evidence of a fact with a number and its unit; methods add the rest.
    pub fn new<F: Figures>(fact: F, Quantity { value, unit }: Quantity) -> Self {
        Self {
            fact: F::FACT,
            value,
            unit,
            with: fact.stored(),
            at_least: None,
            at_most: None,
            samples: None,
            name: None,
            host: None,
        }
    }

    /// Evidence whose value is a number of bytes.
    pub fn bytes(fact: impl Figures, value: f64) -> Self {
        Self::new(fact, Quantity::bytes(value))
    }

    /// Evidence whose value is a time.
    pub fn time(fact: impl Figures, value: Nanos) -> Self {
        Self::new(fact, Quantity::time(value))
    }

    /// Evidence whose value is a rate, bit/s.
    pub fn rate(fact: impl Figures, bps: f64) -> Self {
        Self::new(fact, Quantity::rate(bps))
    }

    /// Evidence whose value is a share of one.
    pub fn share(fact: impl Figures, value: f64) -> Self {
        Self::new(fact, Quantity::share(value))
    }

    /// Evidence whose value is a count.
    pub fn count(fact: impl Figures, value: u64) -> Self {
        Self::new(fact, Quantity::count(value))
    }

    /// Evidence whose value is yes or no.
    pub fn flag(fact: impl Figures, holds: bool) -> Self {
        Self::new(fact, Quantity { value: if holds { 1.0 } else { 0.0 }, unit: Unit::Flag })
    }

    /// Sets the lower threshold.
    #[must_use]
    pub const fn at_least(mut self, bound: f64) -> Self {
        self.at_least = Some(bound);
        self
    }

    /// Sets the upper threshold.
    #[must_use]
    pub const fn at_most(mut self, bound: f64) -> Self {
        self.at_most = Some(bound);
        self
    }

    /// Sets the samples that meet the threshold, and the number of all samples.
    #[must_use]
    pub const fn samples(mut self, met: u64, of: u64) -> Self {
        self.samples = Some(Samples { met, of });
        self
    }

    /// Sets the number of samples that the value is a share of.
    #[must_use]
    pub fn share_of(self, samples: u64) -> Self {
        let met = (self.value * samples as f64).round() as u64;
        self.samples(met, samples)
    }

    /// Names the setting, device or congestion control that the evidence is about.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the host that it belongs to.
    #[must_use]
    pub fn on(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Returns the fact's further numbers by name; `None` if the fact is another one, or a required number is missing.
    pub fn figures<F: Figures>(&self) -> Option<F> {
        if self.fact == F::FACT { F::read(&self.with) } else { None }
    }

    /// Returns the fact with its further numbers; `None` if a required number is missing.
    pub fn observed(&self) -> Option<Observed> {
        Observed::read(self.fact, &self.with)
    }

    /// All numbers of the evidence.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.value).chain(self.with.iter().map(|quantity| quantity.value))
    }
}
