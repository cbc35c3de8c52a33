//! `bdp measure --capture`: what the packets of the test say.

use bdp_model::capture::ReadCapture;
use bdp_report::{Shown, Style, capture_words, captures_text};

use crate::output;

/// Connections that are printed.
const SHOWN: Shown = Shown { rows: 8, flow: None };

/// Prints them below the measurement; where data goes to standard output, a line each beside it.
pub fn print(captured: &[ReadCapture], beside_data: bool, style: &Style) -> anyhow::Result<()> {
    if !beside_data {
        return output::print(&captures_text(captured, &[], SHOWN, style)).map(drop);
    }
    for capture in captured {
        output::note(&format!("capture  {}", capture_words(capture)));
    }
    Ok(())
}
