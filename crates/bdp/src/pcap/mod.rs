//! `bdp pcap`: what limits the connections of a capture.

use std::path::PathBuf;

use bdp_capture::{Filter, Notes, tshark};
use bdp_report::{Shown, captures_json, captures_text};
use bdp_run::pcap::PcapPlan;

use crate::exit::{self, Exit, Outcome};
use crate::{help, interrupt, output};

/// Arguments of `bdp pcap`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bdp pcap slow.pcapng                              the flows, the largest first, and what limits each
  bdp pcap slow.pcapng --flow 2                     one flow by itself
  bdp pcap big.pcap.gz --filter 'host 10.0.0.7 and port 443'
  ssh router tcpdump -w - -s 96 tcp | bdp pcap -    a capture while it is taken, explained at its end

Reads pcap and pcapng, packed by gzip or zstd too. Details: 'bdp help captures'.")]
pub struct PcapArgs {
    /// Captures; '-' is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Only packets that meet this, as tcpdump writes it: host, net, port, tcp, udp, src, dst, and, or, not; 'after 2s' and 'before 10s' since the first packet
    #[arg(long, value_name = "EXPRESSION", value_parser = Filter::parse, help_heading = help::TEST)]
    filter: Option<Filter>,

    /// Print one flow by itself, by its number in the table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    flow: Option<u32>,

    /// Rows of the table at the most
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Print in another program's form: tshark, a line for each packet that its fields tcp.analysis have something to say of
    #[arg(long, value_name = "PROGRAM", value_enum, conflicts_with_all = ["json", "flow"])]
    compat: Option<Compat>,

    /// Print JSON, with all flows ('bdp help pcap.schema')
    #[arg(long)]
    json: bool,
}

/// Bytes of lines that are printed at once.
const PRINTED_AT_ONCE: usize = 1 << 16;

/// Programs whose output can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Compat {
    /// Wireshark's fields tcp.analysis
    Tshark,
}

impl PcapArgs {
    /// Reads the captures, prints what was found.
    pub fn run(self) -> Outcome {
        let plan = PcapPlan { files: self.files, filter: self.filter.unwrap_or_else(Filter::all) };
        let cancel = interrupt::cancel_instead();
        let is_tshark = self.compat == Some(Compat::Tshark);
        let mut lines = String::new();
        let mut unprinted = Ok(Exit::Done);
        let mut each = |packet: u64, stream: u32, notes: Notes| {
            if is_tshark {
                lines.extend(tshark::line(packet, stream, notes));
                if lines.len() > PRINTED_AT_ONCE && unprinted.is_ok() {
                    unprinted = output::print(&std::mem::take(&mut lines));
                }
            }
        };
        let captures = plan.run(&mut each, cancel).map_err(|error| exit::environment(error.to_string()))?;
        unprinted?;
        let flow = self.flow.map(|number| number as usize);
        if let Some(number) = flow.filter(|&number| captures.iter().all(|c| c.flows.len() < number)) {
            let most = captures.iter().map(|capture| capture.flows.len()).max().unwrap_or(0);
            return Err(exit::usage(format!("there is no flow {number}: the capture has {most}")));
        }
        let text = match (self.compat, self.json) {
            (Some(Compat::Tshark), _) => lines,
            (None, true) => format!("{:#}\n", captures_json(&captures)),
            (None, false) => captures_text(&captures, Shown { rows: self.top, flow }, &output::style()),
        };
        output::print(&text)?;
        // What could be read was printed; that it was not all is an exit code.
        let mut exit = Exit::Done;
        for capture in &captures {
            if let Some(why) = &capture.broke {
                output::note(&format!("bdp: {}: {why}", capture.name));
                exit = Exit::Environment;
            }
        }
        Ok(exit)
    }
}
