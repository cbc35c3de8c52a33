//! Errors in a scenario: what is wrong, where, and what is expected.

use std::fmt;
use std::sync::Arc;

use bdp_model::units::UnitError;

/// The result of reading a scenario.
pub type Result<T, E = ScenarioError> = std::result::Result<T, E>;

/// An error in a scenario or in a request for it. Prints as `s.toml:12: link.delay = "41": expected ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioError {
    /// Name of the file in messages.
    pub file: String,
    /// Line of the error, from 1; `None` if it is not in the file (an override, a missing table).
    pub line: Option<usize>,
    /// Origin of the value if it is not in the file's own tables: `sweep of flow.window`, `--set flow.omit=9s`.
    pub by: Option<Arc<str>>,
    /// The error.
    pub problem: Box<Problem>,
}

impl ScenarioError {
    /// Sets the file name; a bare scenario name gets its extension.
    pub(crate) fn in_file(mut self, name: &str) -> Self {
        let is_path = name.len() > 5 && name.to_ascii_lowercase().ends_with(".toml");
        self.file = if is_path { name.to_owned() } else { format!("{name}.toml") };
        self
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(by) = &self.by {
            write!(f, "{by}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for ScenarioError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

/// An error, without its position.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Invalid TOML.
    #[error("not TOML: {message}")]
    Syntax {
        /// The parser's message.
        message: String,
    },
    /// An unknown key of a table.
    #[error("unknown key '{key}' in {table}{hint}; keys here: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The table: `[[link]]`.
        table: String,
        /// `, did you mean 'delay'?`, or empty.
        hint: String,
        /// The known keys of the table.
        known: String,
    },
    /// A required key or table is missing.
    #[error("{what} is missing: {expected}")]
    Missing {
        /// The key or table.
        what: String,
        /// What to write.
        expected: String,
    },
    /// A value has the wrong type or is out of range.
    #[error("{at} = {found}: expected {expected}")]
    Unexpected {
        /// Path of the parameter.
        at: String,
        /// The value.
        found: String,
        /// Expected value.
        expected: String,
    },
    /// A text is not a valid quantity.
    #[error("{at}: {source}; expected {expected}")]
    Quantity {
        /// Path of the parameter.
        at: String,
        /// Why it cannot be read.
        source: UnitError,
        /// Expected value.
        expected: String,
    },
    /// Two values contradict each other.
    #[error("{at} = {found} conflicts with {other}: {rule}")]
    Contradiction {
        /// Path of the parameter.
        at: String,
        /// Its value.
        found: String,
        /// The other parameter with its value.
        other: String,
        /// The rule that they violate.
        rule: String,
    },
    /// A host does not exist in the scenario.
    #[error("{at}: unknown host '{host}'{hint}; hosts: {known}")]
    UnknownHost {
        /// Path of the parameter that names it.
        at: String,
        /// Name of the host.
        host: String,
        /// `, did you mean 'near'?`, or empty.
        hint: String,
        /// The hosts of the scenario.
        known: String,
    },
    /// No path of links and routers connects the hosts of a flow.
    #[error("{at}: no path from '{from}' to '{to}'; connect them by links and routers ({links}){hint}")]
    NoWay {
        /// The flow.
        at: String,
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// The existing links.
        links: String,
        /// `; router = true in [hosts.r1] would`, or empty.
        hint: String,
    },
    /// Routes form a loop, or a path is too long.
    #[error("{at}: {message}; {rule}")]
    Routing {
        /// Path of the parameter that needs the route.
        at: String,
        /// Description of the route.
        message: String,
        /// The rule that it violates.
        rule: &'static str,
    },
    /// A path does not lead to a parameter.
    #[error("no parameter '{path}': {reason}")]
    NoParameter {
        /// The path.
        path: String,
        /// The part that was not found, and the existing ones.
        reason: String,
    },
    /// A parameter is set twice.
    #[error("{what} is set twice, here and {other}")]
    SetTwice {
        /// The parameter.
        what: String,
        /// The other place where it is set.
        other: String,
    },
    /// No case meets the `when` of a rule.
    #[error("no case matches this 'when', so {rule} never applies")]
    NeverApplies {
        /// `[[expect]]` or `[[published]]`.
        rule: &'static str,
    },
    /// The plan has too many cases.
    #[error("{cases} cases ({points} points x {repetitions} repetitions): at most {most}")]
    TooManyCases {
        /// Total number of cases.
        cases: u64,
        /// Number of points of the sweep.
        points: u64,
        /// Repetitions per point.
        repetitions: u32,
        /// The limit.
        most: u64,
    },
    /// A file, table or text is too long.
    #[error("{what} has {found}: at most {most}")]
    TooLong {
        /// The file, table or text.
        what: String,
        /// Its length, with a unit.
        found: String,
        /// Maximum length, with a unit.
        most: String,
    },
}

/// Returns `, did you mean '...'?` with the closest of `known`; empty if none is close.
pub(crate) fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lower = given.to_ascii_lowercase();
    known
        .into_iter()
        .map(|k| (distance(&lower, &k.to_ascii_lowercase()), k))
        .min()
        .filter(|&(d, k)| d <= (k.len().max(3) / 3).min(3))
        .map_or_else(String::new, |(_, k)| format!(", did you mean '{k}'?"))
}

/// Returns the optimal string alignment distance; texts of more than 40 bytes are never close.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 40 || b.len() > 40 {
        return usize::MAX;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let substitution = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = substitution.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised_and_other_words_are_not() {
        let keys = ["rate", "delay", "loss", "limit", "window_field_max"];
        assert_eq!(hint("dealy", keys), ", did you mean 'delay'?");
        assert_eq!(hint("Rat", keys), ", did you mean 'rate'?");
        assert_eq!(hint("window_max", keys), "");
        assert_eq!(hint("colour", keys), "");
        assert_eq!(hint(&"x".repeat(5000), keys), "");
    }
}
