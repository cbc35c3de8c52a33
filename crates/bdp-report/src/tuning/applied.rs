//! Text on applied, confirmed, reverted and current settings.

use bdp_model::tuning::{Change, JournalReport, Plan, SettingBack, SettingChange, Target};

use super::words;
use crate::date::utc;
use crate::grid::{tame, wrap};
use crate::style::{Style, Tint};

/// Width of the labels at the start of lines.
const LABEL: usize = 9;

/// Message if all settings already have their values.
pub const NOTHING_TO_DO: &str = "nothing to do: all settings are already as planned\n";

/// A change of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeLine<'a> {
    /// The change.
    pub change: &'a SettingChange,
    /// Reason for it.
    pub why: String,
}

/// Settings that were applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedText<'a> {
    /// Number of settings written.
    pub settings: usize,
    /// Remote host, as named on the command line; `None` if applied locally.
    pub at: Option<&'a str>,
    /// Journal number.
    pub journal: Option<u32>,
    /// When the settings revert automatically.
    pub until_unix_ms: Option<u64>,
    /// File that applies them at boot.
    pub persistent_file: Option<&'a str>,
    /// Whether that file is written on confirmation.
    pub persists_when_confirmed: bool,
    /// Settings meant to be persistent that last only until the next boot.
    pub of_this_boot: &'a [Target],
}

/// Settings that were confirmed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfirmedText<'a> {
    /// Number of settings.
    pub settings: usize,
    /// Remote host; `None` if confirmed locally.
    pub at: Option<&'a str>,
    /// File that applies them at boot.
    pub persistent_file: Option<&'a str>,
    /// Settings meant to be persistent that last only until the next boot.
    pub of_this_boot: &'a [Target],
}

/// A journal of another network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElsewhereLine {
    /// Journal number.
    pub journal: u32,
    /// Inode number of the namespace.
    pub namespace: u64,
    /// Command prefix that runs a command in the namespace; `None` if none is known.
    pub way: Option<String>,
}

/// Result of a revert.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevertedText {
    /// Whether it was on a remote host, whose owner decides about settings that someone else changed.
    pub is_far: bool,
    /// Settings reverted, in order.
    pub put_back: Vec<SettingBack>,
    /// Number of settings that already had their earlier value.
    pub were_back: usize,
    /// Settings that someone else changed since.
    pub foreign: Vec<SettingBack>,
    /// File that was removed, or from which the settings were removed.
    pub persistent_file: Option<String>,
    /// Persistent file left in place because someone else changed it.
    pub foreign_file: Option<String>,
    /// Journals from earlier boots.
    pub of_other_boots: Vec<u32>,
    /// Journals of other network namespaces.
    pub elsewhere: Vec<ElsewhereLine>,
}

/// A journal of applied settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalText {
    /// The journal.
    pub journal: JournalReport,
    /// Its state in words.
    pub standing: String,
}

/// Settings currently in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateText {
    /// Journals, oldest first.
    pub journals: Vec<JournalText>,
    /// File that applies settings at boot.
    pub persistent_file: Option<String>,
    /// Whether the file is missing.
    pub is_file_missing: bool,
    /// Whether someone else changed the file.
    pub is_file_foreign: bool,
}

/// Returns the reason for a change of a plan, as a sentence.
pub fn why(plan: &Plan, change: &Change) -> String {
    words::reason(plan, change)
}

