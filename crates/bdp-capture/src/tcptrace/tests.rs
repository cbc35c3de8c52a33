use std::net::Ipv4Addr;

use super::*;
use crate::flows::Frame;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
const URG: u8 = 32;
const RAW: u16 = 101;

/// A segment to be sent by one of two ends.
struct Sends<'a> {
    from_b: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    window: u16,
    payload: usize,
    options: &'a [u8],
}

fn data(seq: u32, payload: usize) -> Sends<'static> {
    Sends { from_b: false, flags: ACK, seq, ack: 9_001, window: 500, payload, options: &[] }
}

fn ack(ack: u32) -> Sends<'static> {
    Sends { from_b: true, flags: ACK, seq: 9_001, ack, window: 700, payload: 0, options: &[] }
}

fn bytes(sends: &Sends<'_>, identification: u16) -> Vec<u8> {
    let (ports, hosts) = if sends.from_b { ([80_u16, 4_000], [2, 1]) } else { ([4_000, 80], [1, 2]) };
    let header = 20 + sends.options.len();
    let mut out = vec![0x45, 0];
    out.extend(((20 + header + sends.payload) as u16).to_be_bytes());
    out.extend(identification.to_be_bytes());
    out.extend([0x40, 0, 64, 6, 0, 0]);
    hosts.iter().for_each(|&host| out.extend(Ipv4Addr::new(192, 0, 2, host).octets()));
    ports.iter().for_each(|port| out.extend(port.to_be_bytes()));
    out.extend(sends.seq.to_be_bytes());
    out.extend(sends.ack.to_be_bytes());
    out.extend([(header as u8 / 4) << 4, sends.flags]);
    out.extend(sends.window.to_be_bytes());
    // Checksum and urgent pointer.
    out.extend([0, 0, 0, 7]);
    out.extend(sends.options);
    out.resize(out.len() + sends.payload, 0);
    out
}

/// A capture with a limit on the bytes per packet.
struct Lab {
    trace: TcpTrace,
    identification: u16,
    kept: usize,
}

impl Lab {
    fn new() -> Self {
        Self { trace: TcpTrace::default().named("lab.pcapng"), identification: 0, kept: 64 }
    }

    fn send(&mut self, at_us: u64, sends: Sends<'_>) {
        self.identification += 1;
        self.send_again(at_us, &sends);
    }

    /// Adds an exact copy of a packet.
    fn send_again(&mut self, at_us: u64, sends: &Sends<'_>) {
        let packet = bytes(sends, self.identification);
        let kept = packet.len().min(self.kept);
        self.trace.frame(&Frame {
            at_ns: Some(1_767_225_600_000_000_000 + at_us * 1_000 + 999),
            link_type: RAW,
            length: packet.len() as u32,
            data: &packet[..kept],
        });
    }

    /// Adds the handshake, which takes 10 ms, with window scales 7 and 8.
    fn open() -> Self {
        let mut lab = Self::new();
        let syn = |from_b, flags, seq, ack, options| Sends {
            from_b,
            flags,
            seq,
            ack,
            window: 60_000,
            payload: 0,
            options,
        };
        lab.send(0, syn(false, SYN, 1_000, 0, &[2, 4, 5, 180, 4, 2, 1, 1, 1, 3, 3, 7]));
        lab.send(10_000, syn(true, SYN | ACK, 9_000, 1_001, &[2, 4, 5, 180, 4, 2, 1, 1, 1, 3, 3, 8]));
        lab.send(10_000, data(1_001, 0));
        lab
    }

    fn fields(self) -> Vec<Field> {
        self.trace.connections().remove(0).fields()
    }
}

fn of<'a>(fields: &'a [Field], name: &str) -> [&'a str; 2] {
    let field = fields.iter().find(|field| field.name == name).unwrap_or_else(|| panic!("no {name}"));
    [&field.values[0], &field.values[1]]
}

