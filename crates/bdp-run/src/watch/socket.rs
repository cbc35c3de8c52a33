//! One tracked socket: its readings, what limits it now, and what has limited it so far. Time is an argument.

use std::collections::BTreeSet;
use std::sync::Arc;

use bdp_model::facts::{Conversation, Quota, Role as Part, SocketFacts};
use bdp_model::finding::{Finding, Limit};
use bdp_model::measurement::HostFacts;
use bdp_model::watch::{
    BusyShares, ConnectionState, Holder, LimitShare, Role, SocketName, SocketReading, SocketTotal,
};
use bdp_sys::diag::{SocketMemory, SocketReport};
use bdp_sys::tcp_info::TcpInfo;

use super::facts::{self, Known};
use super::history::{History, Reading};

/// The time span that a finding covers.
pub(super) const SPAN_NS: u64 = 10_000_000_000;
/// A socket that has not moved data for this long is quiet.
const QUIET_AFTER_NS: u64 = 5_000_000_000;
/// The usual first ephemeral port, if listening ports do not decide (RFC 6335 has 49152; Linux begins here).
const EPHEMERAL: u16 = 32_768;

/// A socket, and the index of its network namespace in the list of watched ones.
pub(super) type Key = (u16, u64);

/// A tracked socket.
pub(super) struct Socket {
    pub(super) key: Key,
    pub(super) name: SocketName,
    pub(super) state: ConnectionState,
    congestion: Option<Arc<str>>,
    memory: Option<SocketMemory>,
    pub(super) history: History,
    /// The first reading.
    pub(super) first: Reading,
    /// The reading at the end of the previous interval.
    pub(super) mark: Reading,
    pub(super) listed: u64,
    moved_ns: u64,
    pub(super) finding: Option<Finding>,
    limits: Vec<(Limit, u64, Finding)>,
    /// The duration of an unfinished silence, and its presumed finding: whom it waited for is known when one end
    /// breaks it.
    open: Option<(u64, Finding)>,
    is_open: bool,
    active_ns: u64,
    /// Whether its program set the sizes of its buffers; `None` if not yet checked.
    pub(super) asked: Option<Option<(bool, bool)>>,
    pub(super) own: Part,
    pub(super) quota: Option<Quota>,
}

impl Socket {
    pub(super) fn new(key: Key, report: &SocketReport<'_>, at_ns: u64) -> Self {
        let reading = Reading::of(report, at_ns);
        let socket_name = SocketName {
            cookie: report.cookie(),
            inode: report.inode(),
            holder: None,
            user: report.user(),
            local: report.local(),
            remote: report.remote(),
        };
        Self {
            key,
            name: socket_name.clone(),
            state: ConnectionState::of_linux(report.state()),
            congestion: None,
            memory: None,
            history: History::default(),
            first: reading.clone(),
            mark: reading,
            listed: 0,
            moved_ns: 0,
            finding: None,
            limits: Vec::new(),
            open: None,
            is_open: false,
            active_ns: 0,
            asked: None,
            own: part(&socket_name, None),
            quota: None,
        }
    }

    pub(super) fn take(&mut self, report: &SocketReport<'_>, at_ns: u64, sockets: usize) {
        self.state = ConnectionState::of_linux(report.state());
        if let Some(name) = report.congestion
            && self.congestion.as_deref() != Some(name)
        {
            self.congestion = Some(name.into());
        }
        self.memory = report.memory.or(self.memory);
        // For a socket that was reset, the kernel has no figures any more; earlier readings stand.
        if report.info.is_empty() && !is_request(report) || self.state == ConnectionState::Closed {
            return;
        }
        let reading = Reading::of(report, at_ns);
        let asked_lately = || {
            let last = reading.last();
            self.history.latest().is_none_or(|last| !last.has_figures())
                && reading.is_opening()
                && reading.at_ns as i64 - last.sent_ns.max(last.received_ns) < QUIET_AFTER_NS as i64
        };
        let waits = reading.queued > 0 || reading.unread > 0 || reading.is_being_made() || asked_lately();
        if waits || self.history.latest().is_some_and(|last| reading.has_moved_since(last)) {
            self.moved_ns = at_ns.max(1);
        }
        // A request that became a connection has figures only from then on.
        if self.history.latest().is_some_and(|last| !last.has_figures()) && reading.has_figures() {
            let since_ns = self.first.since_ns;
            self.history = History::default();
            self.first = reading.clone();
            self.first.since_ns = since_ns;
            self.mark = reading.clone();
        }
        self.history.push(reading, SPAN_NS, sockets);
    }

    /// Whether it moved data recently, or has data to move.
    pub(super) fn is_active(&self, at_ns: u64) -> bool {
        self.moved_ns > 0 && at_ns.saturating_sub(self.moved_ns) < QUIET_AFTER_NS
    }

