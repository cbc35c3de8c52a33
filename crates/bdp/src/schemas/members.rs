//! Tables of the members of JSON documents, written into the pages of docs/ from the schemas.
//!
//! A page has them between `<!-- members: NAME.schema.json -->`, for a document, or
//! `<!-- members: NAME.schema.json#/$defs/PART -->`, for a part of it, and `<!-- end -->`. A part that several
//! documents have is described once: on the first page that has it; the others link there.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Map, Value};

const BEGIN: &str = "<!-- members: ";
const END: &str = "<!-- end -->";

/// Stands for a description that a type lacks.
pub const LACKS: &str = "NOT DESCRIBED";

/// Begins the comment of a part that another page describes.
pub const ELSEWHERE: &str = "docs/";

/// Alternatives of a document of which one has more members than this have sections instead of cells.
const WIDE: usize = 8;

/// Objects and enumerations of at most so many members that only one member uses need no table of their own.
const SHORT: usize = 6;

/// Objects of so many members never need one.
const PAIR: usize = 2;

type Schemas = [(&'static str, Value)];

/// Returns each page with its tables as the schemas have them, in the same order.
pub fn written(pages: &[(&str, String)], schemas: &Schemas) -> Vec<String> {
    let documents: HashMap<&str, Document> =
        schemas.iter().map(|(name, schema)| (*name, Document::of(schema))).collect();
    let mut places = Places::default();
    for (page, text) in pages {
        for marker in text.lines().filter_map(Marker::of) {
            let document = marker.document(&documents);
            for part in document.parts(&marker) {
                places.entry(document.identity(part)).or_insert_with(|| (page.to_string(), part.to_owned()));
            }
        }
    }
    let write = |(page, text): &(&str, String)| {
        let mut written = String::new();
        let mut lines = text.lines();
        let mut level = 1;
        while let Some(line) = lines.next() {
            writeln!(written, "{line}").unwrap();
            level = Some(line.bytes().take_while(|byte| *byte == b'#').count())
                .filter(|l| *l > 0)
                .unwrap_or(level);
            let Some(marker) = Marker::of(line) else { continue };
            lines.by_ref().find(|line| *line == END).unwrap_or_else(|| panic!("{page}: {line} has no end"));
            let document = marker.document(&documents);
            write!(
                written,
                "\n{}\n{END}\n",
                Tables { document, page, places: &places, level }.of(&marker).trim_start()
            )
            .unwrap();
        }
        written
    };
    pages.iter().map(write).collect()
}

/// Where each part is described: page and heading.
type Places = HashMap<String, (String, String)>;

struct Marker<'a> {
    schema: &'a str,
    part: Option<&'a str>,
}

impl<'a> Marker<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let target = line.strip_prefix(BEGIN)?.strip_suffix(" -->")?;
        let (schema, part) = target.split_once(".schema.json").unwrap_or_else(|| panic!("{line}"));
        Some(Self { schema, part: part.strip_prefix("#/$defs/") })
    }

    fn document<'d>(&self, documents: &'d HashMap<&str, Document<'d>>) -> &'d Document<'d> {
        documents.get(self.schema).unwrap_or_else(|| panic!("no schema {}", self.schema))
    }
}

/// A document's schema, and its parts that have a table of their own.
struct Document<'a> {
    root: &'a Value,
    definitions: &'a Map<String, Value>,
    uses: HashMap<&'a str, usize>,
    /// In the order of the document, each with the path to it.
    tables: Vec<(&'a str, String)>,
}

impl<'a> Document<'a> {
    fn of(root: &'a Value) -> Self {
        static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        let definitions = root["$defs"].as_object().unwrap_or(&NONE);
        let mut document = Self { root, definitions, uses: HashMap::new(), tables: Vec::new() };
        each_reference(root, &mut |name| *document.uses.entry(name).or_default() += 1);
        document.walk(root, "");
        document
    }

