//! Hosts whose stacks run in steps, and the links between them, by a purely virtual clock: no process, no
//! namespace, no guest. The links are those of the driver ([`crate::driver`]), so they treat a packet exactly as
//! in a guest.

mod probing;
mod seen;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use bdp_link::Packet;
use bdp_model::case::network::{Network, changes};
use bdp_model::case::{Family, HostSpec, LinkSpec};
use bdp_model::probes::ProbeTimes;
use bdp_model::probes::flight::Schedule;
use bdp_model::units::Nanos;
use bdp_stack::{
    Agenda, Command, Done, Settings, SocketId, SocketReport, SocketState, Stack, StackError, Step,
};
use bdp_sys::poll::{Alarm, Interest, Poll};
use bdp_sys::still_clock::StillClock;
use bdp_sys::tun::Tun;
use bdp_wire::control::Probed;

use self::probing::Probing;
pub use self::seen::Seen;
use crate::capture::Captures;
use crate::driver::moving::{Leaving, MovingLink};
use crate::driver::{Port, Router};
use crate::testbed::{LinkOutcome, Wired, outcome, wire};
use crate::{LabError, Result};

/// Offset of the destination in an IPv4 and in an IPv6 header.
const DESTINATIONS: [usize; 2] = [16, 24];
/// Steps at one moment: a stack that exceeds them does not let time pass.
const STEPS_IN_PLACE: u32 = 1_000_000;

/// Port by which a host reaches each address of another host.
type Ways = BTreeMap<IpAddr, Port>;

/// The end of a link without a device.
pub(crate) struct NoDevice;

impl From<NoDevice> for Option<Tun> {
    fn from(_: NoDevice) -> Self {
        None
    }
}

/// Hosts and links of one case.
pub struct Simulation {
    now: u64,
    links: Vec<(LinkSpec, MovingLink<NoDevice>)>,
    wiring: Vec<[Wired; 2]>,
    /// The host at each end of each link.
    ends: Vec<[usize; 2]>,
    hosts: Vec<Host>,
    network: (Vec<HostSpec>, Vec<LinkSpec>),
    /// Route changes in order of time, with the routes of every host from then on. Relative to time zero, and absolute once that is known.
    reroutes: VecDeque<(u64, Vec<Ways>)>,
    /// Whether time zero is known.
    timed: bool,
    probing: Probing,
    /// When a packet leaves each link, and when each host must run.
    due: Due,
    /// Wire segments that reached a host.
    segments: u64,
    in_place: u32,
    time: Time,
}

/// Times of the next events.
struct Due {
    links: Agenda,
    hosts: Agenda,
}

/// A host.
struct Host {
    name: String,
    addresses: Vec<IpAddr>,
    /// Port by which it reaches each address of another host.
    router: Router,
    forwards: bool,
    stack: Option<Box<dyn Stack>>,
    commands: Vec<Command>,
    arrived: Vec<Vec<u8>>,
    sockets: BTreeMap<SocketId, SocketReport>,
    /// The local port of each socket.
    ports: BTreeMap<SocketId, u16>,
    seen: Seen,
}

impl Host {
    /// A number of bytes read that the stack reports and can't have.
    fn lie(&self, report: &SocketReport) -> Option<String> {
        let stack = self.stack.as_ref()?.version();
        let says = format!("'{stack}' reports that it read {} bytes", report.received_bytes);
        let before = self.sockets.get(&report.socket).map_or(0, |last| last.received_bytes);
        if report.received_bytes < before {
            return Some(format!("{says}, after {before} before"));
        }
        let port = self.ports.get(&report.socket)?;
        let readable = self.seen.of(*port)?.readable();
        (report.received_bytes > readable).then(|| format!("{says}, but only {readable} reached its host"))
    }
}

