//! Requests of visitors.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bdp_run::visit::{BrowserReport, VisitDirection};
use bdp_run::visit::{Mark, Visit};
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{self, Duration};

use super::asked::{OnConnection, Refusal, Shared, visit};
use super::{ping, transfer};
use crate::api::guarded;
use crate::{assets, origin};

/// Most bytes of a result's request, and the longest time that it may take.
const MOST_BODY: usize = 512 << 10;
const BODY_TIME: Duration = Duration::from_secs(10);
/// Interval of events.
const EVENT: Duration = Duration::from_millis(100);
/// Longest `Host` that is repeated in a command.
const LONGEST_HOST: usize = 260;

/// All paths that a visitor may ask for.
pub(super) fn router(shared: Shared) -> Router {
    Router::new()
        .route("/", get(assets::visitor_page))
        .route("/r/{key}", get(assets::visitor_page))
        .route("/visitor.js", get(assets::visitor_script))
        .route("/visitor.css", get(assets::visitor_style))
        .route("/api/visit/about", get(about))
        .route("/api/visit", post(open))
        .route("/api/visit/results/{key}", get(kept))
        .route("/api/visit/{id}/down", get(transfer::down))
        .route("/api/visit/{id}/up", post(transfer::up))
        .route("/api/visit/{id}/ping", get(ping::ping))
        .route("/api/visit/{id}/events", get(events))
        .route("/api/visit/{id}/stage", post(mark))
        .route("/api/visit/{id}/result", post(result))
        .fallback(unknown)
        .layer(middleware::from_fn_with_state(shared.clone(), may_visit))
        .layer(middleware::map_response(guarded))
        .with_state(shared)
}

/// Lets an address in that may visit, and requests of this server's own page.
async fn may_visit(
    State(shared): State<Shared>,
    Extension(connection): OnConnection,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    shared.visits.check(connection.peer)?;
    let headers = request.headers();
    let is_checked = request.method() != axum::http::Method::GET || headers.contains_key(header::UPGRADE);
    if is_checked && !origin::is_own(headers) {
        return Err(Refusal::Foreign);
    }
    let name = origin::named(headers);
    if is_checked && !origin::is_address_or(name, |name| shared.visits.is_named(name)) {
        return Err(Refusal::Unnamed(origin::tame(name)));
    }
    Ok(next.run(request).await)
}

async fn unknown() -> Refusal {
    Refusal::Missing("there is nothing at this address; the page is at /")
}

/// How the browser addresses this server, as far as a command may repeat it. A proxy is on a port of its own: without
/// one in the request, the server's own counts.
fn host(headers: &HeaderMap, own_port: Option<u16>) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
    if host.is_empty() || host.len() > LONGEST_HOST || !host.chars().all(is_host) {
        return "HOST".to_owned();
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match own_port {
        Some(port) if !has_port => format!("{host}:{port}"),
        _ => host.to_owned(),
    }
}

/// Notes what a program between browser and server adds to a request.
fn is_through_proxy(headers: &HeaderMap) -> bool {
    ["via", "forwarded", "x-forwarded-for"].iter().any(|name| headers.contains_key(*name))
}

async fn about(State(shared): State<Shared>, headers: HeaderMap) -> Json<Value> {
    let options = shared.visits.options();
    let limits = options.limits;
    Json(json!({
        "bdp": env!("CARGO_PKG_VERSION"),
        "server": shared.visits.server_name(),
        "limits": {
            "duration_ns": limits.duration.as_ns(),
            "streams": limits.streams,
            "rate_bps": limits.rate.map(|rate| rate.as_bps()),
            "bytes_per_day": options.per_day.map(|bytes| bytes.as_bytes()),
        },
        "keep_ns": options.keep.as_ns(),
        "command": format!("bdp measure {}", host(&headers, shared.visits.port())),
    }))
}

