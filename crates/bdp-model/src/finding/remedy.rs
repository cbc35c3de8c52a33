//! What to change, with its operands.

use serde::{Deserialize, Serialize};

use super::named::{named, named_kinds};
use super::quantity::{Quantity, Unit};

named_kinds! {
    /// Something to do. `setting`, `value` and `host` are the operands of a [`Remedy`].
    pub enum Action {
        /// Windows and buffers.
        Windows {
            /// Raise the last number of a setting on the host, to the value where that is known.
            RaiseMaximum = "raise_maximum",
            /// Set a setting of the host to the value.
            Set = "set",
            /// Ask for a larger window by the setting, of the value at least, or for none.
            AskWindow = "ask_window",
            /// Ask for a larger socket buffer by the setting, or for none.
            AskSocketBuffer = "ask_socket_buffer",
            /// Ask for a larger socket buffer than the value by the setting.
            LargerSocketBuffer = "larger_socket_buffer",
            /// Ask for a smaller window by the setting, of about the value.
            SmallerWindow = "smaller_window",
            /// The same for one direction alone: both run at once, and the setting binds both.
            SmallerWindowOneWay = "smaller_window_one_way",
            /// Have the window scale option pass the middlebox that removes it.
            PassWindowScaling = "pass_window_scaling",
            /// Turn window scaling on at the other end, or find the middlebox that removes the option.
            FindWindowScaling = "find_window_scaling",
        }
        /// What is sent, and how fast.
        Load {
            /// Leave the setting out.
            LeaveOut = "leave_out",
            /// Search the highest rate without loss, by the setting.
            SearchRate = "search_rate",
            /// Send at a lower rate by the setting: below the value, where there is one.
            LowerRate = "lower_rate",
            /// Send at the value at most, by the setting.
            BoundRate = "bound_rate",
            /// More streams, by the setting; on a faster processor of the host, where one is named.
            MoreStreams = "more_streams",
            /// Larger datagrams, by the setting.
            LargerDatagrams = "larger_datagrams",
        }
        /// Hosts and their programs.
        Hosts {
            /// Less other work on the host.
            QuieterHost = "quieter_host",
            /// Find what keeps the receiving process on the host from reading.
            FreeReader = "free_reader",
            /// Find what keeps the sending process on the host from writing.
            FreeWriter = "free_writer",
            /// Find what keeps the server's program on the host from answering.
            FreeServer = "free_server",
            /// More questions at a time, or more with each.
            AskMore = "ask_more",
            /// Have the programs let more be in flight: the value is what they allow.
            LargerProgramWindow = "larger_program_window",
            /// Have a program listen on the host, and what is on the way let it be reached.
            OpenPort = "open_port",
            /// Find whether the host still runs and is reached.
            FindHost = "find_host",
            /// Set `TCP_NODELAY`, or write more at once, on the host.
            DisableNagle = "disable_nagle",
            /// Raise the quota of the control group on the host.
            RaiseQuota = "raise_quota",
            /// Move the virtual machine to a host with processors to spare.
            MoveMachine = "move_machine",
            /// Larger rings of the device that the setting names on the host.
            RaiseRing = "raise_ring",
            /// Raise the setting of the kernel's receive backlog on the host.
            RaiseBacklog = "raise_backlog",
        }
        /// The path.
        Path {
            /// Probe the path MTU on the host, clamp the MSS, or let ICMP pass; no host: it does that already.
            ProbeMtu = "probe_mtu",
            /// Look for a link or a route that failed.
            FindOutage = "find_outage",
            /// Ask which rate is agreed, and shape to it.
            ShapeToRate = "shape_to_rate",
            /// Look for errors on the way; the setting is what lessens their effect meanwhile.
            FindErrors = "find_errors",
            /// Find what spreads one connection over several links.
            FindSpreading = "find_spreading",
            /// Look for a faulty or congested link on the way back, to the host.
            FixWayBack = "fix_way_back",
            /// A longer queue before the bottleneck, of the value; or, by the setting, a sender that spaces its segments.
            DeepenQueue = "deepen_queue",
            /// Have both ends of a link use full duplex.
            FixDuplex = "fix_duplex",
            /// Find the other traffic, or measure when it is gone.
            FindTraffic = "find_traffic",
            /// More capacity; or, by the setting, a congestion control that goes less by losses or marks; or a queue of the value.
            AddCapacity = "add_capacity",
            /// A queue that marks later.
            RaiseMarking = "raise_marking",
        }
        /// How connections are made and kept.
        Connections {
            /// Turn selective acknowledgements on, or have the option pass.
            EnableSack = "enable_sack",
            /// Turn timestamps on, or have the option pass.
            EnableTimestamps = "enable_timestamps",
            /// Keep the connection, or begin with a larger window.
            KeepConnection = "keep_connection",
            /// Use a connection again, or resume its session of TLS.
            ReuseConnection = "reuse_connection",
        }
    }
}

/// What to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// What to do.
    pub action: Action,
    /// By which setting: a sysctl, an option, a key of a scenario, a device.
    pub setting: Option<String>,
    /// To which value.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Option<Unit>,
    /// At which host.
    pub host: Option<String>,
    /// What helps besides, or is needed with it.
    pub also: Option<Box<Remedy>>,
}

impl Remedy {
    /// Without operands; methods add them.
    pub const fn new(action: Action) -> Self {
        Self { action, setting: None, value: None, unit: None, host: None, also: None }
    }

    /// By which setting.
    #[must_use]
    pub fn setting(mut self, name: &str) -> Self {
        self.setting = Some(name.to_owned());
        self
    }

    /// To which value.
    #[must_use]
    pub fn value(mut self, value: impl Into<Option<Quantity>>) -> Self {
        if let Some(Quantity { value, unit }) = value.into() {
            (self.value, self.unit) = (Some(value), Some(unit));
        }
        self
    }

    /// At which host.
    #[must_use]
    pub fn host(mut self, name: &str) -> Self {
        self.host = Some(name.to_owned());
        self
    }

    /// What helps besides, after all that does already.
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
