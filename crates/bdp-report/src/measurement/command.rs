//! Commands to go on with, as one types them.

use bdp_model::measurement::{Access, Direction, MeasureRequest, Measurement};
use bdp_model::payload::CpuList;
use bdp_model::responsiveness;
use bdp_model::scenario::Family;
use bdp_model::udp::RateSearch;
use bdp_model::units::{ByteCount, Nanos};

use crate::grid::tame;
use crate::number::typed_size;

/// A word as a shell takes it back, in quotes where it needs them.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@#".contains(c);
    // A word that begins so is a comment.
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The command with the store named where it is not the default one.
pub(crate) fn in_store(command: &str, store: Option<&str>) -> String {
    match store {
        Some(store) => format!("{command} --store {}", quote(&tame(store))),
        None => command.to_owned(),
    }
}

/// The command that measures the same again and compares it with this run. A token that was typed is a secret: its place is held by a file.
pub(crate) fn against(m: &Measurement, run: &str, store: Option<&str>) -> String {
    again(m, &format!("--baseline {run}"), store)
}

/// The command that measures the same several times.
pub(crate) fn several(m: &Measurement, runs: u32, store: Option<&str>) -> String {
    again(m, &format!("--runs {runs}"), store)
}

fn again(m: &Measurement, option: &str, store: Option<&str>) -> String {
    let mut words = match &m.request.ssh {
        // The request's address and port are those that came out, not what was asked.
        Some(ssh) => {
            let host = ssh.data_host.as_ref().map(|host| quote(&tame(host)) + " ").unwrap_or_default();
            vec![format!("bdp measure {host}--ssh {}", quote(&tame(&ssh.destination)))]
        }
        None => {
            let target = m.request.url.as_deref().unwrap_or(&m.request.host);
            vec![format!("bdp measure {}", quote(&tame(target)))]
        }
    };
    words.extend(access(&m.request));
    words.extend(flags(m));
    words.push(option.to_owned());
    in_store(&words.join(" "), store)
}

/// Processors of the near end, and behind a slash those of the far one.
fn cpus(r: &MeasureRequest) -> Option<String> {
    let list = |cpus: &Option<CpuList>| cpus.as_ref().map(CpuList::to_string);
    match (list(&r.near_cpus), list(&r.far_cpus)) {
        (near, None) => near,
        (near, Some(far)) => Some(format!("{}/{far}", near.unwrap_or_default())),
    }
}

/// The flags that let this end in, without what is secret of them.
fn access(r: &MeasureRequest) -> Vec<String> {
    let text = |flag: &str, text: &str| format!("{flag} {}", quote(&tame(text)));
    let mut flags = Vec::new();
    if let Some(ssh) = &r.ssh {
        flags.extend(ssh.options.iter().map(|option| text("--ssh-option", option)));
        flags.extend(ssh.through.then(|| "--through-ssh".to_owned()));
        flags.extend(ssh.data_port.map(|port| format!("--port {port}")));
    }
    match &r.access {
        Some(Access::Token) => flags.push("--token-file FILE".to_owned()),
        Some(Access::TokenFile { path }) => flags.push(text("--token-file", path)),
        Some(Access::Login { user, public_key, pkcs1 }) => {
            flags.push(text("--user", user));
            flags.push(text("--iperf3-public-key", public_key));
            flags.extend(pkcs1.then(|| "--iperf3-pkcs1".to_owned()));
        }
        None => {}
    }
    flags
}

