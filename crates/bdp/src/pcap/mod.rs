//! `bdp pcap`: what limits the connections of a capture.

mod live;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use bdp_capture::{Filter, FilterError, Notes, tshark};
use bdp_model::ByteCount;
use bdp_report::{Shown, captures_json, captures_text, html_of_captures};
use bdp_run::job::context::Context;
use bdp_run::job::{Ended, Job, Results};
use bdp_run::pcap::{Captures, PcapPlan, Source};

use crate::arguments::memory;
use crate::exit::{self, Exit, Outcome};
use crate::planned::Planned;
use crate::report::PageArgs;
use crate::{guest, help, interrupt, output, refusal};
use live::LiveArgs;

/// Arguments of `bdp pcap`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bdp pcap slow.pcapng                              the flows, largest first, and what limits each
  bdp pcap slow.pcapng --flow 2                     one flow
  bdp pcap slow.pcapng --report slow.html           a page with charts of each connection
  bdp pcap big.pcap.gz --filter 'host 10.0.0.7 and port 443'
  bdp pcap client.pcap server.pcap                  two points of a path: loss, changes and delay between them
  bdp pcap --live eth0                              capture until Ctrl-C, then explain
  bdp pcap --live any --for 30s --filter 'port 443'
  ssh router tcpdump -w - -s 96 tcp | bdp pcap -    a remote capture, explained when it ends

Reads pcap and pcapng, also gzip or zstd compressed. --live needs root or CAP_NET_RAW. Details: 'bdp help captures'.")]
pub struct PcapArgs {
    /// Capture files; '-' is standard input
    #[arg(value_name = "FILE", required_unless_present = "live", conflicts_with = "live")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    live: LiveArgs,

    /// Only packets that match this tcpdump-like filter: host, net, port, tcp, src, and, or, not; also 'after 2s', 'before 10s'
    #[arg(long, value_name = "EXPRESSION", value_parser = filter, help_heading = help::TEST, conflicts_with = "compat")]
    filter: Option<String>,

    /// Explain each file separately, even if several contain the same connections
    #[arg(long, help_heading = help::TEST, conflicts_with = "compat")]
    separate: bool,

    /// Memory limit for the flows of each capture; beyond it, packets and bytes are only counted
    #[arg(long, value_name = "SIZE", help_heading = help::TEST, default_value = "1G", value_parser = memory)]
    memory: ByteCount,

    /// Print only this flow, by its number in the table
    #[arg(long, value_name = "N", help_heading = help::OUTPUT, conflicts_with = "live", value_parser = clap::value_parser!(u32).range(1..))]
    flow: Option<u32>,

    /// Maximum number of table rows
    #[arg(long, value_name = "N", help_heading = help::OUTPUT, default_value_t = 20)]
    top: usize,

    /// Print in the format of another program
    #[arg(long, value_name = "PROGRAM", value_enum, help_heading = help::OUTPUT, conflicts_with_all = ["json", "flow", "top", "report"])]
    compat: Option<Compat>,

    #[command(flatten)]
    page: PageArgs,

    /// Print JSON, with all flows ('bdp help pcap.schema')
    #[arg(long, help_heading = help::OUTPUT)]
    json: bool,
}

/// Bytes of lines printed at once.
const PRINTED_AT_ONCE: usize = 1 << 16;

/// Programs whose output can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Compat {
    /// One line per packet that has a tcp.analysis field in Wireshark
    Tshark,
    /// Long output with round trips and windows: tcptrace -lrW
    Tcptrace,
}

impl PcapArgs {
    /// The job that reads captures, each by the name that it was given.
    pub fn planned(&self, source_of: &dyn Fn(&Path) -> anyhow::Result<Source>) -> anyhow::Result<Planned> {
        let sources = self.files.iter().map(|file| source_of(file)).collect::<anyhow::Result<_>>()?;
        let document = |ended: &Ended| match &ended.results {
            Results::Captures(Some(Captures { captures, pairs })) => {
                serde_json::to_string(&captures_json(captures, pairs)).ok()
            }
            _ => None,
        };
        let job = Job::Pcap(Box::new(self.plan(sources)));
        Ok(Planned { document: Box::new(document), ..Planned::by_events(job) })
    }

    fn plan(&self, sources: Vec<Source>) -> PcapPlan {
        PcapPlan {
            sources,
            filter: self.filter.clone().unwrap_or_default(),
            memory_bytes: self.memory.as_bytes(),
            separate: self.separate,
        }
    }

    /// Reads the captures and prints the findings.
    pub fn run(self) -> Outcome {
        self.page.check()?;
        let cancel = interrupt::cancel_instead();
        let files = self.files.iter().cloned().map(Source::File);
        let plan = self.plan(files.chain(self.live.plan()?.map(Source::Live)).collect());
        let Self { flow, top, compat, page, json, .. } = self;
        match compat {
            Some(Compat::Tshark) => return as_tshark(&plan, cancel),
            Some(Compat::Tcptrace) => return as_tcptrace(&plan, cancel),
            None => {}
        }
        let job = Job::Pcap(Box::new(plan));
        let ended = job.run(Context::new(&guest::commands, &mut live::show, cancel));
        ended.result.map_err(refusal::of)?;
        let Results::Captures(Some(Captures { captures, pairs })) = ended.results else {
            return Ok(Exit::Done);
        };
        let flow = flow.map(|number| number as usize);
        let most = captures.iter().map(|capture| capture.flows.len()).max().unwrap_or(0);
        if let Some(number) = flow.filter(|&number| number > most) {
            return Err(exit::usage(format!("flow {number} does not exist: the capture has {most}")));
        }
        match json {
            // The document of many flows exceeds memory: each is written as it is made.
            true => output::print_json(&captures_json(&captures, &pairs))?,
            false => {
                let shown = Shown { rows: top, flow };
                output::print(&captures_text(&captures, &pairs, shown, &output::style()))?
            }
        };
        page.write_page(|about| html_of_captures(&captures, &pairs, about))?;
        Ok(broken(captures.into_iter().map(|capture| (capture.name, capture.broke))))
    }
}

fn as_tshark(plan: &PcapPlan, cancel: &AtomicBool) -> Outcome {
    let mut lines = String::new();
    let mut printed = Ok(Exit::Done);
    let mut each = |packet: u64, stream: u32, notes: Notes| {
        lines.extend(tshark::line(packet, stream, notes));
        if lines.len() > PRINTED_AT_ONCE && printed.is_ok() {
            printed = output::print(&std::mem::take(&mut lines));
        }
    };
    let read = plan.notes(&mut each, &mut live::show, cancel).map_err(refusal::of)?;
    printed?;
    output::print(&lines)?;
    Ok(broken(read.into_iter()))
}

fn as_tcptrace(plan: &PcapPlan, cancel: &AtomicBool) -> Outcome {
    let read = plan.tcptrace(&mut live::show, cancel).map_err(refusal::of)?;
    output::print(&read.iter().map(|capture| capture.text.as_str()).collect::<String>())?;
    Ok(broken(read.into_iter().map(|capture| (capture.name, capture.broke))))
}

/// The readable part was printed; each incomplete file gets a line, and the exit code says so.
fn broken(captures: impl Iterator<Item = (String, Option<String>)>) -> Exit {
    let mut exit = Exit::Done;
    for (name, why) in captures {
        if let Some(why) = why {
            output::note(&format!("bdp: {name}: {why}"));
            exit = Exit::Environment;
        }
    }
    exit
}

/// Checks a filter before anything is read.
fn filter(text: &str) -> Result<String, FilterError> {
    Filter::parse(text).map(|_| text.to_owned())
}
