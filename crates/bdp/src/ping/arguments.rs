//! The flags.

use std::path::PathBuf;

use bdp_engine::session::Credentials;
use bdp_model::expectation::Expectation;
use bdp_model::figure::PingFigure;
use bdp_model::measurement::PORT;
use bdp_model::ping::{PingMode, PingRequest};
use bdp_model::scenario::Family;
use bdp_model::units::{ByteCount, Nanos};

use crate::measure::{dscp, seconds, target};
use crate::{exit, token};

/// Probes where neither a count nor a time was given.
const COUNT: u64 = 10;
/// Handshakes and requests before those that count: the first finds caches cold, and may wait for ARP.
const WARM_UP: u64 = 1;
/// Most of a datagram's payload (IPv4, RFC 791 and 768).
const LARGEST: u64 = 65_507;

/// Arguments of `bdp ping`.
#[derive(clap::Args)]
#[command(after_help = "\
Without a mode TCP connections are made and reset at once: any open port will do, no server of bdp is needed. -c 0 and \
-t 0 go on until Ctrl-C, which prints what there is and is then no failure; before another end the exit code is 130, of \
SIGTERM 143. Explained in docs/ping.md.

Examples:
  bdp ping example.com:443
  bdp ping 192.0.2.7 --icmp -c 100 -i 10ms --expect 'rtt.p95<=30ms' --expect 'loss<1%'
  bdp ping ams1 --udp -i 0 -t 5 -l 64      round trips one after the other, with 'bdp serve' there")]
pub struct PingArgs {
    /// A name or an address, [::1]:443 where IPv6 has a port
    #[arg(value_name = "HOST[:PORT]")]
    target: String,

    /// The port [default: 5201]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// ICMP echo requests
    #[arg(long, group = "mode")]
    icmp: bool,

    /// Messages on a TCP connection that 'bdp serve' there sends back
    #[arg(long, group = "mode")]
    tcp: bool,

    /// Datagrams that 'bdp serve' there sends back
    #[arg(long, group = "mode")]
    udp: bool,

    /// Probes that count [default: 10, or as many as -t leaves room for]
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,

    /// End after this time, in seconds or with a unit
    #[arg(short = 't', long, value_name = "TIME", value_parser = seconds)]
    time: Option<Nanos>,

    /// From one probe to the next, down to 1us; 0: each as soon as the one before is answered
    #[arg(short = 'i', long, value_name = "TIME", default_value = "200ms", value_parser = seconds)]
    interval: Nanos,

    /// Probes before those that count
    #[arg(short = 'w', long, value_name = "N", default_value_t = WARM_UP)]
    warm_up: u64,

    /// Bytes of a probe's payload, of --icmp, --udp and --tcp [default: the least there can be]
    #[arg(short = 'l', long, value_name = "SIZE")]
    length: Option<ByteCount>,

    /// How long an answer is waited for
    #[arg(short = 'W', long, value_name = "TIME", default_value = "3", value_parser = seconds)]
    timeout: Nanos,

    /// Don't ask the kernel when packets left and came: a call less for each; -i 0 never asks
    #[arg(long)]
    no_stamps: bool,

    /// Only IPv4
    #[arg(short = '4', long = "version4", conflicts_with = "version6")]
    version4: bool,

    /// Only IPv6
    #[arg(short = '6', long = "version6")]
    version6: bool,

    /// Send from this local address
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,

    /// Send through this device
    #[arg(long, value_name = "DEVICE")]
    bind_dev: Option<String>,

    /// Differentiated services code point: 0 to 63, or a name as ef, af41, cs1
    #[arg(long, value_name = "DSCP", value_parser = dscp)]
    dscp: Option<u8>,

    /// The token that the server printed, for --udp and --tcp; better in BDP_TOKEN or --token-file
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,

    /// A file whose first line is the token
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,

    /// What must come out: rtt.p95<=30ms, loss<1%, jitter<=2ms (rtt.min, p50, p95, p99, max); may be given several times,
    /// exit 1 when missed
    #[arg(long, value_name = "EXPR")]
    expect: Vec<Expectation<PingFigure>>,

    /// Print JSON (docs/ping.md)
    #[arg(long)]
    pub(super) json: bool,

    /// Print each probe by itself as CSV
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
}

impl PingArgs {
    /// What is to be sent.
    pub(super) fn request(&self) -> anyhow::Result<PingRequest> {
        let (host, port) = target::parse(&self.target).map_err(exit::usage)?;
        if let (Some(one), Some(other)) = (port, self.port)
            && one != other
        {
            return Err(exit::usage(format!("two ports were given, {one} and {other}; leave one out")));
        }
        let mode = match (self.icmp, self.tcp, self.udp) {
            (true, ..) => PingMode::Icmp,
            (_, true, _) => PingMode::Tcp,
            (.., true) => PingMode::Udp,
            _ => PingMode::Connect,
        };
        if self.length.is_some_and(|length| length.as_bytes() > LARGEST) {
            return Err(exit::usage(format!("-l is {LARGEST} at most, the payload of the largest datagram")));
        }
        if self.timeout == Nanos::ZERO {
            return Err(exit::usage("-W 0 waits for no answer; give a time, as 1 or 500ms"));
        }
        let endless = self.count == Some(0) || self.time == Some(Nanos::ZERO);
        let count = match self.count {
            None if self.time.is_none() => Some(COUNT),
            count => count.filter(|_| !endless),
        };
        Ok(PingRequest {
            host,
            port: port.or(self.port).unwrap_or(PORT),
            family: match (self.version4, self.version6) {
                (true, _) => Some(Family::Ipv4),
                (_, true) => Some(Family::Ipv6),
                _ => None,
            },
            mode,
            count,
            duration: self.time.filter(|_| !endless),
            interval: self.interval,
            warm_up: self.warm_up,
            payload: self.length,
            patience: self.timeout,
            // In a closed loop they would be in what is timed.
            stamps: !self.no_stamps && self.interval > Nanos::ZERO,
            bind_address: self.bind.clone(),
            bind_device: self.bind_dev.clone(),
            dscp: self.dscp,
        })
    }

    /// What must come out.
    pub(super) fn expectations(&self) -> &[Expectation<PingFigure>] {
        &self.expect
    }

    /// What a server may want to know.
    pub(super) fn credentials(&self) -> anyhow::Result<Credentials> {
        Ok(Credentials {
            token: token::find(self.token.as_deref(), self.token_file.as_deref())?,
            login: None,
        })
    }
}
