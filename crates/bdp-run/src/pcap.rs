//! Reading captures, of files and of interfaces, and explaining the flows in them.

mod end;
mod kept;
mod live;
mod source;

use std::sync::atomic::AtomicBool;

use bdp_capture::tcptrace::TcpTrace;
use bdp_capture::{Analysis, Filter, Found, Notes};
use bdp_explain::explain;
use bdp_model::capture::{ExplainedFlow, ReadCapture};

use crate::RunError;
pub use live::{LiveCapture, LivePlan, SNAP_BYTES};
pub use source::Source;

/// More flows are counted and not followed: about 10 GB of memory where each is a connection.
const MOST_FLOWS: usize = 2_000_000;

/// Captures to read.
#[derive(Debug)]
pub struct PcapPlan {
    /// Where packets come from.
    pub sources: Vec<Source>,
    /// Which packets are meant.
    pub filter: Filter,
}

/// A packet of which something was found: its number in the file from 1, that of its connection from 0, and what.
pub type EachPacket<'a> = &'a mut dyn FnMut(u64, u32, Notes);

/// A capture in tcptrace's words.
#[derive(Debug)]
pub struct TracedCapture {
    /// How the user called it.
    pub name: String,
    /// The text.
    pub text: String,
    /// Why it could not be read to its end.
    pub broke: Option<String>,
}

impl PcapPlan {
    /// Reads each source to its end, or to where it breaks. `cancel` ends it, and what was read by then counts.
    pub fn run(self, each: EachPacket<'_>, cancel: &AtomicBool) -> Result<Vec<ReadCapture>, RunError> {
        self.sources.into_iter().map(|source| explain_source(source, &self.filter, each, cancel)).collect()
    }

    /// What tcptrace prints of each source.
    pub fn tcptrace(self, cancel: &AtomicBool) -> Result<Vec<TracedCapture>, RunError> {
        let text = |source: Source| {
            let name = source.name();
            let mut trace = TcpTrace::of_at_most(MOST_FLOWS).named(name.as_str());
            let read = source.frames(cancel, &mut |_, frame| trace.frame(frame))?;
            Ok(TracedCapture { name, text: trace.text(), broke: read.broke })
        };
        self.sources.into_iter().map(text).collect()
    }
}

fn explain_source(
    source: Source,
    filter: &Filter,
    each: EachPacket<'_>,
    cancel: &AtomicBool,
) -> Result<ReadCapture, RunError> {
    let name = source.name();
    let mut analysis = Analysis::of_at_most(MOST_FLOWS).filtered(filter.clone());
    let read = source.frames(cancel, &mut |number, frame| {
        let found = analysis.frame(frame);
        if let Some((stream, notes)) = found.filter(|(_, notes)| !notes.is_empty()) {
            each(number, stream, notes);
        }
    })?;
    analysis.dropped(read.dropped);
    let (summary, found) = analysis.finish();
    let flows = found.into_iter().map(explained).collect();
    Ok(ReadCapture { name, summary, flows, broke: read.broke })
}

fn explained(found: Found) -> ExplainedFlow {
    let Found { flow, facts } = found;
    let findings = [0, 1].map(|way| facts[way].as_deref().map(explain).unwrap_or_default());
    ExplainedFlow { flow, facts, findings }
}
