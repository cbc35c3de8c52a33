//! The page around the charts: head, style sheet, figures with captions, tables.

use bdp_model::plain::is_command;
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use super::glossary::glossary;
use super::patterns;
use crate::chart::{Drawing, number};

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
    /// Returns the title of a page (`otherwise` if the author chose none), and its beginning: title, note, and a line of facts.
    pub(crate) fn begin(
        &self,
        otherwise: String,
        further: impl IntoIterator<Item = String>,
    ) -> (String, Markup) {
        let (title, heading) = self.heading(otherwise);
        (title, html! { (heading) p.facts { (self.line(further)) } "\n" })
    }

    /// Returns the title, and title and note as elements.
    pub(crate) fn heading(&self, otherwise: String) -> (String, Markup) {
        let title = self.title.map_or(otherwise, str::to_owned);
        // A paragraph for each block of lines separated by an empty line.
        let notes = self.note.into_iter().flat_map(|note| note.split("\n\n")).map(str::trim);
        let heading = html! {
            h1 { (title) } "\n"
            @for paragraph in notes.filter(|note| !note.is_empty()) { p.authors-note { (paragraph) } "\n" }
        };
        (title, heading)
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

/// Returns a complete page with a script at its end. It is well-formed XML, so that void elements have a slash.
pub(crate) fn page_with(script: Option<Script>, title: &str, body: Markup) -> String {
    let allowed =
        script.map_or_else(String::new, |script| format!("; script-src 'sha256-{}'", script.sha256));
    let policy = format!("default-src 'none'; style-src 'unsafe-inline'{allowed}");
    let meta = |attribute: &str, name: &str, content: &str| {
        PreEscaped(format!("<meta {attribute}=\"{name}\" content=\"{content}\"/>"))
    };
    printable(html! {
        (DOCTYPE) "\n"
        html lang="en" xmlns="http://www.w3.org/1999/xhtml" {
            head {
                (PreEscaped("<meta charset=\"utf-8\"/>"))
                (meta("name", "viewport", "width=device-width, initial-scale=1"))
                (meta("name", "color-scheme", "light dark"))
                (meta("name", "generator", concat!("bdp ", env!("CARGO_PKG_VERSION"))))
                // Prevents loading of anything that slipped through.
                (meta("http-equiv", "Content-Security-Policy", &policy)) "\n"
                title { (title) } "\n"
                style { (PreEscaped(include_str!("style.css"))) } "\n"
            }
            body {
                "\n"
                (patterns::used(&body.0)) (body) (glossary(&body.0))
                footer {
                    "Written by bdp " (env!("CARGO_PKG_VERSION"))
                    ". Rates in bit/s with decimal prefixes, sizes in bytes with binary ones (1 KiB = 1024). Medians "
                    "unless said otherwise; INVALID attempts enter none."
                }
                @if let Some(Script { text, .. }) = script { "\n" script { (PreEscaped(text)) } }
            }
        }
        "\n"
    })
}

/// Returns markup as text, with U+FFFD in place of characters excluded by XML 1.0 (section 2.2), and those that change
/// text direction (Unicode Technical Report 36, section 2.2). None of them is in bdp's own markup.
pub(crate) fn printable(markup: Markup) -> String {
    let is_bad = |c: char| is_command(c) && !matches!(c, '\n' | '\t');
    markup.into_string().replace(is_bad, "\u{fffd}")
}

/// A column of a table.
pub(crate) struct Heading {
    pub text: String,
    /// Classes of its cells: `n` for numbers.
    pub class: Option<&'static str>,
}

/// Returns a heading over words.
pub(crate) fn words(text: impl Into<String>) -> Heading {
    Heading { text: text.into(), class: None }
}

/// Returns a heading over numbers.
pub(crate) fn numbers(text: impl Into<String>) -> Heading {
    Heading { text: text.into(), class: Some("n") }
}

/// Returns a heading over the most important numbers.
pub(crate) fn strong(text: impl Into<String>) -> Heading {
    Heading { text: text.into(), class: Some("n strong") }
}

/// Returns a table with these rows of cells.
pub(crate) fn table<T: Render>(
    caption: &str,
    headings: &[Heading],
    rows: impl IntoIterator<Item = impl IntoIterator<Item = T>>,
) -> Markup {
    let rows = rows.into_iter().map(|row| html! { tr { (cells(headings, row)) } "\n" });
    table_of(caption, headings, html! { @for row in rows { (row) } })
}

/// Returns a table with this body.
pub(crate) fn table_of(caption: &str, headings: &[Heading], body: Markup) -> Markup {
    html! {
        div.scroll {
            table {
                @if !caption.is_empty() { caption { (caption) } }
                thead {
                    tr {
                        @for heading in headings {
                            th class=[heading.class] scope="col" { (heading.text) }
                        }
                    }
                }
                "\n"
                tbody { (body) }
            }
        }
        "\n"
    }
}

/// Returns the cells of a row.
pub(crate) fn cells<T: Render>(headings: &[Heading], row: impl IntoIterator<Item = T>) -> Markup {
    html! { @for (cell, heading) in row.into_iter().zip(headings) { td class=[heading.class] { (cell) } } }
}

/// Returns text as a cell.
pub(crate) fn text(text: impl Render) -> Markup {
    html! { (text) }
}

/// Returns a remark in small type.
pub(crate) fn note(text: impl Render) -> Markup {
    html! { p.note { (text) } "\n" }
}

/// Returns a small drawing within a line or a cell.
pub(crate) fn inline([width, height]: [f64; 2], label: &str, drawing: &Drawing) -> Markup {
    html! {
        svg viewBox={ "0 0 " (number(width)) " " (number(height)) } role="img" aria-label=(label) {
            @for shape in drawing.shapes() { (shape) }
        }
    }
}

/// Returns facts in two columns, name and value; those without a value are omitted.
pub(crate) fn facts(caption: &str, rows: &[(String, String)]) -> Markup {
    let rows: Vec<_> = rows.iter().filter(|(_, value)| !value.is_empty()).collect();
    html! {
        @if !rows.is_empty() {
            div.scroll {
                table.plain {
                    caption { (caption) }
                    tbody { @for (name, value) in rows { tr { td { (name) } td { (value) } } } }
                }
            }
            "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_stays_text() {
        let hostile = "</p><script>alert('1')</script>\" onload=\"x\u{1b}[2J\u{202e}&amp;";
        let text = printable(html! { p title=(hostile) { (hostile) } });
        assert_eq!(text.matches('<').count(), 2, "{text}");
        assert_eq!(text.split('>').next().unwrap().matches('"').count(), 2, "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("&amp;amp;"), "{text}");
    }
}
