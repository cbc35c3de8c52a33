//! Scenario files from the outside: what ships, what errors say, what a plan is.

mod applications;
mod damage;
mod decoding;
mod foreign;
mod hosts;
mod impairments;
mod mistakes;
mod options;
mod over_time;
mod profiles;
mod queues;
mod rooms;
mod routing;
mod sweeps;
mod switches;
mod tc_lines;
mod what_ships;

use std::collections::BTreeSet;

use bdp_model::case::{CaseSpec, Family, ProbeKind, Published, WindowMethod};
use bdp_model::flow::window::WindowBytes;
use bdp_model::link::{Loss, QueueLimit, WindowScaleRewrite};
use bdp_model::{ByteCount, Nanos, Probability, Rate};
use bdp_scenario::{PlanOptions, Scenario, find, shipped, shuffle};

const BASE: &str = r#"title = "t"
[hosts.near]
[hosts.far]
[[link]]
between = ["near", "far"]
rate = "100M"
delay = "20ms"
[[flow]]
from = "near"
to = "far"
"#;

fn plan(text: &str) -> Vec<CaseSpec> {
    plan_with(text, &PlanOptions::default())
}

fn plan_with(text: &str, options: &PlanOptions) -> Vec<CaseSpec> {
    let scenario = Scenario::parse("s", text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    scenario.plan(options).unwrap_or_else(|e| panic!("{e}"))
}

fn error(text: &str) -> String {
    match Scenario::parse("s", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e.to_string(),
    }
}

fn set(path: &str, value: &str) -> PlanOptions {
    PlanOptions { overrides: vec![(path.into(), value.into())], ..Default::default() }
}

fn keys(cases: &[CaseSpec]) -> Vec<String> {
    cases.iter().map(CaseSpec::key).collect()
}
