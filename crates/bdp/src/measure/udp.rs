//! `-u`: datagrams instead of connections.

use std::str::FromStr;

use bdp_model::flow::udp::{RateSearch, UdpRequest};
use bdp_model::units::{ByteCount, Nanos, Probability, Rate};
use bdp_wire::datagram::LONGEST_DATAGRAM;

use crate::arguments::seconds;
use crate::{exit, help};

/// How datagrams are sent.
#[derive(clap::Args)]
pub struct UdpArgs {
    /// Send UDP datagrams, at the rate that -b gives
    #[arg(short = 'u', long, help_heading = help::TRAFFIC)]
    udp: bool,

    /// Payload rate of each stream, as 100M; 0 is unlimited; with -u, auto searches the highest rate without loss
    #[arg(short = 'b', long, visible_alias = "bandwidth", value_name = "RATE", help_heading = help::TRAFFIC)]
    bitrate: Option<Asked>,

    /// With -b auto, loss that a trial may have, as 0.1% [default: 0]
    #[arg(long, value_name = "RATIO", help_heading = help::TRAFFIC, hide_short_help = true)]
    loss_ratio: Option<Probability>,

    /// With -b auto, time of each trial [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = help::TRAFFIC, hide_short_help = true)]
    trial_time: Option<Nanos>,

    /// With -u, keep to the rate of -b whatever is lost, on any path
    #[arg(long, help_heading = help::TRAFFIC, hide_short_help = true)]
    flood: bool,

    /// With -u, forbid fragmentation of datagrams
    #[arg(long, help_heading = help::TRAFFIC, hide_short_help = true)]
    dont_fragment: bool,
}

/// A requested rate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    /// Unlimited.
    Unbounded,
    /// A given rate.
    Rate(Rate),
    /// The rate that the path carries.
    Search,
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Search);
        }
        if text == "0" {
            return Ok(Self::Unbounded);
        }
        if let Some((rate, burst)) = text.split_once('/') {
            return Err(format!(
                "iperf3 sends {burst} datagrams in a burst by that; -b {rate} sends them evenly, which bdp does always"
            ));
        }
        let rate: Rate = text.parse().map_err(|e: bdp_model::UnitError| e.to_string())?;
        Ok(if rate.as_bps() == 0 { Self::Unbounded } else { Self::Rate(rate) })
    }
}

impl UdpArgs {
    /// The requested rate, if it is a number.
    pub fn rate(&self) -> Option<Rate> {
        match self.bitrate {
            Some(Asked::Rate(rate)) => Some(rate),
            _ => None,
        }
    }

    /// Whether datagrams are requested.
    pub fn is_asked(&self) -> bool {
        self.udp
    }

    /// Whether the rate stays as requested, whatever is lost.
    pub fn may_flood(&self) -> bool {
        self.flood
    }

    /// Pacing rate of each connection, bit/s; `None` for datagrams, or without a limit.
    pub fn pacing_bps(&self) -> Option<u64> {
        match self.bitrate? {
            Asked::Rate(rate) if !self.udp => Some(rate.as_bps()),
            _ => None,
        }
    }

    /// The datagram request; `None` for connections. `least_bytes` is the protocol's header in each datagram.
    pub fn request(&self, length: Option<ByteCount>, least_bytes: u32) -> anyhow::Result<Option<UdpRequest>> {
        if !self.udp {
            let of_udp = [
                (self.bitrate == Some(Asked::Search), "-b auto"),
                (self.dont_fragment, "--dont-fragment"),
                (self.flood, "--flood"),
                (self.loss_ratio.is_some(), "--loss-ratio"),
                (self.trial_time.is_some(), "--trial-time"),
            ];
            return match of_udp.iter().find(|(given, _)| *given) {
                Some((_, flag)) => Err(exit::usage(format!("{flag} needs -u; give both, or leave it out"))),
                None => Ok(None),
            };
        }
        let Some(asked) = self.bitrate else {
            return Err(exit::usage(
                "-u needs a rate: -b 100M, -b 0 for unlimited, or -b auto for the highest without loss",
            ));
        };
        let of_search =
            [(self.loss_ratio.is_some(), "--loss-ratio"), (self.trial_time.is_some(), "--trial-time")];
        if let Some((_, flag)) = of_search.iter().find(|(given, _)| *given && asked != Asked::Search) {
            return Err(exit::usage(format!("{flag} needs -b auto; give both, or leave it out")));
        }
        let datagram_bytes = length.map(|length| match u32::try_from(length.as_bytes()) {
            Ok(bytes) if (least_bytes..=LONGEST_DATAGRAM).contains(&bytes) => Ok(bytes),
            _ => Err(exit::usage(format!(
                "-l {length} is not a datagram's payload: {least_bytes} bytes hold its number and time, \
                 {LONGEST_DATAGRAM} are the most"
            ))),
        });
        Ok(Some(UdpRequest {
            rate_bps: match asked {
                Asked::Unbounded | Asked::Search => None,
                Asked::Rate(rate) => Some(rate.as_bps()),
            },
            search: (asked == Asked::Search).then(|| RateSearch {
                loss_ratio: self.loss_ratio.map_or(0.0, Probability::fraction),
                trial: self.trial_time.unwrap_or(RateSearch::usual_trial()),
            }),
            datagram_bytes: datagram_bytes.transpose()?,
            dont_fragment: self.dont_fragment,
        }))
    }
}
