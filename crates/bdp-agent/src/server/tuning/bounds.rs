//! Bounds of what a client may set, with any token: TCP settings of paths, to values that cannot break a host, and
//! only those routes and devices that lead to the client itself.

use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use bdp_model::plain::{beginning, plain};
use bdp_model::tuning::setting::{Bounds, Setting};
use bdp_model::tuning::{Change, RouteAttribute, Target};
use bdp_wire::tuning::{LONGEST_VALUE, MOST_CHANGES};

/// Largest minimum buffer, which every socket may use however scarce memory is, and largest initial buffer.
const LARGEST_FIRST_BUFFER: u64 = 16 << 20;

/// Returns the changes as they would be made for a client at this address, or why they are not allowed. A route to
/// the unspecified address becomes that to the client; `leaves_by` says whether packets to the client leave through a
/// device.
pub(super) fn bound(
    changes: &[Change],
    client: IpAddr,
    mut leaves_by: impl FnMut(&str) -> bool,
) -> Result<Vec<Change>, String> {
    if changes.is_empty() {
        return Err("no change was requested".to_owned());
    }
    if changes.len() > MOST_CHANGES {
        return Err(format!("{} changes requested, at most {MOST_CHANGES} allowed", changes.len()));
    }
    let mut seen = HashSet::new();
    let mut bound = Vec::new();
    for change in changes {
        let [to, from] = [Some(&change.to), change.from.as_ref()];
        if [to, from].into_iter().flatten().any(|value| value.len() > LONGEST_VALUE) {
            return Err(format!("a value of {} is longer than {LONGEST_VALUE} bytes", shown(&change.target)));
        }
        let target = bound_target(&change.target, client, &mut leaves_by)?;
        if !is_value(&target, &change.to) {
            let value = plain(&beginning(&change.to));
            return Err(format!("'{value}' is not a value of {} that a client may set", shown(&target)));
        }
        if !seen.insert(target.clone()) {
            return Err(format!("{} is changed twice", shown(&target)));
        }
        bound.push(Change { target, ..change.clone() });
    }
    Ok(bound)
}

fn bound_target(
    target: &Target,
    client: IpAddr,
    leaves_by: &mut impl FnMut(&str) -> bool,
) -> Result<Target, String> {
    // A link-local address implies a device, which no route of one address alone can name.
    let is_of_link = matches!(client, IpAddr::V6(v6) if v6.is_unicast_link_local());
    match target {
        Target::Sysctl { .. } if bounds(target).is_some() => Ok(target.clone()),
        Target::Sysctl { .. } => Err(format!(
            "{} is not a setting that a client may change ('bdp help tuning' lists them)",
            shown(target)
        )),
        Target::Route { .. } | Target::Qdisc { .. } if is_of_link => {
            Err(format!("{}: not available to clients with a link-local address", shown(target)))
        }
        Target::Route { to, attribute } if to.is_unspecified() || to.to_canonical() == client => {
            Ok(Target::Route { to: client, attribute: *attribute })
        }
        Target::Route { .. } => {
            Err(format!("{}: a client may change only the route to itself, {client}", shown(target)))
        }
        Target::Qdisc { device } if leaves_by(device) => Ok(target.clone()),
        Target::Qdisc { .. } => Err(format!(
            "{}: a client may change only the device that sends packets to it, {client}",
            shown(target)
        )),
    }
}

fn is_value(target: &Target, value: &str) -> bool {
    match target {
        Target::Sysctl { .. } => {
            bounds(target).is_some_and(|(setting, bounds)| is_within(setting, bounds, value))
        }
        Target::Route { attribute, .. } => match attribute {
            RouteAttribute::Congctl => is_name(value),
            RouteAttribute::Initcwnd | RouteAttribute::Initrwnd => in_range(value, &(1..=1024)),
            RouteAttribute::RtoMin => value.strip_suffix("ms").is_some_and(|ms| in_range(ms, &(1..=10_000))),
        },
        Target::Qdisc { .. } => value.len() <= 64 && (value == "fq" || value.starts_with("fq maxrate ")),
    }
}

/// The setting and its bounds, if a client may set it.
fn bounds(target: &Target) -> Option<(Setting, Bounds)> {
    let setting = target.setting()?;
    Some((setting, setting.bounds?))
}

fn is_within(setting: Setting, bounds: Bounds, value: &str) -> bool {
    match bounds {
        Bounds::Buffers => {
            let sizes: Vec<u64> = value.split_whitespace().map_while(|size| size.parse().ok()).collect();
            let is_whole = value.split_whitespace().count() == 3;
            matches!(sizes[..], [least, first, largest] if is_whole
                && Bounds::SMALLEST_BUFFER <= least && least <= first && first <= largest
                && first <= LARGEST_FIRST_BUFFER && largest <= Bounds::LARGEST_BUFFER)
        }
        Bounds::Number(least, most) => in_range(value, &(least..=most)),
        Bounds::Modes => setting.mode(value).is_some(),
        Bounds::OneOf(names) => names.contains(&value),
        Bounds::Name => is_name(value),
    }
}

