//! More than two hosts: routers, static routes, and flows between hosts that share no link.

use bdp_model::case::network::{Network, changes};
use bdp_model::case::route::Route;

use super::*;

/// H1 and H3 behind R1, H2 and H4 behind R2.
const DUMBBELL: &str = r#"title = "t"
probe = "tcp-connect"
[hosts.h1]
routes = [{ to = "h2", via = "r1" }]
[hosts.r1]
router = true
[hosts.r2]
router = true
[[link]]
between = ["h1", "r1"]
mtu = 9000
[[link]]
between = ["h3", "r1"]
[[link]]
between = ["r1", "r2"]
rate = "2M"
mtu = 4000
[[link]]
between = ["r2", "h2"]
[[link]]
between = ["r2", "h4"]
[[flow]]
from = "h1"
to = "h2"
[[flow]]
from = "h4"
to = "h3"
start = "5s"
"#;

#[test]
fn routers_routes_and_start_times_are_read() {
    let case = &plan(DUMBBELL)[0];
    assert_eq!(case.probe, ProbeKind::TcpConnect);
    let routers: Vec<&str> = case.hosts.iter().filter(|h| h.router).map(|h| h.name.as_str()).collect();
    assert_eq!(routers, ["r1", "r2"]);
    assert_eq!((case.hosts[0].routes[0].to.as_str(), case.hosts[0].routes[0].via.as_str()), ("h2", "r1"));
    assert_eq!((case.flows[0].start, case.flows[1].start), (Nanos::ZERO, Nanos::secs(5)));
    assert_eq!((case.flows[1].from.as_str(), case.flows[1].to.as_str()), ("h4", "h3"));
    let late = plan_with(DUMBBELL, &set("flow.0.start", "250ms"));
    assert_eq!(late[0].flows[0].start, Nanos::millis(250));
    let sweep = format!("{DUMBBELL}[sweep]\nprobe = ['udp', 'tcp-connect']\nflow.1.start = ['1s', '2s']\n");
    assert_eq!(plan(&sweep).len(), 4);
}

#[test]
fn a_route_holds_from_its_moment_on() {
    const TEXT: &str = "title = 't'\n[hosts.near]\nroutes = [{ to = 'far', via = 'r', at = '1s' }, { to = 'far', via = 'far', at = '2s' }]\n\
        [hosts.r]\nrouter = true\n[[link]]\nbetween = ['near', 'far']\nrate = '2M'\n\
        [[link]]\nbetween = ['near', 'r']\nrate = '8M'\nmtu = 1280\n[[link]]\nbetween = ['r', 'far']\n[[flow]]\nfrom = 'near'\nto = 'far'\n";
    let case = &plan(TEXT)[0];
    let links = |moment| {
        let network = Network::new(&case.hosts, &case.links).as_of(Nanos::millis(moment));
        network.path("near", "far").unwrap().iter().map(|hop| hop.link).collect::<Vec<_>>()
    };
    for (moment, expected) in
        [(0, vec![0]), (999, vec![0]), (1000, vec![1, 2]), (1999, vec![1, 2]), (2000, vec![0])]
    {
        assert_eq!(links(moment), expected, "{moment} ms");
    }
    assert_eq!(changes(&case.hosts).into_iter().collect::<Vec<_>>(), [Nanos::secs(1), Nanos::secs(2)]);
    // The longest, the narrowest and the fastest of its ways.
    let route = Route::between(case, "near", "far").unwrap();
    assert_eq!((route.length(), route.mtu(), route.changes()), (2, 1280, true));
    assert_eq!(route.fastest().map(|rate| rate.as_bps()), Some(8_000_000));
    assert!(
        !Route::between(
            &plan(&TEXT.replace(", at = '1s'", "").replace(", { to = 'far', via = 'far', at = '2s' }", ""))
                [0],
            "near",
            "far"
        )
        .unwrap()
        .changes()
    );
}

