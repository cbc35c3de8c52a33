//! A help topic as a manual page: the subset of Markdown that the documents use, in roff.

use clap_mangen::roff::{Inline, Roff, bold, roman};

/// Formats Markdown as a page of section 7.
pub fn page(name: &str, about: &str, markdown: &str) -> String {
    let mut roff = Roff::new();
    let version = concat!("bdp ", env!("CARGO_PKG_VERSION"));
    // Without a date, which an empty word would not leave out.
    roff.control("TH", [name.to_uppercase().as_str(), "7", " ", version, "bdp manual"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {about}"))]);
    roff.control("SH", ["DESCRIPTION"]);
    let mut columns: Vec<String> = Vec::new();
    let (mut is_code, mut is_parted) = (false, false);
    let mut paragraph = String::new();
    for line in markdown.lines() {
        let text = line.trim();
        if text.starts_with("```") {
            end(&mut roff, &mut paragraph);
            is_code = !is_code;
            code(&mut roff, is_code);
        } else if is_code {
            roff.text([roman(line)]);
        } else if let Some(row) = text.strip_prefix('|').and_then(|row| row.strip_suffix('|')) {
            end(&mut roff, &mut paragraph);
            let cells = cells(row);
            match columns.is_empty() {
                true => columns = cells,
                false if is_rule(row) => {}
                false => table_row(&mut roff, &columns, &cells),
            }
        } else if let Some((level, heading)) = heading(text) {
            end(&mut roff, &mut paragraph);
            match level {
                1 => {}
                2 => drop(roff.control("SH", [heading.to_uppercase().as_str()])),
                _ => drop(roff.control("SS", [heading])),
            }
        } else if let Some((mark, item)) = item(text) {
            end(&mut roff, &mut paragraph);
            roff.control("IP", [mark, "4"]);
            paragraph.push_str(item);
        } else if text.is_empty() || is_picture(text) {
            end(&mut roff, &mut paragraph);
            columns.clear();
            is_parted = true;
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            } else if is_parted {
                roff.control("PP", []);
            }
            is_parted = false;
            paragraph.push_str(text);
        }
    }
    end(&mut roff, &mut paragraph);
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman("bdp(1)")]);
    roff.to_roff()
}

/// Begins or ends unfilled lines.
fn code(roff: &mut Roff, begins: bool) {
    if begins {
        roff.control("PP", []).control("RS", ["4"]).control("nf", []);
    } else {
        roff.control("fi", []).control("RE", []);
    }
}

fn end(roff: &mut Roff, paragraph: &mut String) {
    if !paragraph.is_empty() {
        roff.text(inline(paragraph));
        paragraph.clear();
    }
}

/// A heading: its level and text.
pub fn heading(text: &str) -> Option<(usize, &str)> {
    let (marks, heading) = text.split_once(' ')?;
    (!marks.is_empty() && marks.chars().all(|c| c == '#')).then_some((marks.len(), heading))
}

/// Whether a line is a picture, which no terminal shows.
pub fn is_picture(text: &str) -> bool {
    text.starts_with("![") && text.ends_with(')')
}

/// A list item: its marker and text.
pub fn item(text: &str) -> Option<(&str, &str)> {
    let (mark, item) = text.split_once(' ')?;
    let number = mark.strip_suffix('.').filter(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    (mark == "-" || mark == "*" || number.is_some()).then_some((mark, item))
}

/// Whether a row of a table separates its heading from the others.
pub fn is_rule(row: &str) -> bool {
    row.chars().all(|c| matches!(c, '-' | ':' | '|' | ' '))
}

/// The cells of a table's row; a bar in a cell is written `\|`.
pub fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\u{0}");
    row.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}

/// A row as a tagged paragraph: its first cell, and the others each after the name of its column.
fn table_row(roff: &mut Roff, columns: &[String], cells: &[String]) {
    let (tag, rest) = match cells {
        [only] => (only.as_str(), &[][..]),
        [tag, rest @ ..] => (tag.as_str(), rest),
        [] => return,
    };
    roff.control("TP", []);
    roff.text([bold(if tag.is_empty() { "-".to_owned() } else { plain(tag) })]);
    let named = columns.len() > 2;
    let parts = rest.iter().zip(columns.iter().skip(1)).filter(|(cell, _)| !cell.is_empty());
    let parts: Vec<String> = parts
        .map(|(cell, column)| match named && !column.is_empty() {
            true => format!("{column}: {cell}"),
            false => cell.clone(),
        })
        .collect();
    roff.text(inline(&parts.join("; ")));
}

/// Text with backquoted parts in bold, and links without their targets.
fn inline(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    let parts = parts.filter(|(_, part)| !part.is_empty()).map(|(index, part)| match index % 2 {
        0 => roman(without_marks(part)),
        _ => bold(part),
    });
    // A roff line must not be empty.
    let all: Vec<Inline> = parts.collect();
    if all.is_empty() { vec![roman("-")] } else { all }
}

fn plain(text: &str) -> String {
    without_marks(&text.replace('`', ""))
}

/// Text without the targets of links and the marks of emphasis.
pub fn without_marks(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("](") {
        let (before, words) = before.rsplit_once('[').unwrap_or(("", before));
        out.push_str(before);
        out.push_str(words);
        rest = link.split_once(')').map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out.replace("**", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_documents_use_of_markdown_has_its_form_in_roff() {
        let text = "# Units\n\nSee `-t 5` and\n[window](window.md).\n\n```\n.x -t\n```\n\n## How it is\n\n\
                    | a | b | c |\n|---|---|---|\n| `x` | 1\\|2 | |\n\n- one\n  more\n1. two\n\n![a map](images/map.svg)\n";
        let page = page("bdp-units", "how they are typed", text);
        for part in [
            ".TH BDP-UNITS 7 \" \" \"bdp ",
            "bdp\\-units \\- how they are typed",
            "See \\fB\\-t 5\\fR and window.\n",
            ".nf\n\\&.x \\-t\n.fi",
            ".SH \"HOW IT IS\"",
            ".TP\n\\fBx\\fR\nb: 1|2\n",
            ".IP - 4\none more\n",
            ".IP 1. 4\ntwo\n",
        ] {
            assert!(page.contains(part), "no {part} in\n{page}");
        }
        assert!(!page.contains("map"), "{page}");
    }
}
