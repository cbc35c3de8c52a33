//! `bdp man`: manual pages, generated from the definitions of the command line.

use std::fs;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::exit::{self, Exit, Outcome};
use crate::{output, topics};

/// Arguments of `bdp man`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp man | man -l -\n  bdp man lab run | man -l -\n  bdp man windows | man -l -\n  bdp man --dir ~/.local/share/man/man1"
)]
pub struct ManArgs {
    /// Subcommand or help topic [default: bdp itself]
    #[arg(value_name = "SUBCOMMAND|TOPIC", conflicts_with = "dir")]
    path: Vec<String>,

    /// Write bdp.1 and the page of every subcommand to this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// With --dir, write the pages of the help topics (section 7) instead
    #[arg(long, requires = "dir")]
    topics: bool,
}

impl ManArgs {
    /// Prints or writes the pages of a command and its subcommands.
    pub fn run(self, root: Command) -> Outcome {
        let Some(folder) = self.dir else {
            let topic = match &self.path[..] {
                [name] if root.find_subcommand(name).is_none() => topics::page(name),
                _ => None,
            };
            return output::print(&topic.map_or_else(|| find(root, &self.path).map(page), Ok)?);
        };
        let refused = |what: &str, error: std::io::Error| {
            exit::environment(format!("{what}: {error}; choose another folder with --dir"))
        };
        let shown = folder.display();
        fs::create_dir_all(&folder).map_err(|e| refused(&format!("make the folder '{shown}'"), e))?;
        let pages: Vec<(String, String)> = match self.topics {
            true => topics::pages().collect(),
            false => every(root).into_iter().map(|c| (format!("{}.1", page_name(&c)), page(c))).collect(),
        };
        for (name, page) in pages {
            let file = folder.join(name);
            fs::write(&file, page).map_err(|e| refused(&format!("write '{}'", file.display()), e))?;
        }
        Ok(Exit::Done)
    }
}

/// The command and all visible commands below it, with their full names.
fn every(mut root: Command) -> Vec<Command> {
    root.build();
    let mut all = vec![root];
    let mut next = 0;
    while next < all.len() {
        let below: Vec<Command> = all[next].get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
        all.extend(below);
        next += 1;
    }
    all
}

fn find(mut root: Command, path: &[String]) -> anyhow::Result<Command> {
    root.build();
    let mut command = &root;
    for name in path {
        command = command.find_subcommand(name).ok_or_else(|| {
            let (name, parent) = (output::tame(name), command.get_bin_name().unwrap_or("bdp"));
            exit::usage(format!("'{parent}' has no subcommand '{name}'; see '{parent} --help'"))
        })?;
    }
    Ok(command.clone())
}

/// `bdp-lab-run`.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// A manual page in roff, by the sections of man-pages(7).
fn page(command: Command) -> String {
    let name = page_name(&command);
    let is_root = !name.contains('-');
    let own = Notes::of(&command);
    let has_subcommands = command.get_subcommands().any(|c| !c.is_hide_set());
    let parent = name.rsplit_once('-').map(|(parent, _)| parent.to_owned());
    let man =
        Man::new(command).source(concat!("bdp ", env!("CARGO_PKG_VERSION"))).manual("bdp manual").date(" ");
    let mut text = Vec::new();
    let rendered = man
        .render_title(&mut text)
        .and_then(|()| man.render_name_section(&mut text))
        .and_then(|()| man.render_synopsis_section(&mut text))
        .and_then(|()| man.render_description_section(&mut text))
        .and_then(|()| man.render_options_section(&mut text))
        .and_then(|()| if has_subcommands { man.render_subcommands_section(&mut text) } else { Ok(()) });
    // Writing to memory never fails.
    debug_assert!(rendered.is_ok());
    let mut roff = Roff::new();
    notes(&mut roff, &own, is_root);
    exit_status(&mut roff, own.exit_status.as_deref());
    if is_root {
        tagged(&mut roff, "FILES", &FILES);
        tagged(&mut roff, "ENVIRONMENT", &ENVIRONMENT);
    }
    see_also(&mut roff, parent.as_deref());
    let mut page = String::from_utf8_lossy(&text).into_owned();
    page.push_str(&roff.to_roff());
    page
}

