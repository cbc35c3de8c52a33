//! `bdp tune export`: a plan for another host.

use std::fmt::Write;

use bdp_model::measurement::ends::End;
use bdp_model::tuning::Plan;
use bdp_report::tuning::{ExportForm, export};

use super::stored;
use crate::exit::{self, Outcome};
use crate::output;
use crate::store::StoreArgs;

/// Arguments of `bdp tune export`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp tune export 7f3a --as sh --end far\n  bdp tune export plan.json\n  bdp tune export plan.json --as sh --end far --output tune.sh\n  \
    bdp tune export plan.json --as ansible > tune.yml\n  bdp tune export plan.json --as reg --undo > undo.reg\n\n\
    'bdp help export' shows each format, and the tools that check it."
)]
pub struct ExportArgs {
    /// Run of 'bdp measure': the change chosen by its rehearsal, otherwise its plan, made now if needed; or a plan as JSON ('bdp help
    /// plan.schema'); '-' is standard input
    #[arg(value_name = "RUN|PLAN.json")]
    plan: String,

    #[command(flatten)]
    store: StoreArgs,

    /// Format of the file [default: list the formats]
    #[arg(long = "as", value_name = "FORM", value_parser = form)]
    form: Option<ExportForm>,

    /// End whose changes are exported: near or far [default: the end that has changes]
    #[arg(long, value_parser = end)]
    end: Option<End>,

    /// Write the file that undoes the changes (formats sysctl and reg)
    #[arg(long, requires = "form")]
    undo: bool,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE", requires = "form")]
    output: Option<std::path::PathBuf>,
}

impl ExportArgs {
    /// Prints the plan in the requested form.
    pub fn run(self) -> Outcome {
        let plan = stored::find(&self.plan, &self.store)?;
        let Some(form) = self.form else { return output::print(&forms(&plan)) };
        let end = match self.end {
            Some(end) => end,
            None => only_end(&plan)?,
        };
        let text = export(&plan, end, form, self.undo).map_err(|error| exit::usage(error.to_string()))?;
        match &self.output {
            None => output::print(&text),
            Some(path) => {
                std::fs::write(path, text).map_err(|error| {
                    exit::environment(format!("cannot write '{}': {error}", path.display()))
                })?;
                Ok(exit::Exit::Done)
            }
        }
    }
}

/// The available forms, and the number of changes of each end.
fn forms(plan: &Plan) -> String {
    let mut text = String::from("format      description\n");
    for form in ExportForm::ALL {
        let _ = writeln!(text, "{:<12}{}", form.name(), form.about());
    }
    let [near, far] = [End::Near, End::Far].map(|end| plan.changes_at(end).count());
    let _ = writeln!(
        text,
        "\nchanges: near {near}, far {far}; choose a format with --as FORM, an end with --end near|far"
    );
    text
}

/// The only end with changes.
fn only_end(plan: &Plan) -> anyhow::Result<End> {
    match [End::Near, End::Far].map(|end| plan.changes_at(end).next().is_some()) {
        [true, true] => {
            Err(exit::usage("the plan changes both ends; choose one with --end near or --end far"))
        }
        [_, true] => Ok(End::Far),
        [true, _] => Ok(End::Near),
        [false, false] => Err(exit::usage("the plan changes nothing at either end")),
    }
}

fn form(text: &str) -> Result<ExportForm, String> {
    let names = ExportForm::ALL.map(ExportForm::name).join(", ");
    ExportForm::ALL.into_iter().find(|form| form.name() == text).ok_or(format!("formats: {names}"))
}

fn end(text: &str) -> Result<End, String> {
    [End::Near, End::Far].into_iter().find(|end| end.name() == text).ok_or("near or far".to_owned())
}
