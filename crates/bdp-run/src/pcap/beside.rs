//! Captures a measurement's own packets while it runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use bdp_capture::Filter;
use bdp_flow::session::dial;
use bdp_model::capture::ReadCapture;
use bdp_model::measurement::MeasureRequest;

use super::live::{LiveCapture, LivePlan, SNAP_BYTES};
use super::source::Opened;
use super::{FLOWS_MEMORY_BYTES, explain_source};
use crate::RunError;

/// A capture that runs until [`BesideCapture::end`].
#[derive(Debug)]
pub struct BesideCapture {
    thread: JoinHandle<Result<Vec<ReadCapture>, RunError>>,
    is_over: Arc<AtomicBool>,
}

impl BesideCapture {
    /// Starts capturing the packets between this machine and the requested host, into a pcapng file.
    pub fn begin(request: &MeasureRequest, file: PathBuf, cancel: &AtomicBool) -> Result<Self, RunError> {
        let text = filter(request, cancel)?;
        let filter = Filter::parse(&text).map_err(|error| RunError::Request(error.to_string()))?;
        let live = LivePlan { interface: "any".to_owned(), time: None, snap: SNAP_BYTES, write: Some(file) };
        // Before the thread: a capture that cannot begin is an error of the request.
        let source = Opened::Live(Box::new(LiveCapture::open(&live, &filter)?));
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let thread = thread::spawn(move || {
            let explained = explain_source(source, (&filter, FLOWS_MEMORY_BYTES), None, &flag)?;
            Ok(vec![explained.capture])
        });
        Ok(Self { thread, is_over })
    }

    /// Ends the capture and explains it.
    pub fn end(self) -> Result<Vec<ReadCapture>, RunError> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Returns the filter of a measurement's packets: those of its host, and of its port if all of them use it.
fn filter(request: &MeasureRequest, cancel: &AtomicBool) -> Result<String, RunError> {
    let addresses = dial::resolve(request, cancel)?;
    let hosts: Vec<String> = addresses.iter().map(|address| format!("host {}", address.ip())).collect();
    let hosts = format!("({})", hosts.join(" or "));
    Ok(match (&request.ssh, &request.url) {
        (None, None) => format!("{hosts} and port {}", request.port),
        _ => hosts,
    })
}
