//! The queues that are compared with the kernel's, and the trains of frames offered to each.

use std::ops::RangeInclusive;

use bdp_lab::frame_train::Frame;
use bdp_model::link::QueueLimit;
use bdp_model::link::queue::{Cake, Codel, FqCodel, Isolation, Queue, QueueParameter, QueueValue, Tins};
use bdp_model::units::{Nanos, Rate};

use super::frames::{Draws, LONGEST};

/// Bytes of a frame on the wire in addition to its IP packet.
pub(super) const OVERHEAD: u32 = 38;
/// Idle time after which a wire is idle: longer than any queue here takes to drain.
pub(super) const PAUSE_NS: u64 = 2_000_000_000;
/// Frames that arrive at once if the wire was idle, so that it is not idle again between the next ones.
const HEAD_START: usize = 40;
/// The wire is free at a whole number of these.
const GRID_NS: u64 = 8_000;

/// Lengths of IP packets: full frames, and any.
const FULL: RangeInclusive<u64> = LONGEST as u64..=LONGEST as u64;
const ANY: RangeInclusive<u64> = 100..=LONGEST as u64;
/// The limit of CAKE, in bytes: none that a train reaches.
const CAKE_LIMIT: u32 = 1 << 28;

/// A queue and its train of frames.
pub(super) struct Pair {
    pub(super) queue: Queue,
    pub(super) limit: u32,
    pub(super) rate: Rate,
    pub(super) name: String,
    pub(super) frames: Vec<Frame>,
}

/// The arrivals of frames.
struct Train {
    rate_bps: u64,
    /// Offered load in per cent of the rate.
    percent: u64,
    time_ns: u64,
    lengths: RangeInclusive<u64>,
    /// The DSCP and ECN field of each flow.
    fields: &'static [u8],
    /// Length of on periods, with off periods of at least [`PAUSE_NS`].
    on_ns: Option<u64>,
}

impl Train {
    fn new(
        mbps: u64,
        percent: u64,
        seconds: u64,
        lengths: RangeInclusive<u64>,
        fields: &'static [u8],
    ) -> Self {
        let (rate_bps, time_ns) = (mbps * 1_000_000, seconds * 1_000_000_000);
        Self { rate_bps, percent, time_ns, lengths, fields, on_ns: None }
    }

    /// Returns the train with pauses, each after this time.
    fn on_for(self, ms: u64) -> Self {
        Self { on_ns: Some(ms * 1_000_000), ..self }
    }

    /// Returns the next shorter length whose frame takes a whole number of [`GRID_NS`] on the wire.
    fn on_grid(&self, ip_bytes: u64) -> u32 {
        let step = self.rate_bps * GRID_NS / 8_000_000_000;
        let wire = (ip_bytes + u64::from(OVERHEAD)) / step * step;
        (wire - u64::from(OVERHEAD)) as u32
    }

    fn frames(&self, seed: u64) -> Vec<Frame> {
        let mut draws = Draws(seed);
        let mean = (self.lengths.start() + self.lengths.end()) / 2 + u64::from(OVERHEAD);
        let gap = mean * 8 * 1_000_000_000 / self.rate_bps * 100 / self.percent;
        let mut frames = Vec::new();
        let (mut at_ns, mut on) = (0, 0);
        while on < self.time_ns {
            let step = draws.within(1..=2 * gap);
            let pause = self.on_ns.filter(|on_ns| on / on_ns != (on + step) / on_ns);
            on += step;
            at_ns += step + pause.map_or(0, |_| PAUSE_NS + PAUSE_NS / 2);
            let starts = pause.is_some() || frames.is_empty();
            let count = if starts { HEAD_START } else { 1 };
            let at_ns = at_ns / GRID_NS * GRID_NS + if starts { 0 } else { GRID_NS / 2 };
            for _ in 0..count {
                let flow = draws.within(0..=self.fields.len() as u64 - 1) as usize;
                frames.push(Frame {
                    at_ns,
                    ip_bytes: self.on_grid(draws.within(self.lengths.clone())),
                    flow: flow as u16,
                    ecn: self.fields[flow],
                });
            }
        }
        frames
    }
}

/// A queue, its limit, the name of a train and the train.
type Row = (Queue, u32, String, Train);

/// Takes the names of rows.
fn rows<const N: usize>(rows: [(Queue, u32, &str, Train); N]) -> Vec<Row> {
    rows.map(|(queue, limit, name, train)| (queue, limit, name.to_owned(), train)).into()
}

