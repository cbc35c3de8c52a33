//! The flags of a sweep.

use std::path::PathBuf;

use bdp_model::case::stack::Clock;
use bdp_model::units::Nanos;
use bdp_run::sweep::{Variable, Varied};

use super::varied;
use crate::arguments::seconds;
use crate::labels::LabelArgs;
use crate::measure::SocketArgs;
use crate::report::PageArgs;
use crate::store::StoreArgs;
use crate::{exit, help};

/// Arguments of `bdp sweep`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp sweep ams1 --window 4K..64M\n  bdp sweep --in s0-window-i --window 4K..4M\n  bdp sweep --in s1-64k --window 64K,128K --streams 1..16\n  \
    bdp sweep --in s3-loss --congestion reno,cubic,bbr\n\nExit codes: 0 done; 2 usage error; 3 environment error; 4 bug in bdp;\n\
    5 every repetition of a case was INVALID."
)]
pub struct SweepArgs {
    /// Host that runs 'bdp serve'; for IPv6 with a port, [::1]:5201
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "scenario", conflicts_with = "scenario")]
    pub(super) target: Option<String>,

    #[command(flatten)]
    pub(super) varied: VariedArgs,

    /// Scenario to sweep in: a name from 'bdp lab list', or a TOML file ('bdp help scenario')
    #[arg(long = "in", help_heading = help::TEST, value_name = "SCENARIO", conflicts_with = "SocketArgs")]
    pub(super) scenario: Option<String>,

    /// Number of points in a range, geometrically spaced [default: one per doubling, 5 to 17]
    #[arg(long, help_heading = help::TEST, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(super) points: Option<u32>,

    /// Duration of each point, after the omitted time
    #[arg(short = 't', long, help_heading = help::TEST, value_name = "TIME", default_value = "3s", value_parser = seconds)]
    pub(super) time: Nanos,

    /// Skip the first TIME of each point [default: 1s, or the scenario's]
    #[arg(short = 'O', long, help_heading = help::TEST, hide_short_help = true, value_name = "TIME", value_parser = seconds)]
    pub(super) omit: Option<Nanos>,

    /// Runs of each point
    #[arg(long, help_heading = help::TEST, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10000))]
    pub(super) runs: u32,

    /// Measure only from far to near
    #[arg(short = 'R', long, conflicts_with = "forward", help_heading = help::TEST)]
    pub(super) reverse: bool,

    /// Measure only from near to far
    #[arg(long, help_heading = help::TEST)]
    pub(super) forward: bool,

    /// Measure both directions at the same time
    #[arg(long, conflicts_with_all = ["forward", "reverse", "scenario"], help_heading = help::TEST)]
    pub(super) bidir: bool,

    /// Port of the server [default: 5201]
    #[arg(short, long, help_heading = help::ADDRESS, hide_short_help = true, value_name = "PORT", conflicts_with = "scenario", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: Option<u16>,

    /// Use IPv4 only
    #[arg(short = '4', long = "version4", help_heading = help::ADDRESS, hide_short_help = true, conflicts_with_all = ["version6", "scenario"])]
    pub(super) version4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long = "version6", help_heading = help::ADDRESS, hide_short_help = true, conflicts_with = "scenario")]
    pub(super) version6: bool,

    #[command(flatten)]
    pub(super) socket: SocketArgs,

    /// Duration of the idle round-trip measurement before each point, to a host
    #[arg(long, help_heading = help::TEST, hide_short_help = true, value_name = "TIME", default_value = "0.5s", value_parser = seconds)]
    pub(super) idle: Nanos,

    /// Token printed by the server; other users can see command lines, so prefer BDP_TOKEN or --token-file
    #[arg(long, help_heading = help::ACCESS, value_name = "TOKEN", conflicts_with_all = ["token_file", "scenario"])]
    pub(super) token: Option<String>,

    /// File whose first line is the token
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "PATH", conflicts_with = "scenario")]
    pub(super) token_file: Option<PathBuf>,

    /// Do not add points around the knee
    #[arg(long, help_heading = help::TEST, hide_short_help = true)]
    pub(super) no_refine: bool,

    /// Set a parameter of the scenario by its path, for example link.delay=20ms; repeatable
    #[arg(long = "set", help_heading = help::TEST, hide_short_help = true, value_name = "PATH=VALUE", value_parser = crate::lab::setting)]
    pub(super) settings: Vec<(String, String)>,

    /// Clock of the scenario: real, or virtual, which is exact even on a busy machine [default: the scenario's]
    #[arg(long, help_heading = help::TEST, hide_short_help = true, value_name = "CLOCK", conflicts_with = "target", value_parser = crate::lab::clock())]
    pub(super) clock: Option<Clock>,

    /// Seed of the order and of a scenario's random streams [default: a new one, or the scenario's]
    #[arg(long, help_heading = help::TEST, hide_short_help = true, value_name = "N")]
    pub(super) seed: Option<u64>,

    #[command(flatten)]
    pub(super) labels: LabelArgs,

    /// Resume the newest unfinished sweep of the same points
    #[arg(long, help_heading = help::TEST, hide_short_help = true)]
    pub(super) resume: bool,

    /// Print JSON ('bdp help sweeps')
    #[arg(long, help_heading = help::OUTPUT)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) page: PageArgs,

    /// Write metrics to this file for the Prometheus textfile collector ('bdp help metrics')
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT, hide_short_help = true)]
    pub(super) prometheus: Option<PathBuf>,

    #[command(flatten)]
    pub(super) store: StoreArgs,
}

