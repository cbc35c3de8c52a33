//! `bdp measure --capture`: findings from the packets of the test.

use bdp_model::capture::ReadCapture;
use bdp_report::{Shown, Style, capture_words, captures_text};
use bdp_run::RunError;

use crate::output;

/// Number of connections printed.
const SHOWN: Shown = Shown { rows: 8, flow: None };

/// Prints them below the measurement; if standard output carries data, one line each on standard error. Returns why the capture failed, if it did.
pub fn print(
    captured: Result<Vec<ReadCapture>, RunError>,
    beside_data: bool,
    style: &Style,
) -> anyhow::Result<Option<String>> {
    let captured = match captured {
        Ok(captured) => captured,
        Err(error) => return Ok(Some(error.to_string())),
    };
    if !beside_data {
        output::print(&captures_text(&captured, &[], SHOWN, style))?;
    }
    for capture in captured.iter().filter(|_| beside_data) {
        output::note(&format!("capture  {}", capture_words(capture)));
    }
    Ok(captured.into_iter().find_map(|capture| capture.broke))
}
