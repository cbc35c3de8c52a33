//! The schemas in docs/ are those of the types: `INSTA_UPDATE=always` writes them (`make schemas`).

mod settle;

use bdp_report::schema::schemas;

#[test]
fn schemas_are_those_of_the_types() {
    schemas().iter().for_each(|(name, schema)| settle::schema(name, schema));
}
