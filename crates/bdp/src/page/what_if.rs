//! What a path would carry with other parameters: by the models at once, or by a scenario of the lab.

use std::sync::atomic::{AtomicU32, Ordering};

use bdp_model::finding::Limit;
use bdp_model::measurement::ends::Direction;
use bdp_model::measurement::{DirectionResult, Measurement};
use bdp_model::path::loss::SegmentLoss;
use bdp_model::path::overhead::Medium;
use bdp_model::path::shallow_queue;
use bdp_model::path::window::{self, Bound, Congestion, Path, WindowOnWire};
use bdp_model::twin::{Bottleneck, Discipline, Twin, TwinFlow, TwinHost, TwinLoss, TwinWay};
use bdp_model::units::{ByteCount, Nanos, Rate, format_bps};
use bdp_run::twin;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::lab::source;
use crate::store::StoreArgs;
use crate::tune::measured::MeasuredArgs;
use crate::{exit, guest, refusal};

/// Repetitions and seed in the lab.
const RUNS: u32 = 3;
const SEED: u64 = 1;
/// Time that the lab sends for, and the part of it that is omitted, unless the run says otherwise.
const DURATION: Nanos = Nanos::secs(10);
const OMIT: Nanos = Nanos::secs(2);
/// Most segments of such a transfer, which a guest takes a minute for.
const MOST_SEGMENTS: f64 = 1e6;
/// MTU, and the headers of a segment with timestamps, by IP version.
const MTU: u32 = 1500;
const HEADERS: u64 = 52;
const HEADERS_IPV6: u64 = 72;

/// Parameters of a path; an absent one is as measured.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wish {
    run: Option<String>,
    direction: Option<Direction>,
    rate_bps: Option<f64>,
    rtt_ns: Option<u64>,
    loss: Option<f64>,
    queue_bytes: Option<u64>,
    window_bytes: Option<u64>,
    streams: Option<u32>,
    congestion_control: Option<String>,
}

/// Every parameter as it is used.
#[derive(Debug, Clone, Serialize)]
struct Given {
    direction: Direction,
    /// On the wire; null if unknown.
    rate_bps: Option<f64>,
    rtt_ns: u64,
    loss: f64,
    /// Null if unknown.
    queue_bytes: Option<u64>,
    /// Of each stream; null if autotuned.
    window_bytes: Option<u64>,
    streams: u32,
    congestion_control: String,
    mss_bytes: u64,
    /// IP and TCP headers of a segment.
    #[serde(skip)]
    header_bytes: u64,
    /// Rate at which a program holds each stream; null if none does.
    program_bps: Option<f64>,
    /// What the hosts reach, if they and not the path limit the measured transfer.
    hosts_bps: Option<f64>,
}

/// One of the things that limit the goodput.
#[derive(Debug, Clone, Serialize)]
struct LimitedBy {
    limit: &'static str,
    goodput_bps: f64,
    sentence: String,
}

/// A path that was measured, or the one that is described.
struct Base {
    twin: Twin,
    measured: Option<Measurement>,
    /// The parameters as measured.
    given: Given,
}

