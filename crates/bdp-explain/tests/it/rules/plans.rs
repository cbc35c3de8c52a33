//! Plans: the smallest change for what limits a path, and what is left alone.

use bdp_explain::plan::{Described, Wish, described, measured};
use bdp_model::finding::Limit;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::{Direction, End};
use bdp_model::tuning::{Change, Plan, Reason, RouteAttribute, Target, Why};
use bdp_model::units::ByteCount;

use crate::rules::shape::{FULL_PATH, MIB, MS, Shape, WINDOW_BOUND};

const RMEM: &str = "net.ipv4.tcp_rmem";
const WMEM: &str = "net.ipv4.tcp_wmem";

fn set(m: &mut Measurement, end: End, name: &str, value: &str) {
    let host = if end == End::Near { &mut m.near } else { &mut m.far };
    host.sysctls.insert(name.to_owned(), value.to_owned());
}

fn plan(m: &Measurement) -> Plan {
    measured(Some("7f3a"), m, &Wish::default(), |_| None)
}

fn the_change<'a>(plan: &'a Plan, target: &Target) -> &'a Change {
    let found = plan.changes.iter().find(|change| change.target == *target);
    found.unwrap_or_else(|| panic!("{target} is not changed: {plan:?}"))
}

fn why<'a>(plan: &'a Plan, name: &str) -> Option<&'a Why> {
    plan.refused
        .iter()
        .find(|refused| refused.target == Some(Target::sysctl(name)))
        .map(|refused| &refused.why)
}

/// The window of 1 MiB that holds 338 Mbit/s back on a path of 24.2 ms whose devices carry 941 Mbit/s.
fn window_bound() -> Measurement {
    let mut m = WINDOW_BOUND.measurement();
    set(&mut m, End::Far, RMEM, "4096 131072 2097152");
    set(&mut m, End::Near, WMEM, "4096 16384 4194304");
    m
}

#[test]
fn a_small_receive_buffer_is_raised_to_what_the_ceiling_needs_and_no_further() {
    let plan = plan(&window_bound());
    let change = the_change(&plan, &Target::sysctl(RMEM));
    assert_eq!((change.end, change.from.as_deref()), (End::Far, Some("4096 131072 2097152")));
    let largest: u64 = change.to.split(' ').nth(2).unwrap().parse().unwrap();
    // 941 Mbit/s x 24.1 ms is 2.7 MiB; with room 3.1 MiB of window, which is half of the buffer.
    assert!((6 * MIB..7 * MIB).contains(&largest), "{}", change.to);
    assert!(change.to.starts_with("4096 131072 "));
    let gain = change.gain.unwrap();
    assert!(
        gain.direction == Direction::To && (gain.before_bps, gain.after_bps.round() > 900e6) == (338e6, true)
    );
    // The other buffer would be the next limit.
    assert_eq!(the_change(&plan, &Target::sysctl(WMEM)).end, End::Near);
    assert_eq!(plan.path.directions[0].limit, Some(Limit::ReceiveWindow));
}

#[test]
fn a_better_setting_is_never_lowered() {
    let mut m = window_bound();
    set(&mut m, End::Near, WMEM, "4096 16384 67108864");
    set(&mut m, End::Far, RMEM, "4096 131072 67108864");
    let plan = plan(&m);
    assert_eq!(plan.changes, []);
    for name in [RMEM, WMEM] {
        assert!(matches!(why(&plan, name), Some(Why::Enough { .. })), "{:?}", plan.refused);
    }
}

#[test]
fn memory_that_the_host_lacks_is_not_asked_for() {
    let mut m = window_bound();
    // TCP saves memory from 4 MiB on: 1024 pages.
    set(&mut m, End::Far, "net.ipv4.tcp_mem", "768 1024 1536");
    let plan = plan(&m);
    assert!(
        matches!(why(&plan, RMEM), Some(Why::Memory { available_bytes: 4_194_304, .. })),
        "{:?}",
        plan.refused
    );
    assert!(plan.changes.iter().all(|change| change.end == End::Near));
}

#[test]
fn where_nobody_knows_what_the_path_carries_the_plan_goes_four_times_as_far_at_most() {
    let mut m = window_bound();
    m.ceiling = None;
    let unknown = plan(&m);
    assert_eq!(unknown.path.directions[0].rate_bps, None);
    assert_eq!(the_change(&unknown, &Target::sysctl(RMEM)).gain, None);
    // What another run showed is known.
    let shown = measured(None, &m, &Wish::default(), |_| Some(500e6));
    assert_eq!(shown.path.directions[0].rate_bps, Some(500e6));
    assert_eq!(the_change(&shown, &Target::sysctl(RMEM)).gain.unwrap().after_bps, 500e6);
    let wished = measured(None, &m, &Wish { rate_bps: Some(400e6), direction: None }, |_| Some(500e6));
    assert_eq!(wished.path.directions[0].rate_bps, Some(400e6));
}

