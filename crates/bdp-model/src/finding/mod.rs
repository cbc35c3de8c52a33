//! What limits a transfer, as numbers and names: the rules of `bdp-explain` produce it, `bdp-report` puts it into words.

mod cause;
pub mod caveat;
mod evidence;
pub mod fact;
pub mod limit;
mod missing;
pub(crate) mod named;
mod place;
mod quantity;
pub mod remedy;
pub mod threshold;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

pub use cause::Cause;
pub use evidence::{Evidence, Samples};
pub use fact::{Fact, Figures, Observed};
pub use limit::Limit;
pub use missing::{Lack, Missing};
pub use place::{At, Place};
pub use quantity::{Quantity, Unit};
pub use remedy::{Action, Remedy};

/// A conclusion with its confidence, its evidence and a remedy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What limits the flow.
    pub limit: Limit,
    /// Why the limit has its value; null if unknown.
    pub cause: Option<Cause>,
    /// Where the limit is.
    pub place: Place,
    /// How certain the finding is.
    pub confidence: Confidence,
    /// Its probability, calibrated on transfers whose limit is known; null if it was not calibrated: of datagrams, captures, watched
    /// sockets, and limits without such transfers, as the ceiling.
    #[serde(default)]
    pub probability: Option<f64>,
    /// Up to three limits that it may be if it is unknown, most probable first.
    #[serde(default)]
    pub candidates: Vec<Likely>,
    /// The observations, strongest first.
    pub evidence: Vec<Evidence>,
    /// The limit that applies once this one is removed; null if unknown.
    pub next: Option<Next>,
    /// What to change; null if there is nothing to change.
    pub remedy: Option<Remedy>,
    /// Data that is missing, if the answer is unknown or could be more certain.
    pub missing: Vec<Missing>,
}

/// How certain a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Right in at least half of the cases.
    Low,
    /// Right in at least four of five cases.
    Medium,
    /// Right in at least nineteen of twenty cases.
    High,
}

/// A possible limit and its probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Likely {
    /// The limit.
    pub limit: Limit,
    /// Its probability.
    pub probability: f64,
}

/// The limit that applies once another is removed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Next {
    /// The next limit.
    pub limit: Limit,
    /// The goodput that it allows, bit/s.
    pub goodput_bps: f64,
    /// Bytes in flight that each stream needs to reach it.
    pub needed_bytes: Option<f64>,
}

