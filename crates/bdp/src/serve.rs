//! `bdp serve`: the other end of measurements.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::thread;

use anyhow::Context;
use bdp_agent::server::access::{AccessRules, Network, PlaceLimits};
use bdp_agent::server::foreign::ForeignProtocol;
use bdp_agent::server::{Event, Server, ServerOptions, TuneOptions};
use bdp_flow::error::FlowError;
use bdp_interop::iperf2::server::{self as iperf2, Iperf2};
use bdp_interop::iperf3::server::Iperf3;
use bdp_model::measurement::PORT;
use bdp_model::units::{ByteCount, Nanos, Rate};
use bdp_sys::{device, names, random, signal};
use bdp_wire::proof::hex;
use bdp_wire::session::Limits;
use clap::Args;

use crate::arguments::seconds;
use crate::exit::{self, Exit, Outcome};
use crate::measure::target;
use crate::tune::{self, places};
use crate::users::UserArgs;
use crate::visitors::PageOptions;
use crate::{help, metrics, output, token};

/// Limits with a token, and with --open.
const TRUSTED: Granted = Granted {
    limits: Limits { duration: Nanos::secs(24 * 3600), streams: 4096, rate: None },
    sessions: 16,
    memory: ByteCount::kib(160 << 10),
};
const OPEN: Granted = Granted {
    limits: Limits { duration: Nanos::secs(30), streams: 16, rate: Some(Rate::bps(1_000_000_000)) },
    sessions: 4,
    memory: ByteCount::kib(20 << 10),
};

struct Granted {
    limits: Limits,
    sessions: u32,
    memory: ByteCount,
}

/// A shorter token causes a warning.
const SHORTEST_TOKEN: usize = 12;
/// Time of a measurement beyond its flows.
const AROUND: Nanos = Nanos::secs(30);

/// Longest, most and fastest.
const LIMITS: &str = "Limits";

/// Serve measurements on one port, TCP and UDP.
///
/// Prints the command to run on the other machine, with the token that clients need unless they connect from loopback. The
/// server changes no settings of the machine, except with --allow-tune, and opens no connections, except back to iperf2
/// clients (-d, -r) on this machine or in --allow.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bdp serve                                prints a new token
  bdp serve --open --max-duration 60s      no token needed; limits apply
  bdp serve --allow 192.0.2.0/24 --iperf2-port
  bdp serve --page                         browsers test the path at http://HOST:5201
  sudo bdp serve --allow-tune              lets 'bdp tune apply --at' change settings of this host temporarily")]
