//! `bdp tune confirm`: keeps changes that were applied for a limited time.

use bdp_report::tuning::applied::{ConfirmedText, confirmed_text};
use bdp_tune::{ConfirmOptions, Confirmed};

use super::document::{self, Done, print_document};
use super::end::JournalEndArgs;
use super::places::refused;
use crate::exit::{self, Exit, Outcome};
use crate::{help, output};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp tune confirm\n  bdp tune confirm --persist\n  bdp tune confirm --at ams1 --tune-token 5f1b7c02"
)]
pub struct ConfirmArgs {
    /// Also set the sysctls at boot, in /etc/sysctl.d/90-bdp.conf
    #[arg(long, help_heading = help::TEST, conflicts_with = "at")]
    persist: bool,

    #[command(flatten)]
    journals: JournalEndArgs,
}

impl ConfirmArgs {
    pub fn run(self) -> Outcome {
        let JournalEndArgs { end, only } = self.journals;
        if let Some(far) = end.far.end()? {
            return far.confirm(only, end.json);
        }
        let mut world = end.places.world()?;
        let options = ConfirmOptions { persist: self.persist, only: None };
        let confirmed = bdp_tune::confirm(&mut world, options).map_err(|e| refused("confirm", &e))?;
        let ids: Vec<u32> = confirmed.journals.iter().map(|journal| journal.id).collect();
        if end.json {
            let result = document::Confirmed {
                journals: &ids,
                persistent_file: confirmed.persistent_file.as_deref(),
                of_this_boot: &confirmed.of_this_boot,
                damaged: confirmed.damaged.iter().map(Into::into).collect(),
            };
            print_document(None, Done::Confirm(result))?;
        } else {
            output::print(&text(&confirmed))?;
        }
        let damaged: Vec<String> =
            confirmed.damaged.iter().map(|damaged| damaged.refusal().to_string()).collect();
        match damaged.is_empty() {
            true => Ok(Exit::Done),
            false => Err(exit::environment(format!("confirm: {}", damaged.join("; ")))),
        }
    }
}

fn text(confirmed: &Confirmed) -> String {
    let file = confirmed.persistent_file.as_ref().map(|path| path.display().to_string());
    let text = ConfirmedText {
        settings: confirmed.journals.iter().map(|journal| journal.entries.len()).sum(),
        at: None,
        persistent_file: file.as_deref(),
        of_this_boot: &confirmed.of_this_boot,
    };
    confirmed_text(&text, &output::style())
}
