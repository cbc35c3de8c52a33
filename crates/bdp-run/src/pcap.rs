//! Reading captures, and explaining the flows in them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_capture::between::{SEGMENTS_MOST, SegmentLog};
use bdp_capture::tcptrace::TcpTrace;
use bdp_capture::{Analysis, Filter, Found, Frame, Notes};
use bdp_explain::explain;
use bdp_model::capture::{ExplainedFlow, ReadCapture};
use bdp_model::capture_pair::CapturePair;
use bdp_pcap::{Packets, ReadError, unpacked};

use crate::RunError;
use crate::capture_pairs::{self, Logged};

/// More flows are counted and not followed: about 10 GB of memory where each is a connection.
const MOST_FLOWS: usize = 2_000_000;
/// An interrupt is looked for after so many packets.
const LOOK: u64 = 4096;

/// Captures to read.
#[derive(Debug, Clone)]
pub struct PcapPlan {
    /// Files; `-` is standard input.
    pub files: Vec<PathBuf>,
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
    /// Reads each file to its end, or to where it breaks. `cancel` ends it, and what was read by then counts.
    pub fn run(&self, each: EachPacket<'_>, cancel: &AtomicBool) -> Result<Vec<ReadCapture>, RunError> {
        self.files
            .iter()
            .map(|file| Ok(explain_file(file, &self.filter, None, each, cancel)?.capture))
            .collect()
    }

    /// The same of files that may be captures of one path at several places: those that hold the same connections are compared.
    pub fn run_compared(
        &self,
        cancel: &AtomicBool,
    ) -> Result<(Vec<ReadCapture>, Vec<CapturePair>), RunError> {
        let room = (self.files.len() > 1).then_some(SEGMENTS_MOST);
        let each: EachPacket<'_> = &mut |_, _, _| {};
        let mut all = Vec::new();
        for file in &self.files {
            all.push(explain_file(file, &self.filter, room, each, cancel)?);
        }
        Ok(capture_pairs::compared(all))
    }

    /// What tcptrace prints of each file.
    pub fn tcptrace(&self, cancel: &AtomicBool) -> Result<Vec<TracedCapture>, RunError> {
        let text = |file: &PathBuf| {
            let name = name(file);
            let mut trace = TcpTrace::of_at_most(MOST_FLOWS).named(name.as_str());
            let read = frames(file, cancel, &mut |_, frame| trace.frame(frame))?;
            Ok(TracedCapture { name, text: trace.text(), broke: read.broke })
        };
        self.files.iter().map(text).collect()
    }
}

fn explain_file(
    file: &Path,
    filter: &Filter,
    room: Option<u64>,
    each: EachPacket<'_>,
    cancel: &AtomicBool,
) -> Result<Logged, RunError> {
    let mut analysis = Analysis::of_at_most(MOST_FLOWS).filtered(filter.clone());
    if let Some(segments) = room {
        analysis = analysis.logged(segments);
    }
    let read = frames(file, cancel, &mut |number, frame| {
        let found = analysis.frame(frame);
        if let Some((stream, notes)) = found.filter(|(_, notes)| !notes.is_empty()) {
            each(number, stream, notes);
        }
    })?;
    analysis.dropped(read.dropped);
    let (summary, found) = analysis.finish();
    let (flows, logs) = found.into_iter().map(explained).unzip();
    let capture = ReadCapture { name: name(file), summary, flows, broke: read.broke };
    Ok(Logged { capture, logs })
}

fn name(file: &Path) -> String {
    if file.as_os_str() == "-" { "standard input".to_owned() } else { file.display().to_string() }
}

/// How reading a file ended.
struct ReadToEnd {
    /// Packets that the capturing program says it dropped.
    dropped: u64,
    /// Why it ended early.
    broke: Option<String>,
}

/// Gives each frame of a file, with its number from 1.
fn frames(
    file: &Path,
    cancel: &AtomicBool,
    each: &mut dyn FnMut(u64, &Frame<'_>),
) -> Result<ReadToEnd, RunError> {
    let failed = |why: &dyn std::fmt::Display| RunError::Capture(format!("{}: {why}", name(file)));
    let source: Box<dyn Read + Send> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        let opened = File::open(file).map_err(|error| failed(&error))?;
        if opened.metadata().is_ok_and(|about| about.is_dir()) {
            return Err(failed(&"is a folder"));
        }
        Box::new(opened)
    };
    let source = unpacked(source).map_err(|error| failed(&error))?;
    let mut packets = Packets::new(source).map_err(|error| failed(&told(&error)))?;
    let (mut number, mut broke) = (0_u64, None);
    while let Some(packet) = packets.next_packet() {
        match packet {
            Ok(packet) => {
                number += 1;
                let frame = Frame {
                    at_ns: packet.at.map(|at| at.as_ns()),
                    link_type: packet.link_type,
                    length: packet.length,
                    data: packet.data,
                };
                each(number, &frame);
            }
            Err(error) => broke = Some(told(&error)),
        }
        if number.is_multiple_of(LOOK) && cancel.load(Ordering::Relaxed) {
            broke = Some(format!("interrupted at byte {}", packets.bytes()));
            break;
        }
    }
    Ok(ReadToEnd { dropped: packets.dropped(), broke })
}

fn explained(found: Found) -> (ExplainedFlow, Option<Box<SegmentLog>>) {
    let Found { flow, facts, log } = found;
    let findings = [0, 1].map(|way| facts[way].as_deref().map(explain).unwrap_or_default());
    (ExplainedFlow { flow, facts, findings }, log)
}

/// Why reading ended, in a line.
fn told(error: &ReadError) -> String {
    bdp_model::plain::one_line(&error.to_string())
}
