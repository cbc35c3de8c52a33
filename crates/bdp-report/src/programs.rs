//! The user's programs on the hosts of a scenario: how each ended, and the traffic on the links meanwhile.

use bdp_model::record::{DirectionFidelity, ProgramEnd, ProgramRecord, Record};

use crate::breach::why_invalid;
use crate::grid::{Align, Cell, Column, render, tame};
use crate::number::three_digits;
use crate::style::{Style, Tint};

/// Returns a row for each program and link direction of a record of programs; empty for other records. Ends with a newline.
pub fn programs(record: &Record, style: &Style) -> String {
    if record.programs.is_empty() {
        return String::new();
    }
    let mut text = facts(record);
    if !record.valid {
        text.push_str(&format!("INVALID: {}\n", why_invalid(&record.fidelity)));
    }
    text.push_str(&render(&of_programs(&record.programs), &[], style));
    text.push('\n');
    text.push_str(&render(&of_links(&record.fidelity.directions), &[], style));
    for capture in &record.captures {
        let not = match capture.not_captured {
            0 => String::new(),
            missed => format!(", {missed} not captured"),
        };
        text.push_str(&format!("capture  {}: {} packets{not}\n", tame(&capture.path), capture.packets));
    }
    text
}

fn facts(record: &Record) -> String {
    let environment = &record.environment;
    let clock =
        if environment.clock.is_real() { String::new() } else { format!(", {} clock", environment.clock) };
    let fidelity = if record.valid { "OK" } else { "INVALID" };
    format!(
        "exec  {}, Linux {}{clock}, seed {}, bdp {}, fidelity {fidelity}\n",
        tame(&record.scenario),
        tame(&environment.kernel),
        record.seed,
        tame(&environment.bdp)
    )
}

fn of_programs(programs: &[ProgramRecord]) -> Vec<Column> {
    let column = |head, align, cell: &dyn Fn(&ProgramRecord) -> Cell| {
        Column::new(head, align, programs.iter().map(cell).collect())
    };
    let ended = |one: &ProgramRecord| match one.end {
        ProgramEnd::Exited if one.exit_code == 0 => Cell::tinted("exit 0", Tint::Good),
        ProgramEnd::Exited => Cell::tinted(format!("exit {}", one.exit_code), Tint::Bad),
        ProgramEnd::Stopped => Cell::plain("stopped"),
        end @ (ProgramEnd::TimeLimit | ProgramEnd::OutputLimit) => Cell::tinted(end.name(), Tint::Bad),
    };
    vec![
        column(["", "host"], Align::Left, &|one| Cell::tinted(tame(&one.host), Tint::Strong)),
        column(["", "ended"], Align::Left, &ended),
        column(["", "s"], Align::Point, &|one| Cell::plain(three_digits(milliseconds(one) / 1e3))),
        column(["", "program"], Align::Left, &|one| Cell::plain(tame(&command(&one.command)))),
    ]
}

/// Whole milliseconds: no more is needed, and in a guest work takes no time.
fn milliseconds(one: &ProgramRecord) -> f64 {
    (one.duration_ns as f64 / 1e6).round()
}

/// Returns the words of a command; for a shell command, its line.
fn command(words: &[String]) -> String {
    match words {
        [shell, flag, line] if flag == "-c" && shell.ends_with("sh") => line.clone(),
        words => words.iter().map(|word| crate::quote(word)).collect::<Vec<_>>().join(" "),
    }
}

fn of_links(directions: &[DirectionFidelity]) -> Vec<Column> {
    let column = |head, cell: &dyn Fn(&DirectionFidelity) -> String| {
        Column::new(head, Align::Point, directions.iter().map(|one| Cell::plain(cell(one))).collect())
    };
    let names = directions.iter().map(|one| Cell::plain(tame(&one.name))).collect();
    let mut columns = vec![
        Column::new(["", "link"], Align::Left, names),
        column(["", "packets"], &|one| one.packets_out.to_string()),
        column(["", "bytes"], &|one| one.bytes_out.to_string()),
        column(["", "dropped"], &|one| dropped(one).to_string()),
    ];
    if directions.iter().any(|one| one.marked > 0) {
        columns.push(column(["", "marked"], &|one| one.marked.to_string()));
    }
    columns.push(column(["longest", "queue ms"], &|one| three_digits(one.queueing_max_ns as f64 / 1e6)));
    columns.push(Column::new(
        ["", "dropped by"],
        Align::Left,
        directions.iter().map(|one| Cell::plain(causes(one))).collect(),
    ));
    columns.retain(|column| !column.is_blank());
    columns
}

/// Number of program packets that did not arrive.
fn dropped(one: &DirectionFidelity) -> u64 {
    one.dropped.iter().filter(|(cause, _)| *cause != "not_ours").map(|(_, packets)| packets).sum()
}

fn causes(one: &DirectionFidelity) -> String {
    let some = one.dropped.iter().filter(|(cause, packets)| **packets > 0 && *cause != "not_ours");
    some.map(|(cause, packets)| format!("{cause} {packets}")).collect::<Vec<_>>().join(", ")
}
