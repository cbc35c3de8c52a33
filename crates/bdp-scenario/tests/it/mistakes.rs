//! What is said about a file that is wrong.

use super::*;

/// Each: what to replace in [`BASE`] (or to append, where it is empty), by what, and the whole message.
#[test]
fn are_shown_with_line_found_and_expected() {
    for (old, new, expected) in [
        (
            "delay =",
            "dealy =",
            "s.toml:7: unknown key 'dealy' in [[link]], did you mean 'delay'?; keys here: between, rate, delay, loss, limit, queue, queue_samples, overhead, jitter, reorder, outage, duplicate, corrupt, drop_above, policer, ecn_threshold, window_field_max, window_scale, profile, mtu, half_duplex, delivery, forward, reverse, capture, capture_snap",
        ),
        (
            "delay =",
            "rtt =",
            "s.toml:7: unknown key 'rtt' in [[link]], did you mean 'delay' (one-way: half the RTT)?; keys here: between, rate, delay, loss, limit, queue, queue_samples, overhead, jitter, reorder, outage, duplicate, corrupt, drop_above, policer, ecn_threshold, window_field_max, window_scale, profile, mtu, half_duplex, delivery, forward, reverse, capture, capture_snap",
        ),
        (
            "\"20ms\"",
            "3601",
            "s.toml:7: link.delay = 3601: expected a one-way delay up to 1h, such as \"20.5ms\" (per direction; the RTT is the sum of both)",
        ),
        (
            "\"20ms\"",
            "\"20parsec\"",
            "s.toml:7: link.delay: '20parsec' is not a time: unknown unit 'parsec', for example 41ms, 2.5ms, 50us or 10s; seconds if no unit is given; expected a one-way delay up to 1h, such as \"20.5ms\" (per direction; the RTT is the sum of both)",
        ),
        (
            "\"100M\"",
            "\"0\"",
            "s.toml:6: link.rate = \"0\": expected a bit rate above 0, such as \"100M\", or \"none\"",
        ),
        (
            "\"100M\"",
            "\"100MB/s\"",
            "s.toml:6: link.rate: '100MB/s' is not a rate: unknown unit 'MB/s', for example 10M, 2.5Gbit/s or 64kbit; expected a bit rate above 0, such as \"100M\", or \"none\"",
        ),
        (
            "\"20ms\"",
            "\"20ms\"\ncapture = \"all\"",
            "s.toml:8: link.capture = \"all\": expected \"near\" (the first host, 'near'), \"far\" (the second, 'far'), \"both\" or \"none\"",
        ),
        (
            "\"20ms\"",
            "\"20ms\"\ncapture_snap = 40",
            "s.toml:8: link.capture_snap = 40: expected bytes of each packet to keep in a capture, 64 to 65535",
        ),
        (
            "to = \"far\"",
            "to = \"fra\"",
            "s.toml:10: flow.to: unknown host 'fra', did you mean 'far'?; hosts: near, far",
        ),
        (
            "to = \"far\"",
            "to = \"near\"",
            "s.toml:10: flow: no path from 'near' to 'near'; connect them by links and routers (near - far)",
        ),
        (
            "[\"near\", \"far\"]",
            "[\"near\"]",
            "s.toml:5: link.between = a list of 1: expected two different hosts, such as [\"near\", \"far\"]",
        ),
        (
            "between = [\"near\", \"far\"]\n",
            "",
            "s.toml:4: link.between is missing: two different hosts, such as [\"near\", \"far\"]",
        ),
        (
            "[hosts.near]",
            "[hosts.'..']",
            "s.toml:2: hosts = [hosts...]: expected a host name: 1 to 32 letters, digits, '-' or '_', a letter first",
        ),
        (
            "[hosts.near]",
            "[hosts.near]\nsysctls = { \"vm.swappiness\" = 1 }",
            "s.toml:3: hosts.near.sysctls.vm.swappiness = 1: expected a sysctl of the host's own network namespace, such as net.ipv4.tcp_window_scaling",
        ),
        (
            "[hosts.near]",
            "[hosts.near]\nsysctls = { \"net.../../x\" = 1 }",
            "s.toml:3: hosts.near.sysctls.net.../../x = 1: expected a sysctl of the host's own network namespace, such as net.ipv4.tcp_window_scaling",
        ),
        ("title = \"t\"", "title = 5", "s.toml:1: title = 5: expected one line of 1 to 200 characters"),
        (
            "title = \"t\"",
            "name = \"t\"",
            "s.toml:1: unknown key 'name' in the file, did you mean 'title' (the scenario's name is the file's)?; keys here: title, about, source, clock, stack, family, seed, repetitions, idle, probe, hosts, link, switch, flow, traffic, sweep, point, published, expect",
        ),
        ("title = \"t\"", "", "s.toml: title is missing: a one-line description of the scenario"),
        (
            "title = \"t\"",
            "title = \"t\"\nrepetitions = 0",
            "s.toml:2: repetitions = 0: expected a whole number, 1 to 10000",
        ),
        (
            "title = \"t\"",
            "title = \"t\"\nfamily = \"ipx\"",
            "s.toml:2: family = \"ipx\": expected \"ipv4\" or \"ipv6\"",
        ),
        (
            "title = \"t\"",
            "title = ",
            "s.toml:1: not TOML: string values must be quoted, expected literal string",
        ),
        (
            "[[flow]]\nfrom = \"near\"\nto = \"far\"\n",
            "",
            "s.toml: [[flow]] is missing: write [[flow]] with from = \"near\" and to = \"far\"",
        ),
        ("", "streams = 0\n", "s.toml:11: flow.streams = 0: expected a number of connections, 1 to 10000"),
        (
            "",
            "omit = \"10s\"\n",
            "s.toml:11: flow.omit = \"10s\" conflicts with a duration of 10 s: omit must be shorter than the duration",
        ),
        (
            "",
            "duration = \"1s\"\n",
            "s.toml:11: flow.duration = \"1s\" conflicts with an omit of 2 s: omit must be shorter than the duration",
        ),
        (
            "",
            "mss = 87\n",
            "s.toml:11: flow.mss = 87: expected bytes from 88 to 1460 (MTU 1500 minus 40 of headers), or \"default\"",
        ),
        (
            "",
            "mss = 1461\n",
            "s.toml:11: flow.mss = 1461: expected bytes from 88 to 1460 (MTU 1500 minus 40 of headers), or \"default\"",
        ),
        (
            "",
            "window = \"2G\"\n",
            "s.toml:11: flow.window = \"2G\": expected bytes on the wire from 1 to 1073725440, such as \"64K\", or \"auto\"",
        ),
        (
            "",
            "window = [1]\n",
            "s.toml:11: flow.window = a list of 1: expected bytes on the wire from 1 to 1073725440, such as \"64K\", or \"auto\"",
        ),
        (
            "",
            "congestion = \"../x\"\n",
            "s.toml:11: flow.congestion = \"../x\": expected the name of a congestion control, such as \"reno\", \"cubic\" or \"bbr\"",
        ),
        (
            "rate =",
            "mtu = 67\nrate =",
            "s.toml:6: link.mtu = 67: expected bytes of an IPv4 packet, 68 to 65535",
        ),
        (
            "rate =",
            "limit = 0\nrate =",
            "s.toml:6: link.limit = 0: expected packets such as 1000 or \"1000p\", wire bytes with a unit such as \"64KiB\", or \"none\"",
        ),
        (
            "rate =",
            "limit = \"1K\"\nrate =",
            "s.toml:6: link.forward.limit = \"1K\" conflicts with an MTU of 1500 and 38 bytes of overhead: no full-size packet would pass; use at least 1538 bytes",
        ),
        (
            "rate =",
            "loss = \"101%\"\nrate =",
            "s.toml:6: link.loss: '101%' is out of range for a fraction (0 to 100 %); expected a fraction such as \"5%\" or 0.05, { every = 1000 }, { packets = [3, 17] }, { to_bad = \"1%\", to_good = \"25%\" }, { good_for = \"10s\", bad_for = \"200ms\" }, { steps = [...] }, { ramp = [...] }, or \"none\"",
        ),
        (
            "rate =",
            "window_scale = 15\nrate =",
            "s.toml:6: link.window_scale = 15: expected \"strip\", a shift count from 0 to 14, or \"keep\"",
        ),
        (
            "[[flow]]",
            "[[link]]\nbetween = [\"far\", \"near\"]\n[[flow]]",
            "s.toml:8: link.1: a link between far and near is set twice, here and above it",
        ),
        (
            "",
            "[sweep]\nflow.window = []\n",
            "s.toml:12: flow.window = a list of 0: expected a list such as [\"30K\", \"64K\"], or a range such as { from = \"4K\", to = \"64M\", steps = 13, scale = \"log\" }",
        ),
        (
            "",
            "[sweep]\nflow.windw = ['1K']\n",
            "s.toml:12: sweep of flow.windw: unknown key 'windw' in [[flow]], did you mean 'window'?; keys here: from, to, direction, window, window_method, streams, length, mss, congestion, nodelay, zerocopy, start, start_spread, duration, bytes, omit, interval, background, protocol, rate, datagram, reader, writer, messages, unsent_limit, priority",
        ),
        (
            "",
            "[sweep]\nfow.window = ['1K']\n",
            "s.toml:12: sweep of fow.window: no parameter 'fow.window': it must start with one of flow, traffic, link, hosts, clock, stack, family, idle, probe, did you mean 'flow'?",
        ),
        (
            "",
            "[sweep]\nflow.window = [\n '1K',\n '1Z',\n]\n",
            "s.toml:14: sweep of flow.window: flow.window: '1Z' is not a size: unknown unit 'Z', for example 1448, 64K, 64KiB (both 65536) or 64kB (64000); expected bytes on the wire from 1 to 1073725440, such as \"64K\", or \"auto\"",
        ),
        (
            "",
            "[sweep]\nflow.omit = ['1s', '10s']\n",
            "s.toml:12: sweep of flow.omit: flow.omit = \"10s\" conflicts with a duration of 10 s: omit must be shorter than the duration",
        ),
        (
            "",
            "mss = 1400\n[sweep]\nlink.mtu = [1500, 1400]\n",
            "s.toml:11: in the case link.mtu=1400: flow.mss = 1400: expected bytes from 88 to 1360 (MTU 1400 minus 40 of headers), or \"default\"",
        ),
        (
            "",
            "[sweep]\nflow.window = ['1K', '1K']\n",
            "s.toml:12: sweep of flow.window: \"1K\" is set twice, here and in the same list",
        ),
        (
            "",
            "[sweep]\nflow.streams = { from = 1, to = 10000, step = 1 }\nflow.mss = { from = 100, to = 200, step = 1 }\n",
            "s.toml:11: 1010000 cases (1010000 points x 1 repetitions): at most 100000",
        ),
        ("", "mss = 1000\nmss = 1000\n", "s.toml:12: not TOML: duplicate key"),
        (
            "[[flow]]",
            "[link.forward]\ndelay = '1ms'\n[sweep]\nlink.delay = ['2ms']\n[[flow]]",
            "s.toml:11: sweep of link.delay: no parameter 'link.delay': link.forward.delay on line 9 would override it; set link.forward.delay and link.reverse.delay",
        ),
        (
            "",
            "[[point]]\npublished = '1M'\n",
            "s.toml:11: what the point sets is missing: at least one parameter, such as \"link.forward.delay\" = \"40ms\"",
        ),
        (
            "",
            "[[point]]\nflow.window = '1K'\n[sweep]\nflow.window = ['1K']\n",
            "s.toml:12: point: flow.window is set twice, here and in [sweep]",
        ),
        (
            "",
            "[expect]\nmodel_within = 0\n",
            "s.toml:12: expect.model_within = 0: expected a tolerance above 0, such as \"5%\"",
        ),
        (
            "",
            "[expect]\ngoodput_min = '2M'\ngoodput_max = '1M'\n",
            "s.toml:13: expect.goodput_max = \"1M\" conflicts with a goodput_min of 2 Mbit/s: the minimum must not exceed the maximum",
        ),
        (
            "",
            "[[expect]]\nwhen = { flow.window = '1K' }\n",
            "s.toml:12: no parameter 'flow.window': 'when' names it, but it is neither swept nor set in this file",
        ),
        (
            "",
            "[sweep]\nflow.window = ['1K']\n[[expect]]\nwhen = { flow.window = '2K..' }\n",
            "s.toml:13: no case matches this 'when', so [[expect]] never applies",
        ),
        (
            "",
            "[[traffic]]\nsize = '1K'\n",
            "s.toml:11: traffic.gap is missing: the time between two transfers, such as \"100ms\"",
        ),
        (
            "",
            "[[traffic]]\ngap = '1ms'\nsize = '1K'\n",
            "s.toml:12: traffic has 10000 transfers: at most 2000; use a longer gap or a shorter duration",
        ),
        (
            "",
            "[[traffic]]\npattern = 'poison'\ngap = '1s'\nsize = '1K'\n",
            "s.toml:12: traffic.pattern = \"poison\": expected \"poisson\" or \"periodic\" or \"on-off\" or \"request-response\"",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nsize = '1K'\n",
            "s.toml:11: traffic.think is missing: the mean time between an answer and the next request, such as \"500ms\"",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = '1s'\ngap = '1s'\nsize = '1K'\n",
            "s.toml:14: traffic.gap = \"1s\" conflicts with pattern = \"request-response\": that pattern has think, clients, request, connections",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = '1ms'\nclients = 200\nsize = '1K'\n",
            "s.toml:13: traffic has 2000000 transfers: at most 100000; use fewer clients, a longer think time or a shorter duration",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = '1s'\nclients = 201\nsize = '1K'\n",
            "s.toml:14: traffic.clients = 201: expected a whole number, 1 to 200",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = '1s'\nrequest = '15'\nsize = '1K'\n",
            "s.toml:14: traffic.request = \"15\": expected 16 bytes to 16M of a request, such as \"300\" or { exponential = \"2K\" }",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = '1s'\nrequest = { pareto = '8' }\nsize = '1K'\n",
            "s.toml:14: traffic.request.pareto = \"8\": expected 16 bytes to 16M of a request, such as \"300\" or { exponential = \"2K\" }",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = { fixed = '1s', exponential = '1s' }\nsize = '1K'\n",
            "s.toml:13: traffic.think = a table: expected a mean time such as \"500ms\", or { fixed = \"500ms\" }",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = { fixed = '0s' }\nsize = '1K'\n",
            "s.toml:13: traffic.think.fixed = \"0s\": expected a time up to 24h, such as \"100ms\"",
        ),
        (
            "",
            "[[traffic]]\npattern = 'on-off'\non = '1s'\noff = '1s'\nsize = '1K'\n",
            "s.toml:15: traffic.size = \"1K\" conflicts with pattern = \"on-off\": these transfers end by time; remove the size",
        ),
        (
            "",
            "[[traffic]]\npattern = 'request-response'\nthink = '1s'\nconnections = 'old'\nsize = '1K'\n",
            "s.toml:14: traffic.connections = \"old\": expected \"kept\" or \"new\"",
        ),
        (
            "",
            "[[traffic]]\ngap = '1s'\nsize = { pareto = '1K', shape = 1 }\n",
            "s.toml:13: traffic.size.shape = 1: expected a number above 1, up to 100, such as 1.2",
        ),
        (
            "",
            "[published]\ngoodput = '3M..2M'\n",
            "s.toml:12: published.goodput = \"3M..2M\": expected a bit rate such as \"2.77M\", or two such as \"5.57M..5.60M\"",
        ),
    ] {
        assert!(old.is_empty() || BASE.contains(old), "{old}");
        let text = if old.is_empty() { format!("{BASE}{new}") } else { BASE.replacen(old, new, 1) };
        assert_eq!(error(&text), expected, "\n{text}");
    }
}

