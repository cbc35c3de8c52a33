//! `bdp tune revert`: restores the values before, except those that somebody else changed since.

use bdp_report::tuning::applied::{ElsewhereLine, RevertedText, reverted_text};
use bdp_sys::boot;
use bdp_tune::{RevertOptions, Reverted};

use super::document::{self, Done, Failed, print_document};
use super::end::JournalEndArgs;
use super::places::refused;
use crate::exit::{self, Exit, Outcome};
use crate::{help, output};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp tune revert\n  bdp tune revert --force\n  bdp tune revert --at ams1 --tune-token 5f1b7c02\n\n\
    Exit codes: 0 all values restored; 1 a setting was changed by someone else since, and is left as it is; 3 a setting could not be restored, or a journal is damaged."
)]
pub struct RevertArgs {
    /// Also restore settings that someone else changed since
    #[arg(long, help_heading = help::TEST, conflicts_with = "at")]
    force: bool,

    #[command(flatten)]
    journals: JournalEndArgs,
}

impl RevertArgs {
    pub fn run(self) -> Outcome {
        let JournalEndArgs { end, only } = self.journals;
        if let Some(far) = end.far.end()? {
            return far.revert(only, end.json);
        }
        let mut world = end.places.world()?;
        let options = RevertOptions { force: self.force, only: None };
        let reverted = bdp_tune::revert(&mut world, options).map_err(|e| refused("revert", &e))?;
        if end.json {
            print_document(None, Done::Revert(document(&reverted)))?;
        } else {
            output::print(&text(&reverted))?;
        }
        let mut stuck: Vec<String> = reverted
            .failed
            .iter()
            .map(|(target, cause)| format!("cannot restore {target}: {cause}"))
            .collect();
        stuck.extend(reverted.damaged.iter().map(|damaged| damaged.refusal().to_string()));
        if !stuck.is_empty() {
            return Err(exit::environment(format!("revert: {}", stuck.join("; "))));
        }
        let is_left = !reverted.foreign.is_empty() || reverted.foreign_file.is_some();
        Ok(if is_left { Exit::Missed } else { Exit::Done })
    }
}

fn text(reverted: &Reverted) -> String {
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let text = RevertedText {
        is_far: false,
        put_back: reverted.put_back.iter().map(|entry| entry.back(None)).collect(),
        were_back: reverted.were_back.len(),
        foreign: reverted.foreign.iter().map(|left| left.entry.back(left.now.clone())).collect(),
        persistent_file: path(&reverted.persistent_file),
        foreign_file: path(&reverted.foreign_file),
        of_other_boots: reverted.of_other_boots.clone(),
        elsewhere: reverted.elsewhere.iter().map(elsewhere).collect(),
    };
    reverted_text(&text, &output::style())
}

fn elsewhere(&(journal, namespace): &(u32, u64)) -> ElsewhereLine {
    ElsewhereLine { journal, namespace, way: boot::way_into_network(namespace) }
}

fn document(reverted: &Reverted) -> document::Reverted<'_> {
    let foreign = reverted.foreign.iter().map(|left| left.entry.back(left.now.clone()));
    document::Reverted {
        put_back: reverted.put_back.iter().map(Into::into).collect(),
        were_back: reverted.were_back.iter().map(Into::into).collect(),
        foreign: foreign.collect(),
        failed: reverted.failed.iter().map(|(target, cause)| Failed { target, cause }).collect(),
        persistent_file: reverted.persistent_file.as_deref(),
        foreign_file: reverted.foreign_file.as_deref(),
        of_other_boots: &reverted.of_other_boots,
        elsewhere: reverted.elsewhere.iter().map(|(journal, _)| *journal).collect(),
        damaged: reverted.damaged.iter().map(Into::into).collect(),
    }
}