pub struct ServeArgs {
    /// Address, port or both to listen on; without an address, all of IPv4 and IPv6
    #[arg(long, help_heading = help::ADDRESS, value_name = "ADDR:PORT", default_value = "5201")]
    listen: String,
    /// Port to listen on, at all addresses
    #[arg(short, long, help_heading = help::ADDRESS, value_name = "PORT", conflicts_with = "listen", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Token for clients, instead of a new one [env: BDP_TOKEN]
    #[arg(long, help_heading = help::ACCESS, value_name = "TOKEN", conflicts_with_all = ["token_file", "open"])]
    token: Option<String>,
    /// File whose first line is the token
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "FILE", conflicts_with = "open")]
    token_file: Option<PathBuf>,
    /// Serve anyone without a token, within smaller limits: 30s, 16 streams, 4 sessions
    #[arg(long, help_heading = help::ACCESS)]
    open: bool,
    /// Port for iperf2 clients, TCP and UDP [default if no value: 5001]
    #[arg(long, help_heading = help::INTEROP, value_name = "PORT", num_args = 0..=1, default_missing_value = "5001", value_parser = clap::value_parser!(u16).range(1..))]
    iperf2_port: Option<u16>,
    /// Send UDP to iperf2 clients in --allow that request it (-R, --full-duplex); a forged source address gets flooded
    #[arg(long, help_heading = help::INTEROP, hide_short_help = true, requires = "iperf2_port")]
    iperf2_udp_reverse: bool,
    /// Serve one session, then exit
    #[arg(short = '1', long = "one-off", help_heading = help::TEST)]
    once: bool,
    /// Maximum duration of a flow [default: 24h; with --open: 30s]
    #[arg(long, help_heading = LIMITS, value_name = "TIME", value_parser = longest)]
    max_duration: Option<Nanos>,
    /// Maximum number of streams of a flow [default: 4096; with --open: 16]
    #[arg(long, help_heading = LIMITS, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    max_streams: Option<u32>,
    /// Maximum number of parallel sessions [default: 16; with --open: 4]
    #[arg(long, help_heading = LIMITS, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_sessions: Option<u32>,
    /// Maximum number of sessions per address (IPv6: per /64) [default: no limit; with --open: half of the sessions]
    #[arg(long, help_heading = LIMITS, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_sessions_per_address: Option<u32>,
    /// Maximum number of streams per address [default: twice --max-streams]
    #[arg(long, help_heading = LIMITS, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    max_streams_per_address: Option<u32>,
    /// Memory limit for samples and streams of all flows [default: 160M; with --open: 20M]
    #[arg(long, help_heading = LIMITS, hide_short_help = true, value_name = "SIZE")]
    max_memory: Option<ByteCount>,
    /// Maximum rate of a flow, for example 100M; faster requests are refused [default: no limit; with --open: 1G]
    #[arg(long, help_heading = LIMITS, value_name = "RATE")]
    max_rate: Option<Rate>,
    /// Serve one session at a time; others are refused as busy
    #[arg(long, help_heading = LIMITS, hide_short_help = true, conflicts_with = "max_sessions")]
    exclusive: bool,
    /// Accept only these addresses and loopback, including iperf3 and iperf2 clients, which have no token; repeatable
    #[arg(long, help_heading = help::ACCESS, value_name = "CIDR")]
    allow: Vec<Network>,
    /// Let clients with the tune token change TCP settings of this host, for at most one hour unless confirmed
    #[arg(long, help_heading = help::ACCESS)]
    allow_tune: bool,
    /// Tune token, instead of a new one [env: BDP_TUNE_TOKEN]
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "TOKEN", requires = "allow_tune", conflicts_with = "tune_token_file")]
    tune_token: Option<String>,
    /// File whose first line is the tune token
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "FILE", requires = "allow_tune")]
    tune_token_file: Option<PathBuf>,
    /// Folder of the journals of changed settings [default: $BDP_TUNE_JOURNAL, or /var/lib/bdp/tune]
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "DIR", requires = "allow_tune")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    users: UserArgs,
    /// Reject these addresses; overrides every --allow; repeatable
    #[arg(long, help_heading = help::ACCESS, value_name = "CIDR")]
    deny: Vec<Network>,
    /// Address for Prometheus, http://ADDR:PORT/metrics; a port alone listens on loopback
    #[arg(long, help_heading = help::OUTPUT, value_name = "ADDR:PORT", value_parser = metrics::address)]
    metrics: Option<SocketAddr>,
}

impl ServeArgs {
    /// Serves until a signal, or for one session with `-1`.
    pub fn run(self) -> Outcome {
        let secret = self.find_token()?;
        let granted = if self.open { OPEN } else { TRUSTED };
        if self.max_rate.is_some_and(|rate| rate.as_bps() == 0) {
            return Err(exit::usage("--max-rate 0 permits no flow; give a rate, for example 100M"));
        }
        let limits = self.limits(&granted);
        let logins = self.users.find()?;
        let access = AccessRules {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            open: self.open,
            users: logins.is_some(),
        };
        let tuning = self.find_tuning(secret.as_deref())?;
        let tune_token = tuning.as_ref().map(|tuning| tuning.token.clone());
        let options = ServerOptions {
            listen: match self.port {
                Some(port) => (IpAddr::from([0u16; 8]), port).into(),
                None => listen_address(&self.listen)?,
            },
            token: secret.clone(),
            limits,
            access,
            places: self.places(&granted, self.open),
            tuning,
            once: self.once,
        };
        let metrics_listener = self.metrics.map(metrics::listen).transpose()?;
        // Before the first thread starts, so that no thread is interrupted.
        let held = signal::hold();
        let iperf2 = iperf2::Options { port: self.iperf2_port, udp_reverse: self.iperf2_udp_reverse };
        let mut foreign: Vec<Box<dyn ForeignProtocol>> =
            vec![Box::new(Iperf3::new(logins)), Box::new(Iperf2::new(iperf2))];
        // Strangers must not keep out clients with a token.
        let apart = !(self.open || self.exclusive || self.once);
        let page = self.page.protocol(self.limits(&OPEN), apart.then(|| self.places_of_visitors()));
        foreign.extend(page.map_err(|e| exit::environment(format!("serve the page: {e}")))?);
        let server =
            Server::bind(options, foreign, |event| output::note(&describe(event))).map_err(refused)?;
        if let Some(listener) = metrics_listener {
            metrics::serve(listener, metrics::of_server(server.watcher()))?;
        }
        warn_of_short(secret.as_deref(), "token", "--token");
        warn_of_short(tune_token.as_deref(), "tune token", "--tune-token");
        introduce(server.address(), secret.as_deref());
        if let Some(token) = &tune_token {
            introduce_tuning(server.address(), token);
        }
        if self.page.is_on() {
            introduce_page(server.address());
        }
        for address in server.foreign_addresses() {
            output::note(&format!("bdp serve: listening on {address} for iperf2's clients, TCP and UDP"));
        }
        let stopper = server.stopper();
        thread::Builder::new()
            .name("bdp-signals".to_owned())
            .spawn(move || {
                let ending = held.wait();
                stopper.stop_by(ending.name());
                // A second one does not wait for an orderly end.
                held.wait().carry_out()
            })
            .map_err(|e| exit::environment(format!("start a thread: {e}; raise the limit 'ulimit -u'")))?;
        server.run().map_err(|e| exit::environment(e.to_string()))?;
        Ok(Exit::Done)
    }

