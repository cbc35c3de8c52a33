//! Reads and checks a scenario file, ready for planning.

use crate::decode::Traces;
use crate::error::{Problem, Result};
use crate::path::flatten;
use crate::read::check_keys;
use crate::rule::Rules;
use crate::sweep::{Point, Sweep};
use crate::switch;
use crate::tree::{self, Node, Origin, Table, Value};

/// A scenario that has been read and checked.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The file's stem in lower case, or the path that was given.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// What is reproduced, how, and how the source was interpreted.
    pub about: String,
    /// Source of the experiment.
    pub source: String,
    /// Seed from which the seed of each case is derived; 1 if the file sets none.
    pub seed: u64,
    /// Repetitions per point.
    pub repetitions: u32,
    /// Notes on the published figures.
    pub notes: Vec<String>,
    pub(crate) text: String,
    pub(crate) root: Table,
    pub(crate) sweep: Sweep,
    pub(crate) rules: Rules,
    /// Traces by the names that the scenario uses.
    pub(crate) traces: Traces,
}

const ROOT_KEYS: [&str; 19] = [
    "title",
    "about",
    "source",
    "clock",
    "stack",
    "family",
    "seed",
    "repetitions",
    "idle",
    "probe",
    "hosts",
    "link",
    "switch",
    "flow",
    "traffic",
    "sweep",
    "point",
    "published",
    "expect",
];

impl Scenario {
    /// Returns the traces that the scenario names.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the source published, each with the parameters that it is about: `when`, `goodput_bps` (one number, or lowest
    /// and highest), `note` and `rows`.
    pub fn published(&self) -> Vec<serde_json::Value> {
        let points = self.sweep.points.iter().filter_map(Point::published_json);
        points.chain(self.rules.published.iter().map(|rule| rule.value.to_json())).collect()
    }

    /// Reads everything that the cases have in common, but no case.
    pub(crate) fn read(name: &str, text: &str) -> Result<Self> {
        let mut root = tree::parse(text)?;
        check_keys(&root, "the file", &ROOT_KEYS)?;
        normalise(&mut root)?;
        let missing = || {
            let expected = "a one-line description of the scenario".to_owned();
            Origin::default().error(Problem::Missing { what: "title".into(), expected })
        };
        let title = root.get("title").ok_or_else(missing)?;
        let words = |key: &str| -> Result<String> {
            root.get(key).map_or(Ok(String::new()), |n| Ok(n.as_text(key, "text")?.trim().to_owned()))
        };
        let sweep = Sweep::read(&root)?;
        let rules = Rules::read(&root, &sweep)?;
        Ok(Self {
            name: name.to_owned(),
            title: check_title(title)?,
            about: words("about")?,
            source: words("source")?,
            seed: root.get("seed").map_or(Ok(1), seed)?,
            repetitions: root.get("repetitions").map_or(Ok(1), repetitions)?,
            notes: rules.notes.clone(),
            text: text.to_owned(),
            sweep,
            rules,
            traces: Traces::new(),
            root,
        })
    }
}

fn check_title(node: &Node) -> Result<String> {
    let expected = "one line of 1 to 200 characters";
    let title = node.as_text("title", expected)?.trim();
    let one_line = !title.is_empty() && title.chars().count() <= 200 && !title.chars().any(char::is_control);
    if one_line { Ok(title.to_owned()) } else { Err(node.unexpected("title", expected)) }
}

pub(crate) fn seed(node: &Node) -> Result<u64> {
    node.as_count("seed", 0..=u64::MAX, "a whole number, 0 or more")
}

pub(crate) fn repetitions(node: &Node) -> Result<u32> {
    node.as_count("repetitions", 1..=10_000, "a whole number, 1 to 10000").map(|n| n as u32)
}

/// Normalises two spellings: `[link]` becomes `[[link]]` with one entry, `net.ipv4.x` in a sysctls table becomes one key.
fn normalise(root: &mut Table) -> Result<()> {
    for key in ["link", "flow", "traffic"] {
        if let Some(node) = root.get_mut(key)
            && matches!(node.value, Value::Table(_))
        {
            let only = node.clone();
            node.value = Value::Array(vec![only]);
        }
    }
    switch::expand(root)?;
    let Some(Value::Table(hosts)) = root.get_mut("hosts").map(|n| &mut n.value) else { return Ok(()) };
    for host in &mut hosts.entries {
        let Value::Table(host) = &mut host.node.value else { continue };
        let Some(node) = host.get_mut("sysctls") else { continue };
        let Value::Table(sysctls) = &mut node.value else { continue };
        let mut flat = Table::default();
        for (name, node) in flatten(sysctls, |_| false)? {
            flat.entries.push(tree::Entry { key: name, origin: node.origin.clone(), node });
        }
        *sysctls = flat;
    }
    Ok(())
}
