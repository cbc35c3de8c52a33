//! The flags: those of iperf3 where it has them, with its meaning but for `-w`.

use std::path::PathBuf;

use bdp_engine::session::Credentials;
use bdp_engine::session::download::Url;
use bdp_model::expectation::Expectation;
use bdp_model::measurement::{MeasureRequest, PORT, PeerProtocol, USUAL_LENGTH, Way};
use bdp_model::scenario::Family;
use bdp_model::units::{ByteCount, Nanos};
use bdp_run::measure::MeasurePlan;
use bdp_wire::{iperf2, iperf3};

use super::login::LoginArgs;
use super::payload::PayloadArgs;
use super::ssh::SshArgs;
use super::{SocketArgs, UdpArgs, target};
use crate::store::StoreArgs;
use crate::{exit, token};

/// Where `-n` alone or Ctrl-C ends a direction, it ends here at the latest.
const LONGEST: Nanos = Nanos::secs(3600);

/// Arguments of `bdp measure`.
#[derive(clap::Args)]
#[command(after_help = "\
Measures 2 s idle, then 10 s to HOST, then 10 s from it, each with a probe flow beside it. Flags that iperf3 has mean \
the same here, but for -w: here it is the window on the wire, and --sockbuf is what iperf3 calls -w.

For CI: --expect 'to.goodput>=900M' --expect 'rtt.idle.p95<=30ms' --baseline RUN. Figures: to.goodput, \
to.retransmits, to.window, to.rpm, to.rtt.loaded.p95 (min, p50, p95, p99, max), of -u to.loss and to.jitter, the same of \
from, and rtt.idle.p95; with --runs N their medians. Exit 1 when missed.

