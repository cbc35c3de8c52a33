//! Output of an iperf3 server, if it was requested.

use std::fmt::Write;

use bdp_model::measurement::Measurement;

use bdp_model::plain::plain;

/// Returns all output, with terminal control characters removed; empty if none was requested.
pub(super) fn printed(measurements: &[Measurement]) -> String {
    let mut text = String::new();
    for output in measurements.iter().flat_map(|m| &m.server_output) {
        text.push_str("\nthe server's output\n");
        let lines = output.as_str().map_or_else(|| format!("{output:#}"), str::to_owned);
        for line in lines.lines() {
            let _ = writeln!(text, "  {}", plain(line.trim_end()));
        }
    }
    text
}
