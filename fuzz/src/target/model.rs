//! What a user writes, and what was stored.

use bdp_model::flow::payload::CpuList;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::expectation::Expectation;
use bdp_model::record::Record;
use bdp_model::{ByteCount, Nanos, Probability, Rate};
use bdp_scenario::{PlanOptions, Scenario, shipped};

use super::{comes_back, text};
use crate::parser::Target;

/// Targets of crate `bdp-model`.
pub const MODEL: &[Target] = &[
    Target { name: "scenario", run: scenarios, seeds: scenario_seeds },
    Target { name: "units", run: units, seeds: unit_seeds },
    Target { name: "expectation", run: expectations, seeds: expectation_seeds },
    Target { name: "measurement", run: measurements, seeds: measurement_seeds },
    Target { name: "record", run: records, seeds: record_seeds },
];

/// A scenario that is good has a plan or says why not.
fn scenarios(bytes: &[u8]) {
    match Scenario::parse("fuzz", text(bytes)) {
        Ok(scenario) => match scenario.plan(&PlanOptions::default()) {
            Ok(cases) => cases.iter().for_each(|case| assert!(!case.key().is_empty())),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn scenario_seeds() -> Vec<Vec<u8>> {
    shipped().map(|(_, text)| text.as_bytes().to_vec()).collect()
}

/// What is read as a quantity is printed as one that is read, and that is printed the same.
fn units(bytes: &[u8]) {
    let text = text(bytes);
    macro_rules! prints_what_it_reads {
        ($($kind:ty),*) => {$(
            if let Ok(value) = text.parse::<$kind>() {
                let printed = value.to_string();
                let again = printed.parse::<$kind>();
                let Ok(again) = again else { panic!("'{text}' is printed as '{printed}', which is not read") };
                assert_eq!(again.to_string(), printed, "of '{text}'");
            }
        )*};
    }
    prints_what_it_reads!(Rate, ByteCount, Nanos, Probability, CpuList);
}

fn unit_seeds() -> Vec<Vec<u8>> {
    [
        "10M",
        "2.5Gbit/s",
        "64K",
        "64kB",
        "1.5MiB",
        "20ms",
        "1h",
        "100us",
        "0.5%",
        "1e-3",
        "18446744073709551615",
        "0,2-3",
    ]
    .map(|seed| seed.as_bytes().to_vec())
    .to_vec()
}

fn expectations(bytes: &[u8]) {
    let Ok(expectation) = text(bytes).parse::<Expectation>() else { return };
    let printed = expectation.to_string();
    assert!(printed.parse::<Expectation>().is_ok(), "{printed}");
}

fn expectation_seeds() -> Vec<Vec<u8>> {
    ["to.goodput>=900M", "rtt.idle.p95<=30ms", "from.retransmits<10", "to.window>64K"]
        .map(|seed| seed.as_bytes().to_vec())
        .to_vec()
}

fn measurements(bytes: &[u8]) {
    comes_back::<Measurement>(bytes);
}

fn measurement_seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../../crates/bdp-store/tests/it/measurement.json").to_vec()]
}

fn records(bytes: &[u8]) {
    comes_back::<Record>(bytes);
}

fn record_seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../../crates/bdp-store/tests/it/record.json").to_vec()]
}
