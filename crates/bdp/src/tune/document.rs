//! The documents that the commands print with `--json`.

use serde_json::{Value, json};

use crate::exit::Outcome;
use crate::output;

/// Schema version of these documents.
const SCHEMA: &str = "bdp.tune/1";

/// Prints the document of a command.
pub fn print_document(command: &str, members: Value) -> Outcome {
    let mut document = json!({ "schema": SCHEMA, "bdp": env!("CARGO_PKG_VERSION"), "run": null, "at": null, "command": command });
    if let (Some(document), Value::Object(members)) = (document.as_object_mut(), members) {
        document.extend(members);
    }
    output::print(&format!("{document:#}\n"))
}
