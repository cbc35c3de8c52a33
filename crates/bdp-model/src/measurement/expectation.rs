//! Expectations of a measurement, as typed: `to.goodput>=900M`, `rtt.idle.p95<=30ms`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::finding::threshold::SENT_AS_ASKED;
use crate::measurement::figure::{Figure, Figures, PingFigure, Unit, figure};
use crate::measurement::{Direction, Measurement};
use crate::probes::ping::Ping;
use crate::units::format_bps;

/// An expectation: a figure, a comparison and a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation<F = Figure> {
    /// The figure.
    pub figure: F,
    /// The comparison.
    pub operator: Operator,
    /// The value, in the figure's base unit.
    pub value: f64,
    /// The expectation as typed.
    pub text: String,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// `>=`.
    AtLeast,
    /// `<=`.
    AtMost,
    /// `>`.
    Above,
    /// `<`.
    Below,
}

/// Outcome of an expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// The expectation as typed.
    pub expectation: String,
    /// Name of the figure.
    pub figure: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Comparison operator.
    pub operator: Operator,
    /// Required value, in that unit.
    pub wanted: f64,
    /// Median over the runs; `None` if none measured it.
    pub found: Option<f64>,
    /// Whether it was met; false if the figure was not measured, or if it depends on a load that was not reached.
    pub met: bool,
    /// The datagram load that was requested but not reached, if the figure depends on it.
    #[serde(default)]
    pub not_offered: Option<NotOffered>,
}

impl Judgement {
    /// Whether it could not be judged: the figure was not measured, or not under the requested load.
    pub const fn is_open(&self) -> bool {
        !self.met && (self.found.is_none() || self.not_offered.is_some())
    }
}

/// A datagram load that the sender did not reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotOffered {
    /// Payload rate requested, all streams, bit/s.
    pub asked_bps: f64,
    /// Payload rate sent, bit/s.
    pub sent_bps: f64,
}

impl NotOffered {
    /// Returns the load of the run that fell furthest short of the requested rate in this direction.
    fn of(way: Direction, measurements: &[Measurement]) -> Option<Self> {
        let one = |measurement: &Measurement| {
            // Without a requested rate there is no shortfall.
            measurement.request.spec.udp.as_ref()?.rate_bps?;
            let direction = measurement.directions.iter().find(|d| d.direction == way)?;
            let udp = direction.udp.as_ref()?;
            let asked_bps = udp.asked_bps.filter(|asked| udp.sent_bps < SENT_AS_ASKED * asked)?;
            Some(Self { asked_bps, sent_bps: udp.sent_bps })
        };
        let whole = measurements.iter().filter(|measurement| measurement.error.is_none());
        whole.filter_map(one).min_by(|a, b| (a.sent_bps / a.asked_bps).total_cmp(&(b.sent_bps / b.asked_bps)))
    }
}

impl fmt::Display for Judgement {
    /// Writes `MET  to.goodput>=900M: 941 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lead = if self.met { "MET   " } else { "MISSED" };
        if let (Some(found), Some(load)) = (self.found, self.not_offered) {
            return write!(
                f,
                "{lead}  {}: {} under a smaller load than requested: {} of {} sent",
                self.expectation,
                self.unit.format(found),
                format_bps(load.sent_bps),
                format_bps(load.asked_bps)
            );
        }
        match self.found {
            Some(found) => write!(f, "{lead}  {}: {}", self.expectation, self.unit.format(found)),
            None => write!(
                f,
                "{lead}  {}: not measured, or too few samples for this percentile",
                self.expectation
            ),
        }
    }
}

/// An invalid expectation: what is wrong, where, and what would be valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expectation '{text}', column {column}: {mistake}")]
pub struct ExpectationError {
    /// The expectation as typed.
    pub text: String,
    /// Column of the mistake, from 1.
    pub column: usize,
    /// What is wrong, and what would be valid.
    pub mistake: String,
}

impl Operator {
    /// All operators; those of two characters first, because they begin with those of one.
    pub const ALL: [Self; 4] = [Self::AtLeast, Self::AtMost, Self::Above, Self::Below];

