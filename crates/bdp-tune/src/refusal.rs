//! Why nothing was done, or all was put back.

use std::io;
use std::path::{Path, PathBuf};

use bdp_model::tuning::Target;

use crate::world::Fault;

/// Why nothing was done, or all was put back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another process is at it.
    #[error("another bdp process is changing settings here{}; wait until it has ended", pid.map_or_else(String::new, |pid| format!(" (process {pid})")))]
    Busy {
        /// Which, where it says so.
        pid: Option<u32>,
    },
    /// The setting is not as the plan has it.
    #[error("{target} is {}, but the plan was made for {}; plan again, or use --force", shown(now.as_deref()), shown(Some(planned)))]
    Differs {
        /// The setting.
        target: Target,
        /// As the plan has it.
        planned: String,
        /// As it is.
        now: Option<String>,
    },
    /// The setting can not be read or changed.
    #[error("set {target}: {fault}")]
    Setting {
        /// The setting.
        target: Target,
        /// Why not.
        fault: Fault,
    },
    /// The kernel does not read it.
    #[error("set {target}: Linux {kernel} ignores it")]
    NotRead {
        /// The setting.
        target: Target,
        /// The kernel.
        kernel: String,
    },
    /// The setting stands in the changes more than once.
    #[error("this plan changes {0} twice; choose changes with --only")]
    Twice(Target),
    /// It was changed before, and that goes back by itself.
    #[error(
        "{target} will revert automatically (journal {id}); run 'bdp tune confirm' or 'bdp tune revert' first"
    )]
    Pending {
        /// The setting.
        target: Target,
        /// The journal.
        id: u32,
    },
    /// An apply before was cut short.
    #[error(
        "journal {id} was interrupted before all changes were written; 'bdp tune revert' reverts those that were"
    )]
    CutShort {
        /// The journal.
        id: u32,
    },
    /// A journal is damaged.
    #[error("journal {} is damaged: {cause}; 'bdp tune journal --set-aside {}' renames it", path.display(), name(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// A journal is gone whose changes are in force.
    #[error("journal {} is missing; its guard process reverts the settings when their time is over", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The journal can not be kept. Nothing was changed.
    #[error("{operation} journal {}: {cause}", path.display())]
    Journal {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        cause: String,
    },
    /// The file of sysctls for the next boot can not be written.
    #[error("write {}: {cause}", path.display())]
    Persistent {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: String,
    },
    /// No sysctl is among what is to be kept for the next boot.
    #[error("none of these changes can be set at boot by a sysctl file; omit --persist")]
    NothingPersistent,
    /// The process that puts back does not start.
    #[error("start the guard process: {0}; nothing was changed")]
    Guard(String),
    /// A write failed, and what was written before is put back.
    #[error("set {target}: {cause}; {}", after_failure(stuck))]
    Failed {
        /// The setting.
        target: Target,
        /// Why.
        cause: String,
        /// What could not be put back, and why.
        stuck: Vec<(Target, String)>,
    },
    /// It was asked to end, and has put back all.
    #[error("interrupted before all changes were written; {}", after_failure(stuck))]
    Cancelled {
        /// What could not be put back, and why.
        stuck: Vec<(Target, String)>,
    },
    /// There is nothing to confirm.
    #[error("nothing to confirm; 'bdp tune journal' lists changes in force")]
    NothingToConfirm,
    /// It came too late.
    #[error("the time of journal {id} is over; its changes were reverted")]
    TooLate {
        /// The journal.
        id: u32,
    },
    /// There is no journal of this name.
    #[error("no journal '{0}' here; 'bdp tune journal' lists journals")]
    NoJournal(String),
    /// The machine does not say which boot or namespace it is.
    #[error("{0}")]
    Machine(Fault),
}

impl Refusal {
    pub(crate) fn journal(operation: &'static str, path: &Path, cause: io::Error) -> Self {
        let way_out = match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free space there, or choose another folder (--journal DIR)"
            }
            io::ErrorKind::PermissionDenied => "; run bdp as root, or choose another folder (--journal DIR)",
            io::ErrorKind::ReadOnlyFilesystem => "; choose another folder (--journal DIR)",
            _ => "",
        };
        Self::Journal { operation, path: path.to_owned(), cause: format!("{cause}{way_out}") }
    }

    /// Whether what was asked for is wrong, and not what the machine makes of it.
    pub fn is_of_request(&self) -> bool {
        match self {
            Self::Setting { fault, .. } => matches!(
                fault,
                Fault::Unknown
                    | Fault::OutOfScope
                    | Fault::Local
                    | Fault::NoDevice
                    | Fault::NotAvailable(_)
                    | Fault::BadValue(_)
            ),
            Self::Differs { .. }
            | Self::NotRead { .. }
            | Self::Twice(_)
            | Self::NothingPersistent
            | Self::NothingToConfirm
            | Self::NoJournal(_) => true,
            _ => false,
        }
    }
}

fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "not set".to_owned(), |value| format!("'{value}'"))
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn after_failure(stuck: &[(Target, String)]) -> String {
    if stuck.is_empty() {
        return "all settings are as before".to_owned();
    }
    let each: Vec<String> = stuck.iter().map(|(target, cause)| format!("{target}: {cause}")).collect();
    format!("could not revert {}; 'bdp tune revert' tries again", each.join(", "))
}
