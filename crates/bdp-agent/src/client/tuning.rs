//! Changes settings of a server's host, with the consent of its owner.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_flow::session::dial;
use bdp_flow::session::error::SessionError;
use bdp_model::measurement::MeasureRequest;
use bdp_model::tuning::{Change, SettingChange, Target};
use bdp_sys::socket::TcpOptions;
use bdp_wire::control::{Answer, Request};
use bdp_wire::proof::{Exchange, Prover};
use bdp_wire::tuning::{
    RefusalCause, Sealed, TuneAnswer, TuneApplied, TuneOrder, TuneRequest, TuneReverted, TuneState,
};

use super::control::{Control, Tokens};

/// How long the server may take over a request: journals are synced to its disk, and other processes may be at them.
const PATIENCE: Duration = Duration::from_secs(30);
const DOING: &str = "a change of settings";

/// The result of tuning.
pub type Result<T, E = TuneError> = std::result::Result<T, E>;

/// Why settings of a server's host were not changed, in one line with a way out.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The server could not be reached, refused this client, or closed the connection.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The server refused or failed. If this was a change, all settings are as before, unless the text says
    /// otherwise.
    #[error("{address} refused: {text}")]
    Refused {
        /// The server's address.
        address: SocketAddr,
        /// Who caused it.
        cause: RefusalCause,
        /// The server's message, without control characters.
        text: String,
    },
}

impl TuneError {
    /// Whether the owner of the host has not consented: bdp there is too old, or not started with `--allow-tune`.
    pub fn is_without_consent(&self) -> bool {
        let Self::Session(error) = self else { return false };
        matches!(error, SessionError::TuningNotAllowed { .. } | SessionError::TuningUnknown { .. })
    }

    /// Whether the request is wrong, rather than the environment.
    pub fn is_of_request(&self) -> bool {
        match self {
            Self::Session(error) => error.is_request(),
            Self::Refused { cause, .. } => matches!(cause, RefusalCause::Bounds | RefusalCause::Request),
        }
    }
}

/// A session with a server that allows changes of its host's settings. The server ends it after a minute without
/// requests: a later confirm or revert needs a new session.
pub struct TuneClient {
    control: Control,
    exchange: Exchange,
    token: String,
}

impl TuneClient {
    /// Connects to the server at a host and port, and proves knowledge of the tune token.
    pub fn connect(host: &str, port: u16, tune_token: &str, cancel: &AtomicBool) -> Result<Self> {
        let request = MeasureRequest { port, ..MeasureRequest::to(host) };
        Self::connect_by(&request, tune_token, cancel)
    }

    /// Connects to the host of a measurement, from the address and device that it names.
    pub fn connect_by(request: &MeasureRequest, tune_token: &str, cancel: &AtomicBool) -> Result<Self> {
        let options = TcpOptions {
            mss: Some(dial::CONTROL_MSS),
            device: request.bind_device.clone(),
            ..Default::default()
        };
        let addresses = dial::resolve(request, cancel)?;
        let (stream, address) = dial::connect_any(&addresses, request, &options, cancel)?;
        let tokens = Tokens { token: None, tune: Some(tune_token) };
        let (control, exchange) = Control::greet_with(stream, address, &tokens)?;
        Ok(Self { control, exchange, token: tune_token.to_owned() })
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.control.address
    }

    /// Returns the changes in force, and this end's address as the server sees it.
    pub fn state(&mut self) -> Result<TuneState> {
        match self.ask(&TuneRequest::State)? {
            TuneAnswer::State(state) => Ok(state),
            other => Err(self.other(other)),
        }
    }

    /// Checks changes without making them.
    pub fn check(&mut self, order: &TuneOrder) -> Result<Vec<SettingChange>> {
        let order = self.towards_here(order);
        match self.ask(&TuneRequest::Check(order))? {
            TuneAnswer::Checked { steps } => Ok(steps),
            other => Err(self.other(other)),
        }
    }

    /// Makes changes, all or none, which revert automatically after the order's time. A route to this end's own
    /// address means this end as the server sees it, even behind a NAT.
    pub fn apply(&mut self, order: &TuneOrder) -> Result<TuneApplied> {
        let order = self.towards_here(order);
        match self.ask(&TuneRequest::Apply(order))? {
            TuneAnswer::Applied(applied) => Ok(applied),
            other => Err(self.other(other)),
        }
    }

    /// Keeps the changes of a journal; returns the number of settings.
    pub fn confirm(&mut self, journal: u32) -> Result<u32> {
        match self.ask(&TuneRequest::Confirm { journal })? {
            TuneAnswer::Confirmed { settings, .. } => Ok(settings),
            other => Err(self.other(other)),
        }
    }

    /// Reverts the changes of a journal, except settings that somebody else has changed since.
    pub fn revert(&mut self, journal: u32) -> Result<TuneReverted> {
        match self.ask(&TuneRequest::Revert { journal })? {
            TuneAnswer::Reverted(reverted) => Ok(reverted),
            other => Err(self.other(other)),
        }
    }

    fn ask(&mut self, request: &TuneRequest) -> Result<TuneAnswer> {
        let number = self.control.next_number();
        let sealed = Sealed::close(request, &self.exchange, &self.token, Prover::TuneClient, number);
        let sealed = sealed.map_err(|e| SessionError::Request(format!("write the request: {e}")))?;
        let pending = self.control.ask(Request::Tune(sealed))?;
        match self.control.fetch(pending, PATIENCE, DOING)? {
            Answer::Tuned(sealed) => sealed
                .open(&self.exchange, &self.token, Prover::TuneServer, pending.number())
                .map_err(|e| self.nonsense(format!("an answer: {e}"))),
            _ => Err(self.control.out_of_turn().into()),
        }
    }

    fn other(&self, answer: TuneAnswer) -> TuneError {
        match answer {
            TuneAnswer::Refused { cause, text } => {
                let text = bdp_model::plain::plain(&text);
                TuneError::Refused { address: self.control.address, cause, text }
            }
            _ => self.control.out_of_turn().into(),
        }
    }

    fn nonsense(&self, what: String) -> TuneError {
        SessionError::NotBdp { address: self.control.address, what }.into()
    }

    /// Returns an order whose routes to this end's own address mean the client, whatever address the server sees.
    fn towards_here(&self, order: &TuneOrder) -> TuneOrder {
        let here = self.control.local_address().map(|local| local.ip().to_canonical());
        let change = |change: &Change| match &change.target {
            Target::Route { to, attribute } if Some(to.to_canonical()) == here => {
                let to = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
                Change { target: Target::Route { to, attribute: *attribute }, ..change.clone() }
            }
            _ => change.clone(),
        };
        TuneOrder { changes: order.changes.iter().map(change).collect(), ..order.clone() }
    }
}
