//! Plans exported for other hosts: scripts, playbooks, manifests and files of their own tools.

mod ansible;
mod bsd;
mod form;
mod kubernetes;
mod meaning;
mod powershell;
mod quote;
mod reg;
mod script;
mod sh;
mod sysctl;
mod words;

use bdp_model::measurement::ends::End;
use bdp_model::tuning::Plan;

pub use form::{ExportError, ExportForm};

/// Exports the changes of a plan at an end in a format, or the file that undoes them.
pub fn export(plan: &Plan, end: End, form: ExportForm, undo: bool) -> Result<String, ExportError> {
    if plan.changes_at(end).next().is_none() {
        return Err(ExportError::NothingToChange(end));
    }
    if undo && form.undone_by().is_some() {
        return Err(ExportError::UndoIsWithin(form));
    }
    Ok(match form {
        ExportForm::Sh => sh::write(plan, end),
        ExportForm::Sysctl => sysctl::write(plan, end, undo),
        ExportForm::Ansible => ansible::write(plan, end),
        ExportForm::Kubernetes => kubernetes::write(plan, end),
        ExportForm::Powershell => powershell::write(plan, end),
        ExportForm::Reg => reg::write(plan, end, undo),
        ExportForm::Macos | ExportForm::Freebsd => bsd::write(plan, end, form),
    })
}
