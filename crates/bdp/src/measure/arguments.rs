//! The flags: those of iperf3 if they exist, with its meaning except for `-w`.

use std::path::PathBuf;

use bdp_interop::download::Url;
use bdp_model::flow::window::WindowBytes;
use bdp_model::flow::{FlowSpec, USUAL_LENGTH};
use bdp_model::measurement::expectation::Expectation;
use bdp_model::measurement::figure::Figure;
use bdp_model::measurement::options::{self, NotDownload};
use bdp_model::measurement::responsiveness::{CONNECTIONS_AT_ONCE, USUAL_TIME};
use bdp_model::measurement::{Access, Direction, MeasureRequest, OrderedRates, PORT, PeerProtocol};
use bdp_model::units::{ByteCount, Nanos, Rate};
use bdp_report::{RateUnit, Style};
use bdp_run::measure::MeasurePlan;
use bdp_run::measure::session::Credentials;
use bdp_wire::session::MOST_SAMPLES;
use bdp_wire::{iperf2, iperf3};
use clap::ArgAction;

use super::baseline;
use super::lines::Layout;
use super::login::LoginArgs;
use super::payload::PayloadArgs;
use super::socket::SocketArgs;
use super::ssh::SshArgs;
use super::target;
use super::udp::UdpArgs;
use crate::arguments::{blocks, range, seconds};
use crate::labels::LabelArgs;
use crate::report::PageArgs;
use crate::store::StoreArgs;
use crate::{absurd, command_line, exit, help, output, token};

/// Longest direction that only `-n` or Ctrl-C ends.
const LONGEST: Nanos = Nanos::secs(3600);

