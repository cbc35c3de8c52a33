//! The result of a visit.

use std::net::IpAddr;

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{Bps, Steady};
use bdp_model::finding::{Evidence, Fact, Finding, Limit};
use bdp_model::measurement::HostFacts;
use bdp_model::plain::plain;
use bdp_model::units::{Nanos, format_bps};
use bdp_model::visit::{
    BrowserDirection, BrowserReport, DIFFERENT, PingRange, VISIT_SCHEMA, Visit as Document, VisitDirection,
    VisitedDirection,
};
use bdp_sys::clock;

use super::session::{Done, Visit};
use super::stage::Stage;
use crate::watch::AT_LIMIT;

/// How the ends are called.
const HERE: &str = "the server";
const THERE: &str = "the visitor's device";
/// Longest name of a browser.
const LONGEST_AGENT: usize = 300;
/// Longest round trip that a browser's ping may have had.
const LONGEST_TRIP_NS: u64 = 600_000_000_000;
/// Most pings of a stage.
const MOST_PINGS: usize = 10_000;
/// Share of the time in which data waits to be sent, above which the page is not what an upload waits for.
const PAGE_HAS_DATA: f64 = 0.8;

/// Share of the time in which a download waits for data, below which data waits for the page instead.
const PAGE_IS_SLOW: f64 = 0.5;

/// How a result is found.
pub(super) struct Named<'a> {
    pub(super) key: &'a str,
    pub(super) host: &'a str,
    pub(super) keep: Nanos,
}

/// Makes the result of a visit, with what its browser says.
pub(super) fn document(
    (visit, done): (&Visit, &Done),
    told: &BrowserReport,
    host: &HostFacts,
    named: Named<'_>,
) -> Document {
    let idle = pings(&told.ping.idle_ns);
    let mut directions = Vec::new();
    let mut caveats = Vec::new();
    let congestion = done.stages[0].as_ref().and_then(Stage::congestion).map(str::to_owned);
    let parts = [(&told.down, &told.ping.down_ns, 0), (&told.up, &told.ping.up_ns, 1)];
    for (stage, (told, trips, at)) in done.stages.iter().zip(parts) {
        let Some(stage) = stage else { continue };
        let seen = Seen {
            told: told.as_ref(),
            idle: PingRange::of(&idle),
            loaded: PingRange::of(&pings(trips)),
            kernel: PingRange::of(&done.trips[at]),
            through_proxy: done.through_proxy,
            rate_bps: visit.limits.rate.map(|rate| rate.as_bps()),
        };
        let direction = seen.direction(stage, host);
        caveats.extend(seen.caveats(stage, direction.finding.as_ref().map(|finding| finding.limit)));
        directions.push(direction);
    }
    if done.through_proxy {
        caveats.insert(0, "a proxy is between the browser and this server: the figures of the server are of the path to the proxy".to_owned());
    }
    if !directions.is_empty() {
        caveats.push(
            "the goodput leaves out the first 0.5 s of each direction, in which connections speed up"
                .to_owned(),
        );
    }
    let now_ms = clock::unix_ms();
    Document {
        schema: VISIT_SCHEMA.to_owned(),
        bdp: env!("CARGO_PKG_VERSION").to_owned(),
        key: named.key.to_owned(),
        at_unix_ms: now_ms,
        until_unix_ms: now_ms.saturating_add(named.keep.as_ns() / 1_000_000),
        server: host.name.clone(),
        visitor: network_of(visit.peer.ip()),
        agent: plain(&told.agent).chars().take(LONGEST_AGENT).collect(),
        congestion_control: congestion.or_else(|| host.congestion_control.clone()).unwrap_or_default(),
        directions,
        caveats,
        command: format!("bdp measure {}", named.host),
    }
}

/// What is known of a direction besides its readings.
struct Seen<'a> {
    told: Option<&'a BrowserDirection>,
    idle: Option<PingRange>,
    loaded: Option<PingRange>,
    /// The kernel's round trips of the pings' connection.
    kernel: Option<PingRange>,
    through_proxy: bool,
    rate_bps: Option<u64>,
}

