//! Export formats of a plan, and why an export is refused.

use bdp_model::names;
use std::fmt;

use bdp_model::measurement::ends::End;

/// Export format of a plan for another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportForm {
    /// A POSIX shell script for Linux.
    Sh,
    /// A file for `/etc/sysctl.d`.
    Sysctl,
    /// An Ansible playbook.
    Ansible,
    /// Kubernetes manifests.
    Kubernetes,
    /// A PowerShell script for Windows.
    Powershell,
    /// Registry files for Windows XP.
    Reg,
    /// A POSIX shell script for macOS.
    Macos,
    /// A POSIX shell script for FreeBSD.
    Freebsd,
}

names!(
    ExportForm: Sh = "sh", Sysctl = "sysctl", Ansible = "ansible", Kubernetes = "kubernetes",
        Powershell = "powershell", Reg = "reg", Macos = "macos", Freebsd = "freebsd"
);

impl ExportForm {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Sh,
        Self::Sysctl,
        Self::Ansible,
        Self::Kubernetes,
        Self::Powershell,
        Self::Reg,
        Self::Macos,
        Self::Freebsd,
    ];

    /// Returns a one-line description.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Sh => "Linux: POSIX script with apply, undo and status; sysctls, routes and qdiscs",
            Self::Sysctl => {
                "Linux: file for /etc/sysctl.d, for every boot; --undo writes the values measured"
            }
            Self::Ansible => {
                "Linux: playbook that saves the old values as a fact; --tags undo puts them back"
            }
            Self::Kubernetes => {
                "Kubernetes: sysctls of a Pod, and a DaemonSet for those that a Pod cannot set"
            }
            Self::Powershell => "Windows 8 and later: script with apply, undo and status",
            Self::Reg => "Windows 2000, XP and 2003: registry file; --undo writes the one that ends it",
            Self::Macos => "macOS: POSIX script with apply, undo and status",
            Self::Freebsd => "FreeBSD: POSIX script with apply, undo and status; lines for sysctl.conf",
        }
    }

    /// Returns how to undo the changes if there is no separate file for that.
    pub const fn undone_by(self) -> Option<&'static str> {
        match self {
            Self::Sh | Self::Macos | Self::Freebsd => Some("sh FILE undo"),
            Self::Ansible => Some("ansible-playbook FILE --tags undo"),
            Self::Kubernetes => Some("kubectl delete -f FILE"),
            Self::Powershell => Some("powershell -File FILE undo"),
            Self::Sysctl | Self::Reg => None,
        }
    }
}

/// Why a plan can't be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportError {
    /// The plan changes nothing at this end.
    NothingToChange(End),
    /// This format has no separate undo file.
    UndoIsWithin(ExportForm),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToChange(end) => write!(f, "the plan changes nothing at its {} end", end.name()),
            Self::UndoIsWithin(form) => {
                let how = form.undone_by().unwrap_or_default();
                write!(f, "form '{}' has no undo file; the exported file undoes itself: {how}", form.name())
            }
        }
    }
}

impl std::error::Error for ExportError {}
