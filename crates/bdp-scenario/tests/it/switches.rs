//! Several hosts on one segment.

use super::*;

const THREE: &str = "title = 't'\n[[switch]]\nname = 's1'\nhosts = ['a', 'b', 'c']\nrate = '100M'\ndelay = '50us'\n\
                     [[flow]]\nfrom = 'a'\nto = 'c'\n[[flow]]\nfrom = 'b'\nto = 'c'\n";

#[test]
fn a_switch_is_a_host_that_forwards_with_a_link_for_each_host() {
    let case = plan(THREE).remove(0);
    let between: Vec<String> = case.links.iter().map(|link| link.between.join("-")).collect();
    assert_eq!(between, ["a-s1", "b-s1", "c-s1"]);
    assert!(case.links.iter().all(|link| link.config.forward.rate == Some(Rate::mbps(100))));
    let routers: Vec<&str> =
        case.hosts.iter().filter(|host| host.router).map(|host| host.name.as_str()).collect();
    assert_eq!(routers, ["s1"]);
    let switches: Vec<bool> = case.hosts.iter().map(|host| host.switch).collect();
    assert_eq!(switches, case.hosts.iter().map(|host| host.router).collect::<Vec<_>>());
    let routed = plan(
        &THREE
            .replace(
                "[[switch]]\nname = 's1'\nhosts = ['a', 'b', 'c']",
                "[hosts.s1]\nrouter = true\n[[link]]\nbetween = ['a', 's1']",
            )
            .replace("from = 'a'\nto = 'c'\n[[flow]]\nfrom = 'b'\nto = 'c'", "from = 'a'\nto = 's1'"),
    );
    assert!(routed[0].hosts.iter().any(|host| host.router && !host.switch));
    let route = bdp_model::case::route::Route::of(&case, &case.flows[0]).unwrap();
    assert_eq!((route.length(), route.delay()), (2, Nanos::micros(200)));
}

#[test]
fn switches_and_links_stand_beside_each_other() {
    let text = THREE.replacen("[[switch]]", "[link]\nbetween = ['s1', 'far']\ndelay = '20ms'\n[[switch]]", 1)
        + "[[flow]]\nfrom = 'a'\nto = 'far'\n[sweep]\nlink.delay = ['1ms', '2ms']\n";
    let cases = plan(&text);
    assert_eq!((cases.len(), cases[0].links.len()), (2, 4));
    assert!(cases[1].links.iter().all(|link| link.config.forward.delay == Nanos::millis(2)));
}

#[test]
fn mistakes_are_shown_in_one_line() {
    for (old, new, expected) in [
        ("name = 's1'\n", "", "switch.name"),
        ("hosts = ['a', 'b', 'c']\n", "", "switch.hosts"),
        ("['a', 'b', 'c']", "['a']", "switch.hosts = a list of 1: expected the names of 2 to 250 hosts"),
        ("['a', 'b', 'c']", "['a', 'a']", "switch.hosts = \"a\": expected the names"),
        ("['a', 'b', 'c']", "['a', 's1']", "two different hosts"),
        ("rate = '100M'", "rte = '100M'", "unknown key 'rte' in [[link]], did you mean 'rate'?"),
        (
            "[[flow]]",
            "[hosts.s1]\ncongestion = 'cubic'\n[[flow]]",
            "unknown key 'congestion' in [hosts.s1], which is a switch",
        ),
    ] {
        let found = error(&THREE.replacen(old, new, 1));
        assert!(found.contains(expected) && !found.contains('\n'), "{found}\n{expected}");
    }
}
