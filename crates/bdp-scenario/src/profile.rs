//! Link profiles by name. Each is a file that states the source of its figures.

use crate::error::{Problem, Result, hint};
use crate::tree::{self, Table, Value};

/// A link profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its name, as in `profile` of a link.
    pub name: &'static str,
    /// Text of its file.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(Profile {
            name: $name,
            text: include_str!(concat!("../../../profiles/", $name, ".toml")),
        }),+]
    };
}

/// All profiles, from the edge of the network to its core.
pub const PROFILES: &[Profile] = files![
    "dsl",
    "cable",
    "lte",
    "5g",
    "wifi",
    "geo-satellite",
    "leo-satellite",
    "transatlantic",
    "data-centre",
];

impl Profile {
    /// Returns its one-line title.
    pub fn title(&self) -> String {
        self.words("title")
    }

    /// Returns how its figures were chosen.
    pub fn about(&self) -> String {
        self.words("about")
    }

    /// Returns the source of its figures.
    pub fn source(&self) -> String {
        self.words("source")
    }

    /// Returns the year of the source.
    pub fn date(&self) -> String {
        self.words("date")
    }

    /// Returns its link keys as in the file.
    pub fn link_text(&self) -> &'static str {
        self.text.split_once("[link]\n").map_or("", |(_, link)| link)
    }

    fn words(&self, key: &str) -> String {
        // An unreadable file is a bug that tests detect.
        let root = tree::parse(self.text).unwrap_or_default();
        let text = root.get(key).and_then(|node| node.as_text(key, "text").ok()).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Returns the table of a link, completed with the keys of its profile if it names one.
pub(crate) fn with_profile(own: &Table, at: &str) -> Result<(Option<String>, Table)> {
    let Some(node) = own.get("profile") else { return Ok((None, own.clone())) };
    let at = format!("{at}.profile");
    let expected = || PROFILES.iter().map(|p| format!("\"{}\"", p.name)).collect::<Vec<_>>().join(", ");
    let name = node.as_text(&at, &expected())?;
    let Some(profile) = PROFILES.iter().find(|profile| profile.name == name) else {
        let hint = hint(name, PROFILES.iter().map(|profile| profile.name));
        return Err(node.unexpected(&at, format!("{}{hint}", expected())));
    };
    let mut merged = match tree::parse(profile.text)?.get("link").map(|node| node.value.clone()) {
        Some(Value::Table(table)) => table,
        _ => return Err(node.origin.error(Problem::Missing { what: at, expected: "[link]".into() })),
    };
    for entry in own.entries.iter().filter(|entry| entry.key != "profile") {
        let direction = matches!(entry.key.as_str(), "forward" | "reverse");
        match (merged.get_mut(&entry.key).map(|node| &mut node.value), &entry.node.value) {
            (Some(Value::Table(theirs)), Value::Table(own)) if direction => {
                own.entries.iter().for_each(|entry| theirs.set(&entry.key, entry.node.clone()));
            }
            _ => {
                // Values for both directions in the link take precedence over the profile's value for one.
                for direction in ["forward", "reverse"] {
                    if let Some(Value::Table(theirs)) = merged.get_mut(direction).map(|node| &mut node.value)
                    {
                        theirs.entries.retain(|theirs| theirs.key != entry.key);
                    }
                }
                merged.set(&entry.key, entry.node.clone());
            }
        }
    }
    Ok((Some(name.to_owned()), merged))
}
