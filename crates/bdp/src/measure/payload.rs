//! Flags for sending and receiving methods, and for checking each byte.

use bdp_model::flow::FlowSpec;
use bdp_model::flow::payload::{CpuList, Zerocopy};
use bdp_model::measurement::{MeasureRequest, Measurement};

use crate::{exit, help, output};

/// How bytes get to the kernel, whether each is checked, and on which processors.
#[derive(clap::Args)]
pub struct PayloadArgs {
    /// Way of bytes into the kernel: auto tries write and splice in its first moments and keeps the quicker
    #[arg(long, value_name = "HOW", value_enum, default_value_t = How::Auto, help_heading = help::TRAFFIC, hide_short_help = true)]
    zerocopy: How,

    /// Same as --zerocopy sendfile, as in iperf3
    #[arg(short = 'Z', conflicts_with = "zerocopy", help_heading = help::TRAFFIC, hide_short_help = true)]
    sendfile: bool,

    /// Send a known pattern and check every byte at the receiver; exit 1 if one is wrong
    #[arg(long, help_heading = help::TRAFFIC, hide_short_help = true)]
    check_payload: bool,

    /// Processors of this end's threads, and of HOST's after a slash: 0,2-3 or 0/1 or /1
    #[arg(long, value_name = "LIST[/LIST]", value_parser = places, help_heading = help::TRAFFIC, hide_short_help = true)]
    cpu: Option<Places>,

    /// The same as in iperf3: processors of this end's threads, and of HOST's after a comma
    #[arg(short = 'A', long, value_name = "N[,M]", value_parser = affinity, conflicts_with = "cpu", help_heading = help::TRAFFIC, hide_short_help = true)]
    affinity: Option<Places>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum How {
    /// write, which copies them
    Off,
    /// The quickest that there is
    Auto,
    /// sendfile from memory
    Sendfile,
    /// Pages of the process spliced through a pipe
    Splice,
    /// MSG_ZEROCOPY, with completions from the error queue
    Msg,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Places {
    near: Option<CpuList>,
    far: Option<CpuList>,
}

impl PayloadArgs {
    fn how(&self) -> How {
        if self.sendfile { How::Sendfile } else { self.zerocopy }
    }

    /// Adds them to the request.
    pub fn apply(&self, request: MeasureRequest) -> anyhow::Result<MeasureRequest> {
        if self.check_payload && !matches!(self.how(), How::Auto | How::Off) {
            return Err(exit::usage(
                "--check-payload sends bytes that differ each time, which have to be copied; leave --zerocopy out",
            ));
        }
        let places = self.cpu.clone().or_else(|| self.affinity.clone()).unwrap_or_default();
        let zerocopy = match self.how() {
            How::Off => Zerocopy::Off,
            How::Auto => Zerocopy::Auto,
            How::Sendfile => Zerocopy::Sendfile,
            How::Splice => Zerocopy::Splice,
            How::Msg => Zerocopy::Msg,
        };
        Ok(MeasureRequest {
            spec: FlowSpec { zerocopy, check_payload: self.check_payload, ..request.spec },
            near_cpus: places.near,
            far_cpus: places.far,
            ..request
        })
    }
}

/// Prints each direction in which a byte was changed on the path.
pub fn print_wrong_bytes(measured: &[Measurement]) {
    for direction in measured.iter().flat_map(|m| &m.directions) {
        let Some(check) = direction.payload_check.filter(|check| check.wrong_bytes > 0) else { continue };
        let place = check.first_wrong.map_or_else(String::new, |at| {
            format!(", the first at byte {} of stream {}", at.offset, at.stream)
        });
        output::note(&format!(
            "CORRUPT {}: {} of {} bytes differ from what was sent{place}; something on the path changes payload, \
             or a checksum offload is broken (test with 'ethtool -K DEVICE rx off tx off')",
            direction.direction.name(),
            check.wrong_bytes,
            check.checked_bytes,
        ));
    }
}

fn places(text: &str) -> Result<Places, String> {
    let (near, far) = text.split_once('/').map_or((text, None), |(near, far)| (near, Some(far)));
    let list = |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some) };
    let places = Places { near: list(near)?, far: far.map_or(Ok(None), list)? };
    if places == Places::default() {
        return Err("no processor is named; write 0, 0,2-3, 0/1 or /1".to_owned());
    }
    Ok(places)
}

/// Parses `0` or `0,1` like iperf3: the near end's processor, and the far end's.
fn affinity(text: &str) -> Result<Places, String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (near, far) = text.split_once(',').map_or((text, None), |(near, far)| (near, Some(far)));
    if !is_number(near) || !far.is_none_or(is_number) {
        return Err(format!(
            "'{text}' is not a processor, or two: give 0, or 0,1 with HOST's; --cpu takes lists"
        ));
    }
    places(&far.map_or_else(|| near.to_owned(), |far| format!("{near}/{far}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_either_end() {
        let list = |text: &str| Some(text.parse::<CpuList>().unwrap());
        assert_eq!(places("0").unwrap(), Places { near: list("0"), far: None });
        assert_eq!(places("0,1/2-3").unwrap(), Places { near: list("0,1"), far: list("2-3") });
        assert_eq!(places("/1").unwrap(), Places { near: None, far: list("1") });
        assert_eq!(affinity("0").unwrap(), Places { near: list("0"), far: None });
        assert_eq!(affinity("0,1").unwrap(), Places { near: list("0"), far: list("1") });
        for wrong in ["", "0,1,2", "0-3", ",1"] {
            assert!(affinity(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "/", "0/1/2", "x", "1-0"] {
            assert!(places(wrong).is_err(), "{wrong}");
        }
    }
}
