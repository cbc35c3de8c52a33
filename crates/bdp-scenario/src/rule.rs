//! Published and expected results, each for the cases that its `when` selects.

use crate::error::{Problem, Result, ScenarioError};
use crate::measure::read;
use crate::path::{flatten, get};
use crate::published::{figure, rows};
use crate::read::check_keys;
use crate::sweep::Sweep;
use crate::tree::{Node, Origin, Table, Value};
use bdp_model::case::{Expect, Published, PublishedRow};
use bdp_model::sweep::parameter::{Kind, Parameter, Quantity};
use bdp_model::units::{Probability, Rate};

/// `[[published]]` and `[[expect]]`; of each, the first entry whose `when` is met applies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub published: Vec<Rule<Listed>>,
    pub expect: Vec<Rule<Expect>>,
    /// Notes of the published entries.
    pub notes: Vec<String>,
}

/// Results that the source published for the cases of a rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed {
    pub goodput: Option<Published>,
    pub rows: Vec<PublishedRow>,
    note: Option<String>,
    /// Its conditions as the file has them, by path.
    when: serde_json::Map<String, serde_json::Value>,
}

/// A value that applies to the cases that meet a condition.
#[derive(Debug, Clone)]
pub(crate) struct Rule<T> {
    pub kind: &'static str,
    origin: Origin,
    conditions: Vec<Condition>,
    pub value: T,
}

impl<T> Rule<T> {
    /// Whether a case meets the `when`; `lookup` returns the node at a path in that case.
    pub(crate) fn applies<'a>(&self, lookup: impl Fn(&str) -> Option<&'a Node>) -> bool {
        self.conditions.iter().all(|c| lookup(&c.path).is_some_and(|node| c.allows(node)))
    }

    /// Returns the error for a rule that applies to no case.
    pub(crate) fn never_applies(&self) -> ScenarioError {
        self.origin.error(Problem::NeverApplies { rule: self.kind })
    }
}

impl Listed {
    /// For whoever lists scenarios.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "when": self.when, "goodput_bps": self.goodput, "note": self.note, "rows": self.rows })
    }
}

impl Rules {
    /// Reads `published` and `expect`; the sweep determines the paths that a `when` may name.
    pub(crate) fn read(root: &Table, sweep: &Sweep) -> Result<Self> {
        let mut rules = Self::default();
        for node in tables(root, "published") {
            let table = node.as_table("published")?;
            check_keys(table, "[[published]]", &["goodput", "note", "rows", "when"])?;
            let note = table.get("note").map(|n| n.as_text("published.note", "text").map(str::to_owned));
            let value = Listed {
                goodput: table.get("goodput").map(|n| figure(n, "published.goodput")).transpose()?,
                rows: table.get("rows").map_or(Ok(Vec::new()), |n| rows(n, "published.rows"))?,
                note: note.transpose()?,
                when: when(table)?.into_iter().map(|(path, node)| (path, node.json())).collect(),
            };
            rules.notes.extend(value.note.clone());
            let conditions = conditions(table, root, sweep)?;
            rules.published.push(Rule {
                kind: "[[published]]",
                origin: node.origin.clone(),
                conditions,
                value,
            });
        }
        for node in tables(root, "expect") {
            let table = node.as_table("expect")?;
            let value = expectation(table)?;
            let conditions = conditions(table, root, sweep)?;
            rules.expect.push(Rule { kind: "[[expect]]", origin: node.origin.clone(), conditions, value });
        }
        Ok(rules)
    }
}

fn tables<'a>(root: &'a Table, key: &str) -> Vec<&'a Node> {
    match root.get(key).map(|n| (&n.value, n)) {
        None => Vec::new(),
        Some((Value::Array(all), _)) => all.iter().collect(),
        Some((_, n)) => vec![n],
    }
}