    /// Adds the parts below a schema that have tables, outer ones before inner ones.
    fn walk(&mut self, schema: &'a Value, path: &str) {
        let mut below: Vec<(&'a Value, String)> = Vec::new();
        let mut all: Vec<&Value> = alternatives(schema).iter().collect();
        // One that another contains is described as its part.
        all.sort_by_key(|one| reference(one).map_or(0, |name| self.uses[name]));
        below.extend(all.into_iter().map(|one| (one, path.to_owned())));
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let dot = if path.is_empty() { "" } else { "." };
            below.push((member, format!("{path}{dot}{name}")));
        }
        for items in [&schema["items"], &schema["additionalProperties"]] {
            let mark = if std::ptr::eq(items, &schema["items"]) { "[]" } else { ".*" };
            below.extend(items.is_object().then(|| (items, format!("{path}{mark}"))));
        }
        for (part, path) in below {
            match reference(part) {
                Some(name) if self.tables.iter().any(|(known, _)| *known == name) => {}
                Some(name) => {
                    if self.has_table(name) {
                        self.tables.push((name, path.clone()));
                    }
                    self.walk(&self.definitions[name], &path);
                }
                None => self.walk(part, &path),
            }
        }
    }

    fn schema(&self, name: &str) -> &'a Value {
        &self.definitions[name]
    }

    fn has_table(&self, name: &str) -> bool {
        let definition = &self.definitions[name];
        let members = definition["properties"].as_object().map_or(0, Map::len);
        let all = alternatives(definition).len();
        match self.uses[name] {
            _ if alternatives(self.root).iter().any(|one| reference(one) == Some(name)) => true,
            _ if members > 0 && members <= PAIR && all == 0 => false,
            1 => {
                members > SHORT
                    || all > SHORT
                    || members > 0 && all > 0
                    || all > 0 && !is_enumeration(definition)
            }
            _ => members > 0 || all > 4 || all > 0 && !is_enumeration(definition),
        }
    }

    fn parts<'m>(&'m self, marker: &Marker<'m>) -> Vec<&'m str> {
        match marker.part {
            Some(part) => vec![part],
            None => self.tables.iter().map(|(name, _)| *name).collect(),
        }
    }

    /// The same for a part that other documents have too: their names may differ by a number.
    fn identity(&self, part: &str) -> String {
        let mut text =
            format!("{part}\"{}", self.definitions.get(part).unwrap_or_else(|| panic!("no part {part}")));
        for digit in '0'..='9' {
            text = text.replace(&format!("{digit}\""), "\"");
        }
        text
    }
}

fn each_reference<'a>(value: &'a Value, seen: &mut impl FnMut(&'a str)) {
    match value {
        Value::Object(members) => {
            if let Some(name) = reference(value) {
                seen(name);
            }
            members.values().for_each(|member| each_reference(member, seen));
        }
        Value::Array(items) => items.iter().for_each(|item| each_reference(item, seen)),
        _ => {}
    }
}

/// The definition that a schema refers to, null aside.
fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn alternatives(schema: &Value) -> &[Value] {
    let list = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    list.map_or(&[], Vec::as_slice)
}

fn is_enumeration(schema: &Value) -> bool {
    alternatives(schema).iter().all(|one| one["type"] == "string")
}

/// Whether null is allowed, and the schema besides.
fn without_null(schema: &Value) -> (bool, &Value) {
    match alternatives(schema) {
        [one, null] if null["type"] == "null" => (true, one),
        _ => (false, schema),
    }
}

/// A row of a table.
struct Member {
    path: String,
    kind: String,
    meaning: Option<String>,
}

/// Writes the tables of a page.
struct Tables<'a> {
    document: &'a Document<'a>,
    page: &'a str,
    places: &'a Places,
    /// Of the heading above.
    level: usize,
}

