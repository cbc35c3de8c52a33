//! A connection in each link layer and tunnel that is read.

/// How a packet of IP is wrapped.
pub struct Format {
    pub name: &'static str,
    pub link_type: u16,
    /// Whether tshark reads it too, with its defaults.
    pub tshark: bool,
    pub wrap: fn(&[u8]) -> Vec<u8>,
}

const fn format(name: &'static str, link_type: u16, wrap: fn(&[u8]) -> Vec<u8>) -> Format {
    Format { name, link_type, tshark: true, wrap }
}

/// One that tshark 4.0 does not read.
const fn ours(name: &'static str, link_type: u16, wrap: fn(&[u8]) -> Vec<u8>) -> Format {
    Format { name, link_type, tshark: false, wrap }
}

pub const FORMATS: &[Format] = &[
    format("raw", 101, <[u8]>::to_vec),
    format("BSD loopback", 0, |ip| join(&[&(if is_v6(ip) { 30_u32 } else { 2 }).to_le_bytes(), ip])),
    format("OpenBSD loopback", 108, |ip| join(&[&(if is_v6(ip) { 24_u32 } else { 2 }).to_be_bytes(), ip])),
    format("Ethernet", 1, |ip| ethernet(&typed(ip))),
    format("Ethernet with a trailer", 1, |ip| join(&[&ethernet(&typed(ip)), &[0x5a; 12]])),
    format("802.1Q", 1, |ip| ethernet(&join(&[&[0x81, 0, 0, 7], &typed(ip)]))),
    format("802.1ad", 1, |ip| ethernet(&join(&[&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9], &typed(ip)]))),
    format("802.1BR", 1, |ip| ethernet(&join(&[&[0x89, 0x3f, 0, 1, 0, 2, 0, 0], &typed(ip)]))),
    format("VN-Tag", 1, |ip| ethernet(&join(&[&[0x89, 0x26, 0, 1, 0, 2], &typed(ip)]))),
    format("Cisco metadata", 1, |ip| ethernet(&join(&[&[0x89, 0x09, 1, 1, 0, 1, 0, 5], &typed(ip)]))),
    format("802.1ah", 1, |ip| ethernet(&join(&[&[0x88, 0xe7, 0, 0, 0, 5], &ethernet(&typed(ip))]))),
    format("MACsec in the clear", 1, |ip| {
        let ip = typed(ip);
        ethernet(&join(&[&[0x88, 0xe5, 0x20, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 1], &ip, &[0; 16]]))
    }),
    format("802.3 with SNAP", 1, |ip| {
        let data = snap(ip);
        ethernet(&join(&[&(data.len() as u16).to_be_bytes(), &data]))
    }),
    format("MPLS", 1, |ip| ethernet(&join(&[&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], ip]))),
    format("PPPoE", 1, |ip| {
        let ppp = ppp(ip);
        ethernet(&join(&[&[0x88, 0x64, 0x11, 0, 0, 1], &(ppp.len() as u16).to_be_bytes(), &ppp]))
    }),
    format("PPPoE session", 51, |ip| {
        let ppp = ppp(ip);
        join(&[&[0x11, 0, 0, 1], &(ppp.len() as u16).to_be_bytes(), &ppp])
    }),
    format("PPP", 9, |ip| join(&[&[0xff, 3], &ppp(ip)])),
    format("PPP in HDLC", 50, |ip| join(&[&[0xff, 3], &ppp(ip)])),
    format("PPP with a direction", 204, |ip| join(&[&[1, 0xff, 3], &ppp(ip)])),
    ours("PPP of pppd", 166, |ip| join(&[&[0, 3], &ppp(ip)])),
    ours("MPLS alone", 219, |ip| join(&[&[0, 1, 0, 64, 0, 2, 1, 64], ip])),
    ours("SLIP", 8, |ip| join(&[&[1; 16], ip])),
    ours("IPNET", 226, |ip| join(&[&[1, 2, 0, 0, 0, 0, 0, 1], &[0; 16], ip])),
    format("ERF", 197, |ip| {
        let frame = ethernet(&typed(ip));
        let (record, wire) = (frame.len() as u16 + 18, frame.len() as u16);
        join(&[&[0; 8], &[2, 4], &record.to_be_bytes(), &[0; 2], &wire.to_be_bytes(), &[0; 2], &frame])
    }),
    ours("ERF with an extension", 197, |ip| {
        let frame = ethernet(&typed(ip));
        join(&[&[0; 8], &[0x82, 4, 0, 0, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0], &[0; 2], &frame])
    }),
    format("Cisco HDLC", 104, |ip| join(&[&[0x0f, 0], &typed(ip)])),
    ours("Cisco HDLC with a direction", 205, |ip| join(&[&[0, 0x0f, 0], &typed(ip)])),
    format("Frame Relay", 107, |ip| join(&[&[0x18, 0x41, 3, if is_v6(ip) { 0x8e } else { 0xcc }], ip])),
    ours("Frame Relay with a direction", 206, |ip| join(&[&[0, 0x18, 0x41], &typed(ip)])),
    format("Token Ring", 6, |ip| {
        let route = [0x86, 0x30, 0, 0x11, 0, 0x20];
        join(&[&[0x10, 0x40], &[2; 6], &[0x82, 2, 2, 2, 2, 3], &route, &snap(ip)])
    }),
    format("FDDI", 10, |ip| join(&[&[0x50], &[2; 12], &snap(ip)])),
    format("ATM", 100, snap),
    format("IP over Fibre Channel", 122, |ip| join(&[&[1; 16], &snap(ip)])),
    format("IP over FireWire", 138, |ip| join(&[&[1; 16], &typed(ip)])),
    format("IP over InfiniBand", 242, |ip| join(&[&[1; 40], &typed(ip)[..2], &[0; 2], ip])),
    format("Linux cooked", 113, |ip| join(&[&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &typed(ip)])),
    format("Linux cooked, version 2", 276, |ip| {
        join(&[&typed(ip)[..2], &[0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], ip])
    }),
    format("OpenBSD enc", 109, |ip| {
        join(&[&(if is_v6(ip) { 24_u32 } else { 2 }).to_le_bytes(), &[0; 8], ip])
    }),
    format("OpenBSD pflog", 117, |ip| {
        join(&[&[61, if is_v6(ip) { 24 } else { 2 }, 0, 0], b"em0\0", &[0; 56], ip])
    }),
    format("NFLOG", 239, |ip| nflog(ip, u16::to_le_bytes)),
    ours("NFLOG of a big-endian host", 239, |ip| nflog(ip, u16::to_be_bytes)),
    format("PKTAP of Ethernet", 258, |ip| pktap(1, &ethernet(&typed(ip)))),
    ours("PKTAP as user 2", 149, |ip| pktap(12, ip)),
    format("802.11 from the access point", 105, |ip| join(&[&[0x08, 0x02], &wlan(), &snap(ip)])),
    format("802.11 QoS", 105, |ip| join(&[&[0x88, 0x01], &wlan(), &[0, 0], &snap(ip)])),
    format("802.11 QoS with HT control", 105, |ip| {
        join(&[&[0x88, 0x81], &wlan(), &[0, 0], &[0; 4], &snap(ip)])
    }),
    format("802.11 of four addresses", 105, |ip| join(&[&[0x08, 0x03], &wlan(), &[2; 6], &snap(ip)])),
    format("802.11 A-MSDU", 105, |ip| {
        let data = snap(ip);
        let length = (data.len() as u16).to_be_bytes();
        join(&[&[0x88, 0x02], &wlan(), &[0x80, 0], &[2; 12], &length, &data])
    }),
    ours("802.11 decrypted by the device", 105, |ip| {
        join(&[&[0x08, 0x42], &wlan(), &[1, 2, 0, 0x20, 0, 0, 0, 0], &snap(ip)])
    }),
    format("radiotap", 127, |ip| {
        // Two words of fields, a time, padding behind the header of 26 bytes.
        let head = [0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0x20];
        join(&[&head, &[0x88, 0x01], &wlan(), &[0, 0, 0, 0], &snap(ip)])
    }),
    format("PPI", 192, |ip| {
        let field = join(&[&[2, 0, 20, 0], &[0; 20]]);
        join(&[&[0, 0, 32, 0, 105, 0, 0, 0], &field, &[0x08, 0x01], &wlan(), &snap(ip)])
    }),
    format("PPI of Ethernet", 192, |ip| join(&[&[0, 0, 8, 0, 1, 0, 0, 0], &ethernet(&typed(ip))])),
    format("Prism", 119, |ip| {
        let head = join(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], b"wlan0", &[0; 131]]);
        join(&[&head, &[0x08, 0x02], &wlan(), &snap(ip)])
    }),
    format("AVS", 163, |ip| {
        join(&[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64], &[0; 56], &[0x08, 0x02], &wlan(), &snap(ip)])
    }),
    format("IP in IP", 101, |ip| outer(if is_v6(ip) { 41 } else { 4 }, ip)),
    format("IPv6 around", 101, |ip| {
        let head = [0x60, 0, 0, 0, (ip.len() >> 8) as u8, ip.len() as u8, if is_v6(ip) { 41 } else { 4 }, 64];
        join(&[&head, &[0xfd; 32], ip])
    }),
    format("authentication header", 101, |ip| {
        let next = if is_v6(ip) { 41 } else { 4 };
        outer(51, &join(&[&[next, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], &[7; 12], ip]))
    }),
    format("GRE", 101, |ip| outer(47, &join(&[&[0x30, 0], &typed(ip)[..2], &[0, 0, 0, 5, 0, 0, 0, 6], ip]))),
    format("GRE of Ethernet", 101, |ip| outer(47, &join(&[&[0, 0, 0x65, 0x58], &ethernet(&typed(ip))]))),
    format("PPTP", 101, |ip| {
        let ppp = join(&[&[0xff, 3], &ppp(ip)]);
        let length = (ppp.len() as u16).to_be_bytes();
        outer(47, &join(&[&[0x30, 0x81, 0x88, 0x0b], &length, &[0, 1, 0, 0, 0, 1, 0, 0, 0, 2], &ppp]))
    }),
    format("WCCP", 101, |ip| match is_v6(ip) {
        // It redirects IPv4 alone.
        true => ip.to_vec(),
        false => outer(47, &join(&[&[0, 0, 0x88, 0x3e, 1, 2, 3, 4], ip])),
    }),
    format("ERSPAN I", 101, |ip| outer(47, &join(&[&[0, 0, 0x88, 0xbe], &ethernet(&typed(ip))]))),
    format("ERSPAN II", 101, |ip| {
        let head = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 7, 0, 1, 0, 0, 0, 3];
        outer(47, &join(&[&head, &ethernet(&typed(ip))]))
    }),
    format("ERSPAN III", 101, |ip| {
        let head = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 3, 0, 0, 0x80, 0];
        outer(47, &join(&[&head, &ethernet(&typed(ip))]))
    }),
    format("ERSPAN III with its platform", 101, |ip| {
        let head = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 3, 0, 0, 0x80, 1];
        outer(47, &join(&[&head, &[0x0c, 0, 0, 0, 0, 0, 0, 0], &ethernet(&typed(ip))]))
    }),
    format("EtherIP", 101, |ip| outer(97, &join(&[&[0x30, 0], &ethernet(&typed(ip))]))),
    format("MPLS in IP", 101, |ip| outer(137, &join(&[&[0, 2, 1, 64], ip]))),
    format("VXLAN", 101, |ip| udp(4789, &join(&[&[8, 0, 0, 0, 0, 0, 5, 0], &ethernet(&typed(ip))]))),
    ours("VXLAN at Linux's port", 101, |ip| {
        udp(8472, &join(&[&[8, 0, 0, 0, 0, 0, 5, 0], &ethernet(&typed(ip))]))
    }),
    format("VXLAN-GPE", 101, |ip| {
        udp(4790, &join(&[&[0x0c, 0, 0, if is_v6(ip) { 2 } else { 1 }, 0, 0, 5, 0], ip]))
    }),
    format("Geneve", 101, |ip| {
        let head = [2, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 3, 1, 1, 0, 0, 0, 9];
        udp(6081, &join(&[&head, &ethernet(&typed(ip))]))
    }),
    format("Geneve of IP", 101, |ip| udp(6081, &join(&[&[0, 0], &typed(ip)[..2], &[0, 0, 5, 0], ip]))),
    format("GTP-U", 101, |ip| gtp(0x30, &[], ip)),
    format("GTP-U with numbers", 101, |ip| gtp(0x32, &[0, 9, 0, 0], ip)),
    format("GTP-U with extension headers", 101, |ip| {
        // A container of PDU sessions, and a number of PDCP.
        gtp(0x34, &[0, 0, 0, 0x85, 1, 0x10, 5, 0xc0, 1, 0, 7, 0], ip)
    }),
    format("L2TP", 101, |ip| {
        let ppp = join(&[&[0xff, 3], &ppp(ip)]);
        let length = (ppp.len() as u16 + 8).to_be_bytes();
        udp(1701, &join(&[&[0x40, 2], &length, &[0, 1, 0, 2], &ppp]))
    }),
    ours("MPLS in UDP", 101, |ip| udp(6635, &join(&[&[0, 2, 1, 64], ip]))),
    format("TZSP", 101, |ip| udp(37008, &join(&[&[1, 0, 0, 1, 10, 1, 0xc8, 1], &ethernet(&typed(ip))]))),
];

