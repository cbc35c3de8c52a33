//! Values of settings as they are written and read back.

use bdp_model::tuning::{RouteAttribute, Target};

use crate::world::Fault;

/// Maximum length of a value to write.
const MOST_BYTES: usize = 1024;

/// Converts a value to the form in which it is read back.
pub(crate) fn well_formed(target: &Target, value: &str) -> Result<String, Fault> {
    let bad = || Fault::BadValue(value.chars().filter(|c| !c.is_control()).take(60).collect());
    let is_plain = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t');
    let value = value.replace('\t', " ");
    let value = value.trim();
    if value.is_empty() || value.len() > MOST_BYTES || !is_plain {
        return Err(bad());
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0).ok_or_else(bad);
    match target {
        Target::Sysctl { name } if !name.starts_with("net.") => Err(Fault::OutOfScope),
        Target::Sysctl { .. } => Ok(value.to_owned()),
        Target::Route { attribute: RouteAttribute::Congctl, .. } => match value.contains(' ') {
            true => Err(bad()),
            false => Ok(value.to_owned()),
        },
        Target::Route { attribute: RouteAttribute::RtoMin, .. } => {
            number(value.strip_suffix("ms").ok_or_else(bad)?).map(|ms| format!("{ms}ms"))
        }
        Target::Route { .. } => number(value).map(|segments| segments.to_string()),
        Target::Qdisc { .. } => match fq_rate(value) {
            Some(None) => Ok("fq".to_owned()),
            // The kernel counts bytes.
            Some(Some(bytes)) => Ok(format!("fq maxrate {}bit", u64::from(bytes) * 8)),
            None => Err(bad()),
        },
    }
}

/// Returns the rate of `fq maxrate 95000000bit` in bytes per second, `Some(None)` for `fq`, `None` for anything else.
pub(crate) fn fq_rate(value: &str) -> Option<Option<u32>> {
    let rest = value.strip_prefix("fq")?.trim();
    if rest.is_empty() {
        return (value.trim() == "fq").then_some(None);
    }
    let bits: u64 = rest.strip_prefix("maxrate ")?.trim().strip_suffix("bit")?.parse().ok()?;
    u32::try_from(bits / 8).ok().filter(|&bytes| bytes > 0 && bytes < u32::MAX).map(Some)
}

/// Whether a stored value is plausible for this setting: only networking settings are ever written.
pub(crate) fn is_plausible(target: &Target, value: &str) -> bool {
    let is_of_network = match target {
        Target::Sysctl { name } => name.starts_with("net."),
        Target::Route { .. } | Target::Qdisc { .. } => true,
    };
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
    is_of_network && value.len() <= MOST_BYTES && value.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_networking_is_put_back() {
        assert!(is_plausible(&Target::sysctl("net.ipv4.tcp_rmem"), "4096\t131072\t6291456"));
        assert!(!is_plausible(&Target::sysctl("kernel.core_pattern"), "|/x"));
        assert!(!is_plausible(&Target::sysctl("net.ipv4.tcp_rmem"), "1\nkernel.x = 2"));
    }

    #[test]
    fn values_are_of_one_line_and_of_their_setting() {
        let route = |attribute| Target::Route { to: "192.0.2.1".parse().unwrap(), attribute };
        let qdisc = Target::Qdisc { device: "eth0".to_owned() };
        let rmem = Target::sysctl("net.ipv4.tcp_rmem");
        for (target, value, good) in [
            (&rmem, "4096 131072 6291456", Some("4096 131072 6291456")),
            (&rmem, "1\nkernel.core_pattern = |/bin/x", None),
            (&rmem, "", None),
            (&Target::sysctl("kernel.core_pattern"), "core", None),
            (&route(RouteAttribute::RtoMin), "50ms", Some("50ms")),
            (&route(RouteAttribute::RtoMin), "50", None),
            (&route(RouteAttribute::Initcwnd), "20", Some("20")),
            (&route(RouteAttribute::Initcwnd), "-1", None),
            (&route(RouteAttribute::Congctl), "bbr x", None),
            (&qdisc, "fq", Some("fq")),
            (&qdisc, "fq maxrate 95000007bit", Some("fq maxrate 95000000bit")),
            (&qdisc, "fq maxrate 0bit", None),
            (&qdisc, "fq_codel", None),
            (&qdisc, "netem", None),
        ] {
            assert_eq!(well_formed(target, value).ok().as_deref(), good, "{target} {value}");
        }
    }
}
