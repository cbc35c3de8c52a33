//! A scenario under construction.

use thiserror::Error;

/// An imported scenario, and what was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The scenario as TOML.
    pub text: String,
    /// What could not be imported, one line each.
    pub left_out: Vec<String>,
}

/// Why an import failed, in one line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ImportError(String);

impl ImportError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Keys of a direction with their values as TOML, in order of addition.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<(&'static str, String)>);

impl Keys {
    pub(super) fn set(&mut self, key: &'static str, value: String) {
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| *name != key);
    }

    pub(super) const fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| *name == key)
    }
}

/// The two directions, and what could not be imported.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) directions: [Keys; 2],
    pub(super) left_out: Vec<String>,
}

impl Draft {
    pub(super) fn finish(self, title: &str) -> Imported {
        let mut text = format!("title = \"{title}\"\n\n[[link]]\nbetween = [\"near\", \"far\"]\n");
        for (name, Keys(keys)) in ["forward", "reverse"].into_iter().zip(&self.directions) {
            if !keys.is_empty() {
                text.push_str(&format!("\n[link.{name}]\n"));
            }
            for (key, value) in keys {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        text.push_str("\n[[flow]]\nfrom = \"near\"\nto = \"far\"\nduration = \"10s\"\n");
        Imported { text, left_out: self.left_out }
    }
}

/// Quotes text as a TOML string.
pub(super) fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.chars().filter(|c| !c.is_control()).collect::<String>())
}
