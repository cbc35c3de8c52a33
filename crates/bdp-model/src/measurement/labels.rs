//! Labels of a run given by the user: names with values, in addition to its plain label.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Names that metrics use for other purposes.
const TAKEN: [&str; 17] = [
    "case",
    "command",
    "direction",
    "expectation",
    "host",
    "instance",
    "job",
    "label",
    "le",
    "limit",
    "outcome",
    "port",
    "program",
    "quantile",
    "remote",
    "scenario",
    "version",
];

/// Labels by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// No labels.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns names and values, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds a label; returns an error if the name is in use or reserved by metrics.
    pub fn add(&mut self, Label { name, value }: Label) -> Result<(), String> {
        if self.0.contains_key(&name) {
            return Err(format!("label '{name}' is given twice; give one value"));
        }
        self.0.insert(name, value);
        Ok(())
    }
}

impl FromIterator<Label> for Labels {
    /// Keeps the last value of each name.
    fn from_iter<T: IntoIterator<Item = Label>>(labels: T) -> Self {
        Self(labels.into_iter().map(|Label { name, value }| (name, value)).collect())
    }
}

impl fmt::Display for Labels {
    /// Writes `rack=7 site=ams`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&all.join(" "))
    }
}

/// A label: a name and a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    name: String,
    value: String,
}

impl Label {
    /// Creates a label, or returns what is wrong with it. The name must be valid for Prometheus.
    pub fn new(name: &str, value: &str) -> Result<Self, String> {
        let begins =
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !name.starts_with("__");
        if !begins || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "'{name}' is not a label name; use letters, digits and _, not starting with a digit, for example site=ams"
            ));
        }
        if TAKEN.contains(&name) {
            return Err(format!("label '{name}' is a metric name of bdp; choose another name"));
        }
        if value.is_empty() || value.chars().count() > 100 || value.chars().any(char::is_control) {
            return Err(format!("label '{name}' needs a value of 1 to 100 printable characters"));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_metrics_take() {
        let mut labels = Labels::NONE;
        labels.add(Label::new("site", "ams 1").unwrap()).unwrap();
        labels.add(Label::new("_rack2", "a=b").unwrap()).unwrap();
        assert_eq!(labels.to_string(), "_rack2=a=b site=ams 1");
        assert!(labels.add(Label::new("site", "fra").unwrap()).unwrap_err().contains("given twice"));
        for (name, value, said) in [
            ("2nd", "x", "not starting with a digit"),
            ("__name__", "x", "is not a label name"),
            ("a-b", "x", "letters, digits and _"),
            ("", "x", "is not a label name"),
            ("host", "x", "a metric name of bdp"),
            ("direction", "x", "a metric name of bdp"),
            ("site", "", "1 to 100 printable"),
            ("site", "a\nb", "1 to 100 printable"),
        ] {
            let error = Label::new(name, value).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let read: Labels = serde_json::from_str(r#"{"site":"ams"}"#).unwrap();
        assert_eq!(
            (read.get("site"), serde_json::to_string(&read).unwrap().as_str()),
            (Some("ams"), r#"{"site":"ams"}"#)
        );
    }
}