impl Wish {
    /// Reads a wish, and refuses what no path can be.
    pub fn read(document: Value) -> anyhow::Result<Self> {
        let wish: Self = serde_json::from_value(document)
            .map_err(|error| exit::usage(format!("the request is not as expected: {error}")))?;
        let within = |name: &str, value: Option<f64>, low: f64, high: f64| match value {
            Some(value) if !(low..=high).contains(&value) => {
                Err(exit::usage(format!("{name} {value}: out of range, {low} to {high}")))
            }
            _ => Ok(()),
        };
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        within("rate_bps", wish.rate_bps, 1e3, 1e12)?;
        within("rtt_ns", whole(wish.rtt_ns), 1e3, 6e10)?;
        within("loss", wish.loss, 0.0, 0.5)?;
        within("queue_bytes", whole(wish.queue_bytes), 1.0, 1e10)?;
        within("window_bytes", whole(wish.window_bytes), 1.0, (1_u64 << 30) as f64)?;
        within("streams", wish.streams.map(f64::from), 1.0, 10_000.0)?;
        let is_name = |name: &String| {
            !name.is_empty() && name.len() < 16 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if let Some(name) = wish.congestion_control.as_ref().filter(|name| !is_name(name)) {
            return Err(exit::usage(format!(
                "congestion_control '{name}': expected a name, for example cubic"
            )));
        }
        Ok(wish)
    }

    /// What the models say.
    pub fn answer(&self, store: &StoreArgs) -> anyhow::Result<Value> {
        let base = self.base(store)?;
        let used = self.over(base.given.clone());
        let mut limits = limits(&used);
        limits.sort_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps));
        let lowest = limits.first().map(|limit| limit.goodput_bps);
        let measured = base.measured.as_ref().map(|measurement| {
            let result = measurement.directions.iter().find(|d| d.direction == used.direction);
            let mut document = json!(base.given);
            document["run"] = json!(self.run);
            document["goodput_bps"] = json!(result.map(|d| d.goodput_bps));
            document["limit"] = json!(result.and_then(|d| d.findings.first()).map(|finding| finding.limit));
            document
        });
        // The model of BBR is that a loss up to a bound does not limit it.
        let free_loss = match Congestion::from_name(&used.congestion_control) {
            Congestion::Bbr => window::BBR_LOSS_MAX,
            _ => 0.0,
        };
        let unmodelled = used.loss > free_loss && !limits.iter().any(|limit| limit.limit == "loss");
        let mut sentence = match limits.first() {
            Some(first) => format!("{} {}", first.sentence, lowest_words(first)),
            None => "Nothing that is known limits this path: its rate and its window are unknown.".to_owned(),
        };
        if unmodelled {
            sentence.push_str(&format!(
                " The models do not cover {} at this loss: run it in the lab.",
                used.congestion_control
            ));
        }
        Ok(json!({
            "measured": measured,
            "loaded_rtt_ns": loaded_rtt_ns(&used, &limits),
            "given": used,
            "limits": limits,
            "goodput_bps": lowest,
            "sentence": sentence,
        }))
    }

    /// The command that runs it in the lab.
    pub fn in_lab(&self, store: &StoreArgs) -> anyhow::Result<Value> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let Base { mut twin, measured, given } = self.base(store)?;
        let used = self.over(given);
        self.change(&mut twin, &used);
        if measured.is_none() {
            twin.flow.duration_ns = duration_ns(&used);
            twin.flow.omit_ns = OMIT.as_ns().min(twin.flow.duration_ns / 4);
        }
        let obstacle = guest::obstacle();
        if obstacle.is_some() {
            // The machine's own kernel.
            twin.stack = None;
        }
        let name = format!("what-if:{}", LAST.fetch_add(1, Ordering::Relaxed) + 1);
        source::keep(name.clone(), twin.scenario(RUNS, SEED));
        let mut command = vec!["lab", "run", &name];
        if obstacle.is_some() {
            command.extend(["--clock", "real"]);
        }
        Ok(json!({ "command": command }))
    }

    fn base(&self, store: &StoreArgs) -> anyhow::Result<Base> {
        let Some(run) = &self.run else {
            if self.rate_bps.is_none() || self.rtt_ns.is_none() {
                return Err(exit::usage("without a run, rate_bps and rtt_ns are needed"));
            }
            let twin = described(self.direction.unwrap_or(Direction::To));
            return Ok(Base { given: given(&twin, (None, None)), twin, measured: None });
        };
        let path = MeasuredArgs::of(Some(run.clone()), store.clone()).find()?.path;
        let measurement = path.measurement.clone();
        let first = measurement.directions.first().map(|d| d.direction);
        let direction = self.direction.or(first).unwrap_or(Direction::To);
        let twin = twin::build(&measurement, direction, &path.twin_options()).map_err(refusal::of)?;
        let result = measurement.directions.iter().find(|d| d.direction == direction);
        let each = |d: &DirectionResult| d.goodput_bps / f64::from(twin.flow.streams.max(1));
        let hosts = result.map_or((None, None), |d| match d.findings.first().map(|finding| finding.limit) {
            Some(Limit::ReceiveWindow) => {
                (d.window.on_the_wire_max_bytes.or(d.window.on_the_wire_bytes), None)
            }
            Some(Limit::SendBuffer) => (Some((each(d) * twin.round_trip().as_secs_f64() / 8.0) as u64), None),
            Some(Limit::Cpu | Limit::HostDrops) => (None, Some(d.goodput_bps)),
            _ => (None, None),
        });
        Ok(Base { given: given(&twin, hosts), twin, measured: Some(measurement) })
    }

    /// These parameters, with the wished ones.
    fn over(&self, given: Given) -> Given {
        Given {
            rate_bps: self.rate_bps.or(given.rate_bps),
            rtt_ns: self.rtt_ns.unwrap_or(given.rtt_ns),
            loss: self.loss.unwrap_or(given.loss),
            queue_bytes: self.queue_bytes.or(given.queue_bytes),
            window_bytes: self.window_bytes.or(given.window_bytes),
            streams: self.streams.unwrap_or(given.streams),
            congestion_control: self.congestion_control.clone().unwrap_or(given.congestion_control),
            ..given
        }
    }

    /// Gives a twin the wished parameters.
    fn change(&self, twin: &mut Twin, used: &Given) {
        let wire_bytes = twin.wire_bytes();
        if let Some(rtt) = self.rtt_ns {
            for way in [&mut twin.to, &mut twin.from] {
                way.jitter = None;
            }
            twin.to.delay_ns = rtt / 2;
            twin.from.delay_ns = rtt - rtt / 2;
        }
        let way = twin.way_mut(used.direction);
        let changes_queue = self.rate_bps.is_some() || self.queue_bytes.is_some();
        if let Some(rate_bps) = used.rate_bps.filter(|_| changes_queue) {
            if self.rate_bps.is_some() {
                way.policer = None;
            }
            // A queue of one bandwidth-delay product unless one is known.
            let product = rate_bps * used.rtt_ns as f64 / 8e9;
            let bytes = used.queue_bytes.map_or(product, |bytes| bytes as f64);
            let before = way.bottleneck.take();
            way.bottleneck = Some(Bottleneck {
                rate_bps,
                steps: Vec::new(),
                limit_packets: (bytes / wire_bytes as f64).round().max(2.0) as u64,
                discipline: match before {
                    Some(before) if self.queue_bytes.is_none() => before.discipline,
                    _ => Discipline::DropTail,
                },
                mark_packets: None,
            });
        }
        if let Some(share) = self.loss {
            way.loss = (share > 0.0).then_some(TwinLoss::Random { share });
        }
        let flow = &mut twin.flow;
        flow.window_bytes = self.window_bytes.or(flow.window_bytes);
        flow.streams = used.streams;
        flow.congestion.clone_from(&used.congestion_control);
    }
}

