//! Sources of packets: a file, or an interface live.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_capture::{Filter, Frame};
use bdp_pcap::{Packets, ReadError, unpacked};
use serde::{Deserialize, Serialize};

use super::end::ReadToEnd;
use super::live::{LiveCapture, LivePlan};
use crate::{Event, RunError};

/// Packets between two checks for an interrupt.
const LOOK: u64 = 4096;

/// A source of packets.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file; `-` is standard input.
    File(PathBuf),
    /// A file that is shown by another name than its path.
    Named {
        /// Its path.
        file: PathBuf,
        /// Its name.
        name: String,
    },
    /// An interface.
    Live(LivePlan),
}

impl Source {
    /// Begins the capture of an interface, and reports it.
    pub(super) fn open(&self, filter: &Filter, watch: &mut dyn FnMut(Event<'_>)) -> Result<Opened, RunError> {
        match self {
            Self::File(file) => Ok(Opened::File(CaptureFile { path: file.clone(), name: name(file) })),
            Self::Named { file, name } => {
                Ok(Opened::File(CaptureFile { path: file.clone(), name: name.clone() }))
            }
            Self::Live(plan) => {
                let capture = LiveCapture::open(plan, filter)?;
                watch(Event::Capturing { interface: plan.interface.as_str().into(), time: plan.time });
                Ok(Opened::Live(Box::new(capture)))
            }
        }
    }
}

/// A file, and the name by which the user knows it.
#[derive(Debug, Clone)]
pub(super) struct CaptureFile {
    pub(super) path: PathBuf,
    name: String,
}

/// A source that can be read.
#[derive(Debug)]
pub(super) enum Opened {
    /// A file; `-` is standard input.
    File(CaptureFile),
    /// A running capture.
    Live(Box<LiveCapture>),
}

impl Opened {
    /// Returns the source as the user named it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(file) => file.name.clone(),
            Self::Live(live) => live.name(),
        }
    }

    /// Passes on each frame, numbered from 1.
    pub(super) fn frames(
        self,
        cancel: &AtomicBool,
        each: &mut dyn FnMut(u64, &Frame<'_>),
    ) -> Result<ReadToEnd, RunError> {
        match self {
            Self::File(file) => frames(&file, cancel, each),
            Self::Live(live) => live.frames(cancel, each),
        }
    }
}

fn name(file: &Path) -> String {
    if file.as_os_str() == "-" { "standard input".to_owned() } else { file.display().to_string() }
}

fn frames(
    CaptureFile { path: file, name }: &CaptureFile,
    cancel: &AtomicBool,
    each: &mut dyn FnMut(u64, &Frame<'_>),
) -> Result<ReadToEnd, RunError> {
    let failed = |why: &dyn std::fmt::Display| RunError::Capture(format!("{name}: {why}"));
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

/// Returns why reading ended, in one line.
fn told(error: &ReadError) -> String {
    bdp_model::plain::one_line(&error.to_string())
}
