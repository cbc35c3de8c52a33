//! What a scenario sets of a host's TCP is what its connections use, as captures and the kernel's own answers show.

use std::fs;

use bdp_pcap::{Block, Direction, blocks};
use serde_json::Value;

use crate::support::Bench;
use crate::support::machine::shared_lab;

/// A segment of a capture at the sender, which may be cut short behind its headers.
struct Segment {
    outbound: bool,
    flags: u8,
    acknowledges: u32,
    window: u16,
    /// Bytes of payload, by the length that IP states.
    payload: usize,
    options: Vec<u8>,
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

impl Segment {
    fn read(data: &[u8], outbound: bool) -> Option<Self> {
        let word = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
        // IP version 4 or 6: bytes of its header, of the packet, and what is in it.
        let (ip, length, protocol) = match data[0] >> 4 {
            4 => (usize::from(data[0] & 15) * 4, usize::from(word(2)), data[9]),
            _ => (40, 40 + usize::from(word(4)), data[6]),
        };
        if protocol != 6 {
            return None;
        }
        let tcp = usize::from(data[ip + 12] >> 4) * 4;
        Some(Self {
            outbound,
            flags: data[ip + 13],
            acknowledges: u32::from_be_bytes(data[ip + 8..ip + 12].try_into().unwrap()),
            window: word(ip + 14),
            payload: length - ip - tcp,
            options: data[ip + 20..ip + tcp].to_vec(),
        })
    }

    /// The value of an option (RFC 9293, 3.2), without kind and length.
    fn option(&self, wanted: u8) -> Option<&[u8]> {
        let mut rest = &self.options[..];
        loop {
            match rest {
                [0, ..] | [] => return None,
                [1, more @ ..] => rest = more,
                [kind, length, ..] => {
                    let (option, more) = rest.split_at(usize::from(*length));
                    if *kind == wanted {
                        return Some(&option[2..]);
                    }
                    rest = more;
                }
                [_] => panic!("a broken option"),
            }
        }
    }

    fn has(&self, option: u8) -> bool {
        self.option(option).is_some()
    }
}

const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const TIMESTAMPS: u8 = 8;

/// A flow between two hosts with these settings: its record, and what passed the sender.
struct Flow {
    case: Value,
    segments: Vec<Segment>,
}

impl Flow {
    fn run(bench: &Bench, near: &str, far: &str, flow: &str) -> Self {
        let text = format!(
            "title = \"t\"\nidle = 0\n[hosts.near]\n{near}\n[hosts.far]\n{far}\n[[link]]\nbetween = [\"near\", \"far\"]\n\
             rate = \"20M\"\ndelay = \"20ms\"\ncapture = \"near\"\ncapture_snap = 96\n\
             [[flow]]\nduration = \"600ms\"\nomit = 0\n{flow}\n"
        );
        Self::of(bench, &text)
    }

    /// Of a scenario whose first capture is the sender's.
    fn of(bench: &Bench, text: &str) -> Self {
        bench.write("set.toml", text);
        let ended = bench.run("lab run set.toml --attempts 1 --json");
        let case = ended.json()["cases"][0].clone();
        assert_eq!(case["error"], Value::Null, "{}", ended.err);
        let bytes = fs::read(bench.path(case["captures"][0]["path"].as_str().unwrap())).unwrap();
        let segments = blocks(&bytes)
            .filter_map(|block| match block.unwrap() {
                Block::Packet { direction, data, .. } => {
                    Segment::read(data, direction == Some(Direction::Outbound))
                }
                _ => None,
            })
            .collect();
        Self { case, segments }
    }

    fn syn(&self) -> &Segment {
        self.segments.iter().find(|s| s.outbound && s.flags & (SYN | ACK) == SYN).expect("a SYN")
    }

    fn syn_ack(&self) -> &Segment {
        self.segments.iter().find(|s| !s.outbound && s.flags & (SYN | ACK) == SYN | ACK).expect("a SYN-ACK")
    }

    /// Segments of data that the sender sent before the first of them was acknowledged.
    fn first_flight(&self) -> usize {
        let established = self.syn_ack();
        let first = self.segments.iter().find(|s| s.outbound && s.payload > 0).expect("data");
        let begin = self.segments.iter().find(|s| !s.outbound && s.flags & SYN == 0).map(|s| s.acknowledges);
        assert!(begin.is_some() && established.acknowledges != begin.unwrap() && first.payload > 0);
        self.segments
            .iter()
            .take_while(|s| s.outbound || s.flags & SYN != 0)
            .filter(|s| s.outbound && s.payload > 0)
            .count()
    }

    /// The largest window that the receiver offered, bytes.
    fn widest(&self) -> u64 {
        let shift = self.syn_ack().option(WINDOW_SCALE).map_or(0, |value| value[0]);
        let offered = self.segments.iter().filter(|s| !s.outbound && s.flags & SYN == 0);
        offered.map(|s| u64::from(s.window) << shift).max().expect("an acknowledgement")
    }

