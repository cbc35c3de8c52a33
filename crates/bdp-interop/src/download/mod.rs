//! Downloads from any web server, measured at the receiving end: there is no bdp at the server, so the sender's side
//! is unknown, and round trips are those of TCP handshakes.

mod chunks;
mod failure;
mod flow;
mod http;
mod prober;
mod url;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use bdp_flow::background::Passed;
use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::options;
use bdp_flow::session::peer::{Context, Outcome, Peer, Polled, Probes};
use bdp_model::finding::caveat::Caveat;
use bdp_model::finding::threshold::LONG_ENOUGH;
use bdp_model::flow::method::EndReason;
use bdp_model::measurement::{Direction, DirectionResult, HostFacts, MeasureRequest};
use bdp_model::units::{ByteCount, Nanos};
use bdp_sys::clock;
use bdp_sys::socket::TcpOptions;
use bdp_sys::tcp_info::TcpInfo;
use bdp_wire::control::Sent;

use failure::{failed, unconnected};
use flow::{Flow, WORTH_REPEATING};
use http::{Connection, Tls};
use prober::Prober;
pub use url::Url;

/// Most redirections that are followed.
const MOST_REDIRECTIONS: u32 = 5;

/// Downloads a file for the requested time over concurrent connections: one direction, with little known of the
/// remote end.
pub struct Download {
    url: Url,
    /// The server's address, once known.
    address: Option<SocketAddr>,
    connections: Vec<Connection>,
    prober: Option<Prober>,
    flow: Option<Flow>,
    /// Whether all its connections have read the file to its end.
    is_whole: bool,
}

impl Download {
    /// Creates the download of the request's URL.
    pub fn new(request: &MeasureRequest) -> Result<Self> {
        let text = request.url.as_deref().unwrap_or_default();
        let url = Url::parse(text).map_err(SessionError::Request)?;
        Ok(Self { url, address: None, connections: Vec::new(), prober: None, flow: None, is_whole: false })
    }
}