/// Returns a numbered list of changes.
pub fn changes_text(changes: &[ChangeLine<'_>], style: &Style) -> String {
    let mut text = String::new();
    for (at, change) in changes.iter().enumerate() {
        let ChangeLine { change, why } = change;
        let after = tame(&change.after);
        let step = match change.already {
            true => format!("{after} already"),
            false => format!("{} -> {after}", value(change.before.as_deref())),
        };
        let line = format!("{}: {step}", tame(&change.target.to_string()));
        text.push_str(&wrap(&format!("{}. ", at + 1), Tint::Strong, &line, style));
        text.push_str(&wrap("   ", Tint::None, why, style));
    }
    text
}

/// Returns text on the applied settings and how to revert them.
pub fn applied_text(applied: &AppliedText<'_>, style: &Style) -> String {
    let Some(journal) = applied.journal else { return NOTHING_TO_DO.to_owned() };
    let mut text = line("applied", &format!("{}, journal {journal}", settings(applied.settings)), style);
    if let Some(until) = applied.until_unix_ms {
        let clock = if applied.at.is_some() { " by the clock there" } else { "" };
        let words = format!(
            "{}{clock}, then all changes revert; 'bdp tune confirm{}' keeps them",
            utc(until),
            option_at(applied.at)
        );
        text.push_str(&line("until", &words, style));
    }
    if applied.persists_when_confirmed {
        text.push_str(&line("boot", "not yet: set at boot once it is confirmed", style));
    }
    text.push_str(&boot(applied.persistent_file, applied.of_this_boot, style));
    text + &line("undo", &format!("bdp tune revert{}", option_at(applied.at)), style)
}

/// Returns text on the confirmed settings.
pub fn confirmed_text(confirmed: &ConfirmedText<'_>, style: &Style) -> String {
    let words = format!(
        "{} in force until 'bdp tune revert{}'",
        settings(confirmed.settings),
        option_at(confirmed.at)
    );
    line("kept", &words, style) + &boot(confirmed.persistent_file, confirmed.of_this_boot, style)
}

/// Returns text on the settings that were reverted and those left alone.
pub fn reverted_text(reverted: &RevertedText, style: &Style) -> String {
    let mut text = String::new();
    for back in &reverted.put_back {
        let words = format!(
            "{}: {} -> {}",
            tame(&back.target.to_string()),
            tame(&back.wrote),
            value(back.before.as_deref())
        );
        text.push_str(&line("back", &words, style));
    }
    if reverted.were_back > 0 {
        text.push_str(&line("back", &format!("{} as before already", settings(reverted.were_back)), style));
    }
    for foreign in &reverted.foreign {
        let force =
            if reverted.is_far { "there, 'bdp tune revert --force'" } else { "'bdp tune revert --force'" };
        let words = format!(
            "{}: bdp wrote {}, but it is now {}, changed by someone else ({force} sets {})",
            tame(&foreign.target.to_string()),
            tame(&foreign.wrote),
            value(foreign.now.as_deref()),
            value(foreign.before.as_deref())
        );
        text.push_str(&line("left", &words, style));
    }
    if let Some(file) = &reverted.persistent_file {
        text.push_str(&line("boot", &format!("{} is as before", tame(file)), style));
    }
    if let Some(file) = &reverted.foreign_file {
        let words = format!("{}: changed by someone else ('bdp tune revert --force' removes it)", tame(file));
        text.push_str(&line("left", &words, style));
    }
    for id in &reverted.of_other_boots {
        text.push_str(&line(
            "gone",
            &format!("journal {id} from before the last boot, which reset its settings"),
            style,
        ));
    }
    for ElsewhereLine { journal, namespace, way } in &reverted.elsewhere {
        let words = match way {
            Some(way) => format!(
                "journal {journal} in another network namespace ({namespace}); revert there: {} bdp tune revert",
                tame(way)
            ),
            None => format!(
                "journal {journal} in network namespace {namespace}, which has no process; if it is gone, \
                 so are its settings: rename the journal with 'bdp tune journal --set-aside {journal}'"
            ),
        };
        text.push_str(&line("left", &words, style));
    }
    if text.is_empty() {
        text.push_str("nothing to revert\n");
    }
    text
}

/// Returns text on the settings in force.
pub fn state_text(state: &StateText, style: &Style) -> String {
    let mut text = String::new();
    for JournalText { journal, standing } in &state.journals {
        let until = journal.until_unix_ms.map_or_else(String::new, |until| format!(", until {}", utc(until)));
        let client = journal.client.map_or_else(String::new, |client| format!(" from {client}"));
        let words =
            format!("{}{client}: since {}{until}: {standing}", journal.id, utc(journal.started_unix_ms));
        text.push_str(&line("journal", &words, style));
        for setting in &journal.settings {
            let note = match &*setting.standing {
                "foreign" => format!("; someone else set {}", value(setting.now.as_deref())),
                "as_before" => "; as before".to_owned(),
                _ => String::new(),
            };
            let words = format!(
                "{}: {} -> {}{note}",
                tame(&setting.target.to_string()),
                value(setting.before.as_deref()),
                tame(&setting.wrote)
            );
            text.push_str(&line("", &words, style));
        }
    }
    if let Some(file) = &state.persistent_file {
        let note = match (state.is_file_missing, state.is_file_foreign) {
            (true, _) => ": missing; 'bdp tune confirm' writes it",
            (_, true) => ": changed by someone else",
            _ => "",
        };
        text.push_str(&line("boot", &format!("{}{note}", tame(file)), style));
    }
    if text.is_empty() {
        text.push_str("nothing is in force\n");
    }
    text
}

/// Returns text on the settings that apply after the next boot.
fn boot(file: Option<&str>, of_this_boot: &[Target], style: &Style) -> String {
    let mut text = file.map_or_else(String::new, |file| line("boot", &tame(file), style));
    for target in of_this_boot {
        let words =
            format!("{}: until the next boot; no file of sysctls can set it", tame(&target.to_string()));
        text.push_str(&line("boot", &words, style));
    }
    text
}

fn line(label: &str, words: &str, style: &Style) -> String {
    wrap(&format!("{label:<LABEL$}"), Tint::Strong, words, style)
}

fn option_at(at: Option<&str>) -> String {
    at.map_or_else(String::new, |at| format!(" --at {}", tame(at)))
}

fn settings(count: usize) -> String {
    match count {
        1 => "1 setting".to_owned(),
        count => format!("{count} settings"),
    }
}

fn value(value: Option<&str>) -> String {
    value.map_or_else(|| "not set".to_owned(), tame)
}

#[cfg(test)]
mod tests {
    use bdp_model::tuning::SettingReport;

    use super::*;

    fn rmem() -> Target {
        Target::sysctl("net.ipv4.tcp_rmem")
    }

    fn back(now: Option<&str>) -> SettingBack {
        SettingBack {
            target: rmem(),
            before: Some("1 2 3".to_owned()),
            wrote: "1 2 4".to_owned(),
            now: now.map(str::to_owned),
        }
    }

    fn plain() -> Style {
        Style::detect(false, None, None, None, None, None)
    }

    #[test]
    fn what_was_applied_ends_with_how_it_is_undone() {
        let targets = [Target::Qdisc { device: "eth0".to_owned() }];
        let applied = AppliedText {
            settings: 2,
            journal: Some(3),
            until_unix_ms: Some(600_000),
            persists_when_confirmed: true,
            of_this_boot: &targets,
            ..AppliedText::default()
        };
        let text = applied_text(&applied, &plain());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "applied  2 settings, journal 3",
                "until    1970-01-01T00:10:00Z, then all changes revert; 'bdp tune confirm' keeps them",
                "boot     not yet: set at boot once it is confirmed",
                "boot     qdisc of eth0: until the next boot; no file of sysctls can set it",
                "undo     bdp tune revert",
            ]
        );
        assert_eq!(applied_text(&AppliedText::default(), &plain()), NOTHING_TO_DO);
    }

    #[test]
    fn what_is_left_is_named_with_all_three_values() {
        let reverted = RevertedText {
            put_back: vec![back(None)],
            foreign: vec![back(Some("9 9 9"))],
            ..RevertedText::default()
        };
        let text = reverted_text(&reverted, &plain());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.starts_with("back net.ipv4.tcp_rmem: 1 2 4 -> 1 2 3 left net.ipv4.tcp_rmem: bdp wrote 1 2 4, but it is now 9 9 9, changed by someone else"), "{words}");
        assert!(words.ends_with("('bdp tune revert --force' sets 1 2 3)"), "{words}");
        assert_eq!(reverted_text(&RevertedText::default(), &plain()), "nothing to revert\n");
    }

    #[test]
    fn control_characters_of_a_journal_do_not_reach_the_terminal() {
        let setting = SettingReport {
            target: Target::sysctl("net.\u{1b}[2J"),
            before: None,
            wrote: "1\u{7}".to_owned(),
            now: Some("\u{9b}2".to_owned()),
            standing: "foreign".to_owned(),
        };
        let journal = JournalReport {
            id: 1,
            client: None,
            standing: "in_force".to_owned(),
            started_unix_ms: 0,
            until_unix_ms: None,
            guarded: false,
            settings: vec![setting],
        };
        let journals = vec![JournalText { journal, standing: "x".to_owned() }];
        let state = StateText { journals, ..StateText::default() };
        let text = state_text(&state, &plain());
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(state_text(&StateText::default(), &plain()), "nothing is in force\n");
    }
}
