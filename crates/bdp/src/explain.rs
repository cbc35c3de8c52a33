//! `bdp explain`: what limits the transfers of a stored run, by the rules of this bdp.

use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_run::measure::explain::{self, Claim, Grounds};
use serde::Serialize;
use serde_json::{Map, json};

use crate::exit::Outcome;
use crate::found::{Found, Kept};
use crate::output::{print, style};
use crate::store::StoreArgs;

/// Arguments of `bdp explain`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bdp explain\n  bdp explain 7f3a\n  bdp explain before.json --json")]
pub struct ExplainArgs {
    /// Run: its id, a prefix of the id, or its label, as listed by 'bdp runs'; or a file written by --json or 'bdp runs
    /// export' [default: the newest run]
    run: Option<String>,

    #[command(flatten)]
    store: StoreArgs,

    /// Ignore the link rates of a lab scenario, as if the path's rate were unknown
    #[arg(long)]
    without_ceiling: bool,

    /// Print the evidence for each candidate cause as lines of JSON, the input of benches/calibrate
    #[arg(long, hide = true)]
    candidates: bool,

    /// Print JSON: as 'bdp show --json', with the findings of this version of bdp
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    /// Explains the run again.
    pub fn run(self) -> Outcome {
        let found = Found::find(self.run.as_deref(), &self.store)?;
        let run = found.run().map(str::to_owned);
        let run = run.as_deref();
        match found.kept {
            Kept::Records(all) => {
                let mut records: Vec<Record> = all.into_iter().map(|(_, record)| record).collect();
                for record in &mut records {
                    record.ceiling_unknown = self.without_ceiling;
                    explain::record(record);
                }
                if self.candidates {
                    return print(&candidates(
                        records.iter().map(|r| (&r.scenario, explain::grounds_of_record(r))),
                    ));
                }
                print(&if self.json {
                    format!("{:#}\n", bdp_report::json(&records, run))
                } else {
                    bdp_report::explanation::records(&records, &style())
                })
            }
            Kept::Measurements(all) => {
                let mut all: Vec<Measurement> = all.into_iter().map(|kept| kept.measurement).collect();
                all.iter_mut().for_each(explain::measurement);
                if self.candidates {
                    let of = all.iter().map(|m| (&m.label, explain::grounds_of_measurement(m)));
                    return print(&candidates(of));
                }
                print(&if self.json {
                    format!("{:#}\n", bdp_report::measurements_json(&all, run, &[]))
                } else {
                    bdp_report::explanation::measurements(&all, &style())
                })
            }
        }
    }
}

/// The evidence for each candidate, one line of JSON for each transfer.
fn candidates(all: impl Iterator<Item = (impl Serialize, Vec<Grounds>)>) -> String {
    let mut lines = String::new();
    for (of, grounds) in all {
        for Grounds { claims, terms } in grounds {
            let claims: Vec<_> = claims
                .iter()
                .map(|claim| {
                    let Claim { finding, own_part } = claim;
                    json!({ "limit": finding.limit, "confidence": finding.confidence, "own_part": own_part })
                })
                .collect();
            let terms: Map<_, _> =
                terms.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            lines.push_str(&format!("{}\n", json!({ "of": of, "claims": claims, "terms": terms })));
        }
    }
    lines
}
