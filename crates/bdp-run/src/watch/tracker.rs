//! Every socket that was seen: what it did in each interval, and what limited it. Time is an argument.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bdp_model::facts::{Conversation, Quota, Role as Part, SocketFacts};
use bdp_model::finding::{Finding, Limit};
use bdp_model::measurement::HostFacts;
use bdp_model::watch::{
    BusyShares, ConnectionState, Holder, LimitShare, MOST_TOTALS, Role, SocketName, SocketReading,
    SocketTotal, WatchInterval,
};
use bdp_sys::cgroup::Throttling;
use bdp_sys::diag::{SocketMemory, SocketReport};
use bdp_sys::tcp_info::TcpInfo;

use super::facts::{self, Known};
use super::history::{History, Reading};
use super::processes::Processes;

/// What a finding looks back on.
const SPAN_NS: u64 = 10_000_000_000;
/// A socket that has not moved for so long is quiet.
const QUIET_AFTER_NS: u64 = 5_000_000_000;
/// Sockets that are explained in an interval: those that moved most, and some of the others in turn.
const MOST_EXPLAINED: usize = 100;
const IN_TURN: usize = 50;

/// A socket, and the network namespace that it is in, by its place in the list of those that are watched.
type Key = (u16, u64);

/// Processes whose quotas are looked at, and sockets of which is asked whether their buffers were asked for, in an interval.
const MOST_PROCESSES: usize = 100;
const MOST_ASKED: usize = 50;
/// Of what remains of the ports that a system gives to clients: the usual beginning of them (RFC 6335 has 49152; Linux begins here).
const EPHEMERAL: u16 = 32_768;

/// What the quota of a process had done, oldest first.
type Quotas = VecDeque<(u64, Throttling)>;

/// All sockets.
pub(super) struct Tracker {
    host: HostFacts,
    sockets: Vec<Socket>,
    index: HashMap<Key, usize>,
    ended: Vec<SocketTotal>,
    /// Programs by the sockets that they have open; nobody where none is seen.
    holders: HashMap<u32, Option<Arc<Holder>>>,
    /// What the quotas of their processes did, at the ends of the last intervals.
    quotas: HashMap<u32, Quotas>,
    /// Ports on which programs listen, by network namespace.
    listening: HashMap<u16, BTreeSet<u16>>,
    /// Number of the list that is being read.
    list: u64,
    at_ns: u64,
    mark_ns: u64,
    seen: u64,
    turn: usize,
}

struct Socket {
    key: Key,
    name: SocketName,
    state: ConnectionState,
    congestion: Option<Arc<str>>,
    memory: Option<SocketMemory>,
    history: History,
    /// When it was first seen.
    first: Reading,
    /// At the end of the interval before.
    mark: Reading,
    listed: u64,
    moved_ns: u64,
    finding: Option<Finding>,
    limits: Vec<(Limit, u64, Finding)>,
    /// The time of a silence that nobody has ended, and what it seems to be: whom it waited for is known when somebody ends it.
    open: Option<(u64, Finding)>,
    is_open: bool,
    active_ns: u64,
    /// Whether its program asked for the sizes of its buffers; `None` before anybody looked.
    asked: Option<Option<(bool, bool)>>,
    own: Part,
    quota: Option<Quota>,
}

impl Tracker {
    pub fn new(host: HostFacts) -> Self {
        Self {
            host,
            sockets: Vec::new(),
            index: HashMap::new(),
            ended: Vec::new(),
            holders: HashMap::new(),
            quotas: HashMap::new(),
            listening: HashMap::new(),
            list: 0,
            at_ns: 0,
            mark_ns: 0,
            seen: 0,
            turn: 0,
        }
    }

    /// A list of the sockets begins.
    pub fn begin(&mut self, at_ns: u64) {
        self.list += 1;
        self.at_ns = at_ns;
    }

    /// Takes a socket of the list: one that is followed already, or that is wanted.
    pub fn observe(&mut self, network: u16, report: &SocketReport<'_>, wanted: impl FnOnce() -> bool) {
        let key = (network, report.cookie());
        let sockets = self.sockets.len();
        if let Some(&index) = self.index.get(&key) {
            let socket = &mut self.sockets[index];
            socket.listed = self.list;
            socket.take(report, self.at_ns, sockets);
        } else if wanted() && (!report.info.is_empty() || is_request(report)) {
            self.seen += 1;
            self.index.insert(key, sockets);
            let mut socket = Socket::new(key, report, self.at_ns);
            socket.own = part(&socket.name, self.listening.get(&network));
            socket.listed = self.list;
            socket.take(report, self.at_ns, sockets + 1);
            self.sockets.push(socket);
        }
    }

