//! A TOML file as a tree whose nodes know their origin, so that errors can name the line.

use std::sync::Arc;

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Problem, Result, ScenarioError};

/// The origin of a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Origin {
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// What set the value, if not the file's own tables.
    pub by: Option<Arc<str>>,
}

impl Origin {
    pub(crate) fn error(&self, problem: Problem) -> ScenarioError {
        ScenarioError {
            file: String::new(),
            line: self.line,
            by: self.by.clone(),
            problem: Box::new(problem),
        }
    }
}

/// A value and its origin.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub origin: Origin,
    pub value: Value,
}

/// A TOML value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// Dates have no meaning in a scenario; kept as text for messages.
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Entries in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// One key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: String,
    pub origin: Origin,
    pub node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.node)
    }

    /// Sets or replaces a value.
    pub(crate) fn set(&mut self, key: &str, node: Node) {
        match self.get_mut(key) {
            Some(old) => *old = node,
            None => {
                self.entries.push(Entry { key: key.to_owned(), origin: node.origin.clone(), node });
            }
        }
    }
}

impl Node {
    /// Returns the value as shown in messages, shortened.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Text(t) if t.chars().count() > 60 => {
                format!("\"{}...\"", t.chars().take(57).collect::<String>().escape_debug())
            }
            Value::Text(t) => format!("\"{}\"", t.escape_debug()),
            Value::Integer(i) => i.to_string(),
            Value::Float(f) => format!("{f:?}"),
            Value::Boolean(b) => b.to_string(),
            Value::Datetime(d) => format!("{d} (a date)"),
            Value::Array(a) => format!("a list of {}", a.len()),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// Returns the value as written, without quotes if it is text or a number.
    pub(crate) fn plain(&self) -> String {
        match &self.value {
            Value::Text(t) => t.clone(),
            _ => self.json().to_string(),
        }
    }

    /// Returns the value as JSON; a number without JSON form becomes text.
    pub(crate) fn json(&self) -> Json {
        match &self.value {
            Value::Text(t) | Value::Datetime(t) => Json::from(t.as_str()),
            Value::Integer(i) => Json::from(*i),
            Value::Float(f) => {
                serde_json::Number::from_f64(*f).map_or_else(|| Json::from(f.to_string()), Json::Number)
            }
            Value::Boolean(b) => Json::from(*b),
            Value::Array(a) => a.iter().map(Node::json).collect(),
            Value::Table(t) => t.entries.iter().map(|e| (e.key.clone(), e.node.json())).collect(),
        }
    }

    /// Returns the value with another origin.
    pub(crate) fn from(mut self, by: &Arc<str>) -> Self {
        self.origin.by = Some(Arc::clone(by));
        self
    }
}

/// Maximum length of a file, bytes.
const TEXT_MAX_BYTES: usize = 256 * 1024;

/// Parses the text of a file.
pub(crate) fn parse(text: &str) -> Result<Table> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(Origin::default().error(Problem::TooLong {
            what: "the file".into(),
            found: format!("{} bytes", text.len()),
            most: format!("{TEXT_MAX_BYTES} bytes"),
        }));
    }
    let lines = Lines::new(text);
    let document = DeTable::parse(text).map_err(|e| {
        let origin = Origin { line: e.span().map(|s| lines.at(s.start)), by: None };
        let message = e.message().split_whitespace().collect::<Vec<_>>().join(" ");
        origin.error(Problem::Syntax { message })
    })?;
    table(document.get_ref(), &lines)
}

/// Parses the value of an override as TOML if possible, otherwise as text: `64K` needs no quotes.
pub(crate) fn parse_override(text: &str, by: &Arc<str>) -> Node {
    let line = format!("v = {text}");
    let origin = Origin { line: None, by: Some(Arc::clone(by)) };
    let value = match parse(&line) {
        Ok(t) if t.entries.len() == 1 => t.entries.into_iter().next().map(|e| e.node.value),
        _ => None,
    };
    Node { origin, value: value.unwrap_or_else(|| Value::Text(text.trim().to_owned())) }
}

fn table(source: &DeTable<'_>, lines: &Lines) -> Result<Table> {
    let mut entries: Vec<(usize, Entry)> = Vec::new();
    for (key, value) in source.iter() {
        let origin = Origin { line: Some(lines.at(key.span().start)), by: None };
        let mut node = node(value, lines)?;
        // A table's own span may be that of its first header or empty; users look at its name.
        if matches!(node.value, Value::Table(_)) {
            node.origin = origin.clone();
        }
        entries.push((key.span().start, Entry { key: key.get_ref().to_string(), origin, node }));
    }
    entries.sort_by_key(|&(start, _)| start);
    Ok(Table { entries: entries.into_iter().map(|(_, e)| e).collect() })
}

fn node(source: &Spanned<DeValue<'_>>, lines: &Lines) -> Result<Node> {
    let origin = Origin { line: Some(lines.at(source.span().start)), by: None };
    let value = match source.get_ref() {
        DeValue::String(s) => Value::Text(s.to_string()),
        DeValue::Integer(i) => Value::Integer(i64::from_str_radix(i.as_str(), i.radix()).map_err(|_| {
            origin.error(Problem::Syntax {
                message: format!("the number {i} is too large: at most {}", i64::MAX),
            })
        })?),
        DeValue::Float(f) => Value::Float(f.as_str().parse().map_err(|_| {
            origin.error(Problem::Syntax { message: format!("the number {f} cannot be read") })
        })?),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(d) => Value::Datetime(d.to_string()),
        DeValue::Array(a) => Value::Array(a.iter().map(|n| node(n, lines)).collect::<Result<_, _>>()?),
        DeValue::Table(t) => Value::Table(table(t, lines)?),
    };
    Ok(Node { origin, value })
}

/// Byte offsets at which lines start.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|&start| start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_lines_are_the_files() {
        let root = parse("z = 1\n[b]\ny = 2\n\n[[a]]\nx = [\n 3,\n 4]\n[[a]]\n").unwrap();
        let keys: Vec<_> = root.entries.iter().map(|e| (e.key.as_str(), e.origin.line)).collect();
        assert_eq!(keys, [("z", Some(1)), ("b", Some(2)), ("a", Some(5))]);
        let Value::Array(a) = &root.get("a").unwrap().value else { panic!("not a list") };
        assert_eq!(a.iter().map(|n| n.origin.line).collect::<Vec<_>>(), [Some(5), Some(9)]);
        let Value::Table(first) = &a[0].value else { panic!("not a table") };
        let Value::Array(x) = &first.get("x").unwrap().value else { panic!("not a list") };
        assert_eq!(x.iter().map(|n| n.origin.line).collect::<Vec<_>>(), [Some(7), Some(8)]);
    }

    #[test]
    fn overrides_are_toml_or_text() {
        let by: Arc<str> = "--set".into();
        for (text, json) in [
            ("64K", "\"64K\""),
            ("10", "10"),
            ("true", "true"),
            ("\"a b\"", "\"a b\""),
            ("{ every = 9 }", "{\"every\":9}"),
            ("1\nw = 2", "\"1\\nw = 2\""),
            ("", "\"\""),
        ] {
            assert_eq!(parse_override(text, &by).json().to_string(), json, "{text}");
        }
    }
}
