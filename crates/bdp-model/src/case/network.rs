//! Routes: derives the next hop of each packet, and so the path of a flow, from hosts and links.
//!
//! A host uses its static route to the destination if it has one, otherwise the path with the fewest links; of several,
//! the one whose first link comes first in the file. Only routers forward packets of others. Each hop decides
//! independently, as in a real network, so the return path may differ, and static routes may contradict each other.

use std::collections::BTreeSet;

use super::{HostSpec, LinkSpec};
use crate::link::DirectionConfig;
use crate::units::Nanos;

/// Maximum links on a path: one less than the time to live that hosts set (RFC 1700: 64).
pub const HOPS_MAX: usize = 63;

/// A link of a path, crossed in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Index of the link.
    pub link: usize,
    /// Whether it is crossed from its first host to its second.
    pub forward: bool,
}

impl Hop {
    /// Returns the link's configuration in this direction.
    pub fn direction(self, links: &[LinkSpec]) -> &DirectionConfig {
        let config = &links[self.link].config;
        if self.forward { &config.forward } else { &config.reverse }
    }

    /// Returns the hop in the opposite direction.
    pub fn back(self) -> Self {
        Self { forward: !self.forward, ..self }
    }

    /// Returns the host at its start.
    pub fn from(self, links: &[LinkSpec]) -> &str {
        &links[self.link].between[usize::from(!self.forward)]
    }

    /// Returns the host at its end.
    pub fn to(self, links: &[LinkSpec]) -> &str {
        &links[self.link].between[usize::from(self.forward)]
    }
}

/// Why there is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No links and routers connect the hosts.
    #[error("no path from '{from}' to '{to}'")]
    NoWay {
        /// Start of the path.
        from: String,
        /// End of the path.
        to: String,
        /// Hosts that would connect them as routers, if any.
        would_forward: Vec<String>,
    },
    /// Static routes form a loop.
    #[error("a route loop from '{from}' to '{to}': {}", .circle.join(" - "))]
    Loop {
        /// Start of the path.
        from: String,
        /// End of the path.
        to: String,
        /// The hosts visited, ending with the one visited twice.
        circle: Vec<String>,
    },
    /// The path has more links than a packet can cross.
    #[error("the path from '{from}' to '{to}' has more than {HOPS_MAX} links, the maximum")]
    TooLong {
        /// Start of the path.
        from: String,
        /// End of the path.
        to: String,
    },
}

/// Returns the times at which routes of these hosts change, without duplicates.
pub fn changes(hosts: &[HostSpec]) -> BTreeSet<Nanos> {
    let moments = hosts.iter().flat_map(|host| &host.routes).map(|route| route.at);
    moments.filter(|&at| at > Nanos::ZERO).collect()
}

/// Hosts and the links between them, with the routes valid at one time.
#[derive(Debug)]
pub struct Network<'a> {
    moment: Nanos,
    hosts: &'a [HostSpec],
    links: &'a [LinkSpec],
    /// For each host its outgoing hops, in the order of the links, with the index of the host at their end.
    leaving: Vec<Vec<(Hop, usize)>>,
}

impl<'a> Network<'a> {
    /// Creates a network with the routes at the start. A link to an unknown host is ignored.
    pub fn new(hosts: &'a [HostSpec], links: &'a [LinkSpec]) -> Self {
        let index: std::collections::HashMap<&str, usize> =
            hosts.iter().enumerate().map(|(i, h)| (h.name.as_str(), i)).collect();
        let mut leaving = vec![Vec::new(); hosts.len()];
        for (link, spec) in links.iter().enumerate() {
            let [Some(&a), Some(&b)] = [0, 1].map(|end| index.get(spec.between[end].as_str())) else {
                continue;
            };
            leaving[a].push((Hop { link, forward: true }, b));
            leaving[b].push((Hop { link, forward: false }, a));
        }
        Self { moment: Nanos::ZERO, hosts, links, leaving }
    }

    /// Returns the network with the routes of another time.
    pub fn as_of(self, moment: Nanos) -> Self {
        Self { moment, ..self }
    }

    /// Returns the hops from one host to another, at least one.
    pub fn path(&self, from: &str, to: &str) -> Result<Vec<Hop>, RouteError> {
        let (Some(start), Some(end)) = (self.index(from), self.index(to)) else {
            return Err(no_way(from, to));
        };
        if start == end {
            return Err(no_way(from, to));
        }
        self.follow(start, end)
    }

    /// Returns each host's next hop towards `to`, in the order of the hosts; none if there is no path.
    pub fn towards(&self, to: &str) -> Vec<Option<Hop>> {
        let Some(end) = self.index(to) else { return vec![None; self.hosts.len()] };
        let distance = self.distances(end, |i| self.hosts[i].router);
        (0..self.hosts.len()).map(|at| self.next_hop(at, end, &distance).map(|(hop, _)| hop)).collect()
    }

