//! Output of `bdp` alone: what it is, commands to paste, what works on this machine.

use std::net::{Ipv4Addr, SocketAddr};

use bdp_lab::machine;
use bdp_sys::process;
use bdp_sys::stamp::StampedSocket;

use crate::exit::Outcome;
use crate::output;

/// Prints it.
pub fn print() -> Outcome {
    let lab = match machine::obstacle(&crate::agent::command()) {
        None => format!("yes (Linux {})", process::kernel_release()),
        Some(error) => format!("no: {}", output::tame(&error.to_string())),
    };
    let virtual_clock = crate::guest::boots(None);
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let icmp = match StampedSocket::icmp(loopback, None, None, None) {
        Ok(_) => "yes",
        Err(_) => "no; 'bdp ping' uses TCP connects, which need no privilege",
    };
    output::print(&format!(
        "bdp {version}: why is this network path slower than it should be?

  bdp demo                            published experiments, repeated here in about a minute
  bdp serve                           the other end; prints the command to run at this end
  bdp measure HOST                    throughput and latency both ways, and what limits them
  bdp fix HOST                        plan, rehearse, apply and verify a change, or undo it
  bdp path HOST                       each hop: queue, loss, MTU, branches; no server needed
  bdp lab list                        scenarios for the emulated lab, and paths as templates

lab on this machine: {lab}
virtual clock: {virtual_clock}
ICMP on this machine: {icmp}
measurements need no privilege; bdp --help lists all commands
",
        version = env!("CARGO_PKG_VERSION"),
    ))
}
