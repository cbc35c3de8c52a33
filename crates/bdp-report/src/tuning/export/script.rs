//! POSIX scripts that apply, undo and show settings: the same on each system except for the commands that read and set.

use super::quote::shell;

/// Common part of every script: the record, its checks, and the three commands.
const RUNTIME: &str = include_str!("text/runtime.sh");

/// A setting of a script.
pub(super) struct Item {
    /// Purpose of the setting.
    pub purpose: Vec<String>,
    /// Setting and value, as arguments of the commands that read and set it.
    pub words: Vec<String>,
}

/// Width of a comment.
const WIDTH: usize = 110;

/// Returns lines as wrapped comments; an indented line is a command and is not wrapped.
pub(super) fn comments(lines: &[String], mark: &str) -> String {
    let mut text = String::new();
    for line in lines {
        if line.starts_with(' ') || line.len() <= WIDTH {
            text.push_str(&format!("{}\n", format!("{mark} {line}").trim_end()));
            continue;
        }
        let mut row = String::new();
        for word in line.split(' ') {
            if !row.is_empty() && row.len() + word.len() >= WIDTH {
                text.push_str(&format!("{mark} {row}\n"));
                row.clear();
            }
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(word);
        }
        text.push_str(&format!("{mark} {row}\n"));
    }
    text
}

/// Returns how a script is used, and where it keeps what was there first.
pub(super) fn usage(state: &str, last: &str) -> [String; 3] {
    [
        "It runs as root: 'sh FILE apply', 'sh FILE status', 'sh FILE undo'. What was there first goes to"
            .to_owned(),
        format!("{state}, or the file that BDP_TUNE_STATE names, before anything is set. Undo puts that"),
        format!("back, but for what someone else changed since, which it names. {last}"),
    ]
}

/// Returns a script for these settings; `system` has the functions that read and set them.
pub(super) fn script(top: &[String], plan: &str, items: &[Item], system: &str) -> String {
    let mut text = format!(
        "#!/bin/sh\n{}set -fu\nexport LC_ALL=C\numask 077\nplan={}\n",
        comments(top, "#"),
        shell(plan)
    );
    text.push_str(&format!("count={}\n\nitems() {{\n", items.len()));
    for (index, item) in items.iter().enumerate() {
        text.push_str(&comments(&item.purpose, "    #"));
        let words: Vec<String> = item.words.iter().map(|word| shell(word)).collect();
        text.push_str(&format!("    \"$1\" {} {}\n", index + 1, words.join(" ")));
    }
    if items.is_empty() {
        text.push_str("    :\n");
    }
    text + "}\n\n" + system + RUNTIME
}