/// CoDel, alone or for each flow.
fn codel_rows(queue: impl Fn(Codel) -> Queue) -> Vec<Row> {
    let codel = Codel::default();
    let marking = Codel { ecn: true, ..codel };
    let stepped = Codel { ce_threshold: Some(Nanos::millis(1)), ..marking };
    let [plain, marking, stepped] = [codel, marking, stepped].map(queue);
    rows([
        (plain, 1000, "10M, 120 %, 1500 bytes, 10 s", Train::new(10, 120, 10, FULL, &[0])),
        (plain, 1000, "10M, 120 %, any length, 10 s", Train::new(10, 120, 10, ANY, &[0])),
        (plain, 1000, "100M, 150 %, any length, 3 s", Train::new(100, 150, 3, ANY, &[0])),
        (plain, 50, "10M, 200 %, limit 50", Train::new(10, 200, 5, ANY, &[0])),
        (plain, 1000, "10M, 150 %, on 500 ms", Train::new(10, 150, 5, ANY, &[0]).on_for(500)),
        (marking, 1000, "10M, 120 %, ECN, half ECT", Train::new(10, 120, 10, ANY, &[2, 0])),
        (stepped, 1000, "10M, 120 %, ce_threshold 1 ms, ECT(1)", Train::new(10, 120, 5, ANY, &[1, 0])),
        (plain, 1000, "10M, 130 %, 5 flows", Train::new(10, 130, 10, ANY, &[0; 5])),
    ])
}

fn cake_rows(diffserv: Tins, name: &str) -> Vec<Row> {
    const FIELDS: [u8; 5] = [0, 46 << 2, 8 << 2, 34 << 2, 0];
    let queue = |isolation| Queue::Cake(Cake { diffserv, isolation, rtt: Nanos::millis(100) });
    let [flows, triple] = [Isolation::Flows, Isolation::TripleIsolate].map(queue);
    let mut rows = rows([
        (flows, CAKE_LIMIT, "10M, 120 %, any length, 10 s", Train::new(10, 120, 10, ANY, &[0])),
        (flows, CAKE_LIMIT, "100M, 150 %, any length, 3 s", Train::new(100, 150, 3, ANY, &[0])),
        (flows, CAKE_LIMIT, "10M, 150 %, on 500 ms", Train::new(10, 150, 5, ANY, &[0]).on_for(500)),
        (flows, CAKE_LIMIT, "10M, 120 %, half ECT", Train::new(10, 120, 10, ANY, &[2, 0])),
        (flows, CAKE_LIMIT, "10M, 130 %, 5 flows", Train::new(10, 130, 10, ANY, &FIELDS)),
        (triple, CAKE_LIMIT, "triple-isolate, 10M, 130 %, 5 flows", Train::new(10, 130, 10, ANY, &[0; 5])),
    ]);
    for row in &mut rows {
        row.2 = format!("{name}, {}", row.2);
    }
    rows
}

/// Returns rows for a queue that draws random numbers, without and with ECN.
fn drawing_rows(mut plain: Queue) -> Vec<Row> {
    let in_jiffies = plain.kind().in_jiffies;
    // The kernel's timers and tables can follow these; the train of a byte limit never reaches it.
    for QueueParameter { key, value, .. } in plain.parameters() {
        match (key, value) {
            ("tupdate", QueueValue::Time(period, _)) if in_jiffies => *period = Nanos::millis(20),
            ("burst", QueueValue::Count(burst, _)) => *burst = 50,
            ("quantum", QueueValue::Bytes(quantum, _)) => *quantum = LONGEST,
            _ => {}
        }
    }
    let mut marking = plain;
    if let Some(QueueParameter { value: QueueValue::Flag(ecn), .. }) = marking.parameter("ecn") {
        *ecn = true;
    }
    let limit = match plain.kind().limit {
        QueueLimit::Bytes(bytes) => bytes.as_bytes() as u32,
        _ => 1000,
    };
    let mut rows = rows([
        (plain, limit, "10M, 103 %, 1500 bytes, 20 s", Train::new(10, 103, 20, FULL, &[0])),
        (plain, limit, "10M, 120 %, any length, 20 s", Train::new(10, 120, 20, ANY, &[0])),
        (plain, limit, "100M, 150 %, any length, 5 s", Train::new(100, 150, 5, ANY, &[0])),
        (plain, limit, "10M, 150 %, on 500 ms", Train::new(10, 150, 10, ANY, &[0]).on_for(500)),
        (marking, limit, "10M, 105 %, ECN, half ECT(0)", Train::new(10, 105, 20, ANY, &[2, 0])),
        (marking, limit, "10M, 105 %, ECN, half ECT(1)", Train::new(10, 105, 20, ANY, &[1, 0])),
    ]);
    if plain.parameter("flows").is_some() {
        let train = Train::new(10, 130, 20, ANY, &[0; 5]);
        rows.push((plain, limit, "10M, 130 %, 5 flows".to_owned(), train));
    }
    rows
}

/// Returns all comparisons; a train's index is its seed.
pub(super) fn pairs() -> Vec<Pair> {
    let flows = |codel| Queue::FqCodel(FqCodel { codel, quantum_bytes: 1500, ..FqCodel::default() });
    let exact = [
        codel_rows(Queue::Codel),
        codel_rows(flows),
        cake_rows(Tins::Besteffort, "besteffort"),
        cake_rows(Tins::Diffserv4, "diffserv4"),
    ];
    let drawing = Queue::all().into_iter().filter(|queue| queue.kind().draws).map(drawing_rows);
    let pair = |((queue, limit, name, train), seed): (Row, u64)| {
        let rate = Rate::bps(train.rate_bps);
        Pair { queue, limit, rate, name, frames: train.frames(seed) }
    };
    exact.into_iter().chain(drawing).flatten().zip(1..).map(pair).collect()
}