const VARIED: &str = "Varied (one or two, each a list A,B,C or a range A..B)";

/// What is varied: one of these or two, each a list A,B,C or a range A..B.
#[derive(clap::Args)]
pub(super) struct VariedArgs {
    /// Window on the wire: 4K..64M, or 64K,128K,319kB
    #[arg(short = 'w', long, help_heading = VARIED, value_name = "SIZES", conflicts_with = "sockbuf")]
    window: Option<String>,

    /// Parallel streams: 1..64, or 1,2,10
    #[arg(short = 'P', long, value_name = "NUMBERS", help_heading = VARIED)]
    streams: Option<String>,

    /// Bytes per write: 4K..1M
    #[arg(short = 'l', long, value_name = "SIZES", help_heading = VARIED)]
    length: Option<String>,

    /// Maximum segment size: 536..8960
    #[arg(short = 'M', long, value_name = "NUMBERS", help_heading = VARIED)]
    mss: Option<String>,

    /// Congestion control: reno,cubic,bbr
    #[arg(short = 'C', long, value_name = "NAMES", help_heading = VARIED)]
    congestion: Option<String>,
}

impl VariedArgs {
    /// Reads one or two parameters with more than one value; others are fixed at one.
    pub(super) fn read(&self, points: Option<u32>) -> anyhow::Result<Vec<Varied>> {
        let given = [
            (Variable::Window, &self.window),
            (Variable::Streams, &self.streams),
            (Variable::Length, &self.length),
            (Variable::Mss, &self.mss),
            (Variable::Congestion, &self.congestion),
        ];
        let mut all = Vec::new();
        for (parameter, text) in given {
            if let Some(text) = text {
                all.push(varied::read(parameter, text, points.map(|n| n as usize)).map_err(exit::usage)?);
            }
        }
        match all.iter().filter(|v| v.values.len() > 1).count() {
            1 | 2 => Ok(all),
            0 => Err(exit::usage(
                "no parameter is varied: give a range or a list with --window, --streams, --length, --mss \
                 or --congestion, for example --window 4K..64M",
            )),
            n => Err(exit::usage(format!(
                "{n} parameters are varied, but a sweep supports at most two; give the others one value each"
            ))),
        }
    }
}
