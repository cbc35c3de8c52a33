//! Writes the packets of an interface to a pcapng file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bdp_capture::{Filter, Frame, decode};
use bdp_model::units::Nanos;
use bdp_pcap::{Direction, Interface, Packet, Section, Statistics, Writer};
use bdp_sys::clock;

use crate::RunError;

/// Bytes that are gathered for one write.
const CHUNK: usize = 256 << 10;

/// Description of the capture in the file.
pub(super) struct About<'a> {
    /// The interface.
    pub(super) interface: &'a str,
    /// Link-layer header type of the packets.
    pub(super) link_type: u16,
    /// Most bytes per packet.
    pub(super) snap_length: u32,
}

/// A file that packets are written to.
#[derive(Debug)]
pub(super) struct KeptPackets {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    filter: Filter,
    started: Nanos,
    /// Time of the first packet, and of the last since then.
    began_ns: Option<u64>,
    since_ns: u64,
    /// The first error while writing.
    failed: Option<io::Error>,
}

impl KeptPackets {
    /// Creates the file, replacing an existing one. Packets that match the filter are written to it.
    pub(super) fn create(path: &Path, about: &About<'_>, filter: &Filter) -> Result<Self, RunError> {
        let refused = |error| RunError::Capture(unwritten(path, &error));
        let file = File::create(path).map_err(refused)?;
        let os = format!("Linux {}", bdp_sys::process::kernel_release());
        let section = Section {
            hardware: std::env::consts::ARCH,
            os: &os,
            application: concat!("bdp ", env!("CARGO_PKG_VERSION")),
            comment: "",
        };
        let mut writer = Writer::new(BufWriter::with_capacity(CHUNK, file), &section).map_err(refused)?;
        let About { interface: name, link_type, snap_length } = *about;
        writer.interface(&Interface { name, description: "", link_type, snap_length }).map_err(refused)?;
        Ok(Self {
            path: path.to_owned(),
            writer,
            filter: filter.clone(),
            started: Nanos(clock::unix_ns()),
            began_ns: None,
            since_ns: 0,
            failed: None,
        })
    }

    /// Whether a packet could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes a packet. After the first failure no more are written.
    pub(super) fn frame(&mut self, frame: &Frame<'_>, is_outgoing: bool) {
        let at_ns = frame.at_ns.unwrap_or(0);
        let began = *self.began_ns.get_or_insert(at_ns);
        self.since_ns = self.since_ns.max(at_ns.saturating_sub(began));
        if self.failed.is_some() || !self.is_meant(frame) {
            return;
        }
        let written = self.writer.packet(&Packet {
            interface: 0,
            at: Nanos(at_ns),
            direction: if is_outgoing { Direction::Outbound } else { Direction::Inbound },
            length: frame.length,
            data: frame.data,
            comment: "",
        });
        self.failed = written.err();
    }

    /// Completes the file with the total counts of the capture. Fails with the reason if not everything was written.
    pub(super) fn finish(mut self, captured: u64, dropped: u64) -> Result<(), String> {
        let statistics = Statistics {
            interface: 0,
            started: self.started,
            ended: Nanos(clock::unix_ns()),
            received: captured + dropped,
            dropped,
        };
        let written = match self.failed.take() {
            Some(error) => Err(error),
            None => self.writer.statistics(&statistics).and_then(|()| self.writer.get_mut().flush()),
        };
        written.map_err(|error| unwritten(&self.path, &error))
    }

    fn is_meant(&self, frame: &Frame<'_>) -> bool {
        self.filter.is_all()
            || decode::packet(frame.link_type, frame.data, frame.length)
                .is_ok_and(|packet| self.filter.meets(&packet, self.since_ns))
    }
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    format!("write {}: {error}", path.display())
}
