//! `bdp ping`: round trips to one address.

mod arguments;
mod live;

use std::sync::atomic::Ordering;

use bdp_agent::ping::ping;
use bdp_model::expectation::Judgement;
use bdp_model::ping::{Ping, PingMode, Tally};
use bdp_report::{csv_of_ping, ping_text};
use serde_json::Value;

pub use arguments::PingArgs;
use live::Live;

use crate::exit;
use crate::exit::Outcome;
use crate::measure::judgement;
use crate::{interrupt, output};

impl PingArgs {
    /// Sends probes, prints what became of them.
    pub fn run(self) -> Outcome {
        let request = self.request()?;
        let credentials = self.credentials()?;
        let cancel = interrupt::cancel_instead();
        let mut live = Live::new(&request, !(self.quiet || self.json || self.csv));
        let pinged = ping(
            &request,
            credentials.token.as_deref(),
            self.csv,
            &mut |progress| live.show(progress),
            cancel,
        );
        live.end();
        let write_metrics = |pinged: Option<&Ping>, judged: &[Judgement]| match &self.prometheus {
            Some(path) => {
                let text =
                    bdp_report::prometheus_of_ping(pinged, judged, &request.host, env!("CARGO_PKG_VERSION"));
                crate::report::write(path, &text, "metrics")
            }
            None => Ok(()),
        };
        let pinged = match pinged {
            Ok(pinged) => pinged,
            Err(error) if error.is_request() => return Err(exit::usage(error.to_string())),
            Err(error) => {
                if cancel.load(Ordering::Relaxed) {
                    output::note("bdp: ended before a probe was sent");
                    interrupt::carry_out();
                }
                let _ = write_metrics(None, &[]);
                return Err(exit::environment(format!("ping {}: {error}", request.host)));
            }
        };
        let judged: Vec<Judgement> =
            self.expectations().iter().map(|expected| expected.judge(&pinged)).collect();
        let text = if self.json {
            let mut document = bdp_report::ping_json(&pinged);
            // Nothing of it is stored.
            document["run"] = Value::Null;
            document["expectations"] = serde_json::to_value(&judged)?;
            format!("{document:#}\n")
        } else if self.csv {
            csv_of_ping(&pinged)
        } else {
            ping_text(&pinged, &output::style())
        };
        output::print(&text)?;
        write_metrics(Some(&pinged), &judged)?;
        // Where nothing else ends it, it has ended as it was asked to.
        let is_endless = pinged.request.count.is_none() && pinged.request.duration.is_none();
        if cancel.load(Ordering::Relaxed) && !is_endless {
            interrupt::carry_out();
        }
        match failure(&pinged) {
            Some(why) => Err(exit::environment(why)),
            None => Ok(judgement::report(&judged, 1)),
        }
    }
}

/// Why not one probe came back, and what to do about it; `None` where one did.
fn failure(ping: &Ping) -> Option<String> {
    let Tally { sent, received, refused, unreachable, .. } = ping.probes;
    let (address, patience) = (&ping.address, ping.request.patience);
    if received > 0 {
        return None;
    }
    if sent == 0 {
        return Some(format!("ping {address}: no probe was sent; give a larger count or time"));
    }
    let text = if refused > 0 {
        "refused: the host is up and nothing listens on the port; give one that is open, as HOST:443"
            .to_owned()
    } else if unreachable > 0 {
        "unreachable; check the address, and this machine's routes and firewall".to_owned()
    } else {
        let way_out = match ping.request.mode {
            PingMode::Connect => "is the host up, and does a firewall let the port through?",
            PingMode::Icmp => {
                "is the host up? many firewalls drop ICMP: 'bdp ping HOST:443' connects instead"
            }
            PingMode::Udp => "does a firewall let UDP through? --tcp goes over a connection",
            PingMode::Tcp => "is the path broken?",
        };
        format!("no answer within {patience}; {way_out}")
    };
    Some(format!("ping {address}: {text}"))
}
