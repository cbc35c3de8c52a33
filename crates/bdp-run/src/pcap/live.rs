//! Captures packets of an interface live.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_capture::{Filter, Frame};
use bdp_model::units::Nanos;
use bdp_sys::packet_ring::{Interface, PacketRing, RingPacket};
use bdp_sys::{SysError, clock};
use serde::{Deserialize, Serialize};

use super::end::ReadToEnd;
use super::kept::{About, KeptPackets};
use crate::RunError;

/// Default bytes kept of each packet: all headers, with every option and within tunnels.
pub const SNAP_BYTES: u32 = 256;
/// An interrupt, and the end of the time, are looked for after a block of the ring, and as often as this.
const LOOK_NS: u64 = 50_000_000;
/// Packets that the kernel still holds at the end arrive within this time, or not at all.
const PATIENCE_NS: u64 = 2_000_000_000;
/// The name of all interfaces.
const ANY: &str = "any";

/// A capture to begin.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LivePlan {
    /// The interface; `any` for all of them.
    pub interface: String,
    /// Duration; `None` until cancelled.
    #[serde(rename = "time_ns", with = "bdp_model::units::nanoseconds::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub time: Option<Nanos>,
    /// Bytes to keep of each packet.
    pub snap: u32,
    /// File to also write the packets to, those that the filter matches.
    pub write: Option<PathBuf>,
}

/// A running capture.
#[derive(Debug)]
pub(super) struct LiveCapture {
    interface: String,
    ring: PacketRing,
    /// End, by the monotonic clock.
    until_ns: Option<u64>,
    kept: Option<KeptPackets>,
}

impl LiveCapture {
    /// Starts the capture. A missing interface is an error of the request; any other failure is one of the system.
    pub(super) fn open(plan: &LivePlan, filter: &Filter) -> Result<Self, RunError> {
        let name = &plan.interface;
        let interface = match name.as_str() {
            ANY => Interface::ANY,
            _ => Interface::named(name).map_err(|_| {
                RunError::Request(format!(
                    "interface '{name}' does not exist; 'ip link' lists interfaces, '{ANY}' captures on all"
                ))
            })?,
        };
        let ring = PacketRing::open(interface, plan.snap).map_err(|error| refused(name, &error))?;
        let about = About { interface: name, link_type: ring.link_type(), snap_length: ring.longest() };
        let kept = plan.write.as_deref().map(|path| KeptPackets::create(path, &about, filter));
        Ok(Self {
            interface: name.clone(),
            ring,
            until_ns: plan.time.map(|time| clock::monotonic_ns() + time.as_ns()),
            kept: kept.transpose()?,
        })
    }

    /// `interface eth0`.
    pub(super) fn name(&self) -> String {
        match self.interface.as_str() {
            ANY => "all interfaces".to_owned(),
            name => format!("interface {name}"),
        }
    }

    /// Passes on each packet, numbered from 1, until cancelled or the time has passed.
    pub(super) fn frames(
        mut self,
        cancel: &AtomicBool,
        each: &mut dyn FnMut(u64, &Frame<'_>),
    ) -> Result<ReadToEnd, RunError> {
        let mut taker = Taker { number: 0, link_type: self.ring.link_type(), kept: self.kept.take(), each };
        let ended = self.capture(&mut taker, cancel);
        self.ring.stop()?;
        self.take_rest(&mut taker);
        let dropped = self.ring.dropped()?;
        let unwritten = taker.kept.and_then(|kept| kept.finish(taker.number, dropped).err());
        Ok(ReadToEnd { dropped, broke: ended.err().map(|error| what_happened(&error)).or(unwritten) })
    }

    /// Receives packets until the end of the capture; fails if no more will come.
    fn capture(&mut self, taker: &mut Taker<'_>, cancel: &AtomicBool) -> Result<(), SysError> {
        while !cancel.load(Ordering::Relaxed) && !taker.is_full() {
            let left_ns = self.until_ns.map_or(LOOK_NS, |until| until.saturating_sub(clock::monotonic_ns()));
            if left_ns == 0 {
                break;
            }
            if self.ring.wait(left_ns.min(LOOK_NS))? {
                self.ring.take(&mut |packet| taker.packet(packet));
                // Read often enough for the kernel's counter of 32 bits.
                self.ring.dropped()?;
            }
        }
        Ok(())
    }

    /// Receives packets that arrived before the end.
    fn take_rest(&mut self, taker: &mut Taker<'_>) {
        let until_ns = clock::monotonic_ns() + PATIENCE_NS;
        loop {
            if self.ring.take(&mut |packet| taker.packet(packet)) {
                continue;
            }
            if !self.ring.has_more() || clock::monotonic_ns() > until_ns {
                return;
            }
            // By now it is known whether the interface is down.
            let _ = self.ring.wait(LOOK_NS);
        }
    }
}

/// Receives the packets.
struct Taker<'a> {
    number: u64,
    link_type: u16,
    kept: Option<KeptPackets>,
    each: &'a mut dyn FnMut(u64, &Frame<'_>),
}

impl Taker<'_> {
    fn packet(&mut self, packet: &RingPacket<'_>) {
        self.number += 1;
        let RingPacket { at_ns, length, data, is_outgoing } = *packet;
        let frame = Frame { at_ns: Some(at_ns), link_type: self.link_type, length, data };
        if let Some(kept) = &mut self.kept {
            kept.frame(&frame, is_outgoing);
        }
        (self.each)(self.number, &frame);
    }

    /// Whether a packet could not be written.
    fn is_full(&self) -> bool {
        self.kept.as_ref().is_some_and(KeptPackets::has_failed)
    }
}

/// Returns why a capture cannot begin, and a way out.
fn refused(interface: &str, error: &SysError) -> RunError {
    let text = match error.source.kind() {
        ErrorKind::PermissionDenied => format!(
            "capturing on '{interface}' needs root or CAP_NET_RAW: 'sudo bdp pcap --live {interface}', or \
             'sudo setcap cap_net_raw+ep' on the program"
        ),
        ErrorKind::NetworkDown => {
            format!("interface '{interface}' is down; run 'ip link set {interface} up'")
        }
        _ => format!("capturing on '{interface}': {error}"),
    };
    RunError::Capture(text)
}

/// Why a capture ended.
fn what_happened(error: &SysError) -> String {
    match error.source.kind() {
        ErrorKind::NetworkDown => "the interface went down".to_owned(),
        _ => error.to_string(),
    }
}
