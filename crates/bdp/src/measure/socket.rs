//! The socket flags of a measurement, for `bdp measure` and each point of `bdp sweep HOST`.

use bdp_model::flow::FlowSpec;
use bdp_model::flow::socket::{SocketNumbers, SocketOption};
use bdp_model::measurement::MeasureRequest;
use bdp_model::units::ByteCount;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::{exit, help};

/// All flags here, which `bdp sweep --in` refuses. clap forms the group of a struct only from what it does not flatten.
const GROUP: &str = "SocketArgs";

/// Where packets leave, how they are marked, and what the sockets are set to.
#[derive(clap::Args)]
pub struct SocketArgs {
    /// Local address to send from, and the device after a percent sign: 192.0.2.7%eth0
    #[arg(group = GROUP, short = 'B', long, value_name = "ADDRESS", help_heading = help::ADDRESS, hide_short_help = true)]
    bind: Option<String>,

    /// Local device to send through, as eth0
    #[arg(group = GROUP, long, value_name = "DEVICE", help_heading = help::ADDRESS, hide_short_help = true)]
    bind_dev: Option<String>,

    /// Differentiated services code point: 0 to 63, or a name as ef, af41, cs1
    #[arg(group = GROUP, long, value_name = "DSCP", value_parser = dscp, help_heading = help::WINDOW, hide_short_help = true)]
    dscp: Option<u8>,

    /// Type of service as a whole byte, as in iperf3: 0x88 is --dscp af41
    #[arg(group = GROUP, short = 'S', long, value_name = "TOS", value_parser = tos, conflicts_with = "dscp", help_heading = help::WINDOW, hide_short_help = true)]
    tos: Option<u8>,

    /// Local port of the first data connection; the next ones count up
    #[arg(group = GROUP, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = help::ADDRESS, hide_short_help = true)]
    cport: Option<u16>,

    /// Socket buffers of both ends, as iperf3's -w
    #[arg(group = GROUP, long, value_name = "SIZE", help_heading = help::WINDOW, hide_short_help = true)]
    sockbuf: Option<ByteCount>,

    #[command(flatten)]
    numbers: NumberArgs,

    /// Send small segments at once (TCP_NODELAY)
    #[arg(group = GROUP, short = 'N', long = "nodelay", visible_alias = "no-delay", help_heading = help::WINDOW, hide_short_help = true)]
    nodelay: bool,
}

/// The options of [`SocketOption`], each with its flag.
struct NumberArgs(SocketNumbers);

