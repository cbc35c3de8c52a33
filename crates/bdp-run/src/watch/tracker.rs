//! Every socket seen: its activity in each interval, and what limited it. Time is an argument.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bdp_model::facts::Quota;
use bdp_model::measurement::HostFacts;
use bdp_model::watch::{ConnectionState, Holder, MOST_TOTALS, SocketTotal, WatchInterval};
use bdp_sys::cgroup::Throttling;
use bdp_sys::diag::SocketReport;

use super::processes::Processes;
use super::socket::{Key, SPAN_NS, Socket, is_request, part};

/// Most sockets explained in an interval: those that moved most, and some of the others in turn.
const MOST_EXPLAINED: usize = 100;
const IN_TURN: usize = 50;

/// Most processes whose quotas are read, and sockets whose buffer settings are looked up, in an interval.
const MOST_PROCESSES: usize = 100;
const MOST_ASKED: usize = 50;
/// A process's quota readings, oldest first.
type Quotas = VecDeque<(u64, Throttling)>;

/// All sockets.
pub(super) struct Tracker {
    host: HostFacts,
    sockets: Vec<Socket>,
    index: HashMap<Key, usize>,
    ended: Vec<SocketTotal>,
    /// Programs by the sockets that they hold; `None` if no holder is visible.
    holders: HashMap<u32, Option<Arc<Holder>>>,
    /// Quota use of their processes, at the ends of the last intervals.
    quotas: HashMap<u32, Quotas>,
    /// Ports on which programs listen, by network namespace.
    listening: HashMap<u16, BTreeSet<u16>>,
    /// Number of the current list.
    list: u64,
    at_ns: u64,
    mark_ns: u64,
    seen: u64,
    turn: usize,
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

    /// Begins a list of sockets.
    pub fn begin(&mut self, at_ns: u64) {
        self.list += 1;
        self.at_ns = at_ns;
    }

    /// Handles a socket of the list, if it is tracked already or wanted.
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

    /// Ends the list. Sockets missing from a complete list have closed.
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
            let last = gone.reading(self.at_ns, self.mark_ns);
            let total = gone.total(last, self.at_ns, true);
            self.keep(total);
        }
        ended
    }

    /// Explains and counts the last, unfinished interval of a closed socket.
    fn explain_and_count(&self, socket: &mut Socket) {
        socket.explain(&self.host);
        socket.count(self.at_ns.saturating_sub(self.mark_ns));
    }

    /// Keeps a closed socket; if there are too many, those with most bytes.
    fn keep(&mut self, total: SocketTotal) {
        if moved(&total) > 0 || total.last.finding.is_some() {
            self.ended.push(total);
        }
        if self.ended.len() > 2 * MOST_TOTALS {
            self.ended.sort_by_key(|total| std::cmp::Reverse(moved(total)));
            self.ended.truncate(MOST_TOTALS);
        }
    }

    /// Returns when it last read a list, since watching began.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Returns the number of open sockets.
    pub fn open(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the number of sockets seen so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the local ports of the sockets of a network namespace.
    pub fn local_ports(&self, network: u16) -> impl Iterator<Item = u16> {
        self.sockets.iter().filter(move |s| s.key.0 == network).map(|s| s.name.local.port())
    }

    /// Returns the numbers of sockets whose holders have not been looked up.
    pub fn without_holder(&self) -> Vec<u32> {
        let numbers = self.sockets.iter().filter(|s| s.name.holder.is_none()).map(|s| s.name.inode);
        numbers.filter(|number| *number > 0 && !self.holders.contains_key(number)).collect()
    }

    /// Records the holder of a socket.
    pub fn set_holder(&mut self, inode: u32, holder: Option<Arc<Holder>>) {
        self.holders.insert(inode, holder);
    }

    /// Reads only what is known of the sockets' processes: the quotas of their control groups, the buffer sizes that
    /// they set, the ports on which they listen.
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

    /// Ends the interval.
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
            readings.push(socket.reading(self.at_ns, self.mark_ns));
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

    /// Begins another interval at the end of the last one.
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

    /// Returns all connections that carried data, those with most bytes first.
    pub fn totals(mut self, at_ns: u64) -> Vec<SocketTotal> {
        let mut all = std::mem::take(&mut self.ended);
        for socket in &self.sockets {
            let last = socket.reading(self.at_ns, self.mark_ns);
            let total = socket.total(last, at_ns, false);
            if moved(&total) > 0 || total.last.finding.is_some() {
                all.push(total);
            }
        }
        all.sort_by_key(|total| std::cmp::Reverse(moved(total)));
        all.truncate(MOST_TOTALS);
        all
    }
}

/// Returns the quota's activity from the first known reading to the last.
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