impl Seen<'_> {
    fn direction(&self, stage: &Stage, host: &HostFacts) -> VisitedDirection {
        // This server then reads slowly on purpose, which its kernel cannot tell from a slow program.
        let is_held = stage.direction == VisitDirection::Up && self.is_at_limit(stage);
        let explained = (!is_held).then(|| explain(stage, host, self.through_proxy)).flatten();
        let (facts, finding) =
            explained.map_or((None, None), |(facts, finding)| (Some(facts), Some(finding)));
        VisitedDirection {
            direction: stage.direction,
            goodput_bps: stage.goodput_bps(),
            bytes: stage.bytes(),
            duration_ns: stage.duration_ns(),
            connections: stage.connections() as u32,
            browser_goodput_bps: self.browser_bps(),
            rtt_idle_ns: self.idle,
            rtt_loaded_ns: self.loaded,
            browser_delay_ns: self
                .loaded
                .zip(self.kernel)
                .map(|(of, kernel)| of.p50.saturating_sub(kernel.p50)),
            retransmits: stage.retransmits().filter(|_| stage.direction == VisitDirection::Down),
            waited: self.waited(),
            cannot_tell: self.cannot_tell(stage, finding.as_ref()),
            finding,
            series: stage.series(),
            facts: facts.map(Box::new),
        }
    }

    fn browser_bps(&self) -> Option<f64> {
        self.told.and_then(|told| told.goodput_bps).filter(|bps| bps.is_finite() && *bps >= 0.0)
    }

    fn waited(&self) -> Option<f64> {
        self.told.and_then(|told| told.waited).filter(|share| (0.0..=1.0).contains(share))
    }

    /// Whether the page reads more slowly than data arrives.
    fn page_is_slow(&self, stage: &Stage) -> bool {
        stage.direction == VisitDirection::Down && self.waited().is_some_and(|share| share < PAGE_IS_SLOW)
    }

    fn is_at_limit(&self, stage: &Stage) -> bool {
        let reached = stage.goodput_bps().zip(self.rate_bps);
        reached.is_some_and(|(goodput, rate)| goodput >= AT_LIMIT * rate as f64)
    }

    fn caveats(&self, stage: &Stage, limit: Option<Limit>) -> Vec<String> {
        let mut caveats = Vec::new();
        let way = stage.direction.name();
        let goodput = stage.goodput_bps();
        if let Some((server, browser)) = goodput.zip(self.browser_bps())
            && (browser - server).abs() > DIFFERENT * server
        {
            caveats.push(format!(
                "{way}: the browser counted {}, the server {}: they counted over different times, or a program between them holds data back",
                format_bps(browser),
                format_bps(server)
            ));
        }
        if let Some(rate) = self.rate_bps.filter(|_| self.is_at_limit(stage)) {
            caveats.push(format!(
                "{way}: this server limits a visitor to {} (--max-rate), and that was reached",
                format_bps(rate as f64)
            ));
        }
        let is_paths =
            !matches!(limit, None | Some(Limit::ReceiveWindow | Limit::SlowReader | Limit::Unknown));
        if let Some(waited) = self.waited().filter(|_| self.page_is_slow(stage) && !is_paths) {
            caveats.push(format!(
                "{way}: data waited for the page {:.0} % of the time: the browser or its processor limits it, not the path",
                (1.0 - waited) * 100.0
            ));
        }
        if goodput.is_none() {
            caveats.push(format!("{way}: it ended within the first 0.5 s, so it has no goodput"));
        }
        caveats
    }

    /// What the figures of this end and of a browser cannot show.
    fn cannot_tell(&self, stage: &Stage, finding: Option<&Finding>) -> Vec<String> {
        let mut all = Vec::new();
        let mut say = |text: &str| all.push(text.to_owned());
        let limit = finding.map(|finding| finding.limit);
        match finding {
            Some(_) => {}
            None if self.is_at_limit(stage) => say("what would limit it without this server's limit"),
            None => say("what limits it: too little was transferred"),
        }
        match stage.direction {
            VisitDirection::Down => {
                if stage.congestion() == Some("bbr") && stage.retransmits().is_some_and(|n| n > 0) {
                    say(
                        "whether the losses matter: bbr does not slow down for them, and behind a queue that bbr filled their cause does not show",
                    );
                }
                if matches!(limit, Some(Limit::ReceiveWindow | Limit::SlowReader))
                    && !self.page_is_slow(stage)
                {
                    say(
                        "which setting of the visitor's device holds its receive window down, or which program leaves data unread",
                    );
                }
            }
            VisitDirection::Up => {
                say("how many segments were lost: only the visitor's kernel counts what it sends again");
                match self.waited() {
                    Some(share) if share >= PAGE_HAS_DATA => say(
                        "whether the visitor's send buffer or the path limits it, unless the finding says so; the page had data to send nearly all the time",
                    ),
                    Some(_) => {}
                    None => say(
                        "whether the page or the visitor's send buffer was too slow: the page did not say whether data waited to be sent",
                    ),
                }
            }
        }
        if matches!(limit, Some(Limit::PathRate | Limit::RandomLoss | Limit::CongestionLoss | Limit::Unknown))
        {
            say(
                "where on the path it is, the visitor's Wi-Fi or farther away: 'bdp path' from the visitor's device shows it",
            );
        }
        all
    }
}