/// Each: what to replace, by what, and the whole message.
#[test]
fn what_can_not_be_reached_is_refused() {
    for (old, new, expected) in [
        (
            "[hosts.r2]\nrouter = true\n",
            "",
            "s.toml:4: hosts.h1.routes: no path from 'h1' to 'h2'; connect them by links and routers (h1 - r1, h3 - r1, r1 - r2, r2 - h2, r2 - h4); router = true in [hosts.r2] would",
        ),
        (
            "routes = [{ to = \"h2\", via = \"r1\" }]\n[hosts.r1]\nrouter = true\n[hosts.r2]\nrouter = true\n",
            "",
            "s.toml:19: flow.0: no path from 'h1' to 'h2'; connect them by links and routers (h1 - r1, h3 - r1, r1 - r2, r2 - h2, r2 - h4); router = true in [hosts.r1] and [hosts.r2] would",
        ),
        (
            "via = \"r1\"",
            "via = \"r2\"",
            "s.toml:4: hosts.h1.routes.via = \"r2\" conflicts with the links of 'h1' (r1): the next hop of a route must be a neighbour",
        ),
        (
            "[hosts.r1]\nrouter = true",
            "[hosts.r1]\nrouter = false",
            "s.toml:4: hosts.h1.routes.via = \"r1\" conflicts with 'r1', which is not a router: only a router forwards packets; set router = true in its table",
        ),
        (
            "[hosts.r1]\nrouter = true",
            "[hosts.r1]\nrouter = 1",
            "s.toml:6: hosts.r1.router = 1: expected true or false",
        ),
        (
            "[hosts.r1]\n",
            "[hosts.r1]\nroutes = [{ to = \"h2\", via = \"h1\" }]\n",
            "s.toml:6: hosts.r1.routes.via = \"h1\" conflicts with 'h1', which is not a router: only a router forwards packets; set router = true in its table",
        ),
        (
            "[hosts.r1]\nrouter = true\n[hosts.r2]\n",
            "[hosts.r1]\nrouter = true\n[hosts.r2]\nroutes = [{ to = \"h2\", via = \"r1\" }]\n",
            "s.toml:4: hosts.h1.routes: a route loop from 'h1' to 'h2': h1 - r1 - r2 - r1; correct the 'via' of one of these hosts, or remove it for the shortest path",
        ),
        (
            "to = \"h2\", via",
            "to = \"h5\", via",
            "s.toml:4: hosts.h1.routes.to: unknown host 'h5', did you mean 'h1'?; hosts: h1, r1, r2, h3, h2, h4",
        ),
        (
            "to = \"h2\", via",
            "to = \"h1\", via",
            "s.toml:4: hosts.h1.routes.to = \"h1\": expected another host than the one with the route",
        ),
        (
            "to = \"h2\", via",
            "to = \"h2\", gateway",
            "s.toml:4: unknown key 'gateway' in hosts.h1.routes, did you mean 'via'?; keys here: to, via, at",
        ),
        (
            "[{ to = \"h2\", via = \"r1\" }]",
            "[{ to = \"h2\", via = \"r1\" }, { to = \"h2\", via = \"r1\" }]",
            "s.toml:4: hosts.h1.routes: the route to h2 is set twice, here and above it",
        ),
        (
            "[{ to = \"h2\", via = \"r1\" }]",
            "[{ to = \"h2\", via = \"r1\", at = \"5s\" }, { to = \"h2\", via = \"r1\", at = \"5000ms\" }]",
            "s.toml:4: hosts.h1.routes: the route to h2 is set twice, here and above it",
        ),
        (
            "via = \"r1\" }]",
            "via = \"r1\", at = \"25h\" }]",
            "s.toml:4: hosts.h1.routes.at = \"25h\": expected a time up to 24h, such as \"5s\" or 0",
        ),
        (
            "[hosts.r1]\n",
            "[hosts.r1]\nroutes = [{ to = \"h2\", via = \"r2\" }, { to = \"h2\", via = \"h1\", at = \"5s\" }]\n",
            "s.toml:6: hosts.r1.routes.via = \"h1\" conflicts with 'h1', which is not a router: only a router forwards packets; set router = true in its table",
        ),
        (
            "[hosts.r1]\nrouter = true\n[hosts.r2]\n",
            "[hosts.r1]\nrouter = true\n[hosts.r2]\nroutes = [{ to = \"h2\", via = \"h2\" }, { to = \"h2\", via = \"r1\", at = \"5s\" }]\n",
            "s.toml:4: hosts.h1.routes: a route loop from 'h1' to 'h2': h1 - r1 - r2 - r1; correct the 'via' of one of these hosts, or remove it for the shortest path",
        ),
        (
            "[{ to = \"h2\", via = \"r1\" }]",
            "\"r1\"",
            "s.toml:4: hosts.h1.routes = \"r1\": expected a list such as [{ to = \"far\", via = \"r1\" }]",
        ),
        (
            "start = \"5s\"",
            "start = 86401",
            "s.toml:28: flow.1.start = 86401: expected a time up to 24h after the earliest start of flows, such as \"5s\" or 0",
        ),
        ("\"tcp-connect\"", "\"icmp\"", "s.toml:2: probe = \"icmp\": expected \"udp\" or \"tcp-connect\""),
        (
            "from = \"h1\"\nto = \"h2\"\n[[flow]]",
            "from = \"h1\"\nto = \"h2\"\nbackground = true\n[[flow]]\nbackground = true",
            "s.toml:25: flow.0.background = true: expected false for at least one flow: not all flows can be background",
        ),
        // The narrowest link of the way decides.
        (
            "start = \"5s\"",
            "mss = 1461",
            "s.toml:28: flow.1.mss = 1461: expected bytes from 88 to 1460 (MTU 1500 minus 40 of headers), or \"default\"",
        ),
    ] {
        assert!(DUMBBELL.contains(old), "{old}");
        let text = DUMBBELL.replacen(old, new, 1);
        assert_eq!(error(&text), expected, "\n{text}");
    }
}
