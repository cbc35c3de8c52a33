//! Help: `-h` with the usual options, `--help` and `bdp help` with all of them, in groups.

use clap::Command;

use crate::exit::{self, Outcome};
use crate::prose::filled;
use crate::{output, topics};

/// Groups of options, in this order.
pub const TEST: &str = "Test";
pub const TRAFFIC: &str = "Traffic";
pub const WINDOW: &str = "Window and socket";
pub const ADDRESS: &str = "Address";
pub const OUTPUT: &str = "Output";
pub const ACCESS: &str = "Server access";
pub const INTEROP: &str = "Interoperability";

/// The subcommands in groups, in this order.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("Between machines", &["measure", "page", "ping", "path", "sweep", "serve"]),
    ("On this machine", &["watch", "pcap", "demo", "lab", "calc", "selftest"]),
    ("Tuning", &["fix", "twin", "rehearse", "tune", "verify"]),
    ("Stored runs", &["runs", "show", "explain", "compare", "report"]),
    ("Help", &["help", "man", "completions"]),
];

/// Wider lines of text are hard to read.
const WIDEST: u16 = 120;

/// Arguments of `bdp help`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp help measure\n  bdp help lab run\n  bdp help topics\n  bdp help windows"
)]
pub struct HelpArgs {
    /// Subcommand, for example 'measure' or 'lab run', or a topic; 'topics' lists all topics [default: bdp itself]
    #[arg(value_name = "SUBCOMMAND|TOPIC")]
    path: Vec<String>,
}

impl HelpArgs {
    /// Prints the help of a command or a subcommand.
    pub fn run(self, mut root: Command) -> Outcome {
        root.build();
        let mut command = &root;
        if let [name] = &self.path[..]
            && command.find_subcommand(name).is_none()
        {
            return topics::print(name, usize::from(output::style().width.min(WIDEST)))
                .unwrap_or_else(|| Err(topics::unknown(name)));
        }
        for name in &self.path {
            command = command.find_subcommand(name).ok_or_else(|| {
                let (name, parent) = (output::tame(name), command.get_bin_name().unwrap_or("bdp"));
                exit::usage(format!("'{parent}' has no subcommand '{name}'; see '{parent} --help'"))
            })?;
        }
        output::print(&text(command, Extent::Full, output::style().width))
    }
}

/// Extent of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The usual options.
    Short,
    /// All options.
    Full,
}

/// The help of a built command, in lines of at most `columns` columns.
pub fn text(command: &Command, extent: Extent, columns: u16) -> String {
    let name = command.get_bin_name().unwrap_or("bdp").to_owned();
    let leaves_out = command.get_arguments().any(|argument| argument.is_hide_short_help_set());
    let mut command = command.clone().term_width(usize::from(columns.min(WIDEST)));
    match extent {
        Extent::Full => {
            if let Some(about) = command.get_long_about().cloned() {
                command = command.about(about);
            }
            if let Some(after) = command.get_after_long_help().cloned() {
                command = command.after_help(after);
            }
            command = command.mut_args(|argument| argument.hide_short_help(false));
        }
        Extent::Short if leaves_out => {
            let examples = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
            command = command.after_help(format!("{examples}All options: {name} --help"));
        }
        Extent::Short => {}
    }
    if name == "bdp" {
        let commands = grouped(&command, columns.min(WIDEST));
        command = command.help_template(format!(
            "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{commands}Options:\n{{options}}{{after-help}}"
        ));
    }
    // Placed with the other output options.
    let is_grouped = command.get_arguments().any(|argument| argument.get_help_heading() == Some(OUTPUT));
    command = command.mut_args(|argument| match argument.get_id().as_str() {
        "help" => match is_grouped {
            true => argument.help("Print help").help_heading(OUTPUT),
            false => argument.help("Print help"),
        },
        "version" if is_grouped => argument.help_heading(OUTPUT),
        _ => argument,
    });
    command.render_help().to_string()
}

/// The subcommands of bdp with their purpose, in groups.
fn grouped(root: &Command, columns: u16) -> String {
    const INDENT: usize = 15;
    let mut text = String::new();
    for (heading, names) in COMMANDS {
        text.push_str(&format!("{heading}:\n"));
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about).cloned().unwrap_or_default();
            let lines = filled(&about.to_string(), usize::from(columns).saturating_sub(INDENT));
            let lines = lines.join(&format!("\n{}", " ".repeat(INDENT)));
            text.push_str(&format!("  {name:<width$}{lines}\n", width = INDENT - 2));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn help(path: &str, extent: Extent, columns: u16) -> String {
        let mut root = Cli::command();
        root.build();
        let command = path.split_whitespace().fold(&root, |at, name| at.find_subcommand(name).unwrap());
        text(command, extent, columns)
    }

    /// Paths of all visible commands.
    fn paths() -> Vec<String> {
        fn below(command: &Command, path: &str, all: &mut Vec<String>) {
            all.push(path.to_owned());
            for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
                below(command, format!("{path} {}", command.get_name()).trim(), all);
            }
        }
        let mut root = Cli::command();
        root.build();
        let mut all = Vec::new();
        below(&root, "", &mut all);
        all
    }

    #[test]
    fn help_is_laid_out_for_the_width_of_the_terminal() {
        for path in ["", "measure", "ping", "path", "sweep", "serve", "lab run"] {
            let all = [(Extent::Short, 80), (Extent::Short, 120), (Extent::Full, 80), (Extent::Full, 120)];
            let texts = all.map(|(extent, columns)| {
                format!("==> {extent:?}, {columns} columns <==\n{}", help(path, extent, columns))
            });
            let file = format!("bdp {path}").split_whitespace().collect::<Vec<_>>().join("-");
            insta::assert_snapshot!(file, texts.join("\n"));
        }
    }

    #[test]
    fn every_command_is_in_a_group_and_has_examples() {
        let text = help("", Extent::Short, 80);
        for path in paths().iter().filter(|path| !path.is_empty()) {
            if !path.contains(' ') {
                assert!(text.contains(&format!("\n  {path} ")), "{path} is in no group:\n{text}");
            }
            let help = help(path, Extent::Full, 80);
            // A command with subcommands lists those.
            assert!(help.contains("\nExample") || help.contains("Commands:\n"), "{path}:\n{help}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for path in paths() {
            for columns in [80, 120] {
                for line in help(&path, Extent::Full, columns).lines() {
                    // Commands to paste are not wrapped.
                    let is_text = !line.starts_with("  bdp ") && !line.starts_with("Usage:");
                    let length = line.chars().count();
                    assert!(!is_text || length <= usize::from(columns), "bdp {path}: {length}: {line}");
                }
            }
        }
    }

    #[test]
    fn the_short_help_of_a_measurement_fits_a_screen() {
        let lines = help("measure", Extent::Short, 80).lines().count();
        assert!(lines <= 50, "{lines} lines");
    }

    #[test]
    fn the_full_help_has_every_option_in_its_group() {
        let text = help("measure", Extent::Full, 100);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in\n{text}"));
        let groups =
            [TEST, TRAFFIC, WINDOW, ADDRESS, OUTPUT, ACCESS, INTEROP].map(|g| at(&format!("\n{g}:\n")));
        assert!(groups.is_sorted(), "{text}");
        assert!(!text.contains("\nOptions:\n"), "an option has no group:\n{text}");
    }
}
