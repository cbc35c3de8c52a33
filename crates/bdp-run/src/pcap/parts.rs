//! Reads a file with many flows on several threads, each of which follows its share of the flows.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use bdp_capture::{Analysis, Found, Frame, Part, together};
use bdp_model::capture::CaptureSummary;

use super::end::ReadToEnd;
use super::source::{CaptureFile, Opened};
use crate::RunError;

/// A smaller file is read before threads are there.
const WORTH_BYTES: u64 = 32 << 20;
/// Threads at the most.
const MOST: usize = 8;
/// Packets by which it is decided whether the flows can be shared out.
const SAMPLE: u64 = 20_000;
/// If one flow has a larger share of the bytes, all but one thread would read in vain.
const LARGEST_SHARE: f64 = 0.5;
/// How files begin that are unpacked while they are read, which one thread does: gzip, zstd.
const PACKED: [&[u8]; 2] = [&[0x1F, 0x8B], &[0x28, 0xB5, 0x2F, 0xFD]];

type WholeRead = (ReadToEnd, CaptureSummary, Vec<Found>);
type PartRead = (ReadToEnd, Part);

/// Reads a source to its end.
pub(super) fn read(
    source: Opened,
    analysis: &(dyn Fn() -> Analysis + Sync),
    cancel: &AtomicBool,
) -> Result<WholeRead, RunError> {
    let alone = |source| {
        let (end, part) = read_part(source, analysis(), cancel)?;
        let (summary, found) = together(vec![part]);
        Ok((end, summary, found))
    };
    let Opened::File(file) = &source else { return alone(source) };
    let parts = parts(file);
    if parts < 2 {
        return alone(source);
    }
    let part = |index| read_part(Opened::File(file.clone()), analysis().part(index, parts), cancel);
    let read: Result<Vec<PartRead>, RunError> = thread::scope(|scope| {
        let part = &part;
        let others: Vec<_> = (1..parts).map(|index| scope.spawn(move || part(index))).collect();
        let first = part(0);
        let others = others.into_iter().map(|thread| match thread.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(first).chain(others).collect()
    });
    let mut ends = Vec::new();
    let found = read?.into_iter().map(|(end, part)| {
        ends.push(end);
        part
    });
    let (summary, found) = together(found.collect());
    Ok((ends.swap_remove(0), summary, found))
}

fn read_part(source: Opened, mut analysis: Analysis, cancel: &AtomicBool) -> Result<PartRead, RunError> {
    let read = source.frames(cancel, &mut |_, frame: &Frame<'_>| {
        analysis.frame(frame);
    })?;
    analysis.dropped(read.dropped);
    Ok((read, analysis.end()))
}

/// Returns the number of threads that read a file.
fn parts(file: &CaptureFile) -> u64 {
    let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MOST));
    if threads < 2 || !is_large(&file.path) {
        return 1;
    }
    let mut sample = Analysis::default();
    let enough = AtomicBool::new(false);
    let read = Opened::File(file.clone()).frames(&enough, &mut |number, frame| {
        sample.frame(frame);
        enough.store(number >= SAMPLE, std::sync::atomic::Ordering::Relaxed);
    });
    // The reader reports if it cannot be read.
    if read.is_err() {
        return 1;
    }
    let (_, found) = sample.finish();
    let bytes = |found: &Found| found.flow.bytes();
    let (all, largest) = (found.iter().map(bytes).sum::<u64>(), found.iter().map(bytes).max().unwrap_or(0));
    if largest as f64 > LARGEST_SHARE * all as f64 { 1 } else { threads as u64 }
}

/// A file of some size that is read as it is.
fn is_large(file: &Path) -> bool {
    let Ok(mut opened) = File::open(file) else { return false };
    let is_large = opened.metadata().is_ok_and(|about| about.is_file() && about.len() >= WORTH_BYTES);
    let mut begins = [0; 4];
    is_large
        && opened.read_exact(&mut begins).is_ok()
        && !PACKED.iter().any(|packed| begins.starts_with(packed))
}