/// Arguments of `bdp measure`.
#[derive(clap::Args)]
#[command(disable_version_flag = true, after_help = EXAMPLES, after_long_help = concat_help())]
pub struct MeasureArgs {
    /// Host that runs 'bdp serve', [::1]:5201 for IPv6 with a port; or the URL of a large file to download
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "ssh")]
    target: Option<String>,

    /// Time of each direction; 0 is until Ctrl-C, an hour at most [default: 10s]
    #[arg(short = 't', long, value_name = "TIME", value_parser = seconds, help_heading = help::TEST)]
    time: Option<Nanos>,

    /// End each direction after this many bytes instead, as 1G
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "time", help_heading = help::TEST, hide_short_help = true)]
    bytes: Option<ByteCount>,

    /// End each direction after this many writes of -l (of datagrams with -u), as 10K
    #[arg(short = 'k', long, value_name = "N", value_parser = blocks, conflicts_with_all = ["time", "bytes"], help_heading = help::TEST, hide_short_help = true)]
    blockcount: Option<ByteCount>,

    /// Only from HOST to here
    #[arg(short = 'R', long, conflicts_with_all = ["forward", "bidir"], help_heading = help::TEST)]
    reverse: bool,

    /// Only from here to HOST
    #[arg(long, conflicts_with = "bidir", help_heading = help::TEST, hide_short_help = true)]
    forward: bool,

    /// Both directions at once
    #[arg(long, help_heading = help::TEST)]
    bidir: bool,

    /// Skip the first TIME; extends the test by it
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0", value_parser = seconds, help_heading = help::TEST, hide_short_help = true)]
    omit: Nanos,

    /// Time of the idle round trips before the first direction
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = seconds, help_heading = help::TEST, hide_short_help = true)]
    idle: Nanos,

    /// Responsiveness (RPM): add connections until goodput and latency are steady, -t at most [default: 20s]
    #[arg(long, visible_alias = "rpm", conflicts_with_all = ["bytes", "blockcount", "bidir", "omit", "parallel", "udp", "iperf3", "iperf2", "format"], help_heading = help::TEST, hide_short_help = true)]
    responsiveness: bool,

    /// End each direction as soon as its goodput no longer changes, -t at most; says what the whole would come to
    #[arg(long, value_name = "settled", value_parser = ["settled"], conflicts_with_all = ["bytes", "blockcount", "responsiveness", "udp", "omit", "format"], help_heading = help::TEST, hide_short_help = true)]
    until: Option<String>,

    /// Run no experiments: short flows after the test, 10 s at most, if it does not show what limits a direction
    #[arg(long, help_heading = help::TEST, hide_short_help = true)]
    no_experiments: bool,

    /// Number of measurements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = help::TEST, hide_short_help = true)]
    pub(super) runs: u32,

    /// Compare with this stored run, or the newest to HOST; exit 1 if goodput regressed (needs 6 runs of each)
    #[arg(long, value_name = "RUN", num_args = 0..=1, help_heading = help::TEST, hide_short_help = true)]
    pub(super) baseline: Option<Option<String>>,

    /// Compare with the rate that was bought, as 500M, or 500M/100M down and up
    #[arg(long, value_name = "DOWN[/UP]", help_heading = help::TEST, hide_short_help = true)]
    ordered: Option<OrderedRates>,

    /// Exit 1 unless this holds, as to.goodput>=900M; repeatable
    #[arg(long, value_name = "EXPR", help_heading = help::TEST, hide_short_help = true)]
    expect: Vec<String>,

    /// Exit 6 if --expect or --baseline is unknown or inconclusive, rather than missed or met
    #[arg(long, help_heading = help::TEST, hide_short_help = true)]
    pub(super) strict: bool,

    /// Connections of each direction
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(range("streams")), help_heading = help::TRAFFIC)]
    parallel: u32,

    /// Bytes of one write [default: 128K]; with -u payload of a datagram [default: what the path MTU holds]
    #[arg(short = 'l', long, value_name = "SIZE", help_heading = help::TRAFFIC, hide_short_help = true)]
    length: Option<ByteCount>,

    #[command(flatten)]
    pub(super) udp: UdpArgs,

    #[command(flatten)]
    payload: PayloadArgs,

    /// Window on the wire of each connection, as 256K; iperf3's -w is --sockbuf [default: autotuned]
    #[arg(short = 'w', long, value_name = "SIZE", conflicts_with = "sockbuf", help_heading = help::WINDOW)]
    window: Option<WindowBytes>,

    /// Maximum segment size (TCP_MAXSEG)
    #[arg(short = 'M', long = "set-mss", value_name = "BYTES", value_parser = clap::value_parser!(u32).range(range("mss")), help_heading = help::WINDOW, hide_short_help = true)]
    mss: Option<u32>,

    /// Congestion control of the sending end, as bbr
    #[arg(short = 'C', long, value_name = "NAME", help_heading = help::WINDOW, hide_short_help = true)]
    congestion: Option<String>,

    #[command(flatten)]
    socket: SocketArgs,

    /// Port of the server [default: 5201]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = help::ADDRESS, hide_short_help = true)]
    port: Option<u16>,

    /// Only IPv4
    #[arg(short = '4', long = "version4", conflicts_with = "version6", help_heading = help::ADDRESS, hide_short_help = true)]
    version4: bool,

    /// Only IPv6
    #[arg(short = '6', long = "version6", help_heading = help::ADDRESS, hide_short_help = true)]
    version6: bool,

    /// Print a line for each interval of this length, as -i 1; below 1 s it sets the sampling too; 0 prints none
    #[arg(short = 'i', long, value_name = "TIME", value_parser = seconds, help_heading = help::OUTPUT)]
    interval: Option<Nanos>,

    /// Unit of the bitrates printed: k, m, g, t for bits, K, M, G, T for bytes
    #[arg(short = 'f', long, value_name = "UNIT", value_parser = rate_unit, help_heading = help::OUTPUT, hide_short_help = true)]
    units: Option<RateUnit>,

    /// Print the details too: evidence, hosts, windows, delays
    #[arg(short = 'v', long, help_heading = help::OUTPUT)]
    details: bool,

    /// The details, with a row for each stream, however many
    #[arg(short = 'V', long, help_heading = help::OUTPUT, hide_short_help = true)]
    verbose: bool,

    /// Print JSON ('bdp help measurement')
    #[arg(short = 'J', long, help_heading = help::OUTPUT)]
    pub(super) json: bool,

    /// Print a JSON object a line while the test runs, and the measurement at its end ('bdp help measurement-stream')
    #[arg(long, conflicts_with = "json", help_heading = help::OUTPUT, hide_short_help = true)]
    pub(super) json_stream: bool,

    /// Lines are flushed always: iperf3's option, taken for its scripts
    #[arg(long, hide = true)]
    forceflush: bool,

    /// Print CSV: a line for each run and direction ('bdp help measurement')
    #[arg(long, conflicts_with_all = ["json", "json_stream"], help_heading = help::OUTPUT, hide_short_help = true)]
    pub(super) csv: bool,

    /// Print what 'iperf3 -J' prints: one direction, intervals of 1 s ('bdp help interop')
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with_all = ["json", "json_stream", "csv", "runs"], help_heading = help::OUTPUT, hide_short_help = true)]
    format: Option<Format>,

    #[command(flatten)]
    pub(super) page: PageArgs,

    /// Capture the packets of the test to this file (pcapng), and explain them as 'bdp pcap' does; takes root or CAP_NET_RAW
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT, hide_short_help = true)]
    pub(super) capture: Option<PathBuf>,

    /// Write the figures to this file for Prometheus' textfile collector ('bdp help metrics')
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT, hide_short_help = true)]
    pub(super) prometheus: Option<PathBuf>,

    #[command(flatten)]
    pub(super) labels: LabelArgs,

    #[command(flatten)]
    pub(super) store: StoreArgs,

    /// Print the version
    #[arg(long, action = ArgAction::Version, help_heading = help::OUTPUT, hide_short_help = true)]
    version: Option<bool>,

    /// Token that the server printed; safer in BDP_TOKEN or --token-file, as others see command lines
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file", help_heading = help::ACCESS)]
    token: Option<String>,

    /// File whose first line is the token
    #[arg(long, value_name = "PATH", help_heading = help::ACCESS, hide_short_help = true)]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) ssh: SshArgs,

    #[command(flatten)]
    login: LoginArgs,

    /// Measure to an iperf3 server; recognised by itself after a wait
    #[arg(long, help_heading = help::INTEROP)]
    iperf3: bool,

    /// With --iperf3, print the server's own output, too
    #[arg(long, requires = "iperf3", help_heading = help::INTEROP, hide_short_help = true)]
    get_server_output: bool,

    /// Measure to an iperf2 server [default port: 5001]
    #[arg(long, conflicts_with_all = ["token", "token_file", "ssh", "iperf3"], help_heading = help::INTEROP, hide_short_help = true)]
    iperf2: bool,
}

