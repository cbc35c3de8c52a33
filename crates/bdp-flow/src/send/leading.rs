//! The thread that leads a flow: it reads `TCP_INFO` of all streams, and finds the fastest way to give bytes to the
//! kernel.

use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::flow::method::TriedWay;
use bdp_model::record::{SenderSample, StreamReport};
use bdp_sys::poll::Interest;
use bdp_sys::tcp_info::{self, TcpInfo};
use bdp_sys::{clock, process, socket, still_clock};
use bdp_wire::control::Sent;

use super::share::{Flow, Share, WAKE};
use crate::connection;
use crate::counting::Cadence;
use crate::effort::ProcessShare;
use crate::error::Result;
use crate::loss_episodes::LossEpisodes;
use crate::pause::stop_check_ns;
use crate::sender_reading;
use crate::waiting::Waiting;
use crate::ways::{self, Reading, Step, Trial};

/// `TCP_CLOSE` of `include/net/tcp_states.h`.
const CLOSED: u8 = 7;

/// The leader's own state: its share, and the readings of all streams.
pub(super) struct Leading<'a> {
    flow: &'a Flow<'a>,
    share: Share<'a>,
    samples: Vec<SenderSample>,
    retransmits: u64,
    needless: Option<u64>,
    acked: u64,
    /// The first stream's last non-empty reading.
    first: TcpInfo,
    /// Congestion events of the first stream.
    episodes: LossEpisodes,
    /// The trial of the fastest way, until it is known.
    trial: Option<Trial>,
    tried: Vec<TriedWay>,
}

impl<'a> Leading<'a> {
    pub(super) fn new(flow: &'a Flow<'a>, share: Share<'a>) -> Self {
        let first = TcpInfo::default();
        Self {
            flow,
            share,
            samples: Vec::new(),
            retransmits: 0,
            needless: None,
            acked: 0,
            first,
            episodes: LossEpisodes::default(),
            trial: (flow.ways.len() > 1).then(|| Trial::of(flow.ways.len())),
            tried: Vec::new(),
        }
    }

    pub(super) fn run(&mut self, stop: &AtomicBool) -> Result<Sent> {
        let flow = self.flow;
        self.share.poll.add(&flow.wake, WAKE, Interest::Read)?;
        let started = clock::monotonic_ns();
        self.share.waiting = Waiting::counted_from(started);
        let cpu = ProcessShare::begin(started);
        let congestion = flow.streams.first().map(socket::congestion).transpose()?.unwrap_or_default();
        let end = started.saturating_add(flow.plan.longest.as_ns());
        let mut send_buffer = self.send_buffer();
        let mut cadence = Cadence::every(flow.plan.interval);
        let mut look_ns = 0;
        loop {
            let now = still_clock::now_ns();
            self.share.waiting.note_time(now);
            self.choose_way(now);
            flow.meter.set_written(flow.written.load(Ordering::Relaxed));
            let at_ns = now - started;
            if cadence.take(at_ns) {
                self.sample(at_ns)?;
                send_buffer = self.send_buffer().or(send_buffer);
            } else if at_ns >= look_ns {
                self.look(at_ns);
            }
            if at_ns >= look_ns {
                look_ns = at_ns + self.episodes.cadence_ns(flow.plan.interval.as_ns());
            }
            if stop.load(Ordering::Relaxed)
                || flow.over.load(Ordering::Relaxed)
                || now >= end
                || flow.open.load(Ordering::Relaxed) == 0
            {
                break;
            }
            let next_ns = cadence.next_ns().min(look_ns);
            self.share.turn((started + next_ns).saturating_sub(now).min(stop_check_ns()))?;
        }
        if self.samples.len() < 2 {
            self.sample(clock::monotonic_ns() - started)?;
        }
        self.share.leave();
        Ok(Sent {
            congestion,
            mss: self.first.snd_mss.map(u64::from),
            retransmits: self.samples.last().and_then(|s| s.retransmits),
            needless_retransmits: self.needless,
            streams: self.streams(),
            tried: std::mem::take(&mut self.tried),
            samples: std::mem::take(&mut self.samples),
            loss_episodes: std::mem::take(&mut self.episodes).finish(),
            cpu: cpu.until_now(),
            window_scaling: self.first.window_scaling,
            connection: connection::of_sender(&self.first),
            send_buffer_bytes: send_buffer,
            path_mtu: self.first.pmtu,
            threads: u32::try_from(flow.plan.crew.threads()).ok(),
            patterned: flow.plan.patterned,
            ..Default::default()
        })
    }

