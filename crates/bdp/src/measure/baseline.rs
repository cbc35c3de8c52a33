//! A stored run to compare with.

use bdp_model::comparison::{LEAST_RUNS, Regression, Verdict};
use bdp_model::figure::Figures;
use bdp_model::measurement::MeasureRequest;
use bdp_model::units::ByteCount;
use bdp_run::baseline::{Against, Baseline};
use bdp_store::RunKind;

use crate::exit;
use crate::found::{Found, Kept};
use crate::output::tame;
use crate::store::StoreArgs;

/// Reads it, or the newest of the same host where none is named; refuses one that holds nothing to compare with.
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
                exit::usage(format!("no run to {host} is stored to compare with; name one: --baseline RUN"))
            })?,
    };
    let info = found.info;
    let what = match info.kind {
        RunKind::Measure => None,
        RunKind::Lab => Some("a run of the lab"),
        RunKind::Sweep => Some("a sweep"),
        RunKind::Exec => Some("a run of 'bdp lab exec'"),
    };
    if let Some(what) = what {
        return Err(exit::usage(format!(
            "run {} is {what}; --baseline takes a run of 'bdp measure'",
            info.id
        )));
    }
    let measurements = match found.kept {
        Kept::Measurements(all) => all.into_iter().map(|kept| kept.measurement).collect(),
        Kept::Records(_) => Vec::new(),
    };
    let baseline = Baseline { run: tame(&info.id), measurements };
    if !baseline.suits(request) {
        return Err(exit::usage(format!("run {} measured no direction that is measured now", info.id)));
    }
    Ok(baseline)
}

/// What was asked for otherwise then than now, in a line; nothing where like is compared with like.
pub fn unlike(baseline: &Baseline, now: &MeasureRequest) -> Option<String> {
    let (then, now) = differing(&baseline.measurements.first()?.request, now)?;
    Some(format!("NOTE  baseline {} was measured with {then}, this with {now}", baseline.run))
}

/// The options in which two requests differ, of either; how long they send is not one of them, for goodput is a rate.
fn differing(before: &MeasureRequest, now: &MeasureRequest) -> Option<(String, String)> {
    let (before, now): (Vec<_>, Vec<_>) =
        options(before).into_iter().zip(options(now)).filter(|(then, now)| then != now).unzip();
    (!now.is_empty()).then(|| (before.join(", "), now.join(", ")))
}

/// What decides over figures, as options.
fn options(request: &MeasureRequest) -> Vec<String> {
    let spec = &request.spec;
    let given = |option: &str, value: Option<String>| match value {
        Some(value) => format!("{option} {}", tame(&value)),
        None => format!("no {option}"),
    };
    let size = |size: Option<ByteCount>| size.map(bdp_report::typed_size);
    let set = |option: &str, on: bool| if on { option.to_owned() } else { format!("no {option}") };
    vec![
        given("-w", size(spec.window.map(ByteCount::from))),
        given("-P", Some(spec.streams.to_string())),
        given("-l", size(Some(spec.length))),
        given("-M", spec.mss.map(|mss| mss.to_string())),
        given("-C", spec.congestion.clone()),
        given("--sockbuf", size(spec.socket_buffer)),
        given("--dscp", spec.dscp.map(|dscp| dscp.to_string())),
        set("-N", spec.nodelay),
        set("--bidir", request.bidirectional),
        set("--responsiveness", request.responsiveness),
    ]
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
            "inconclusive: the interval holds a regression and none".to_owned()
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
    use bdp_model::flow::FlowSpec;
    use bdp_model::measurement::Direction;
    use bdp_model::units::Nanos;
    use bdp_model::window::WindowBytes;

    fn request() -> MeasureRequest {
        MeasureRequest {
            directions: vec![Direction::To],
            spec: FlowSpec { window: WindowBytes::new(64 << 10), ..FlowSpec::default() },
            ..MeasureRequest::to("ams1")
        }
    }

    #[test]
    fn only_what_differs_is_named_and_the_time_is_not() {
        let (before, mut now) = (request(), request());
        now.spec.duration = Nanos::secs(1);
        assert_eq!(differing(&before, &now), None);
        now.spec.window = WindowBytes::new(8200);
        now.spec.streams = 4;
        now.spec.length = ByteCount::kib(2048);
        now.spec.congestion = Some("bbr".to_owned());
        now.bidirectional = true;
        let words = differing(&before, &now).unwrap();
        assert_eq!(words.0, "-w 64K, -P 1, -l 128K, no -C, no --bidir");
        assert_eq!(words.1, "-w 8200, -P 4, -l 2M, -C bbr, --bidir");
        now = request();
        now.spec.mss = Some(1000);
        now.spec.window = None;
        now.spec.socket_buffer = Some(ByteCount::kib(64));
        let words = differing(&before, &now).unwrap();
        assert_eq!(words.1, "no -w, -M 1000, --sockbuf 64K");
    }
}
