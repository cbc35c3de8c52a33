//! `bdp lab import` and `bdp lab export`: paths in the formats of other emulators.

use std::io::Read;
use std::path::Path;

use bdp_scenario::foreign::{self, Imported};
use bdp_scenario::{PlanOptions, Scenario};

use super::plan::PlanArgs;
use super::source;
use crate::exit::{self, Outcome};
use crate::output;

/// Larger files are rejected as configurations.
const LARGEST_FILE: u64 = 1 << 20;

/// Arguments of `bdp lab import`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab import --netem 'delay 50ms 10ms loss 1% rate 10mbit limit 100' > path.toml\n  \
    bdp lab import --mahimahi up.trace --mahimahi down.trace > path.toml\n  bdp lab import --rattan config.toml > path.toml\n  \
    echo 'mm-delay 20 mm-link up.trace down.trace' | bdp lab import -\n  \
    bdp lab import shape.sh > path.toml                a script of tc commands: netem, tbf, htb, cake, fq_codel, ifb\n  \
    tc qdisc show | bdp lab import - > path.toml       the current configuration of a host\n\n\
    Prints the scenario to standard output, and each setting that can't be converted to standard error."
)]
pub struct ImportArgs {
    /// File with tc commands, output of 'tc qdisc show', mahimahi commands or a rattan configuration; '-' is standard input
    #[arg(required_unless_present_any = ["netem", "mahimahi", "rattan"])]
    file: Option<String>,

    /// netem command or its options; a second one is for the reverse direction
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["file", "mahimahi", "rattan"])]
    netem: Vec<String>,

    /// Trace in mahimahi's format; a second one is for the reverse direction
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["file", "rattan"])]
    mahimahi: Vec<String>,

    /// rattan configuration file
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    rattan: Option<String>,
}

impl ImportArgs {
    /// Imports a path.
    pub fn run(self) -> Outcome {
        let refused = |error: foreign::ImportError| exit::usage(format!("cannot import: {error}"));
        let Imported { text, left_out } = if !self.netem.is_empty() {
            foreign::netem(&self.netem.iter().map(String::as_str).collect::<Vec<_>>()).map_err(refused)?
        } else if !self.mahimahi.is_empty() {
            for file in &self.mahimahi {
                source::read_trace(file, Path::new(file))?;
            }
            foreign::mahimahi_trace(&self.mahimahi.iter().map(String::as_str).collect::<Vec<_>>())
                .map_err(refused)?
        } else if let Some(file) = &self.rattan {
            foreign::rattan(&read(file)?).map_err(refused)?
        } else {
            foreign::import(&read(self.file.as_deref().unwrap_or("-"))?).map_err(refused)?
        };
        // Traces are read when the scenario runs.
        if !text.contains("trace =") {
            Scenario::parse("imported", &text).map_err(|error| {
                exit::usage(format!("cannot import: the result is not a valid scenario: {error}"))
            })?;
        }
        left_out.iter().for_each(|line| output::note(&format!("not imported: {line}")));
        output::print(&text)
    }
}

fn read(path: &str) -> anyhow::Result<String> {
    let refused = |cause: String| exit::usage(format!("cannot read '{path}': {cause}"));
    let mut bytes = Vec::new();
    let read = match path {
        "-" => std::io::stdin().take(LARGEST_FILE + 1).read_to_end(&mut bytes),
        path => {
            std::fs::File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes))
        }
    };
    read.map_err(|e| refused(e.to_string()))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(refused(format!("it is larger than {} MiB", LARGEST_FILE >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text".to_owned()))
}

/// Arguments of `bdp lab export`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab export s4-loss --filter 'congestion=cubic stack=linux-6.12'\n  bdp lab export mine.toml\n\n\
    A comment '# not: ...' after a command names what netem can't emulate."
)]
pub struct ExportArgs {
    /// Scenario: the path of a TOML file, or a name from 'bdp lab list'
    scenario: String,

    #[command(flatten)]
    plan: PlanArgs,
}

impl ExportArgs {
    /// Exports a path.
    pub fn run(self) -> Outcome {
        let options = PlanOptions { repetitions: Some(1), links_alone: true, ..self.plan.options() };
        let scenario = source::load(&self.scenario, &options)?;
        let cases = source::plan(&scenario, &options)?;
        let mut commands: Vec<(String, String)> = Vec::new();
        for case in &cases {
            let text = foreign::netem_commands(case);
            // Cases that differ only in their hosts or flows have the same links.
            if !commands.iter().any(|(_, same)| *same == text) {
                commands.push((case.key(), text));
            }
        }
        let several = commands.len() > 1;
        let text: Vec<String> = commands
            .into_iter()
            .map(|(key, text)| if several { format!("# case {key}\n{text}") } else { text })
            .collect();
        output::print(&text.join("\n"))
    }
}