#[test]
fn a_connection_with_a_loss_is_counted_by_direction() {
    let mut lab = Lab::open();
    for i in 0..5 {
        lab.send(20_000 + u64::from(i) * 1_000, data(1_001 + i * 1_000, 1_000));
    }
    lab.send(30_000, ack(2_001));
    // The second one is lost.
    (0..3).for_each(|i| lab.send(32_000 + i * 1_000, Sends { options: &SACK, ..ack(2_001) }));
    lab.send(40_000, data(2_001, 1_000));
    lab.send(50_000, ack(6_001));
    lab.send(60_000, Sends { flags: FIN | ACK | PSH, ..data(6_001, 500) });
    lab.send(70_000, Sends { flags: FIN | ACK, ..ack(6_502) });
    lab.send(80_000, Sends { ack: 9_002, ..data(6_502, 0) });
    let fields = lab.fields();
    for (name, a, b) in [
        ("total packets", "10", "7"),
        ("ack pkts sent", "9", "7"),
        ("pure acks sent", "2", "5"),
        ("sack pkts sent", "0", "3"),
        ("max sack blks/ack", "0", "1"),
        ("dsack pkts sent", "0", "0"),
        ("unique bytes sent", "5500", "0"),
        ("actual data pkts", "7", "0"),
        ("actual data bytes", "6500", "0"),
        ("rexmt data pkts", "1", "0"),
        ("rexmt data bytes", "1000", "0"),
        ("pushed data pkts", "1", "0"),
        ("SYN/FIN pkts sent", "1/1", "1/1"),
        ("req 1323 ws/ts", "Y/N", "Y/N"),
        ("adv wind scale", "7", "8"),
        ("req sack", "Y", "Y"),
        ("mss requested", "1460", "1460"),
        ("max segm size", "1000", "0"),
        ("min segm size", "500", "0"),
        ("avg segm size", "928", "0"),
        ("max win adv", "64000", "179200"),
        ("avg win adv", "64000", "179200"),
        ("max owin", "5000", "0"),
        ("min non-zero owin", "500", "0"),
        ("ttl stream length", "5500", "0"),
        ("missed data", "0", "0"),
        ("data xmit time", "0.040", "0.000"),
        ("idletime max", "20.0", "20.0"),
        ("throughput", "68750", "0"),
        ("RTT samples", "3", "2"),
        ("RTT min", "10.0", "0.0"),
        ("RTT max", "10.0", "10.0"),
        ("RTT from 3WHS", "10.0", "0.0"),
        ("RTT full_sz smpls", "1", "0"),
        ("post-loss acks", "1", "0"),
        ("segs cum acked", "3", "0"),
        ("duplicate acks", "3", "0"),
        ("triple dupacks", "1", "0"),
        ("max # retrans", "1", "0"),
        ("min retr time", "19.0", "0.0"),
    ] {
        assert_eq!(of(&fields, name), [a, b], "{name}");
    }
    assert!(fields.iter().all(|field| field.name != "resets sent" && field.name != "hardware dups"));
}

/// Block from 3001 to 6001, after two bytes of padding.
const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 11, 185, 0, 0, 23, 113];

#[test]
fn what_was_kept_and_what_is_urgent_is_told_of_the_payload() {
    let mut lab = Lab::open();
    lab.send(20_000, Sends { flags: ACK | URG, ..data(1_001, 100) });
    lab.send(21_000, data(1_101, 20));
    lab.send_again(21_001, &data(1_101, 20));
    let fields = lab.fields();
    assert_eq!(of(&fields, "urgent data pkts"), ["1", "0"]);
    assert_eq!(of(&fields, "urgent data bytes"), ["7", "0"]);
    assert_eq!(of(&fields, "truncated data"), ["76", "0"]);
    assert_eq!(of(&fields, "truncated packets"), ["1", "0"]);
    assert_eq!(of(&fields, "hardware dups"), ["1", "0"]);
    assert_eq!(of(&fields, "initial window"), ["120", "0"]);
}

