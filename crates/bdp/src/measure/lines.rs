//! `-i TIME`: a line for each interval on standard output during a measurement.

use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;
use bdp_report::{IntervalLines, RateUnit};
use bdp_run::Event;
use bdp_run::measure::MeasurePlan;

use super::pieces::Pieces;
use crate::output;

/// Prints them, one block for each direction and run.
pub struct ScrollingLines<'a> {
    plan: &'a MeasurePlan,
    layout: Layout,
    open: Option<Block>,
    blocks: u32,
    /// Whether the reader has gone.
    is_over: bool,
}

/// Layout of the lines.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Length of an interval.
    pub length: Nanos,
    /// Unit of the bitrate; `None` chooses a fitting one.
    pub unit: Option<RateUnit>,
    /// A row for each stream, however many.
    pub every_stream: bool,
}

struct Block {
    stage: Stage,
    lines: IntervalLines,
    pieces: Pieces,
}

impl<'a> ScrollingLines<'a> {
    /// Creates the lines of these measurements.
    pub fn new(plan: &'a MeasurePlan, layout: Layout) -> Self {
        Self { plan, layout, open: None, blocks: 0, is_over: false }
    }

    /// Prints the intervals that this event completes.
    pub fn write(&mut self, event: &Event<'_>) {
        let text = match event {
            Event::Progress { repetition, progress } => self.take(*repetition, progress),
            Event::MeasurementEnded { .. } => self.close(),
            _ => return,
        };
        self.print(&text);
    }

    /// Prints the rest, and the separator before the result.
    pub fn end(&mut self) {
        let mut text = self.close();
        if self.blocks > 0 {
            text.push('\n');
        }
        self.print(&text);
    }

    fn take(&mut self, run: u32, progress: &Progress) -> String {
        let mut text = String::new();
        if self.open.as_ref().is_some_and(|block| block.stage != progress.stage) {
            text = self.close();
        }
        if !matches!(progress.stage, Stage::Direction(_) | Stage::Both) {
            return text;
        }
        if self.open.is_none() {
            text.push_str(&self.heading(run, progress.stage));
            self.blocks += 1;
        }
        let Layout { length, unit, every_stream } = self.layout;
        let block = self.open.get_or_insert_with(|| Block {
            stage: progress.stage,
            lines: IntervalLines::new(&self.plan.request, length, unit, every_stream),
            pieces: Pieces::default(),
        });
        if let Some(piece) = block.pieces.next(progress) {
            text.push_str(&block.lines.add(piece, progress.rtt_ns));
        }
        if progress.is_last {
            text.push_str(&block.lines.end(progress.rtt_ns));
            self.open = None;
        }
        text
    }

    fn heading(&self, run: u32, stage: Stage) -> String {
        let host = output::tame(&self.plan.request.host);
        let blank = if self.blocks > 0 { "\n" } else { "" };
        let run = if self.plan.runs > 1 { format!("run {run}/{}, ", self.plan.runs) } else { String::new() };
        match stage {
            Stage::Direction(Direction::To) => format!("{blank}{run}to {host}\n"),
            Stage::Direction(Direction::From) => format!("{blank}{run}from {host}\n"),
            _ => format!("{blank}{run}to and from {host}\n"),
        }
    }

    fn close(&mut self) -> String {
        self.open.take().map_or_else(String::new, |mut block| block.lines.end(None))
    }

    fn print(&mut self, text: &str) {
        if !text.is_empty() && !self.is_over && output::print(text).is_err() {
            self.is_over = true;
        }
    }
}