async fn open(
    State(shared): State<Shared>,
    Extension(connection): OnConnection,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let visit = shared.visits.open(connection.peer)?;
    if is_through_proxy(&headers) {
        visit.note_proxy();
    }
    let document = json!({ "id": visit.id(), "congestion_control": connection.congestion_control() });
    Ok((StatusCode::CREATED, Json(document)).into_response())
}

async fn kept(State(shared): State<Shared>, Path(key): Path<String>) -> Result<Response, Refusal> {
    let text = shared.visits.kept(&key).ok_or(Refusal::Missing(
        "there is no such result: it was deleted after its time or when the server ended, or the link is incomplete",
    ))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Marked {
    stage: String,
}

async fn mark(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Extension(connection): OnConnection,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let visit = visit(&shared, &id, &connection)?;
    let marked: Marked = sent(request).await?;
    visit.mark(match marked.stage.as_str() {
        "idle" => Mark::Idle,
        "down" => Mark::Direction(VisitDirection::Down),
        "up" => Mark::Direction(VisitDirection::Up),
        _ => return Err(Refusal::Wrong("a stage is idle, down or up".to_owned())),
    });
    Ok(StatusCode::NO_CONTENT)
}

async fn result(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Extension(connection): OnConnection,
    request: Request,
) -> Result<Response, Refusal> {
    let visit = visit(&shared, &id, &connection)?;
    let host = host(request.headers(), shared.visits.port());
    let told: BrowserReport = sent(request).await?;
    let made = tokio::task::spawn_blocking(move || shared.visits.finish(&visit, &told, &host)).await;
    let text = made.map_err(|_| Refusal::Wrong("internal error in bdp; please report it".to_owned()))??;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// What a request carries as JSON.
async fn sent<T: for<'a> Deserialize<'a>>(request: Request) -> Result<T, Refusal> {
    let wrong = |why: String| Refusal::Wrong(format!("the request is not as expected: {why}"));
    let read = time::timeout(BODY_TIME, to_bytes(request.into_body(), MOST_BODY)).await;
    let body: Bytes = read
        .map_err(|_| wrong(format!("it took more than {} s", BODY_TIME.as_secs())))?
        .map_err(|error| wrong(error.to_string().to_lowercase()))?;
    serde_json::from_slice(&body).map_err(|error| wrong(error.to_string().to_lowercase()))
}

#[derive(Deserialize)]
struct After {
    after: Option<u64>,
}

async fn events(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Query(after): Query<After>,
    Extension(connection): OnConnection,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let visit = visit(&shared, &id, &connection)?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let number: u64 = last.or(after.after).unwrap_or(0);
    let events = Sse::new(readings(visit, number, shared));
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

/// Readings of a session until it ends or the server does. Each says all that is so, so that none needs to be repeated.
fn readings(
    visit: Arc<Visit>,
    after: u64,
    shared: Shared,
) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    let ticks = time::interval(EVENT);
    let listener = visit.listen();
    stream::unfold(
        (visit, after, ticks, (shared, listener), false),
        |(visit, number, mut ticks, shared, is_last)| async move {
            if is_last || *shared.0.ending.borrow() {
                return None;
            }
            ticks.tick().await;
            let is_last = visit.is_over();
            let text = serde_json::to_string(&visit.live()).unwrap_or_default();
            let event = sse::Event::default().id((number + 1).to_string()).data(text);
            Some((Ok(event), (visit, number + 1, ticks, shared, is_last)))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_names_the_server_as_the_browser_does() {
        let of = |host_header: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host_header.parse().unwrap());
            host(&headers, Some(5201))
        };
        for (given, shown) in [
            ("192.0.2.1:5202", "192.0.2.1:5202"),
            ("speed.example.com", "speed.example.com:5201"),
            ("[2001:db8::7]", "[2001:db8::7]:5201"),
            ("[2001:db8::7]:80", "[2001:db8::7]:80"),
            ("x; rm -rf /", "HOST"),
            ("", "HOST"),
        ] {
            assert_eq!(of(given), shown);
        }
    }
}
