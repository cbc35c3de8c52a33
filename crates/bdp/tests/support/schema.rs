//! Documents beside their schemas.

use serde_json::Value;

/// Fails with each place at which a document does not keep to its schema.
#[track_caller]
pub fn assert_in_schema(document: &Value, schema: &str) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(complaints, Vec::<String>::new());
}