/// What advances the time of a simulation.
#[derive(Debug)]
pub enum Time {
    /// A purely virtual clock, which jumps to the next event.
    Number,
    /// The clock of this guest, which stands still while anything runs: for stacks that depend on it, as its own kernel.
    Guest(Waiting),
}

/// How to wait for a guest's clock.
#[derive(Debug)]
pub struct Waiting {
    clock: StillClock,
    poll: Poll,
    alarm: Alarm,
    ready: Vec<u64>,
}

/// Token of the alarm, beside the numbers of hosts.
const ALARM: u64 = u64::MAX;

impl Time {
    /// The clock of this guest.
    pub fn of_guest() -> Result<Self> {
        let (poll, alarm) = (Poll::new()?, Alarm::new()?);
        poll.add(&alarm, ALARM, Interest::Read)?;
        Ok(Self::Guest(Waiting { clock: StillClock::find(), poll, alarm, ready: Vec::new() }))
    }
}

/// Why [`Simulation::advance`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// The requested moment came.
    Moment,
    /// A socket got its first byte, its end, or another state.
    Change,
}

impl Simulation {
    /// Builds hosts joined by links, which draw from `seed`; `open` creates the stack of a host that has one.
    pub fn build(
        family: Family,
        hosts: &[HostSpec],
        links: &[LinkSpec],
        seed: u64,
        captures: Option<&Captures>,
        time: Time,
        mut open: impl FnMut(&HostSpec, Settings) -> Option<Result<Box<dyn Stack>, StackError>>,
    ) -> Result<Self> {
        let now = if let Time::Guest(waiting) = &time { waiting.clock.now_ns() } else { 0 };
        let wiring = wire(family, hosts, links)?;
        let index = |name: &str| hosts.iter().position(|host| host.name == name).unwrap_or_default();
        let ends = wiring.iter().map(|ports| [0, 1].map(|end| index(&ports[end].host))).collect();
        let own = |host: &HostSpec| {
            let ports = wiring.iter().flatten().filter(|port| port.host == host.name);
            ports.map(|port| port.address).collect::<Vec<_>>()
        };
        let addresses: Vec<Vec<IpAddr>> = hosts.iter().map(own).collect();
        let ways = ways(&Network::new(hosts, links), hosts, &addresses);
        let reroutes = changes(hosts).into_iter().map(|at| {
            let network = Network::new(hosts, links).as_of(at);
            (at.as_ns(), self::ways(&network, hosts, &addresses))
        });
        let reroutes = reroutes.collect();
        let moving = links.iter().enumerate().map(|(i, link)| {
            let taps = captures.map_or([None, None], |captures| captures.taps(i));
            let seed = crate::testbed::link_seed(seed, i);
            (link.clone(), MovingLink::new(&link.config, seed, [NoDevice, NoDevice], taps, i as u64, now))
        });
        let mut simulation = Self {
            now,
            links: moving.collect(),
            ends,
            hosts: Vec::new(),
            network: (hosts.to_vec(), links.to_vec()),
            reroutes,
            timed: false,
            probing: Probing::default(),
            due: Due { links: Agenda::new(links.len()), hosts: Agenda::new(hosts.len()) },
            segments: 0,
            in_place: 0,
            time,
            wiring,
        };
        for (i, ((spec, addresses), ways)) in hosts.iter().zip(addresses).zip(ways).enumerate() {
            let prefix = if family == Family::Ipv4 { 24 } else { 64 };
            let mtus = simulation.links.iter().zip(&simulation.ends).filter(|(_, ends)| ends.contains(&i));
            let settings = Settings {
                host: spec.name.clone(),
                addresses: addresses.iter().map(|&address| (address, prefix)).collect(),
                mtu: mtus.map(|((link, _), _)| link.config.mtu).min().unwrap_or(1500),
                seed: seed.wrapping_add(0x5851_f42d_4c95_7f2d_u64.wrapping_mul(i as u64 + 1)),
                tcp: spec.tcp.clone(),
            };
            let opened = open(spec, settings).transpose();
            let stack = opened.map_err(|error| LabError::Stack { host: spec.name.clone(), error })?;
            if let (Time::Guest(waiting), Some(wakes)) =
                (&simulation.time, stack.as_ref().and_then(|stack| stack.wakes()))
            {
                waiting.poll.add(wakes, i as u64, Interest::Read)?;
            }
            simulation.hosts.push(Host {
                name: spec.name.clone(),
                addresses,
                router: Router { ports: Vec::new(), switch: spec.switch, ways },
                forwards: spec.router,
                stack,
                commands: Vec::new(),
                arrived: Vec::new(),
                sockets: BTreeMap::new(),
                ports: BTreeMap::new(),
                seen: Seen::default(),
            });
        }
        Ok(simulation)
    }

