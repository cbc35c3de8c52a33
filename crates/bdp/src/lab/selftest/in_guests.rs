//! The selftest in guests: exact rows, and cells compared with netem.

use std::fmt::Write;

use bdp_model::units::{Nanos, Rate, format_bps};
use bdp_run::RunError;
use bdp_run::selftest::{self, Cell, Check, QueueRow};
use serde_json::json;

use super::printed::{document, table};
use crate::exit::{self, Exit, Outcome};
use crate::output;

/// What is compared with netem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BesideNetem {
    /// The same arrivals, frame by frame
    Frames,
    /// Output of 'bdp lab export' for some links, frame by frame
    Export,
    /// TCP flows
    Flows,
    /// Frames, exports and flows
    #[value(alias = "both")]
    All,
}

/// Frames by the virtual clock, each compared with arithmetic.
pub(super) fn exact(as_json: bool) -> Outcome {
    let (kernel, checks) = selftest::exact(&crate::guest::commands().keeper).map_err(refused)?;
    let text = format!("{}guest kernel: {} ({})\n", table(&checks), kernel.name, kernel.version);
    let document = document(&[], &checks);
    output::print(&if as_json { format!("{document:#}\n") } else { text })?;
    Ok(verdict(&checks, &[]))
}

/// Frames and TCP flows over the emulator and over the kernel's netem.
pub(super) fn beside_netem(part: BesideNetem, as_json: bool) -> Outcome {
    let commands = crate::guest::commands();
    let mut checks = Vec::new();
    if matches!(part, BesideNetem::Frames | BesideNetem::All) {
        checks.extend(selftest::beside_netem(&commands.keeper).map_err(refused)?.1);
    }
    if matches!(part, BesideNetem::Export | BesideNetem::All) {
        checks.extend(selftest::exported_beside_netem(&commands.keeper).map_err(refused)?.1);
    }
    let mut tell = |over: usize, planned: usize| {
        if over.is_multiple_of(20) {
            output::note(&format!("{over} of {planned} flows"));
        }
    };
    let cells = match part {
        BesideNetem::Frames | BesideNetem::Export => Vec::new(),
        _ => selftest::flows_beside_netem(commands, &mut tell).map_err(refused)?,
    };
    if as_json {
        let mut document = document(&[], &checks);
        document["beside_netem"] = json!(cells);
        output::print(&format!("{document:#}\n"))?;
    } else {
        let tables =
            [(!checks.is_empty()).then(|| table(&checks)), (!cells.is_empty()).then(|| cell_table(&cells))];
        output::print(&tables.into_iter().flatten().collect::<Vec<_>>().join("\n"))?;
    }
    Ok(verdict(&checks, &cells))
}

/// Compares actively managed queues with the kernel's.
pub(super) fn beside_kernel_queues(kind: Option<&str>, as_json: bool) -> Outcome {
    let (kernel, rows) =
        selftest::beside_kernel_queues(&crate::guest::commands().keeper, kind).map_err(refused)?;
    if as_json {
        let mut document = document(&[], &[]);
        document["beside_kernel_queues"] = json!({ "kernel": kernel.version, "rows": rows });
        output::print(&format!("{document:#}\n"))?;
    } else {
        output::print(&format!(
            "{}guest kernel: {} ({})\n",
            queue_table(&rows),
            kernel.name,
            kernel.version
        ))?;
    }
    Ok(if rows.iter().all(|row| row.agrees) { Exit::Done } else { Exit::Missed })
}

fn queue_table(rows: &[QueueRow]) -> String {
    let wide = rows.iter().map(|row| row.train.chars().count()).max().unwrap_or(0).max(5) + 2;
    let mut text = format!(
        "{:<10}{:<wide$}{:>8}{:>17}{:>16}{:>20}{:>8}{:>9}{:>7}  verdict\n",
        "queue",
        "train",
        "frames",
        "dropped, kernel",
        "marked, kernel",
        "delay, kernel",
        "unlike",
        "apart",
        "sigma"
    );
    for row in rows {
        if row.frames == 0 {
            let _ = writeln!(text, "{:<10}{:<wide$}  {}", row.queue, row.train, row.kernel);
            continue;
        }
        let pair = |a: &dyn std::fmt::Display, b: &dyn std::fmt::Display| format!("{a} {b}");
        let exact = |value: String| if row.drawn { "-".to_owned() } else { value };
        let _ = writeln!(
            text,
            "{:<10}{:<wide$}{:>8}{:>17}{:>16}{:>20}{:>8}{:>9}{:>7}  {}",
            row.queue,
            row.train,
            row.frames,
            pair(&row.dropped, &row.kernel_dropped),
            pair(&row.marked, &row.kernel_marked),
            pair(&Nanos(row.delay_ns / 10_000 * 10_000), &Nanos(row.kernel_delay_ns / 10_000 * 10_000)),
            exact(row.unlike.to_string()),
            exact(Nanos(row.apart_ns).to_string()),
            if row.drawn { format!("{:.1}", row.sigma) } else { "-".to_owned() },
            if row.agrees { "agrees" } else { "DIFFERS" },
        );
    }
    let compared = rows.iter().filter(|row| row.frames > 0).count();
    let agreeing = rows.iter().filter(|row| row.frames > 0 && row.agrees).count();
    let _ = writeln!(text, "{agreeing} of {compared} agree");
    text
}

fn verdict(checks: &[Check], cells: &[Cell]) -> Exit {
    let held = checks.iter().all(|check| check.held) && cells.iter().all(|cell| cell.agrees);
    if held { Exit::Done } else { Exit::Missed }
}

fn refused(error: RunError) -> anyhow::Error {
    match error {
        RunError::Lab(error) => exit::environment(error.to_string()),
        error => error.into(),
    }
}

fn cell_table(cells: &[Cell]) -> String {
    let mut text = format!(
        "{:<12}{:>8}{:>8}{:>7}  {:<7}{:>26}{:>7}{:>18}{:>20}{:>8}  verdict\n",
        "rate",
        "delay",
        "limit",
        "loss",
        "",
        "goodput, emulator netem",
        "ratio",
        "retransmits",
        "loaded RTT",
        "may be"
    );
    for cell in cells {
        let pair = |value: &dyn Fn(&selftest::Side) -> String| {
            format!("{} {}", value(&cell.emulator), value(&cell.netem))
        };
        let _ = writeln!(
            text,
            "{:<12}{:>8}{:>8}{:>7}  {:<7}{:>26}{:>7.4}{:>18}{:>20}{:>8}  {}",
            Rate::bps(cell.rate_bps).to_string(),
            Nanos(cell.delay_ns).to_string(),
            cell.limit_packets,
            format!("{} %", cell.loss * 100.0),
            cell.congestion_control,
            pair(&|side| format_bps(side.goodput_bps)),
            cell.goodput_ratio,
            pair(&|side| format!("{:.0}", side.retransmits)),
            pair(&|side| Nanos(side.rtt_loaded_ns as u64).to_string()),
            cell.tolerance,
            if cell.agrees { "agrees" } else { "DIFFERS" },
        );
    }
    let agreeing = cells.iter().filter(|cell| cell.agrees).count();
    let _ = writeln!(text, "{agreeing} of {} cells agree", cells.len());
    text
}