pub fn is_v6(ip: &[u8]) -> bool {
    ip[0] >> 4 == 6
}

pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// With its Ethernet type.
fn typed(ip: &[u8]) -> Vec<u8> {
    join(&[if is_v6(ip) { &[0x86, 0xdd] } else { &[8, 0] }, ip])
}

pub fn ethernet(typed: &[u8]) -> Vec<u8> {
    join(&[&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], typed])
}

pub fn snap(ip: &[u8]) -> Vec<u8> {
    join(&[&[0xaa, 0xaa, 3, 0, 0, 0], &typed(ip)])
}

fn ppp(ip: &[u8]) -> Vec<u8> {
    join(&[&[0, if is_v6(ip) { 0x57 } else { 0x21 }], ip])
}

/// What follows frame control up to the fourth address.
pub fn wlan() -> Vec<u8> {
    join(&[&[0x2c, 0], &[2; 6], &[6; 6], &[10; 6], &[0x10, 0]])
}

fn nflog(ip: &[u8], half: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let kind = if is_v6(ip) { [0x86, 0xdd] } else { [8, 0] };
    let header = join(&[&half(8), &half(1), &kind, &[1, 0]]);
    let prefix = join(&[&half(7), &half(10), b"in\0\0"]);
    let payload = join(&[&half(ip.len() as u16 + 4), &half(9), ip]);
    join(&[&[if is_v6(ip) { 10 } else { 2 }, 0, 0, 1], &header, &prefix, &payload])
}