    /// The list is read. Those that a complete one lacks have ended.
    pub fn finish(&mut self, complete: bool) -> usize {
        if !complete {
            return 0;
        }
        let list = self.list;
        let mut ended = 0;
        let mut index = 0;
        while index < self.sockets.len() {
            if self.sockets[index].listed == list {
                index += 1;
                continue;
            }
            let mut gone = self.sockets.swap_remove(index);
            self.index.remove(&gone.key);
            if let Some(moved) = self.sockets.get(index) {
                self.index.insert(moved.key, index);
            }
            ended += 1;
            gone.state = ConnectionState::Closed;
            self.explain_and_count(&mut gone);
            let last = self.reading(&gone);
            let total = gone.total(last, self.at_ns, true);
            self.keep(total);
        }
        ended
    }

    /// What a socket that ended did in its last, unfinished interval.
    fn explain_and_count(&self, socket: &mut Socket) {
        socket.explain(&self.host);
        socket.count(self.at_ns.saturating_sub(self.mark_ns));
    }

    /// Remembers one that ended; of too many, those with most bytes.
    fn keep(&mut self, total: SocketTotal) {
        if moved(&total) > 0 || total.last.finding.is_some() {
            self.ended.push(total);
        }
        if self.ended.len() > 2 * MOST_TOTALS {
            self.ended.sort_by_key(|total| std::cmp::Reverse(moved(total)));
            self.ended.truncate(MOST_TOTALS);
        }
    }

    /// When it last read a list, since watching began.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Sockets that are open.
    pub fn open(&self) -> usize {
        self.sockets.len()
    }

    /// Sockets seen so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Local ports of the sockets of a network namespace.
    pub fn local_ports(&self, network: u16) -> impl Iterator<Item = u16> {
        self.sockets.iter().filter(move |s| s.key.0 == network).map(|s| s.name.local.port())
    }

    /// Numbers of sockets of which nobody has looked who has them open.
    pub fn without_holder(&self) -> Vec<u32> {
        let numbers = self.sockets.iter().filter(|s| s.name.holder.is_none()).map(|s| s.name.inode);
        numbers.filter(|number| *number > 0 && !self.holders.contains_key(number)).collect()
    }

    /// Takes note of who has a socket open.
    pub fn set_holder(&mut self, inode: u32, holder: Option<Arc<Holder>>) {
        self.holders.insert(inode, holder);
    }

    /// Looks at what is known of the sockets' processes alone: the quotas of their control groups, the buffers that they asked for, the ports on which they
    /// listen.
    pub fn look_at_holders(&mut self, world: &mut impl Processes) {
        let networks: BTreeSet<u16> = self.sockets.iter().map(|s| s.key.0).collect();
        self.listening = networks.into_iter().map(|network| (network, world.listening(network))).collect();
        let at_ns = self.at_ns;
        let active: Vec<usize> =
            (0..self.sockets.len()).filter(|&i| self.sockets[i].is_active(at_ns)).collect();
        let holder = |socket: &Socket, holders: &HashMap<u32, Option<Arc<Holder>>>| {
            let known = socket.name.holder.as_ref().map(|holder| holder.pid);
            known.or_else(|| Some(holders.get(&socket.name.inode)?.as_ref()?.pid))
        };
        let processes: BTreeSet<u32> = active
            .iter()
            .filter_map(|&i| holder(&self.sockets[i], &self.holders))
            .take(MOST_PROCESSES)
            .collect();
        self.quotas.retain(|process, _| processes.contains(process));
        for process in processes {
            let Some(now) = world.throttling(process) else { continue };
            let known = self.quotas.entry(process).or_default();
            known.push_back((at_ns, now));
            while known.len() > 2 && known[1].0 + SPAN_NS < at_ns {
                known.pop_front();
            }
        }
        let mut asked = 0;
        for &i in &active {
            let Some(process) = holder(&self.sockets[i], &self.holders) else { continue };
            let socket = &mut self.sockets[i];
            socket.quota = self.quotas.get(&process).and_then(quota);
            if socket.asked.is_none() && asked < MOST_ASKED {
                asked += 1;
                socket.asked = Some(world.buffers_asked(process, socket.name.inode));
            }
        }
        for socket in &mut self.sockets {
            socket.own = part(&socket.name, self.listening.get(&socket.key.0));
        }
    }