impl Tables<'_> {
    fn of(&self, marker: &Marker) -> String {
        let mut text = String::new();
        if let Some(part) = marker.part {
            self.table(self.document.schema(part), &mut text);
            return text;
        }
        if self.document.root["properties"].is_object() {
            self.table(self.document.root, &mut text);
        }
        for one in alternatives(self.document.root).iter().filter(|one| reference(one).is_none()) {
            self.alternative(one, &mut text);
        }
        for (name, path) in &self.document.tables {
            let (page, heading) = &self.places[&self.document.identity(name)];
            if page == self.page && heading == name {
                let at = if path.is_empty() { String::new() } else { format!("At `{path}`") };
                self.section(name, &at, self.document.schema(name), &mut text);
            }
        }
        text
    }

    /// Whether this is a whole document whose alternatives are too wide for cells.
    fn has_sections(&self, schema: &Value) -> bool {
        let mut documents = alternatives(self.document.root).iter().filter_map(reference);
        documents.any(|name| std::ptr::eq(self.document.schema(name), schema))
            && alternatives(schema)
                .iter()
                .any(|one| one["properties"].as_object().is_some_and(|all| all.len() > WIDE))
    }

    /// A section of an alternative that a member tells from others.
    fn alternative(&self, one: &Value, text: &mut String) {
        let Some((tag, value)) = tag(one) else { return };
        let name = value.as_str().unwrap_or_default();
        self.section(name, &format!("`{tag}` is {}", code(value)), one, text);
    }

    fn section(&self, name: &str, at: &str, schema: &Value, text: &mut String) {
        let stop = if at.is_empty() { "" } else { ". " };
        let about = schema["description"].as_str().unwrap_or(LACKS);
        write!(text, "\n{}# {name}\n\n{at}{stop}{about}\n\n", "#".repeat(self.level)).unwrap();
        self.table(schema, text);
    }

    fn table(&self, schema: &Value, text: &mut String) {
        let members = self.members(schema, "");
        if !members.is_empty() {
            text.push_str("| member | type | meaning |\n|---|---|---|\n");
        }
        for Member { path, kind, meaning } in &members {
            writeln!(text, "| `{path}` | {kind} | {} |", meaning.as_deref().unwrap_or(LACKS)).unwrap();
        }
        let all = alternatives(schema);
        let Some(first) = all.first() else { return };
        if self.has_sections(schema) {
            return all.iter().for_each(|one| self.alternative(one, text));
        }
        if !members.is_empty() {
            text.push_str("\nBesides, by one of these:\n\n");
        }
        let head = tag(first).map_or("value", |(name, _)| name);
        let is_enumeration = is_enumeration(schema);
        text.push_str(&match is_enumeration {
            true => format!("| {head} | meaning |\n|---|---|\n"),
            false => format!("| {head} | meaning | members |\n|---|---|---|\n"),
        });
        for one in all {
            let value = match tag(one) {
                Some((_, value)) => code(value),
                None if one["properties"].is_object() => "object".to_owned(),
                None => self.kind(one),
            };
            write!(text, "| {value} | {} |", about(one).as_deref().unwrap_or(LACKS)).unwrap();
            text.push_str(&if is_enumeration {
                "\n".to_owned()
            } else {
                format!(" {} |\n", self.in_a_cell(one))
            });
        }
    }

    /// An alternative's members, besides what tells it from others.
    fn in_a_cell(&self, one: &Value) -> String {
        let tag = tag(one).map(|(name, _)| name);
        let members = self.members(one, "").into_iter();
        let words = members.filter(|member| Some(member.path.as_str()) != tag && member.path != "text").map(
            |member| {
                let Member { path, kind, meaning } = member;
                meaning
                    .map_or(format!("`{path}` ({kind})."), |meaning| format!("`{path}` ({kind}): {meaning}"))
            },
        );
        words.collect::<Vec<_>>().join(" ")
    }

    /// The members of an object, and of those of its members that have no table of their own.
    fn members(&self, schema: &Value, before: &str) -> Vec<Member> {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut all = Vec::new();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            // What the heading says.
            if member["const"].is_string() && member["description"].is_null() {
                continue;
            }
            let optional = if required.iter().any(|other| other == name) { "" } else { ", optional" };
            let path = format!("{before}{name}");
            let kind = format!("{}{optional}", self.kind(member));
            all.push(Member { path: path.clone(), kind, meaning: self.meaning(member) });
            all.extend(self.inner_members(member, &path));
        }
        all
    }

    fn inner_members(&self, member: &Value, path: &str) -> Vec<Member> {
        let (_, member) = without_null(member);
        match reference(member) {
            Some(name) if self.document.has_table(name) => Vec::new(),
            Some(name) => self.inner_members(self.document.schema(name), path),
            None if member["items"].is_object() => self.inner_members(&member["items"], &format!("{path}[]")),
            None if member["additionalProperties"].is_object() => {
                self.inner_members(&member["additionalProperties"], &format!("{path}.*"))
            }
            None => self.members(member, &format!("{path}.")),
        }
    }

    /// The member's description, or its type's, with those of few values.
    fn meaning(&self, member: &Value) -> Option<String> {
        let (_, inner) = without_null(member);
        let inner = if inner["items"].is_object() { &inner["items"] } else { inner };
        let target = reference(inner).map(|name| self.document.schema(name));
        let meaning = about(member).or_else(|| target.and_then(about));
        let inline =
            reference(inner).filter(|name| self.document.uses[name] <= 2 && !self.document.has_table(name));
        let values = inline.map(|name| alternatives(self.document.schema(name))).unwrap_or_default();
        let values: Vec<String> =
            values.iter().filter_map(|one| Some(format!("{}: {}", self.kind(one), about(one)?))).collect();
        match (meaning, values.is_empty()) {
            (meaning, true) => meaning,
            (None, false) => Some(values.join(" ")),
            (Some(meaning), false) => Some(format!("{meaning} {}", values.join(" "))),
        }
    }

    fn kind(&self, schema: &Value) -> String {
        if let (true, one) = without_null(schema) {
            return format!("{} or null", self.kind(one));
        }
        if let Some(name) = reference(schema) {
            return self.name(name);
        }
        if !schema["const"].is_null() {
            return code(&schema["const"]);
        }
        if let Some(all) = schema["enum"].as_array() {
            return all.iter().map(code).collect::<Vec<_>>().join(", ");
        }
        let all = alternatives(schema);
        if !all.is_empty() {
            return all.iter().map(|one| self.kind(one)).collect::<Vec<_>>().join(", ");
        }
        match &schema["type"] {
            Value::String(kind) => self.plain(kind, schema),
            Value::Array(kinds) => {
                let kinds: Vec<String> =
                    kinds.iter().filter_map(Value::as_str).map(|kind| self.plain(kind, schema)).collect();
                kinds.join(" or ")
            }
            _ => "any".to_owned(),
        }
    }

    fn plain(&self, kind: &str, schema: &Value) -> String {
        let is_share = schema["maximum"] == 1 && schema["minimum"] == 0;
        match kind {
            "string" => "text".to_owned(),
            "number" if is_share => "share".to_owned(),
            "array" if schema["items"].is_object() => format!("array of {}", self.kind(&schema["items"])),
            "array" if schema["prefixItems"].is_array() => {
                format!("array of {} {}", schema["maxItems"], self.kind(&schema["prefixItems"][0]))
            }
            "object" if schema["additionalProperties"].is_object() => {
                format!("object of {}", self.kind(&schema["additionalProperties"]))
            }
            kind => kind.to_owned(),
        }
    }

    /// A definition's type: a link to its table, or what it is.
    fn name(&self, name: &str) -> String {
        let definition = self.document.schema(name);
        if let Some(page) = definition["$comment"].as_str().and_then(|about| about.strip_prefix(ELSEWHERE)) {
            return format!("[{name}]({page})");
        }
        let place = self.places.get(&self.document.identity(name));
        match (self.document.has_table(name), place) {
            (true, Some((page, heading))) if page == self.page => format!("[{heading}](#{heading})"),
            (true, Some((page, heading))) => format!("[{heading}]({page}#{heading})"),
            (true, None) => panic!("{}: no page has a table of {name}", self.page),
            (false, _) if definition["properties"].is_object() => "object".to_owned(),
            (false, _) => self.kind(definition),
        }
    }
}

fn code(value: &Value) -> String {
    format!("`{value}`")
}

/// The member that tells an alternative from others, and its value.
fn tag(one: &Value) -> Option<(&str, &Value)> {
    let mut members = one["properties"].as_object()?.iter();
    members.find_map(|(name, member)| member["const"].is_string().then(|| (name.as_str(), &member["const"])))
}

/// A description, as a cell of a table has it.
fn about(schema: &Value) -> Option<String> {
    Some(schema["description"].as_str()?.replace('|', "\\|"))
}