    /// The given limits, or else those granted.
    fn limits(&self, granted: &Granted) -> Limits {
        Limits {
            duration: self.max_duration.unwrap_or(granted.limits.duration),
            streams: self.max_streams.unwrap_or(granted.limits.streams),
            rate: self.max_rate.or(granted.limits.rate),
        }
    }

    /// The places of clients who have this granted; `strangers`: without a token.
    fn places(&self, granted: &Granted, strangers: bool) -> PlaceLimits {
        let limits = self.limits(granted);
        let sessions = if self.exclusive { 1 } else { self.max_sessions.unwrap_or(granted.sessions) };
        // Clients without a token share half of the places.
        let share = if strangers { sessions.div_ceil(2) } else { sessions };
        PlaceLimits {
            sessions,
            sessions_per_address: self.max_sessions_per_address.unwrap_or(share),
            // Both directions at once need twice the streams.
            streams_per_address: self.max_streams_per_address.unwrap_or(2 * limits.streams),
            memory_bytes: self.max_memory.unwrap_or(granted.memory).as_bytes(),
            // A measurement of both directions, with the time around it.
            turn_ns: strangers.then(|| (limits.duration + limits.duration + AROUND).as_ns()),
        }
    }

    /// The places of visitors, apart from those of clients; each visit has its memory.
    fn places_of_visitors(&self) -> PlaceLimits {
        let places = self.places(&OPEN, true);
        let each = OPEN.memory.as_bytes() / u64::from(OPEN.sessions);
        let memory_bytes = match self.max_memory {
            Some(_) => places.memory_bytes,
            None => places.memory_bytes.max(each * u64::from(places.sessions)),
        };
        PlaceLimits { memory_bytes, ..places }
    }

    fn find_token(&self) -> anyhow::Result<Option<String>> {
        if self.open {
            return Ok(None);
        }
        match token::find(self.token.as_deref(), self.token_file.as_deref())? {
            Some(token) => Ok(Some(token)),
            None => new_token().map(Some),
        }
    }

    /// Options for clients to change settings of this host; `None` if they may not.
    fn find_tuning(&self, measuring: Option<&str>) -> anyhow::Result<Option<TuneOptions>> {
        if !self.allow_tune {
            return Ok(None);
        }
        let given = token::find_tune(self.tune_token.as_deref(), self.tune_token_file.as_deref())?;
        let token = match given {
            Some(token) if measuring == Some(&token) => {
                return Err(exit::usage(
                    "the tune token equals the token of --token, so every client could change settings; give another",
                ));
            }
            Some(token) => token,
            None if self.open => {
                return Err(exit::usage(
                    "--allow-tune with --open needs a tune token: --tune-token, --tune-token-file or BDP_TUNE_TOKEN",
                ));
            }
            None => new_token()?,
        };
        let places = places::places(self.journal.clone())?;
        Ok(Some(TuneOptions { token, places, guard: tune::guard_command() }))
    }
}

fn new_token() -> anyhow::Result<String> {
    let bytes: [u8; 12] = random::bytes().map_err(|e| exit::environment(e.to_string()))?;
    Ok(hex(&bytes))
}

