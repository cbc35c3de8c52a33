//! Finds the receive buffer that puts a given window on the wire.
//!
//! The kernel advertises part of its buffer. Which part depends on the kernel, the segment size and how segments are
//! delivered, but hardly on the round trip. It is therefore found once on a twin of the path without delay: a short
//! transfer, a reading of the window as the sender sees it, and the next guess by proportion.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use bdp_agent::expect_answer;
use bdp_agent::remote::Agents;
use bdp_flow::error::FlowError;
use bdp_lab::{AgentCommand, Driver, Pace, Testbed};
use bdp_model::case::tcp_settings::SMALLEST_BUFFER;
use bdp_model::case::{Family, HostSpec, LinkSpec, WHOLE_PACKETS};
use bdp_model::flow::FlowSpec;
use bdp_model::flow::payload::Zerocopy;
use bdp_model::link::{Delivery, DirectionConfig, LinkConfig, QueueLimit};
use bdp_model::units::{ByteCount, Nanos, Rate};
use bdp_wire::control::{Answer, FlowOrder, Request, Role, Sent, StreamSource};

use crate::{Result, RunError};

/// Most transfers for one window.
const TRIES: u32 = 12;
/// The kernel's buffers are of this size at most.
const LARGEST_BUFFER: u64 = i32::MAX as u64;
/// Buffer for each byte of window that a first guess assumes.
const FIRST_RATIO: f64 = 1.6;

/// What the window depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// Window wanted on the wire.
    pub target_bytes: u64,
    /// Payload of a full segment.
    pub mss_bytes: u64,
    /// `TCP_MAXSEG`, if set.
    pub mss_option: Option<u32>,
    /// MTU of the path.
    pub mtu: u32,
    /// How packets are delivered to the receiver.
    pub delivery: Delivered,
    /// IP version.
    pub family: Family,
    /// The receiver's sysctls.
    pub receiver_sysctls: BTreeMap<String, String>,
    /// The sender's sysctls.
    pub sender_sysctls: BTreeMap<String, String>,
}

/// How packets are delivered to the receiver. A super-packet takes less of the buffer than its segments one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivered {
    /// Each wire segment by itself.
    Segments,
    /// As super-packets, whose length depends on the rate.
    SuperPackets {
        /// Rate of the direction towards the receiver.
        rate: Option<Rate>,
    },
}

impl Delivered {
    /// Returns how a direction of a link delivers packets.
    pub(crate) fn over(link: &LinkConfig, direction: &DirectionConfig) -> Self {
        if link.carries_super_packets() {
            Self::SuperPackets { rate: direction.rate }
        } else {
            Self::Segments
        }
    }
}

/// A buffer and the window that it results in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// Buffer to write into `tcp_rmem`.
    pub buffer_bytes: u64,
    /// The window that the sender saw.
    pub window_bytes: u64,
}

/// The calibrations of a run, each found once.
#[derive(Debug)]
pub struct Calibrator {
    known: Mutex<HashMap<Conditions, Calibration>>,
    pace: Pace,
}

impl Calibrator {
    /// Creates a calibrator whose twins have a driver that waits this way.
    pub fn new(pace: Pace) -> Self {
        Self { known: Mutex::default(), pace }
    }

    /// Returns the buffer for these conditions; the closest one found if the exact window is impossible.
    pub fn find(&self, command: &AgentCommand, conditions: &Conditions) -> Result<Calibration> {
        // Held throughout: of two cases that want the same window, the second waits instead of measuring too.
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(&calibration) = known.get(conditions) {
            return Ok(calibration);
        }
        let mut twin = Twin::build(command, self.pace, conditions)?;
        let found = search(conditions.target_bytes, conditions.mss_bytes, |buffer| twin.window_with(buffer))?;
        known.insert(conditions.clone(), found);
        Ok(found)
    }
}

