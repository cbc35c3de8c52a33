//! Captures: the packets at the ends of a case's links, with the link's verdict on each, in pcapng files.
//!
//! The driver passes packets to a writer thread and never waits for it: packets beyond the bounds are counted as
//! not captured, in the file's statistics and in the record. A link end without a capture costs nothing.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bdp_link::{DropCause, Verdict};
use bdp_model::case::LinkSpec;
use bdp_model::plain::in_words;
use bdp_model::record::CaptureRecord;
use bdp_model::units::Nanos;
use bdp_pcap::{Direction, Interface, LINKTYPE_RAW, Packet, Section, Statistics, Writer};
use bdp_sys::{clock, process};

use crate::LabError;

/// Packets that may wait to be written, all files of a case together.
const WAITING_PACKETS: usize = 32_768;
/// Bytes that may wait to be written: 64 MiB.
const WAITING_BYTES: usize = 64 << 20;
/// Bytes collected for one write.
const CHUNK: usize = 256 << 10;
/// Polling interval of the writer. The driver never wakes the writer thread: that would be a system call.
const LOOK: Duration = Duration::from_millis(1);

/// The captures of one attempt at a case, one file for each captured end of a link.
#[derive(Debug)]
pub struct Captures {
    taps: Vec<((usize, usize), Tap)>,
    to_writer: SyncSender<Message>,
    thread: JoinHandle<Vec<CaptureRecord>>,
}

/// Location and description of the capture files.
#[derive(Debug, Clone, Copy)]
pub struct CaptureFiles<'a> {
    /// The folder, created if missing.
    pub folder: &'a Path,
    /// Prefix of each file's name; `-link0-near.pcapng` is added.
    pub stem: &'a str,
    /// Comment of the section.
    pub comment: &'a str,
}

/// The driver's handle of one captured end of a link.
#[derive(Debug, Clone)]
pub(crate) struct Tap {
    file: usize,
    snap_length: usize,
    to_writer: SyncSender<Message>,
    waiting_bytes: Arc<AtomicUsize>,
    missed: Arc<AtomicU64>,
    waits: bool,
}

/// Clock of the timestamps, and who waits for whom.
#[derive(Debug, Clone, Copy)]
pub enum CapturePace<'a> {
    /// The machine's clock: the driver never waits for the disk. The writer thread is pinned to these processors.
    Machine(Option<&'a [usize]>),
    /// A purely virtual clock, from 1970 on: no packet is missed.
    Number,
}

/// The captured part of a packet.
#[derive(Debug)]
pub(crate) struct Kept {
    data: Vec<u8>,
    length: u32,
}

/// What happened to a packet at an end.
#[derive(Debug)]
pub(crate) enum Event {
    /// The host sent it; with the link's verdict.
    Entered(Verdict),
    /// The host sent it, and it belongs to no flow, like neighbour discovery.
    NotOurs,
    /// It was delivered to the host.
    Delivered {
        /// Lateness of the delivery.
        late: Nanos,
    },
    /// The host's device refused it.
    Refused,
    /// The queue dropped it after admission.
    Removed(DropCause),
}

#[derive(Debug)]
enum Message {
    Packet { file: usize, at_ns: u64, kept: Kept, event: Event },
    End,
}