/// A path of which nothing is known yet.
fn described(direction: Direction) -> Twin {
    let host = |name: &str| TwinHost { name: name.to_owned(), ..TwinHost::default() };
    Twin {
        direction,
        both_directions: false,
        near: host("near"),
        far: host("far"),
        ipv6: false,
        mtu: MTU,
        to: TwinWay::default(),
        from: TwinWay::default(),
        flow: TwinFlow { congestion: "cubic".to_owned(), streams: 1, ..TwinFlow::default() },
        other_flow: None,
        stack: None,
        learned: Vec::new(),
        unseen: Vec::new(),
    }
}

/// The parameters of a twin, with the largest window that its transfer can have, and what its hosts reach.
fn given(twin: &Twin, (window, hosts_bps): (Option<u64>, Option<f64>)) -> Given {
    let (way, flow) = (twin.way(twin.direction), &twin.flow);
    let headers = if twin.ipv6 { HEADERS_IPV6 } else { HEADERS };
    let mss = u64::from(twin.mtu).saturating_sub(headers).max(1);
    let queue = way.bottleneck.as_ref().map(|bottleneck| bottleneck.limit_packets * twin.wire_bytes());
    let policed = way.policer.as_ref().map(|policer| policer.rate_bps);
    let held = [flow.writer_bps, flow.reader_bps].into_iter().flatten().min();
    Given {
        direction: twin.direction,
        rate_bps: way.bottleneck.as_ref().map(|bottleneck| bottleneck.rate_bps).or(policed),
        rtt_ns: twin.round_trip().as_ns(),
        loss: way.loss.map_or(0.0, |loss| loss.share()),
        queue_bytes: queue,
        window_bytes: flow.window_bytes.or(window),
        streams: flow.streams.max(1),
        congestion_control: flow.congestion.clone(),
        mss_bytes: flow.mss.map_or(mss, |asked| u64::from(asked).min(mss)),
        header_bytes: headers,
        program_bps: held.map(|bps| bps as f64),
        hosts_bps,
    }
}