    /// Current time.
    pub fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    /// The index of a host.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    /// The versions of the stacks, by host.
    pub fn versions(&self) -> BTreeMap<String, String> {
        let version = |host: &Host| Some((host.name.clone(), host.stack.as_ref()?.version().to_owned()));
        self.hosts.iter().filter_map(version).collect()
    }

    /// Addresses by which a host reaches another: its own on the first link of its route, and the other's on the last.
    pub fn route(&self, from: usize, to: usize) -> Option<(IpAddr, IpAddr)> {
        let network = Network::new(&self.network.0, &self.network.1);
        let path = network.path(&self.hosts[from].name, &self.hosts[to].name).ok()?;
        let (first, last) = (path.first()?, path.last()?);
        let own = self.wiring[first.link][usize::from(!first.forward)].address;
        Some((own, self.wiring[last.link][usize::from(last.forward)].address))
    }

    /// Gives a command to a host's stack, which carries it out at once.
    pub fn command(&mut self, host: usize, command: Command) {
        let port = match &command {
            Command::Listen { socket, port, .. } => Some((*socket, *port)),
            Command::Connect { socket, from, .. } => Some((*socket, from.port())),
            _ => None,
        };
        if let Some((socket, port)) = port {
            self.hosts[host].ports.insert(socket, port);
            self.hosts[host].seen.watch(port);
        }
        self.hosts[host].commands.push(command);
        self.due.hosts.set(host, Some(self.now));
    }

    /// Latest report of a host's stack on a socket.
    pub fn socket(&self, host: usize, socket: SocketId) -> Option<&SocketReport> {
        self.hosts[host].sockets.get(&socket)
    }

    /// What crossed the wire at a host, by its own ports.
    pub fn seen(&self, host: usize) -> &Seen {
        &self.hosts[host].seen
    }

    /// Wire segments that have reached hosts.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Sets time zero of everything that changes over time to now.
    pub fn start_clock(&mut self) {
        self.links.iter_mut().for_each(|(_, link)| link.start_clock(self.now));
        if !std::mem::replace(&mut self.timed, true) {
            self.reroutes.iter_mut().for_each(|(at, _)| *at = at.saturating_add(self.now));
        }
    }

    /// When routes change next.
    fn next_reroute(&self) -> Option<u64> {
        self.reroutes.front().map(|&(at, _)| at).filter(|_| self.timed)
    }

    fn reroute(&mut self) {
        while self.next_reroute().is_some_and(|at| at <= self.now) {
            let ways = self.reroutes.pop_front().into_iter().flat_map(|(_, ways)| ways);
            self.hosts.iter_mut().zip(ways).for_each(|(host, ways)| host.router.ways = ways);
        }
    }