/// The text below the options in a command's help.
#[derive(Default)]
struct Notes {
    examples: Vec<String>,
    exit_status: Option<String>,
    others: Vec<String>,
}

impl Notes {
    /// Parses the help's blocks, separated by empty lines; the first word of two identifies a block.
    fn of(command: &Command) -> Self {
        let help = command.get_after_long_help().or(command.get_after_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        let mut notes = Self::default();
        for block in help.split("\n\n") {
            if let Some(lines) = block.strip_prefix("Examples:") {
                notes
                    .examples
                    .extend(lines.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned));
            } else if let Some(codes) = block.strip_prefix("Exit codes:") {
                let codes: Vec<&str> = codes.split_whitespace().collect();
                notes.exit_status = Some(codes.join(" "));
            } else if !block.trim().is_empty() {
                notes.others.push(block.to_owned());
            }
        }
        notes
    }
}

fn notes(roff: &mut Roff, notes: &Notes, is_root: bool) {
    if !notes.others.is_empty() {
        roff.control("SH", ["NOTES"]);
    }
    for block in &notes.others {
        as_it_is(roff, block.lines());
    }
    let examples: Vec<&str> =
        if is_root { EXAMPLES.to_vec() } else { notes.examples.iter().map(String::as_str).collect() };
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        as_it_is(roff, examples.into_iter());
    }
}

/// Adds lines without filling.
fn as_it_is<'a>(roff: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    roff.control("PP", []);
    roff.control("RS", ["4"]);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.control("RE", []);
}

/// Exit codes that shells report for an end by a signal, which are not bdp's own.
const ENDED: [(&str, &str); 2] = [("130", "Ended early by Ctrl-C."), ("143", "Ended early by SIGTERM.")];

fn exit_status(roff: &mut Roff, own: Option<&str>) {
    match own {
        Some(text) => {
            roff.control("SH", ["EXIT STATUS"]);
            roff.text([roman(text)]);
        }
        None => {
            let codes = Exit::ALL.map(|e| (e.code().to_string(), e.meaning()));
            let codes = codes.iter().map(|(code, meaning)| (code.as_str(), *meaning));
            let codes: Vec<(&str, &str)> = codes.chain(ENDED).collect();
            tagged(roff, "EXIT STATUS", &codes);
        }
    }
}

fn tagged(roff: &mut Roff, heading: &str, entries: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    for (tag, text) in entries {
        roff.control("TP", []);
        roff.text([bold(*tag)]);
        roff.text([roman(*text)]);
    }
}

fn see_also(roff: &mut Roff, parent: Option<&str>) {
    roff.control("SH", ["SEE ALSO"]);
    let pages = match parent {
        None => {
            "bdp-guide(7), tcp(7), ip-sysctl in the kernel's documentation, iperf3(1), tshark(1)".to_owned()
        }
        Some("bdp") => "bdp(1)".to_owned(),
        Some(parent) => format!("{parent}(1), bdp(1)"),
    };
    roff.text([roman(pages)]);
}

const EXAMPLES: [&str; 6] = [
    "bdp                                     the features available on this machine",
    "bdp demo                                published experiments, repeated here",
    "bdp lab run s3-30k                      one experiment on the emulated lab",
    "bdp lab run mine.toml --capture here    with a capture at both ends of every link",
    "bdp calc bdp --rate 1G --rtt 2.55ms     the window that a path needs",
    "bdp show 7f3a                           a stored run again",
];

const FILES: [(&str, &str); 3] = [
    (
        "$XDG_DATA_HOME/bdp/bdp.sqlite",
        "File of the run store, unless --store is given; default ~/.local/share/bdp/bdp.sqlite.",
    ),
    ("bdp-captures", "Folder for captures requested by a scenario, unless --capture is given."),
    ("/dev/net/tun", "Needed by the lab."),
];

const ENVIRONMENT: [(&str, &str); 4] = [
    ("XDG_DATA_HOME, HOME", "Where the store is."),
    ("NO_COLOR", "Set and not empty: no colour."),
    ("LC_ALL, LANG", "UTF-8 here permits non-ASCII characters."),
    ("COLUMNS", "Width of tables and help, instead of the terminal's."),
];
