//! What a server of iperf3 printed of its tests, where that was asked for.

use std::fmt::Write;

use bdp_model::measurement::Measurement;

use bdp_model::plain::plain;

/// All of it, as it came but for what a terminal would obey; nothing of measurements that asked for none.
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
