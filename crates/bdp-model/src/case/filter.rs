//! Which cases a filter selects.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::case::CaseSpec;

impl CaseSpec {
    /// Whether a filter selects the case: its whole key, or words that must all match, each `param=value`,
    /// `#repetition` or a part of the key. `param` may be the last part of a swept path.
    pub fn matches(&self, filter: &str) -> bool {
        matches(&self.params, &self.key(), filter)
    }
}

/// Normalises the spelling of a path: `flow[0].window` becomes `flow.0.window`.
pub fn normalise(path: &str) -> String {
    path.trim().replace('[', ".").replace(']', "")
}

/// Like [`CaseSpec::matches`], for a case with these parameters and this key.
pub fn matches(params: &BTreeMap<String, Json>, key: &str, filter: &str) -> bool {
    let filter = filter.trim();
    // A value may contain spaces, so the whole filter is tried before its words.
    key == filter
        || parameter_matches(params, filter) == Some(true)
        || filter.split_whitespace().all(|word| match word.strip_prefix('#') {
            Some(repetition) => key.rsplit('#').next() == Some(repetition),
            None => parameter_matches(params, word).unwrap_or_else(|| key.contains(word)),
        })
}

/// Whether `param=value` matches; `None` if the text does not have that form. Values must match in full, as `window=4` would
/// otherwise select 4344 too.
fn parameter_matches(params: &BTreeMap<String, Json>, text: &str) -> Option<bool> {
    let (name, wanted) = text.split_once('=')?;
    let name = normalise(name);
    let named =
        |path: &str| path == name || path.strip_suffix(name.as_str()).is_some_and(|p| p.ends_with('.'));
    let equal = |value: &Json| match value {
        Json::String(s) => s == wanted.trim(),
        // In the form that the key prints: to serde_json a number differs from its text.
        other => {
            let printed = other.to_string();
            printed == wanted.trim()
        }
    };
    Some(params.iter().any(|(path, value)| named(path) && equal(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_whole_values_and_parts_of_keys() {
        let params: BTreeMap<String, Json> = [
            ("flow.window".to_owned(), Json::from("64K")),
            ("hosts.far.sysctls.net.ipv4.tcp_rmem".to_owned(), Json::from("4096 8192 8192")),
        ]
        .into();
        let key = "flow.window=64K hosts.far.sysctls.net.ipv4.tcp_rmem=4096 8192 8192 #2";
        for yes in [
            key,
            "window=64K",
            "flow.window=64K",
            "64K",
            "64",
            "#2",
            "window=64K #2",
            "tcp_rmem=4096 8192 8192",
            "",
        ] {
            assert!(matches(&params, key, yes), "{yes}");
        }
        for no in ["window=64", "window=4K", "#1", "128K", "window=64K #1", "dow=64K"] {
            assert!(!matches(&params, key, no), "{no}");
        }
    }
}
