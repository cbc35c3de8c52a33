//! `bdp pcap --live`: captures on this machine.

use std::path::PathBuf;

use bdp_model::units::Nanos;
use bdp_run::Event;
use bdp_run::pcap::{LivePlan, SNAP_BYTES};

use crate::arguments::seconds;
use crate::{exit, output};

/// Group of the options.
const LIVE: &str = "Live capture";

/// Which interface, for how long, and what is kept.
#[derive(clap::Args)]
pub(super) struct LiveArgs {
    /// Capture on an interface instead of reading a file; 'any' captures on all
    #[arg(long, value_name = "INTERFACE", help_heading = LIVE)]
    live: Option<String>,

    /// Stop the capture after this time [default: at Ctrl-C]
    #[arg(short = 't', long = "for", value_name = "TIME", help_heading = LIVE, requires = "live", conflicts_with = "files", value_parser = seconds)]
    time: Option<Nanos>,

    /// Bytes to keep of each packet, 64 to 262144
    #[arg(long, value_name = "BYTES", help_heading = LIVE, requires = "live", conflicts_with = "files", default_value_t = SNAP_BYTES, value_parser = clap::value_parser!(u32).range(64..=262_144))]
    snap: u32,

    /// Also write the packets to a pcapng file; with --filter only those that match
    #[arg(long, value_name = "FILE", help_heading = LIVE, requires = "live", conflicts_with = "files")]
    write: Option<PathBuf>,
}

impl LiveArgs {
    /// The requested capture.
    pub(super) fn plan(&self) -> anyhow::Result<Option<LivePlan>> {
        let Some(interface) = self.live.clone() else { return Ok(None) };
        if self.time == Some(Nanos::ZERO) {
            return Err(exit::usage("--for 0 captures nothing; give a time, for example 30s, or omit it"));
        }
        Ok(Some(LivePlan { interface, time: self.time, snap: self.snap, write: self.write.clone() }))
    }
}

/// Prints that a capture began.
pub(super) fn show(event: Event<'_>) {
    let Event::Capturing { interface, time } = event else { return };
    let until = time.map_or_else(String::new, |time| format!(" for {time}"));
    output::note(&format!("bdp: capturing on {interface}{until}; Ctrl-C ends and explains the capture"));
}