/// The most common commands.
const EXAMPLES: &str = "\
Examples:
  bdp measure ams1                         both directions, 10 s each
  bdp measure ams1 -R -P 4 -i 1            four streams, a line a second
  bdp measure ams1 -w 256K                 with this window on the wire
  bdp measure ams1 -u -b 100M              UDP at 100 Mbit/s
  bdp measure ams1 --responsiveness        working latency, as RPM
  bdp measure ams1 --json > ams1.json
  bdp measure --ssh user@ams1              no server needed there";

/// Builds the rest of the help.
fn concat_help() -> String {
    format!(
        "{EXAMPLES}
  bdp measure ams1 --runs 6 --baseline 7f3a --expect 'to.goodput>=900M' --expect 'rtt.idle.p95<=30ms'

Measures 2 s idle, then 10 s to HOST, then 10 s from it, each with a probe flow beside it. Flags of iperf3 mean the same \
here, but for -w: here it is the window on the wire.

Figures of --expect: to.goodput, to.loss, to.retransmits, to.retransmits.ratio, to.window, to.rpm, to.rtt.loaded.p95 (min, \
p50, p95, p99, max), with -u to.jitter, with --ordered to.of_ordered, the same of from, and rtt.idle.p95; with --runs N \
their medians. With -u -b RATE what is lost or delayed under less than RATE is missed.

Ctrl-C or SIGTERM ends the flow that runs; what was measured is printed and stored, and the exit code is 130 or 143. A \
second one ends bdp at once."
    )
}

/// Formats of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The JSON document of iperf3.
    Iperf3Json,
}

/// Default sampling interval.
const SAMPLING: Nanos = Nanos::millis(100);
/// Shortest sampling interval.
const LEAST_SAMPLING: Nanos = Nanos::millis(10);

impl MeasureArgs {
    /// Whether iperf3's document is requested.
    pub(super) fn is_iperf3_json(&self) -> bool {
        self.format == Some(Format::Iperf3Json)
    }

    /// Whether one direction follows the other.
    fn measures_in_turn(&self) -> bool {
        let is_url = self.target.as_deref().is_some_and(|target| target.contains("://"));
        !(self.forward || self.reverse || self.bidir || self.is_iperf3_json() || is_url)
    }