    fn role(&self, at_ns: u64) -> Role {
        if !self.is_active(at_ns) {
            return Role::Quiet;
        }
        facts::role(&self.history.ends())
    }

    /// Returns the bytes of the interval.
    pub(super) fn moved_bytes(&self) -> u64 {
        let Some(latest) = self.history.latest() else { return 0 };
        let (now, mark) = (latest.info(), self.mark.info());
        let grown =
            |of: fn(&TcpInfo) -> Option<u64>| of(&now).unwrap_or(0).saturating_sub(of(&mark).unwrap_or(0));
        grown(|i| i.bytes_acked) + grown(|i| i.bytes_received)
    }

    pub(super) fn explain(&mut self, host: &HostFacts) {
        let known = Known {
            limit_counts_from: 0.0,
            here: facts::HERE,
            there: self.name.remote.ip().to_string(),
            congestion: self.congestion.as_deref().unwrap_or_default(),
            send_buffer: self.memory.map(|memory| memory.send_buffer),
            receive_buffer: self.memory.map(|memory| memory.receive_buffer),
            own: self.own,
            socket: SocketFacts {
                send_buffer_asked: self.asked.flatten().map(|asked| asked.0),
                receive_buffer_asked: self.asked.flatten().map(|asked| asked.1),
                quota: self.quota,
                has_channels: has_channels(&self.name),
                ..SocketFacts::default()
            },
            host: (self.key.0 == 0).then_some(host),
        };
        let facts = facts::facts(&self.history, &known, SPAN_NS);
        let conversation = facts.as_ref().and_then(|facts| facts.conversation.as_ref());
        self.is_open = conversation.is_some_and(Conversation::is_unproved);
        self.finding = facts.and_then(|facts| bdp_explain::explain(&facts).into_iter().next());
    }

    /// Adds an interval to the time of the current limit, and the duration of a finished silence.
    pub(super) fn count(&mut self, took_ns: u64) {
        if self.has_acked() {
            self.came_back();
        }
        let Some(finding) = &self.finding else { return };
        self.active_ns += took_ns;
        let ns = self.open.take().map_or(0, |open| open.0) + took_ns;
        match self.is_open {
            true => self.open = Some((ns, finding.clone())),
            false => add(&mut self.limits, ns, finding),
        }
    }

    /// Whether data of this end was acknowledged in the interval.
    fn has_acked(&self) -> bool {
        let acked = |info: TcpInfo| info.bytes_acked;
        let now = self.history.latest().and_then(|latest| acked(latest.info()));
        now.zip(acked(self.mark.info())).is_some_and(|(now, before)| now > before)
    }

    /// Handles retransmitted data that is acknowledged after all: its receiver had not gone, and nothing had got
    /// through.
    fn came_back(&mut self) {
        let Some(i) = self.limits.iter().position(|of| of.0 == Limit::PeerGone) else { return };
        let (_, ns, finding) = self.limits.remove(i);
        let rtt = self.history.latest().and_then(|latest| latest.info().min_rtt_ns);
        let outage = bdp_explain::outage_over(&finding, rtt);
        add(&mut self.limits, ns, &outage);
    }

    /// Returns its activity in the interval that began at `mark_ns`.
    pub(super) fn reading(&self, at_ns: u64, mark_ns: u64) -> SocketReading {
        let took_ns = at_ns.saturating_sub(mark_ns).max(1);
        let latest = self.history.latest().unwrap_or(&self.mark);
        let (now, mark, first) = (latest.info(), self.mark.info(), self.first.info());
        let grown =
            |now: Option<u64>, before: Option<u64>| now.unwrap_or(0).saturating_sub(before.unwrap_or(0));
        let count = |of: fn(&TcpInfo) -> Option<u32>| Some(u64::from(of(&now)?.saturating_sub(of(&mark)?)));
        let bps = |bytes: u64| bytes as f64 * 8e9 / took_ns as f64;
        let share = |of: fn(&TcpInfo) -> Option<u64>| {
            Some((of(&now)?.saturating_sub(of(&mark)?) as f64 / took_ns as f64).min(1.0))
        };
        SocketReading {
            name: self.name.clone(),
            state: self.state,
            role: self.role(at_ns),
            congestion_control: self.congestion.as_deref().map(str::to_owned),
            sent_bps: bps(grown(now.bytes_acked, mark.bytes_acked)),
            received_bps: bps(grown(now.bytes_received, mark.bytes_received)),
            sent_bytes: grown(now.bytes_acked, first.bytes_acked),
            received_bytes: grown(now.bytes_received, first.bytes_received),
            rtt_ns: now.rtt_ns.filter(|&ns| ns > 0),
            min_rtt_ns: now.min_rtt_ns.filter(|&ns| ns > 0 && ns < u64::from(u32::MAX) * 1000),
            mss_bytes: now.snd_mss.map(u64::from),
            cwnd_segments: now.cwnd_segments,
            ssthresh_segments: now.ssthresh_segments,
            in_flight_segments: now.unacked_segments,
            send_window_bytes: now.snd_wnd.map(u64::from),
            receive_window_bytes: now.rcv_wnd.map(u64::from),
            retransmits: count(|i| i.total_retrans),
            retransmits_total: now.total_retrans.map(u64::from),
            out_of_order: count(|i| i.rcv_out_of_order),
            delivery_rate_bps: now.delivery_rate_bps.filter(|&bps| bps > 0),
            app_limited: now.app_limited,
            limited: (|| {
                Some(BusyShares {
                    busy: share(|i| i.busy_ns)?,
                    rwnd_limited: share(|i| i.rwnd_limited_ns)?,
                    sndbuf_limited: share(|i| i.sndbuf_limited_ns)?,
                })
            })(),
            unread_bytes: latest.unread,
            queued_bytes: latest.queued,
            not_sent_bytes: now.notsent_bytes,
            send_buffer_bytes: self.memory.map(|memory| memory.send_buffer),
            receive_buffer_bytes: self.memory.map(|memory| memory.receive_buffer),
            finding: self.finding.clone(),
        }
    }

