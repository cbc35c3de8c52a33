//! Changes that may help, with their operands.

use serde::{Deserialize, Serialize};

use super::named::{named, named_kinds};
use super::quantity::{Quantity, Unit};

named_kinds! {
    /// An action to take. `setting`, `value` and `host` are those of the remedy.
    pub enum Action {
        /// Windows and buffers.
        Windows {
            /// Raise the maximum (the last value) of the setting on the host, to the value if known.
            RaiseMaximum = "raise_maximum",
            /// Set the setting on the host to the value.
            Set = "set",
            /// Request a larger window with the setting, at least the value, or request none.
            AskWindow = "ask_window",
            /// Request a larger socket buffer with the setting, or request none.
            AskSocketBuffer = "ask_socket_buffer",
            /// Request a socket buffer larger than the value with the setting.
            LargerSocketBuffer = "larger_socket_buffer",
            /// Request a smaller window with the setting, about the value.
            SmallerWindow = "smaller_window",
            /// Request a smaller window for one direction only: both directions run at once, and the setting applies to both.
            SmallerWindowOneWay = "smaller_window_one_way",
            /// Let the window scale option pass the middlebox that removes it.
            PassWindowScaling = "pass_window_scaling",
            /// Enable window scaling at the other end, or find the middlebox that removes the option.
            FindWindowScaling = "find_window_scaling",
        }
        /// The offered load.
        Load {
            /// Remove the setting.
            LeaveOut = "leave_out",
            /// Search for the highest rate without loss, with the setting.
            SearchRate = "search_rate",
            /// Send at a lower rate, with the setting: below the value, if there is one.
            LowerRate = "lower_rate",
            /// Send at no more than the value, with the setting.
            BoundRate = "bound_rate",
            /// Use more streams, with the setting; if a host is named, use a faster processor there.
            MoreStreams = "more_streams",
            /// Send larger datagrams, with the setting.
            LargerDatagrams = "larger_datagrams",
        }
        /// Hosts and their programs.
        Hosts {
            /// Reduce other work on the host.
            QuieterHost = "quieter_host",
            /// Find what keeps the receiving process on the host from reading.
            FreeReader = "free_reader",
            /// Find what keeps the sending process on the host from writing.
            FreeWriter = "free_writer",
            /// Find what keeps the server program on the host from answering.
            FreeServer = "free_server",
            /// Send more requests at a time, or ask for more with each.
            AskMore = "ask_more",
            /// Let the programs keep more data in flight: the value is what they allow now.
            LargerProgramWindow = "larger_program_window",
            /// Start a program that listens on the host, and let firewalls on the path admit it.
            OpenPort = "open_port",
            /// Check whether the host is running and reachable.
            FindHost = "find_host",
            /// Set `TCP_NODELAY` on the host, or make larger writes.
            DisableNagle = "disable_nagle",
            /// Raise the control group's quota on the host.
            RaiseQuota = "raise_quota",
            /// Move the virtual machine to a host with idle processors.
            MoveMachine = "move_machine",
            /// Enlarge the rings of the device on the host; the setting names the device.
            RaiseRing = "raise_ring",
            /// Raise the limit of the kernel's receive backlog on the host, with the setting.
            RaiseBacklog = "raise_backlog",
        }
        /// The path.
        Path {
            /// Enable path MTU probing on the host, clamp the MSS, or let ICMP pass; without a host, probing is enabled already.
            ProbeMtu = "probe_mtu",
            /// Look for a link or route that failed.
            FindOutage = "find_outage",
            /// Find out the contracted rate, and shape to it.
            ShapeToRate = "shape_to_rate",
            /// Look for errors on the path; until then, the setting reduces their effect.
            FindErrors = "find_errors",
            /// Find what spreads the packets of one connection over several links.
            FindSpreading = "find_spreading",
            /// Look for a faulty or congested link on the reverse path, towards the host.
            FixWayBack = "fix_way_back",
            /// Lengthen the queue before the bottleneck, to the value; or pace the sender, with the setting.
            DeepenQueue = "deepen_queue",
            /// Set both ends of the link to full duplex.
            FixDuplex = "fix_duplex",
            /// Find the other traffic, or measure again without it.
            FindTraffic = "find_traffic",
            /// Add capacity; or, with the setting, use a congestion control that reacts less to losses or marks; or a queue of the value.
            AddCapacity = "add_capacity",
            /// Raise the threshold at which the queue marks.
            RaiseMarking = "raise_marking",
        }
        /// How connections are opened and kept.
        Connections {
            /// Enable selective acknowledgements, or let the option pass.
            EnableSack = "enable_sack",
            /// Enable timestamps, or let the option pass.
            EnableTimestamps = "enable_timestamps",
            /// Keep the connection open, or start with a larger initial window.
            KeepConnection = "keep_connection",
            /// Reuse a connection, or resume its TLS session.
            ReuseConnection = "reuse_connection",
        }
    }
}

/// A change that may help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// The action.
    pub action: Action,
    /// The setting: a sysctl, an option, a key of a scenario, or a device.
    pub setting: Option<String>,
    /// The value of the setting.
    pub value: Option<f64>,
    /// The unit of the value.
    pub unit: Option<Unit>,
    /// The host.
    pub host: Option<String>,
    /// A further change that helps, or is needed as well.
    pub also: Option<Box<Remedy>>,
}

impl Remedy {
    /// Creates a remedy without operands; methods add them.
    pub const fn new(action: Action) -> Self {
        Self { action, setting: None, value: None, unit: None, host: None, also: None }
    }

    /// Sets the setting.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>) -> Self {
        self.setting = Some(name.into());
        self
    }

    /// Sets the value and its unit.
    #[must_use]
    pub fn value(mut self, value: impl Into<Option<Quantity>>) -> Self {
        if let Some(Quantity { value, unit }) = value.into() {
            (self.value, self.unit) = (Some(value), Some(unit));
        }
        self
    }

    /// Sets the host.
    #[must_use]
    pub fn host(mut self, name: &str) -> Self {
        self.host = Some(name.to_owned());
        self
    }

    /// Appends a further remedy to the chain.
    #[must_use]
    pub fn also(mut self, remedy: impl Into<Option<Remedy>>) -> Self {
        let Some(remedy) = remedy.into() else { return self };
        self.also = Some(Box::new(match self.also.take() {
            Some(first) => first.also(remedy),
            None => remedy,
        }));
        self
    }
}
