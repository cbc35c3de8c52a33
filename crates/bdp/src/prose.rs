//! A help topic for a terminal: the subset of Markdown that the documents use, formatted as lines.

use crate::roff::{cells, heading, is_picture, is_rule, item, without_marks};

/// Formats a document in lines of at most `columns` columns, except for code, which stays unchanged.
pub fn laid_out(markdown: &str, columns: usize) -> String {
    let mut page = Page { text: String::new(), columns, paragraph: String::new(), indent: 0 };
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut is_code = false;
    for line in markdown.lines() {
        let text = line.trim();
        let row = text.strip_prefix('|').and_then(|row| row.strip_suffix('|')).filter(|_| !is_code);
        if row.is_none() && !table.is_empty() {
            page.table(&std::mem::take(&mut table));
        }
        if text.starts_with("```") {
            page.end();
            is_code = !is_code;
        } else if is_code {
            page.line(&format!("    {line}"));
        } else if line.starts_with("    ") && page.paragraph.is_empty() {
            page.line(line);
        } else if let Some(row) = row {
            page.end();
            if !is_rule(row) {
                table.push(cells(row).iter().map(|cell| without_marks(cell)).collect());
            }
        } else if let Some((level, heading)) = heading(text) {
            page.end();
            let heading = without_marks(heading);
            page.line(&if level == 2 && !heading.contains('`') { heading.to_uppercase() } else { heading });
        } else if let Some((mark, words)) = item(text) {
            page.end();
            page.indent = mark.len() + 1;
            page.paragraph = format!("{mark} {words}");
        } else if text.is_empty() || is_picture(text) {
            page.end();
            page.blank();
        } else {
            page.paragraph.push(' ');
            page.paragraph.push_str(text);
        }
    }
    page.table(&table);
    page.end();
    page.text
}

/// Wraps words into lines of at most `columns` columns, except for longer words.
pub fn filled(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn width(text: &str) -> usize {
    text.chars().count()
}

struct Page {
    text: String,
    columns: usize,
    /// Text not yet printed.
    paragraph: String,
    /// Indentation of its lines after the first.
    indent: usize,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn end(&mut self) {
        let text = without_marks(&std::mem::take(&mut self.paragraph));
        let indent = std::mem::take(&mut self.indent);
        self.fill("", &text, indent);
    }

    /// Adds words after a lead, with lines after the first indented.
    fn fill(&mut self, lead: &str, text: &str, indent: usize) {
        let room = self.columns.saturating_sub(indent.max(width(lead))).max(20);
        for (index, line) in filled(text, room).iter().enumerate() {
            match index {
                0 => self.line(&format!("{lead}{line}")),
                _ => self.line(&format!("{}{line}", " ".repeat(indent))),
            }
        }
    }

    /// Adds a table in columns, the last of which is wrapped; if there is no room, a paragraph for each row.
    fn table(&mut self, rows: &[Vec<String>]) {
        let Some(head) = rows.first() else { return };
        let wide = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|c| width(c)).max();
        let widths: Vec<usize> = (0..head.len()).map(|column| wide(column).unwrap_or(0)).collect();
        let Some((last, before)) = widths.split_last() else { return };
        let indent: usize = before.iter().map(|width| width + 2).sum();
        if indent + (*last).min(self.columns / 3) <= self.columns {
            for row in rows {
                let cell = |(cell, width): (&String, &usize)| format!("{cell:<width$}  ");
                let lead: String = row.iter().zip(before).map(cell).collect();
                let text = row.get(before.len()).map_or("", String::as_str);
                match text {
                    "" => self.line(&lead),
                    text => self.fill(&lead, text, indent),
                }
            }
            return;
        }
        for row in rows.iter().skip(1) {
            let named = head.len() > 2;
            let parts = row.iter().zip(head).skip(1).filter(|(cell, _)| !cell.is_empty());
            let parts: Vec<String> = parts
                .map(|(cell, name)| if named { format!("{name}: {cell}") } else { cell.clone() })
                .collect();
            let tag = row.first().cloned().unwrap_or_default();
            self.fill("", &tag, 0);
            self.fill("    ", &parts.join("; "), 4);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_laid_out_for_a_terminal() {
        let markdown = "# The `window`\n\nSee [the guide](guide.md) and **more** of it, which is\nlong.\n\n![a map](images/map.svg)\n\n    x = min(a, b) x MSS / RTT\n\n## How\n\n\
                        - one that is\n  long enough to wrap\n- two\n\n```\nbdp measure   ams1 --a-long-line-of-code\n```\n\n\
                        | flag | meaning |\n|---|---|\n| `-t` | how long it takes, in all |\n| `-P` | |\n\n\
                        | one | two of it | three |\n|---|---|---|\n| a | a very long cell of it | c |\n";
        assert_eq!(
            laid_out(markdown, 24),
            "\
The `window`

See the guide and more
of it, which is long.

    x = min(a, b) x MSS / RTT

HOW

- one that is long
  enough to wrap
- two

    bdp measure   ams1 --a-long-line-of-code

flag  meaning
`-t`  how long it takes,
      in all
`-P`

a
    two of it: a very
    long cell of it;
    three: c
"
        );
    }
}
