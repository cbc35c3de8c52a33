//! A stored run to compare with.

use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::figure::Figures;
use bdp_model::measurement::{MeasureRequest, options};
use bdp_model::statistics::comparison::{LEAST_RUNS, Regression, Verdict};
use bdp_run::measure::baseline::{Against, Baseline};
use bdp_store::RunKind;

use crate::exit;
use crate::found::{Found, Kept};
use crate::output::tame;
use crate::store::StoreArgs;

/// Reads it, or the newest of the same host if none is named; rejects one without anything to compare.
pub fn load(run: Option<&str>, store: &StoreArgs, request: &MeasureRequest) -> anyhow::Result<Baseline> {
    let host = match &request.ssh {
        Some(ssh) => ssh.data_host.as_deref().or_else(|| ssh.destination.rsplit('@').next()),
        None => Some(request.host.as_str()),
    };
    let host = host.unwrap_or_default();
    let found = match run {
        Some(_) => Found::find(run, store)?,
        None => Found::newest_where(store, |info| info.kind == RunKind::Measure && info.scenario == host)?
            .ok_or_else(|| {
                exit::usage(format!("no run to {host} is stored to compare with; give one: --baseline RUN"))
            })?,
    };
    let info = found.info;
    let what = match info.kind {
        RunKind::Measure => None,
        RunKind::Lab => Some("a lab run"),
        RunKind::Sweep => Some("a sweep"),
        RunKind::Exec => Some("a run of 'bdp lab exec'"),
    };
    if let Some(what) = what {
        return Err(exit::usage(format!(
            "run {} is {what}; --baseline needs a run of 'bdp measure'",
            info.id
        )));
    }
    let measurements = match found.kept {
        Kept::Measurements(all) => all.into_iter().map(|kept| kept.measurement).collect(),
        Kept::Records(_) => Vec::new(),
    };
    let baseline = Baseline { run: tame(&info.id), measurements };
    if !baseline.suits(request) {
        return Err(exit::usage(format!("run {} has no direction in common with this measurement", info.id)));
    }
    Ok(baseline)
}

/// Options that differ from the baseline's, in a line; nothing if the requests are alike.
pub fn unlike(baseline: &Baseline, now: &MeasureRequest) -> Option<String> {
    let measured = baseline.measurements.first()?;
    let mut then = measured.request.clone();
    if measured.caveats.contains(&Caveat::RecognisedIperf3) {
        // It was not requested.
        then.peer = None;
    }
    let (then, now) = differing(&then, now)?;
    Some(format!("NOTE  baseline {} was measured with {then}, this with {now}", baseline.run))
}

/// The options in which two requests differ, of either.
fn differing(before: &MeasureRequest, now: &MeasureRequest) -> Option<(String, String)> {
    let compared = |request| {
        let options = options::options(request).into_iter().filter(|option| option.is_compared);
        options.map(|option| (option.flag, option.text(tame))).collect::<Vec<_>>()
    };
    let (before, now) = (compared(before), compared(now));
    let mut flags: Vec<&str> = Vec::new();
    for (flag, _) in before.iter().chain(&now) {
        if !flags.contains(flag) {
            flags.push(flag);
        }
    }
    // An option may be given several times, and one that a request cannot have is omitted.
    let of = |all: &[(&str, String)], flag: &str| {
        let texts: Vec<&str> =
            all.iter().filter(|(f, _)| *f == flag).map(|(_, text)| text.as_str()).collect();
        if texts.is_empty() { format!("no {flag}") } else { texts.join(" ") }
    };
    let (before, now): (Vec<_>, Vec<_>) = flags
        .iter()
        .map(|flag| (of(&before, flag), of(&now, flag)))
        .filter(|(then, now)| then != now)
        .unzip();
    (!now.is_empty()).then(|| (before.join(", "), now.join(", ")))
}

