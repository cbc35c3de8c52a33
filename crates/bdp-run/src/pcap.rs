//! Reads captures from files and interfaces, and explains their flows.

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

/// Default limit of the memory for the flows of a capture.
pub const FLOWS_MEMORY_BYTES: u64 = 1 << 30;
/// Approximate memory of a connection with few packets in tcptrace's output.
const TRACED_BYTES: u64 = 4096;

/// Captures to read.
#[derive(Debug)]
pub struct PcapPlan {
    /// The sources of packets.
    pub sources: Vec<Source>,
    /// Packet filter.
    pub filter: Filter,
    /// Memory limit for the flows of each source, including their reports. Beyond it, packets are counted but no
    /// further flow is followed.
    pub memory_bytes: u64,
}

/// Receives each packet with a finding: its number in the file from 1, the number of its connection from 0, and the
/// notes.
pub type EachPacket<'a> = &'a mut dyn FnMut(u64, u32, Notes);

/// A capture in tcptrace's output format.
#[derive(Debug)]
pub struct TracedCapture {
    /// The source as the user named it.
    pub name: String,
    /// The text.
    pub text: String,
    /// Why it could not be read to its end.
    pub broke: Option<String>,
}

impl PcapPlan {
    /// Reads each source to its end, or to where it breaks. `cancel` ends it; what was read so far counts.
    pub fn run(self, cancel: &AtomicBool) -> Result<Vec<ReadCapture>, RunError> {
        let Self { sources, filter, memory_bytes } = self;
        sources
            .into_iter()
            .map(|source| Ok(explain_source(source, (&filter, memory_bytes), None, cancel)?.capture))
            .collect()
    }

    /// Reads files that may be captures of one path at several places, and compares those that hold the same
    /// connections.
    pub fn run_compared(self, cancel: &AtomicBool) -> Result<(Vec<ReadCapture>, Vec<CapturePair>), RunError> {
        let Self { sources, filter, memory_bytes } = self;
        let room = (sources.len() > 1).then_some(SEGMENTS_MOST);
        let all: Result<Vec<Logged>, RunError> = sources
            .into_iter()
            .map(|source| explain_source(source, (&filter, memory_bytes), room, cancel))
            .collect();
        Ok(capture_pairs::compared(all?))
    }

    /// Returns the notes on each packet, in order, and for each source why it broke, if it did.
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

    /// Returns what tcptrace prints for each source.
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