impl Captures {
    /// Creates the files, and starts the thread that writes them.
    pub fn open(
        files: &CaptureFiles<'_>,
        links: &[LinkSpec],
        pace: CapturePace<'_>,
    ) -> Result<Self, LabError> {
        let refused = |operation, path: &Path, cause: io::Error| LabError::Capture {
            operation,
            path: path.display().to_string(),
            cause: cause.to_string(),
        };
        fs::create_dir_all(files.folder).map_err(|e| refused("make the folder", files.folder, e))?;
        let (to_writer, inbox) = sync_channel(WAITING_PACKETS);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let waits = matches!(pace, CapturePace::Number);
        let started = if waits { Nanos::ZERO } else { Nanos(clock::unix_ns()) };
        let mut writer = FileWriter {
            files: Vec::new(),
            waiting_bytes: Arc::clone(&waiting_bytes),
            // Taken once: within a file timestamps differ by the monotonic clock alone.
            offset_ns: if waits { 0 } else { started.as_ns().saturating_sub(clock::monotonic_ns()) },
        };
        let mut taps = Vec::new();
        let ends = links.iter().enumerate().flat_map(|(i, link)| [0, 1].map(|end| (i, link, end)));
        for (i, link, end) in ends.filter(|(_, link, end)| link.capture[*end]) {
            let missed = Arc::new(AtomicU64::new(0));
            let host = &link.between[end];
            let path = files.folder.join(format!("{}-link{i}-{host}.pcapng", files.stem));
            let file = CaptureFile::create(&path, files.comment, i, link, end, Arc::clone(&missed), started)
                .map_err(|e| refused("make the file", &path, e))?;
            let tap = Tap {
                file: writer.files.len(),
                snap_length: link.capture_snap as usize,
                to_writer: to_writer.clone(),
                waiting_bytes: Arc::clone(&waiting_bytes),
                missed,
                waits,
            };
            writer.files.push(file);
            taps.push(((i, end), tap));
        }
        let cpus = match pace {
            CapturePace::Machine(cpus) => cpus.map(<[usize]>::to_vec),
            CapturePace::Number => None,
        };
        let thread = std::thread::Builder::new()
            .name("bdp-capture".to_owned())
            .spawn(move || {
                if let Some(cpus) = cpus {
                    let _ = process::pin(0, &cpus);
                }
                writer.run(&inbox)
            })
            .map_err(|e| refused("start a thread for", files.folder, e))?;
        Ok(Self { taps, to_writer, thread })
    }

    /// Taps for both ends of a link, if captured.
    pub(crate) fn taps(&self, link: usize) -> [Option<Tap>; 2] {
        [0, 1].map(|end| self.taps.iter().find(|(at, _)| *at == (link, end)).map(|(_, tap)| tap.clone()))
    }

    /// Finishes the files. Everything that the driver passed on before is in them.
    pub fn finish(self) -> Vec<CaptureRecord> {
        let Self { taps, to_writer, thread } = self;
        let _ = to_writer.send(Message::End);
        drop(taps);
        thread.join().unwrap_or_default()
    }
}

impl Tap {
    /// Copies the captured part of a packet; `None`, and counted, if too much waits to be written.
    pub(crate) fn keep(&self, packet: &[u8]) -> Option<Kept> {
        let data = &packet[..packet.len().min(self.snap_length)];
        let before = self.waiting_bytes.fetch_add(data.len(), Ordering::Relaxed);
        if before + data.len() > WAITING_BYTES && !self.waits {
            self.waiting_bytes.fetch_sub(data.len(), Ordering::Relaxed);
            self.missed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Kept { data: data.to_vec(), length: u32::try_from(packet.len()).unwrap_or(u32::MAX) })
    }

