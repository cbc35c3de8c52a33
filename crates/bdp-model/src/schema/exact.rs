//! Rules that types do not express: no additional members, and constraints on members by name.

use serde_json::{Map, Value, json};

/// Makes the schema exact (no additional members) and plain (no formats or Rust names).
pub(super) fn settle(schema: &mut Value) {
    let definitions = schema["$defs"].clone();
    each(schema, &mut |object| expand(object, &definitions));
    each(schema, &mut close);
    each(schema, &mut bound);
    each(schema, &mut plain);
    name_definitions(schema);
    drop_unused(schema);
}

/// Applies a change to every nested schema, inner ones first.
fn each(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|member| each(member, change));
            change(members);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, change)),
        _ => {}
    }
}

fn target<'a>(of: &Map<String, Value>, definitions: &'a Value) -> Option<&'a Value> {
    let name = of.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
    definitions.get(name)
}

/// Merges a reference and the members next to it into one object, so that neither's members count as additional.
fn expand(object: &mut Map<String, Value>, definitions: &Value) {
    if !object.contains_key("properties") {
        return;
    }
    while let Some(Value::Object(target)) = target(object, definitions) {
        object.remove("$ref");
        for (key, value) in target {
            match (object.get_mut(key), value) {
                (Some(Value::Object(mine)), Value::Object(theirs)) => {
                    for (name, member) in theirs {
                        mine.entry(name).or_insert_with(|| member.clone());
                    }
                }
                (Some(Value::Array(mine)), Value::Array(theirs)) => mine.extend(theirs.iter().cloned()),
                (Some(_), _) => {}
                (None, value) => drop(object.insert(key.clone(), value.clone())),
            }
        }
    }
}

/// Allows no additional members.
fn close(object: &mut Map<String, Value>) {
    // An object of the schema itself, not a member named `properties`.
    if !object.get("properties").is_some_and(Value::is_object) || object.get("type") != Some(&json!("object"))
    {
        return;
    }
    let mut is_split = false;
    for key in ["oneOf", "anyOf", "allOf"] {
        for part in object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            is_split = true;
            if let Some(part) = part.as_object_mut() {
                part.remove("additionalProperties");
            }
        }
    }
    let key = if is_split { "unevaluatedProperties" } else { "additionalProperties" };
    object.entry(key).or_insert(json!(false));
}

/// Members that may be negative or unbounded: differences and judged values.
const SIGNED: [&str; 27] = [
    "above",
    "at_least",
    "at_most",
    "before",
    "difference",
    "drift_ppm",
    "effect",
    "found",
    "from",
    "high",
    "low",
    "max",
    "mean",
    "min",
    "now",
    "off",
    "p5",
    "p50",
    "p95",
    "ppm",
    "predicted",
    "shape",
    "sigma",
    "to",
    "up_to",
    "value",
    "wanted",
];

/// Members that are shares: 0 to 1.
const SHARES: [&str; 17] = [
    "busy",
    "cpu_busy",
    "cpu_steal",
    "harm",
    "harm_by_packets",
    "harm_by_probes",
    "host_cpu_busy",
    "host_cpu_steal",
    "loss",
    "loss_achieved",
    "loss_configured",
    "loss_ratio",
    "loss_tolerance",
    "probability",
    "retransmit_ratio",
    "rwnd_limited",
    "sndbuf_limited",
];

/// Counts with a minimum of 1, some with a maximum.
const COUNTS: [(&str, u64, Option<u64>); 7] = [
    ("attempt", 1, None),
    ("dscp", 0, Some(63)),
    ("hop", 0, Some(64)),
    ("hops", 1, Some(64)),
    ("port", 1, Some(65535)),
    ("repetition", 1, None),
    ("streams", 1, None),
];

/// Texts that are never empty when present.
const NAMES: [&str; 2] = ["host", "scenario"];

