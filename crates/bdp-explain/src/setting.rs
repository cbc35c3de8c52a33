//! Names of what users change in a test, and values of the settings of a host.

use bdp_model::facts::{End, Facts, Source};
use bdp_model::measurement::HostFacts;
use bdp_model::tuning::setting::Setting;

/// The option that requests a socket buffer.
pub const SOCKET_BUFFER: &str = "--sockbuf";

/// A setting of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestSetting {
    /// The window on the wire.
    Window,
    /// The rate of each stream.
    Rate,
    /// Parallel streams.
    Streams,
    /// Payload of a datagram.
    Datagram,
    /// Congestion control of the sender.
    Congestion,
}

/// The name of what changes a setting: an option of a measurement or a key of a scenario.
pub fn name_of(facts: &Facts, setting: TestSetting) -> &'static str {
    match (facts.source, setting) {
        (Source::Measured, TestSetting::Window) => "-w",
        (Source::Measured, TestSetting::Rate) => "-b",
        (Source::Measured, TestSetting::Streams) => "-P",
        (Source::Measured, TestSetting::Datagram) => "-l",
        // The sysctl that sets it for the whole host, unless it was requested.
        (_, TestSetting::Congestion) if facts.asked.congestion.is_none() => {
            Setting::TcpCongestionControl.name
        }
        (Source::Measured, TestSetting::Congestion) => "-C",
        (Source::Emulated, TestSetting::Congestion) => "flow.congestion",
        (Source::Watched | Source::Captured, TestSetting::Congestion) => "TCP_CONGESTION",
        (Source::Emulated, TestSetting::Window) => "flow.window",
        (Source::Emulated, TestSetting::Rate) => "flow.rate",
        (Source::Emulated, TestSetting::Streams) => "flow.streams",
        (Source::Emulated, TestSetting::Datagram) => "flow.datagram",
        (Source::Watched | Source::Captured, TestSetting::Window) => "SO_RCVBUF",
        (Source::Watched | Source::Captured, TestSetting::Rate) => "SO_MAX_PACING_RATE",
        (Source::Watched | Source::Captured, TestSetting::Streams) => "parallel connections",
        (Source::Watched | Source::Captured, TestSetting::Datagram) => "its datagrams",
    }
}

/// The value of a sysctl at an end.
pub fn value_of(end: &End, sysctl: Setting) -> Option<&str> {
    end.host.sysctls.get(sysctl.name).map(|value| value.trim())
}

/// The maximum, the last of the three values of `tcp_rmem` or `tcp_wmem`.
pub fn maximum(end: &End, sysctl: Setting) -> Option<u64> {
    Some(numbers(&end.host, sysctl)?[2])
}

/// A sysctl of three values.
pub fn numbers(host: &HostFacts, sysctl: Setting) -> Option<[u64; 3]> {
    let words = host.sysctls.get(sysctl.name)?.split_whitespace();
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}
