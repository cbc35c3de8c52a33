//! TCP settings of a host.

use std::collections::BTreeMap;

use super::item::Result;
use crate::error::Problem;
use crate::tree::{Node, Table};
use bdp_model::case::tcp_settings::{Ecn, TcpSettings};
use bdp_model::sweep::parameter::Parameter;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::ByteCount;

/// Reads the settings in the host's table. An equivalent sysctl may be set too, but must not contradict.
pub(super) fn settings(table: &Table, at: &str, sysctls: &BTreeMap<String, String>) -> Result<TcpSettings> {
    let flag = |key: &str| -> Result<Option<bool>> {
        table.get(key).map(|n| n.as_bool(&format!("{at}.{key}"))).transpose()
    };
    let buffer = |key: &str| -> Result<Option<ByteCount>> {
        let expected = "the maximum for autotuning in bytes, 2304 to 1073741824, such as \"64K\"";
        let Some(n) = table.get(key) else { return Ok(None) };
        let at = format!("{at}.{key}");
        let size: ByteCount = n.as_quantity(&at, expected)?;
        match Parameter::at(&at).range.contains(&size.as_bytes()) {
            true => Ok(Some(size)),
            false => Err(n.unexpected(&at, expected)),
        }
    };
    let settings = TcpSettings {
        congestion: table
            .get("congestion")
            .map(|n| congestion(n, &format!("{at}.congestion")))
            .transpose()?,
        sack: flag("sack")?,
        window_scaling: flag("window_scaling")?,
        timestamps: flag("timestamps")?,
        initial_window: table.get("initial_window").map(|n| initial_window(n, at)).transpose()?,
        ecn: table.get("ecn").map(|n| n.as_choice(&format!("{at}.ecn"), &Ecn::NAMES)).transpose()?,
        receive_buffer: buffer("receive_buffer")?,
        send_buffer: buffer("send_buffer")?,
    };
    let mut set = settings.sysctls();
    if let Some(name) = &settings.congestion {
        set.push(("congestion", Setting::TcpCongestionControl, name.clone()));
    }
    let same = |a: &str, b: &str| a.split_whitespace().eq(b.split_whitespace());
    for (key, sysctl, value) in set {
        if let (Some(other), Some(n)) = (sysctls.get(sysctl.name), table.get(key))
            && !same(other, &value)
        {
            return Err(n.origin.error(Problem::Contradiction {
                at: format!("{at}.{key}"),
                found: n.describe(),
                other: format!("{sysctl} = \"{other}\""),
                rule: "both set the same value; remove one of them".to_owned(),
            }));
        }
    }
    Ok(settings)
}

fn initial_window(node: &Node, at: &str) -> Result<u32> {
    let at = format!("{at}.initial_window");
    let expected = "the initial window in segments, 1 to 1000";
    node.as_count(&at, Parameter::at(&at).range, expected).map(|n| n as u32)
}

/// Reads the name of a congestion control; whether the kernel has it is known when the case runs.
pub(super) fn congestion(node: &Node, at: &str) -> Result<String> {
    const EXPECTED: &str = "the name of a congestion control, such as \"reno\", \"cubic\" or \"bbr\"";
    let name = node.as_text(at, EXPECTED)?;
    // TCP_CA_NAME_MAX is 16, the terminating NUL included.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=15).contains(&name.len()) || !name.chars().all(plain) {
        return Err(node.unexpected(at, EXPECTED));
    }
    Ok(name.to_owned())
}