    /// The interval ends here.
    pub fn interval(&mut self, at_ns: u64) -> WatchInterval {
        self.at_ns = at_ns;
        let took_ns = at_ns.saturating_sub(self.mark_ns).max(1);
        let mut sockets = std::mem::take(&mut self.sockets);
        let holders = &self.holders;
        for socket in &mut sockets {
            if socket.name.holder.is_none()
                && let Some(Some(holder)) = holders.get(&socket.name.inode)
            {
                socket.name.holder = Some(Holder::clone(holder));
            }
        }
        let unexplained = self.explain(&mut sockets);
        let mut readings = Vec::with_capacity(sockets.len());
        for socket in &mut sockets {
            socket.count(took_ns);
            readings.push(self.reading(socket));
        }
        self.sockets = sockets;
        // Whose sockets have ended is of no interest any more.
        if self.holders.len() > 4 * self.sockets.len() + 1000 {
            let open: std::collections::HashSet<u32> = self.sockets.iter().map(|s| s.name.inode).collect();
            self.holders.retain(|inode, _| open.contains(inode));
        }
        WatchInterval {
            at_ns,
            took_ns,
            samples: 0,
            incomplete: 0,
            sockets: readings,
            unexplained,
            notes: Vec::new(),
        }
    }

    /// Another interval begins where the last one ended.
    pub fn next_interval(&mut self) {
        self.mark_ns = self.at_ns;
        for socket in &mut self.sockets {
            if let Some(latest) = socket.history.latest() {
                socket.mark = latest.clone();
            }
        }
    }

    /// Explains the sockets that are active, or as many as an interval has time for; returns how many were left out.
    fn explain(&mut self, sockets: &mut [Socket]) -> u32 {
        let mut active: Vec<usize> =
            (0..sockets.len()).filter(|&i| sockets[i].is_active(self.at_ns)).collect();
        for (i, socket) in sockets.iter_mut().enumerate() {
            if active.binary_search(&i).is_err() {
                socket.finding = None;
            }
        }
        if active.len() > MOST_EXPLAINED + IN_TURN {
            active.sort_by_cached_key(|&i| std::cmp::Reverse(sockets[i].moved_bytes()));
            let rest = active.split_off(MOST_EXPLAINED);
            let from = self.turn % rest.len();
            active.extend(rest.iter().cycle().skip(from).take(IN_TURN.min(rest.len())));
            self.turn = from + IN_TURN;
            for &i in &active {
                sockets[i].explain(&self.host);
            }
            return (rest.len() - IN_TURN.min(rest.len())) as u32;
        }
        for &i in &active {
            sockets[i].explain(&self.host);
        }
        0
    }

    /// All that was carried, those with most bytes first.
    pub fn totals(mut self, at_ns: u64) -> Vec<SocketTotal> {
        let mut all = std::mem::take(&mut self.ended);
        for socket in &self.sockets {
            let last = self.reading(socket);
            let total = socket.total(last, at_ns, false);
            if moved(&total) > 0 || total.last.finding.is_some() {
                all.push(total);
            }
        }
        all.sort_by_key(|total| std::cmp::Reverse(moved(total)));
        all.truncate(MOST_TOTALS);
        all
    }

    fn reading(&self, socket: &Socket) -> SocketReading {
        let took_ns = self.at_ns.saturating_sub(self.mark_ns).max(1);
        let latest = socket.history.latest().unwrap_or(&socket.mark);
        let (now, mark, first) = (latest.info(), socket.mark.info(), socket.first.info());
        let grown =
            |now: Option<u64>, before: Option<u64>| now.unwrap_or(0).saturating_sub(before.unwrap_or(0));
        let count = |of: fn(&TcpInfo) -> Option<u32>| Some(u64::from(of(&now)?.saturating_sub(of(&mark)?)));
        let bps = |bytes: u64| bytes as f64 * 8e9 / took_ns as f64;
        let share = |of: fn(&TcpInfo) -> Option<u64>| {
            Some((of(&now)?.saturating_sub(of(&mark)?) as f64 / took_ns as f64).min(1.0))
        };
        SocketReading {
            name: socket.name.clone(),
            state: socket.state,
            role: socket.role(self.at_ns),
            congestion_control: socket.congestion.as_deref().map(str::to_owned),
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
            send_buffer_bytes: socket.memory.map(|memory| memory.send_buffer),
            receive_buffer_bytes: socket.memory.map(|memory| memory.receive_buffer),
            finding: socket.finding.clone(),
        }
    }
}