    pub(super) fn total(&self, last: SocketReading, at_ns: u64, ended: bool) -> SocketTotal {
        let (now, first) = (self.history.latest().unwrap_or(&self.first).info(), self.first.info());
        let mut all = self.limits.clone();
        // An unfinished silence is attributed to its presumed finding.
        if let Some((ns, finding)) = &self.open {
            add(&mut all, *ns, finding);
        }
        let explained: u64 = all.iter().map(|&(_, ns, _)| ns).sum();
        let mut limits: Vec<LimitShare> = all
            .iter()
            .map(|(limit, ns, finding)| LimitShare {
                limit: *limit,
                share: *ns as f64 / explained.max(1) as f64,
                finding: finding.clone(),
            })
            .collect();
        limits.sort_by(|a, b| b.share.total_cmp(&a.share));
        let until = if ended { self.history.latest().map_or(at_ns, |last| last.at_ns) } else { at_ns };
        SocketTotal {
            last,
            watched_ns: until.saturating_sub(self.first.since_ns),
            active_ns: self.active_ns,
            ended,
            retransmits: now
                .total_retrans
                .zip(first.total_retrans)
                .map(|(now, first)| u64::from(now.saturating_sub(first))),
            limits,
        }
    }
}

/// Adds time to that of a limit.
fn add(limits: &mut Vec<(Limit, u64, Finding)>, took_ns: u64, finding: &Finding) {
    match limits.iter_mut().find(|(limit, ..)| *limit == finding.limit) {
        Some((_, ns, surest)) => {
            *ns += took_ns;
            if finding.confidence >= surest.confidence {
                *surest = finding.clone();
            }
        }
        None => limits.push((finding.limit, took_ns, finding.clone())),
    }
}

/// Whether it is a connection request to this machine that has no socket yet: the kernel has no figures for it.
pub(super) fn is_request(report: &SocketReport<'_>) -> bool {
    ConnectionState::of_linux(report.state()) == ConnectionState::SynReceived
}

/// Returns an end's role, by the ports on which programs of its machine listen, or else by the ephemeral port.
pub(super) fn part(name: &SocketName, listening: Option<&BTreeSet<u16>>) -> Part {
    let (local, remote) = (name.local.port(), name.remote.port());
    let listens = |port: u16| listening.is_some_and(|ports| ports.contains(&port));
    let is_here = name.local.ip() == name.remote.ip() || name.remote.ip().is_loopback();
    match (listens(local), is_here && listens(remote)) {
        (true, false) => Part::Server,
        (false, true) => Part::Client,
        _ if (local < EPHEMERAL) != (remote < EPHEMERAL) && local < EPHEMERAL => Part::Server,
        _ if (local < EPHEMERAL) != (remote < EPHEMERAL) => Part::Client,
        _ if local < remote => Part::Server,
        _ => Part::Client,
    }
}

/// Whether it is SSH's, by its port (RFC 4250, section 4.2), or the program that has it open.
fn has_channels(name: &SocketName) -> bool {
    const SSH: u16 = 22;
    const PROGRAMS: [&str; 5] = ["ssh", "sshd", "sshd-session", "scp", "sftp"];
    let is_one = |holder: &Holder| PROGRAMS.contains(&holder.name.as_str());
    [name.local.port(), name.remote.port()].contains(&SSH) || name.holder.as_ref().is_some_and(is_one)
}