impl Finding {
    /// Creates a finding without cause, evidence or remedy; methods add them.
    pub fn new(limit: Limit, place: Place, confidence: Confidence) -> Self {
        Self {
            limit,
            cause: None,
            place,
            confidence,
            probability: None,
            candidates: Vec::new(),
            evidence: Vec::new(),
            next: None,
            remedy: None,
            missing: Vec::new(),
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<Option<Cause>>) -> Self {
        self.cause = cause.into();
        self
    }

    /// Adds evidence from a list or an `Option`.
    #[must_use]
    pub fn evidence(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// Sets the limit that applies once this one is removed.
    #[must_use]
    pub fn next(mut self, next: impl Into<Option<Next>>) -> Self {
        self.next = next.into();
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<Option<Remedy>>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Adds missing data from a list or an `Option`.
    #[must_use]
    pub fn missing(mut self, missing: impl IntoIterator<Item = Missing>) -> Self {
        self.missing.extend(missing);
        self
    }

    /// Returns the first evidence of this fact.
    pub fn observed(&self, fact: Fact) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| evidence.fact == fact)
    }

    /// Returns the further numbers of the first evidence of a fact, by name.
    pub fn figures<F: Figures>(&self) -> Option<F> {
        self.observed(F::FACT)?.figures()
    }
}

/// Reads findings and skips those in the format of another version of bdp, such as the sentences that older versions stored.
/// `bdp explain` derives findings again from the facts.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Finding>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Typed(Box<Finding>),
        Other(IgnoredAny),
    }
    let stored = Vec::<Stored>::deserialize(deserializer)?;
    Ok(stored
        .into_iter()
        .filter_map(|stored| match stored {
            Stored::Typed(finding) => Some(*finding),
            Stored::Other(_) => None,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        fn check<T: Copy + Serialize>(all: &[T], name: impl Fn(T) -> &'static str) {
            for &variant in all {
                assert_eq!(serde_json::to_value(variant).unwrap(), name(variant));
            }
        }
        check(Limit::ALL, Limit::name);
        check(Cause::ALL, Cause::name);
        check(Fact::ALL, Fact::name);
        check(Unit::ALL, Unit::name);
        check(At::ALL, At::name);
        check(Action::ALL, Action::name);
        check(Lack::ALL, Lack::name);
    }

    #[test]
    fn figures_are_stored_in_their_order_and_read_by_name() {
        let of_rate = fact::OfWindowRate {
            window: fact::Bytes(80_512.0),
            round_trip: crate::units::Nanos(24_600_000),
            carries: fact::Bps(26.18e6),
            streams: Some(4),
        };
        let evidence = Evidence::share(of_rate, 0.97);
        let json = serde_json::to_string(&evidence).unwrap();
        let with = r#""with":[{"value":80512.0,"unit":"bytes"},{"value":24600000.0,"unit":"ns"},{"value":26180000.0,"unit":"bps"},{"value":4.0,"unit":"count"}]"#;
        assert!(json.contains(with), "{json}");
        let read = |with: &str| {
            let json = format!(r#"{{"fact":"of_window_rate","value":0.97,"unit":"share","with":[{with}]}}"#);
            serde_json::from_str::<Evidence>(&json).unwrap()
        };
        let three = r#"{"value":80512.0,"unit":"bytes"},{"value":24600000.0,"unit":"ns"},{"value":26180000.0,"unit":"bps"}"#;
        assert_eq!(read(three).figures(), Some(fact::OfWindowRate { streams: None, ..of_rate }));
        assert_eq!(read(three).figures::<fact::OfFlightRate>(), None, "another fact");
        assert_eq!(read(r#"{"value":80512.0,"unit":"bytes"}"#).observed(), None, "two are absent");
        assert_eq!(read(&three.replace("ns", "bytes")).observed(), None, "of another unit");
        let names: Vec<&str> = Fact::OfWindowRate.figures().iter().map(|figure| figure.0).collect();
        assert_eq!(names, ["window", "round_trip", "carries", "streams"]);
    }

    #[test]
    fn typed_finding_is_read_back_and_sentences_of_older_versions_are_left_out() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Flow {
            #[serde(deserialize_with = "read")]
            findings: Vec<Finding>,
        }
        const WINDOW: fact::WindowFull = fact::WindowFull { window: None, carries: None, streams: None };
        let finding = Finding::new(Limit::ReceiveWindow, Place::receiver("ams1"), Confidence::High)
            .cause(Cause::RmemMaximum)
            .evidence([Evidence::share(WINDOW, 0.96).at_least(0.5).samples(96, 100)])
            .next(Next { limit: Limit::Ceiling, goodput_bps: 941e6, needed_bytes: Some(2.8e6) })
            .remedy(Remedy::new(Action::RaiseMaximum).setting("net.ipv4.tcp_rmem").host("ams1"))
            .missing([Missing::new(Lack::NicSpeed)]);
        let flow = Flow { findings: vec![finding] };
        let mut json = serde_json::to_value(&flow).unwrap();
        // Fields that the report adds do no harm.
        json["findings"][0]["summary"] = "limited by the receive window".into();
        assert_eq!(serde_json::from_value::<Flow>(json.clone()).unwrap(), flow);
        json["findings"].as_array_mut().unwrap().insert(
            0,
            serde_json::json!({
                "limit": "receive_window", "subject": "receive window of ams1", "confidence": "high",
                "summary": "limited by it", "evidence": ["1 MiB / 24.2 ms"], "remedy": null, "missing": [],
            }),
        );
        assert_eq!(serde_json::from_value::<Flow>(json).unwrap(), flow);
    }
}