/// Adds the constraints on members by name, and on members that are absent if empty.
fn bound(object: &mut Map<String, Value>) {
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, member) in properties {
        let name = name.as_str();
        let Some(member) = member.as_object_mut() else { continue };
        if !required.iter().any(|other| other == name) {
            present(member);
        }
        let is = |kind: &str| match member.get("type") {
            Some(Value::String(one)) => one == kind,
            Some(Value::Array(all)) => all.iter().any(|one| one == kind),
            _ => false,
        };
        if is("number") && !SIGNED.contains(&name) {
            member.entry("minimum").or_insert(json!(0));
            if SHARES.contains(&name) {
                member.entry("maximum").or_insert(json!(1));
            }
        } else if is("integer")
            && let Some((_, least, most)) = COUNTS.iter().find(|count| count.0 == name)
        {
            member.insert("minimum".into(), json!(least));
            member.extend(most.map(|most| ("maximum".into(), json!(most))));
        } else if member.get("type") == Some(&json!("string")) && NAMES.contains(&name) {
            member.entry("minLength").or_insert(json!(1));
        }
    }
}

/// Constrains a member that is present only if it has content: not null, not false, not empty.
fn present(member: &mut Map<String, Value>) {
    let is_map = member.contains_key("additionalProperties");
    match member.get_mut("type") {
        Some(Value::Array(kinds)) => {
            kinds.retain(|kind| kind != "null");
            if let [one] = &kinds[..] {
                let one = one.clone();
                member.insert("type".into(), one);
            }
            if let Some(Value::Array(values)) = member.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
        }
        Some(Value::String(kind)) => {
            let least = match kind.as_str() {
                "boolean" => ("const", json!(true)),
                "array" => ("minItems", json!(1)),
                "object" if is_map => ("minProperties", json!(1)),
                _ => return,
            };
            member.entry(least.0).or_insert(least.1);
        }
        _ => {
            let Some(Value::Array(kinds)) = member.get_mut("anyOf") else { return };
            kinds.retain(|kind| kind["type"] != "null");
            if let [Value::Object(one)] = &kinds[..] {
                let one = one.clone();
                member.remove("anyOf");
                member.extend(one.into_iter().filter(|(key, _)| key != "description"));
            }
        }
    }
}

/// Removes what only Rust programs need.
fn plain(object: &mut Map<String, Value>) {
    for key in ["minimum", "maximum"] {
        if let Some(whole) = object.get(key).and_then(Value::as_f64).filter(|bound| bound.fract() == 0.0) {
            object.insert(key.into(), json!(whole as i64));
        }
    }
    if object.get("format").is_some_and(Value::is_string) {
        object.remove("format");
    }
    if object.contains_key("type") || object.contains_key("$ref") || object.contains_key("anyOf") {
        object.remove("default");
    }
    if let Some(Value::String(words)) = object.get_mut("description") {
        *words = in_words(words);
    }
}

/// Converts a doc comment to text: without link marks, in terms of JSON.
fn in_words(comment: &str) -> String {
    let marks = [("[`", "`"), ("`]", "`"), ("\n", " "), ("`None`", "null"), ("`crate::", "`")];
    marks.iter().fold(comment.to_owned(), |words, (mark, plain)| words.replace(mark, plain))
}

/// Renames definitions: `SenderSample` becomes `sender_sample`.
fn name_definitions(schema: &mut Value) {
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        *definitions = std::mem::take(definitions).into_iter().map(|(k, v)| (snake(&k), v)).collect();
    }
    each(schema, &mut |object| {
        if let Some(Value::String(of)) = object.get_mut("$ref")
            && let Some(name) = of.strip_prefix("#/$defs/")
        {
            *of = format!("#/$defs/{}", snake(name));
        }
    });
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Removes definitions that are no longer referenced.
fn drop_unused(schema: &mut Value) {
    loop {
        let text = schema.to_string();
        let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) else { return };
        let before = definitions.len();
        definitions.retain(|name, _| text.contains(&format!("\"#/$defs/{name}\"")));
        if definitions.len() == before {
            return;
        }
    }
}