    /// Advances to a moment, or until a socket changes.
    pub fn advance(&mut self, until: Nanos) -> Result<Reached> {
        loop {
            let mut changed = false;
            let mut first = 0;
            while let Some(host) = self.due.hosts.due(self.now, first) {
                changed |= self.step(host)?;
                first = host + 1;
            }
            if changed {
                return Ok(Reached::Change);
            }
            let due = [
                self.due.links.earliest(),
                self.due.hosts.earliest(),
                self.probing.next(),
                self.next_reroute(),
            ];
            let next = due.into_iter().flatten().min();
            if let Time::Guest(_) = self.time {
                let idle = self.wait(next.unwrap_or(u64::MAX).min(until.as_ns()))?;
                self.happen();
                if idle && self.now >= until.as_ns() && self.due.hosts.due(self.now, 0).is_none() {
                    return Ok(Reached::Moment);
                }
                continue;
            }
            let Some(next) = next.filter(|&next| next <= until.as_ns()) else {
                self.now = self.now.max(until.as_ns());
                return Ok(Reached::Moment);
            };
            if next > self.now {
                (self.now, self.in_place) = (next, 0);
            } else {
                self.in_place += 1;
                if self.in_place > STEPS_IN_PLACE {
                    return Err(LabError::Topology(format!(
                        "a million steps at {} s",
                        Nanos(self.now).as_secs_f64()
                    )));
                }
            }
            self.happen();
        }
    }

    /// Handles all due events.
    fn happen(&mut self) {
        self.reroute();
        self.send_probes();
        self.release();
    }

    /// Waits for a moment of the guest's clock, or until a stack has something to send; returns whether the moment came.
    fn wait(&mut self, moment: u64) -> Result<bool> {
        let Time::Guest(Waiting { clock, poll, alarm, ready }) = &mut self.time else { return Ok(true) };
        alarm.set(moment)?;
        poll.wait(ready, None)?;
        self.now = self.now.max(clock.now_ns());
        ready.retain(|&token| token != ALARM);
        for &host in ready.iter() {
            self.due.hosts.set(host as usize, Some(self.now));
        }
        Ok(ready.is_empty())
    }

    /// Releases everything due from the links.
    fn release(&mut self) {
        let mut first = 0;
        while let Some(index) = self.due.links.due(self.now, first) {
            while let Some(leaving) = self.links[index].1.leave(self.now) {
                self.arrive(index, leaving);
            }
            self.due.links.set(index, self.links[index].1.next);
            first = index + 1;
        }
    }

    /// Handles a packet that leaves a link at a host.
    fn arrive(&mut self, index: usize, leaving: Leaving) {
        let host = &mut self.hosts[self.ends[index][leaving.device]];
        let came_by = Port { link: index as u64, end: leaving.device };
        let for_it = destination(&leaving.packet.data).is_some_and(|to| host.addresses.contains(&to));
        let onward =
            if for_it || !host.forwards { None } else { host.router.way(&leaving.packet, came_by, 0) };
        if let Some(way) = onward {
            self.links[index].1.passed_on(&leaving, leaving.due());
            let mut packet = leaving.packet;
            host.router.pass(&mut packet.data);
            let next = &mut self.links[way.link as usize].1;
            next.meters[way.end].passed_through();
            // A link without delay releases it at this same moment: the loop handles that.
            next.take_in(way.end, packet, self.now);
            self.due.links.set(way.link as usize, next.next);
            return;
        }
        self.links[index].1.handed_over(&leaving, self.now, true);
        if !for_it {
            return;
        }
        self.segments += 1;
        let packet = leaving.packet.data;
        if let Some(back) = self.probing.arrived(&packet, self.now) {
            let host = self.ends[index][leaving.device];
            if !back.is_empty() {
                self.enter(host, back);
            }
            return;
        }
        host.seen.arrived(&packet);
        host.arrived.push(packet);
        self.due.hosts.set(self.ends[index][leaving.device], Some(self.now));
    }

    /// A host sends a packet.
    fn enter(&mut self, host: usize, packet: Vec<u8>) {
        let to = destination(&packet);
        let Some(&way) = to.and_then(|to| self.hosts[host].router.ways.get(&to)) else { return };
        let link = &mut self.links[way.link as usize].1;
        if packet.len() as u64 <= u64::from(link.mtu) {
            link.meters[way.end].found_at_once();
            link.take_in(way.end, Packet::from(packet), self.now);
            self.due.links.set(way.link as usize, link.next);
        }
    }

