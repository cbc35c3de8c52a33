//! Round trips of visitors: each message is answered at once, with the kernel's round trip of the connection.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::Response;
use bdp_run::visit::{Connection, Visit};
use serde_json::json;
use tokio::time;

use super::asked::{OnConnection, Refusal, Shared, visit};

/// Longest message.
const LONGEST: usize = 64;
/// How long a client may be silent.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) async fn ping(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Extension(connection): OnConnection,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let visit = visit(&shared, &id, &connection)?;
    let upgrade = upgrade.map_err(|error| Refusal::Wrong(error.body_text().to_lowercase()))?;
    // Room for frames of control too.
    let upgrade = upgrade.max_message_size(2 * LONGEST).max_frame_size(2 * LONGEST);
    Ok(upgrade.on_upgrade(move |socket| answer(socket, visit, connection, shared)))
}

async fn answer(mut socket: WebSocket, visit: Arc<Visit>, connection: Arc<Connection>, shared: Shared) {
    let mut ending = shared.ending.clone();
    let _listener = visit.listen();
    while !visit.is_over() {
        let received = tokio::select! {
            received = time::timeout(SILENCE, socket.recv()) => received,
            _ = ending.wait_for(|ends| *ends) => return,
        };
        let text = match received {
            Ok(Some(Ok(Message::Text(text)))) if text.len() <= LONGEST => text,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
            _ => return,
        };
        visit.note_heard();
        let trips = visit.round_trip(&connection);
        let answer = json!({
            "echo": text.as_str(),
            "tcp_rtt_ns": trips.map(|trips| trips.0),
            "tcp_min_rtt_ns": trips.map(|trips| trips.1),
        });
        if socket.send(Message::Text(answer.to_string().into())).await.is_err() {
            return;
        }
    }
}
