//! Reads captures from files and interfaces, and explains their flows.

mod beside;
mod end;
mod kept;
mod live;
mod pairs;
mod parts;
mod source;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use bdp_capture::between::{SEGMENTS_MOST, SegmentLog};
use bdp_capture::tcptrace::TcpTrace;
use bdp_capture::{Analysis, Filter, Found, Notes};
use bdp_explain::explain;
use bdp_model::capture::pair::CapturePair;
use bdp_model::capture::{ExplainedFlow, ReadCapture};
use serde::{Deserialize, Serialize};

use crate::{Event, RunError};
pub use beside::BesideCapture;
pub use live::{LivePlan, SNAP_BYTES};
use pairs::Logged;
use source::Opened;
pub use source::Source;

/// Default limit of the memory for the flows of a capture.
pub const FLOWS_MEMORY_BYTES: u64 = 1 << 30;
/// Approximate memory of a connection with few packets in tcptrace's output.
const TRACED_BYTES: u64 = 4096;

/// Captures to read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PcapPlan {
    /// The sources of packets.
    pub sources: Vec<Source>,
    /// The packets to look at, as `tcpdump` would be told; empty for all.
    pub filter: String,
    /// Memory limit for the flows of each source, including their reports. Beyond it, packets are counted but no
    /// further flow is followed.
    pub memory_bytes: u64,
    /// Whether to explain each capture by itself, even if several hold the same connections.
    pub separate: bool,
}

/// Explained captures.
#[derive(Debug, Clone)]
pub struct Captures {
    /// Each capture, in the order of its sources.
    pub captures: Vec<ReadCapture>,
    /// Captures of one path at two places, compared.
    pub pairs: Vec<CapturePair>,
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

impl Captures {
    /// Whether one could not be read to its end.
    pub fn is_broken(&self) -> bool {
        self.captures.iter().any(|capture| capture.broke.is_some())
    }
}

impl PcapPlan {
    /// Plans to explain a file.
    pub fn of_file(file: PathBuf) -> Self {
        Self {
            sources: vec![Source::File(file)],
            filter: String::new(),
            memory_bytes: FLOWS_MEMORY_BYTES,
            separate: true,
        }
    }

    /// Reads each source to its end, or to where it breaks, and explains its flows. `cancel` ends it; what was read so
    /// far counts. Captures of one path at several places are compared, unless they are to be separate.
    pub fn run(&self, watch: &mut dyn FnMut(Event<'_>), cancel: &AtomicBool) -> Result<Captures, RunError> {
        let filter = self.filter()?;
        let room = (self.sources.len() > 1 && !self.separate).then_some(SEGMENTS_MOST);
        let explained: Result<Vec<Logged>, RunError> = self
            .open(&filter, watch)?
            .into_iter()
            .map(|source| explain_source(source, (&filter, self.memory_bytes), room, cancel))
            .collect();
        let (captures, pairs) = match self.separate {
            true => (explained?.into_iter().map(|logged| logged.capture).collect(), Vec::new()),
            false => pairs::compared(explained?),
        };
        Ok(Captures { captures, pairs })
    }

    /// Passes on the notes on each packet, in order; returns for each source why it broke, if it did.
    pub fn notes(
        &self,
        each: EachPacket<'_>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Result<Vec<(String, Option<String>)>, RunError> {
        let filter = self.filter()?;
        let noted = |source: Opened| {
            let name = source.name();
            let mut analysis = Analysis::within(self.memory_bytes).filtered(filter.clone());
            let read = source.frames(cancel, &mut |number, frame| {
                let found = analysis.frame(frame);
                if let Some((stream, notes)) = found.filter(|(_, notes)| !notes.is_empty()) {
                    each(number, stream, notes);
                }
            })?;
            Ok((name, read.broke))
        };
        self.open(&filter, watch)?.into_iter().map(noted).collect()
    }

    /// Returns what tcptrace prints for each source.
    pub fn tcptrace(
        &self,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Result<Vec<TracedCapture>, RunError> {
        let most = usize::try_from(self.memory_bytes / TRACED_BYTES).unwrap_or(usize::MAX);
        let text = |source: Opened| {
            let name = source.name();
            let mut trace = TcpTrace::of_at_most(most).named(name.as_str());
            let read = source.frames(cancel, &mut |_, frame| trace.frame(frame))?;
            Ok(TracedCapture { name, text: trace.text(), broke: read.broke })
        };
        self.open(&self.filter()?, watch)?.into_iter().map(text).collect()
    }

    fn filter(&self) -> Result<Filter, RunError> {
        Filter::parse(&self.filter).map_err(|error| RunError::Request(error.to_string()))
    }

    /// Begins the captures of interfaces, and reports each.
    fn open(&self, filter: &Filter, watch: &mut dyn FnMut(Event<'_>)) -> Result<Vec<Opened>, RunError> {
        self.sources.iter().map(|source| source.open(filter, watch)).collect()
    }
}

fn explain_source(
    source: Opened,
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