/// Searches for the buffer by proportion, then between the nearest ones on either side. `measure` returns the window
/// of a buffer. Ends at the first window with as many whole segments as wanted.
fn search(target: u64, mss: u64, mut measure: impl FnMut(u64) -> Result<u64>) -> Result<Calibration> {
    // Aim into the segment, not at its edge: the remainder carries nothing, and a little less loses a segment.
    let aim = if target < mss { target } else { target + mss / 4 };
    let (mut below, mut above): (Option<Calibration>, Option<Calibration>) = (None, None);
    // Some kernels take any smaller buffer for the smallest that they know: from there on, less changes nothing.
    let mut buffer = ((aim as f64 * FIRST_RATIO) as u64).max(SMALLEST_BUFFER);
    let mut best: Option<Calibration> = None;
    let mut previous: Option<Calibration> = None;
    for _ in 0..TRIES {
        let found = Calibration { buffer_bytes: buffer, window_bytes: measure(buffer)? };
        if best.is_none_or(|b| found.window_bytes.abs_diff(aim) < b.window_bytes.abs_diff(aim)) {
            best = Some(found);
        }
        if fits(found.window_bytes, target, mss) {
            return Ok(found);
        }
        if found.window_bytes < aim {
            below = below.filter(|b| b.buffer_bytes > buffer).or(Some(found));
        } else {
            above = above.filter(|a| a.buffer_bytes < buffer).or(Some(found));
        }
        let proportional = (buffer as f64 * aim as f64 / found.window_bytes.max(1) as f64).round() as u64;
        // More buffer and no more window: the receiver can't advertise more, scaling off for one.
        let stuck = below.zip(previous).is_some_and(|(b, p): (Calibration, Calibration)| {
            b.buffer_bytes > p.buffer_bytes && b.window_bytes == p.window_bytes
        });
        if stuck && above.is_none() {
            break;
        }
        previous = below;
        let next = match (below, above) {
            (Some(b), Some(a)) if proportional <= b.buffer_bytes || proportional >= a.buffer_bytes => {
                (b.buffer_bytes + a.buffer_bytes) / 2
            }
            _ => proportional.min(LARGEST_BUFFER),
        };
        if next == buffer {
            break;
        }
        buffer = next;
    }
    best.ok_or_else(|| RunError::Case("no calibration attempted".to_owned()))
}

/// Whether a window holds as many whole segments as the target: exactly for up to 200 segments, within 0.5 % beyond,
/// since the kernel's rounding is coarser than a segment there.
pub(crate) fn fits(window: u64, target: u64, mss: u64) -> bool {
    if target < mss {
        return window.abs_diff(target) * 50 <= target;
    }
    let (have, want) = (window / mss, target / mss);
    have.abs_diff(want) * 200 <= want
}

/// Two hosts without delay between them.
struct Twin {
    agents: Agents,
    testbed: Testbed,
    _driver: Driver,
    conditions: Conditions,
}

impl Twin {
    fn build(command: &AgentCommand, pace: Pace, conditions: &Conditions) -> Result<Self> {
        let driver = Driver::start(pace)?;
        let host = |name: &str, sysctls: &BTreeMap<String, String>| HostSpec {
            name: name.to_owned(),
            sysctls: sysctls.clone(),
            ..Default::default()
        };
        let hosts = [host("near", &conditions.sender_sysctls), host("far", &conditions.receiver_sysctls)];
        let (rate, delivery) = match conditions.delivery {
            // Fast enough to be short, slow enough for the reader to keep up on a busy machine.
            Delivered::Segments => (Some(Rate::mbps(400)), Delivery::Segment),
            Delivered::SuperPackets { rate } => (rate, Delivery::Super),
        };
        let direction = DirectionConfig { rate, limit: QueueLimit::Unlimited, ..Default::default() };
        let config = LinkConfig {
            forward: direction.clone(),
            reverse: direction,
            mtu: conditions.mtu,
            delivery,
            ..Default::default()
        };
        let links = [LinkSpec {
            between: ["near".to_owned(), "far".to_owned()],
            config,
            capture: [false; 2],
            capture_snap: WHOLE_PACKETS,
            profile: None,
            netem: [None; 2],
        }];
        let (testbed, streams) =
            Testbed::build(command, &driver, conditions.family, &hosts, &links, 1, None)?;
        let agents = Agents::new(hosts.into_iter().map(|h| h.name).zip(streams))?;
        Ok(Self { agents, testbed, _driver: driver, conditions: conditions.clone() })
    }