Ctrl-C or SIGTERM ends the flow that runs, and what was measured until then is printed and stored; the exit code is 130 \
or 143. A second one ends it at once.")]
pub struct MeasureArgs {
    /// The machine on which 'bdp serve' runs: a name or an address, [::1]:5201 where IPv6 has a port; or the URL of a
    /// large file, https://..., whose download is measured
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "ssh")]
    target: Option<String>,

    #[command(flatten)]
    pub(super) ssh: SshArgs,

    /// The server's port [default: 5201]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// How long each direction is measured, in seconds or with a unit; 0 is until Ctrl-C, an hour at most [default: 10]
    #[arg(short = 't', long, value_name = "TIME", value_parser = seconds)]
    time: Option<Nanos>,

    /// End each direction after so many bytes instead
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "time")]
    bytes: Option<ByteCount>,

    /// Connections of each direction
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    parallel: u32,

    /// Window on the wire of each connection; iperf3's -w is --sockbuf [default: autotuned]
    #[arg(short = 'w', long, value_name = "SIZE", conflicts_with = "sockbuf")]
    window: Option<ByteCount>,

    /// Bytes of one write [default: 128K]; with -u of a datagram's payload [default: what the path's MTU holds]
    #[arg(short = 'l', long, value_name = "SIZE")]
    length: Option<ByteCount>,

    #[command(flatten)]
    pub(super) udp: UdpArgs,

    /// Maximum segment size (TCP_MAXSEG)
    #[arg(short = 'M', long = "set-mss", value_name = "BYTES", value_parser = clap::value_parser!(u32).range(88..=32767))]
    mss: Option<u32>,

    /// Congestion control of whichever end sends
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,

    /// Only from HOST to here
    #[arg(short = 'R', long, conflicts_with_all = ["forward", "bidir"])]
    reverse: bool,

    /// Only from here to HOST
    #[arg(long, conflicts_with = "bidir")]
    forward: bool,

    /// Both directions at once
    #[arg(long)]
    bidir: bool,

    /// Leave out so much of the beginning, which is added to the time
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0", value_parser = seconds)]
    omit: Nanos,

    /// From one sample to the next [default: 100ms]; 0 has --json-stream and --format iperf3-json tell of none on the way
    #[arg(short = 'i', long, value_name = "TIME", value_parser = seconds)]
    interval: Option<Nanos>,

    /// Only IPv4
    #[arg(short = '4', long = "version4", conflicts_with = "version6")]
    version4: bool,

    /// Only IPv6
    #[arg(short = '6', long = "version6")]
    version6: bool,

    #[command(flatten)]
    socket: SocketArgs,

    #[command(flatten)]
    payload: PayloadArgs,

    /// The server is one of iperf3; left out, one that answers to nothing else is recognised
    #[arg(long)]
    iperf3: bool,

    #[command(flatten)]
    login: LoginArgs,

    /// With --iperf3, print what the server prints of its tests, too
    #[arg(long, requires = "iperf3")]
    get_server_output: bool,

    /// How long the idle round trip is measured first
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = seconds)]
    idle: Nanos,

    /// The server is one of iperf2, on port 5001 where no other is given
    #[arg(long, conflicts_with_all = ["token", "token_file", "ssh", "iperf3"])]
    iperf2: bool,

    /// The token that the server printed; better in BDP_TOKEN or --token-file, as others see command lines
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,

    /// A file whose first line is the token
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,

    /// Call the run so; 'bdp show' and --baseline then find it by that
    #[arg(long, value_name = "TEXT", value_parser = label)]
    label: Option<String>,

    /// Measure so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) runs: u32,

    /// Compare with this run, by its id or label, or a file that --json wrote; exit 1 where goodput is less beyond the noise, which takes 6 runs at least of each
    #[arg(long, value_name = "RUN")]
    pub(super) baseline: Option<String>,

    /// What must come out, as to.goodput>=900M; may be given several times
    #[arg(long, value_name = "EXPR")]
    expect: Vec<String>,

    /// Print JSON (docs/measurement.md)
    #[arg(long)]
    pub(super) json: bool,

    /// Print a JSON object a line while it goes on, and the measurement at its end (docs/measurement-stream.md)
    #[arg(long, conflicts_with = "json")]
    pub(super) json_stream: bool,

    /// Print CSV: a line for each run and direction (docs/measurement.md)
    #[arg(long, conflicts_with_all = ["json", "json_stream"])]
    pub(super) csv: bool,

    /// Print what 'iperf3 -J' prints, for programs that read that; one direction, to HOST where -R or --bidir does not
    /// say otherwise, in intervals of 1 s where -i does not (docs/interop.md)
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with_all = ["json", "json_stream", "csv", "runs"])]
    format: Option<Format>,

    /// Write an HTML page about it to this file, too
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<std::path::PathBuf>,

    /// Write the figures to this file, too, for the textfile collector of Prometheus ('bdp help metrics')
    #[arg(long, value_name = "FILE")]
    pub(super) prometheus: Option<PathBuf>,

    #[command(flatten)]
    pub(super) store: StoreArgs,
}

/// Formats of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The JSON document of iperf3.
    Iperf3Json,
}

/// Between two samples, where nothing else is said.
const SAMPLING: Nanos = Nanos::millis(100);

impl MeasureArgs {
    /// Whether the document of iperf3 is asked for.
    pub(super) fn is_iperf3_json(&self) -> bool {
        self.format == Some(Format::Iperf3Json)
    }

    /// Whether one direction follows the other.
    fn measures_in_turn(&self) -> bool {
        let is_url = self.target.as_deref().is_some_and(|target| target.contains("://"));
        !(self.forward || self.reverse || self.bidir || self.is_iperf3_json() || is_url)
    }

    /// Whether nothing is to be told while it goes on.
    pub(super) fn tells_no_intervals(&self) -> bool {
        self.interval == Some(Nanos::ZERO)
    }

    /// Length of the intervals in that; zero is one for all.
    pub(super) fn interval_of_iperf3(&self) -> Nanos {
        self.interval.unwrap_or(Nanos::secs(1))
    }

    /// The address and the port for the data of `--ssh`, as far as they were given.
    pub(super) fn data_target(&self) -> anyhow::Result<(Option<String>, Option<u16>)> {
        // Without ssh the target may be a URL, which is no HOST:PORT.
        if self.ssh.ssh.is_none() {
            return Ok((None, None));
        }
        let target = self.target.as_deref().map(target::parse).transpose().map_err(exit::usage)?;
        let port = target.as_ref().and_then(|(_, port)| *port).or(self.port);
        Ok((target.map(|(host, _)| host), port))
    }

