//! TCP settings of a host: the name of each in a scenario, and its sysctl.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tuning::setting::Setting;
use crate::units::ByteCount;

/// TCP settings of a host; `None` for the kernel's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpSettings {
    /// Congestion control of flows that the host sends and that name none. Set on each socket: a namespace's default is
    /// restricted to what the machine allows unprivileged users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Selective acknowledgements (RFC 2018).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Window scaling (RFC 7323, section 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Timestamps (RFC 7323, section 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Initial congestion window of new connections (RFC 6928), segments. An attribute of routes, not a sysctl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Explicit congestion notification (RFC 3168).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Ecn>,
    /// Upper limit of receive buffer autotuning, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "receive_buffer_bytes")]
    pub receive_buffer: Option<ByteCount>,
    /// Upper limit of send buffer autotuning, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "send_buffer_bytes")]
    pub send_buffer: Option<ByteCount>,
}

/// Whether connections negotiate explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ecn {
    /// Neither requested nor accepted.
    Off,
    /// Requested and accepted.
    On,
    /// Accepted if the other end requests it.
    Passive,
}

impl Ecn {
    /// All modes by their names in a scenario.
    pub const NAMES: [(&'static str, Self); 3] =
        [("off", Self::Off), ("on", Self::On), ("passive", Self::Passive)];
}

/// Smallest buffer that every kernel accepts in `tcp_rmem` and `tcp_wmem`, bytes; the lower limit of autotuning.
pub const SMALLEST_BUFFER: u64 = 4_096;
/// Initial receive buffer if the maximum allows it, bytes; the same on every host of the lab.
const FIRST_RECEIVE: u64 = 131_072;
const FIRST_SEND: u64 = 16_384;

impl TcpSettings {
    /// Returns the settings that are sysctls: its name, sysctl, value.
    pub fn sysctls(&self) -> Vec<(&'static str, Setting, String)> {
        let flag = |on: bool| u8::from(on).to_string();
        let buffer = |largest: ByteCount, first: u64| {
            let largest = largest.as_bytes();
            format!("{} {} {largest}", SMALLEST_BUFFER.min(largest), first.min(largest))
        };
        let ecn = |ecn| match ecn {
            Ecn::Off => "0",
            Ecn::On => "1",
            Ecn::Passive => "2",
        };
        [
            ("sack", Setting::TcpSack, self.sack.map(flag)),
            ("window_scaling", Setting::TcpWindowScaling, self.window_scaling.map(flag)),
            ("timestamps", Setting::TcpTimestamps, self.timestamps.map(flag)),
            ("ecn", Setting::TcpEcn, self.ecn.map(|e| ecn(e).to_owned())),
            ("receive_buffer", Setting::TcpRmem, self.receive_buffer.map(|b| buffer(b, FIRST_RECEIVE))),
            ("send_buffer", Setting::TcpWmem, self.send_buffer.map(|b| buffer(b, FIRST_SEND))),
        ]
        .into_iter()
        .filter_map(|(key, sysctl, value)| Some((key, sysctl, value?)))
        .collect()
    }

    /// Returns the sysctls by name.
    pub fn by_sysctl(&self) -> BTreeMap<String, String> {
        self.sysctls().into_iter().map(|(_, sysctl, value)| (sysctl.into(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_the_sysctls_that_bring_them_about() {
        assert!(TcpSettings::default().sysctls().is_empty());
        let all = TcpSettings {
            congestion: Some("bbr".to_owned()),
            sack: Some(false),
            window_scaling: Some(true),
            timestamps: Some(false),
            initial_window: Some(3),
            ecn: Some(Ecn::Passive),
            receive_buffer: Some(ByteCount::bytes(65_536)),
            send_buffer: Some(ByteCount::bytes(1 << 20)),
        };
        let sysctls = all.by_sysctl();
        let written: Vec<(&str, &str)> = sysctls.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(
            written,
            [
                ("net.ipv4.tcp_ecn", "2"),
                ("net.ipv4.tcp_rmem", "4096 65536 65536"),
                ("net.ipv4.tcp_sack", "0"),
                ("net.ipv4.tcp_timestamps", "0"),
                ("net.ipv4.tcp_window_scaling", "1"),
                ("net.ipv4.tcp_wmem", "4096 16384 1048576"),
            ]
        );
        let back: TcpSettings = serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
        assert_eq!(back, all);
        assert_eq!(serde_json::to_string(&TcpSettings::default()).unwrap(), "{}");
    }
}