    /// Transfers enough for the window to open, and returns the largest that the sender saw at the end.
    fn window_with(&mut self, buffer_bytes: u64) -> Result<u64> {
        let patience = Nanos::secs(10);
        let target = self.conditions.target_bytes;
        // The receiver opens its window by two segments for each it receives.
        let bytes = (2 * target).max(64 * self.conditions.mss_bytes);
        let duration = Nanos(bytes * 8 * 1_000_000_000 / 400_000_000 * 2) + Nanos::millis(500);
        let (_, to) = self
            .testbed
            .route("near", "far")
            .ok_or_else(|| RunError::Case("the twin's hosts are not connected".to_owned()))?;
        let deadline = (duration + patience + patience).to_duration();
        let source =
            StreamSource::Listen { address: (to, 0).into(), patience, tcp_rmem_bytes: Some(buffer_bytes) };
        let spec = FlowSpec {
            duration: duration + patience,
            length: ByteCount::kib(64),
            mss: self.conditions.mss_option,
            zerocopy: Zerocopy::Off,
            ..FlowSpec::default()
        };
        let receive = FlowOrder::of(0, Role::Receive, source, &spec);
        let listening = self.agents.call("far", Request::Prepare(Box::new(receive)), deadline)?;
        let port = expect_answer!(listening, Answer::Listening { port } => port)?;
        let source = StreamSource::Connect { to: (to, port).into(), start: Nanos::ZERO, patience };
        let spec = FlowSpec {
            duration,
            interval: Nanos::millis(2),
            bytes: Some(ByteCount::bytes(bytes)),
            congestion: Some("reno".to_owned()),
            ..spec
        };
        let send = FlowOrder::of(0, Role::Send, source, &spec);
        self.agents.call("near", Request::Prepare(Box::new(send)), deadline)?;
        self.agents.call("near", Request::Begin { flow: 0 }, deadline)?;
        let sent = self.agents.call("near", Request::Collect { flow: 0 }, deadline)?;
        let sent = expect_answer!(sent, Answer::Sent(sent) => sent)?;
        self.agents.call("far", Request::Collect { flow: 0 }, deadline)?;
        settled_window(&sent).ok_or_else(|| {
            RunError::Engine(FlowError::Refused(
                "this kernel does not report the sender's view of the window (needs Linux 5.4)".to_owned(),
            ))
        })
    }
}

/// The largest window in the later half of the readings: it grows to its size and then stays.
fn settled_window(sent: &Sent) -> Option<u64> {
    let windows: Vec<u64> = sent.samples.iter().filter_map(|s| s.snd_wnd_bytes).filter(|&w| w > 0).collect();
    windows[windows.len() / 2..].iter().copied().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that advertises a fixed part of its buffer, in steps.
    fn kernel(ratio: f64, step: u64) -> impl Fn(u64) -> Result<u64, RunError> {
        move |buffer| Ok(((buffer as f64 * ratio) as u64).next_multiple_of(step))
    }

    #[test]
    fn every_window_is_found_on_kernels_with_different_ratios() {
        for ratio in [0.3, 0.5, 0.63, 0.86] {
            for target in [1448, 2896, 30_408, 65_160, 130_320, 318_560, 2_247_296] {
                let mut tries = 0;
                let found = search(target, 1448, |b| {
                    tries += 1;
                    kernel(ratio, 128)(b)
                });
                let window = found.unwrap().window_bytes;
                assert!(fits(window, target, 1448), "{ratio} {target}: {window} after {tries}");
                assert!(tries <= 6, "{ratio} {target}: {tries}");
            }
        }
    }

    #[test]
    fn a_window_that_stops_growing_is_not_chased() {
        // A kernel without window scaling.
        let mut tries = 0;
        let found = search(262_144, 1448, |b| {
            tries += 1;
            assert!(b <= LARGEST_BUFFER, "{b}");
            Ok((b / 2).min(65_535))
        });
        assert_eq!(found.unwrap().window_bytes, 65_535);
        assert!(tries <= 3, "{tries}");
    }

    #[test]
    fn an_impossible_window_gives_the_closest() {
        // A kernel that knows no window below 10000.
        let found = search(2896, 1448, |b| Ok(b.max(10_000))).unwrap();
        assert_eq!(found.window_bytes, 10_000);
        assert!(!fits(found.window_bytes, 2896, 1448));
    }
}