    fn sysctl(&self, host: &str, name: &str) -> &str {
        self.case["environment"]["sysctls"][host][name].as_str().unwrap_or_else(|| panic!("{host} {name}"))
    }
}

#[test]
fn options_of_tcp_are_offered_as_the_hosts_are_set() {
    let Some(_lab) = shared_lab() else { return };
    let bench = Bench::new();
    let on = "sack = true\nwindow_scaling = true\ntimestamps = true\necn = \"on\"";
    let off = "sack = false\nwindow_scaling = false\ntimestamps = false\necn = \"off\"";

    let both = Flow::run(&bench, on, on, "");
    for segment in [both.syn(), both.syn_ack()] {
        assert!([WINDOW_SCALE, SACK_PERMITTED, TIMESTAMPS].iter().all(|&option| segment.has(option)));
    }
    assert_eq!(both.syn().flags & (ECE | CWR), ECE | CWR, "ECN is asked for");
    assert_eq!(both.syn_ack().flags & (ECE | CWR), ECE, "ECN is granted");
    assert_eq!(both.case["flows"][0]["sender_window_scaling"], true);
    assert_eq!(both.case["flows"][0]["mss_bytes"], 1448);

    let neither = Flow::run(&bench, off, on, "");
    for segment in [neither.syn(), neither.syn_ack()] {
        assert!(![WINDOW_SCALE, SACK_PERMITTED, TIMESTAMPS].iter().any(|&option| segment.has(option)));
        assert_eq!(segment.flags & (ECE | CWR), 0);
    }
    assert_eq!(neither.case["flows"][0]["sender_window_scaling"], false);
    assert_eq!(neither.case["flows"][0]["mss_bytes"], 1460);
    assert_eq!(neither.sysctl("near", "net.ipv4.tcp_sack"), "0");
    assert_eq!(neither.sysctl("far", "net.ipv4.tcp_sack"), "1");

    // A passive host grants what it does not ask for.
    let granted = Flow::run(&bench, "ecn = \"on\"", "ecn = \"passive\"", "");
    assert_eq!(granted.syn_ack().flags & (ECE | CWR), ECE);
    let asked = Flow::run(&bench, "ecn = \"passive\"", "ecn = \"on\"", "");
    assert_eq!(asked.syn().flags & (ECE | CWR), 0);
}

#[test]
fn the_first_flight_is_the_initial_window() {
    let Some(_lab) = shared_lab() else { return };
    let bench = Bench::new();
    for (near, segments) in [("", 10), ("initial_window = 3", 3), ("initial_window = 25", 25)] {
        assert_eq!(Flow::run(&bench, near, "", "").first_flight(), segments, "{near}");
    }
    // The receiver's own is of no consequence to the sender.
    assert_eq!(Flow::run(&bench, "", "initial_window = 3", "").first_flight(), 10);
}

#[test]
fn the_first_flight_is_the_initial_window_beyond_a_router_and_over_ipv6() {
    let Some(_lab) = shared_lab() else { return };
    let bench = Bench::new();
    let text = |family: &str| {
        format!(
            "title = \"t\"\nidle = 0\nfamily = \"{family}\"\n[hosts.near]\ninitial_window = 4\n[hosts.r]\nrouter = true\n\
             [[link]]\nbetween = [\"near\", \"r\"]\nrate = \"20M\"\ndelay = \"20ms\"\ncapture = \"near\"\ncapture_snap = 128\n\
             [[link]]\nbetween = [\"r\", \"far\"]\n[[flow]]\nfrom = \"near\"\nto = \"far\"\nduration = \"600ms\"\nomit = 0\n"
        )
    };
    for family in ["ipv4", "ipv6"] {
        assert_eq!(Flow::of(&bench, &text(family)).first_flight(), 4, "{family}");
    }
}

#[test]
fn buffers_bound_what_autotuning_reaches() {
    let Some(_lab) = shared_lab() else { return };
    let bench = Bench::new();
    let small = Flow::run(&bench, "send_buffer = \"256K\"", "receive_buffer = \"64K\"", "");
    assert_eq!(small.sysctl("near", "net.ipv4.tcp_wmem"), "4096 16384 262144");
    assert_eq!(small.sysctl("far", "net.ipv4.tcp_rmem"), "4096 65536 65536");
    assert!(small.widest() <= 65_536, "{}", small.widest());
    assert!(small.case["flows"][0]["send_buffer_bytes"].as_u64().unwrap() <= 262_144);
    let usual = Flow::run(&bench, "", "", "");
    assert!(usual.widest() > 65_536, "{}", usual.widest());
}

#[test]
fn a_window_and_a_receive_buffer_contradict_each_other() {
    let bench = Bench::new();
    let link = "[[link]]\nbetween = [\"near\", \"far\"]\n[[flow]]\nwindow = \"64K\"\n";
    bench.write("twice.toml", format!("title = \"t\"\n[hosts.far]\nreceive_buffer = \"64K\"\n{link}"));
    let Some(_lab) = shared_lab() else { return };
    let ended = bench.run("lab run twice.toml");
    assert!(ended.err.contains("receive_buffer); remove one of them"), "{}", ended.err);
}

#[test]
fn a_congestion_control_that_this_kernel_lacks_is_had_by_the_virtual_clock() {
    let Some(_lab) = shared_lab() else { return };
    let bench = Bench::new();
    let link = "[[link]]\nbetween = [\"near\", \"far\"]\n[[flow]]\ncongestion = \"no-such\"\n";
    bench.write("lacking.toml", format!("title = \"t\"\nidle = 0\n{link}"));
    let ended = bench.run("lab run lacking.toml --json");
    let error = ended.json()["cases"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("not available in this kernel; available: "), "{error}");
    assert!(error.ends_with("; guest kernels ('--clock virtual') have all of them"), "{error}");
}