/// What limits a direction: the finding of most of its bytes, with the facts of the connection that shows it best.
fn explain(stage: &Stage, host: &HostFacts, through_proxy: bool) -> Option<(Facts, Finding)> {
    let mut all: Vec<(Facts, Finding)> = Vec::new();
    for mut facts in stage.facts(HERE, THERE, host) {
        facts.through_tunnel = through_proxy;
        let finding = bdp_explain::explain(&facts).into_iter().next();
        all.extend(finding.map(|finding| (facts, finding)));
    }
    let weight = |limit: Limit| -> u64 {
        all.iter().filter(|(_, finding)| finding.limit == limit).map(|(facts, _)| facts.bytes).sum()
    };
    let limit = all.iter().map(|(_, finding)| finding.limit).max_by_key(|&limit| weight(limit))?;
    // The first of the surest: the one with most bytes.
    let best = all
        .iter()
        .filter(|(_, finding)| finding.limit == limit)
        .map(|(_, finding)| finding.confidence)
        .max()?;
    let is_best = |finding: &Finding| finding.limit == limit && finding.confidence == best;
    let (facts, mut finding) = all.into_iter().find(|(_, finding)| is_best(finding))?;
    if limit == Limit::PathRate {
        say_of_all(&mut finding, stage);
    }
    Some((facts, finding))
}

/// A path carries all connections: its goodput is theirs together.
fn say_of_all(finding: &mut Finding, stage: &Stage) {
    let Some((goodput, steady)) = stage.goodput_bps().zip(stage.steadiness()) else { return };
    for evidence in finding.evidence.iter_mut().filter(|evidence| evidence.fact == Fact::Steady) {
        let all = Evidence::share(Steady { goodput: Bps(goodput) }, steady);
        *evidence = match evidence.at_least.filter(|&least| steady >= least) {
            Some(least) => all.at_least(least),
            None => all,
        };
    }
}

/// Round trips that are plausible.
fn pings(told: &[u64]) -> Vec<u64> {
    told.iter().copied().filter(|&ns| ns > 0 && ns < LONGEST_TRIP_NS).take(MOST_PINGS).collect()
}

/// A visitor's network: enough to tell sites apart, too little to tell people apart.
fn network_of(peer: IpAddr) -> String {
    match peer.to_canonical() {
        ip if ip.is_loopback() => ip.to_string(),
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            format!("{}/48", std::net::Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_network_of_a_visitor_is_kept() {
        for (address, shown) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1::/48"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(network_of(address.parse().unwrap()), shown);
        }
    }

    #[test]
    fn absurd_round_trips_of_a_browser_do_not_count() {
        assert_eq!(pings(&[0, 5, u64::MAX]), [5]);
        assert_eq!(pings(&vec![1; 20_000]).len(), MOST_PINGS);
    }
}