    /// Whether nothing is printed during the measurement.
    pub(super) fn prints_no_intervals(&self) -> bool {
        self.interval == Some(Nanos::ZERO)
    }

    /// Layout of the result.
    pub(super) fn style(&self) -> Style {
        Style {
            rate_unit: self.units,
            every_stream: self.verbose,
            details: self.details || self.verbose,
            ..output::style()
        }
    }

    /// Layout of the interval lines; `None` if none are requested, or in another format.
    pub(super) fn interval_layout(&self) -> Option<Layout> {
        let length = self.interval.filter(|&length| length > Nanos::ZERO)?;
        let is_text = !(self.json || self.json_stream || self.csv || self.format.is_some());
        is_text.then_some(Layout { length, unit: self.units, every_stream: self.verbose })
    }

    /// Interval length in iperf3's document; zero is a single interval.
    pub(super) fn interval_of_iperf3(&self) -> Nanos {
        self.interval.unwrap_or(Nanos::secs(1))
    }

    /// Address and port for the data of `--ssh`, if given.
    fn data_target(&self) -> anyhow::Result<(Option<String>, Option<u16>)> {
        // Without ssh the target may be a URL, which is no HOST:PORT.
        if self.ssh.ssh.is_none() {
            return Ok((None, None));
        }
        let target = self.target.as_deref().map(target::parse).transpose().map_err(exit::usage)?;
        let port = target.as_ref().and_then(|(_, port)| *port).or(self.port);
        Ok((target.map(|(host, _)| host), port))
    }

    /// Builds the plan of the measurement, without a baseline.
    pub fn plan(&self) -> anyhow::Result<MeasurePlan> {
        absurd::note_rate("-b", self.udp.rate());
        let ordered = self.ordered.map(|ordered| ordered.to_bps.min(ordered.from_bps));
        absurd::note_rate("--ordered", ordered.map(Rate::bps));
        let request = self.request()?;
        let expectations = self.expectations(&request)?;
        let (label, labels) = self.labels.read()?;
        Ok(MeasurePlan {
            request,
            credentials: Credentials {
                token: token::find(self.token.as_deref(), self.token_file.as_deref())?,
                login: self.login.find()?,
            },
            label,
            labels,
            runs: self.runs,
            flood: self.udp.may_flood(),
            expectations,
            baseline: None,
            command: command_line::typed(),
        })
    }

    /// Has the plan compare with the requested baseline, a run of this store; returns how they differ in options, if
    /// they do.
    pub fn compare_with(&self, plan: &mut MeasurePlan, store: &StoreArgs) -> anyhow::Result<Option<String>> {
        let Some(run) = &self.baseline else { return Ok(None) };
        let baseline = baseline::load(run.as_deref(), store, &plan.request)?;
        let unlike = baseline::unlike(&baseline, &plan.request);
        plan.baseline = Some(baseline);
        Ok(unlike)
    }

    /// The URL, if one is to be downloaded.
    fn url(&self) -> anyhow::Result<Option<Url>> {
        let Some(text) = self.target.as_deref().filter(|target| target.contains("://")) else {
            return Ok(None);
        };
        // Options that a download does not support.
        let of_bdp = [
            ("--port", self.port.is_some()),
            ("--user", self.login.is_asked()),
            ("--token", self.token.is_some()),
            ("--token-file", self.token_file.is_some()),
        ];
        if let Some((flag, _)) = of_bdp.iter().find(|(_, given)| *given) {
            return Err(not_for_downloads(flag, NotDownload::NeedsBdp, text));
        }
        Url::parse(text).map(Some).map_err(exit::usage)
    }

    /// Bytes that end a direction: those given, or those of the given number of writes or datagrams.
    fn bytes(&self) -> anyhow::Result<Option<ByteCount>> {
        let Some(blocks) = self.blockcount else { return Ok(self.bytes) };
        if self.udp.is_asked() && self.length.is_none() {
            return Err(exit::usage("-k counts datagrams with -u: give their payload too, as -l 1400"));
        }
        let bytes = blocks.as_bytes().checked_mul(self.length.unwrap_or(USUAL_LENGTH).as_bytes());
        let bytes =
            bytes.ok_or_else(|| exit::usage(format!("-k {} is too many blocks", blocks.as_bytes())))?;
        Ok(Some(ByteCount::bytes(bytes)))
    }