    /// What is to be measured.
    pub(super) fn plan(&self) -> anyhow::Result<MeasurePlan> {
        Ok(MeasurePlan {
            request: self.request()?,
            credentials: Credentials {
                token: token::find(self.token.as_deref(), self.token_file.as_deref())?,
                login: self.login.find()?,
            },
            label: self.label.clone(),
            runs: self.runs,
        })
    }

    /// The URL, where one is to be downloaded.
    fn url(&self) -> anyhow::Result<Option<Url>> {
        let Some(text) = self.target.as_deref().filter(|target| target.contains("://")) else {
            return Ok(None);
        };
        let other_end = [
            ("--forward", self.forward),
            ("--bidir", self.bidir),
            ("--ssh", self.ssh.ssh.is_some()),
            ("--port", self.port.is_some()),
            ("--user", self.login.is_asked()),
            ("-C", self.congestion.is_some()),
            ("-b", self.udp.pacing_bps().is_some()),
            ("-l", self.length.is_some()),
            ("--token", self.token.is_some()),
            ("--token-file", self.token_file.is_some()),
        ];
        if let Some((flag, _)) = other_end.iter().find(|(_, given)| *given) {
            return Err(exit::usage(format!(
                "{flag} needs a bdp at the other end, and {text} is a download; leave it out"
            )));
        }
        let others = [("--iperf3", self.iperf3), ("--iperf2", self.iperf2)];
        let of_senders = self.payload.given().into_iter().chain(self.socket.of_senders());
        if let Some((flag, _)) = others.into_iter().chain(of_senders).find(|(_, given)| *given) {
            return Err(exit::usage(format!(
                "{flag} is nothing that a download has, and {text} is one; leave it out"
            )));
        }
        Url::parse(text).map(Some).map_err(exit::usage)
    }

    fn request(&self) -> anyhow::Result<MeasureRequest> {
        let url = self.url()?;
        let (host, port) = match (&self.target, &self.ssh.ssh) {
            _ if url.is_some() => {
                url.as_ref().map_or_else(Default::default, |u| (u.host.clone(), Some(u.port)))
            }
            (Some(target), _) => target::parse(target).map_err(exit::usage)?,
            // Where it leads is for ssh to say.
            (None, destination) => (destination.clone().unwrap_or_default(), None),
        };
        if let (Some(one), Some(other)) = (port, self.port)
            && one != other
        {
            return Err(exit::usage(format!("two ports were given, {one} and {other}; leave one out")));
        }
        let time = match (self.time, self.bytes) {
            (Some(Nanos::ZERO), None) if self.measures_in_turn() => {
                return Err(exit::usage(
                    "-t 0, until Ctrl-C, never comes to the second direction; add --forward, -R or --bidir, or give a time",
                ));
            }
            (Some(Nanos::ZERO), _) | (None, Some(_)) => LONGEST,
            (Some(time), _) => time,
            (None, None) => Nanos::secs(10),
        };
        if self.bytes.is_some_and(|b| b.as_bytes() == 0) || self.length.is_some_and(|l| l.as_bytes() == 0) {
            return Err(exit::usage("a size of 0 sends nothing; -n and -l take 1 byte or more"));
        }
        let interval = self.interval.filter(|&interval| interval > Nanos::ZERO).unwrap_or(SAMPLING);
        if interval < Nanos::millis(10) || interval > Nanos::secs(60) {
            return Err(exit::usage(format!("-i {interval} is not between 10 ms and 60 s")));
        }
        let request = MeasureRequest {
            port: port.or(self.port).unwrap_or(if self.iperf2 { iperf2::PORT } else { PORT }),
            peer: match (self.iperf3 || self.login.is_asked(), self.iperf2) {
                (true, _) => Some(PeerProtocol::Iperf3),
                (_, true) => Some(PeerProtocol::Iperf2),
                _ => None,
            },
            family: match (self.version4, self.version6) {
                (true, _) => Some(Family::Ipv4),
                (_, true) => Some(Family::Ipv6),
                _ => None,
            },
            directions: match (self.forward, self.reverse || url.is_some()) {
                (true, _) => vec![Way::To],
                (_, true) => vec![Way::From],
                _ if self.is_iperf3_json() && !self.bidir => vec![Way::To],
                _ => vec![Way::To, Way::From],
            },
            bidirectional: self.bidir,
            streams: self.parallel,
            duration: time + self.omit,
            bytes: self.bytes,
            omit: self.omit,
            // Its intervals are made of whole samples.
            interval: match interval.as_ns() / SAMPLING.as_ns() {
                pieces if pieces > 0 && self.is_iperf3_json() => Nanos(interval.as_ns() / pieces),
                _ => interval,
            },
            idle: self.idle,
            length: self.length.filter(|_| !self.udp.is_asked()).unwrap_or(USUAL_LENGTH),
            udp: self.udp.request(self.length, self.least_datagram_bytes(), &self.of_tcp())?,
            pacing_bps: self.udp.pacing_bps(),
            window: self.window,
            mss: self.mss,
            congestion: self.congestion.clone(),
            ssh: self.ssh.request(),
            url: url.as_ref().map(ToString::to_string),
            server_output: self.get_server_output,
            ..MeasureRequest::to(host)
        };
        if self.is_iperf3_json() && request.udp.as_ref().is_some_and(|udp| udp.search.is_some()) {
            return Err(exit::usage(
                "-b auto is a search of many trials, which iperf3's document has no place for",
            ));
        }
        self.payload.apply(self.socket.apply(request)?)
    }

