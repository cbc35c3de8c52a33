//! Grids, points, ranges, and the rules that go with them.

use super::*;

#[test]
fn a_grid_runs_through_its_last_parameter_first_and_repeats_each_point() {
    let text = format!("{BASE}[sweep]\nlink.delay = ['1ms', '2ms']\n\"flow.window\" = ['auto', 4096]\n");
    let cases = plan_with(&text, &PlanOptions { repetitions: Some(2), ..Default::default() });
    let expected = [
        "flow.window=auto link.delay=1ms #1",
        "flow.window=auto link.delay=1ms #2",
        "flow.window=4096 link.delay=1ms #1",
        "flow.window=4096 link.delay=1ms #2",
        "flow.window=auto link.delay=2ms #1",
        "flow.window=auto link.delay=2ms #2",
        "flow.window=4096 link.delay=2ms #1",
        "flow.window=4096 link.delay=2ms #2",
    ];
    assert_eq!(keys(&cases), expected);
    assert_eq!(cases[2].flows[0].spec.window, WindowBytes::new(4 << 10));
    assert_eq!(cases[0].flows[0].spec.window, None);
    assert_eq!(cases[4].links[0].config.reverse.delay, Nanos::millis(2));
}

#[test]
fn paths_reach_one_flow_all_flows_a_direction_and_a_sysctl() {
    let text = format!(
        "{BASE}[[flow]]\nfrom = 'far'\nto = 'near'\n[sweep]\nflow.mss = [1000]\n'flow[1].window' = ['8K']\n\
         link.reverse.loss = ['1%', {{ every = 7 }}]\nhosts.far.sysctls.net.ipv4.tcp_sack = [0]\nfamily = ['ipv6']\n"
    );
    let cases = plan(&text);
    let case = &cases[1];
    assert_eq!(case.flows.iter().map(|f| f.spec.mss).collect::<Vec<_>>(), [Some(1000), Some(1000)]);
    assert_eq!(
        case.flows.iter().map(|f| f.spec.window).collect::<Vec<_>>(),
        [None, WindowBytes::new(8 << 10)]
    );
    assert_eq!(case.links[0].config.forward.loss, Loss::None);
    assert_eq!(case.links[0].config.reverse.loss, Loss::Periodic(7));
    assert_eq!(case.links[0].config.reverse.delay, Nanos::millis(20));
    assert_eq!(case.hosts[1].sysctls["net.ipv4.tcp_sack"], "0");
    assert_eq!(case.family, Family::Ipv6);
    assert_eq!(
        case.key(),
        "family=ipv6 flow.1.window=8K flow.mss=1000 hosts.far.sysctls.net.ipv4.tcp_sack=0 \
         link.reverse.loss={\"every\":7} #1"
    );
}

#[test]
fn ranges_and_points_multiply() {
    let text = format!(
        "{BASE}[[point]]\nlink.rate = '10M'\npublished = 9e6\n[[point]]\n'link.rate' = '20M'\nflow.streams = 2\n\
         [sweep]\nflow.window = {{ from = '4K', to = '16K', steps = 3, scale = 'log' }}\n\
         [[published]]\ngoodput = '1M..2M'\nwhen = {{ flow.window = ['4K', 16384] }}\n"
    );
    let cases = plan(&text);
    assert_eq!(
        keys(&cases),
        [
            "flow.window=4K link.rate=10M #1",
            "flow.window=8K link.rate=10M #1",
            "flow.window=16K link.rate=10M #1",
            "flow.streams=2 flow.window=4K link.rate=20M #1",
            "flow.streams=2 flow.window=8K link.rate=20M #1",
            "flow.streams=2 flow.window=16K link.rate=20M #1",
        ]
    );
    let published: Vec<_> = cases.iter().map(|c| c.published_bps).collect();
    let (own, rule) = (Some(Published::Number(9e6)), Some(Published::Range([1e6, 2e6])));
    assert_eq!(published, [own, own, own, rule, None, rule]);
    assert_eq!(cases[3].flows[0].spec.streams, 2);
    assert_eq!(cases[0].flows[0].spec.streams, 1);
}

#[test]
fn the_first_expectation_that_is_met_applies() {
    let text = format!(
        "{BASE}congestion = 'reno'\n[sweep]\nflow.window = ['4K', '8K', '64K', 'auto']\n\
         [[expect]]\nwhen = {{ flow.window = '..8kB', flow.congestion = 'reno' }}\ngoodput_min = '1M'\n\
         [[expect]]\nwhen = {{ flow.window = 'auto' }}\n[[expect]]\nmodel_within = '5%'\n"
    );
    let bars: Vec<_> =
        plan(&text).iter().map(|c| (c.expect.goodput_min_bps, c.expect.model_within.is_some())).collect();
    assert_eq!(bars, [(Some(1_000_000), false), (None, true), (None, true), (None, false)]);
}
