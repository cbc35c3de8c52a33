//! `-u`: datagrams instead of connections.

use std::str::FromStr;

use bdp_model::udp::UdpRequest;
use bdp_model::units::{ByteCount, Rate};
use bdp_wire::datagram::{HEADER_BYTES, LONGEST_DATAGRAM};

use crate::exit;

/// How datagrams are sent.
#[derive(clap::Args)]
pub struct UdpArgs {
    /// Send UDP datagrams, at the rate that -b gives
    #[arg(short = 'u', long)]
    udp: bool,

    /// With -u, payload of each stream per second, as 100M; 0 is as fast as it goes
    #[arg(short = 'b', long, visible_alias = "bandwidth", value_name = "RATE")]
    bitrate: Option<Asked>,

    /// With -u, datagrams may not be fragmented
    #[arg(long)]
    dont_fragment: bool,
}

/// A rate as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    /// As fast as it goes.
    Unbounded,
    /// So fast.
    Rate(Rate),
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self::Unbounded);
        }
        let rate: Rate = text.parse().map_err(|e: bdp_model::UnitError| e.to_string())?;
        Ok(if rate.as_bps() == 0 { Self::Unbounded } else { Self::Rate(rate) })
    }
}

impl UdpArgs {
    /// Whether datagrams are asked for.
    pub fn is_asked(&self) -> bool {
        self.udp
    }

    /// What is asked for of datagrams; nothing where connections are.
    pub fn request(
        &self,
        length: Option<ByteCount>,
        window: Option<ByteCount>,
        mss: Option<u32>,
        congestion: Option<&str>,
    ) -> anyhow::Result<Option<UdpRequest>> {
        if !self.udp {
            return match (self.bitrate, self.dont_fragment) {
                (Some(_), _) => Err(exit::usage("-b is the rate of UDP: give -u too, or leave it out")),
                (_, true) => Err(exit::usage("--dont-fragment is of UDP: give -u too, or leave it out")),
                _ => Ok(None),
            };
        }
        let of_tcp = [(window.is_some(), "-w"), (mss.is_some(), "-M"), (congestion.is_some(), "-C")];
        if let Some((_, flag)) = of_tcp.into_iter().find(|(given, _)| *given) {
            return Err(exit::usage(format!("{flag} is of TCP, and -u asks for UDP; leave one of them out")));
        }
        let Some(asked) = self.bitrate else {
            return Err(exit::usage(
                "-u sends as fast as it is told to: give a rate, -b 100M, or -b 0 for as fast as it goes",
            ));
        };
        let datagram_bytes = length.map(|length| match u32::try_from(length.as_bytes()) {
            Ok(bytes) if (HEADER_BYTES as u32..=LONGEST_DATAGRAM).contains(&bytes) => Ok(bytes),
            _ => Err(exit::usage(format!(
                "-l {length} is no datagram's payload: {HEADER_BYTES} bytes hold its number and time, \
                 {LONGEST_DATAGRAM} are the most"
            ))),
        });
        Ok(Some(UdpRequest {
            rate_bps: match asked {
                Asked::Unbounded => None,
                Asked::Rate(rate) => Some(rate.as_bps()),
            },
            search: None,
            datagram_bytes: datagram_bytes.transpose()?,
            dont_fragment: self.dont_fragment,
        }))
    }
}