/// The flags of `bdp measure` that made this request, but for those that stand for the default.
fn flags(m: &Measurement) -> Vec<String> {
    let (r, spec) = (&m.request, &m.request.spec);
    let usual = MeasureRequest::to("");
    let size = |flag: &str, size: ByteCount| format!("{flag} {}", typed_size(size));
    let time = |flag: &str, time: Nanos| format!("{flag} {}", time.as_secs_f64());
    let text = |flag: &str, text: &str| format!("{flag} {}", quote(&tame(text)));
    let counted = Nanos(spec.duration.0.saturating_sub(spec.omit.0));
    let usual_time = if r.responsiveness { responsiveness::USUAL_TIME } else { usual.spec.duration };
    let one_way = (!r.bidirectional).then_some(r.directions.as_slice());
    let all = [
        (r.port != usual.port && r.ssh.is_none() && r.url.is_none()).then(|| format!("--port {}", r.port)),
        r.peer.map(|peer| format!("--{}", peer.name())),
        spec.bytes.map(|b| size("-n", b)),
        r.responsiveness.then(|| "--responsiveness".to_owned()),
        (spec.bytes.is_none() && counted != usual_time).then(|| time("-t", counted)),
        r.ordered.map(|ordered| match (ordered.from_bps, ordered.to_bps) {
            (down, up) if down == up => format!("--ordered {down}"),
            (down, up) => format!("--ordered {down}/{up}"),
        }),
        (spec.omit != usual.spec.omit).then(|| time("-O", spec.omit)),
        (spec.streams != usual.spec.streams && !r.responsiveness).then(|| format!("-P {}", spec.streams)),
        spec.window.map(|w| size("-w", w.into())),
        spec.pacing_bps.map(|bps| format!("-b {bps}")),
        (spec.zerocopy != usual.spec.zerocopy).then(|| format!("--zerocopy {}", spec.zerocopy.name())),
        spec.check_payload.then(|| "--check-payload".to_owned()),
        cpus(r).map(|places| format!("--cpu {places}")),
        spec.udp.as_ref().map(|_| "-u".to_owned()),
        spec.udp.as_ref().map(|udp| match (&udp.search, udp.rate_bps) {
            (Some(_), _) => "-b auto".to_owned(),
            (None, Some(bps)) => format!("-b {bps}"),
            (None, None) => "-b 0".to_owned(),
        }),
        spec.udp.as_ref().and_then(|udp| udp.search).and_then(|search| {
            (search.loss_ratio > 0.0).then(|| format!("--loss-ratio {}", search.loss_ratio))
        }),
        spec.udp.as_ref().and_then(|udp| udp.search).and_then(|search| {
            (search.trial != RateSearch::usual_trial()).then(|| time("--trial-time", search.trial))
        }),
        spec.udp.as_ref().and_then(|udp| udp.datagram_bytes).map(|bytes| format!("-l {bytes}")),
        spec.udp.as_ref().filter(|udp| udp.dont_fragment).map(|_| "--dont-fragment".to_owned()),
        r.server_output.then(|| "--get-server-output".to_owned()),
        r.until_settled.then(|| "--until settled".to_owned()),
        r.no_experiments.then(|| "--no-experiments".to_owned()),
        (spec.length != usual.spec.length).then(|| size("-l", spec.length)),
        spec.mss.map(|mss| format!("-M {mss}")),
        spec.congestion.as_deref().map(|name| text("-C", name)),
        (one_way == Some(&[Direction::To])).then(|| "--forward".to_owned()),
        (one_way == Some(&[Direction::From]) && r.url.is_none()).then(|| "-R".to_owned()),
        r.bidirectional.then(|| "--bidir".to_owned()),
        (spec.interval != usual.spec.interval).then(|| time("-i", spec.interval)),
        (r.idle != usual.idle).then(|| time("--idle", r.idle)),
        r.bind_address.as_deref().map(|address| text("-B", address)),
        r.bind_device.as_deref().map(|device| text("--bind-dev", device)),
        r.family.map(|family| if family == Family::Ipv4 { "-4" } else { "-6" }.to_owned()),
        spec.dscp.map(|dscp| format!("--dscp {dscp}")),
        r.client_port.map(|port| format!("--cport {port}")),
        spec.socket_buffer.map(|b| size("--sockbuf", b)),
        spec.nodelay.then(|| "-N".to_owned()),
    ];
    all.into_iter().flatten().collect()
}
