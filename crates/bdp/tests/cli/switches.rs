//! Switches count no hop, by either clock, in steps, and where their kernel has to cut a packet. A router between counts one.

use std::collections::BTreeSet;
use std::fs;

use crate::support::guests::guests_boot;
use crate::support::machine::shared_lab;
use crate::support::{Bench, start};
use bdp_pcap::{Block, blocks};

/// Hops that are left to a packet which has just been sent, by Linux and smoltcp alike.
const SENT: u8 = 64;

fn behind_a_switch(top: &str) -> String {
    format!(
        "title = 't'\nidle = '100ms'\n{top}\n[hosts.r]\nrouter = true\n\
         [[switch]]\nname = 's'\nhosts = ['a', 'b', 'r']\nrate = '50M'\ndelay = '1ms'\ncapture = 'both'\n\
         [[link]]\nbetween = ['c', 's']\nrate = '2G'\ndelay = '1ms'\ncapture = 'both'\n\
         [[link]]\nbetween = ['r', 'd']\nrate = '50M'\ndelay = '1ms'\ncapture = 'both'\n\
         [[flow]]\nfrom = 'a'\nto = 'b'\nbytes = '200K'\nomit = 0\n\
         [[flow]]\nfrom = 'c'\nto = 'a'\nbytes = '200K'\nomit = 0\n\
         [[flow]]\nfrom = 'd'\nto = 'b'\nbytes = '200K'\nomit = 0\n"
    )
}

/// Hops left to the packets of flows that a run captured at both ends of each link, by the name of the file.
fn hops_left(top: &str) -> Vec<(String, BTreeSet<u8>)> {
    let bench = Bench::new();
    bench.write("switch.toml", behind_a_switch(top));
    let ended =
        start(bench.bdp("lab run switch.toml --attempts 1 --store none --json --capture seen")).wait();
    let document = ended.json();
    let case = &document["cases"][0];
    assert_eq!(case["error"], serde_json::Value::Null, "{}", ended.err);
    let captures = case["captures"].as_array().unwrap().iter();
    let files: Vec<_> = captures.map(|capture| capture["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(files.len(), 10, "{}", ended.err);
    let left = files.into_iter().map(|file| {
        let bytes = fs::read(bench.path(&file)).unwrap();
        let left = blocks(&bytes).filter_map(|block| match block.unwrap() {
            Block::Packet { data, comments, .. } if !comments.iter().any(|c| c.contains("not_ours")) => {
                Some(data[if data[0] >> 4 == 4 { 8 } else { 7 }])
            }
            _ => None,
        });
        let left = left.collect();
        (file, left)
    });
    left.collect()
}

fn assert_counted_by_the_router_alone(top: &str) {
    for (file, left) in hops_left(top) {
        // The flow from d and its acknowledgements cross the router: in its links, and from there on to b.
        let crosses = ["link1-", "link3-", "link4-"].iter().any(|link| file.contains(link));
        let expected = if crosses { vec![SENT - 1, SENT] } else { vec![SENT] };
        assert_eq!(left.into_iter().collect::<Vec<_>>(), expected, "{top} {file}");
    }
}

#[test]
fn a_switch_counts_no_hop_by_the_virtual_clock() {
    if guests_boot(&Bench::new()) {
        assert_counted_by_the_router_alone("clock = 'virtual'");
        assert_counted_by_the_router_alone("clock = 'virtual'\nfamily = 'ipv6'");
    }
}

#[test]
fn a_switch_counts_no_hop_in_steps() {
    assert_counted_by_the_router_alone("clock = 'virtual'\nstack = 'smoltcp'");
}

#[test]
fn a_switch_counts_no_hop_by_the_real_clock() {
    if let Some(_lab) = shared_lab() {
        assert_counted_by_the_router_alone("");
    }
}
