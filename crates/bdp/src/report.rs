//! `bdp report`: a stored run as an HTML page or as CSV.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use bdp_model::measurement::{MEASUREMENT_SCHEMA, Measurement};
use bdp_model::record::Record;
use bdp_report::About;
use bdp_store::{RunInfo, RunKind, SqliteStore, Store, StoredMeasurement};
use serde_json::Value;

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
    /// Path of the store, where it was given.
    store: Option<String>,
    kept: Kept,
}

/// What a run consists of.
enum Kept {
    Records(Vec<Record>),
    Measurements(Vec<StoredMeasurement>),
}

impl ReportArgs {
    /// Writes the report.
    pub fn run(self) -> Outcome {
        let found = self.find()?;
        if self.csv {
            let text = found.csv();
            return match &self.output {
                Some(path) if path.as_os_str() != "-" => {
                    write(path, &text)?;
                    print(&format!("{}\n", shown(path)))
                }
                _ => print(&text),
            };
        }
        let text = found.page();
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
        stored(&self.run, &store, self.store.given())
    }
}

/// A stored run, by its id, the beginning of it, or its label.
fn stored(run: &str, store: &SqliteStore, path: Option<String>) -> anyhow::Result<Found> {
    let info = store.run(run).map_err(refuse)?;
    let records = store.records(&info.id).map_err(refuse)?;
    let kept = if records.is_empty() && info.kind != RunKind::Lab {
        let measurements = store.measurements(&info.id).map_err(refuse)?;
        match info.kind {
            RunKind::Sweep => Kept::Measurements(crate::sweep::in_order(measurements)),
            _ => Kept::Measurements(measurements),
        }
    } else {
        Kept::Records(records.into_iter().map(|(_, record)| record).collect())
    };
    Ok(Found {
        name: info.id.clone(),
        run: Some(info.id),
        label: info.label,
        command: Some(info.command),
        started: Some(utc(info.started_unix_ms)),
        planned: usize::try_from(info.planned).ok(),
        store: path,
        kept,
    })
}

impl Found {
    fn page(&self) -> String {
        match &self.kept {
            Kept::Records(records) => bdp_report::html(records, &self.about()),
            Kept::Measurements(kept) => bdp_report::html_of_measurements(&varied(kept), &self.about()),
        }
    }

    fn csv(&self) -> String {
        match &self.kept {
            Kept::Records(records) => bdp_report::csv(records),
            Kept::Measurements(kept) => bdp_report::csv_of_measurements(&varied(kept)),
        }
    }

    fn about(&self) -> About<'_> {
        About {
            run: self.run.as_deref(),
            label: self.label.as_deref(),
            command: self.command.as_deref(),
            started: self.started.as_deref(),
            planned: self.planned,
            store: self.store.as_deref(),
        }
    }
}

fn varied(kept: &[StoredMeasurement]) -> Vec<(&BTreeMap<String, Value>, &Measurement)> {
    kept.iter().map(|k| (&k.params, &k.measurement)).collect()
}

/// What a document that `--json` wrote holds.
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
    let wrong = |error: serde_json::Error| {
        exit::usage(format!("{operand} is not what --json writes: {error}; see docs/record.md"))
    };
    #[derive(serde::Deserialize)]
    struct Named {
        schema: String,
    }
    let schema = serde_json::from_str::<Named>(&text).map_err(wrong)?.schema;
    let kept = match schema.as_str() {
        bdp_report::CASES_SCHEMA => {
            #[derive(serde::Deserialize)]
            struct Document {
                cases: Vec<Record>,
            }
            Kept::Records(serde_json::from_str::<Document>(&text).map_err(wrong)?.cases)
        }
        bdp_report::SWEEP_SCHEMA => {
            #[derive(serde::Deserialize)]
            struct Document {
                cases: Vec<Record>,
                measurements: Vec<Measurement>,
            }
            let document: Document = serde_json::from_str(&text).map_err(wrong)?;
            if document.measurements.is_empty() {
                Kept::Records(document.cases)
            } else {
                Kept::Measurements(swept(document.measurements))
            }
        }
        bdp_report::MEASUREMENTS_SCHEMA => {
            #[derive(serde::Deserialize)]
            struct Document {
                runs: Vec<Measurement>,
            }
            let document: Document = serde_json::from_str(&text).map_err(wrong)?;
            Kept::Measurements(document.runs.into_iter().map(alone).collect())
        }
        MEASUREMENT_SCHEMA => Kept::Measurements(vec![alone(serde_json::from_str(&text).map_err(wrong)?)]),
        bdp_report::COMPARISON_SCHEMA => {
            return Err(exit::usage(format!(
                "{operand} is a comparison, which has the figures without their runs; 'bdp compare A B --report FILE' \
                 makes the page"
            )));
        }
        other => {
            return Err(exit::usage(format!(
                "{operand} has the schema '{}', and this bdp reads {}, {}, {} and {MEASUREMENT_SCHEMA}; a newer bdp may \
                 read it",
                output::tame(other),
                bdp_report::CASES_SCHEMA,
                bdp_report::SWEEP_SCHEMA,
                bdp_report::MEASUREMENTS_SCHEMA
            )));
        }
    };
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let started = match &kept {
        Kept::Records(records) => records.iter().map(|r| r.environment.started_unix_ms).min(),
        Kept::Measurements(kept) => kept.iter().map(|k| k.measurement.started_unix_ms).min(),
    };
    let started = started.map(utc);
    Ok(Found { name: stem, run: None, label: None, command: None, started, planned: None, store: None, kept })
}

fn alone(measurement: Measurement) -> StoredMeasurement {
    StoredMeasurement { case_key: String::new(), params: BTreeMap::new(), measurement }
}

/// The measurements of a sweep, each with what was varied for it.
fn swept(measurements: Vec<Measurement>) -> Vec<StoredMeasurement> {
    let all = bdp_report::varied_params(&measurements);
    all.into_iter()
        .zip(measurements)
        .map(|(params, measurement)| StoredMeasurement { params, ..alone(measurement) })
        .collect()
}

/// Writes a page about `records` to `path`.
pub fn write_page(path: &Path, records: &[Record], about: &About<'_>) -> anyhow::Result<()> {
    write(path, &bdp_report::html(records, about))
}

/// Makes the page of a stored run, writes it to `path` and says where on standard error.
pub fn write_stored(path: &Path, run: &str, store: &SqliteStore, given: &StoreArgs) -> anyhow::Result<()> {
    write(path, &stored(run, store, given.given())?.page())?;
    output::note(&format!("report  {}", shown(path)));
    Ok(())
}

/// Writes the page of a comparison.
pub fn write_comparison(
    path: &Path,
    compared: &bdp_report::Compared,
    [a, b]: [&RunInfo; 2],
    threshold: f64,
    given: &StoreArgs,
) -> anyhow::Result<()> {
    let store = given.given();
    let started = [a, b].map(|run| utc(run.started_unix_ms));
    let [about_a, about_b] = [(a, &started[0]), (b, &started[1])].map(|(run, started)| About {
        run: Some(&run.id),
        label: run.label.as_deref(),
        command: Some(&run.command),
        started: Some(started),
        planned: None,
        store: store.as_deref(),
    });
    write(path, &bdp_report::html_of_comparison(compared, &about_a, &about_b, threshold))?;
    output::note(&format!("report  {}", shown(path)));
    Ok(())
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
