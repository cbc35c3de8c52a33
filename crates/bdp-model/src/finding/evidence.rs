//! What was observed: a fact, its numbers with their units, the predicate that they meet and the samples that do.

use serde::{Deserialize, Serialize};

use super::fact::{Fact, Figures, Observed};
use super::quantity::{Quantity, Unit};
use crate::units::Nanos;

/// Samples of which some meet a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// How many meet it.
    pub met: u64,
    /// Of how many.
    pub of: u64,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// What.
    pub fact: Fact,
    /// The number that the predicate is about.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Further numbers, as [`Fact`] has them; by name they are [`Evidence::figures`].
    with: Vec<Quantity>,
    /// The value is not below this: the threshold of the rule.
    pub at_least: Option<f64>,
    /// The value is not above this.
    pub at_most: Option<f64>,
    /// The samples that meet it, where it is a share of samples.
    pub samples: Option<Samples>,
    /// What it is of, where several things may be: a setting, a device, a congestion control.
    pub name: Option<String>,
    /// The host that it is of.
    pub host: Option<String>,
}

impl Evidence {
    /// Of a fact with its further numbers, and a number with its unit; methods add the rest.
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

    /// Of bytes.
    pub fn bytes(fact: impl Figures, value: f64) -> Self {
        Self::new(fact, Quantity::bytes(value))
    }

    /// Of a time.
    pub fn time(fact: impl Figures, value: Nanos) -> Self {
        Self::new(fact, Quantity::time(value))
    }

    /// Of a rate, bit/s.
    pub fn rate(fact: impl Figures, bps: f64) -> Self {
        Self::new(fact, Quantity::rate(bps))
    }

    /// Of a share of one.
    pub fn share(fact: impl Figures, value: f64) -> Self {
        Self::new(fact, Quantity::share(value))
    }

    /// Evidence whose value is a count.
    pub fn count(fact: impl Figures, value: u64) -> Self {
        Self::new(fact, Quantity::count(value))
    }

    /// Of yes or no.
    pub fn flag(fact: impl Figures, holds: bool) -> Self {
        Self::new(fact, Quantity { value: if holds { 1.0 } else { 0.0 }, unit: Unit::Flag })
    }

    /// The threshold that the value is not below.
    #[must_use]
    pub const fn at_least(mut self, bound: f64) -> Self {
        self.at_least = Some(bound);
        self
    }

    /// The threshold that the value is not above.
    #[must_use]
    pub const fn at_most(mut self, bound: f64) -> Self {
        self.at_most = Some(bound);
        self
    }

    /// The samples that meet the predicate.
    #[must_use]
    pub const fn samples(mut self, met: u64, of: u64) -> Self {
        self.samples = Some(Samples { met, of });
        self
    }

    /// The samples of which the value is a share.
    #[must_use]
    pub fn share_of(self, samples: u64) -> Self {
        let met = (self.value * samples as f64).round() as u64;
        self.samples(met, samples)
    }

    /// What it is of.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The host that it is of.
    #[must_use]
    pub fn on(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// The further numbers of this fact by name; `None` if it is another one, or some are absent that it declares.
    pub fn figures<F: Figures>(&self) -> Option<F> {
        if self.fact == F::FACT { F::read(&self.with) } else { None }
    }

    /// The fact with its further numbers, whichever it is; `None` if some are absent that it declares.
    pub fn observed(&self) -> Option<Observed> {
        Observed::read(self.fact, &self.with)
    }

    /// Every number in it.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.value).chain(self.with.iter().map(|quantity| quantity.value))
    }
}
