//! Reading captures, of files and of interfaces, and explaining the flows in them.

mod beside;
mod end;
mod kept;
mod live;
mod parts;
mod source;

use std::sync::atomic::AtomicBool;

use bdp_capture::between::{SEGMENTS_MOST, SegmentLog};
use bdp_capture::tcptrace::TcpTrace;
use bdp_capture::{Analysis, Filter, Found, Notes};
use bdp_explain::explain;
use bdp_model::capture::{ExplainedFlow, ReadCapture};
use bdp_model::capture_pair::CapturePair;

use crate::RunError;
use crate::capture_pairs::{self, Logged};
pub use beside::BesideCapture;
pub use live::{LiveCapture, LivePlan, SNAP_BYTES};
pub use source::Source;

/// Memory that the flows of a capture take at the most, where nothing else is asked for.
pub const FLOWS_MEMORY_BYTES: u64 = 1 << 30;
/// What a connection of few packets takes in tcptrace's words, about.
const TRACED_BYTES: u64 = 4096;

/// Captures to read.
#[derive(Debug)]
pub struct PcapPlan {
    /// Where packets come from.
    pub sources: Vec<Source>,
    /// Packet filter.
    pub filter: Filter,
    /// Memory that the flows of each may take, with what is reported of them. Beyond it packets are counted, and no further flow is followed.
    pub memory_bytes: u64,
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
    pub fn run(self, cancel: &AtomicBool) -> Result<Vec<ReadCapture>, RunError> {
        let Self { sources, filter, memory_bytes } = self;
        sources
            .into_iter()
            .map(|source| Ok(explain_source(source, (&filter, memory_bytes), None, cancel)?.capture))
            .collect()
    }

    /// The same of files that may be captures of one path at several places: those that hold the same connections are compared.
    pub fn run_compared(self, cancel: &AtomicBool) -> Result<(Vec<ReadCapture>, Vec<CapturePair>), RunError> {
        let Self { sources, filter, memory_bytes } = self;
        let room = (sources.len() > 1).then_some(SEGMENTS_MOST);
        let all: Result<Vec<Logged>, RunError> = sources
            .into_iter()
            .map(|source| explain_source(source, (&filter, memory_bytes), room, cancel))
            .collect();
        Ok(capture_pairs::compared(all?))
    }

    /// What was found of each packet, in their order; `broke` as of a capture, for each source.
    pub fn notes(
        self,
        each: EachPacket<'_>,
        cancel: &AtomicBool,
    ) -> Result<Vec<(String, Option<String>)>, RunError> {
        let Self { sources, filter, memory_bytes } = self;
        let noted = |source: Source| {
            let name = source.name();
            let mut analysis = Analysis::within(memory_bytes).filtered(filter.clone());
            let read = source.frames(cancel, &mut |number, frame| {
                let found = analysis.frame(frame);
                if let Some((stream, notes)) = found.filter(|(_, notes)| !notes.is_empty()) {
                    each(number, stream, notes);
                }
            })?;
            Ok((name, read.broke))
        };
        sources.into_iter().map(noted).collect()
    }

    /// What tcptrace prints of each source.
    pub fn tcptrace(self, cancel: &AtomicBool) -> Result<Vec<TracedCapture>, RunError> {
        let most = usize::try_from(self.memory_bytes / TRACED_BYTES).unwrap_or(usize::MAX);
        let text = |source: Source| {
            let name = source.name();
            let mut trace = TcpTrace::of_at_most(most).named(name.as_str());
            let read = source.frames(cancel, &mut |_, frame| trace.frame(frame))?;
            Ok(TracedCapture { name, text: trace.text(), broke: read.broke })
        };
        self.sources.into_iter().map(text).collect()
    }
}

fn explain_source(
    source: Source,
    (filter, memory_bytes): (&Filter, u64),
    room: Option<u64>,
    cancel: &AtomicBool,
) -> Result<Logged, RunError> {
    let name = source.name();
    let analysis = || {
        let analysis = Analysis::within(memory_bytes).filtered(filter.clone());
        if let Some(segments) = room { analysis.logged(segments) } else { analysis }
    };
    let (read, summary, found) = parts::read(source, &analysis, cancel)?;
    let (flows, logs) = found.into_iter().map(explained).unzip();
    let capture = ReadCapture { name, summary, flows, broke: read.broke };
    Ok(Logged { capture, logs })
}

fn explained(found: Found) -> (ExplainedFlow, Option<Box<SegmentLog>>) {
    let Found { flow, facts, log } = found;
    let findings = [0, 1].map(|way| facts[way].as_deref().map(explain).unwrap_or_default());
    (ExplainedFlow { flow, facts, findings }, log)
}