impl Args for NumberArgs {
    fn augment_args(command: Command) -> Command {
        command.args(SocketOption::all().iter().map(|option| {
            Arg::new(option.flag)
                .long(option.flag.trim_start_matches('-'))
                .value_name(option.value_name())
                .value_parser(|text: &str| option.parse(text))
                .help(option.help)
                .help_heading(help::WINDOW)
                .hide_short_help(true)
                .group(GROUP)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for NumberArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(SocketNumbers::of(|option| matches.get_one(option.flag).copied())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl SocketArgs {
    /// Adds them to the request.
    pub fn apply(&self, request: MeasureRequest) -> anyhow::Result<MeasureRequest> {
        if self.sockbuf.is_some_and(|size| size.as_bytes() == 0) {
            return Err(exit::usage(
                "--sockbuf 0 leaves no buffer; give a size, or leave it out for autotuning",
            ));
        }
        let (address, device) = place(self.bind.as_deref(), self.bind_dev.as_deref())?;
        Ok(MeasureRequest {
            spec: FlowSpec {
                socket_buffer: self.sockbuf,
                nodelay: self.nodelay,
                dscp: self.dscp.or(self.tos),
                socket: self.numbers.0,
                ..request.spec
            },
            bind_address: address,
            bind_device: device,
            client_port: self.cport,
            ..request
        })
    }
}

/// Source address and device: `ADDR%DEV` gives both, as in iperf3. For a link-local address the device is its zone, and stays with it.
fn place(bind: Option<&str>, device: Option<&str>) -> anyhow::Result<(Option<String>, Option<String>)> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let is_zone = |address: &str| address.to_ascii_lowercase().starts_with("fe80:");
    match bind.and_then(|bind| bind.split_once('%')) {
        Some((address, _)) if is_zone(address) => Ok((owned(bind), owned(device))),
        Some((_, of_address)) if device.is_some_and(|device| device != of_address) => {
            Err(exit::usage(format!(
                "two devices were given, {of_address} by -B and {} by --bind-dev; leave one out",
                device.unwrap_or_default()
            )))
        }
        Some((address, of_address)) => {
            Ok((Some(address.to_owned()).filter(|a| !a.is_empty()), Some(of_address.to_owned())))
        }
        None => Ok((owned(bind), owned(device))),
    }
}

/// Parses a DSCP, by number or by its name in RFC 2474, 2597 or 3246.
pub fn dscp(text: &str) -> Result<u8, String> {
    let wrong = || format!("'{text}' is not a code point: 0 to 63, ef, cs0 to cs7, or af11 to af43");
    let name = text.to_ascii_lowercase();
    let number = |digits: &str, radix| u8::from_str_radix(digits, radix).ok();
    let value = if let Some(hex) = name.strip_prefix("0x") {
        number(hex, 16)
    } else if name == "ef" {
        Some(46)
    } else if let Some(class) = name.strip_prefix("cs") {
        number(class, 10).filter(|class| class <= &7).map(|class| class * 8)
    } else if let Some(af) = name.strip_prefix("af") {
        match af.as_bytes() {
            [class @ b'1'..=b'4', drop @ b'1'..=b'3'] => Some((class - b'0') * 8 + (drop - b'0') * 2),
            _ => None,
        }
    } else {
        number(&name, 10)
    };
    value.filter(|value| *value < 64).ok_or_else(wrong)
}

/// Parses the DSCP of a whole TOS byte, like iperf3's `-S`: decimal, `0x` hexadecimal or `0` octal.
fn tos(text: &str) -> Result<u8, String> {
    let value = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hex), _) => u8::from_str_radix(hex, 16),
        (_, Some(octal)) if !octal.is_empty() => u8::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    match value {
        Ok(byte) if byte & 3 == 0 => Ok(byte >> 2),
        Ok(_) => {
            Err(format!("'{text}' sets the two low bits, which belong to ECN; give a multiple of 4, as 0x88"))
        }
        Err(_) => {
            Err(format!("'{text}' is not a type of service: a multiple of 4 up to 252, as 136 or 0x88"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_and_device_in_one_word() {
        let placed = |bind, device| {
            let (address, device) = place(bind, device).unwrap();
            (address.unwrap_or_default(), device.unwrap_or_default())
        };
        let both = |address: &str, device: &str| (address.to_owned(), device.to_owned());
        assert_eq!(placed(Some("192.0.2.7%eth0"), None), both("192.0.2.7", "eth0"));
        assert_eq!(placed(Some("192.0.2.7"), Some("eth1")), both("192.0.2.7", "eth1"));
        assert_eq!(placed(Some("fe80::1%eth0"), None), both("fe80::1%eth0", ""));
        assert_eq!(placed(Some("%eth0"), None), both("", "eth0"));
        assert!(place(Some("192.0.2.7%eth0"), Some("eth1")).is_err());
    }

    #[test]
    fn code_points_by_number_and_by_name() {
        for (text, value) in [
            ("0", 0),
            ("63", 63),
            ("0x2e", 46),
            ("EF", 46),
            ("cs1", 8),
            ("CS7", 56),
            ("af11", 10),
            ("af43", 38),
        ] {
            assert_eq!(dscp(text), Ok(value), "{text}");
        }
        for (text, value) in [("0", 0), ("0x88", 34), ("136", 34), ("0210", 34), ("252", 63)] {
            assert_eq!(tos(text), Ok(value), "{text}");
        }
        for wrong in ["1", "0x89", "256", "-4", "ef", "", "0x"] {
            assert!(tos(wrong).is_err(), "{wrong}");
        }
        for wrong in ["64", "-1", "cs8", "af44", "af5", "af51", "best", "", "0xff"] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
    }
}
