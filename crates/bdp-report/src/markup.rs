//! HTML and SVG elements, attributes and text, written so that the result is also well-formed XML.

use std::fmt::Write;

use bdp_model::plain::is_command;

/// Markup under construction. Everything is escaped except the tags written by [`Markup::element`] and similar methods.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    text: String,
}

/// Names and values; values are escaped.
pub(crate) type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Markup {
    /// Writes `<name attributes>content</name>`.
    pub fn element(&mut self, name: &str, attributes: Attributes<'_>, content: impl FnOnce(&mut Self)) {
        self.start(name, attributes);
        self.text.push('>');
        content(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// Writes `<name attributes/>`.
    pub fn void(&mut self, name: &str, attributes: Attributes<'_>) {
        self.start(name, attributes);
        self.text.push_str("/>");
    }

    /// Writes an element that contains only text.
    pub fn leaf(&mut self, name: &str, attributes: Attributes<'_>, text: &str) {
        self.element(name, attributes, |m| m.text(text));
    }

    /// Writes a collapsed section.
    pub fn on_demand(&mut self, id: &str, heading: &str, content: impl FnOnce(&mut Self)) {
        self.element("details", &[("id", id)], |m| {
            m.element("summary", &[], |m| m.leaf("h2", &[], heading));
            m.line();
            content(m);
        });
        self.line();
    }

    /// Writes escaped text.
    pub fn text(&mut self, text: &str) {
        escape_into(&mut self.text, text);
    }

    /// Writes a line break in the source, for readability.
    pub fn line(&mut self) {
        self.text.push('\n');
    }

    /// Appends other markup.
    pub fn append(&mut self, other: Markup) {
        self.text.push_str(&other.text);
    }

    /// Appends markup of the template library.
    pub fn add(&mut self, other: maud::Markup) {
        self.text.push_str(&other.0);
    }

    /// Writes trusted text without escaping: a doctype, a style sheet.
    pub fn verbatim(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    /// Returns the text between all tags, with one space per tag.
    pub fn words(&self) -> String {
        self.text
            .split('<')
            .filter_map(|part| part.split_once('>'))
            .flat_map(|(_, text)| [text, " "])
            .collect()
    }

    /// Whether the markup contains this text as written.
    pub fn contains(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Returns the markup as text.
    pub fn into_string(self) -> String {
        self.text
    }

    fn start(&mut self, name: &str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(name);
        for (name, value) in attributes {
            let _ = write!(self.text, " {name}=\"");
            escape_into(&mut self.text, value);
            self.text.push('"');
        }
    }
}

/// Escapes text for elements and quoted attributes. Characters excluded by XML 1.0 (section 2.2), and
/// those that change text direction (Unicode Technical Report 36, section 2.2), become U+FFFD.
fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if is_command(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_stays_text() {
        let mut markup = Markup::default();
        let hostile = "</p><script>alert('1')</script>\" onload=\"x\u{1b}[2J\u{202e}&amp;";
        markup.element("p", &[("title", hostile)], |m| m.text(hostile));
        let text = markup.into_string();
        assert_eq!(text.matches('<').count(), 2, "{text}");
        assert_eq!(text.matches('"').count(), 2, "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("&amp;amp;"), "{text}");
    }
}
