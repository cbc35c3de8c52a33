//! Connections without window scaling, and why they have none.

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Quantity, Remedy};
use bdp_model::tuning::setting::Setting;

use crate::setting::value_of;

/// Largest window without window scaling (RFC 7323, section 2.2).
pub const LARGEST_UNSCALED: f64 = 65_535.0;

/// Why a connection has no window scaling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unscaled {
    /// It is off at this host.
    Off(String),
    /// Both hosts offer it.
    Removed,
    /// One host does not report whether it offers it.
    Unknown,
}

impl Unscaled {
    /// Returns why the connection has no window scaling, if it has none. Both ends know whether it was negotiated; a kernel that does
    /// not report it shows it by its setting and the window.
    pub fn of(facts: &Facts) -> Option<Self> {
        let ends = [&facts.receiver, &facts.sender];
        let refused = ends.iter().any(|end| end.window_scaling == Some(false));
        let unknown = ends.iter().all(|end| end.window_scaling.is_none());
        let fits = facts.window_use().is_some_and(|w| w.receive_bytes <= LARGEST_UNSCALED);
        let off = ends.iter().find(|end| value_of(end, Setting::TcpWindowScaling) == Some("0"));
        match off {
            Some(end) if refused || (unknown && fits) => Some(Self::Off(end.name.clone())),
            None if refused && ends.iter().all(|end| value_of(end, Setting::TcpWindowScaling).is_some()) => {
                Some(Self::Removed)
            }
            None if refused => Some(Self::Unknown),
            _ => None,
        }
    }

    /// How to enable it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Off(host) => Remedy::new(Action::Set)
                .setting(Setting::TcpWindowScaling)
                .value(Quantity::count(1))
                .host(host),
            Self::Removed => Remedy::new(Action::PassWindowScaling),
            Self::Unknown => Remedy::new(Action::FindWindowScaling),
        }
    }
}
