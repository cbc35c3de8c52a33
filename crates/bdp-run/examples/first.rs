use std::{collections::HashSet, sync::Arc};
use bdp_model::{link::*, scenario::*, units::*};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == "__agent") {
        use std::os::fd::AsFd;
        let control = std::os::unix::net::UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
        if bdp_lab::agent::enter(&control, args[2].parse().unwrap()).is_err() { return }
        let w = control.try_clone().unwrap();
        control.set_read_timeout(None).unwrap();
        return bdp_engine::agent::serve(control, w);
    }
    bdp_lab::machine::prepare();
    // args: rate rtt window[,window] [duration] [cc] [streams] [method] [jobs] [n]
    let get = |i: usize, d: &str| args.get(i).cloned().unwrap_or(d.to_string());
    let mut cases = vec![];
    let n: u32 = get(9, "1").parse().unwrap();
    for rate in get(1, "1G").split(',') { for rtt in get(2, "41ms").split(',') { for w in get(3, "30K").split(',') { for rep in 0..n {
        let rtt: Nanos = rtt.parse().unwrap();
        let d = DirectionConfig { rate: Some(rate.parse().unwrap()), delay: Nanos(rtt.as_ns() / 2), limit: QueueLimit::Packets(get(10,"1000").parse().unwrap()), ..Default::default() };
        let host = |n: &str| HostSpec { name: n.into(), sysctls: Default::default() };
        cases.push(CaseSpec { scenario: "first".into(), title: "".into(), params: [("w".to_string(), serde_json::Value::from(format!("{rate} {rtt} {w}")))].into(), repetition: rep+1, seed: 1, family: Family::Ipv4,
            hosts: vec![host("near"), host("far")],
            links: vec![LinkSpec { between: ["near".into(), "far".into()], config: LinkConfig { forward: d.clone(), reverse: d, mtu: 1500 } }],
            flows: vec![FlowSpec { from: "near".into(), to: "far".into(), window: if w == "none" { None } else { Some(w.parse().unwrap()) },
                window_method: match get(7, "receiver").as_str() { "path" => WindowMethod::Path, "auto" => WindowMethod::Auto, _ => WindowMethod::Receiver },
                streams: get(6, "1").parse().unwrap(), length: "128K".parse().unwrap(), mss: None, congestion: get(5, "reno"), nodelay: false,
                duration: get(4, "6s").parse().unwrap(), bytes: None, omit: "2s".parse().unwrap() }],
            idle: "1s".parse().unwrap(), expect: Expect::default(), published_bps: None });
    }}}}
    let conductor = Arc::new(bdp_run::Conductor::new(bdp_lab::AgentCommand { program: std::env::current_exe().unwrap(), arguments: vec!["__agent".into()] }));
    let jobs: usize = get(8, "1").parse().unwrap();
    let t = std::time::Instant::now();
    let (_, r) = bdp_run::run(&conductor, &cases, &HashSet::new(), &bdp_run::RunOptions { jobs: (jobs > 0).then_some(jobs) }, None, &mut |e| if let bdp_run::Event::Ended { record: r, .. } = e {
        let f = &r.fidelity;
        println!("{:<22} #{} {:5} goodput {:>9.4} M model {:>9.4} ({:>6.1}%) wire {:?} max {:?} buf {:?} reached {:?} rtt {:.3} late p50 {:.1} p99 {:.1} max {:.0}us cpu {:.2} steal {:.3} retr {:?} {:?} {:?} {:?}", r.params["w"].as_str().unwrap(), r.attempt, r.valid,
            r.goodput_bps.unwrap_or(0.) / 1e6, r.expected_bps.unwrap_or(0.) / 1e6, r.goodput_bps.unwrap_or(0.) / r.expected_bps.unwrap_or(1.) * 100., r.window.on_the_wire_bytes, r.window.on_the_wire_max_bytes, r.window.socket_buffer_bytes, r.window.reached,
            r.rtt_idle_ns.unwrap_or(0) as f64 / 1e6, f.release_lateness_ns.p50 as f64 / 1e3, f.release_lateness_ns.p99 as f64 / 1e3, f.release_lateness_ns.max as f64 / 1e3, f.host_cpu_busy, f.host_cpu_steal,
            r.flows.first().and_then(|f| f.retransmits), r.error, f.broken, f.directions.first().and_then(|d|d.rate_achieved_bps));
    });
    println!("{r:?} {:?}", t.elapsed());
}