/// Parses a duration limit that allows a measurement.
fn longest(text: &str) -> Result<Nanos, String> {
    match seconds(text)? {
        time if time < Nanos::millis(1) => {
            Err(format!("'{text}' permits no flow; give at least 1ms, for example 30s"))
        }
        time => Ok(time),
    }
}

/// Parses `PORT`, `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`.
fn listen_address(text: &str) -> anyhow::Result<SocketAddr> {
    let any = IpAddr::from([0u16; 8]);
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok((any, port).into());
    }
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok((address, PORT).into());
    }
    text.parse().or_else(|_| {
        // A name of this machine, or a link-local address with its device.
        let named = target::parse(text).ok();
        let found = named.and_then(|(host, port)| names::look_up(&host, port.unwrap_or(PORT)).ok());
        found.into_iter().flatten().next().with_context(|| text.to_owned()).map_err(|_| {
            exit::usage(format!(
                "--listen '{text}' is not an address: give 5201, 192.0.2.1:5201, [2001:db8::1]:5201 or an address without port"
            ))
        })
    })
}

fn refused(error: FlowError) -> anyhow::Error {
    let text = error.to_string();
    match &error {
        FlowError::Sys(e) if e.source.kind() == std::io::ErrorKind::AddrInUse => exit::environment(format!(
            "{text}; another server uses the port: stop it, or use another port, --listen 5202"
        )),
        FlowError::Sys(e) if e.source.kind() == std::io::ErrorKind::PermissionDenied => {
            exit::environment(format!("{text}; ports below 1024 need root: use another port, --listen 5201"))
        }
        FlowError::Sys(e) if e.source.kind() == std::io::ErrorKind::AddrNotAvailable => {
            exit::usage(format!("{text}; give an address of this machine ('ip address' lists them)"))
        }
        _ => exit::environment(text),
    }
}

/// Warns of a token that can be guessed: by trying, or from an observed session.
fn warn_of_short(token: Option<&str>, name: &str, option: &str) {
    let length = token.map_or(usize::MAX, |token| token.chars().count());
    if length < SHORTEST_TOKEN {
        let characters = if length == 1 { "1 character".to_owned() } else { format!("{length} characters") };
        output::note(&format!(
            "bdp serve: warning: the {name} has {characters}; fewer than {SHORTEST_TOKEN} can be guessed; omit {option} to get a random one"
        ));
    }
}

/// Prints the command for the other machine.
fn introduce(address: SocketAddr, token: Option<&str>) {
    let target = target_of(address);
    let secret = token.map_or(String::new(), |token| format!(" --token {token}"));
    let whom = if token.is_some() { "loopback needs no token" } else { "open to anyone, within limits" };
    output::note(&format!(
        "bdp serve: listening on {address}, TCP and UDP ({whom}); on the other machine run:"
    ));
    output::print(&format!("bdp measure {target}{secret}\n")).ok();
}

/// Prints the command that changes settings of this host from the other machine.
fn introduce_tuning(address: SocketAddr, token: &str) {
    output::note(
        "bdp serve: tuning is allowed: clients with the tune token may change TCP settings of this host; to do so, run there:",
    );
    let target = target_of(address);
    output::print(&format!("bdp tune apply PLAN.json --at {target} --tune-token {token}\n")).ok();
}

/// Prints the link for browsers.
fn introduce_page(address: SocketAddr) {
    output::note("bdp serve: anyone with a browser may test the path to this server, within limits, at:");
    let target = target_of(address);
    let port = if address.port() == PORT { format!(":{PORT}") } else { String::new() };
    let host = if target.contains("::") && !target.contains(']') { format!("[{target}]") } else { target };
    output::print(&format!("http://{host}{port}/\n")).ok();
}

/// Name of a server of this machine on the other one, with the port unless it is bdp's own.
pub fn target_of(address: SocketAddr) -> String {
    let own = match address {
        _ if address.ip().is_unspecified() => {
            let addresses = device::addresses().unwrap_or_default();
            reachable(&addresses, device::of_default_route().as_deref())
        }
        // For a link-local address the other machine must name its own device: usually it has the same name.
        SocketAddr::V6(v6) => Some((device::with_address(address.ip()).ok().flatten(), (*v6.ip()).into())),
        SocketAddr::V4(v4) => Some((None, (*v4.ip()).into())),
    };
    let host = own.map_or_else(device::host_name, |(device, ip)| match (device, ip) {
        (Some(device), IpAddr::V6(v6)) if v6.is_unicast_link_local() => format!("{ip}%{device}"),
        _ => ip.to_string(),
    });
    match (address.port(), host.contains(':')) {
        (PORT, _) => host,
        (port, false) => format!("{host}:{port}"),
        (port, true) => format!("[{host}]:{port}"),
    }
}