    fn request(&self) -> anyhow::Result<MeasureRequest> {
        let url = self.url()?;
        let (host, port) = match (&self.target, &self.ssh.ssh) {
            _ if url.is_some() => {
                url.as_ref().map_or_else(Default::default, |u| (u.host.clone(), Some(u.port)))
            }
            (Some(target), _) => target::with_port(target, self.port)?,
            // ssh resolves the destination.
            (None, destination) => (destination.clone().unwrap_or_default(), None),
        };
        let bytes = self.bytes()?;
        let time = self.time(bytes)?;
        if bytes.is_some_and(|b| b.as_bytes() == 0) || self.length.is_some_and(|l| l.as_bytes() == 0) {
            return Err(exit::usage("a size of 0 sends nothing; -n, -k and -l take 1 or more"));
        }
        let asked = self.interval.filter(|&interval| interval > Nanos::ZERO);
        let interval = asked.unwrap_or(SAMPLING);
        if interval < LEAST_SAMPLING || interval > Nanos::secs(60) {
            return Err(exit::usage(format!("-i {interval} is not between 10 ms and 60 s")));
        }
        let request = MeasureRequest {
            port: port.or(self.port).unwrap_or(if self.iperf2 { iperf2::PORT } else { PORT }),
            peer: match (self.iperf3 || self.login.is_asked(), self.iperf2) {
                (true, _) => Some(PeerProtocol::Iperf3),
                (_, true) => Some(PeerProtocol::Iperf2),
                _ => None,
            },
            family: target::family(self.version4, self.version6),
            directions: match (self.forward, self.reverse || url.is_some()) {
                (true, _) => vec![Direction::To],
                (_, true) => vec![Direction::From],
                _ if self.is_iperf3_json() && !self.bidir => vec![Direction::To],
                _ => vec![Direction::To, Direction::From],
            },
            bidirectional: self.bidir,
            idle: self.idle,
            spec: FlowSpec {
                streams: if self.responsiveness { CONNECTIONS_AT_ONCE } else { self.parallel },
                duration: time + self.omit,
                bytes,
                omit: self.omit,
                // Its intervals consist of whole samples.
                interval: asked
                    .filter(|&asked| self.samples_are_pieces(time, asked))
                    .map_or(interval, piece_of),
                length: self.length.filter(|_| !self.udp.is_asked()).unwrap_or(USUAL_LENGTH),
                udp: self.udp.request(self.length, self.least_datagram_bytes())?,
                pacing_bps: self.udp.pacing_bps(),
                window: self.window,
                mss: self.mss,
                congestion: self.congestion.clone(),
                ..FlowSpec::default()
            },
            ssh: self.ssh.request(self.data_target()?),
            url: url.as_ref().map(ToString::to_string),
            responsiveness: self.responsiveness,
            server_output: self.get_server_output,
            until_settled: self.until.is_some(),
            // Repeated runs compare figures; a program that reads iperf3's document expects one test.
            no_experiments: self.no_experiments || self.runs > 1 || self.is_iperf3_json(),
            ordered: self.ordered,
            access: self.access(),
            ..MeasureRequest::to(host)
        };
        if self.is_iperf3_json() && request.spec.udp.as_ref().is_some_and(|udp| udp.search.is_some()) {
            return Err(exit::usage(
                "-b auto is a search of many trials, which iperf3's JSON cannot hold; use --json",
            ));
        }
        let request = self.payload.apply(self.socket.apply(request)?)?;
        check_options(&request)?;
        Ok(request)
    }

    /// How long each direction is measured, after the omitted time.
    fn time(&self, bytes: Option<ByteCount>) -> anyhow::Result<Nanos> {
        Ok(match (self.time, bytes) {
            (Some(Nanos::ZERO), None) if self.measures_in_turn() => {
                return Err(exit::usage(
                    "-t 0 runs until Ctrl-C and never reaches the second direction; add --forward, -R or --bidir, or give a time",
                ));
            }
            (Some(Nanos::ZERO), _) | (None, Some(_)) => LONGEST,
            (Some(time), _) => time,
            (None, None) if self.responsiveness => USUAL_TIME,
            (None, None) => Nanos::secs(10),
        })
    }

