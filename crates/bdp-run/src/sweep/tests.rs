use bdp_model::measurement::labels::Labels;
use std::cell::RefCell;

use bdp_model::measurement::{Direction, DirectionResult};
use bdp_store::SqliteStore;

use super::*;

/// Round trip of the scripted path, seconds.
const RTT: f64 = 2.55e-3;
/// What it carries, bit/s.
const CEILING_BPS: f64 = 941.48e6;

/// What the scripted path gives a window.
fn scripted(request: &MeasureRequest, repetition: u32) -> Measurement {
    let window = request.spec.window.map_or(0, WindowBytes::as_bytes);
    let mut measurement = Measurement { repetition, ..Measurement::of(request) };
    for &way in &request.directions {
        let mut direction = DirectionResult { direction: way, ..stored_direction() };
        direction.goodput_bps = (window as f64 * 8.0 / RTT).min(CEILING_BPS);
        direction.window.on_the_wire_bytes = Some(window);
        measurement.directions.push(direction);
    }
    measurement
}

/// A direction as it is stored.
fn stored_direction() -> DirectionResult {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut stored: Measurement = serde_json::from_str(text).unwrap();
    stored.directions.remove(0)
}

fn setting(text: &str, number: u64) -> Setting {
    Setting { text: text.to_owned(), number }
}

fn windows(windows: impl IntoIterator<Item = u64>) -> Varied {
    let values = windows.into_iter().map(|window| setting(&window.to_string(), window)).collect();
    Varied { parameter: Variable::Window, values }
}

fn plan(varied: Vec<Varied>, runs: u32) -> SweepPlan {
    let request = MeasureRequest { directions: vec![Direction::To], ..MeasureRequest::to("ams1") };
    let command = "bdp sweep ams1".to_owned();
    SweepPlan {
        request,
        credentials: Credentials::default(),
        varied,
        runs,
        refine: true,
        seed: 7,
        label: None,
        labels: Labels::NONE,
        command,
    }
}

/// Runs a plan on the scripted path; gives the windows in the order in which they were measured, too.
fn run(plan: &SweepPlan) -> (Swept, Vec<u64>) {
    let mut order = Vec::new();
    let swept = plan.run_with(
        &mut |request, repetition| {
            order.push(request.spec.window.map_or(0, WindowBytes::as_bytes));
            Ok(scripted(request, repetition))
        },
        None,
        &mut |_| {},
        &AtomicBool::new(false),
    );
    (swept, order)
}

#[test]
fn points_are_added_where_the_curve_bends() {
    let asked: Vec<u64> = (12..=26).map(|power| 1 << power).collect();
    let (swept, order) = run(&plan(vec![windows(asked.clone())], 1));
    swept.result.unwrap();
    // 95 % of the ceiling needs 285 kB, between 256 KiB and 512 KiB; each round halves the way.
    assert_eq!(order[asked.len()..], [370_728, 311_744, 285_870]);
    let in_order: Vec<u64> = swept
        .measurements
        .iter()
        .map(|kept| kept.measurement.request.spec.window.unwrap().as_bytes())
        .collect();
    assert!(in_order.is_sorted(), "{in_order:?}");
    assert_eq!(swept.measurements[0].case_key, "window=4096 #1");
    let unrefined = SweepPlan { refine: false, ..plan(vec![windows(asked.clone())], 1) };
    assert_eq!(run(&unrefined).1.len(), asked.len());
}

#[test]
fn a_seed_repeats_the_order_and_a_repetition_ends_before_the_next_begins() {
    let asked: Vec<u64> = (12..=17).map(|power| 1 << power).collect();
    let plan = plan(vec![windows(asked.clone())], 2);
    let (_, order) = run(&plan);
    assert_eq!(order, run(&plan).1);
    assert_ne!(order, run(&SweepPlan { seed: 8, ..plan }).1);
    for block in order.chunks(asked.len()) {
        let mut block = block.to_vec();
        block.sort_unstable();
        assert_eq!(block, asked);
    }
}

#[test]
fn every_value_meets_every_value_of_the_others() {
    let congestion =
        Varied { parameter: Variable::Congestion, values: vec![setting("reno", 0), setting("cubic", 0)] };
    let (swept, _) = run(&plan(vec![windows([4096, 8192]), congestion], 1));
    let keys: Vec<&str> = swept.measurements.iter().map(|kept| kept.case_key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "window=4096 congestion=cubic #1",
            "window=8192 congestion=cubic #1",
            "window=4096 congestion=reno #1",
            "window=8192 congestion=reno #1"
        ]
    );
}

#[test]
fn each_point_is_stored_before_the_next_and_an_error_leaves_the_run_unfinished() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(folder.path().join("runs.sqlite")).unwrap();
    let events = RefCell::new(Vec::new());
    let mut left = 2;
    let swept = plan(vec![windows([4096, 8192, 16_384])], 1).run_with(
        &mut |request, repetition| {
            left -= 1;
            if left < 0 { Err(SessionError::Cancelled) } else { Ok(scripted(request, repetition)) }
        },
        Some(&mut store),
        &mut |event| {
            let Event::PointEnded { done, planned, .. } = event else { panic!("{event:?}") };
            events.borrow_mut().push((done, planned));
        },
        &AtomicBool::new(false),
    );
    assert!(matches!(swept.result, Err(crate::RunError::Session(SessionError::Cancelled))));
    assert_eq!(events.into_inner(), [(1, 3), (2, 3)]);
    let info = store.run(&swept.run.unwrap()).unwrap();
    assert_eq!((info.planned, info.recorded, info.finished_unix_ms), (3, 2, None));
    assert_eq!(info.command, "bdp sweep ams1");
}

#[test]
fn what_was_cut_short_is_no_point() {
    let cancel = AtomicBool::new(false);
    let mut made = 0;
    let swept = plan(vec![windows([4096, 8192, 16_384])], 1).run_with(
        &mut |request, repetition| {
            made += 1;
            cancel.store(made == 2, Ordering::Relaxed);
            Ok(scripted(request, repetition))
        },
        None,
        &mut |_| {},
        &cancel,
    );
    swept.result.unwrap();
    assert_eq!((made, swept.measurements.len()), (2, 1));
}

#[test]
fn a_plan_that_went_through_json_sweeps_the_same() {
    let plan = plan(vec![windows([4096, 65_536, 1 << 20])], 1);
    let carried: SweepPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(run(&carried).1, run(&plan).1);
}
