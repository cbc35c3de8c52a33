//! Finds the traces that a scenario names, so that the caller can read their files.

use std::sync::Arc;

use crate::plan::PlanOptions;
use crate::tree::{self, Node, Origin, Table, Value};

/// Returns the names of the traces in a scenario or its overrides, in the order of the text; none if the text is not a scenario.
pub fn traces_named(text: &str, options: &PlanOptions) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(root) = tree::parse(text) {
        collect_traces(&root, &mut names);
    }
    let by = Arc::from("");
    let varied = options.vary.iter().flat_map(|(path, values)| values.iter().map(move |value| (path, value)));
    for (path, value) in options.overrides.iter().map(|(path, value)| (path, value)).chain(varied) {
        let node = tree::parse_override(value, &by);
        let entry = tree::Entry { key: path.clone(), origin: Origin::default(), node };
        collect_traces(&Table { entries: vec![entry] }, &mut names);
    }
    names.sort();
    names.dedup();
    names
}

fn collect_traces(table: &Table, names: &mut Vec<String>) {
    fn within(node: &Node, is_trace: bool, names: &mut Vec<String>) {
        match &node.value {
            Value::Text(name) if is_trace => names.push(name.clone()),
            Value::Array(all) => all.iter().for_each(|node| within(node, is_trace, names)),
            Value::Table(table) => collect_traces(table, names),
            _ => {}
        }
    }
    for entry in &table.entries {
        let is_trace = entry.key.rsplit('.').next() == Some("trace");
        within(&entry.node, is_trace, names);
    }
}
