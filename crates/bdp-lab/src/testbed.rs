//! The hosts and links of a case, built together and removed together.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};

use bdp_link::{DropCause, End};
use bdp_model::case::network::{Hop, Network, changes};
use bdp_model::case::{Family, HostSpec, LinkSpec};
use bdp_model::flow::method::Privilege;
use bdp_model::link::{DirectionConfig, Loss};
use bdp_model::record::{DirectionFidelity, Lateness};
use bdp_model::statistics::histogram::Histogram;
use bdp_model::units::Nanos;
use bdp_sys::clock;
use bdp_sys::tun::Tun;
use bdp_wire::setup::{DeviceSetup, HostSetup, RouteSetup};

use crate::agent::addresses;
use crate::capture::Captures;
use crate::crossing::Crossing;
use crate::driver::{Driven, DrivenLink, Driver, Port, Router};
use crate::fidelity;
use crate::host::{AgentCommand, Host};
use crate::meter::Meter;
use crate::program::ProgramPlace;
use crate::reroute::{Change, HostChange, Rerouting};
use crate::{LabError, Result};

/// Packets that may wait between a host's stack and the driver: more than any window of 20 MB fills.
const TRANSMIT_QUEUE: u32 = 16_384;

/// Hosts and links of one case. When dropped, the processes are killed and nothing remains.
#[derive(Debug)]
pub struct Testbed {
    hosts: Vec<(String, Host)>,
    /// Device of each link at each end: host index and device name.
    wiring: Vec<[Wired; 2]>,
    links: Vec<(LinkSpec, DrivenLink)>,
    rerouting: Option<Rerouting>,
    /// Specifications that it was built from.
    specs: Vec<HostSpec>,
    linked: Vec<LinkSpec>,
}

