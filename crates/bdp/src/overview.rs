//! What `bdp` alone prints: what it is, commands to paste, what works on this machine.

use bdp_lab::machine;

use crate::{Outcome, output};

/// Prints it.
pub fn print() -> Outcome {
    let lab = match machine::obstacle(&crate::agent::command()) {
        None => format!("yes (Linux {})", machine::kernel_release()),
        Some(error) => format!("no: {}", output::tame(&error.to_string())),
    };
    output::print(&format!(
        "bdp {version}: why is this network path slower than it should be?

  bdp demo                                 published experiments repeated here, in two minutes
  bdp lab run s3-30k                       one experiment on the emulated lab
  bdp lab list                             all that ship
  bdp calc bdp --rate 1G --rtt 2.55ms      the window that a path needs
  bdp runs                                 what was run before

lab on this machine: {lab}
bdp --help lists everything
",
        version = env!("CARGO_PKG_VERSION"),
    ))
}
