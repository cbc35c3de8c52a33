//! A generated file of docs/ against what it should be. Tests of other crates take it by its path.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Compares a schema with its file, or writes that if asked to.
pub fn schema(name: &str, schema: &Value) {
    let file = format!("{name}.schema.json");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(&file);
    let wanted = bdp_model::schema::text(schema);
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        fs::write(path, wanted).unwrap();
    } else {
        let is = fs::read_to_string(path).unwrap_or_default();
        assert!(is == wanted, "docs/{file} differs from the types: 'make schemas' brings it up to date");
    }
}
