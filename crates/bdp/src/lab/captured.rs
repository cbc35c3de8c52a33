//! Findings from the captures of a run alone, beside its hosts' reports.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use bdp_model::record::Record;
use bdp_report::capture_line;
use bdp_run::pcap::PcapPlan;

use crate::output;

/// Maximum number of lines, so that the table stays visible.
const MOST: usize = 12;

/// A line for each capture: its largest flow, and what limits that.
pub fn explained(records: &[Record]) -> String {
    let captures = records.iter().flat_map(|record| &record.captures);
    let is_there = |path: &&str| Path::new(path).exists();
    let paths: Vec<&str> = captures
        .filter(|capture| capture.packets > 0)
        .map(|capture| capture.path.as_str())
        .filter(is_there)
        .collect();
    let mut text: String = paths.iter().take(MOST).map(|path| line(path)).collect();
    if paths.len() > MOST {
        text.push_str(&format!("capture  and {} more; 'bdp pcap FILE' explains each\n", paths.len() - MOST));
    }
    text
}

fn line(path: &str) -> String {
    match PcapPlan::of_file(path.into()).run(&mut |_| {}, &AtomicBool::new(false)) {
        Ok(read) => read.captures.iter().map(|capture| capture_line(capture, &output::style())).collect(),
        // The run itself succeeded.
        Err(error) => format!("capture  {error}\n"),
    }
}
