//! The page of `bdp serve --page`, as one more protocol of the server's port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bdp_agent::server::ServerState;
use bdp_agent::server::accept::Arrived;
use bdp_agent::server::access::PlaceLimits;
use bdp_agent::server::foreign::{Claim, ForeignProtocol};
use bdp_flow::error::Result;
use bdp_model::units::{ByteCount, Nanos};
use bdp_run::visit::{VisitOptions, Visits};
use bdp_web::Visitors;
use bdp_wire::session::Limits;
use bdp_wire::stranger::Stranger;
use clap::Args;

use crate::arguments::seconds;

const PAGE: &str = "Page for browsers";
/// How long a browser may take for its first byte: it opens connections before it needs them.
const FIRST_BYTE: Duration = Duration::from_secs(12);
/// How long results are kept unless told otherwise.
const KEEP: Nanos = Nanos::secs(30 * 24 * 3600);

/// Options of the page.
#[derive(Args)]
pub struct PageOptions {
    /// Let anyone with a browser test the path to this server at http://HOST:5201, without a token, within the limits of --open
    #[arg(long, help_heading = PAGE)]
    page: bool,
    /// How long the link to a visitor's result works, for example 7d [default: 30d]
    #[arg(long, help_heading = PAGE, value_name = "TIME", requires = "page", value_parser = kept)]
    keep: Option<Nanos>,
    /// Maximum data of the visitors of one address (IPv6: of a /64) in a day, for example 50G [default: no limit]
    #[arg(long, help_heading = PAGE, hide_short_help = true, value_name = "SIZE", requires = "page")]
    page_data_per_day: Option<ByteCount>,
    /// Host name under which browsers may reach the page, in addition to its addresses, localhost and its own; repeatable
    #[arg(long = "name", help_heading = PAGE, value_name = "HOST", requires = "page")]
    names: Vec<String>,
}

impl PageOptions {
    /// Whether visitors are served.
    pub fn is_on(&self) -> bool {
        self.page
    }

    /// Returns the protocol of visitors within these limits, with places of their own or else the server's; none if
    /// they are not served.
    pub fn protocol(
        &self,
        limits: Limits,
        places: Option<PlaceLimits>,
    ) -> std::io::Result<Option<Box<dyn ForeignProtocol>>> {
        if !self.page {
            return Ok(None);
        }
        let options = VisitOptions {
            limits,
            per_day: self.page_data_per_day,
            keep: self.keep.unwrap_or(KEEP),
            places,
            names: self.names.clone(),
        };
        let visits = Visits::new(options, Box::new(bdp_report::visit_json));
        let web = Visitors::new(Arc::clone(&visits))?;
        Ok(Some(Box::new(Page { visits, web })))
    }
}

/// Parses how long results are kept, in days too.
fn kept(text: &str) -> std::result::Result<Nanos, String> {
    /// A year.
    const MOST: Nanos = Nanos::secs(366 * 24 * 3600);
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let time = match days {
        Some(days) => Nanos::secs(days.min(1000) * 24 * 3600),
        None => seconds(text)?,
    };
    match time {
        time if time < Nanos::secs(1) => {
            Err(format!("'{text}' keeps nothing; give at least 1s, for example 7d"))
        }
        time if time > MOST => Err(format!("'{text}' is too long; at most 366d")),
        time => Ok(time),
    }
}

/// The page's part of the server's port.
struct Page {
    visits: Arc<Visits>,
    web: Visitors,
}

impl ForeignProtocol for Page {
    fn start(&self, server: &Arc<ServerState>) -> Result<Vec<JoinHandle<()>>> {
        Ok(vec![self.visits.start(server)?])
    }

    fn patience(&self) -> Option<Duration> {
        Some(FIRST_BYTE)
    }

    fn claim(&self, arrived: &[u8]) -> Option<Claim> {
        (Stranger::of(arrived) == Stranger::Http).then_some(Claim::Whole)
    }

    fn take(&self, _server: &Arc<ServerState>, connection: Arrived, _order: u64) {
        self.web.take(connection.stream, connection.peer, connection.bytes);
    }

    fn way_in(&self, stranger: Stranger) -> Option<String> {
        (stranger == Stranger::Tls).then(|| {
            "the page is at http://, not https:// ('bdp help visitors' has a proxy with TLS)".to_owned()
        })
    }

    fn address(&self) -> Option<SocketAddr> {
        None
    }

    fn is_idle(&self) -> bool {
        self.visits.is_idle()
    }

    fn hang_up(&self) {
        self.visits.hang_up();
        self.web.hang_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_for_days_or_seconds() {
        assert_eq!(kept("7d"), Ok(Nanos::secs(7 * 24 * 3600)));
        assert_eq!(kept("90s"), Ok(Nanos::secs(90)));
        for wrong in ["0d", "400d", "0s", "99999999999999999999d", "x", "-1d", ""] {
            assert!(kept(wrong).is_err(), "{wrong}");
        }
    }
}