#[test]
fn a_closed_window_makes_probes_of_what_is_sent() {
    let mut lab = Lab::open();
    lab.send(20_000, Sends { window: 0, ..ack(1_001) });
    lab.send(30_000, data(1_001, 1));
    lab.send(40_000, ack(1_001));
    lab.send(50_000, data(1_001, 200));
    let fields = lab.fields();
    assert_eq!(of(&fields, "zero win adv"), ["0", "1"]);
    assert_eq!(of(&fields, "zwnd probe pkts"), ["1", "0"]);
    assert_eq!(of(&fields, "zwnd probe bytes"), ["1", "0"]);
    assert_eq!(of(&fields, "unique bytes sent"), ["200", "0"]);
    assert_eq!(of(&fields, "avg win adv"), ["64000", "89600"]);
    assert_eq!(of(&fields, "min win adv"), ["64000", "179200"]);
    assert_eq!(of(&fields, "ttl stream length"), ["NA", "NA"]);
}

#[test]
fn a_reset_ends_a_connection_and_no_window_of_it_counts() {
    let mut lab = Lab::open();
    lab.send(20_000, data(1_001, 100));
    lab.send(30_000, Sends { flags: RST, window: 0, ack: 0, ..ack(0) });
    lab.send(30_000_000, Sends { flags: SYN, ..data(77_000, 0) });
    let text = lab.trace.text();
    assert!(text.contains("2 TCP connections traced:"), "{text}");
    assert!(text.contains("complete conn: RESET\t(SYNs: 2)  (FINs: 0)"), "{text}");
    assert!(
        text.contains("     idletime max:           10.0 ms        idletime max:           20.0 ms"),
        "{text}"
    );
    assert!(text.contains("\thost c:        192.0.2.1:4000\n\thost d:        192.0.2.2:80\n"), "{text}");
    assert!(
        text.contains("     zero win adv:              0 times     zero win adv:              0 times"),
        "{text}"
    );
}

#[test]
fn a_text_has_the_layout_of_tcptrace() {
    let mut lab = Lab::open();
    lab.send(20_000, data(1_001, 1_448));
    lab.send(30_500, ack(2_449));
    let text = lab.trace.text();
    let begins = "5 packets seen, 5 TCP packets traced\n\
        trace file elapsed time: 0:00:00.030500\n\
        TCP connection info:\n\
        1 TCP connection traced:\n\
        TCP connection 1:\n\
        \thost a:        192.0.2.1:4000\n\
        \thost b:        192.0.2.2:80\n\
        \tcomplete conn: no\t(SYNs: 2)  (FINs: 0)\n\
        \tfirst packet:  Thu Jan  1 00:00:00.000000 2026\n\
        \tlast packet:   Thu Jan  1 00:00:00.030500 2026\n\
        \telapsed time:  0:00:00.030500\n\
        \ttotal packets: 5\n\
        \tfilename:      lab.pcapng\n   \
           a->b:\t\t\t      b->a:\n     \
             total packets:             3           total packets:             2      \n     \
             ack pkts sent:             2           ack pkts sent:             2      \n";
    assert!(text.starts_with(begins), "{text}");
    let round_trips = "\n     RTT samples:               2           RTT samples:               1      \n     \
             RTT min:                10.0 ms        RTT min:                 0.0 ms   \n";
    assert!(text.contains(round_trips), "{text}");
    assert!(TcpTrace::default().text().ends_with("no traced TCP packets\n"));
}

#[test]
fn connections_are_no_more_than_asked_for() {
    let mut lab = Lab::open();
    let trace = TcpTrace { most: Some(1), ..std::mem::take(&mut lab.trace) };
    lab.trace = trace;
    lab.send(20_000, Sends { flags: SYN, ..data(77_000, 0) });
    assert_eq!((lab.trace.connections.len(), lab.trace.left_out), (1, 1));
}

proptest::proptest! {
    #[test]
    fn no_packets_make_it_panic(
        packets in proptest::collection::vec((0_u64..1 << 40, 0_u8..2, 0_u8..64, 0_u32.., 0_u32.., 0_u16.., 0_usize..3), 0..64),
    ) {
        let mut lab = Lab::new();
        for (at_us, from_b, flags, seq, ack, window, payload) in packets {
            let options = if flags & SYN != 0 { &[3, 3, 255, 0][..] } else { &SACK };
            lab.send(at_us, Sends { from_b: from_b == 1, flags, seq, ack, window, payload, options });
        }
        let text = lab.trace.text();
        proptest::prop_assert!(text.is_ascii());
    }
}
