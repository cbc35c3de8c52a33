//! `bdp lab list` and the output of `bdp lab check`.

use std::fmt::Write;
use std::time::Duration;

use bdp_model::case::CaseSpec;
use bdp_model::units::Nanos;
use bdp_scenario::{PlanOptions, Scenario};
use serde_json::json;

use crate::exit::{self, Outcome};
use crate::output::print;

/// Lists the shipped scenarios, or prints one.
pub fn run(name: Option<&str>, as_json: bool) -> Outcome {
    let wanted = match name {
        Some(name) => match bdp_scenario::find(name) {
            None => {
                return Err(exit::usage(format!("no built-in scenario '{name}'; 'bdp lab list' lists them")));
            }
            Some((_, text)) if !as_json => return print(text),
            found => found.into_iter().collect(),
        },
        None => bdp_scenario::shipped().collect::<Vec<_>>(),
    };
    let mut rows = Vec::new();
    for (name, text) in wanted {
        // An unreadable shipped file is a bug, which a test finds.
        let scenario = Scenario::parse(name, text).map_err(anyhow::Error::from)?;
        let cases = scenario.plan(&PlanOptions::default()).map_err(anyhow::Error::from)?;
        rows.push((scenario, cases, text));
    }
    if as_json {
        let list: Vec<_> = rows
            .iter()
            .map(|(s, cases, text)| {
                let mut row = json!({
                    "name": s.name,
                    "title": s.title,
                    "about": s.about,
                    "source": s.source,
                    "published": s.published(),
                    "cases": cases.len(),
                    "time_s": usual_time(cases).as_secs_f64().round(),
                });
                if name.is_some() {
                    row["text"] = (*text).into();
                }
                row
            })
            .collect();
        return print(&format!(
            "{:#}\n",
            json!({ "schema": "bdp.scenarios/1", "bdp": env!("CARGO_PKG_VERSION"), "run": null, "scenarios": list })
        ));
    }
    let mut text = format!("{:<14}{:>5}  {:>7}  {}\n", "scenario", "cases", "about", "what");
    for (scenario, cases, _) in &rows {
        let time = short_time(usual_time(cases));
        let _ = writeln!(text, "{:<14}{:>5}  {time:>7}  {}", scenario.name, cases.len(), scenario.title);
    }
    text.push_str("\nbdp lab run NAME runs one, bdp lab list NAME prints its file\n");
    print(&text)
}

/// Result of a check.
pub fn checked(scenario: &Scenario, cases: &[CaseSpec], each: bool) -> String {
    let mut text = format!(
        "{}: valid, {} {}, about {}\n",
        scenario.name,
        cases.len(),
        if cases.len() == 1 { "case" } else { "cases" },
        short_time(usual_time(cases))
    );
    if each {
        for case in cases {
            let _ = writeln!(text, "  {}", case.key());
        }
    }
    text
}

/// Expected time of these cases on an undisturbed machine.
pub fn usual_time(cases: &[CaseSpec]) -> Duration {
    bdp_run::lab::schedule::usual_time(cases)
}

/// `45 s`, `12 min`.
pub fn short_time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=99 => format!("{} s", seconds.max(1)),
        100..=5_999 => format!("{} min", (seconds + 30) / 60),
        _ => Nanos::from(time).to_string(),
    }
}