/// Seed of a link of a case: links draw independently of each other.
pub(crate) fn link_seed(seed: u64, link: usize) -> u64 {
    seed.wrapping_add((link as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Host and device at one end of a link.
#[derive(Debug, Clone)]
pub(crate) struct Wired {
    pub(crate) host: String,
    device: String,
    pub(crate) address: IpAddr,
}

/// Final results of a link.
pub struct LinkOutcome {
    /// Forward, then reverse. Conservation excludes the devices until [`LinkOutcome::hold_against`] adds them.
    pub directions: [DirectionFidelity; 2],
    /// Lateness of all releases.
    pub lateness: Histogram,
    /// Why the driver gave up the link, if it did.
    pub fault: Option<String>,
    /// Whether a driver that must not sleep slept, because others wanted its processor.
    pub slept: bool,
    /// Probes that crossed it, forward and in reverse.
    pub crossings: [Vec<Crossing>; 2],
    ports: [(String, String); 2],
    meters: [Meter; 2],
    /// Keeps the devices, and so their counters, until the outcome is dropped; none if stacks have none.
    _devices: Vec<Tun>,
}

/// Counters of the device at one end of a link, as kept by the host's kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceReading {
    /// Packets received by the stack.
    pub rx_packets: u64,
    /// Packets read by the driver.
    pub tx_packets: u64,
    /// Packets sent by the stack and dropped by the device because its queue was full.
    pub tx_dropped: u64,
}

impl Testbed {
    /// Starts and joins the hosts; returns the control stream of each host in the order of `hosts`. `captures` receives what is captured.
    pub fn build(
        command: &AgentCommand,
        driver: &Driver,
        family: Family,
        hosts: &[HostSpec],
        links: &[LinkSpec],
        seed: u64,
        captures: Option<&Captures>,
    ) -> Result<(Self, Vec<UnixStream>)> {
        static NEXT_KEY: AtomicU64 = AtomicU64::new(1);
        let wiring = wire(family, hosts, links)?;
        let mut testbed = Self {
            hosts: Vec::new(),
            wiring,
            links: Vec::new(),
            rerouting: None,
            specs: hosts.to_vec(),
            linked: links.to_vec(),
        };
        let mut streams = Vec::new();
        let mut devices = BTreeMap::new();
        let routes = testbed.routes(Nanos::ZERO);
        let mut sockets = Vec::new();
        for (host, routes) in hosts.iter().zip(&routes) {
            let setup = testbed.setup(host, links, routes.clone());
            let (mut running, stream, tuns) = Host::start(command, &setup)?;
            sockets.extend(running.netlink.take().map(|netlink| (host.name.clone(), netlink)));
            if let Some(process) = running.process_id() {
                if let Some(cpus) = driver.host_cpus() {
                    bdp_sys::process::pin(process, cpus)?;
                }
                // It helps if allowed; the fidelity of each case shows the result without.
                bdp_sys::process::prefer(process);
            }
            for (device, tun) in setup.devices.iter().zip(tuns) {
                devices.insert((host.name.clone(), device.name.clone()), tun);
            }
            testbed.hosts.push((host.name.clone(), running));
            streams.push(stream);
        }
        for (i, (link, ports)) in links.iter().zip(&testbed.wiring).enumerate() {
            let mut take = |port: &Wired| {
                devices.remove(&(port.host.clone(), port.device.clone())).ok_or_else(|| {
                    LabError::Topology(format!("device {} of {} is missing", port.device, port.host))
                })
            };
            let ends = [take(&ports[0])?, take(&ports[1])?];
            let taps = captures.map_or([None, None], |c| c.taps(i));
            let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
            let seed = link_seed(seed, i);
            testbed.links.push((link.clone(), driver.add(key, &link.config, seed, ends, taps)?));
        }
        let forwarding = driver.forwarding();
        for router in testbed.routers(Nanos::ZERO) {
            forwarding.route(router)?;
        }
        if !sockets.is_empty() {
            testbed.rerouting = Some(Rerouting::new(testbed.changes(routes), sockets, forwarding));
        }
        Ok((testbed, streams))
    }

    /// The route changes, starting from these routes.
    fn changes(&self, mut routes: Vec<Vec<RouteSetup>>) -> Vec<Change> {
        let change = |at: Nanos| {
            let before = std::mem::replace(&mut routes, self.routes(at));
            let of_hosts = self.specs.iter().zip(before.iter().zip(&routes));
            let hosts =
                of_hosts.map(|(host, (before, after))| HostChange::between(&host.name, before, after));
            Change { at_ns: at.as_ns(), hosts: hosts.collect(), routers: self.routers(at) }
        };
        changes(&self.specs).into_iter().map(change).collect()
    }

    /// The hosts that forward in an ordinary way, with their routes at a moment.
    fn routers(&self, at: Nanos) -> Vec<Router> {
        let network = Network::new(&self.specs, &self.linked).as_of(at);
        let key = |link: usize| self.links[link].1.port(0).link;
        let ports = |host: &str| {
            let ends =
                self.wiring.iter().enumerate().flat_map(|(i, ports)| [(i, 0, &ports[0]), (i, 1, &ports[1])]);
            ends.filter(|(.., port)| port.host == host).collect::<Vec<_>>()
        };
        let plain = |host: &&HostSpec| {
            host.router
                && (host.switch || host.sysctls.keys().all(|name| name.starts_with("net.ipv4.tcp_")))
                && ports(&host.name).iter().all(|&(link, end, _)| self.linked[link].netem[end].is_none())
        };
        let mut routers: Vec<_> = self
            .specs
            .iter()
            .filter(plain)
            .map(|host| {
                let ports =
                    ports(&host.name).iter().map(|&(link, end, _)| Port { link: key(link), end }).collect();
                (host, Router { ports, switch: host.switch, ways: BTreeMap::new() })
            })
            .collect();
        for target in &self.specs {
            let next_hops = network.towards(&target.name);
            let addresses = ports(&target.name);
            for (host, next) in self.specs.iter().zip(next_hops) {
                let Some(hop) = next else { continue };
                let way = Port { link: key(hop.link), end: usize::from(!hop.forward) };
                for (_, router) in routers.iter_mut().filter(|(of, _)| of.name == host.name) {
                    router.ways.extend(addresses.iter().map(|(.., port)| (port.address, way)));
                }
            }
        }
        routers.into_iter().map(|(_, router)| router).collect()
    }

    /// Addresses by which `from` reaches `to`: its own on the first link of its route, and the other's on the last.
    pub fn route(&self, from: &str, to: &str) -> Option<(IpAddr, IpAddr)> {
        let path = Network::new(&self.specs, &self.linked).path(from, to).ok()?;
        Some((self.port(*path.first()?, 0).address, self.port(*path.last()?, 1).address))
    }

    /// Announces that two hosts will send to each other. Without it, a driver of the virtual clock takes a host's packets late, and notes it.
    pub fn expect_traffic(&self, from: &str, to: &str) -> Result<()> {
        for at in [Nanos::ZERO].into_iter().chain(changes(&self.specs)) {
            let network = Network::new(&self.specs, &self.linked).as_of(at);
            for (from, to) in [(from, to), (to, from)] {
                let Ok(path) = network.path(from, to) else { continue };
                let way: Vec<_> =
                    path.iter().map(|hop| self.links[hop.link].1.port(usize::from(!hop.forward))).collect();
                if let Some(first) = path.first() {
                    self.links[first.link].1.note_way(way)?;
                }
            }
        }
        Ok(())
    }

    /// The port that a hop leaves (0) or reaches (1).
    fn port(&self, hop: Hop, end: usize) -> &Wired {
        &self.wiring[hop.link][if hop.forward { end } else { 1 - end }]
    }

    /// Routes that each host needs beside the prefixes of its own devices: towards every address of every other host,
    /// the next hop on the way to that host at a moment. Without routers there are only neighbours.
    fn routes(&self, at: Nanos) -> Vec<Vec<RouteSetup>> {
        let (hosts, links) = (&self.specs, &self.linked);
        let mut routes: Vec<_> = hosts.iter().map(|host| self.to_neighbours(host)).collect();
        if !hosts.iter().any(|h| h.router) {
            return routes;
        }
        let network = Network::new(hosts, links).as_of(at);
        for target in hosts {
            let next_hops = network.towards(&target.name);
            let addresses: Vec<IpAddr> = self
                .wiring
                .iter()
                .flatten()
                .filter(|port| port.host == target.name)
                .map(|port| port.address)
                .collect();
            for ((routes, next), host) in routes.iter_mut().zip(next_hops).zip(hosts) {
                let Some(hop) = next else { continue };
                // If both are on this link, its prefix leads there already.
                let via = self.port(hop, 1).address;
                routes.extend(addresses.iter().filter(|&&to| to != via).map(|&to| RouteSetup {
                    to,
                    via: Some(via),
                    device: self.port(hop, 0).device.clone(),
                    initial_window: host.tcp.initial_window,
                }));
            }
        }
        routes
    }

    /// Routes to neighbours, if the host's connections have their own initial window: the prefix of a device leads there already, but sets no window.
    fn to_neighbours(&self, host: &HostSpec) -> Vec<RouteSetup> {
        if host.tcp.initial_window.is_none() {
            return Vec::new();
        }
        let ends = self.wiring.iter().flat_map(|[a, b]| [(a, b), (b, a)]);
        ends.filter(|(own, _)| own.host == host.name)
            .map(|(own, other)| RouteSetup {
                to: other.address,
                via: None,
                device: own.device.clone(),
                initial_window: host.tcp.initial_window,
            })
            .collect()
    }

    /// Processes of the hosts that are processes, by name.
    pub fn processes(&self) -> Vec<(String, u32)> {
        self.hosts.iter().filter_map(|(name, host)| Some((name.clone(), host.process_id()?))).collect()
    }

    /// The place of a program started on a host; `None` if there is no such host.
    pub fn place(&self, host: &str) -> Option<ProgramPlace> {
        let (name, running) = self.hosts.iter().find(|(name, _)| name == host)?;
        let others = self.hosts.iter().filter(|(other, _)| other != name);
        let others = others.filter_map(|(other, _)| Some((other.clone(), self.route(name, other)?.1)));
        Some(ProgramPlace {
            host: name.clone(),
            seen_at: running.seen_at().to_owned(),
            own_users: running.privilege == Privilege::UserNamespace,
            own: self.addresses(name),
            others: others.collect(),
        })
    }

    /// The addresses of a host, in the order of its links.
    pub fn addresses(&self, host: &str) -> Vec<IpAddr> {
        self.wiring.iter().flatten().filter(|port| port.host == host).map(|port| port.address).collect()
    }

    /// How the hosts got their namespaces: `root` or `user namespace`.
    pub fn privilege(&self) -> Privilege {
        self.hosts.first().map_or(Privilege::Unknown, |(_, host)| host.privilege.clone())
    }

    /// Sets time zero of routes and links that change over time, and of readings: the moment from which flows may start, by the clock of the driver.
    pub fn start_clock(&self, at_ns: u64) -> Result<()> {
        let changing = |link: &LinkSpec| {
            [&link.config.forward, &link.config.reverse]
                .iter()
                .any(|d| d.changes() || d.queue_samples.is_some())
        };
        self.rerouting.iter().try_for_each(|rerouting| rerouting.start(at_ns))?;
        self.links.iter().filter(|(spec, _)| changing(spec)).try_for_each(|(_, link)| link.start_clock(at_ns))
    }

    /// Removes the links from the driver. The hosts stay, unconnected, so that they can still be queried.
    pub fn disconnect(&mut self) -> Result<Vec<LinkOutcome>> {
        self.rerouting.iter().try_for_each(Rerouting::finish)?;
        let wiring = self.wiring.clone();
        let at_ns = clock::monotonic_ns();
        self.links
            .drain(..)
            .zip(wiring)
            .map(|((spec, driven), ports)| Ok(outcome(&spec, driven.finish_at(at_ns)?, &ports)))
            .collect()
    }

    fn setup(&self, host: &HostSpec, links: &[LinkSpec], routes: Vec<RouteSetup>) -> HostSetup {
        let devices = self
            .wiring
            .iter()
            .zip(links)
            .flat_map(|(ports, link)| {
                ports.iter().zip(link.netem).map(move |(port, netem)| (port, netem, link))
            })
            .filter(|(port, ..)| port.host == host.name)
            .map(|(port, netem, link)| DeviceSetup {
                name: port.device.clone(),
                address: port.address,
                prefix: if port.address.is_ipv4() { 24 } else { 64 },
                mtu: link.config.mtu,
                transmit_queue: TRANSMIT_QUEUE,
                super_packets: link.config.carries_super_packets(),
                netem,
            })
            .collect();
        HostSetup {
            name: host.name.clone(),
            sysctls: host.sysctls.clone(),
            devices,
            forwarding: host.router,
            routes,
            routes_change: host.routes.iter().any(|route| route.at > Nanos::ZERO),
        }
    }
}

pub(crate) fn wire(family: Family, hosts: &[HostSpec], links: &[LinkSpec]) -> Result<Vec<[Wired; 2]>> {
    links
        .iter()
        .enumerate()
        .map(|(i, link)| {
            for name in &link.between {
                if !hosts.iter().any(|h| &h.name == name) {
                    return Err(LabError::Topology(format!(
                        "a link refers to host '{name}', which does not exist"
                    )));
                }
            }
            let index = u8::try_from(i).map_err(|_| LabError::Topology("more than 256 links".to_owned()))?;
            let ends = addresses(index, family == Family::Ipv6);
            Ok([0, 1].map(|end| Wired {
                host: link.between[end].clone(),
                device: format!("link{i}"),
                address: ends[end],
            }))
        })
        .collect()
}

pub(crate) fn outcome<D: Into<Option<Tun>>>(
    spec: &LinkSpec,
    mut driven: Driven<D>,
    ports: &[Wired; 2],
) -> LinkOutcome {
    let mut lateness = Histogram::new();
    let [a, b] = &spec.between;
    let configs = [&spec.config.forward, &spec.config.reverse];
    let ends = [End::A, End::B];
    let directions = [0, 1].map(|i| {
        lateness.merge(&driven.meters[i].lateness);
        let name = if i == 0 { format!("{a}->{b}") } else { format!("{b}->{a}") };
        direction(name, configs[i], &mut driven, i, ends[i])
    });
    let Driven { mut meters, fault, devices, slept, .. } = driven;
    LinkOutcome {
        directions,
        lateness,
        fault,
        slept,
        crossings: meters.each_mut().map(|meter| std::mem::take(&mut meter.crossings).into_through()),
        meters,
        ports: [0, 1].map(|i| (ports[i].host.clone(), ports[i].device.clone())),
        _devices: devices.into_iter().filter_map(Into::into).collect(),
    }
}

pub(crate) fn direction<D>(
    name: String,
    config: &DirectionConfig,
    driven: &mut Driven<D>,
    i: usize,
    from: End,
) -> DirectionFidelity {
    let counters = driven.link.counters(from);
    let meter = &driven.meters[i];
    let packets_in = counters.packets_in + meter.not_ours;
    let packets_out = counters.packets_out - meter.device_refused;
    let queued = driven.link.queued(from);
    let mut dropped: BTreeMap<String, u64> =
        causes(config).map(|cause| (cause.name().to_owned(), counters.dropped(cause))).collect();
    dropped.insert("device_out".to_owned(), meter.device_refused);
    dropped.insert("not_ours".to_owned(), meter.not_ours);
    let loss_expected = driven.link.loss_expected(from);
    let dropped_before = counters.size_dropped + counters.outage_dropped;
    let conserved = packets_in + counters.duplicated == packets_out + dropped.values().sum::<u64>() + queued;
    DirectionFidelity {
        name,
        packets_in,
        bytes_in: counters.bytes_in,
        packets_out,
        bytes_out: counters.bytes_out,
        duplicated: counters.duplicated,
        corrupted: counters.corrupted,
        marked: counters.marked,
        held_back: counters.held_back,
        conserved,
        dropped,
        queued,
        rate_configured_bps: config.rate.filter(|_| config.rate_over_time.is_none()).map(|r| r.as_bps()),
        loss_configured: match loss_expected {
            Some(expected) => expected.lost / counters.packets_in.max(1) as f64,
            None => loss_configured(&config.loss, counters.packets_in),
        },
        loss_tolerance: match loss_expected {
            Some(expected) => {
                fidelity::tolerance_of(expected.variance.sqrt(), counters.packets_in, dropped_before)
            }
            None => fidelity::loss_tolerance(&config.loss, counters.packets_in, dropped_before),
        },
        loss_achieved: if counters.packets_in == 0 {
            0.0
        } else {
            counters.lost as f64 / counters.packets_in as f64
        },
        queueing_max_ns: counters.queueing_max.as_ns(),
        release_lateness_ns: Lateness::of(&meter.lateness),
        unread_ns: Lateness::of(&meter.unread),
        rate_achieved_bps: driven.meters[i].achieved_bps(),
        queue_samples: driven.link.queue_samples(from),
    }
}

/// Possible drop causes in a direction: drop-tail has no cause beside its limit, and not every link is ever down.
fn causes(config: &DirectionConfig) -> impl Iterator<Item = DropCause> {
    let (managed, down) = (config.queue.is_some(), !config.outages.is_empty());
    DropCause::ALL.into_iter().filter(move |cause| match cause {
        DropCause::Aqm => managed,
        DropCause::Outage => down,
        _ => true,
    })
}

/// Average share lost of this many packets: for a list, and for a model with an initial state, it depends on the number.
fn loss_configured(loss: &Loss, packets: u64) -> f64 {
    match loss {
        Loss::List(_) | Loss::GilbertElliott { .. } if packets > 0 => loss.expected(packets) / packets as f64,
        _ => loss.probability(),
    }
}

impl LinkOutcome {
    /// Share of a span of the monotonic clock during which the wire of a direction (0 forward, 1 reverse) was busy; `None` if it has no rate.
    pub fn busy(&self, direction: usize, from_ns: u64, to_ns: u64) -> Option<f64> {
        self.meters.get(direction)?.busy(from_ns, to_ns)
    }

    /// The longest that a packet of a direction lay unread or was late around a moment of the monotonic clock.
    pub fn worst_at(&self, direction: usize, at_ns: u64) -> Nanos {
        Nanos(self.meters.get(direction).map_or(0, |meter| meter.worst_at(at_ns)))
    }

    /// Host and device at each end.
    pub fn ports(&self) -> &[(String, String); 2] {
        &self.ports
    }

    /// Adds the devices to the sum: the stack's sent packets equal those read and those that its device dropped, and
    /// the delivered ones equal those that the other stack received.
    pub fn hold_against(&mut self, readings: [DeviceReading; 2]) {
        for (from, to) in [(0, 1), (1, 0)] {
            let direction = &mut self.directions[from];
            let dropped = readings[from].tx_dropped;
            direction.packets_in += dropped;
            direction.dropped.insert("device_in".to_owned(), dropped);
            direction.conserved &= readings[from].tx_packets == self.meters[from].read
                && readings[to].rx_packets == self.meters[from].delivered;
        }
    }
}
