//! A server on a port of its own, and requests that are over soon.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bdp_agent::client::{self, Greeted};
use bdp_agent::server::access::{AccessRules, PlaceLimits};
use bdp_agent::server::{Event, Server, ServerOptions, Stopper};
use bdp_flow::session::driver;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::{Progress, Stage};
use bdp_flow::session::reporter::{Goodput, Reporter};
use bdp_flow::session::request;
use bdp_flow::session::timing::Started;
use bdp_model::flow::FlowSpec;
use bdp_model::measurement::{Direction, MeasureRequest, Measurement};
use bdp_model::units::{ByteCount, Nanos};
use bdp_wire::session::Limits;

pub const TOKEN: &str = "7d1f03c5aa";

/// A server in this process; dropped, it ends.
pub struct Serving {
    pub address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    events: Arc<Mutex<Vec<Event>>>,
}

pub fn options() -> ServerOptions {
    ServerOptions {
        listen: "[::]:0".parse().unwrap(),
        token: Some(TOKEN.to_owned()),
        limits: Limits { duration: Nanos::secs(10), streams: 2000, rate: None },
        access: AccessRules::default(),
        places: PlaceLimits {
            sessions: 8,
            sessions_per_address: 8,
            streams_per_address: 4000,
            ..PlaceLimits::default()
        },
        tuning: None,
        once: false,
    }
}

impl Serving {
    pub fn start() -> Self {
        Self::with(options())
    }

    pub fn with(options: ServerOptions) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&events);
        let server =
            Server::bind(options, Vec::new(), move |event| log.lock().unwrap().push(event.clone())).unwrap();
        let (address, stopper) = (server.address(), server.stopper());
        let thread = Some(std::thread::spawn(move || server.run().unwrap()));
        Self { address, stopper, thread, events }
    }

    /// A request to it by IPv4, short.
    pub fn request(&self) -> MeasureRequest {
        request("127.0.0.1", self.address.port())
    }

    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// A measurement goes through: nothing that came before has done harm.
    pub fn assert_unharmed(&self) {
        let measurement = run(&self.request()).unwrap();
        assert!(measurement.directions[0].bytes > 0);
    }

    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stopper.stop();
        let outcome = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            outcome.unwrap();
        }
    }
}

pub fn request(host: &str, port: u16) -> MeasureRequest {
    MeasureRequest {
        port,
        directions: vec![Direction::To],
        idle: Nanos::millis(200),
        spec: FlowSpec {
            duration: Nanos::millis(300),
            interval: Nanos::millis(50),
            length: ByteCount::kib(64),
            ..FlowSpec::default()
        },
        ..MeasureRequest::to(host)
    }
}

/// Measures without a token.
pub fn run(request: &MeasureRequest) -> Result<Measurement, SessionError> {
    run_with(request, None)
}

pub fn run_with(request: &MeasureRequest, token: Option<&str>) -> Result<Measurement, SessionError> {
    measure(request, token, &mut |_| {}, &AtomicBool::new(false))
}

/// As a caller of the client does.
pub fn measure(
    request: &MeasureRequest,
    token: Option<&str>,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement, SessionError> {
    request::check(request)?;
    let started = Started::now();
    let mut reporter = Reporter::new(request, progress, cancel);
    reporter.report(Stage::Connecting, started.at, Nanos::ZERO, Goodput::default(), None)?;
    match client::greet(request, token, cancel)? {
        Greeted::Admitted(mut session) => {
            Ok(started.note(driver::measure(request, session.as_mut(), reporter, &|_, _| None)?))
        }
        Greeted::Silent { error, .. } => Err(error),
    }
}