impl Peer for Download {
    fn open(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<MeasureRequest> {
        let tls = Tls::default();
        if self.url.secure {
            // Before any server is contacted.
            tls.config().map_err(|what| failed(&self.url, what))?;
        }
        let options = options::options(request, Direction::From);
        let cancel = context.reporter.cancel;
        let (url, address) = settle(self.url.clone(), request, &options, &tls, cancel)?;
        let connecting = Connecting { url: &url, address, request, options: &options, tls: &tls, cancel };
        self.connections = connecting.open(request.spec.streams)?;
        let local = self.connections.first().and_then(|c| c.socket().local_addr().ok());
        context.note_local(local.map_or(address.ip(), |local| local.ip()));
        let handshake_interval_ns = prober::INTERVAL.as_ns();
        context.caveats.push(Caveat::WebServer { host: url.host.clone(), handshake_interval_ns });
        (self.url, self.address) = (url, Some(address));
        Ok(request.clone())
    }

    fn start_probes(&mut self, _: &MeasureRequest, _: &mut Context<'_>) -> Result<Option<u64>> {
        let Some(address) = self.address else { return Ok(None) };
        self.prober = Some(Prober::start(address)?);
        Ok(Some(clock::monotonic_ns()))
    }

    fn rounds(&self, _: &MeasureRequest) -> Vec<Vec<Direction>> {
        vec![vec![Direction::From]]
    }

    fn begin(&mut self, request: &MeasureRequest, _: &[Direction], _: &mut Context<'_>) -> Result<()> {
        let connections = std::mem::take(&mut self.connections);
        self.flow = Some(Flow::start(connections, &self.url, &request.spec)?);
        Ok(())
    }

    fn poll(&mut self, request: &MeasureRequest, _: &mut Context<'_>) -> Result<Polled> {
        self.flow.as_mut().map_or(Ok(Polled::Over), |flow| flow.poll(&request.spec, &self.url))
    }

    fn moved(&mut self) -> Vec<(Direction, Passed)> {
        self.flow.iter_mut().map(|flow| (Direction::From, flow.moved())).collect()
    }

    fn sender_infos(&self) -> Vec<(Direction, Vec<TcpInfo>)> {
        Vec::new()
    }

    fn has_begun(&self) -> bool {
        // Within the omit there is nothing yet to conclude.
        self.flow.as_ref().is_some_and(Flow::has_counted)
    }

    fn interrupt(&mut self, _: &mut Context<'_>) -> Result<()> {
        self.flow.iter_mut().for_each(Flow::cut_short);
        Ok(())
    }

    fn finish(&mut self, _: &MeasureRequest, _: &mut Context<'_>) -> Result<Vec<Outcome>> {
        let Some(flow) = &mut self.flow else { return Ok(Vec::new()) };
        let received = flow.finish(&self.url);
        self.is_whole = received.ended == EndReason::Bytes;
        if self.is_whole && received.duration_ns < LONG_ENOUGH.as_ns() {
            return Err(failed(
                &self.url,
                format!(
                    "{} arrived within {}, too short to compute a rate; give the URL of a larger file",
                    ByteCount::bytes(received.bytes),
                    Nanos(received.duration_ns)
                ),
            ));
        }
        let sent = Sent { mss: flow.mss(), ..Sent::default() };
        // TLS adds 22 bytes to each record, of 16 KiB mostly.
        let (begun_at_ns, framing_bytes) = (received.first_byte_at_ns, received.bytes / 200);
        Ok(vec![Outcome { begun_at_ns, framing_bytes, ..Outcome::of(Direction::From, received, sent) }])
    }

    fn await_probes(&mut self, until_ns: u64, context: &mut Context<'_>) -> Result<()> {
        if let Some(prober) = &self.prober {
            prober.await_answers(until_ns, context.reporter.cancel);
        }
        Ok(())
    }

    fn probes(&self) -> Option<&dyn Probes> {
        self.prober.as_ref().map(|prober| prober as &dyn Probes)
    }

    fn remote_facts(&mut self, _: &MeasureRequest) -> Result<HostFacts> {
        let address = self.address.map_or_else(String::new, |a| a.ip().to_canonical().to_string());
        Ok(HostFacts { name: self.url.host.clone(), address, ..HostFacts::default() })
    }

    fn caveats(&self, directions: &[DirectionResult]) -> Vec<Caveat> {
        let whole = directions.iter().filter(|_| self.is_whole);
        let caveat = |result: &DirectionResult| Caveat::FileTooShort {
            after_ns: result.duration_ns,
            repeated_from_bytes: WORTH_REPEATING,
        };
        whole.map(caveat).collect()
    }
}

/// Follows redirections to the file.
fn settle(
    mut url: Url,
    request: &MeasureRequest,
    options: &TcpOptions,
    tls: &Tls,
    cancel: &AtomicBool,
) -> Result<(Url, SocketAddr)> {
    for _ in 0..=MOST_REDIRECTIONS {
        let there = MeasureRequest { host: url.host.clone(), port: url.port, ..request.clone() };
        let addresses = dial::resolve(&there, cancel)?;
        let (stream, address) =
            dial::connect_any(&addresses, &there, options, cancel).map_err(|e| unconnected(&url, e))?;
        let mut connection = Connection::open(stream, &url, tls).map_err(|what| failed(&url, what))?;
        connection.ask(&url).map_err(|e| failed(&url, e.to_string()))?;
        let (head, _) = connection.read_head().map_err(|what| failed(&url, what))?;
        match (head.status, &head.location) {
            (200..=299, _) => return Ok((url, address)),
            (301 | 302 | 303 | 307 | 308, Some(location)) => {
                let next = url.join(location).map_err(|what| failed(&url, what))?;
                if url.secure && !next.secure {
                    return Err(failed(
                        &url,
                        format!("it redirects from https to {next}; give that URL to accept it"),
                    ));
                }
                url = next;
            }
            (status, _) => {
                return Err(failed(&url, format!("the server answered {status}; check the path")));
            }
        }
    }
    Err(failed(&url, format!("more than {MOST_REDIRECTIONS} redirects; give the URL of the file itself")))
}

/// The parameters of connections.
struct Connecting<'a> {
    url: &'a Url,
    address: SocketAddr,
    request: &'a MeasureRequest,
    options: &'a TcpOptions,
    tls: &'a Tls,
    cancel: &'a AtomicBool,
}

impl Connecting<'_> {
    fn open(&self, count: u32) -> Result<Vec<Connection>> {
        let port = self.request.client_port.map(u32::from);
        let streams = dial::connect_all(
            self.address,
            count,
            self.request,
            port,
            self.options,
            |_, _| Ok(()),
            self.cancel,
        )
        .map_err(|e| unconnected(self.url, e))?;
        streams
            .into_iter()
            .map(|stream| Connection::open(stream, self.url, self.tls).map_err(|what| failed(self.url, what)))
            .collect()
    }
}