fn expectation(table: &Table) -> Result<Expect> {
    check_keys(table, "[[expect]]", &["model_within", "goodput_min", "goodput_max", "when"])?;
    let rate = |key: &str| -> Result<Option<u64>> {
        let Some(n) = table.get(key) else { return Ok(None) };
        let rate: Rate = n.as_quantity(&format!("expect.{key}"), "a bit rate such as \"885M\"")?;
        Ok(Some(rate.as_bps()))
    };
    let model_within = match table.get("model_within") {
        Some(n) => {
            let at = "expect.model_within";
            let expected = "a tolerance above 0, such as \"5%\"";
            let tolerance: Probability = n.as_quantity(at, expected)?;
            if tolerance.fraction() <= 0.0 {
                return Err(n.unexpected(at, expected));
            }
            Some(tolerance)
        }
        None => None,
    };
    let (goodput_min_bps, goodput_max_bps) = (rate("goodput_min")?, rate("goodput_max")?);
    if let (Some(min), Some(max), Some(n)) = (goodput_min_bps, goodput_max_bps, table.get("goodput_max"))
        && min > max
    {
        return Err(n.origin.error(Problem::Contradiction {
            at: "expect.goodput_max".into(),
            found: n.describe(),
            other: format!("a goodput_min of {}", Rate::bps(min)),
            rule: "the minimum must not exceed the maximum".into(),
        }));
    }
    Ok(Expect { model_within, goodput_min_bps, goodput_max_bps })
}

/// One line of a `when`.
#[derive(Debug, Clone)]
struct Condition {
    path: String,
    parameter: Parameter,
    any_of: Vec<Allowed>,
}

#[derive(Debug, Clone)]
enum Allowed {
    /// An equal quantity or word.
    Value(Node),
    /// A range that includes both ends; a missing end is open.
    Range(Option<Quantity>, Option<Quantity>),
}

impl Condition {
    fn allows(&self, node: &Node) -> bool {
        let value = read(&self.parameter, node);
        self.any_of.iter().any(|allowed| match allowed {
            Allowed::Value(wanted) => match (read(&self.parameter, wanted), value) {
                // Two spellings of one quantity differ at most by rounding.
                (Some(a), Some(b)) => a.is_about(b),
                _ => wanted.plain().eq_ignore_ascii_case(&node.plain()),
            },
            Allowed::Range(low, high) => {
                value.is_some_and(|v| low.is_none_or(|l| v >= l) && high.is_none_or(|h| v <= h))
            }
        })
    }
}

/// What `when` names, and its values.
fn when(table: &Table) -> Result<Vec<(String, Node)>> {
    let Some(when) = table.get("when") else { return Ok(Vec::new()) };
    flatten(when.as_table("when")?, |t: &Table| t.get("every").is_some())
}

fn conditions(table: &Table, root: &Table, sweep: &Sweep) -> Result<Vec<Condition>> {
    when(table)?
        .into_iter()
        .map(|(path, node)| {
            if !sweep.varies(&path) && get(root, &path).is_none() {
                let reason = "'when' names it, but it is neither swept nor set in this file".to_owned();
                return Err(node.origin.error(Problem::NoParameter { path, reason }));
            }
            let parameter = Parameter::at(&path);
            let any_of = match &node.value {
                Value::Array(all) => {
                    all.iter().map(|n| allowed(n, &path, &parameter)).collect::<Result<_>>()?
                }
                _ => vec![allowed(&node, &path, &parameter)?],
            };
            Ok(Condition { path, parameter, any_of })
        })
        .collect()
}

fn allowed(node: &Node, path: &str, parameter: &Parameter) -> Result<Allowed> {
    let Value::Text(text) = &node.value else { return Ok(Allowed::Value(node.clone())) };
    let (Some((low, high)), true) = (text.split_once(".."), parameter.kind != Kind::Word) else {
        return Ok(Allowed::Value(node.clone()));
    };
    let expected = "a range such as \"4K..64K\", \"..64K\" or \"64K..\" in the parameter's unit";
    let end = |text: &str| -> Result<Option<Quantity>> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        parameter.read(text).map(Some).ok_or_else(|| node.unexpected(&format!("when.{path}"), expected))
    };
    let (low, high) = (end(low)?, end(high)?);
    if low.is_none() && high.is_none() || low.zip(high).is_some_and(|(l, h)| l > h) {
        return Err(node.unexpected(&format!("when.{path}"), expected));
    }
    Ok(Allowed::Range(low, high))
}