/// Adds time to what a limit has taken.
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

/// Whether it is a connection that this machine was asked for, and that has no socket yet: the kernel has no figures of it.
fn is_request(report: &SocketReport<'_>) -> bool {
    ConnectionState::of_linux(report.state()) == ConnectionState::SynReceived
}

/// Which part an end has, by the ports on which programs of its machine listen, or else by the port that a system gives to clients alone.
fn part(name: &SocketName, listening: Option<&BTreeSet<u16>>) -> Part {
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

/// What a quota did from the first of what is known to the last.
fn quota(known: &Quotas) -> Option<Quota> {
    let (&(from, first), &(until, last)) = (known.front()?, known.back()?);
    let took = until.checked_sub(from).filter(|&ns| ns > 0)?;
    let grown = |of: fn(&Throttling) -> u64| of(&last).saturating_sub(of(&first));
    Some(Quota {
        throttled: grown(|t| t.periods),
        periods: grown(|t| t.of_periods),
        share: (grown(|t| t.time_ns) as f64 / took as f64).min(1.0),
    })
}

fn moved(total: &SocketTotal) -> u64 {
    total.last.sent_bytes + total.last.received_bytes
}

impl Socket {
    fn new(key: Key, report: &SocketReport<'_>, at_ns: u64) -> Self {
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

    fn take(&mut self, report: &SocketReport<'_>, at_ns: u64, sockets: usize) {
        self.state = ConnectionState::of_linux(report.state());
        if let Some(name) = report.congestion
            && self.congestion.as_deref() != Some(name)
        {
            self.congestion = Some(name.into());
        }
        self.memory = report.memory.or(self.memory);
        // Of one that was reset the kernel has no figures any more; what was read before stands.
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

    /// Whether it moved lately, or has something to move.
    fn is_active(&self, at_ns: u64) -> bool {
        self.moved_ns > 0 && at_ns.saturating_sub(self.moved_ns) < QUIET_AFTER_NS
    }

    fn role(&self, at_ns: u64) -> Role {
        if !self.is_active(at_ns) {
            return Role::Quiet;
        }
        facts::role(&self.history.ends())
    }

    /// Bytes of the interval.
    fn moved_bytes(&self) -> u64 {
        let Some(latest) = self.history.latest() else { return 0 };
        let (now, mark) = (latest.info(), self.mark.info());
        let grown =
            |of: fn(&TcpInfo) -> Option<u64>| of(&now).unwrap_or(0).saturating_sub(of(&mark).unwrap_or(0));
        grown(|i| i.bytes_acked) + grown(|i| i.bytes_received)
    }

    fn explain(&mut self, host: &HostFacts) {
        let known = Known {
            remote: self.name.remote,
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

    /// Adds an interval to the time that what limits it now has taken, and what a silence took that is over.
    fn count(&mut self, took_ns: u64) {
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

    /// Data that was sent in vain is acknowledged after all: its receiver was not gone, and nothing had come through.
    fn came_back(&mut self) {
        let Some(i) = self.limits.iter().position(|of| of.0 == Limit::PeerGone) else { return };
        let (_, ns, finding) = self.limits.remove(i);
        let rtt = self.history.latest().and_then(|latest| latest.info().min_rtt_ns);
        let outage = bdp_explain::outage_over(&finding, rtt);
        add(&mut self.limits, ns, &outage);
    }

    fn total(&self, last: SocketReading, at_ns: u64, ended: bool) -> SocketTotal {
        let (now, first) = (self.history.latest().unwrap_or(&self.first).info(), self.first.info());
        let mut all = self.limits.clone();
        // A silence that goes on is for whom it seems to be.
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
