//! One flow's data in one direction, be it of the lab or of a measurement: what the charts are drawn from.

use bdp_model::Nanos;
use bdp_model::record::{FlowRecord, ReceiverSample, Record, SenderSample, WindowReport};
use bdp_model::scenario::{CaseFlow, CaseSpec};

/// An interval of the goodput takes about so many round trips at least.
const ROUND_TRIPS: u64 = 4;

/// A transfer.
pub(crate) struct Transfer<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub goodput_bps: f64,
    pub omit_ns: u64,
    pub streams: usize,
    pub mss_bytes: Option<u64>,
    pub retransmits: Option<u64>,
    pub window: &'a WindowReport,
    pub received: &'a [ReceiverSample],
    pub sent: &'a [SenderSample],
    /// Smallest idle round trip between its own hosts.
    pub rtt_min_ns: Option<u64>,
    /// The most that the path can carry, as goodput, and where the figure is from.
    pub ceiling: Option<(f64, String)>,
    /// Bit rate of the path for rate x RTT.
    pub rate_bps: Option<f64>,
}

impl<'a> Transfer<'a> {
    /// A flow of a case.
    pub fn of_flow(record: &'a Record, index: usize) -> Option<Self> {
        let flow: &FlowRecord = record.flows.get(index)?;
        let spec = record.case.flows.get(index)?;
        let rate_bps = slowest_bps(&record.case, spec);
        // Goodput is what full segments carry: payload over what each takes on the wire.
        let ceiling = rate_bps.zip(flow.mss_bytes).and_then(|(rate, mss)| {
            let link = direct_link(&record.case, spec)?;
            let direction =
                if link.between[0] == spec.from { &link.config.forward } else { &link.config.reverse };
            let packet = mss + header_bytes(record);
            let goodput = rate * mss as f64 / (packet + u64::from(direction.overhead_bytes)) as f64;
            Some((goodput, format!("{} less headers", bdp_model::units::format_bps(rate))))
        });
        Some(Self {
            from: &flow.from,
            to: &flow.to,
            goodput_bps: flow.goodput_bps,
            omit_ns: flow.omit_ns,
            streams: flow.stream_goodput_bps.len().max(1),
            mss_bytes: flow.mss_bytes,
            retransmits: flow.retransmits,
            window: &flow.window,
            received: &flow.received,
            sent: &flow.sent,
            rtt_min_ns: flow.rtt_ns.idle.as_ref().map(|idle| idle.min),
            ceiling,
            rate_bps,
        })
    }

    /// `near → far`.
    pub fn name(&self) -> String {
        format!("{} → {}", self.from, self.to)
    }

    /// Goodput that the window on the wire allows over the idle round trip, all streams: whole segments, as senders
    /// send them, where it holds one. `None` where the window was left to autotuning, whose maximum is no promise.
    pub fn window_bound_bps(&self) -> Option<f64> {
        let window = self.window.on_the_wire_max_bytes.or(self.window.on_the_wire_bytes)?;
        let rtt = Nanos(self.rtt_min_ns.filter(|&r| r > 0)?);
        let whole = match self.mss_bytes {
            Some(mss) if mss > 0 && window >= mss => window / mss * mss,
            _ => window,
        };
        Some(whole as f64 * 8.0 / rtt.as_secs_f64() * self.streams as f64)
    }

    /// Rate x idle round trip in bytes, each stream's share.
    pub fn product_bytes(&self) -> Option<f64> {
        let rtt = Nanos(self.rtt_min_ns?);
        Some(self.rate_bps? * rtt.as_secs_f64() / 8.0 / self.streams as f64)
    }

    /// Goodput x idle round trip in bytes, each stream's share.
    pub fn reached_product_bytes(&self) -> Option<f64> {
        let rtt = Nanos(self.rtt_min_ns?);
        Some(self.goodput_bps * rtt.as_secs_f64() / 8.0 / self.streams as f64)
    }

    /// Start and end in seconds, and goodput between, of neighbouring readings; `most` intervals at the most, and none
    /// much shorter than [`ROUND_TRIPS`] round trips: below that, a curve shows single windows come in. Neighbours are
    /// put together for that. With it, how many readings make one.
    pub fn intervals(&self, most: usize) -> (Vec<[f64; 3]>, usize) {
        let readings = self.received.len().saturating_sub(1);
        let apart_ns = self.received.last().map_or(0, |l| l.at_ns) / readings.max(1) as u64;
        let least_ns = ROUND_TRIPS * self.rtt_min_ns.unwrap_or(0);
        let patient = (least_ns as f64 / apart_ns.max(1) as f64).round() as usize;
        // A short flow keeps some intervals, whatever its round trip.
        let patient = patient.min(readings / 8);
        let stride = readings.div_ceil(most.max(1)).max(patient).max(1);
        let mut chosen: Vec<&ReceiverSample> = self.received.iter().step_by(stride).collect();
        // What is left at the end joins the last interval, so that none is too short.
        if let Some(last) = self.received.last().filter(|l| chosen.last().is_some_and(|c| c.at_ns < l.at_ns))
        {
            if chosen.len() > 2 {
                chosen.pop();
            }
            chosen.push(last);
        }
        let intervals = chosen
            .windows(2)
            .filter(|pair| pair[1].at_ns > pair[0].at_ns)
            .map(|pair| {
                let bytes = pair[1].bytes.saturating_sub(pair[0].bytes) as f64;
                let time = (pair[1].at_ns - pair[0].at_ns) as f64;
                [pair[0].at_ns as f64 / 1e9, pair[1].at_ns as f64 / 1e9, bytes * 8e9 / time]
            })
            .collect();
        (intervals, stride)
    }

    /// Share of the readings after omit in which the bytes in flight left no room for another segment in the window,
    /// and how many readings there were; `None` where too little is known.
    pub fn window_full(&self) -> Option<(f64, usize)> {
        let mss = self.mss_bytes.filter(|&m| m > 0)?;
        let readings: Vec<bool> = self
            .sent
            .iter()
            .filter(|s| s.at_ns >= self.omit_ns)
            .filter_map(|s| Some(u64::from(s.unacked?) * mss + mss > s.snd_wnd_bytes?))
            .collect();
        let full = readings.iter().filter(|&&full| full).count();
        (readings.len() >= 5).then(|| (full as f64 / readings.len() as f64, readings.len()))
    }
}

fn header_bytes(record: &Record) -> u64 {
    use bdp_model::path::overhead::{Transport, header_bytes};
    let off = |host: &bdp_model::scenario::HostSpec| {
        host.sysctls.get("net.ipv4.tcp_timestamps").is_some_and(|v| v == "0")
    };
    let transport = if record.case.hosts.iter().any(off) { Transport::Tcp } else { Transport::TcpTimestamps };
    header_bytes(record.case.family, transport)
}

fn direct_link<'a>(case: &'a CaseSpec, flow: &CaseFlow) -> Option<&'a bdp_model::scenario::LinkSpec> {
    case.links.iter().find(|link| link.between.contains(&flow.from) && link.between.contains(&flow.to))
}

/// Bit rate of the link that the flow's hosts share; `None` where they share none or it has no rate.
pub(crate) fn slowest_bps(case: &CaseSpec, flow: &CaseFlow) -> Option<f64> {
    let link = direct_link(case, flow)?;
    let direction = if link.between[0] == flow.from { &link.config.forward } else { &link.config.reverse };
    direction.rate.map(|rate| rate.as_bps() as f64)
}
