//! `bdp measure --capture`: the packets of the test, and what they say.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use bdp_model::capture::ReadCapture;
use bdp_model::measurement::MeasureRequest;
use bdp_report::Shown;
use bdp_run::RunError;
use bdp_run::pcap::BesideCapture;

use crate::exit;

/// Connections that are printed.
pub const SHOWN: Shown = Shown { rows: 8, flow: None };

/// Begins the capture that was asked for.
pub fn begin(
    file: Option<&Path>,
    request: &MeasureRequest,
    cancel: &AtomicBool,
) -> anyhow::Result<Option<BesideCapture>> {
    let Some(file) = file else { return Ok(None) };
    BesideCapture::begin(request, file.to_owned(), cancel)
        .map(Some)
        .map_err(|error| super::refusal(error, &request.host))
}

/// Ends it.
pub fn end(capture: BesideCapture) -> anyhow::Result<Vec<ReadCapture>> {
    capture.end().map_err(|error: RunError| exit::environment(error.to_string()))
}