/// The most likely reachable one of this machine's addresses, each given with its device: the default route's
/// device before others, IPv4 before IPv6, global addresses before link-local ones.
fn reachable(
    addresses: &[(String, IpAddr)],
    default_device: Option<&str>,
) -> Option<(Option<String>, IpAddr)> {
    let rank = |(device, ip): &(String, IpAddr)| {
        let kind = match ip {
            _ if ip.is_loopback() || ip.is_unspecified() => return None,
            IpAddr::V4(v4) if v4.is_link_local() => 3,
            IpAddr::V4(_) => 0,
            IpAddr::V6(v6) if v6.is_unicast_link_local() => 4,
            IpAddr::V6(v6) if v6.is_unique_local() => 2,
            IpAddr::V6(_) => 1,
        };
        // A link-local address does not count, whatever its device.
        Some((kind >= 3, default_device != Some(device.as_str()), kind))
    };
    let ranked = addresses.iter().filter_map(|own| Some((rank(own)?, own)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, (device, ip))| (Some(device.clone()), *ip))
}

fn describe(event: &Event) -> String {
    let canonical = |peer: &SocketAddr| match peer.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, peer.port()),
        // With its device.
        IpAddr::V6(_) => *peer,
    };
    match event {
        Event::Began { session, peer, program } => {
            format!("session {session}: {} started, {program}", canonical(peer))
        }
        Event::Ended { session, peer, took, flows, why } => {
            let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            format!("session {session}: {} ended after {took}, {flows} flows{why}", canonical(peer))
        }
        Event::Tuned { session, peer, what } => {
            output::tame(&format!("session {session}: {} tune: {what}", canonical(peer)))
        }
        Event::TurnedAway { peer, why } => output::tame(&format!("turned away {}: {why}", canonical(peer))),
        Event::BeganMore { count, within } => format!("{count} more sessions started in the last {within}"),
        Event::LinesDropped { count } => {
            format!("{count} lines of this log were dropped: the reader was too slow")
        }
        Event::Ending { by } => format!("ended by {by}"),
        Event::TurnedAwayMore { count, within } => format!("turned away {count} more in the last {within}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_the_other_side_can_reach_is_shown() {
        let shown = |addresses: &[(&str, &str)], default: Option<&str>| {
            let own: Vec<_> = addresses.iter().map(|(d, a)| ((*d).to_owned(), a.parse().unwrap())).collect();
            reachable(&own, default).map(|(_, ip)| ip.to_string())
        };
        let machine = [
            ("lo", "127.0.0.1"),
            ("docker0", "172.17.0.1"),
            ("eth0", "192.0.2.7"),
            ("lo", "::1"),
            ("eth0", "2001:db8::7"),
            ("eth0", "fe80::7"),
        ];
        assert_eq!(shown(&machine, Some("eth0")).as_deref(), Some("192.0.2.7"));
        assert_eq!(shown(&machine, None).as_deref(), Some("172.17.0.1"));
        assert_eq!(shown(&machine[3..], Some("eth0")).as_deref(), Some("2001:db8::7"));
        assert_eq!(shown(&[machine[0], machine[5]], None).as_deref(), Some("fe80::7"));
        assert_eq!(shown(&[machine[1], machine[5]], Some("eth0")).as_deref(), Some("172.17.0.1"));
        assert_eq!(shown(&machine[..1], None), None, "then it is the machine's name");
    }

    #[test]
    fn addresses_to_listen_on_are_read() {
        for (text, address) in [
            ("5202", "[::]:5202"),
            ("192.0.2.1", "192.0.2.1:5201"),
            ("[2001:db8::1]:5203", "[2001:db8::1]:5203"),
        ] {
            assert_eq!(listen_address(text).unwrap(), address.parse().unwrap(), "{text}");
        }
        // The loopback device exists everywhere.
        let linked = listen_address("[fe80::1%lo]:5203").unwrap();
        assert!(matches!(linked, SocketAddr::V6(v6) if v6.scope_id() > 0 && v6.port() == 5203), "{linked}");
        assert!(listen_address("fe80::1%lo").is_ok());
    }
}
