//! Windows 2000, XP and 2003: a registry file that sets a window, and one that removes it.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::Plan;
use bdp_model::tuning::Reason;

use super::meaning::{Meaning, Meant, largest_buffers, of_end};
use super::quote::comment;
use super::script::comments;
use super::words::{aim, origin};

const TCPIP: &str = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
const AFD: &str = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Afd\Parameters";

/// The largest window without scaling: 64 KiB - 1, which is 0xffff.
const UNSCALED: u32 = 0xffff;
/// Largest value accepted by the registry.
const LARGEST: u32 = 0x3fff_ffff;

/// Returns why a change is not possible here, if it is not.
fn obstacle(meaning: &Meaning) -> Option<&'static str> {
    match meaning {
        Meaning::ReceiveBuffer { .. }
        | Meaning::SendBuffer { .. }
        | Meaning::AskedReceiveBuffer { .. }
        | Meaning::AskedSendBuffer { .. }
        | Meaning::WindowScaling { .. }
        | Meaning::Timestamps { .. }
        | Meaning::Sack { .. }
        | Meaning::MtuProbing { .. } => None,
        Meaning::CongestionControl { .. } => Some("Windows XP has one congestion control alone."),
        Meaning::InitialWindow { .. }
        | Meaning::InitialReceiveWindow { .. }
        | Meaning::LeastTimeout { .. } => Some("Routes of Windows have no such attribute."),
        Meaning::Pacing { .. } | Meaning::Queue { .. } | Meaning::DefaultQueue { .. } => {
            Some("Windows has no queueing disciplines to choose.")
        }
        Meaning::Backlog { .. } => Some("It is a setting of the network adapter's driver."),
        Meaning::Ecn { .. } => Some("Windows XP has none."),
        Meaning::RestartAfterIdle { .. } => Some("No value of the registry has it."),
        Meaning::Linux => Some("Linux alone has it."),
    }
}

/// Returns the file that sets the plan's values, or the one that removes them.
pub(super) fn write(plan: &Plan, end: End, undo: bool) -> String {
    let meant = of_end(plan, end);
    let mut top = origin(plan, end, "reg");
    let export =
        |key: &str, file: &str| format!("  reg export {} {file}", key.replace("HKEY_LOCAL_MACHINE", "HKLM"));
    top.extend(match undo {
        false => vec![
            "Windows 2000, XP and 2003 read these values at boot. Windows Vista and later ignore TcpWindowSize and".to_owned(),
            "GlobalMaxTcpWindowSize, and read the autotuning level in their place: 'bdp tune export --as powershell'.".to_owned(),
            "Save what is there before you import this file, and undo by that:".to_owned(),
            export(TCPIP, "tcpip-before.reg"),
            export(AFD, "afd-before.reg"),
            "  undo: import the file of 'bdp tune export --as reg --undo', then tcpip-before.reg and afd-before.reg".to_owned(),
        ],
        true => vec![
            "Removes the values, none of which Windows has by itself. Import tcpip-before.reg and afd-before.reg after it,".to_owned(),
            "so that values come back that were there before. Windows reads them at boot.".to_owned(),
        ],
    });
    for one in &meant {
        if let (false, Some(why)) = (undo, obstacle(&one.meaning)) {
            let what = aim(&one.meaning, &one.change.target.to_string());
            top.push(comment(&format!("Left out: {what}. {why}")));
        }
    }
    let mut text = format!("Windows Registry Editor Version 5.00\n\n{}", comments(&top, ";"));
    for key in [TCPIP, AFD] {
        let values = values(&meant, key);
        if values.is_empty() {
            continue;
        }
        text.push_str(&format!("\n[{key}]\n"));
        for (name, value, purpose) in values {
            match undo {
                true => text.push_str(&format!("\"{name}\"=-\n")),
                false => text.push_str(&format!("; {}\n\"{name}\"=dword:{value:08x}\n", comment(&purpose))),
            }
        }
    }
    // Line ends for Notepad and regedit of that time.
    text.replace('\n', "\r\n")
}

/// Returns the values below a key: name, number, purpose.
fn values(meant: &[Meant<'_>], key: &str) -> Vec<(&'static str, u32, String)> {
    let (receive, send) = largest_buffers(meant);
    let receive = receive.map(|bytes| window(meant, bytes));
    let mut values = Vec::new();
    if key == AFD {
        let sending = send.map(|bytes| u32::try_from(bytes).unwrap_or(LARGEST).min(LARGEST));
        if let Some(bytes) = receive {
            let purpose =
                format!("Bytes that Winsock buffers of each connection for a program to read: {bytes}");
            values.push(("DefaultReceiveWindow", bytes, purpose));
        }
        if let Some(bytes) = sending {
            let purpose = format!("Bytes that Winsock buffers of each connection to be sent: {bytes}");
            values.push(("DefaultSendWindow", bytes, purpose));
        }
        return values;
    }
    if let Some(bytes) = receive {
        let first = format!(
            "The receive window: {bytes} bytes, {bytes:#x}. Without scaling it is 64 KiB - 1 at most, 0xffff"
        );
        values.push(("TcpWindowSize", bytes, first));
        let largest = "The largest that a program may ask for".to_owned();
        values.push(("GlobalMaxTcpWindowSize", bytes, largest));
    }
    let of = |wanted: fn(&Meaning) -> Option<bool>| meant.iter().find_map(|one| wanted(&one.meaning));
    let scaling = of(|meaning| match meaning {
        Meaning::WindowScaling { on } => Some(*on),
        _ => None,
    });
    let timestamps = of(|meaning| match meaning {
        Meaning::Timestamps { on } => Some(*on),
        _ => None,
    });
    if scaling.is_some() || timestamps.is_some() || receive.is_some() {
        let scaling = scaling.unwrap_or(false) || receive.is_some_and(|bytes| bytes > UNSCALED);
        let number = u32::from(scaling) | u32::from(timestamps.unwrap_or(false)) << 1;
        let purpose =
            "RFC 1323: bit 0 window scaling, which a window above 0xffff needs; bit 1 timestamps".to_owned();
        values.push(("Tcp1323Opts", number, purpose));
    }
    let sack = of(|meaning| match meaning {
        Meaning::Sack { on } => Some(*on),
        _ => None,
    });
    values.extend(sack.map(|on| ("SackOpts", u32::from(on), "Selective acknowledgements".to_owned())));
    let probing = of(|meaning| match meaning {
        Meaning::MtuProbing { on } => Some(*on),
        _ => None,
    });
    values.extend(probing.map(|on| {
        ("EnablePMTUBHDetect", u32::from(on), "Smaller segments where full ones vanish".to_owned())
    }));
    values
}

/// Returns the window for a Linux receive buffer, which includes overhead: the bytes in flight if the plan has them.
fn window(meant: &[Meant<'_>], buffer: u64) -> u32 {
    let in_flight = meant.iter().find_map(|one| match (&one.meaning, &one.change.reason) {
        (Meaning::ReceiveBuffer { .. }, Reason::Buffer { in_flight_bytes, .. }) => Some(*in_flight_bytes),
        _ => None,
    });
    let bytes = in_flight.unwrap_or(buffer).min(u64::from(LARGEST)) as u32;
    // A window below 64 KiB - 1 saves nothing.
    bytes.max(UNSCALED)
}
