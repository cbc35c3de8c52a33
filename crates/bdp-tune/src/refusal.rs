//! Why nothing was changed, or everything was reverted.

use std::io;
use std::path::{Path, PathBuf};

use bdp_model::tuning::Target;

use crate::world::Fault;

/// Why nothing was changed, or everything was reverted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another process is changing settings.
    #[error("another bdp process is changing settings here{}; wait until it has ended", pid.map_or_else(String::new, |pid| format!(" (process {pid})")))]
    Busy {
        /// Its process id, if known.
        pid: Option<u32>,
    },
    /// The setting's value differs from the one in the plan.
    #[error("{target} is {}, but the plan was made for {}; plan again, or use --force", shown(now.as_deref()), shown(Some(planned)))]
    Differs {
        /// The setting.
        target: Target,
        /// Value in the plan.
        planned: String,
        /// Present value.
        now: Option<String>,
    },
    /// The setting cannot be read or changed.
    #[error("set {target}: {fault}")]
    Setting {
        /// The setting.
        target: Target,
        /// The reason.
        fault: Fault,
    },
    /// The kernel does not use the setting.
    #[error("set {target}: Linux {kernel} ignores it")]
    NotRead {
        /// The setting.
        target: Target,
        /// The kernel's release.
        kernel: String,
    },
    /// The changes contain the setting more than once.
    #[error("this plan changes {0} twice; choose changes with --only")]
    Twice(Target),
    /// An earlier change of the setting is due to be reverted automatically.
    #[error(
        "{target} will revert automatically (journal {id}); run 'bdp tune confirm' or 'bdp tune revert' first"
    )]
    Pending {
        /// The setting.
        target: Target,
        /// The journal.
        id: u32,
    },
    /// An earlier apply was interrupted.
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
        /// The damage.
        cause: String,
    },
    /// A journal is missing although its changes are in force.
    #[error("journal {} is missing; its guard process reverts the settings when their time is over", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The journal cannot be stored. Nothing was changed.
    #[error("{operation} journal {}: {cause}", path.display())]
    Journal {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The sysctl file for the next boot cannot be written.
    #[error("write {}: {cause}", path.display())]
    Persistent {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// None of the changes to keep for the next boot is a sysctl.
    #[error("none of these changes can be set at boot by a sysctl file; omit --persist")]
    NothingPersistent,
    /// The process that reverts changes does not start.
    #[error("start the guard process: {0}; nothing was changed")]
    Guard(String),
    /// A write failed; the settings written before were reverted.
    #[error("set {target}: {cause}; {}", after_failure(stuck))]
    Failed {
        /// The setting.
        target: Target,
        /// The cause.
        cause: String,
        /// Settings that could not be reverted, with the cause.
        stuck: Vec<(Target, String)>,
    },
    /// It was cancelled, and everything was reverted.
    #[error("interrupted before all changes were written; {}", after_failure(stuck))]
    Cancelled {
        /// Settings that could not be reverted, with the cause.
        stuck: Vec<(Target, String)>,
    },
    /// There is nothing to confirm.
    #[error("nothing to confirm; 'bdp tune journal' lists changes in force")]
    NothingToConfirm,
    /// The confirmation came too late.
    #[error("the time of journal {id} is over; its changes were reverted")]
    TooLate {
        /// The journal.
        id: u32,
    },
    /// No journal has this name.
    #[error("no journal '{0}' here; 'bdp tune journal' lists journals")]
    NoJournal(String),
    /// The machine's boot or network namespace cannot be determined.
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

    /// Whether the request itself is invalid, regardless of the machine's state.
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
