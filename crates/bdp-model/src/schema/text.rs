//! Formatting of a schema file.

use serde_json::Value;

/// Longest line that is not wrapped.
const WIDTH: usize = 140;

/// Formats JSON, keeping on one line what fits.
pub fn text(schema: &Value) -> String {
    let mut text = String::new();
    write(schema, 0, 0, &mut text);
    text.push('\n');
    text
}

fn write(value: &Value, depth: usize, before: usize, text: &mut String) {
    let one_line = in_one_line(value);
    let (open, close, items): (char, char, Vec<(String, &Value)>) = match value {
        Value::Object(members) if depth == 0 || before + one_line.len() > WIDTH => (
            '{',
            '}',
            members.iter().map(|(key, value)| (format!("{}: ", Value::from(key.as_str())), value)).collect(),
        ),
        Value::Array(all) if before + one_line.len() > WIDTH => {
            ('[', ']', all.iter().map(|value| (String::new(), value)).collect())
        }
        _ => return text.push_str(&one_line),
    };
    text.push(open);
    let inner = " ".repeat(2 * (depth + 1));
    for (i, (key, value)) in items.iter().enumerate() {
        text.push_str(if i > 0 { ",\n" } else { "\n" });
        text.push_str(&inner);
        text.push_str(key);
        write(value, depth + 1, inner.len() + key.len() + 1, text);
    }
    text.push('\n');
    text.push_str(&inner[2..]);
    text.push(close);
}

fn in_one_line(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Object(members) => {
            let members =
                members.iter().map(|(k, v)| format!("{}: {}", Value::from(k.as_str()), in_one_line(v)));
            format!("{{{}}}", list(members.collect()))
        }
        Value::Array(all) => format!("[{}]", list(all.iter().map(in_one_line).collect())),
        _ => value.to_string(),
    }
}
