//! `bdp calc overhead`.

use bdp_model::Rate;
use bdp_model::case::Family;
use bdp_model::path::overhead::{Medium, Transport, header_bytes, payload_bytes, payload_share};
use serde_json::json;

use super::answer::{Answer, positive};
use super::table::{columns, digits};
use crate::absurd;

pub const AFTER_HELP: &str = "\
Formula: goodput = rate x payload / (MTU + bytes added by the medium), all packets full-size.
Ethernet adds 38 bytes: preamble 8, header 14, checksum 4, gap 12 (IEEE 802.3); a VLAN tag adds 4;
loopback adds none. Headers: IPv4 20 (RFC 791), IPv6 40 (RFC 8200), TCP 20 (RFC 9293) and 12 with
timestamps (RFC 7323), UDP 8 (RFC 768). IPv6 needs an MTU of 1280.

Example: bdp calc overhead --mtu 1500 --rate 1G
         Ethernet, IPv4, TCP with timestamps: 941.48 Mbit/s";

/// Arguments of `bdp calc overhead`.
#[derive(clap::Args)]
pub struct OverheadArgs {
    /// Largest IP packet in bytes
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = clap::value_parser!(u64).range(68..=65535))]
    mtu: u64,

    /// Rate of the link
    #[arg(long, default_value = "1G", value_parser = positive::<Rate>)]
    rate: Rate,
}

impl OverheadArgs {
    /// Calculates the table of goodputs by medium and headers.
    pub fn answer(self) -> Answer {
        absurd::note_rate("--rate", Some(self.rate));
        let mut rows =
            vec![["medium", "headers", "payload", "on the wire", "share", "Mbit/s"].map(str::to_owned)];
        let mut cases = Vec::new();
        for medium in Medium::ALL {
            for family in [Family::Ipv4, Family::Ipv6] {
                for transport in Transport::ALL {
                    let payload = payload_bytes(self.mtu, family, transport);
                    let share = payload_share(self.mtu, medium, family, transport);
                    let goodput_bps = share.map(|share| share * self.rate.as_bps() as f64);
                    let wire_bytes = self.mtu + medium.overhead_bytes();
                    rows.push([
                        medium.name().to_owned(),
                        format!("{}, {}", family_name(family), transport.name()),
                        or_dash(payload, |bytes| format!("{bytes} B")),
                        format!("{wire_bytes} B"),
                        or_dash(share, |share| format!("{:.3} %", share * 100.0)),
                        or_dash(goodput_bps, |bps| digits(bps / 1e6, 5)),
                    ]);
                    cases.push(json!({
                        "medium": medium_id(medium),
                        "family": family,
                        "transport": transport_id(transport),
                        "header_bytes": header_bytes(family, transport),
                        "payload_bytes": payload,
                        "wire_bytes": wire_bytes,
                        "share": share,
                        "goodput_bps": goodput_bps,
                    }));
                }
            }
        }
        Answer {
            text: columns(&rows, &[2, 3, 4, 5]),
            json: json!({"mtu_bytes": self.mtu, "rate_bps": self.rate.as_bps(), "cases": cases}),
        }
    }
}

/// A cell that may be empty: an MTU that leaves no room has no payload.
fn or_dash<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), print)
}

fn family_name(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "IPv4",
        Family::Ipv6 => "IPv6",
    }
}

fn medium_id(medium: Medium) -> &'static str {
    match medium {
        Medium::Ethernet => "ethernet",
        Medium::EthernetVlan => "ethernet_vlan",
        Medium::Loopback => "loopback",
    }
}

fn transport_id(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "tcp",
        Transport::TcpTimestamps => "tcp_timestamps",
        Transport::Udp => "udp",
    }
}