fn pktap(link_type: u32, frame: &[u8]) -> Vec<u8> {
    let words = [108, 1, link_type].map(u32::to_le_bytes).concat();
    join(&[&words, b"en0", &[0; 93], frame])
}

/// In another packet of IPv4.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16 + 20).to_be_bytes();
    let addresses = [198, 51, 100, 1, 198, 51, 100, 2];
    join(&[&[0x45, 0], &length, &[0, 0, 0x40, 0, 64, protocol, 0, 0], &addresses, payload])
}

pub fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16 + 8).to_be_bytes();
    outer(17, &join(&[&50_000_u16.to_be_bytes(), &port.to_be_bytes(), &length, &[0; 2], payload]))
}

fn gtp(flags: u8, more: &[u8], ip: &[u8]) -> Vec<u8> {
    let length = ((more.len() + ip.len()) as u16).to_be_bytes();
    udp(2152, &join(&[&[flags, 255], &length, &[0, 0, 0, 5], more, ip]))
}

/// A connection from its handshake to its end, as packets of either IP.
pub fn connection(is_v6: bool) -> Vec<Vec<u8>> {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const PSH: u8 = 8;
    const ACK: u8 = 16;
    [
        (false, 1_000, 0, SYN, 0),
        (true, 5_000, 1_001, SYN | ACK, 0),
        (false, 1_001, 5_001, ACK, 0),
        (false, 1_001, 5_001, PSH | ACK, 100),
        (true, 5_001, 1_101, ACK, 0),
        (true, 5_001, 1_101, PSH | ACK, 37),
        (false, 1_101, 5_038, FIN | ACK, 0),
        (true, 5_038, 1_102, FIN | ACK, 0),
        (false, 1_102, 5_039, ACK, 0),
    ]
    .map(|(is_answer, seq, ack, flags, payload)| segment(is_v6, is_answer, [seq, ack], flags, payload))
    .to_vec()
}

fn segment(is_v6: bool, is_answer: bool, [seq, ack]: [u32; 2], flags: u8, payload: u16) -> Vec<u8> {
    let (ports, hosts) = if is_answer { ([80_u16, 40_000], [2, 1]) } else { ([40_000, 80], [1, 2]) };
    let tcp = join(&[
        &ports.map(u16::to_be_bytes).concat(),
        &[seq, ack].map(u32::to_be_bytes).concat(),
        &[0x50, flags, 0xff, 0xff, 0, 0, 0, 0],
        &vec![b'x'; usize::from(payload)],
    ]);
    let length = tcp.len() as u16;
    if is_v6 {
        let address = |host| join(&[&[0x20, 1, 0x0d, 0xb8], &[0; 11], &[host]]);
        let head = join(&[&[0x60, 0, 0, 0], &length.to_be_bytes(), &[6, 64]]);
        return join(&[&head, &address(hosts[0]), &address(hosts[1]), &tcp]);
    }
    let address = |host| [192, 0, 2, host];
    let head = join(&[&[0x45, 0], &(length + 20).to_be_bytes(), &[0, 0, 0x40, 0, 64, 6, 0, 0]]);
    join(&[&head, &address(hosts[0]), &address(hosts[1]), &tcp])
}