    /// Continues the trial of ways.
    fn choose_way(&mut self, now: u64) {
        if self.flow.refuses.load(Ordering::Relaxed) {
            // The first one takes nothing that a system could refuse: all streams go by it.
            self.trial = None;
            self.tried.clear();
            return self.flow.way.store(0, Ordering::Relaxed);
        }
        let Some(trial) = &mut self.trial else { return };
        let bytes = self.flow.written.load(Ordering::Relaxed);
        let way = match trial.step(Reading { at_ns: now, bytes, cpu_ns: process::cpu_time_ns() }) {
            Step::Try(way) => way,
            Step::Take(way, rates) => {
                self.tried = ways::tried(&self.flow.ways, self.flow.mss.load(Ordering::Relaxed), &rates);
                self.trial = None;
                way
            }
        };
        self.flow.way.store(way, Ordering::Relaxed);
    }

    /// Returns the last reading of each of several streams.
    fn streams(&self) -> Vec<StreamReport> {
        let infos = self.flow.meter.infos();
        let Some(last) = self.samples.last().filter(|_| infos.len() > 1) else { return Vec::new() };
        infos.iter().map(|info| sender_reading::stream_report(last.at_ns, info)).collect()
    }

    fn send_buffer(&self) -> Option<u64> {
        self.flow.streams.first().and_then(|s| socket::send_buffer(s).ok()).map(|b| b as u64)
    }

    /// Reads `TCP_INFO` of the first stream, for its congestion events alone.
    fn look(&mut self, at_ns: u64) {
        if let Some(Ok(info)) = self.flow.streams.first().map(tcp_info::read) {
            self.episodes.observe(at_ns, &info);
            self.note_mss(&info);
        }
    }

    fn note_mss(&self, info: &TcpInfo) {
        if let Some(mss) = info.snd_mss {
            self.flow.mss.store(mss.into(), Ordering::Relaxed);
        }
    }

    /// Reads `TCP_INFO` of all streams.
    fn sample(&mut self, at_ns: u64) -> Result<()> {
        let spent = self.flow.busiest.spent();
        let mut sample = SenderSample {
            at_ns,
            write_blocked_ns: self.share.waiting.for_socket_ns(),
            write_idle_ns: self.share.waiting.for_program_ns(),
            cpu_ns: spent.map(|spent| spent.cpu_ns),
            thread_cpu_ns: spent.map(|spent| spent.busiest_cpu_ns),
            run_wait_ns: spent.map(|spent| spent.run_wait_ns),
            ..Default::default()
        };
        let mut acked = vec![0; self.flow.streams.len()];
        // For a connection that was reset, the kernel reports zeros; earlier readings stand.
        let mut infos = self.flow.meter.infos();
        infos.resize(self.flow.streams.len(), TcpInfo::default());
        let (mut needless, mut is_over) = (None, false);
        for (i, stream) in self.flow.streams.iter().enumerate() {
            let Ok(info) = tcp_info::read(stream) else { continue };
            if info.cwnd_segments.is_none_or(|segments| segments > 0) {
                infos[i] = info;
            }
            if info.state == Some(CLOSED) && self.share.ends_unseen(i) {
                // A program in a pause writes nothing that would be refused.
                self.share.close(i - self.share.first)?;
                is_over = i == 0;
            }
            if let Some(bytes) = info.bytes_acked {
                acked[i] = bytes;
                *sample.acked_bytes.get_or_insert(0) += bytes;
            }
            if let Some(count) = info.total_retrans {
                *sample.retransmits.get_or_insert(0) += u64::from(count);
            }
            add(&mut needless, info.dsack_dups);
            add(&mut sample.reorder_seen, info.reorder_seen);
            add(&mut sample.delivered, info.delivered_segments);
            add(&mut sample.delivered_ce, info.delivered_ce_segments);
            add(&mut sample.timeouts, info.timeouts);
            if i == 0 {
                self.episodes.observe(at_ns, &info);
                self.note_mss(&info);
                sender_reading::note_connection(&mut sample, &info);
                if self.share.outlets.first().is_some_and(Option::is_some) || self.first == TcpInfo::default()
                {
                    self.first = info;
                }
            }
        }
        // A socket that was reset reports zeros; earlier figures stand.
        self.retransmits = self.retransmits.max(sample.retransmits.unwrap_or(0));
        sample.retransmits = sample.retransmits.map(|_| self.retransmits);
        self.needless = self.needless.max(needless);
        sample.needless_retransmits = self.needless;
        self.acked = self.acked.max(sample.acked_bytes.unwrap_or(0));
        self.flow.meter.set(self.acked);
        self.flow.meter.set_streams(acked);
        self.flow.meter.set_infos(infos);
        if !is_over || self.samples.is_empty() {
            self.samples.push(sample);
        }
        Ok(())
    }
}

/// Adds a count to a sum, which is unknown until a count is known.
fn add(sum: &mut Option<u64>, count: Option<u32>) {
    if let Some(count) = count {
        *sum.get_or_insert(0) += u64::from(count);
    }
}
