//! The machine that carries the lab: its clock, its kernel, its processors.

pub use bdp_sys::clock::{monotonic_ns, unix_ms};
pub use bdp_sys::process::{HostCpu, kernel_release, online_cpus};
pub use bdp_sys::sysctl::read as read_sysctl;

/// Prepares the process for many hosts at once. A limit that can't be raised shows later, as the error of what met it.
pub fn prepare() {
    let _ = bdp_sys::process::raise_descriptor_limit();
}

/// Why no lab can be built here, or `None` where one can: tells by trying the one device it needs.
pub fn obstacle() -> Option<crate::LabError> {
    bdp_sys::tun::obstacle().map(|e| crate::LabError::Permission { cause: e.to_string() })
}
