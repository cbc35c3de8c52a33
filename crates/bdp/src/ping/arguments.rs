//! The flags.

use std::path::PathBuf;

use bdp_model::measurement::PORT;
use bdp_model::measurement::expectation::Expectation;
use bdp_model::measurement::figure::PingFigure;
use bdp_model::probes::ping::{PingMode, PingRequest};
use bdp_model::units::{ByteCount, Nanos};
use bdp_run::measure::session::Credentials;
use bdp_run::probes::ping::PingPlan;

use crate::address::AddressArgs;
use crate::arguments::seconds;
use crate::measure::{dscp, target};
use crate::{exit, help, token};

/// Default number of probes, without a count or a time.
const COUNT: u64 = 10;
/// Uncounted handshakes and requests at the start: the first finds caches cold, and may wait for ARP.
const WARM_UP: u64 = 1;
/// Largest payload of a datagram (IPv4, RFC 791 and 768).
const LARGEST: u64 = 65_507;

/// Arguments of `bdp ping`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bdp ping example.com:443                 TCP connect to any open port, no server needed
  bdp ping 192.0.2.7 --icmp -c 100 -i 10ms --expect 'rtt.p95<=30ms' --expect 'loss<1%'
  bdp ping ams1 --udp -i 0 -t 5 -l 64      round trips back to back; ams1 runs 'bdp serve'

-c 0 and -t 0 run until Ctrl-C, which prints the summary and exits 0. Otherwise Ctrl-C exits 130, and \
SIGTERM 143. Details: 'bdp help round-trips'.")]
pub struct PingArgs {
    /// Name or address; for IPv6 with a port, [::1]:443
    #[arg(value_name = "HOST[:PORT]")]
    target: String,

    /// Port [default: 5201]
    #[arg(short, long, help_heading = help::ADDRESS, hide_short_help = true, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Probe with ICMP echo requests
    #[arg(long, group = "mode", help_heading = help::TEST)]
    icmp: bool,

    /// Probe with messages on a TCP connection, echoed by 'bdp serve'
    #[arg(long, group = "mode", help_heading = help::TEST)]
    tcp: bool,

    /// Probe with UDP datagrams, echoed by 'bdp serve'
    #[arg(long, group = "mode", help_heading = help::TEST)]
    udp: bool,

    /// Number of probes; 0 for no limit [default: 10, or as many as fit in -t]
    #[arg(short, long, value_name = "N", help_heading = help::TEST)]
    count: Option<u64>,

    /// Duration; 0 for no limit
    #[arg(short = 't', long, help_heading = help::TEST, value_name = "TIME", value_parser = seconds)]
    time: Option<Nanos>,

    /// Interval between probes, at least 1us; 0 sends each probe as soon as the last one is answered
    #[arg(short = 'i', long, help_heading = help::TEST, value_name = "TIME", default_value = "200ms", value_parser = seconds)]
    interval: Nanos,

    /// Warm-up probes, excluded from the results
    #[arg(short = 'w', long, help_heading = help::TEST, hide_short_help = true, value_name = "N", default_value_t = WARM_UP)]
    warm_up: u64,

    /// Payload of a probe in bytes, for example 64; with --icmp, --udp or --tcp [default: the smallest]
    #[arg(short = 'l', long, value_name = "SIZE", help_heading = help::TRAFFIC, hide_short_help = true)]
    length: Option<ByteCount>,

    /// Time to wait for a reply
    #[arg(short = 'W', long, help_heading = help::TEST, hide_short_help = true, value_name = "TIME", default_value = "3s", value_parser = seconds)]
    timeout: Nanos,

    /// Do not use kernel timestamps; saves one system call per probe; implied by -i 0
    #[arg(long, help_heading = help::TEST, hide_short_help = true)]
    no_stamps: bool,

    #[command(flatten)]
    address: AddressArgs,

    /// DSCP: 0 to 63, or a name such as ef, af41 or cs1
    #[arg(long, value_name = "DSCP", value_parser = dscp, help_heading = help::TRAFFIC, hide_short_help = true)]
    dscp: Option<u8>,

    /// Token printed by the server, for --udp and --tcp; prefer BDP_TOKEN or --token-file
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,

    /// File whose first line is the token
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "PATH")]
    token_file: Option<PathBuf>,

    /// Expected result, for example rtt.p95<=30ms (min, p50, p95, p99, max), loss<1% or jitter<=2ms; exit code 1 if missed;
    /// repeatable
    #[arg(long, value_name = "EXPR", help_heading = help::TEST)]
    expect: Vec<Expectation<PingFigure>>,

    /// Exit with code 6, instead of 1, if a figure of --expect was not measured
    #[arg(long, help_heading = help::TEST, hide_short_help = true)]
    pub(super) strict: bool,

    /// Print only the summary, not each probe
    #[arg(short, long, help_heading = help::OUTPUT)]
    pub(super) quiet: bool,

    /// Print JSON ('bdp help round-trips')
    #[arg(long, help_heading = help::OUTPUT)]
    pub(super) json: bool,

    /// Print a CSV row for each probe
    #[arg(long, conflicts_with = "json", help_heading = help::OUTPUT, hide_short_help = true)]
    pub(super) csv: bool,

    /// Write metrics to this file for the Prometheus textfile collector ('bdp help metrics')
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT, hide_short_help = true)]
    pub(super) prometheus: Option<PathBuf>,
}

impl PingArgs {
    /// Builds the request.
    fn request(&self) -> anyhow::Result<PingRequest> {
        let (host, port) = target::with_port(&self.target, self.port)?;
        let mode = match (self.icmp, self.tcp, self.udp) {
            (true, ..) => PingMode::Icmp,
            (_, true, _) => PingMode::Tcp,
            (.., true) => PingMode::Udp,
            _ => PingMode::Connect,
        };
        if self.length.is_some_and(|length| length.as_bytes() > LARGEST) {
            return Err(exit::usage(format!(
                "-l must be at most {LARGEST}, the payload of the largest datagram"
            )));
        }
        if self.timeout == Nanos::ZERO {
            return Err(exit::usage("-W 0 does not wait for replies; give a time, for example 1 or 500ms"));
        }
        let count = match self.count {
            None if self.time.is_none() => Some(COUNT),
            count => count.filter(|&count| count != 0),
        };
        Ok(PingRequest {
            host,
            port: port.unwrap_or(PORT),
            family: self.address.family(),
            mode,
            count,
            duration: self.time.filter(|&time| time != Nanos::ZERO),
            interval: self.interval,
            warm_up: self.warm_up,
            payload: self.length,
            patience: self.timeout,
            // In a closed loop they would be part of the measured time.
            stamps: !self.no_stamps && self.interval > Nanos::ZERO,
            bind_address: self.address.bind.clone(),
            bind_device: self.address.bind_dev.clone(),
            dscp: self.dscp,
        })
    }

    /// Builds the plan, with its expectations.
    pub(super) fn plan(&self) -> anyhow::Result<PingPlan> {
        Ok(PingPlan {
            request: self.request()?,
            credentials: Credentials {
                token: token::find(self.token.as_deref(), self.token_file.as_deref())?,
                login: None,
            },
            expectations: self.expect.clone(),
            keep: self.csv,
        })
    }
}