    fn index(&self, host: &str) -> Option<usize> {
        self.hosts.iter().position(|h| h.name == host)
    }

    /// Returns the hop from `at` towards `end` and the host that it reaches, by the distances to `end`.
    fn next_hop(&self, at: usize, end: usize, distance: &[Option<usize>]) -> Option<(Hop, usize)> {
        let target = &self.hosts[end].name;
        let routes = self.hosts[at].routes.iter().filter(|r| &r.to == target && r.at <= self.moment);
        let via = routes.max_by_key(|r| r.at).map(|r| &r.via);
        self.leaving[at].iter().copied().find(|&(_, next)| match via {
            Some(via) => &self.hosts[next].name == via,
            None => {
                let may_forward = next == end || self.hosts[next].router;
                at != end && may_forward && distance[next].is_some_and(|d| Some(d + 1) == distance[at])
            }
        })
    }

    /// Returns the number of links from each host to `end` over forwarding hosts, by breadth-first search.
    fn distances(&self, end: usize, forwards: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
        let mut distance = vec![None; self.hosts.len()];
        distance[end] = Some(0);
        let mut ring = vec![end];
        for length in 1.. {
            let mut next_ring = Vec::new();
            for &at in ring.iter().filter(|&&at| at == end || forwards(at)) {
                for &(_, neighbour) in &self.leaving[at] {
                    if distance[neighbour].is_none() {
                        distance[neighbour] = Some(length);
                        next_ring.push(neighbour);
                    }
                }
            }
            if next_ring.is_empty() {
                break;
            }
            ring = next_ring;
        }
        distance
    }

    fn follow(&self, start: usize, end: usize) -> Result<Vec<Hop>, RouteError> {
        let distance = self.distances(end, |i| self.hosts[i].router);
        let names = || (self.hosts[start].name.clone(), self.hosts[end].name.clone());
        let (mut path, mut visited, mut at) = (Vec::new(), vec![start], start);
        while at != end {
            let Some((hop, reached)) = self.next_hop(at, end, &distance) else {
                let (from, to) = names();
                return Err(RouteError::NoWay { would_forward: self.missing_routers(start, end), from, to });
            };
            path.push(hop);
            let circle = visited.contains(&reached);
            visited.push(reached);
            if circle {
                let (from, to) = names();
                let circle = visited.into_iter().map(|i| self.hosts[i].name.clone()).collect();
                return Err(RouteError::Loop { from, to, circle });
            }
            at = reached;
        }
        if path.len() > HOPS_MAX {
            let (from, to) = names();
            return Err(RouteError::TooLong { from, to });
        }
        Ok(path)
    }

    /// Returns the hosts on the shortest path over links alone that do not forward.
    fn missing_routers(&self, start: usize, end: usize) -> Vec<String> {
        let distance = self.distances(end, |_| true);
        let mut at = start;
        let mut missing = Vec::new();
        while let Some(left) = distance[at].filter(|&d| d > 1) {
            let closer = self.leaving[at].iter().find(|&&(_, next)| distance[next] == Some(left - 1));
            let Some(&(_, next)) = closer else { break };
            if !self.hosts[next].router {
                missing.push(self.hosts[next].name.clone());
            }
            at = next;
        }
        missing
    }

    /// Returns the links of the network.
    pub fn links(&self) -> &'a [LinkSpec] {
        self.links
    }
}

