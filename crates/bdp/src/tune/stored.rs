//! A plan by its run, or from a file.

use std::path::Path;

use bdp_model::tuning::{Plan, Rehearsal};
use bdp_store::{DocumentKind, StoredDocument};

use super::file;
use super::measured::MeasuredArgs;
use crate::found::Found;
use crate::store::StoreArgs;
use crate::{exit, output};

/// Finds the plan of a run, made if it has none, with the changes that its rehearsal chose if that is newer; or
/// the plan of a file. A name with a slash or the ending `.json`, and `-`, is a file's.
pub fn find(name: &str, store: &StoreArgs) -> anyhow::Result<Plan> {
    let path = Path::new(name);
    let is_file = name == "-" || name.contains('/') || name.ends_with(".json");
    if is_file {
        return file::read(name);
    }
    let found = match Found::find(Some(name), store) {
        Err(_) if path.is_file() => return file::read(name),
        found => found?,
    };
    let (plan, rehearsal) =
        (found.newest_document(DocumentKind::Plan), found.newest_document(DocumentKind::Rehearsal));
    match (plan, rehearsal) {
        (plan, Some(rehearsal)) if plan.is_none_or(|plan| plan.at_unix_ms <= rehearsal.at_unix_ms) => {
            chosen(name, rehearsal)
        }
        (Some(plan), _) => parse(name, plan),
        (None, _) => make(found, store),
    }
}

/// Makes and stores the plan of a run that has none yet, as 'bdp tune plan' does.
fn make(found: Found, store: &StoreArgs) -> anyhow::Result<Plan> {
    let args = MeasuredArgs::of(None, store.clone());
    let measured = args.measured(found)?;
    let plan = measured.plan(&args)?;
    let run = &measured.found.info.id;
    output::note(&format!("note: run {run} had no plan; made one ('bdp tune plan {run}' prints it)"));
    Ok(plan)
}

/// The plan with the chosen changes.
fn chosen(run: &str, kept: &StoredDocument) -> anyhow::Result<Plan> {
    let rehearsal: Rehearsal = serde_json::from_value(kept.document.clone()).map_err(|_| {
        exit::usage(format!(
            "the rehearsal of run {run} was made by another version; run 'bdp rehearse {run}' again"
        ))
    })?;
    let Some(chosen) = rehearsal.chosen() else {
        return Err(exit::usage(format!(
            "the rehearsal of run {run} found no change better than the current settings; 'bdp tune plan {run} --json' prints the plan anyway"
        )));
    };
    let changes = chosen.changes.clone();
    checked(run, &Plan { changes, ..rehearsal.plan })
}

fn parse(run: &str, kept: &StoredDocument) -> anyhow::Result<Plan> {
    let bytes = kept.document.to_string();
    file::parse(bytes.as_bytes()).map_err(|cause| exit::usage(format!("the plan of run {run}: {cause}")))
}

/// Checks a stored plan like a file's, since a store may come from anywhere.
fn checked(run: &str, plan: &Plan) -> anyhow::Result<Plan> {
    let bytes = serde_json::to_vec(plan)?;
    file::parse(&bytes).map_err(|cause| exit::usage(format!("the rehearsal of run {run}: {cause}")))
}
