//! `bdp show`: the records or measurements of one stored run.

use bdp_model::record::Record;
use bdp_model::tuning::Rehearsal;
use bdp_report::Style;
use bdp_store::{DocumentKind, RunInfo, RunKind, StoredDocument, StoredMeasurement};

use crate::exit::{self, Outcome};
use crate::found::{Found, Kept};
use crate::output::{print, style, tame, utc};
use crate::runs::{resumption, state};
use crate::store::StoreArgs;

/// Maximum number of cases named in an error.
const NAMED: usize = 6;

/// Arguments of `bdp show`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp show\n  bdp show 7f3a\n  bdp show 7f3a -v\n  bdp show before.jsonl --json"
)]
pub struct ShowArgs {
    /// Run: its id, a prefix of the id, or its label, as listed by 'bdp runs'; or a file written by --json or 'bdp runs
    /// export' [default: the newest run]
    run: Option<String>,

    #[command(flatten)]
    store: StoreArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also print details of a measurement: evidence of findings, hosts, windows, delays, spreads
    #[arg(short = 'v', long, conflicts_with = "json")]
    details: bool,

    /// Show only cases that match: [SCENARIO] and words that must all match: PARAM=VALUE, #REPETITION or a part
    /// of the case's key
    #[arg(long, value_name = "FILTER")]
    case: Option<String>,
}

/// The document of a whole run, as printed by `--json`.
pub fn document(found: Found) -> String {
    let run = found.run().map(str::to_owned);
    let run = run.as_deref();
    let is_sweep = found.info.kind == RunKind::Sweep;
    match found.kept {
        Kept::Measurements(all) if is_sweep => crate::sweep::measured_document(run, &all, true, None),
        Kept::Measurements(all) => {
            let measurements: Vec<_> = all.into_iter().map(|kept| kept.measurement).collect();
            format!("{:#}\n", bdp_report::measurements_json(&measurements, run, &[]))
        }
        Kept::Records(all) => {
            let records: Vec<_> = all.into_iter().map(|(_, record)| record).collect();
            if is_sweep {
                crate::sweep::document(run, &records, true, None)
            } else {
                format!("{:#}\n", bdp_report::json(&records, run))
            }
        }
    }
}

impl ShowArgs {
    /// Shows the run.
    pub fn run(self) -> Outcome {
        let found = Found::find(self.run.as_deref(), &self.store)?;
        let run = found.run().map(str::to_owned);
        let (info, run) = (&found.info, run.as_deref());
        let records = match found.kept {
            Kept::Measurements(all) => {
                self.show_measurements(info, run, all)?;
                return if self.json { Ok(exit::Exit::Done) } else { print(&concluded(&found.documents)) };
            }
            Kept::Records(all) => match &self.case {
                Some(filter) => select(all, filter, &info.id)?,
                None => all.into_iter().map(|(_, record)| record).collect(),
            },
        };
        if info.kind == RunKind::Sweep {
            let document = crate::sweep::document(run, &records, self.json, None);
            return print(&if self.json { document } else { format!("{}\n{document}", heading(info)) });
        }
        if self.json {
            print(&format!("{:#}\n", bdp_report::json(&records, run)))
        } else {
            print(&format!("{}\n{}", heading(info), bdp_report::table(&records, &style())))
        }
    }

    /// Shows a run between two machines.
    fn show_measurements(
        &self,
        info: &RunInfo,
        run: Option<&str>,
        mut all: Vec<StoredMeasurement>,
    ) -> Outcome {
        if let Some(filter) = &self.case {
            all.retain(|kept| kept.case_key.contains(filter.trim()));
            if all.is_empty() {
                return Err(exit::usage(format!("no case of run {} matches '{filter}'", info.id)));
            }
        }
        if info.kind == RunKind::Sweep {
            let document = crate::sweep::measured_document(run, &all, self.json, None);
            return print(&if self.json { document } else { format!("{}\n{document}", heading(info)) });
        }
        let measurements: Vec<_> = all.into_iter().map(|kept| kept.measurement).collect();
        if self.json {
            return print(&format!("{:#}\n", bdp_report::measurements_json(&measurements, run, &[])));
        }
        let style = Style { details: self.details, ..style() };
        let text = bdp_report::measurements_text(&measurements, run, self.store.given().as_deref(), &style);
        print(&format!("{}\n{text}", heading(info)))
    }
}

/// Prediction for a run, and its verification: the newest of each.
fn concluded(documents: &[StoredDocument]) -> String {
    let newest =
        |kind| documents.iter().rfind(|document| document.kind == kind).map(|kept| kept.document.clone());
    // Documents of another version are left out.
    let rehearsal =
        newest(DocumentKind::Rehearsal).and_then(|kept| serde_json::from_value::<Rehearsal>(kept).ok());
    let verification = newest(DocumentKind::Verification).and_then(|kept| serde_json::from_value(kept).ok());
    let predicted = rehearsal.map(|rehearsal| bdp_report::tuning::choice(&rehearsal, &style()));
    let came = verification.map(|came| bdp_report::tuning::verification(&came, &style()));
    predicted.into_iter().chain(came).collect()
}

/// The run in a line, and how to resume it in another.
fn heading(run: &RunInfo) -> String {
    let line = format!(
        "run {}  {}  {}  {}/{} cases, {} valid, {}",
        tame(&run.id),
        utc(run.started_unix_ms),
        tame(&run.scenario),
        run.recorded,
        run.planned,
        run.valid,
        state(run)
    );
    match resumption(run) {
        Some(command) => format!("{line}\nresume with  {}", tame(&command)),
        None => line,
    }
}

fn select(all: Vec<(String, Record)>, filter: &str, run: &str) -> anyhow::Result<Vec<Record>> {
    let mut keys: Vec<String> = Vec::new();
    let mut selected = Vec::new();
    for (key, record) in all {
        if matches(&record, filter) {
            selected.push(record);
        } else if keys.last() != Some(&key) {
            keys.push(key);
        }
    }
    if !selected.is_empty() {
        return Ok(selected);
    }
    let named: Vec<String> = keys.iter().take(NAMED).map(|key| format!("'{}'", tame(key))).collect();
    let more = match keys.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(exit::usage(match named.len() {
        0 => format!("run {run} has no cases yet"),
        _ => format!("no case of run {run} matches '{filter}'; it has {}{more}", named.join(", ")),
    }))
}

/// Whether the filter is the name of the record's scenario, the text by which `bdp lab run --filter` selects its
/// case, or the first followed by the second, as in the key that a case is stored under.
fn matches(record: &Record, filter: &str) -> bool {
    let filter = filter.trim();
    let rest = match filter.strip_prefix(record.scenario.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => rest,
        _ => filter,
    };
    record.case.matches(rest)
}
