//! The flags.

use std::net::SocketAddr;

use bdp_model::units::Nanos;
use bdp_model::watch::WatchTarget;
use bdp_run::watch::WatchPlan;

use crate::arguments::seconds;
use crate::{exit, help, metrics};

/// Group of the socket options.
const SOCKETS: &str = "Sockets";

/// Arguments of `bdp watch`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bdp watch $(pgrep -n rsync)              a slow program and its child processes
  bdp watch :443                           all connections on a port, at either end
  bdp watch ams1 --for 30s                 connections to a host, and a summary after 30 s
  bdp watch --all --json

Needs no privilege for your own programs. Keys of the live table: 'bdp help watching'.")]
pub struct WatchArgs {
    /// Process id, :PORT (at either end), or the remote HOST or HOST:PORT; repeatable
    #[arg(value_name = "PID|:PORT|HOST", required_unless_present = "all")]
    targets: Vec<String>,

    /// Watch every TCP connection of this network namespace
    #[arg(short, long, help_heading = SOCKETS, conflicts_with = "targets")]
    all: bool,

    /// Interval between reports
    #[arg(short = 'i', long, help_heading = help::TEST, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    interval: Nanos,

    /// Samples per second
    #[arg(long, help_heading = help::TEST, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,

    /// Stop after this time and print a summary [default: at Ctrl-C, or when the processes have ended]
    #[arg(short = 't', long = "for", help_heading = help::TEST, value_name = "TIME", value_parser = seconds)]
    pub(super) time: Option<Nanos>,

    /// Maximum number of sockets printed per interval, if output is not a live table
    #[arg(long, help_heading = help::OUTPUT, value_name = "N", default_value_t = 10)]
    pub(super) top: usize,

    /// Print lines instead of a live table, even on a terminal
    #[arg(long, help_heading = help::OUTPUT)]
    pub(super) plain: bool,

    /// Print JSON lines, one per socket and interval ('bdp help watch.schema')
    #[arg(long, help_heading = help::OUTPUT)]
    pub(super) json: bool,

    /// Address for Prometheus, http://ADDR:PORT/metrics; a port alone listens on loopback
    #[arg(long, help_heading = help::OUTPUT, value_name = "ADDR:PORT", value_parser = metrics::address)]
    pub(super) metrics: Option<SocketAddr>,
}

impl WatchArgs {
    /// Builds the plan of the watch.
    pub(super) fn plan(&self) -> anyhow::Result<WatchPlan> {
        const SHORTEST: Nanos = Nanos::millis(100);
        if self.interval < SHORTEST {
            return Err(exit::usage(format!("-i {} is too short; give at least {SHORTEST}", self.interval)));
        }
        if self.time == Some(Nanos::ZERO) {
            return Err(exit::usage("--for 0 watches nothing; give a time, for example 30s, or omit it"));
        }
        let targets = match self.all {
            true => vec![WatchTarget::All],
            false => {
                self.targets.iter().map(|text| target(text).map_err(exit::usage)).collect::<Result<_, _>>()?
            }
        };
        Ok(WatchPlan {
            targets,
            interval: self.interval,
            samples_per_second: self.samples,
            duration: self.time,
        })
    }

    /// Description of the request.
    pub(super) fn asked(&self) -> String {
        if self.all { "--all".to_owned() } else { self.targets.join(" ") }
    }
}

/// Parses `PID`, `:PORT`, `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`.
fn target(text: &str) -> Result<WatchTarget, String> {
    let port = |digits: &str| {
        let port = digits.parse::<u16>().ok().filter(|&port| port > 0);
        port.ok_or_else(|| format!("'{text}': '{digits}' is not a port; give 1 to 65535, for example :443"))
    };
    if let Some(digits) = text.strip_prefix(':') {
        // An IPv6 address may begin with colons.
        if !digits.starts_with(':') {
            return port(digits).map(WatchTarget::Port);
        }
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let process = text.parse::<u32>().ok().filter(|&process| process > 0 && process <= i32::MAX as u32);
        return process.map(WatchTarget::Process).ok_or_else(|| format!("'{text}' is not a process id"));
    }
    let (host, digits) = match text.rsplit_once(':') {
        Some((host, digits)) if host.ends_with(']') || !host.contains(':') => (host, Some(digits)),
        _ => (text, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(format!("'{text}' is not a target; give a process id, :PORT, HOST or HOST:PORT"));
    }
    Ok(WatchTarget::Host(host.to_owned(), digits.map(port).transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_process_a_port_or_a_host() {
        let host = |name: &str, port| Ok(WatchTarget::Host(name.to_owned(), port));
        assert_eq!(target("4242"), Ok(WatchTarget::Process(4242)));
        assert_eq!(target(":443"), Ok(WatchTarget::Port(443)));
        assert_eq!(target("ams1"), host("ams1", None));
        assert_eq!(target("ams1:22"), host("ams1", Some(22)));
        assert_eq!(target("192.0.2.1:22"), host("192.0.2.1", Some(22)));
        assert_eq!(target("2001:db8::1"), host("2001:db8::1", None));
        assert_eq!(target("::1"), host("::1", None));
        assert_eq!(target("[2001:db8::1]:443"), host("2001:db8::1", Some(443)));
        for wrong in ["", ":", ":0", ":70000", "0", "99999999999", "ams1:", "ams1:x", "a b"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }
}
