//! `bdp watch --json`: JSON lines, each a document of `docs/watch.schema.json`.

use bdp_model::watch::{WATCH_SCHEMA, WatchInterval, WatchSummary};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::finding;

/// One line for each socket of an interval, and one for each notable event.
pub fn watch_interval_json(interval: &WatchInterval) -> String {
    let mut text = String::new();
    for note in &interval.notes {
        let mut line = begin("note", interval.at_ns);
        line.insert("text".to_owned(), note.as_str().into());
        push(&mut text, line);
    }
    for socket in &interval.sockets {
        let mut line = begin("socket", interval.at_ns);
        line.insert("took_ns".to_owned(), interval.took_ns.into());
        extend(&mut line, socket);
        line.insert("finding".to_owned(), socket.finding.as_ref().map_or(Value::Null, finding::json));
        push(&mut text, line);
    }
    text
}

/// One line for each socket that carried data, and one for the total.
pub fn watch_summary_json(summary: &WatchSummary) -> String {
    let mut text = String::new();
    for total in &summary.sockets {
        let mut line = begin("total", summary.took_ns);
        extend(&mut line, total);
        let last = total.last.finding.as_ref().map_or(Value::Null, finding::json);
        if let Some(Value::Object(members)) = line.get_mut("last") {
            members.insert("finding".to_owned(), last);
        }
        let limits = total.limits.iter().map(|limit| {
            json!({"limit": limit.limit, "share": limit.share, "finding": finding::json(&limit.finding)})
        });
        line.insert("limits".to_owned(), limits.collect());
        push(&mut text, line);
    }
    let mut line = begin("end", summary.took_ns);
    extend(&mut line, summary);
    // Each socket already has its own line.
    line.remove("sockets");
    line.remove("took_ns");
    push(&mut text, line);
    text
}

fn begin(kind: &str, at_ns: u64) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("schema".to_owned(), WATCH_SCHEMA.into());
    line.insert("kind".to_owned(), kind.into());
    line.insert("at_ns".to_owned(), at_ns.into());
    line
}

fn extend(line: &mut Map<String, Value>, with: &impl Serialize) {
    // Plain data always converts to JSON.
    if let Ok(Value::Object(members)) = serde_json::to_value(with) {
        line.extend(members);
    }
}

fn push(text: &mut String, line: Map<String, Value>) {
    text.push_str(&Value::Object(line).to_string());
    text.push('\n');
}