    /// Runs a host's stack; returns whether a socket changed.
    fn step(&mut self, index: usize) -> Result<bool> {
        let host = &mut self.hosts[index];
        let step = Step {
            now: Nanos(self.now),
            commands: std::mem::take(&mut host.commands),
            packets: std::mem::take(&mut host.arrived),
        };
        let Some(stack) = &mut host.stack else {
            self.due.hosts.set(index, None);
            return Ok(false);
        };
        let mut done = Done::default();
        stack.step(step, &mut done).map_err(|error| LabError::Stack { host: host.name.clone(), error })?;
        self.due.hosts.set(index, done.next.map(Nanos::as_ns));
        let mut changed = false;
        for report in done.sockets {
            if let Some(lie) = host.lie(&report) {
                let error = StackError::Failed(lie);
                return Err(LabError::Stack { host: host.name.clone(), error });
            }
            let last = host.sockets.insert(report.socket, report.clone());
            changed |= is_change(last.as_ref(), &report);
        }
        for packet in done.packets {
            self.hosts[index].seen.sent(&packet);
            self.enter(index, packet);
        }
        Ok(changed)
    }

    fn send_probes(&mut self) {
        for (host, packet) in self.probing.due(self.now) {
            self.enter(host, packet);
        }
    }

    /// Sends probes from one host to another at these times, which start `offset` from now, until a moment, and
    /// answers them there: beside their stacks, by the same links.
    pub fn probe(
        &mut self,
        from: usize,
        to: usize,
        offset: Nanos,
        times: ProbeTimes,
        until: Nanos,
    ) -> Option<usize> {
        let route = self.route(from, to)?;
        let start_ns = self.now + offset.as_ns();
        let schedule = Schedule { start_ns, times: Some(times), count: None, end_ns: until.as_ns() };
        Some(self.probing.add(from, route, schedule))
    }

    /// Stops sending these probes.
    pub fn stop_probe(&mut self, probe: usize) {
        self.probing.stop(probe);
    }

    /// Results of these probes so far.
    pub fn probed(&self, probe: usize) -> Probed {
        self.probing.outcome(probe, self.now)
    }

    /// Ends it; returns the results of the links.
    pub fn finish(self) -> Vec<LinkOutcome> {
        let links = self.links.into_iter().zip(self.wiring);
        links.map(|((spec, link), ports)| outcome(&spec, link.end(false), &ports)).collect()
    }
}

/// The routes of every host, which have these addresses.
fn ways(network: &Network<'_>, hosts: &[HostSpec], addresses: &[Vec<IpAddr>]) -> Vec<Ways> {
    let mut all = vec![Ways::new(); hosts.len()];
    for (target, addresses) in hosts.iter().zip(addresses) {
        for (ways, hop) in all.iter_mut().zip(network.towards(&target.name)) {
            let Some(hop) = hop else { continue };
            let port = Port { link: hop.link as u64, end: usize::from(!hop.forward) };
            ways.extend(addresses.iter().map(|&address| (address, port)));
        }
    }
    all
}

/// Whether a report is relevant to whoever controls the sockets.
fn is_change(last: Option<&SocketReport>, report: &SocketReport) -> bool {
    let before = last.map_or(SocketState::Listening, |last| last.state);
    let (received, ended) = last.map_or((0, false), |last| (last.received_bytes, last.ended));
    before != report.state || ended != report.ended || (received == 0 && report.received_bytes > 0)
}

fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(*packet.get(DESTINATIONS[0]..)?.first_chunk::<4>()?)),
        6 => Some(IpAddr::from(*packet.get(DESTINATIONS[1]..)?.first_chunk::<16>()?)),
        _ => None,
    }
}
