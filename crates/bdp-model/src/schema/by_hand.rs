//! JSON Schemas of types with hand-written serialisation.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::case::stack::Stack;
use crate::link::trace::{Stored, Trace};
use crate::measurement::expectation::Expectation;
use crate::measurement::figure::Figure;
use crate::tuning::setting::Release;
use crate::units::{ByteCount, Nanos, Offset, Probability, Rate};

/// Inline schemas: the members that use them describe them.
macro_rules! written_as {
    ($($type:ty = $schema:tt)+) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

written_as! {
    Rate = { "type": "integer", "minimum": 0 }
    ByteCount = { "type": "integer", "minimum": 0 }
    Nanos = { "type": "string", "pattern": "^[0-9]+ns$" }
    Offset = { "type": "string", "pattern": "^-?[0-9]+ns$" }
    Probability = { "type": "number", "minimum": 0, "maximum": 1 }
    Stack = { "type": "string", "minLength": 1 }
    Figure = { "type": "string", "minLength": 1 }
    Release = { "type": "string", "pattern": "^[0-9]+\\.[0-9]+$" }
}

impl<F> JsonSchema for Expectation<F> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Expectation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }
}

impl JsonSchema for Trace {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Trace".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Stored>()
    }
}