    /// Passes on a captured packet, with the moment of the monotonic clock and the event.
    pub(crate) fn note(&self, at_ns: u64, kept: Kept, event: Event) {
        let bytes = kept.data.len();
        let message = Message::Packet { file: self.file, at_ns, kept, event };
        let sent = if self.waits {
            self.to_writer.send(message).is_ok()
        } else {
            self.to_writer.try_send(message).is_ok()
        };
        if !sent {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The writer thread.
struct FileWriter {
    files: Vec<CaptureFile>,
    waiting_bytes: Arc<AtomicUsize>,
    offset_ns: u64,
}

impl FileWriter {
    fn run(mut self, inbox: &Receiver<Message>) -> Vec<CaptureRecord> {
        loop {
            match inbox.try_recv() {
                Ok(Message::Packet { file, at_ns, kept, event }) => {
                    self.files[file].add(Nanos(at_ns.saturating_add(self.offset_ns)), &kept, &event);
                    self.waiting_bytes.fetch_sub(kept.data.len(), Ordering::Relaxed);
                }
                Ok(Message::End) | Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => std::thread::sleep(LOOK),
            }
        }
        let ended = Nanos(clock::unix_ns());
        self.files.into_iter().map(|file| file.finish(ended)).collect()
    }
}

/// A file, and its content so far.
struct CaptureFile {
    record: CaptureRecord,
    file: File,
    blocks: Writer<Vec<u8>>,
    /// Packets in `blocks` that are not in the file yet.
    gathered: u64,
    /// Bytes of complete blocks in the file.
    written_bytes: u64,
    missed: Arc<AtomicU64>,
    started: Nanos,
}

impl CaptureFile {
    fn create(
        path: &Path,
        comment: &str,
        index: usize,
        link: &LinkSpec,
        end: usize,
        missed: Arc<AtomicU64>,
        started: Nanos,
    ) -> io::Result<Self> {
        let file = File::create(path)?;
        let os = format!("Linux {}", process::kernel_release());
        let section = Section {
            hardware: std::env::consts::ARCH,
            os: &os,
            application: concat!("bdp ", env!("CARGO_PKG_VERSION")),
            comment,
        };
        let mut blocks = Writer::new(Vec::new(), &section)?;
        let (host, other) = (&link.between[end], &link.between[1 - end]);
        let description = format!("{host}'s end of its link to {other}");
        let snap_length = link.capture_snap;
        blocks.interface(&Interface {
            name: &format!("link{index}"),
            description: &description,
            link_type: LINKTYPE_RAW,
            snap_length,
        })?;
        let mut capture = Self {
            record: CaptureRecord {
                path: PathBuf::from(path).display().to_string(),
                host: host.clone(),
                link: index as u64,
                packets: 0,
                not_captured: 0,
                error: None,
            },
            file,
            blocks,
            gathered: 0,
            written_bytes: 0,
            missed,
            started,
        };
        capture.write_out()?;
        Ok(capture)
    }

    fn add(&mut self, at: Nanos, kept: &Kept, event: &Event) {
        if self.record.error.is_some() {
            self.record.not_captured += 1;
            return;
        }
        let direction = match event {
            Event::Entered(_) | Event::NotOurs | Event::Removed(_) => Direction::Outbound,
            Event::Delivered { .. } | Event::Refused => Direction::Inbound,
        };
        let comment = describe(event);
        let packet =
            Packet { interface: 0, at, direction, length: kept.length, data: &kept.data, comment: &comment };
        let gathered = self.blocks.packet(&packet);
        self.gathered += 1;
        let done = gathered
            .and_then(|()| if self.blocks.get_ref().len() >= CHUNK { self.write_out() } else { Ok(()) });
        self.note_failure(done);
    }

    /// Ends the file with its statistics; returns its entry in the record.
    fn finish(mut self, ended: Nanos) -> CaptureRecord {
        let missed = self.missed.load(Ordering::Relaxed);
        self.record.not_captured += missed;
        if self.record.error.is_none() {
            let (packets, dropped) = (self.record.packets + self.gathered, self.record.not_captured);
            let statistics = Statistics {
                interface: 0,
                started: self.started,
                ended,
                received: packets + dropped,
                dropped,
            };
            let done = self.blocks.statistics(&statistics).and_then(|()| self.write_out());
            self.note_failure(done);
        }
        self.record
    }

    fn write_out(&mut self) -> io::Result<()> {
        let bytes = self.blocks.get_mut();
        self.file.write_all(bytes)?;
        self.written_bytes += bytes.len() as u64;
        bytes.clear();
        self.record.packets += std::mem::take(&mut self.gathered);
        Ok(())
    }

    /// Notes a failed write: the file ends with the last complete one.
    fn note_failure(&mut self, done: io::Result<()>) {
        let Err(error) = done else { return };
        self.record.not_captured += std::mem::take(&mut self.gathered);
        self.record.error = Some(in_words(&format!("write '{}': {error}", self.record.path)));
        let _ = self.file.set_len(self.written_bytes);
        let _ = self.file.seek(SeekFrom::Start(self.written_bytes));
        self.blocks.get_mut().clear();
    }
}

/// Returns the comment of a packet.
fn describe(event: &Event) -> String {
    match event {
        Event::Entered(verdict) => verdict.to_string(),
        Event::NotOurs => "dropped: not_ours".to_owned(),
        Event::Delivered { late } => format!("delivered, {late} late"),
        Event::Refused => "dropped: device_out".to_owned(),
        Event::Removed(cause) => format!("dropped from the queue: {}", cause.name()),
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::case::WHOLE_PACKETS;
    use bdp_model::link::LinkConfig;
    use bdp_pcap::{Block, blocks};

    use super::*;

    fn link() -> LinkSpec {
        LinkSpec {
            between: ["near".to_owned(), "far".to_owned()],
            config: LinkConfig::default(),
            capture: [true, false],
            capture_snap: WHOLE_PACKETS,
            profile: None,
            netem: [None; 2],
        }
    }

    fn file(folder: &Path, missed: u64) -> CaptureFile {
        let missed = Arc::new(AtomicU64::new(missed));
        CaptureFile::create(&folder.join("a.pcapng"), "a case", 0, &link(), 0, missed, Nanos(1)).unwrap()
    }

    fn kept(byte: u8, bytes: usize) -> Kept {
        Kept { data: vec![byte; bytes], length: 1500 }
    }

    #[test]
    fn every_event_has_its_comment_and_its_direction() {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = file(folder.path(), 3);
        let events = [
            (Event::Entered(Verdict::QUEUED), Direction::Outbound, "queued"),
            (Event::Entered(Verdict::dropped(DropCause::Loss)), Direction::Outbound, "dropped: loss"),
            (Event::NotOurs, Direction::Outbound, "dropped: not_ours"),
            (Event::Delivered { late: Nanos(3100) }, Direction::Inbound, "delivered, 3.1 us late"),
            (Event::Refused, Direction::Inbound, "dropped: device_out"),
            (Event::Removed(DropCause::Aqm), Direction::Outbound, "dropped from the queue: aqm"),
        ];
        for (i, (event, _, _)) in events.iter().enumerate() {
            capture.add(Nanos(10 + i as u64), &kept(i as u8, 60), event);
        }
        let record = capture.finish(Nanos(99));
        assert_eq!((record.packets, record.not_captured, &record.error), (6, 3, &None));

        let bytes = fs::read(&record.path).unwrap();
        let found: Vec<_> = blocks(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!(found.len(), 9);
        for (i, ((_, way, text), block)) in events.iter().zip(&found[2..]).enumerate() {
            let expected = Block::Packet {
                interface: 0,
                at: Some(Nanos(10 + i as u64)),
                direction: Some(*way),
                length: 1500,
                data: &[i as u8; 60],
                comments: vec![(*text).to_owned()],
            };
            assert_eq!(*block, expected);
        }
        let all = Statistics { interface: 0, started: Nanos(1), ended: Nanos(99), received: 9, dropped: 3 };
        assert_eq!(found[8], Block::Statistics(all));
    }

    #[test]
    fn a_full_disk_costs_packets_that_are_counted_and_leaves_a_file_that_reads() {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = file(folder.path(), 0);
        let per_chunk = CHUNK / 1400;
        (0..per_chunk).for_each(|_| capture.add(Nanos(1), &kept(1, 1400), &Event::NotOurs));
        let good = capture.record.packets;
        assert!(good > 0, "a chunk was written");
        let real =
            std::mem::replace(&mut capture.file, File::options().write(true).open("/dev/full").unwrap());
        (0..2 * per_chunk).for_each(|_| capture.add(Nanos(2), &kept(2, 1400), &Event::NotOurs));
        drop(real);
        let record = capture.finish(Nanos(3));
        assert_eq!(record.packets, good);
        assert_eq!(record.packets + record.not_captured, 3 * per_chunk as u64);
        assert!(record.error.as_ref().is_some_and(|e| e.contains("a.pcapng") && e.contains("No space")));
        let bytes = fs::read(&record.path).unwrap();
        let packets = blocks(&bytes).filter(|b| matches!(b, Ok(Block::Packet { .. }))).count();
        assert_eq!(packets as u64, good);
        assert!(blocks(&bytes).all(|b| b.is_ok()));
    }

    #[test]
    fn what_finds_no_room_is_counted_and_never_waited_for() {
        let (to_writer, inbox) = sync_channel(2);
        let missed = Arc::new(AtomicU64::new(0));
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let (counted, waiting) = (Arc::clone(&missed), Arc::clone(&waiting_bytes));
        let tap = Tap { file: 0, snap_length: 100, to_writer, waiting_bytes, missed, waits: false };
        let hand_over = || tap.keep(&[7; 1500]).map(|kept| tap.note(5, kept, Event::NotOurs)).is_some();
        // Room for two, and no reader.
        assert!(hand_over() && hand_over() && hand_over());
        assert_eq!((counted.load(Ordering::Relaxed), waiting.load(Ordering::Relaxed)), (1, 200));
        let Ok(Message::Packet { kept, .. }) = inbox.recv() else { panic!("no packet") };
        assert_eq!((kept.data.len(), kept.length), (100, 1500));
        // Room for one more packet, but no bytes left.
        waiting.store(WAITING_BYTES - 99, Ordering::Relaxed);
        assert!(!hand_over());
        waiting.store(WAITING_BYTES - 100, Ordering::Relaxed);
        assert!(hand_over());
        assert_eq!(counted.load(Ordering::Relaxed), 2);
        drop(inbox);
        waiting.store(0, Ordering::Relaxed);
        assert!(hand_over());
        assert_eq!((counted.load(Ordering::Relaxed), waiting.load(Ordering::Relaxed)), (3, 0));
    }
}