fn in_range(value: &str, range: &RangeInclusive<u64>) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit())
        && value.parse().is_ok_and(|number: u64| range.contains(&number))
}

/// Whether this could be a congestion control: a module's name (Linux, `TCP_CA_NAME_MAX`).
fn is_name(value: &str) -> bool {
    (1..16).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn shown(target: &Target) -> String {
    plain(&beginning(&target.to_string()))
}

#[cfg(test)]
mod tests {
    use bdp_model::measurement::ends::End;
    use bdp_model::tuning::Reason;

    use super::*;

    fn change(target: Target, to: &str) -> Change {
        Change { end: End::Far, target, from: None, to: to.to_owned(), reason: Reason::Off, gain: None }
    }

    fn client() -> IpAddr {
        [198, 51, 100, 7].into()
    }

    fn one(target: Target, to: &str) -> Result<Target, String> {
        bound(&[change(target, to)], client(), |device| device == "eth0").map(|mut all| all.remove(0).target)
    }

    fn route(to: &str) -> Target {
        Target::Route { to: to.parse().unwrap(), attribute: RouteAttribute::Initcwnd }
    }

    #[test]
    fn sysctls_of_the_list_are_set_to_values_of_their_range() {
        for (name, value, good) in [
            ("net.ipv4.tcp_rmem", "4096 131072 16777216", true),
            ("net.ipv4.tcp_rmem", "4096\t131072\t16777216", true),
            ("net.ipv4.tcp_rmem", "4096 131072 1073741825", false),
            ("net.ipv4.tcp_rmem", "4096 131072 65536", false),
            ("net.ipv4.tcp_wmem", "4096 131072", false),
            ("net.ipv4.tcp_wmem", "4096 131072 262144 x", false),
            ("net.ipv4.tcp_wmem", "0 131072 262144", false),
            ("net.ipv4.tcp_wmem", "4096 33554432 67108864", false),
            ("net.ipv4.tcp_congestion_control", "bbr", true),
            ("net.ipv4.tcp_congestion_control", "../bbr", false),
            ("net.ipv4.tcp_sack", "1", true),
            ("net.ipv4.tcp_sack", "+1", false),
            ("net.ipv4.tcp_sack", "1\n", false),
            ("net.core.default_qdisc", "fq", true),
            ("net.core.default_qdisc", "netem", false),
            ("net.core.rmem_max", "16777216", true),
            ("net.ipv4.ip_forward", "1", false),
            ("net.ipv4.tcp_rmem/../../../kernel/core_pattern", "4096 131072 16777216", false),
            ("net/ipv4/tcp_sack", "1", false),
            ("kernel.core_pattern", "x", false),
        ] {
            assert_eq!(one(Target::sysctl(name), value).is_ok(), good, "{name} = {value:?}");
        }
    }

    #[test]
    fn a_route_is_that_to_the_client_as_the_server_sees_it() {
        for to in ["0.0.0.0", "::", "198.51.100.7", "::ffff:198.51.100.7"] {
            assert_eq!(one(route(to), "20"), Ok(route("198.51.100.7")), "{to}");
        }
        for to in ["198.51.100.8", "127.0.0.1", "::1"] {
            assert!(one(route(to), "20").unwrap_err().contains("only the route to itself, 198.51.100.7"));
        }
        assert!(one(route("0.0.0.0"), "20000").is_err());
        // The same route by two names.
        let twice = [change(route("::"), "20"), change(route("198.51.100.7"), "30")];
        assert!(bound(&twice, client(), |_| true).unwrap_err().ends_with("is changed twice"));
        let of_link = bound(&[change(route("::"), "20")], "fe80::1".parse().unwrap(), |_| true);
        assert!(of_link.unwrap_err().contains("link-local"));
    }

    #[test]
    fn a_discipline_is_fq_on_the_way_to_the_client() {
        let qdisc = |device: &str| Target::Qdisc { device: device.to_owned() };
        assert!(one(qdisc("eth0"), "fq maxrate 95000000bit").is_ok());
        assert!(one(qdisc("eth1"), "fq").unwrap_err().contains("only the device"));
        assert!(one(qdisc("eth0"), "netem").is_err());
    }

    #[test]
    fn an_order_is_bounded() {
        let sack = || change(Target::sysctl("net.ipv4.tcp_sack"), "1");
        assert!(bound(&[], client(), |_| true).is_err());
        assert!(bound(&[sack(), sack()], client(), |_| true).unwrap_err().contains("twice"));
        assert!(bound(&vec![sack(); MOST_CHANGES + 1], client(), |_| true).unwrap_err().contains("at most"));
        let long = Change { from: Some("1".repeat(LONGEST_VALUE + 1)), ..sack() };
        assert!(bound(&[long], client(), |_| true).unwrap_err().contains("longer than"));
    }
}