    /// How this end gets access, by the options.
    fn access(&self) -> Option<Access> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let of_file = self.token_file.as_ref().map(|path| Access::TokenFile { path: text(path) });
        let of_token = self.token.as_ref().map(|_| Access::Token);
        of_file.or(of_token).or_else(|| self.login.access())
    }

    /// Whether an interval consists of several samples, if they are not too many.
    fn samples_are_pieces(&self, time: Nanos, interval: Nanos) -> bool {
        let fits = (time + self.omit).as_ns() / piece_of(interval).as_ns() <= MOST_SAMPLES;
        self.is_iperf3_json() || (self.interval_layout().is_some() && fits)
    }

    /// Payload of the shortest datagram that has room for the server protocol's header.
    fn least_datagram_bytes(&self) -> u32 {
        let bytes = match (self.iperf3 || self.login.is_asked(), self.iperf2) {
            (true, _) => iperf3::datagram::header_bytes(false),
            (_, true) => iperf2::STAMP_BYTES,
            _ => bdp_wire::datagram::HEADER_BYTES,
        };
        bytes as u32
    }

    /// Why a figure can't be measured this way, and what to do about it.
    fn impossible(&self, figure: Figure) -> Option<&'static str> {
        match (figure, self.udp.is_asked()) {
            (Figure::Jitter(_), false) => Some("is of datagrams; add -u"),
            (Figure::OfOrdered(_), _) if self.ordered.is_none() => {
                Some("needs the rate that was bought; add --ordered, as --ordered 500M")
            }
            (Figure::Retransmits(_) | Figure::RetransmitRatio(_) | Figure::Window(_), true) => {
                Some("is of TCP; leave out -u")
            }
            (Figure::RttIdle(_), _) if self.idle == Nanos::ZERO => {
                Some("needs round trips before the load; leave out --idle 0")
            }
            _ => None,
        }
    }

    /// Expectations for the measured directions.
    fn expectations(&self, request: &MeasureRequest) -> anyhow::Result<Vec<Expectation>> {
        let read = |text: &String| {
            let expectation: Expectation =
                text.parse().map_err(|error: bdp_model::measurement::expectation::ExpectationError| {
                    exit::usage(error.to_string())
                })?;
            match expectation.figure.way() {
                Some(way) if !request.directions.contains(&way) => Err(exit::usage(format!(
                    "expectation '{expectation}' needs a direction that is not measured; leave out {}",
                    if self.forward { "--forward" } else { "-R" }
                ))),
                _ => match self.impossible(expectation.figure) {
                    Some(why) => Err(exit::usage(format!("expectation '{expectation}' {why}"))),
                    None => Ok(expectation),
                },
            }
        };
        self.expect.iter().map(read).collect()
    }
}

/// Refuses options that do not apply to datagrams or downloads.
fn check_options(request: &MeasureRequest) -> anyhow::Result<()> {
    for option in options::given(request) {
        if option.is_of_tcp && request.spec.udp.is_some() {
            let flag = option.flag;
            return Err(exit::usage(format!("{flag} applies to TCP alone and -u to UDP; leave one out")));
        }
        if let (Some(why), Some(url)) = (option.not_download, &request.url) {
            return Err(not_for_downloads(option.flag, why, url));
        }
    }
    Ok(())
}

/// Refuses an option that does not apply to downloads.
fn not_for_downloads(flag: &str, why: NotDownload, url: &str) -> anyhow::Error {
    exit::usage(match why {
        NotDownload::NeedsBdp => {
            format!("{flag} needs a bdp at the other end, and {url} is a download; leave it out")
        }
        NotDownload::DoesNotApply => {
            format!("{flag} does not apply to a download, and {url} is one; leave it out")
        }
    })
}

/// Sampling interval of an interval whose line is printed when due: it lags by one sample, at most a tenth.
fn piece_of(interval: Nanos) -> Nanos {
    let pieces = (interval.as_ns() / SAMPLING.as_ns()).max(10).min(interval.as_ns() / LEAST_SAMPLING.as_ns());
    Nanos(interval.as_ns() / pieces)
}

/// Parses the unit of iperf3's `-f`.
fn rate_unit(text: &str) -> Result<RateUnit, String> {
    let mut letters = text.chars();
    let unit = letters.next().filter(|_| letters.next().is_none()).and_then(RateUnit::of_letter);
    unit.ok_or_else(|| format!("'{text}' is not a unit: k, m, g or t for bit/s, K, M, G or T for byte/s"))
}
