//! The flags.

use std::path::PathBuf;

use bdp_model::measurement::PORT;
use bdp_model::probes::hops::{PathRequest, ProbeProtocol};
use bdp_model::units::Nanos;
use bdp_run::measure::session::Credentials;
use bdp_run::probes::path::PathPlan;

use crate::address::AddressArgs;
use crate::arguments::seconds;
use crate::measure::{dscp, target};
use crate::{exit, help, token};

/// The run is bounded: longest time for each phase of rounds.
const LONGEST_PHASE: Nanos = Nanos::secs(600);

/// Arguments of `bdp path`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bdp path ams1                        each hop: round trips, loss, MTU, branches
  bdp path ams1 --load                 also under load, to find the queue; ams1 runs 'bdp serve'
  bdp path ams1:443 --tcp              with SYNs, through firewalls that allow the port
  sudo bdp path ams1 --dscp ef --ecn   the hop that changes DSCP or ECN

Needs no privilege, except to read packets quoted by routers (--dscp, --ecn). Details: 'bdp help hops'.")]
pub struct PathArgs {
    /// Name or address; for IPv6 with a port, [::1]:443
    #[arg(value_name = "HOST[:PORT]")]
    target: String,

    /// Port of --tcp and of 'bdp serve' for --load [default: 5201]
    #[arg(short, long, help_heading = help::ADDRESS, hide_short_help = true, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Probe each hop under load too: a bulk transfer to 'bdp serve' at HOST
    #[arg(long, help_heading = help::TEST)]
    load: bool,

    /// Probe with UDP datagrams [default: ICMP echo if permitted, otherwise UDP]
    #[arg(long, group = "protocol", help_heading = help::TEST)]
    udp: bool,

    /// Probe with TCP SYNs to the port of HOST, one at a time
    #[arg(long, group = "protocol", help_heading = help::TEST)]
    tcp: bool,

    /// Probe with ICMP echo requests
    #[arg(long, group = "protocol", help_heading = help::TEST)]
    icmp: bool,

    /// Probes per hop and phase
    #[arg(short = 'c', long = "probes", value_name = "N", help_heading = help::TEST, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,

    /// Interval between probes of a hop; any two probes are at least 5ms apart
    #[arg(short = 'i', long, help_heading = help::TEST, value_name = "TIME", default_value = "250ms", value_parser = seconds)]
    interval: Nanos,

    /// Maximum number of hops
    #[arg(long, value_name = "N", help_heading = help::TEST, default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..=64))]
    hops: u8,

    /// Maximum number of flows per hop to find load-balanced branches; 1 disables the search
    #[arg(long, value_name = "N", help_heading = help::TEST, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    flows: u16,

    /// Do not probe the path MTU
    #[arg(long, help_heading = help::TEST, hide_short_help = true)]
    no_mtu: bool,

    /// Time to wait for a reply
    #[arg(short = 'W', long, help_heading = help::TEST, hide_short_help = true, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    timeout: Nanos,

    #[command(flatten)]
    address: AddressArgs,

    /// DSCP of probes: 0 to 63, or a name such as ef, af41 or cs1
    #[arg(long, value_name = "DSCP", value_parser = dscp, help_heading = help::TRAFFIC)]
    dscp: Option<u8>,

    /// Mark probes ECN-capable, ECT(0); not with --tcp
    #[arg(long, help_heading = help::TRAFFIC)]
    ecn: bool,

    /// Token printed by the server, for --load; prefer BDP_TOKEN or --token-file
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,

    /// File whose first line is the token
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "PATH")]
    token_file: Option<PathBuf>,

    /// Resolve the names of hops
    #[arg(long, help_heading = help::OUTPUT)]
    names: bool,

    /// Print JSON ('bdp help hops')
    #[arg(long, help_heading = help::OUTPUT)]
    pub(super) json: bool,

    /// Include each probe in the JSON
    #[arg(long, requires = "json", help_heading = help::OUTPUT, hide_short_help = true)]
    samples: bool,
}

impl PathArgs {
    /// Builds the plan of the probes.
    pub(super) fn plan(&self) -> anyhow::Result<PathPlan> {
        let (host, port) = target::with_port(&self.target, self.port)?;
        let protocol = match (self.udp, self.tcp, self.icmp) {
            (true, ..) => Some(ProbeProtocol::Udp),
            (_, true, _) => Some(ProbeProtocol::Tcp),
            (.., true) => Some(ProbeProtocol::Icmp),
            _ => None,
        };
        if self.timeout == Nanos::ZERO || self.timeout > Nanos::secs(10) {
            return Err(exit::usage("-W must be above 0 and at most 10s, for example 500ms"));
        }
        if self.interval.as_ns().saturating_mul(u64::from(self.count)) > LONGEST_PHASE.as_ns() {
            return Err(exit::usage(format!(
                "{} probes {} apart take longer than {LONGEST_PHASE}; give a smaller -c or -i",
                self.count, self.interval
            )));
        }
        if self.ecn && self.tcp {
            return Err(exit::usage(
                "--ecn needs --udp or --icmp: a SYN is never ECN-capable (RFC 3168, section 6.1.1)",
            ));
        }
        Ok(PathPlan {
            request: PathRequest {
                host,
                port: port.unwrap_or(PORT),
                family: self.address.family(),
                protocol,
                load: self.load,
                hops: self.hops,
                probes: self.count,
                interval: self.interval,
                patience: self.timeout,
                flows: self.flows,
                sizes: !self.no_mtu,
                names: self.names,
                dscp: self.dscp,
                ecn: self.ecn,
                bind_address: self.address.bind.clone(),
                bind_device: self.address.bind_dev.clone(),
            },
            credentials: Credentials {
                token: token::find(self.token.as_deref(), self.token_file.as_deref())?,
                login: None,
            },
            keep: self.samples,
        })
    }
}
