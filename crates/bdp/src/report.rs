//! `bdp report`: a stored run as an HTML page or as CSV.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use bdp_model::record::Record;
use bdp_report::About;
use bdp_store::Store;

use crate::output::{self, print, utc};
use crate::store::{StoreArgs, refuse};
use crate::{Outcome, exit};

/// Largest file of records that is read.
const MOST_BYTES: u64 = 4 << 30;

/// Arguments of `bdp report`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bdp report 7f3a\n  bdp report 7f3a --output - | less\n  \
    bdp report 7f3a --csv > 7f3a.csv\n  bdp lab run s3-30k --json > s3.json; bdp report s3.json")]
pub struct ReportArgs {
    /// The run: its name or the beginning of it, or its label, as 'bdp runs' lists it; or a file that --json wrote
    run: String,

    /// Where the page goes; '-' is standard output [default: bdp-RUN.html here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write comma-separated values instead (docs/report.md), to standard output where no --output is given
    #[arg(long)]
    csv: bool,

    #[command(flatten)]
    store: StoreArgs,
}

/// A run with its records.
struct Found {
    /// For the file's name.
    name: String,
    run: Option<String>,
    label: Option<String>,
    command: Option<String>,
    started: Option<String>,
    planned: Option<usize>,
    records: Vec<Record>,
}

impl ReportArgs {
    /// Writes the report.
    pub fn run(self) -> Outcome {
        let found = self.find()?;
        if self.csv {
            let text = bdp_report::csv(&found.records);
            return match &self.output {
                Some(path) if path.as_os_str() != "-" => {
                    write(path, &text)?;
                    print(&format!("{}\n", shown(path)))
                }
                _ => print(&text),
            };
        }
        let text = bdp_report::html(&found.records, &found.about());
        let path = self.output.unwrap_or_else(|| format!("bdp-{}.html", found.name).into());
        if path.as_os_str() == "-" {
            return print(&text);
        }
        write(&path, &text)?;
        print(&format!("{}\n", shown(&path)))
    }

    fn find(&self) -> anyhow::Result<Found> {
        // No run's name has a full stop or a slash.
        if self.run.contains(['.', '/']) {
            return read(Path::new(&self.run));
        }
        let Some(store) = self.store.open_to_read()? else {
            return Err(exit::usage(format!("there is no run '{}'; nothing is stored yet", self.run)));
        };
        let info = store.run(&self.run).map_err(refuse)?;
        let records = store.records(&info.id).map_err(refuse)?;
        Ok(Found {
            name: info.id.clone(),
            run: Some(info.id),
            label: info.label,
            command: Some(info.command),
            started: Some(utc(info.started_unix_ms)),
            planned: usize::try_from(info.planned).ok(),
            records: records.into_iter().map(|(_, record)| record).collect(),
        })
    }
}

impl Found {
    fn about(&self) -> About<'_> {
        About {
            run: self.run.as_deref(),
            label: self.label.as_deref(),
            command: self.command.as_deref(),
            started: self.started.as_deref(),
            planned: self.planned,
        }
    }
}

/// The records of a document that `--json` wrote.
fn read(path: &Path) -> anyhow::Result<Found> {
    let operand = path.display();
    let refused =
        |error: &dyn std::fmt::Display| exit::environment(format!("cannot read {operand}: {error}"));
    let length = fs::metadata(path).map_err(|e| refused(&e))?.len();
    if length > MOST_BYTES {
        return Err(exit::usage(format!(
            "{operand} has {length} bytes; a report is made of at most {MOST_BYTES}"
        )));
    }
    let text = fs::read_to_string(path).map_err(|e| refused(&e))?;
    #[derive(serde::Deserialize)]
    struct Document {
        schema: String,
        cases: Vec<Record>,
    }
    let document: Document = serde_json::from_str(&text).map_err(|e| {
        exit::usage(format!("{operand} is not what 'bdp lab run --json' writes: {e}; see docs/record.md"))
    })?;
    if document.schema != bdp_report::CASES_SCHEMA {
        return Err(exit::usage(format!(
            "{operand} has the schema '{}', and this bdp reads '{}'; a newer bdp may read it",
            document.schema,
            bdp_report::CASES_SCHEMA
        )));
    }
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let started = document.cases.iter().map(|r| r.environment.started_unix_ms).min().map(utc);
    Ok(Found {
        name: stem,
        run: None,
        label: None,
        command: None,
        started,
        planned: None,
        records: document.cases,
    })
}

/// Writes a page about `records` to `path`.
pub fn write_page(path: &Path, records: &[Record], about: &About<'_>) -> anyhow::Result<()> {
    write(path, &bdp_report::html(records, about))
}

/// Writes a file whole or not at all: whoever reads it never finds half of it.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let refused = |error: std::io::Error| {
        exit::environment(format!(
            "cannot write the report to {}: {error}; name another place for it",
            path.display()
        ))
    };
    // A device or a pipe can't be replaced by a file.
    if path.exists() && !path.is_file() {
        return fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(refused);
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map_err(refused)
}

/// A path as one types it: with `./` before a name in this folder.
pub fn shown(path: &Path) -> String {
    let text = output::tame(&path.to_string_lossy());
    if path.parent().is_some_and(|p| p.as_os_str().is_empty()) { format!("./{text}") } else { text }
}
