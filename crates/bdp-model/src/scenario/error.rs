//! What can be wrong with a scenario, where, and what would have been right.

use std::fmt;
use std::sync::Arc;

use crate::units::UnitError;

/// What reading a scenario comes to.
pub type Result<T, E = ScenarioError> = std::result::Result<T, E>;

/// A mistake in a scenario or in what was asked of it. Prints as `s.toml:12: link.delay = "41": expected ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioError {
    /// The file as messages name it.
    pub file: String,
    /// The line of the mistake, from 1; `None` where it is not in the file (an override, a missing table).
    pub line: Option<usize>,
    /// What put the value there, where the file's own tables did not: `sweep of flow.window`, `--set flow.omit=9s`.
    pub by: Option<Arc<str>>,
    /// The mistake.
    pub problem: Box<Problem>,
}

impl ScenarioError {
    /// Names the file; a bare scenario name gets its extension.
    pub(super) fn in_file(mut self, name: &str) -> Self {
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

/// A mistake, without its place.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Not TOML.
    #[error("not TOML: {message}")]
    Syntax {
        /// The parser's words.
        message: String,
    },
    /// A key that the table does not have.
    #[error("unknown key '{key}' in {table}{hint}; keys here: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The table, `[[link]]`.
        table: String,
        /// `, did you mean 'delay'?`, or nothing.
        hint: String,
        /// The keys that the table has.
        known: String,
    },
    /// Something that must be there is not.
    #[error("{what} is missing: {expected}")]
    Missing {
        /// The key or table.
        what: String,
        /// What to write.
        expected: String,
    },
    /// A value of the wrong type, or out of range.
    #[error("{at} = {found}: expected {expected}")]
    Unexpected {
        /// The parameter's path.
        at: String,
        /// What was found.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// Text that is not the quantity.
    #[error("{at}: {source}; expected {expected}")]
    Quantity {
        /// The parameter's path.
        at: String,
        /// Why it could not be read.
        source: UnitError,
        /// What would have been right.
        expected: String,
    },
    /// Two things that contradict each other.
    #[error("{at} = {found} conflicts with {other}: {rule}")]
    Contradiction {
        /// The parameter's path.
        at: String,
        /// Its value.
        found: String,
        /// The other parameter and its value.
        other: String,
        /// What must hold.
        rule: String,
    },
    /// A host that is not in the scenario.
    #[error("{at}: unknown host '{host}'{hint}; hosts: {known}")]
    UnknownHost {
        /// Where it was named.
        at: String,
        /// The name.
        host: String,
        /// `, did you mean 'near'?`, or nothing.
        hint: String,
        /// The hosts of the scenario.
        known: String,
    },
    /// A flow between hosts that no links and routers join.
    #[error("{at}: no path from '{from}' to '{to}'; connect them by links and routers ({links}){hint}")]
    NoWay {
        /// The flow.
        at: String,
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// The links there are.
        links: String,
        /// `; router = true in [hosts.r1] would`, or nothing.
        hint: String,
    },
    /// Routes that lead a packet in a circle, or further than it may go.
    #[error("{at}: {message}; {rule}")]
    Routing {
        /// What needs the path.
        at: String,
        /// The path, in words.
        message: String,
        /// What must hold.
        rule: &'static str,
    },
    /// A path that leads to no parameter.
    #[error("no parameter '{path}': {reason}")]
    NoParameter {
        /// The path.
        path: String,
        /// What was looked for in vain, and what there is.
        reason: String,
    },
    /// The same thing is said twice.
    #[error("{what} is set twice, here and {other}")]
    SetTwice {
        /// The parameter.
        what: String,
        /// The other place.
        other: String,
    },
    /// A rule whose `when` no case meets.
    #[error("no case matches this 'when', so {rule} never applies")]
    NeverApplies {
        /// `[[expect]]` or `[[published]]`.
        rule: &'static str,
    },
    /// More cases than a run can hold.
    #[error("{cases} cases ({points} points x {repetitions} repetitions): at most {most}")]
    TooManyCases {
        /// All of them.
        cases: u64,
        /// Points of the sweep.
        points: u64,
        /// Repetitions of each.
        repetitions: u32,
        /// The limit.
        most: u64,
    },
    /// A file, table or text that is too long to be a scenario.
    #[error("{what} has {found}: at most {most}")]
    TooLong {
        /// What it is.
        what: String,
        /// Its length with a unit.
        found: String,
        /// The limit with a unit.
        most: String,
    },
}

/// `, did you mean '...'?` for the closest of `known`, or nothing where none is close.
pub(super) fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lower = given.to_ascii_lowercase();
    known
        .into_iter()
        .map(|k| (distance(&lower, &k.to_ascii_lowercase()), k))
        .min()
        .filter(|&(d, k)| d <= (k.len().max(3) / 3).min(3))
        .map_or_else(String::new, |(_, k)| format!(", did you mean '{k}'?"))
}

/// Optimal string alignment distance; texts beyond 40 bytes are no typing error of a key.
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