fn no_way(from: &str, to: &str) -> RouteError {
    RouteError::NoWay { from: from.to_owned(), to: to.to_owned(), would_forward: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::Route;
    use super::*;

    /// Creates hosts; those whose names begin with 'r' are routers.
    fn hosts(names: &str, routes: &[(&str, &str, &str)]) -> Vec<HostSpec> {
        names
            .split(' ')
            .map(|name| HostSpec {
                name: name.to_owned(),
                router: name.starts_with('r'),
                routes: routes
                    .iter()
                    .filter(|(at, ..)| *at == name)
                    .map(|(_, to, via)| Route {
                        to: (*to).to_owned(),
                        via: (*via).to_owned(),
                        at: Nanos::ZERO,
                    })
                    .collect(),
                ..Default::default()
            })
            .collect()
    }

    fn links(pairs: &str) -> Vec<LinkSpec> {
        pairs
            .split(' ')
            .map(|pair| {
                let (a, b) = pair.split_once('-').unwrap();
                LinkSpec {
                    between: [a.to_owned(), b.to_owned()],
                    config: Default::default(),
                    capture: [false; 2],
                    capture_snap: super::super::WHOLE_PACKETS,
                    profile: None,
                    netem: [None; 2],
                }
            })
            .collect()
    }

    /// Returns the hosts on the path, or the error.
    fn way(hosts: &[HostSpec], links: &[LinkSpec], from: &str, to: &str) -> String {
        match Network::new(hosts, links).path(from, to) {
            Ok(path) => {
                let mut text = from.to_owned();
                let mut at = from;
                for hop in path {
                    assert_eq!(hop.from(links), at, "the hops join");
                    assert_eq!(hop.back().to(links), at);
                    at = hop.to(links);
                    text = format!("{text} {at}");
                }
                text
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_line_is_walked_both_ways() {
        let (hosts, links) = (hosts("a r1 r2 b", &[]), links("a-r1 r2-r1 r2-b"));
        assert_eq!(way(&hosts, &links, "a", "b"), "a r1 r2 b");
        assert_eq!(way(&hosts, &links, "b", "a"), "b r2 r1 a");
        let path = Network::new(&hosts, &links).path("a", "b").unwrap();
        assert_eq!(
            path.iter().map(|h| (h.link, h.forward)).collect::<Vec<_>>(),
            [(0, true), (1, false), (2, true)]
        );
        assert_eq!(way(&hosts, &links, "a", "a"), "no path from 'a' to 'a'");
        assert_eq!(way(&hosts, &links, "a", "x"), "no path from 'a' to 'x'");
    }

    #[test]
    fn a_ring_is_walked_the_short_way_and_ties_go_by_the_file() {
        let ring = links("r1-r2 r2-r3 r3-r4 r4-r1");
        let four = hosts("r1 r2 r3 r4", &[]);
        assert_eq!(way(&four, &ring, "r1", "r4"), "r1 r4");
        assert_eq!(way(&four, &ring, "r1", "r3"), "r1 r2 r3");
        assert_eq!(way(&four, &ring, "r3", "r1"), "r3 r2 r1");
        let turned = links("r4-r1 r3-r4 r1-r2 r2-r3");
        assert_eq!(way(&four, &turned, "r1", "r3"), "r1 r4 r3");
    }

    #[test]
    fn only_routers_forward_and_those_missing_are_named() {
        let (hosts, links) = (hosts("a m r b", &[]), links("a-m m-b a-r r-b"));
        assert_eq!(way(&hosts, &links, "a", "b"), "a r b", "not over m, though its links come first");
        let short = &links[..2];
        let error = Network::new(&hosts, short).path("a", "b").unwrap_err();
        let RouteError::NoWay { would_forward, .. } = error else { panic!("{error}") };
        assert_eq!(would_forward, ["m"]);
    }

    #[test]
    fn static_routes_come_first_and_make_ways_there_and_back_differ() {
        let diamond = links("a-r1 a-r2 r1-b r2-b");
        let plain = hosts("a r1 r2 b", &[]);
        assert_eq!(way(&plain, &diamond, "a", "b"), "a r1 b");
        let there = hosts("a r1 r2 b", &[("a", "b", "r2")]);
        assert_eq!(way(&there, &diamond, "a", "b"), "a r2 b");
        assert_eq!(way(&there, &diamond, "b", "a"), "b r1 a");
        // Longer than the direct link, as policy routes often are.
        let direct = links("a-b a-r1 r1-b");
        let detour = hosts("a r1 b", &[("a", "b", "r1")]);
        assert_eq!(way(&detour, &direct, "a", "b"), "a r1 b");
        assert_eq!(way(&detour, &direct, "b", "a"), "b a");
    }

    #[test]
    fn loops_of_static_routes_are_found() {
        let (hosts, links) = (
            hosts("a r1 r2 r3 b", &[("r3", "b", "r1"), ("r1", "b", "r2"), ("r2", "b", "r3")]),
            links("a-r1 r1-r2 r2-r3 r3-r1 r3-b"),
        );
        assert_eq!(way(&hosts, &links, "a", "b"), "a route loop from 'a' to 'b': a - r1 - r2 - r3 - r1");
        assert_eq!(way(&hosts, &links, "b", "a"), "b r3 r1 a");
    }

    #[test]
    fn a_path_ends_before_the_time_to_live_does() {
        let names: Vec<String> = (0..70).map(|i| format!("r{i}")).collect();
        let pairs: Vec<String> = (0..69).map(|i| format!("r{i}-r{}", i + 1)).collect();
        let (hosts, links) = (hosts(&names.join(" "), &[]), links(&pairs.join(" ")));
        let network = Network::new(&hosts, &links);
        assert_eq!(network.path("r0", "r63").unwrap().len(), 63);
        assert!(matches!(network.path("r0", "r64"), Err(RouteError::TooLong { .. })));
        assert_eq!(network.towards("r5")[4], Some(Hop { link: 4, forward: true }));
        assert_eq!(network.towards("r5")[5], None);
    }
}
