//! Round trips to one address, checked against expectations.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use bdp_agent::ping::ping;
use bdp_model::measurement::expectation::{Expectation, Judgement};
use bdp_model::measurement::figure::PingFigure;
use bdp_model::probes::ping::{Ping, PingMode, PingRequest, Tally};
use serde::{Deserialize, Serialize};

use crate::measure::session::Credentials;
use crate::{Event, RunError};

/// A plan of probes to send and the results expected.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingPlan {
    /// The probes to send.
    pub request: PingRequest,
    /// Credentials for a server; never stored.
    #[serde(skip)]
    pub credentials: Credentials,
    /// The expected results.
    #[serde(default)]
    pub expectations: Vec<Expectation<PingFigure>>,
    /// Whether to keep each probe.
    #[serde(default)]
    pub keep: bool,
}

/// The result of a ping plan.
#[derive(Debug)]
pub struct Pinged {
    /// The round trips; `None` if no probe could be sent.
    pub ping: Option<Ping>,
    /// The verdict on each expectation.
    pub judgements: Vec<Judgement>,
    /// Whether a probe was answered; being cancelled is not an error.
    pub result: Result<(), RunError>,
}

impl PingPlan {
    /// Sends the probes. `cancel` ends it; the result then covers the probes so far.
    pub fn run(&self, watch: &mut dyn FnMut(Event<'_>), cancel: &AtomicBool) -> Pinged {
        let mut progress = |progress: &_| watch(Event::Probes { progress: Cow::Borrowed(progress) });
        match ping(&self.request, self.credentials.token.as_deref(), self.keep, &mut progress, cancel) {
            Ok(ping) => Pinged {
                judgements: self.expectations.iter().map(|expected| expected.judge(&ping)).collect(),
                result: failure(&ping).map_or(Ok(()), |why| Err(RunError::Unanswered(why))),
                ping: Some(ping),
            },
            Err(error) => Pinged { ping: None, judgements: Vec::new(), result: Err(error.into()) },
        }
    }
}

/// Returns why no probe was answered and what to do about it; `None` if one was.
fn failure(ping: &Ping) -> Option<String> {
    let Tally { sent, received, refused, unreachable, .. } = ping.probes;
    let (address, patience) = (&ping.address, ping.request.patience);
    if received > 0 {
        return None;
    }
    if sent == 0 {
        return Some(format!("ping {address}: no probe was sent; give a larger count (-c) or time (-t)"));
    }
    let text = if refused > 0 {
        "connection refused: the host is up, but nothing listens on the port; give an open port, for example HOST:443"
            .to_owned()
    } else if unreachable > 0 {
        "unreachable; check the address and this machine's routes and firewall".to_owned()
    } else {
        let way_out = match ping.request.mode {
            PingMode::Connect => "check that the host is up and that firewalls allow the port",
            PingMode::Icmp => {
                "check that the host is up; many firewalls drop ICMP, so try TCP: 'bdp ping HOST:443'"
            }
            PingMode::Udp => "check that firewalls allow UDP, or use --tcp",
            PingMode::Tcp => "check the path",
        };
        format!("no answer within {patience}; {way_out}")
    };
    Some(format!("ping {address}: {text}"))
}
