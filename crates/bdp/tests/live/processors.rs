//! `--cpu`: the threads that do the work are where they were put, at both ends and by every protocol.

use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::support::inside::alone;
use crate::support::serving::{free_port, serve};
use crate::support::untested::skip;
use crate::support::{Bench, start};

/// The processor time after which those that move the flow have used more than all others.
const ENOUGH: Duration = Duration::from_millis(100);
/// How long that may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// From one look to the next.
const LOOK: Duration = Duration::from_millis(50);

/// Options of a flow of two streams, and whether the server can be told processors by that protocol.
const FLOWS: [(&str, bool); 8] = [
    ("-u -b 100M --forward", true),
    ("-u -b 100M -R", true),
    ("-u -b 100M --bidir", true),
    ("--iperf3 -u -b 100M --forward", false),
    ("--iperf3 -u -b 100M -R", false),
    ("--iperf2 -u -b 100M --forward", false),
    ("--iperf2 -u -b 100M -R", false),
    ("-b 400M --bidir", true),
];

#[test]
fn threads_that_move_a_flow_are_kept_to_the_processor_that_was_named() {
    alone(|| {
        let allowed = allowed_to_this_test();
        let &[first, .., last] = allowed.as_slice() else {
            return skip("this machine has one processor");
        };
        let bench = Bench::new();
        for (flow, both_ends) in FLOWS {
            let iperf2 = free_port();
            let server = serve(&bench, &format!("--iperf2-port {iperf2}"));
            let port = if flow.contains("--iperf2") { iperf2 } else { server.port };
            // Each end has one of its own, so that neither is there by chance at both.
            let cpus = if both_ends { format!("{first}/{last}") } else { first.to_string() };
            let line =
                format!("measure 127.0.0.1:{port} {flow} -P 2 --cpu {cpus} -t 40 --idle 0.2 --json-stream");
            let mut client = start(bench.bdp(&line));
            let moves = |out: &str| {
                ["to", "from", "both"].iter().any(|s| out.contains(&format!("\"stage\":\"{s}\"")))
            };
            client.wait_until("data flows", |p| moves(&p.out()));
            assert_kept(client.pid(), first, flow);
            if both_ends {
                assert_kept(server.process.pid(), last, &format!("the server of {flow}"));
            }
            println!("{flow} ... kept");
        }
    });
}

/// Two threads at least may run on that processor alone, and these have most of the time that the process uses.
#[track_caller]
fn assert_kept(pid: u32, cpu: usize, what: &str) {
    let before = threads(pid);
    let since = Instant::now();
    loop {
        thread::sleep(LOOK);
        let used = |thread: &Thread| {
            before
                .iter()
                .find(|b| b.number == thread.number)
                .map_or(0, |b| thread.ran_ns.saturating_sub(b.ran_ns))
        };
        let after = threads(pid);
        let (kept, free): (Vec<&Thread>, Vec<&Thread>) =
            after.iter().partition(|thread| thread.allowed == cpu.to_string());
        let [by_kept, by_free] = [&kept, &free].map(|threads| threads.iter().map(|t| used(t)).sum::<u64>());
        let seen = format!(
            "{what}: within {:?} {} threads kept to {cpu} ran for {by_kept} ns, {} others for {by_free} ns",
            since.elapsed(),
            kept.len(),
            free.len()
        );
        if u128::from(by_kept + by_free) >= ENOUGH.as_nanos() {
            assert!(kept.len() >= 2 && by_kept > by_free, "{seen}");
            println!("{seen}");
            return;
        }
        assert!(since.elapsed() < DEADLINE, "{seen}");
    }
}

struct Thread {
    number: u32,
    /// Processors as the kernel lists them.
    allowed: String,
    ran_ns: u64,
}

fn threads(pid: u32) -> Vec<Thread> {
    let folder = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let read = |entry: fs::DirEntry| {
        let file = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
        Some(Thread {
            number: entry.file_name().to_str()?.parse().ok()?,
            allowed: allowed_in(&file("status")?)?,
            ran_ns: file("schedstat")?.split(' ').next()?.parse().ok()?,
        })
    };
    // One that ends just now is none.
    folder.flatten().filter_map(read).collect()
}

fn allowed_in(status: &str) -> Option<String> {
    Some(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned())
}

/// Processors that this test, and with it what it starts, may use.
fn allowed_to_this_test() -> Vec<usize> {
    let listed = allowed_in(&fs::read_to_string("/proc/self/status").unwrap()).unwrap();
    let parts = listed.split(',').map(|part| part.split_once('-').unwrap_or((part, part)));
    parts.flat_map(|(from, to)| from.parse::<usize>().unwrap()..=to.parse().unwrap()).collect()
}
