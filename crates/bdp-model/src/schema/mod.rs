//! JSON Schemas of documents, generated from the serialised types.

mod by_hand;
mod exact;
mod text;

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

pub use text::text;

/// A schema's description of its document.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Name and version, as in `urn:bdp:NAME:VERSION`.
    pub id: &'static str,
    /// The command that writes the document.
    pub title: &'static str,
    /// Text that follows `What this version of bdp writes, exactly`; may be empty.
    pub first: &'static str,
    /// The page that documents it.
    pub page: &'static str,
}

/// A document's schema under construction.
#[derive(Debug)]
pub struct Draft {
    generator: SchemaGenerator,
    schema: Value,
}

impl Draft {
    /// Creates the schema of the written form: a member is required unless it is skipped when empty, and optional types may be null.
    pub fn of<T: JsonSchema>() -> Self {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let schema = generator.root_schema_for::<T>().to_value();
        Self { generator, schema }
    }

    /// Returns a reference to another type, or the schema of an unnamed type.
    pub fn refer<T: JsonSchema>(&mut self) -> Value {
        let schema = self.generator.subschema_for::<T>().to_value();
        let all = self.generator.definitions();
        let known = self.schema["$defs"].as_object().cloned().unwrap_or_default();
        let new = all.iter().filter(|(name, _)| !known.contains_key(*name));
        for (name, definition) in new {
            self.schema["$defs"][name] = definition.clone();
        }
        schema
    }

    /// Returns the document's own schema.
    pub fn root(&mut self) -> &mut Value {
        &mut self.schema
    }

    /// Returns the definition of a type by its Rust name, if the document uses it.
    pub fn definition(&mut self, name: &str) -> Option<&mut Value> {
        self.schema.get_mut("$defs")?.get_mut(name)
    }

    /// Moves the document's own schema into a definition, leaves it empty, and returns a reference.
    pub fn nest(&mut self, name: &str) -> Value {
        let mut inner = self.schema.take();
        let mut definitions = inner["$defs"].take();
        if let Some(members) = inner.as_object_mut() {
            for key in ["$defs", "$schema", "title"] {
                members.remove(key);
            }
        }
        definitions[name] = inner;
        self.schema = json!({ "$defs": definitions });
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// Completes the schema: makes it exact and adds the document's description.
    pub fn finish(self, about: About) -> Value {
        let About { id, title, first, page } = about;
        let mut schema = self.schema;
        exact::settle(&mut schema);
        let mut words = format!("What this version of bdp writes, exactly{first}.");
        words.push_str(
            " Every member is always present but those that are not required; what is not known is null.",
        );
        words.push_str(" A later minor version may add members: a reader ignores members that it does not know, and refuses a `schema` with a larger number.");
        words.push_str(&format!(" Explained in docs/{page}."));
        let mut document = Map::new();
        document.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        document.insert("$id".into(), json!(format!("urn:bdp:{id}")));
        document.insert("title".into(), json!(title));
        document.insert("description".into(), json!(words));
        if let Value::Object(members) = schema {
            for (key, value) in members {
                document.entry(key).or_insert(value);
            }
        }
        Value::Object(document)
    }
}

/// Adds or replaces a member that is always present.
pub fn add(object: &mut Value, name: &str, member: Value) {
    let known = object["properties"][name]["description"].clone();
    object["properties"][name] = member;
    if known.is_string() && object["properties"][name]["description"].is_null() {
        object["properties"][name]["description"] = known;
    }
    if !object["required"].is_array() {
        object["required"] = json!([]);
    }
    if let Some(required) = object["required"].as_array_mut()
        && !required.iter().any(|other| other == name)
    {
        required.push(name.into());
    }
}

/// Removes a member.
pub fn remove(object: &mut Value, name: &str) {
    if let Some(members) = object.get_mut("properties").and_then(Value::as_object_mut) {
        members.remove(name);
    }
    if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|other| other != name);
    }
}