    /// Returns the operator as typed.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::Below => "<",
        }
    }

    fn holds(self, found: f64, wanted: f64) -> bool {
        match self {
            Self::AtLeast => found >= wanted,
            Self::AtMost => found <= wanted,
            Self::Above => found > wanted,
            Self::Below => found < wanted,
        }
    }
}

impl Expectation {
    /// Judges the median over the runs that did not fail. Traffic that was not sent cannot be lost or delayed: below the requested load only
    /// a lower bound of the goodput can be judged.
    pub fn judge(&self, measurements: &[Measurement]) -> Judgement {
        let judged = self.judge_value(figure(self.figure, measurements));
        let is_reached = matches!(self.figure, Figure::Goodput(_))
            && matches!(self.operator, Operator::AtLeast | Operator::Above);
        let not_offered = match self.figure.way() {
            Some(way) if !is_reached => NotOffered::of(way, measurements),
            _ => None,
        };
        Judgement { met: judged.met && not_offered.is_none(), not_offered, ..judged }
    }
}

impl Expectation<PingFigure> {
    /// Judges the results of the probes.
    pub fn judge(&self, ping: &Ping) -> Judgement {
        self.judge_value(self.figure.of(ping))
    }
}

impl<F: Figures> Expectation<F> {
    fn judge_value(&self, found: Option<f64>) -> Judgement {
        Judgement {
            expectation: self.text.clone(),
            figure: self.figure.to_string(),
            unit: self.figure.unit(),
            operator: self.operator,
            wanted: self.value,
            found,
            met: found.is_some_and(|found| self.operator.holds(found, self.value)),
            not_offered: None,
        }
    }
}

/// As typed.
impl<F> Serialize for Expectation<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, F: Figures> Deserialize<'de> for Expectation<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<F> fmt::Display for Expectation<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<F: Figures> FromStr for Expectation<F> {
    type Err = ExpectationError;

    fn from_str(text: &str) -> Result<Self, ExpectationError> {
        let mistake = |at: usize, mistake: String| ExpectationError {
            text: text.to_owned(),
            column: text[..at].chars().count() + 1,
            mistake,
        };
        let Some(at) = text.find(['<', '>', '=']) else {
            let wanted =
                "no comparison; write FIGURE>=VALUE with >=, <=, > or <, for example to.goodput>=900M";
            return Err(mistake(text.len(), wanted.to_owned()));
        };
        let operator = Operator::ALL
            .into_iter()
            .find(|operator| text[at..].starts_with(operator.sign()))
            .ok_or_else(|| mistake(at, "'=' is not a comparison; use >=, <=, > or <".to_owned()))?;
        let name = text[..at].trim();
        let begins = text[..at].len() - text[..at].trim_start().len();
        let figure = F::find(name)
            .ok_or_else(|| mistake(begins, format!("unknown figure '{name}'; {}", suggestion::<F>(name))))?;
        let after = at + operator.sign().len();
        let typed = text[after..].trim();
        let place = after + (text[after..].len() - text[after..].trim_start().len());
        let value = figure.unit().parse(typed).map_err(|error| mistake(place, error))?;
        Ok(Self { figure, operator, value, text: text.trim().to_owned() })
    }
}

/// Returns the figures with the most similar names, or how names are formed.
fn suggestion<F: Figures>(name: &str) -> String {
    let known: Vec<String> = F::all().iter().map(F::to_string).collect();
    let near = |is_near: &dyn Fn(&str) -> bool| -> Vec<String> {
        known.iter().filter(|known| is_near(known)).take(4).cloned().collect()
    };
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    // A name without its direction identifies the figure; otherwise the most similar ones are listed.
    let mut near_names = near(&|known| known.ends_with(&format!(".{name}")));
    if near_names.is_empty() {
        near_names = near(&|known| {
            distance(known, name) <= 2 || !name.is_empty() && distance(&last(name), &last(known)) <= 1
        });
    }
    let near = near_names;
    if near.is_empty() {
        format!("there are {}", F::THERE_ARE)
    } else {
        format!("did you mean {}?", near.join(", "))
    }
}

/// Returns the Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
