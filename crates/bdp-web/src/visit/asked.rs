//! What each request of a visitor needs, and how it is refused.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bdp_run::visit::{Connection, Turned, Visit, Visits};
use serde_json::json;
use tokio::sync::watch;

/// What every request needs.
#[derive(Clone)]
pub(super) struct Shared {
    pub visits: Arc<Visits>,
    pub chunk: Bytes,
    /// Becomes true when the server ends.
    pub ending: watch::Receiver<bool>,
}

/// A visitor's connection, known to every request on it.
pub(super) type OnConnection = Extension<Arc<Connection>>;

/// Why a visitor's request is not served.
pub(super) enum Refusal {
    Turned(Turned),
    /// Another page sent it.
    Foreign,
    /// It is for a host that is not this server, as far as that knows.
    Unnamed(String),
    /// Something is not there.
    Missing(&'static str),
    /// It is not as expected.
    Wrong(String),
}

impl From<Turned> for Refusal {
    fn from(turned: Turned) -> Self {
        Self::Turned(turned)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, kind, code, message) = match self {
            Self::Turned(Turned::Busy(why)) => (StatusCode::SERVICE_UNAVAILABLE, "environment", 3, why),
            Self::Turned(Turned::TooMuch(why)) => (StatusCode::TOO_MANY_REQUESTS, "environment", 3, why),
            Self::Turned(Turned::Denied(why)) => (StatusCode::FORBIDDEN, "environment", 3, why),
            Self::Turned(Turned::Gone(why)) => (StatusCode::NOT_FOUND, "usage", 2, why),
            Self::Foreign => (
                StatusCode::FORBIDDEN,
                "usage",
                2,
                "the request comes from a page of another server; open this server's own page".to_owned(),
            ),
            Self::Unnamed(name) => (
                StatusCode::FORBIDDEN,
                "usage",
                2,
                format!(
                    "this server is not known as '{name}': use its address, or start 'bdp serve --page --name {name}'"
                ),
            ),
            Self::Missing(why) => (StatusCode::NOT_FOUND, "usage", 2, why.to_owned()),
            Self::Wrong(why) => (StatusCode::BAD_REQUEST, "usage", 2, why),
        };
        let document = json!({
            "schema": "bdp.error/1",
            "bdp": env!("CARGO_PKG_VERSION"),
            "run": null,
            "error": { "kind": kind, "message": message, "exit_code": code },
        });
        (status, Json(document)).into_response()
    }
}

/// The session that a request names.
pub(super) fn visit(shared: &Shared, id: &str, connection: &Connection) -> Result<Arc<Visit>, Refusal> {
    Ok(shared.visits.get(id, connection.peer)?)
}
