//! The page around the charts: head, style sheet, figures with captions, tables.

use bdp_model::plain::is_command;

use super::glossary::glossary;
use super::patterns;
use crate::chart::number;
use crate::markup::Markup;

/// Information about a run besides its records.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'a> {
    /// The run's id in the store.
    pub run: Option<&'a str>,
    /// Label given by the user.
    pub label: Option<&'a str>,
    /// Command line that started the run.
    pub command: Option<&'a str>,
    /// Start time, as text.
    pub started: Option<&'a str>,
    /// Number of planned cases; fewer may exist so far.
    pub planned: Option<usize>,
    /// Path of the store with the run, unless it is the default.
    pub store: Option<&'a str>,
    /// Title of the page, in place of the generated one.
    pub title: Option<&'a str>,
    /// Author's note, below the title.
    pub note: Option<&'a str>,
}

impl About<'_> {
    /// Starts a page with its title (`otherwise` if the author chose none), the note, and a line of facts. Returns
    /// the title.
    pub(crate) fn begin(
        &self,
        m: &mut Markup,
        otherwise: String,
        further: impl IntoIterator<Item = String>,
    ) -> String {
        let title = self.heading(m, otherwise);
        m.leaf("p", &[("class", "facts")], &self.line(further));
        m.line();
        title
    }

    /// Writes title and note; returns the title.
    pub(crate) fn heading(&self, m: &mut Markup, otherwise: String) -> String {
        let title = self.title.map_or(otherwise, str::to_owned);
        m.leaf("h1", &[], &title);
        m.line();
        // A paragraph for each block of lines separated by an empty line.
        for paragraph in self.note.into_iter().flat_map(|note| note.split("\n\n")) {
            if !paragraph.trim().is_empty() {
                m.leaf("p", &[("class", "authors-note")], paragraph.trim());
                m.line();
            }
        }
        title
    }

    /// Returns the facts in a line.
    pub(crate) fn line(&self, further: impl IntoIterator<Item = String>) -> String {
        let own = [
            self.label.map(str::to_owned),
            self.run.map(|run| format!("run {run}")),
            self.started.map(str::to_owned),
        ];
        own.into_iter().flatten().chain(further).collect::<Vec<_>>().join(" · ")
    }
}

/// Script of a page, and the base64 SHA-256 of its text, with which the page allows only this script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub text: &'static str,
    pub sha256: &'static str,
}

/// Returns a complete page that fetches nothing.
pub(crate) fn page(title: &str, body: Markup) -> String {
    page_with(None, title, body)
}

/// Returns a complete page with a script at its end.
pub(crate) fn page_with(script: Option<Script>, title: &str, body: Markup) -> String {
    let mut policy = "default-src 'none'; style-src 'unsafe-inline'".to_owned();
    if let Some(Script { sha256, .. }) = script {
        policy.push_str(&format!("; script-src 'sha256-{sha256}'"));
    }
    let mut m = Markup::default();
    m.verbatim("<!DOCTYPE html>\n");
    m.element("html", &[("lang", "en"), ("xmlns", "http://www.w3.org/1999/xhtml")], |m| {
        m.line();
        m.element("head", &[], |m| {
            m.void("meta", &[("charset", "utf-8")]);
            m.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
            m.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
            m.void(
                "meta",
                &[("name", "generator"), ("content", concat!("bdp ", env!("CARGO_PKG_VERSION")))],
            );
            // Prevents loading of anything that slipped through.
            m.void(
                "meta",
                &[("http-equiv", "Content-Security-Policy"), ("content", &policy)],
            );
            m.line();
            m.leaf("title", &[], title);
            m.line();
            m.element("style", &[], |m| m.verbatim(include_str!("style.css")));
            m.line();
        });
        m.line();
        m.element("body", &[], |m| {
            m.line();
            let glossary = glossary(&body);
            patterns::write(m, &body);
            m.append(body);
            m.append(glossary);
            m.element("footer", &[], |m| {
                m.text(concat!(
                    "Written by bdp ",
                    env!("CARGO_PKG_VERSION"),
                    ". Rates in bit/s with decimal prefixes, sizes in bytes with binary ones (1 KiB = 1024). Medians \
                     unless said otherwise; INVALID attempts enter none."
                ));
            });
            if let Some(Script { text, .. }) = script {
                m.line();
                m.element("script", &[], |m| m.verbatim(text));
            }
        });
    });
    m.line();
    printable(maud::PreEscaped(m.into_string()))
}

/// Returns markup as text, with U+FFFD in place of characters excluded by XML 1.0 (section 2.2), and those that change
/// text direction (Unicode Technical Report 36, section 2.2). None of them is in bdp's own markup.
pub(crate) fn printable(markup: maud::Markup) -> String {
    let is_bad = |c: char| is_command(c) && !matches!(c, '\n' | '\t');
    markup.into_string().replace(is_bad, "\u{fffd}")
}

/// A column of a table.
pub(crate) struct Heading {
    pub text: String,
    /// Whether the column holds numbers.
    pub number: bool,
}

/// Returns a heading over words.
pub(crate) fn words(text: &str) -> Heading {
    Heading { text: text.to_owned(), number: false }
}

/// Returns a heading over numbers.
pub(crate) fn numbers(text: impl Into<String>) -> Heading {
    Heading { text: text.into(), number: true }
}

/// Writes the head of a table.
pub(crate) fn head(m: &mut Markup, headings: &[Heading]) {
    m.element("thead", &[], |m| {
        m.element("tr", &[], |m| {
            for heading in headings {
                let class = if heading.number { "n" } else { "w" };
                m.leaf("th", &[("class", class), ("scope", "col")], &heading.text);
            }
        });
    });
    m.line();
}

/// Writes a small drawing within a line or a cell.
pub(crate) fn inline(m: &mut Markup, [width, height]: [f64; 2], label: &str, draw: impl FnOnce(&mut Markup)) {
    let view = format!("0 0 {} {}", number(width), number(height));
    m.element("svg", &[("viewBox", &view), ("role", "img"), ("aria-label", label)], draw);
}

/// Writes facts in two columns, name and value; those without a value are omitted.
pub(crate) fn facts(m: &mut Markup, caption: &str, rows: &[(String, String)]) {
    if rows.iter().all(|(_, value)| value.is_empty()) {
        return;
    }
    m.element("div", &[("class", "scroll")], |m| {
        m.element("table", &[("class", "plain")], |m| {
            m.leaf("caption", &[], caption);
            m.element("tbody", &[], |m| {
                for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
                    m.element("tr", &[], |m| {
                        m.leaf("td", &[], name);
                        m.leaf("td", &[], value);
                    });
                }
            });
        });
    });
    m.line();
}
