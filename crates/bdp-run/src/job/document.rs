//! Jobs, events and outcomes as JSON documents, each with a schema version.

use bdp_model::plain::of_json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::RunError;

/// Serialises the content, with the schema name as a member.
pub(crate) fn write(content: &impl Serialize, schema: &str) -> Value {
    // Jobs, events and outcomes are plain data, which JSON can always represent.
    let mut document = serde_json::to_value(content).unwrap_or_default();
    document["schema"] = schema.into();
    document
}

/// Reads a document that [`write()`] wrote with this schema; refuses any other version.
pub(crate) fn read<T: DeserializeOwned>(document: Value, schema: &str) -> Result<T, RunError> {
    let found = document["schema"].as_str().unwrap_or_default();
    if found != schema {
        return Err(RunError::Request(format!("document of schema '{found}'; expected {schema}")));
    }
    serde_json::from_value(document)
        .map_err(|error| RunError::Request(format!("{schema}: {}", of_json(&error))))
}