#[test]
fn timeouts_that_are_long_beside_the_round_trip_are_shortened_on_the_route() {
    let shape = Shape { rtt_loaded: 25 * MS, ..WINDOW_BOUND };
    let mut m = shape.measurement();
    let near_by = |m: &mut Measurement, timeouts: u64| {
        let of_probes = &mut m.directions[0].rtt_ns;
        for rtt in [&mut m.rtt_idle_ns, &mut of_probes.idle, &mut of_probes.loaded] {
            *rtt =
                rtt.map(|rtt| bdp_model::record::RttSummary { min: MS, p50: MS, p95: Some(2 * MS), ..rtt });
        }
        let last = m.directions[0].sent.len() as u64;
        for (i, sample) in m.directions[0].sent.iter_mut().enumerate() {
            sample.srtt_ns = Some(MS);
            sample.timeouts = Some(timeouts * (i as u64 + 1) / last);
        }
    };
    near_by(&mut m, 20);
    let to = m.far.address.parse().unwrap();
    let plan = plan(&m);
    let change = the_change(&plan, &Target::Route { to, attribute: RouteAttribute::RtoMin });
    assert_eq!((change.to.as_str(), &change.reason), ("10ms", &Reason::Timeouts { timeouts: 20 }));
    near_by(&mut m, 1);
    assert!(!self::plan(&m).changes.iter().any(|change| matches!(change.reason, Reason::Timeouts { .. })));
}

#[test]
fn what_was_asked_for_is_left_to_who_asked() {
    let mut m = window_bound();
    m.request.spec.window = ByteCount::kib(1024).try_into().ok();
    let plan = plan(&m);
    assert_eq!(plan.changes, []);
    assert!(
        plan.refused.iter().any(|refused| matches!(&refused.why, Why::Asked { option } if option == "-w"))
    );
}

/// A full path of 50 Mbit/s with a queue of 100 ms.
fn standing_queue() -> Measurement {
    let mut m = FULL_PATH.measurement();
    set(&mut m, End::Near, "net.ipv4.tcp_available_congestion_control", "reno cubic bbr");
    m
}

#[test]
fn a_long_queue_is_met_by_a_congestion_control_on_the_route_alone() {
    let m = standing_queue();
    let plan = plan(&m);
    assert_eq!(plan.path.directions[0].limit, Some(Limit::PathRate));
    let to = m.far.address.parse().unwrap();
    let change = the_change(&plan, &Target::Route { to, attribute: RouteAttribute::Congctl });
    assert_eq!((change.end, change.to.as_str()), (End::Near, "bbr"));
    assert!(matches!(change.reason, Reason::StandingQueue { added_ns } if added_ns > 90 * MS));
    // The whole host, and pacing, are other ways.
    let names: Vec<&str> = plan.alternatives.iter().map(|other| other.name.as_str()).collect();
    assert_eq!(names, ["host", "pace"]);
    assert!(plan.alternatives[1].changes[0].to.starts_with("fq maxrate "));
    assert!(plan.programs.iter().any(|advice| advice.call == "setsockopt(TCP_CONGESTION, \"bbr\")"));
    assert!(
        !plan.changes.iter().any(|change| matches!(change.target, Target::Sysctl { .. })),
        "{:?}",
        plan.changes
    );
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_not_planned() {
    let mut m = standing_queue();
    set(&mut m, End::Near, "net.ipv4.tcp_available_congestion_control", "reno cubic");
    let plan = plan(&m);
    assert_eq!(plan.changes, []);
    let missing = Why::NotAvailable { name: "bbr".to_owned() };
    assert!(plan.refused.iter().any(|refused| refused.why == missing), "{:?}", plan.refused);
}

#[test]
fn a_path_that_is_described_is_planned_for_this_host_in_both_roles() {
    let mut m = window_bound();
    set(&mut m, End::Near, RMEM, "4096 131072 6291456");
    set(&mut m, End::Near, WMEM, "4096 16384 4194304");
    set(&mut m, End::Near, "net.ipv4.tcp_sack", "0");
    let path = Described { rate_bps: 1e9, rtt_ns: 80 * MS, streams: 1 };
    let plan = described(&m.near, &path);
    let of = |name: &str| the_change(&plan, &Target::sysctl(name)).to.clone();
    // 10 MB in flight, with room 11.5 MB, twice that in a buffer.
    for name in [RMEM, WMEM] {
        let largest: u64 = of(name).split(' ').nth(2).unwrap().parse().unwrap();
        assert!((23_000_000..23_020_000).contains(&largest), "{largest}");
    }
    assert_eq!(of("net.ipv4.tcp_sack"), "1");
    assert!(plan.far.is_none() && plan.changes.iter().all(|change| change.end == End::Near));
    // Ten streams need a tenth each.
    let ten = described(&m.near, &Described { streams: 10, ..path });
    assert!(!ten.changes.iter().any(|change| change.target == Target::sysctl(RMEM)), "{:?}", ten.changes);
}