#[test]
fn name_the_file_as_it_was_given() {
    let message = |name: &str| Scenario::parse(name, "x = 1").unwrap_err().to_string();
    assert!(message("s3-30k").starts_with("s3-30k.toml:1: "));
    assert!(message("./mine/My.toml").starts_with("./mine/My.toml:1: "));
    let found = Scenario::parse("s", "title = 't'\nlimk = 1").unwrap_err();
    assert_eq!(found.line, Some(2));
}

#[test]
fn length_is_bounded() {
    assert!(error(&"#".repeat(1 << 20)).contains("at most 262144 bytes"));
    let links: String = (0..1001).map(|i| format!("[[link]]\nbetween = ['a{i}', 'b']\n")).collect();
    assert!(
        error(&format!("title = 't'\n{links}[flow]\n")).contains("[[link]] has 1001 entries: at most 1000")
    );
    let links: String = (0..500).map(|i| format!("[[link]]\nbetween = ['a{i}', 'b']\n")).collect();
    let text = format!("title = 't'\nrepetitions = 999\n{links}[flow]\nfrom = 'b'\nto = 'a1'\n");
    let expected = "s.toml: the plan has 999 cases of 1002 hosts, links and flows: at most 1000000 in all";
    assert_eq!(error(&text), expected);
    assert!(error(&format!("title = 't'\nx = {}", "[".repeat(100_000))).starts_with("s.toml:2: not TOML"));
}
