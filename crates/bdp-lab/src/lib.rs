//! Hosts as anonymous network namespaces, joined by emulated links that a thread drives in real time.
//!
//! A case runs on a [`Testbed`]: its hosts, each an agent process in its own namespace, and its links, each two
//! TUN devices with a [`bdp_link::Link`] between them. [`driver`] moves the packets, [`fidelity`] judges how
//! well. Nothing has a name outside the processes: when they end, everything is gone.
#![forbid(unsafe_code)]

pub mod agent;
mod buffer_pool;
mod capture;
pub mod conformance;
mod crossing;
pub mod driver;
pub mod fidelity;
pub mod frame_train;
pub mod guest;
mod host;
pub mod kernel;
mod kernel_queue;
mod kernel_stack;
pub mod machine;
mod meter;
mod offload;
pub mod program;
mod reroute;
pub mod simulation;
pub mod synthetic;
pub mod testbed;
pub mod watch;

pub use capture::{CaptureFiles, CapturePace, Captures};
pub use crossing::Crossing;
pub use driver::{Driver, Pace};
pub use host::{AgentCommand, LabCommands, Program};
pub use kernel_stack::KernelStack;
pub use program::ProgramPlace;
pub use testbed::{LinkOutcome, Testbed};

use bdp_sys::SysError;

/// Result of a lab operation.
pub type Result<T, E = LabError> = std::result::Result<T, E>;

/// Why the lab could not be built or kept running.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The system does not allow this user to build one.
    #[error(
        "the lab needs network namespaces and {}: {cause}; {}",
        bdp_sys::tun::CONTROL_PATH,
        way_out(cause)
    )]
    Permission {
        /// The refused operation.
        cause: String,
    },
    /// The operating system refused something else.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A host's process could not be started or ended early.
    #[error("host '{host}': {cause}{}", bdp_sys::more_room(cause))]
    Host {
        /// Its name.
        host: String,
        /// Cause.
        cause: String,
    },
    /// The scenario requests something that the lab can't build.
    #[error("{0}")]
    Topology(String),
    /// A stack that is no kernel misbehaved.
    #[error("host '{host}': {error}")]
    Stack {
        /// Its name.
        host: String,
        /// Cause.
        error: bdp_stack::StackError,
    },
    /// A guest could not be booted.
    #[error("{0}")]
    Guest(String),
    /// A capture could not be started.
    #[error("{operation} '{path}' of a capture: {cause}; choose another folder with --capture")]
    Capture {
        /// The refused operation.
        operation: &'static str,
        /// Its path.
        path: String,
        /// Cause.
        cause: String,
    },
    /// The thread that moves the packets ended.
    #[error("the link driver ended: {0}")]
    Driver(String),
}

fn way_out(cause: &str) -> &'static str {
    if cause.contains("No such file") || cause.contains("No such device") {
        "load the module ('modprobe tun') or, in a container, pass the device in ('--device /dev/net/tun')"
    } else if cause.contains(bdp_sys::tun::CONTROL_PATH) {
        "run as root, or permit your user to open it ('chmod 666 /dev/net/tun')"
    } else {
        "run as root, or allow user namespaces ('sysctl kernel.apparmor_restrict_unprivileged_userns=0' or \
         'kernel.unprivileged_userns_clone=1', and 'user.max_user_namespaces' above 0)"
    }
}