    /// Payload of the shortest datagram that the protocol of the server has room in for what it says of it.
    fn least_datagram_bytes(&self) -> u32 {
        let bytes = match (self.iperf3 || self.login.is_asked(), self.iperf2) {
            (true, _) => iperf3::datagram::header_bytes(false),
            (_, true) => iperf2::STAMP_BYTES,
            _ => bdp_wire::datagram::HEADER_BYTES,
        };
        bytes as u32
    }

    /// Flags that mean something of connections alone, and whether they were given.
    fn of_tcp(&self) -> [(bool, &'static str); 7] {
        let is_url = self.target.as_deref().is_some_and(|target| target.contains("://"));
        let [zerocopy, check_payload] = self.payload.of_tcp();
        [
            (self.window.is_some(), "-w"),
            (self.mss.is_some(), "-M"),
            (self.congestion.is_some(), "-C"),
            zerocopy,
            check_payload,
            (self.ssh.request().is_some_and(|ssh| ssh.through), "--through-ssh"),
            (is_url, "a URL"),
        ]
    }

    /// What must come out, of directions that are measured.
    pub(super) fn expectations(&self, request: &MeasureRequest) -> anyhow::Result<Vec<Expectation>> {
        let read = |text: &String| {
            let expectation: Expectation = text
                .parse()
                .map_err(|error: bdp_model::expectation::ExpectationError| exit::usage(error.to_string()))?;
            match expectation.figure.way() {
                Some(way) if !request.directions.contains(&way) => Err(exit::usage(format!(
                    "expectation '{expectation}' is of a direction that is not measured; leave out {}",
                    if self.forward { "--forward" } else { "-R" }
                ))),
                _ => Ok(expectation),
            }
        };
        self.expect.iter().map(read).collect()
    }
}

/// A time with its unit, or a number of seconds.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(Nanos::from_secs_f64(seconds)),
        Ok(_) => Err(format!("'{text}' is not between 0 and 86400 seconds")),
        Err(_) => match text.parse::<Nanos>() {
            Ok(time) if time <= Nanos::secs(86_400) => Ok(time),
            Ok(_) => Err(format!("'{text}' is more than a day")),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn label(text: &str) -> Result<String, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.chars().count() > 100 || trimmed.chars().any(char::is_control) {
        return Err("a label has 1 to 100 printable characters".to_owned());
    }
    Ok(trimmed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        assert_eq!(seconds("10"), Ok(Nanos::secs(10)));
        assert_eq!(seconds("0.5"), Ok(Nanos::millis(500)));
        assert_eq!(seconds("250ms"), Ok(Nanos::millis(250)));
        for wrong in ["-1", "86401", "2d", "nan", "inf", "25h", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