/// Everything that limits the goodput.
fn limits(given: &Given) -> Vec<LimitedBy> {
    let congestion = Congestion::from_name(&given.congestion_control);
    let rtt = Nanos(given.rtt_ns);
    let path = Path {
        rate: given.rate_bps.map(|bps| Rate::bps(bps as u64)),
        overhead_bytes: Medium::Ethernet.overhead_bytes(),
        mss_bytes: given.mss_bytes,
        header_bytes: given.header_bytes,
        rtt,
        loss: if given.loss > 0.0 { SegmentLoss::Independent(given.loss) } else { SegmentLoss::None },
        congestion,
        sends_for: None,
    };
    let window = given.window_bytes.map_or(WindowOnWire::Autotuned, WindowOnWire::Receiver);
    let mut limits = Vec::new();
    let mut ceiling_bps = None;
    for (bound, expected) in window::bounds(&path, &window, given.streams) {
        let goodput = format_bps(expected.bps);
        let (limit, sentence) = match bound {
            Bound::Rate => {
                ceiling_bps = Some(expected.bps);
                let rate = format_bps(given.rate_bps.unwrap_or_default());
                ("rate", format!("The bottleneck of {rate} carries {goodput} of payload."))
            }
            Bound::Window => {
                let bytes = ByteCount::bytes(given.window_bytes.unwrap_or_default());
                let (windows, carry) = match given.streams {
                    1 => ("A window".to_owned(), "carries"),
                    n => (format!("{n} windows"), "carry"),
                };
                ("window", format!("{windows} of {bytes} in a round trip of {rtt} {carry} {goodput}."))
            }
            Bound::Loss => {
                let (lost, name) = (share(given.loss), &given.congestion_control);
                let (streams, reach) = match given.streams {
                    1 => ("a stream".to_owned(), "reaches"),
                    n => (format!("{n} streams"), "reach"),
                };
                ("loss", format!("With a loss of {lost}, {streams} of {name} {reach} {goodput}."))
            }
        };
        limits.push(LimitedBy { limit, goodput_bps: expected.bps, sentence });
    }
    limits.extend(ceiling_bps.and_then(|ceiling| shallow(given, congestion, ceiling)));
    limits.extend(given.program_bps.map(|bps| {
        let goodput_bps = bps * f64::from(given.streams);
        let sentence = format!("The programs hold the transfer to {}.", format_bps(goodput_bps));
        LimitedBy { limit: "program", goodput_bps, sentence }
    }));
    limits.extend(given.hosts_bps.map(|goodput_bps| {
        let sentence = format!("The hosts reach {}, as measured.", format_bps(goodput_bps));
        LimitedBy { limit: "hosts", goodput_bps, sentence }
    }));
    limits
}

/// The limit of a queue that is too short, if it is.
fn shallow(given: &Given, congestion: Congestion, ceiling_bps: f64) -> Option<LimitedBy> {
    let product = bdp_bytes(given)?;
    let queue = given.queue_bytes? as f64;
    // A window that never fills the queue never overflows it.
    let most = given.window_bytes.map(|bytes| bytes as f64 * f64::from(given.streams));
    if most.is_some_and(|most| most <= product + queue) {
        return None;
    }
    let used = shallow_queue::used_share(congestion, queue / product, given.streams)?;
    (used < 1.0).then(|| LimitedBy {
        limit: "queue",
        goodput_bps: ceiling_bps * used,
        sentence: format!(
            "A queue of {} is short for {} x {}: after each loss the link idles, and {} uses {} of it.",
            ByteCount::bytes(queue as u64),
            format_bps(given.rate_bps.unwrap_or_default()),
            Nanos(given.rtt_ns),
            given.congestion_control,
            share(used)
        ),
    })
}

/// The round trip under load, with what does not fit on the path in the queue. `limits`: the lowest first.
fn loaded_rtt_ns(given: &Given, limits: &[LimitedBy]) -> Option<u64> {
    let (rate, product) = (given.rate_bps?, bdp_bytes(given)?);
    let (lowest, ceiling) = (limits.first()?, limits.iter().find(|limit| limit.limit == "rate")?);
    // A short queue is full before each loss.
    let fills = lowest.limit == "queue" || lowest.goodput_bps >= ceiling.goodput_bps * 0.9;
    let most = given.window_bytes.map(|bytes| bytes as f64 * f64::from(given.streams));
    let over = most.map_or(f64::INFINITY, |most| (most - product).max(0.0));
    let waiting = match given.queue_bytes {
        _ if !fills => 0.0,
        Some(queue) => over.min(queue as f64),
        None if over.is_finite() => over,
        None => return None,
    };
    Some(given.rtt_ns + (waiting * 8e9 / rate) as u64)
}

/// Bytes in flight that fill the path.
fn bdp_bytes(given: &Given) -> Option<f64> {
    given.rate_bps.map(|rate| rate * given.rtt_ns as f64 / 8e9).filter(|&bytes| bytes > 0.0)
}

fn duration_ns(given: &Given) -> u64 {
    let segments_a_second = given.rate_bps.unwrap_or(1e6) / 8.0 / given.mss_bytes as f64;
    let most = (MOST_SEGMENTS / segments_a_second * 1e9) as u64;
    DURATION.as_ns().min(most).max(given.rtt_ns.saturating_mul(40)).max(1_000_000_000)
}

