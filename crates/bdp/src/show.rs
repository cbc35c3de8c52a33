//! `bdp show`: the records or measurements of one stored run.

use bdp_model::record::Record;
use bdp_store::{RunInfo, RunKind, SqliteStore, Store};

use crate::output::{print, style, tame, utc};
use crate::runs::{resumption, state};
use crate::store::{StoreArgs, refuse};
use crate::{Outcome, exit};

/// Cases that an error names.
const NAMED: usize = 6;

/// Arguments of `bdp show`.
#[derive(clap::Args)]
pub struct ShowArgs {
    /// The run, the beginning of its name as `bdp runs` lists it, or its label
    run: String,

    #[command(flatten)]
    store: StoreArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Show only cases that match: [SCENARIO] and words that must all match, each PARAM=VALUE, #REPETITION or a part
    /// of the case's key
    #[arg(long, value_name = "FILTER")]
    case: Option<String>,
}

impl ShowArgs {
    /// Shows the run.
    pub fn run(self) -> Outcome {
        let Some(store) = self.store.open_to_read()? else {
            return Err(exit::usage(format!("there is no run '{}'; nothing is stored yet", self.run)));
        };
        let run = store.run(&self.run).map_err(refuse)?;
        let all = store.records(&run.id).map_err(refuse)?;
        if run.kind != RunKind::Lab && all.is_empty() {
            return self.show_measurements(&run, &store);
        }
        let records = match &self.case {
            Some(filter) => select(all, filter, &run.id)?,
            None => all.into_iter().map(|(_, record)| record).collect(),
        };
        if run.kind == RunKind::Sweep {
            let document = crate::sweep::document(Some(&run.id), &records, self.json, None);
            return print(&if self.json { document } else { format!("{}\n{document}", heading(&run)) });
        }
        if self.json {
            print(&format!("{:#}\n", bdp_report::json(&records)))
        } else {
            print(&format!("{}\n{}", heading(&run), bdp_report::table(&records, &style())))
        }
    }
}

impl ShowArgs {
    /// Shows a run between two machines.
    fn show_measurements(&self, run: &RunInfo, store: &SqliteStore) -> Outcome {
        let mut all = store.measurements(&run.id).map_err(refuse)?;
        if let Some(filter) = &self.case {
            all.retain(|kept| kept.case_key.contains(filter.trim()));
            if all.is_empty() {
                return Err(exit::usage(format!("no case of run {} matches '{filter}'", run.id)));
            }
        }
        if run.kind == RunKind::Sweep {
            all = crate::sweep::in_order(all);
            let document = crate::sweep::measured_document(Some(&run.id), &all, self.json, None);
            return print(&if self.json { document } else { format!("{}\n{document}", heading(run)) });
        }
        let measurements = || all.iter().map(|kept| kept.measurement.clone()).collect::<Vec<_>>();
        if self.json {
            return print(&match &all[..] {
                [one] if run.planned == 1 => {
                    format!("{:#}\n", bdp_report::measurement_json(&one.measurement))
                }
                _ => format!("{:#}\n", bdp_report::measurements_json(&measurements(), Some(&run.id))),
            });
        }
        let text = bdp_report::measurements_text(
            &measurements(),
            Some(&run.id),
            self.store.given().as_deref(),
            &style(),
        );
        print(&format!("{}\n{text}", heading(run)))
    }
}

/// The run in a line, and in another how to go on with it.
fn heading(run: &RunInfo) -> String {
    let line = format!(
        "run {}  {}  {}  {}/{} cases, {} valid, {}",
        run.id,
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

/// Whether the filter is the name of the record's scenario, what `bdp lab run --filter` chooses its case by, or the
/// one followed by the other, as in the key that a case is stored under.
fn matches(record: &Record, filter: &str) -> bool {
    let filter = filter.trim();
    let rest = match filter.strip_prefix(record.scenario.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => rest,
        _ => filter,
    };
    record.case.matches(rest)
}