/// The comparison of a figure in a line.
pub fn line(run: &str, against: &Against) -> String {
    let Against { figure, comparison, regressed } = against;
    let signed = |share: f64| format!("{:+.1} %", share * 100.0);
    let effect = comparison.effect.map_or_else(String::new, |effect| format!(", {}", signed(effect)));
    let interval = comparison.effect_interval.as_ref().map_or_else(String::new, |i| {
        format!(" ({:.0} %: {} to {})", (i.confidence * 100.0).floor(), signed(i.low), signed(i.high))
    });
    let verdict = match comparison.verdict {
        _ if *regressed => "REGRESSED".to_owned(),
        Verdict::TooFewRuns => {
            format!(
                "unknown with {} and {} runs: needs {LEAST_RUNS} runs on each side (--runs {LEAST_RUNS})",
                comparison.a.n, comparison.b.n
            )
        }
        Verdict::NoDifferenceShown if against.regression() == Some(Regression::Inconclusive) => {
            "inconclusive: the interval includes both a regression and no regression".to_owned()
        }
        verdict => verdict.words().to_owned(),
    };
    format!(
        "baseline {run}  {figure}  {} -> {}{effect}{interval}: {verdict}\n",
        figure.format(comparison.a.p50),
        figure.format(comparison.b.p50),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::case::Family;
    use bdp_model::flow::FlowSpec;
    use bdp_model::flow::payload::Zerocopy;
    use bdp_model::flow::udp::{RateSearch, UdpRequest};
    use bdp_model::flow::window::WindowBytes;
    use bdp_model::measurement::{Direction, Measurement, OrderedRates, PeerProtocol, SshRequest};
    use bdp_model::units::{ByteCount, Nanos};

    fn request() -> MeasureRequest {
        MeasureRequest {
            directions: vec![Direction::To],
            spec: FlowSpec { window: WindowBytes::new(64 << 10), ..FlowSpec::default() },
            ..MeasureRequest::to("ams1")
        }
    }

    #[test]
    fn only_what_differs_is_named() {
        let (before, mut now) = (request(), request());
        assert_eq!(differing(&before, &now), None);
        now.spec.window = WindowBytes::new(8200);
        now.spec.streams = 4;
        now.spec.length = ByteCount::kib(2048);
        now.spec.congestion = Some("bbr".to_owned());
        now.bidirectional = true;
        let words = differing(&before, &now).unwrap();
        assert_eq!(words.0, "no --bidir, -P 1, -w 64K, no -C, -l 128K");
        assert_eq!(words.1, "--bidir, -P 4, -w 8200, -C bbr, -l 2M");
        now = request();
        now.spec.mss = Some(1000);
        now.spec.window = None;
        now.spec.socket_buffer = Some(ByteCount::kib(64));
        let words = differing(&before, &now).unwrap();
        assert_eq!(words.1, "no -w, --sockbuf 64K, -M 1000");
    }

    #[test]
    fn datagrams_their_rate_and_their_length_are_named() {
        let udp = UdpRequest {
            rate_bps: Some(100_000_000),
            search: None,
            datagram_bytes: Some(1400),
            dont_fragment: true,
        };
        let mut now = request();
        now.spec.udp = Some(udp.clone());
        let (tcp, datagrams) = differing(&request(), &now).unwrap();
        assert_eq!(tcp, "no -u, no -b, -l 128K, no --dont-fragment");
        assert_eq!(datagrams, "-u, -b 100M, -l 1400, --dont-fragment");
        let fixed = now.clone();
        let search = Some(RateSearch { loss_ratio: 0.01, trial: Nanos::secs(2) });
        now.spec.udp = Some(UdpRequest { rate_bps: None, search, ..udp });
        let (fixed, searched) = differing(&fixed, &now).unwrap();
        assert_eq!(fixed, "-b 100M, no --loss-ratio, no --trial-time");
        assert_eq!(searched, "-b auto, --loss-ratio 0.01, --trial-time 2");
    }

    /// A change of a request, and its name.
    type Changed = (fn(&mut MeasureRequest), &'static str);

    #[test]
    fn each_option_is_compared() {
        let ssh = |through, options| SshRequest {
            destination: "me@ams1".to_owned(),
            through,
            options,
            data_host: None,
            data_port: None,
        };
        let changes: [Changed; 21] = [
            (|r| r.host = "fra1".to_owned(), "HOST fra1"),
            (|r| r.port = 5202, "-p 5202"),
            (|r| r.peer = Some(PeerProtocol::Iperf3), "--iperf3"),
            (|r| r.peer = Some(PeerProtocol::Iperf2), "--iperf2"),
            (|r| r.family = Some(Family::Ipv6), "-6"),
            (|r| r.idle = Nanos::ZERO, "--idle 0"),
            (|r| r.bind_address = Some("192.0.2.1".to_owned()), "-B 192.0.2.1"),
            (|r| r.bind_device = Some("eth0".to_owned()), "--bind-dev eth0"),
            (|r| r.client_port = Some(4000), "--cport 4000"),
            (|r| r.near_cpus = "0,2".parse().ok(), "--cpu 0,2"),
            (|r| r.far_cpus = "1".parse().ok(), "--cpu /1"),
            (|r| r.url = Some("http://ams1/large".to_owned()), "a URL http://ams1/large"),
            (|r| r.responsiveness = true, "--responsiveness"),
            (|r| r.until_settled = true, "--until settled"),
            (|r| r.spec.duration = Nanos::secs(1), "-t 1"),
            (|r| r.spec.interval = Nanos::millis(10), "-i 0.01"),
            (|r| r.spec.pacing_bps = Some(5_000_000), "-b 5M"),
            (|r| r.spec.dscp = Some(46), "--dscp 46"),
            (|r| r.spec.nodelay = true, "-N"),
            (|r| r.spec.zerocopy = Zerocopy::Msg, "--zerocopy msg"),
            (|r| r.spec.check_payload = true, "--check-payload"),
        ];
        let now_of = |change: &dyn Fn(&mut MeasureRequest)| {
            let mut now = request();
            change(&mut now);
            differing(&request(), &now).map(|(_, now)| now)
        };
        for (change, words) in changes {
            assert_eq!(now_of(&change).as_deref(), Some(words));
        }
        let ordered = OrderedRates { to_bps: 10_000_000, from_bps: 100_000_000 };
        assert_eq!(now_of(&|r| r.ordered = Some(ordered)).unwrap(), "--ordered 100M/10M");
        // The counted time is the same.
        let omit =
            |r: &mut MeasureRequest| (r.spec.omit, r.spec.duration) = (Nanos::secs(1), Nanos::secs(11));
        assert_eq!(now_of(&omit).unwrap(), "-O 1");
        assert_eq!(now_of(&|r| r.spec.bytes = Some(ByteCount::kib(1024))).unwrap(), "-n 1M, no -t");
        let by_ssh = |r: &mut MeasureRequest| r.ssh = Some(ssh(true, vec!["Port=2222".to_owned()]));
        assert_eq!(
            now_of(&by_ssh).unwrap(),
            "no HOST, --ssh me@ams1, no -p, --through-ssh, --ssh-option Port=2222"
        );
        // ssh's choice for the data is no option.
        let before = MeasureRequest { ssh: Some(ssh(false, Vec::new())), ..request() };
        let now = MeasureRequest { port: 40_000, host: "192.0.2.7".to_owned(), ..before.clone() };
        assert_eq!(differing(&before, &now), None);
    }

    #[test]
    fn recognised_protocol_is_not_an_option() {
        let asked = request();
        let found = MeasureRequest { peer: Some(PeerProtocol::Iperf3), ..request() };
        let mut measurement = Measurement::of(&found);
        let unlike_of = |m: &Measurement| {
            unlike(&Baseline { run: "7f3a".to_owned(), measurements: vec![m.clone()] }, &asked)
        };
        let note = "NOTE  baseline 7f3a was measured with --iperf3, this with no --iperf3";
        assert_eq!(unlike_of(&measurement).as_deref(), Some(note));
        measurement.caveats.push(Caveat::RecognisedIperf3);
        assert_eq!(unlike_of(&measurement), None);
    }
}