fn lowest_words(first: &LimitedBy) -> &'static str {
    match first.limit {
        "rate" => "The rate limits it.",
        "window" => "The window limits it.",
        "loss" => "Loss limits it.",
        "queue" => "The short queue limits it.",
        "program" => "The programs limit it.",
        _ => "The hosts limit it.",
    }
}

fn share(fraction: f64) -> String {
    format!("{} %", bdp_model::units::significant(fraction * 100.0))
}

#[cfg(test)]
mod tests {
    use bdp_scenario::{PlanOptions, Scenario};

    use super::*;

    fn wish(document: Value) -> Wish {
        Wish::read(document).unwrap()
    }

    #[test]
    fn the_lab_is_given_what_the_models_are() {
        let wish = wish(json!({
            "direction": "from", "rate_bps": 5e7, "rtt_ns": 30_000_000, "loss": 0.002, "queue_bytes": 153_800,
            "window_bytes": 100_000, "streams": 3, "congestion_control": "reno",
        }));
        let mut twin = described(Direction::From);
        let used = wish.over(given(&twin, (None, None)));
        wish.change(&mut twin, &used);
        twin.flow.duration_ns = duration_ns(&used);
        assert_eq!(json!(given(&twin, (None, None))), json!(used));
        let scenario = Scenario::parse("what-if", &twin.scenario(2, 1)).unwrap();
        let cases = scenario.plan(&PlanOptions::default()).unwrap();
        let link = &cases[0].links[0].config;
        assert_eq!((cases.len(), link.reverse.rate), (2, Some(Rate::bps(50_000_000))));
        assert_eq!(link.forward.rate, None);
        assert_eq!(link.forward.delay.as_ns() + link.reverse.delay.as_ns(), 30_000_000);
    }

    #[test]
    fn the_lowest_limit_is_named_first_and_the_queue_adds_to_the_round_trip() {
        let answer = |document: Value| wish(document).answer(&StoreArgs::at(Some("none"))).unwrap();
        let all = answer(json!({
            "rate_bps": 1e8, "rtt_ns": 40_000_000, "loss": 1e-3, "queue_bytes": 50_000, "streams": 2,
            "congestion_control": "cubic",
        }));
        let limits = all["limits"].as_array().unwrap();
        let names: Vec<_> = limits.iter().map(|limit| limit["limit"].as_str().unwrap()).collect();
        assert_eq!(names, ["loss", "queue", "rate"]);
        assert_eq!((&all["goodput_bps"], &all["measured"]), (&limits[0]["goodput_bps"], &Value::Null));
        assert_eq!(all["loaded_rtt_ns"], 40_000_000, "loss keeps the queue empty");
        // 100 kB more than the 500 kB of the path stand in the queue for 8 ms.
        let full = answer(json!({
            "rate_bps": 1e8, "rtt_ns": 40_000_000, "queue_bytes": 200_000, "window_bytes": 600_000,
        }));
        assert_eq!(
            (&full["limits"][0]["limit"], &full["loaded_rtt_ns"]),
            (&json!("rate"), &json!(48_000_000))
        );
        // A short queue is full before each loss.
        let short = answer(json!({ "rate_bps": 1e8, "rtt_ns": 40_000_000, "queue_bytes": 20_000 }));
        assert_eq!(
            (&short["limits"][0]["limit"], &short["loaded_rtt_ns"]),
            (&json!("queue"), &json!(41_600_000))
        );
    }

    #[test]
    fn loss_without_a_model_is_left_to_the_lab() {
        for (loss, name, is_unmodelled) in
            [(0.01, "vegas", true), (0.01, "bbr", false), (0.02, "bbr", true), (0.0, "vegas", false)]
        {
            let asked = wish(json!({
                "rate_bps": 1e8, "rtt_ns": 40_000_000, "loss": loss, "congestion_control": name,
            }));
            let answer = asked.answer(&StoreArgs::at(Some("none"))).unwrap();
            let sentence = answer["sentence"].as_str().unwrap();
            assert_eq!(sentence.ends_with("run it in the lab."), is_unmodelled, "{name} {loss}: {sentence}");
        }
    }

    #[test]
    fn headers_are_those_of_the_ip_version() {
        for (ipv6, mss) in [(false, 1448.0), (true, 1428.0)] {
            let twin = Twin { ipv6, ..described(Direction::To) };
            let given = Given { rate_bps: Some(1e8), ..given(&twin, (None, None)) };
            let [rate] = &limits(&given)[..] else { panic!("only the rate") };
            assert!((rate.goodput_bps - 1e8 * mss / 1538.0).abs() < 1.0, "{rate:?}");
        }
    }
}
