//! Requests of the page.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use futures_util::Stream;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Duration;

use crate::event_log::{LoggedEvent, Role};
use crate::jobs::RunningJob;
use crate::shared::{MOST_STREAMS, Shared, apart};
use crate::{Asked, Host, Order, Refused, RefusedBy, RunSelection, Secrets, assets, upload};

/// Most bytes of a request.
const MOST_BODY: usize = 64 << 10;
/// Interval of comments on a silent stream, so that both ends learn of a broken connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Most words of a command line.
const MOST_WORDS: usize = 200;

/// All paths of the server.
pub fn router(shared: Shared) -> Router {
    let api = Router::new()
        .route("/about", get(about))
        .route("/commands", get(commands))
        .route("/check", post(check))
        .route("/jobs", get(list_jobs).post(start_job))
        .route("/jobs/{id}", get(show_job))
        .route("/jobs/{id}/events", get(follow_job))
        .route("/jobs/{id}/cancel", post(cancel_job))
        .route("/jobs/{id}/answer", post(answer_job))
        .route("/answer", post(answer))
        .route("/what-if", post(what_if))
        .route("/what-if/lab", post(what_if_in_lab))
        .route("/captures", get(upload::list).post(upload::receive).layer(DefaultBodyLimit::disable()))
        .route("/captures/{id}", delete(upload::remove))
        .route("/runs", get(list_runs))
        .route("/runs/{run}", get(show_run).delete(remove_run))
        .route("/runs/{run}/report", get(report))
        .route("/runs/{run}/csv", get(csv))
        .layer(middleware::from_fn_with_state(shared.clone(), at_the_door))
        .route("/session", post(enter))
        .fallback(unknown);
    Router::new()
        .route("/", get(assets::page))
        .route("/app.js", get(assets::script))
        .route("/chunk.js", get(assets::shared_script))
        .route("/panels.js", get(assets::panels))
        .route("/app.css", get(assets::style))
        .nest("/api", api)
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .layer(middleware::from_fn_with_state(shared.clone(), for_this_host))
        .layer(middleware::map_response(guarded))
        .with_state(shared)
}

/// Headers on every answer.
pub(crate) async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let fixed = [
        (
            "content-security-policy",
            "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn for_this_host(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    shared.door.check_host(request.headers())?;
    Ok(next.run(request).await)
}

async fn at_the_door(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    shared.door.check(request.headers())?;
    Ok(next.run(request).await)
}

async fn enter(State(shared): State<Shared>, headers: HeaderMap) -> Result<Json<Value>, Refused> {
    Ok(Json(json!({ "secret": shared.door.enter(&headers)? })))
}

async fn unknown() -> Refused {
    Refused::new(RefusedBy::Missing, "there is nothing at this address; the page is at /")
}

async fn about(State(shared): State<Shared>) -> Result<Json<Value>, Refused> {
    apart(move || shared.host.about()).await.map(Json)
}

async fn commands(State(shared): State<Shared>) -> Json<Value> {
    Json(shared.host.commands())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandLine {
    /// The words, without `bdp`.
    command: Vec<String>,
    /// Chosen by the page for each press of the button.
    #[serde(default)]
    key: String,
    /// Tokens, which are no part of the command.
    #[serde(default)]
    secrets: Secrets,
}

async fn check(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Sent(line): Sent<CommandLine>,
) -> Result<Json<Value>, Refused> {
    let asked = asked(&shared, &headers, line).await?;
    Ok(Json(json!({ "command": asked.command, "notes": asked.notes, "job": asked.job.to_json() })))
}

async fn start_job(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Sent(line): Sent<CommandLine>,
) -> Result<Response, Refused> {
    let key = line.key.clone();
    let asked = asked(&shared, &headers, line).await?;
    let (job, is_new) = shared.jobs.start(asked, key)?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(job.state())).into_response())
}

fn order(shared: &Shared, headers: &HeaderMap, line: CommandLine) -> Result<Order, Refused> {
    if line.command.len() > MOST_WORDS {
        return Err(Refused::new(RefusedBy::Usage, format!("a command has at most {MOST_WORDS} words")));
    }
    Ok(Order { words: line.command, secrets: line.secrets, is_local: shared.door.is_local(headers) })
}

async fn asked(shared: &Shared, headers: &HeaderMap, line: CommandLine) -> Result<Asked, Refused> {
    let order = order(shared, headers, line)?;
    let (host, captures) = (shared.host.clone(), shared.captures.clone());
    apart(move || host.job(order, &captures)).await
}

async fn answer(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Sent(line): Sent<CommandLine>,
) -> Result<Json<Value>, Refused> {
    let order = order(&shared, &headers, line)?;
    apart(move || shared.host.answer(order)).await.map(Json)
}

async fn what_if(State(shared): State<Shared>, Sent(wish): Sent<Value>) -> Result<Json<Value>, Refused> {
    apart(move || shared.host.what_if(wish)).await.map(Json)
}

async fn what_if_in_lab(
    State(shared): State<Shared>,
    Sent(wish): Sent<Value>,
) -> Result<Json<Value>, Refused> {
    apart(move || shared.host.what_if_in_lab(wish)).await.map(Json)
}

async fn list_jobs(State(shared): State<Shared>) -> Json<Value> {
    Json(shared.jobs.list().iter().map(|job| value(&job.state())).collect())
}

async fn show_job(State(shared): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, Refused> {
    Ok(Json(value(&shared.jobs.get(&id)?.state())))
}

async fn cancel_job(State(shared): State<Shared>, Path(id): Path<String>) -> Result<StatusCode, Refused> {
    shared.jobs.get(&id)?.cancel();
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct YesOrNo {
    /// Number of the question.
    question: u64,
    yes: bool,
}

async fn answer_job(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Sent(answer): Sent<YesOrNo>,
) -> Result<StatusCode, Refused> {
    let job = shared.jobs.get(&id)?;
    if job.is_fix() && !shared.door.is_local(&headers) {
        return Err(Refused::new(
            RefusedBy::Forbidden,
            "this job changes settings of its machine: answer it there, or by ssh -L, without a proxy",
        ));
    }
    job.answer(answer.question, answer.yes)?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
struct After {
    after: Option<u64>,
}

async fn follow_job(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let job = shared.jobs.get(&id)?;
    let permit = shared.streams.clone().try_acquire_owned().map_err(|_| {
        Refused::new(
            RefusedBy::Busy,
            format!("{MOST_STREAMS} event streams are open: close some tabs of bdp"),
        )
    })?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let after = last.or(after.after).unwrap_or(0);
    let events = events(Reader {
        newest: job.log.follow(),
        job,
        after,
        ending: shared.ending.clone(),
        is_over: false,
        _permit: permit,
    });
    let stream = Sse::new(events).keep_alive(sse::KeepAlive::new().interval(KEEP_ALIVE));
    Ok(([("x-accel-buffering", "no")], stream).into_response())
}

/// One reader of a job's events.
struct Reader {
    job: Arc<RunningJob>,
    newest: watch::Receiver<u64>,
    after: u64,
    ending: watch::Receiver<bool>,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

fn events(reader: Reader) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        let named = sse::Event::default().id(event.number.to_string()).data(&*event.text);
        let named = if event.role == Role::Outcome { named.event("outcome") } else { named };
        Some((Ok(named), reader))
    })
}

impl Reader {
    /// The next event; `None` after the outcome, or if the server ends.
    async fn next(&mut self) -> Option<LoggedEvent> {
        loop {
            if self.is_over {
                return None;
            }
            self.newest.borrow_and_update();
            // Read before the log is: what is added in between is found by the next look.
            let is_ending = *self.ending.borrow() || self.job.is_over();
            if let Some(event) = self.job.log.after(self.after) {
                self.after = event.number;
                self.is_over = event.role == Role::Outcome;
                return Some(event);
            }
            // Nothing follows: the reader has the outcome already, or the server ends.
            if is_ending {
                return None;
            }
            tokio::select! {
                changed = self.newest.changed() => changed.ok()?,
                _ = self.ending.changed() => {}
            }
        }
    }
}

async fn list_runs(
    State(shared): State<Shared>,
    selection: Result<Query<RunSelection>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Value>, Refused> {
    let Query(selection) = selection.map_err(|error| Refused::new(RefusedBy::Usage, error.body_text()))?;
    // A browser that searches for something else breaks off: nobody waits for this search any more.
    let waits = Waits(Arc::new(AtomicBool::new(false)));
    let cancel = waits.0.clone();
    apart(move || shared.host.runs(&selection, &cancel)).await.map(Json)
}

/// Raised once its request is over.
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn show_run(State(shared): State<Shared>, Path(run): Path<String>) -> Result<Response, Refused> {
    let text = apart(move || shared.host.run_document(&run)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

async fn report(State(shared): State<Shared>, Path(run): Path<String>) -> Result<Response, Refused> {
    file(shared, run, "html", "text/html; charset=utf-8", |host, run| host.report(run)).await
}

async fn csv(State(shared): State<Shared>, Path(run): Path<String>) -> Result<Response, Refused> {
    file(shared, run, "csv", "text/csv; charset=utf-8", |host, run| host.csv(run)).await
}

/// A file to save: a report has a script of its own, which must not run as the page's.
async fn file(
    shared: Shared,
    run: String,
    ending: &str,
    kind: &'static str,
    make: impl FnOnce(&dyn Host, &str) -> Result<String, Refused> + Send + 'static,
) -> Result<Response, Refused> {
    let name: String = run.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let text = apart(move || make(&*shared.host, &run)).await?;
    let disposition = format!("attachment; filename=\"bdp-{name}.{ending}\"");
    let headers = [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)];
    Ok((headers, text).into_response())
}

async fn remove_run(State(shared): State<Shared>, Path(run): Path<String>) -> Result<StatusCode, Refused> {
    apart(move || shared.host.remove(&run)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a request carries as JSON.
struct Sent<T>(T);

impl<S: Send + Sync, T: for<'a> Deserialize<'a>> FromRequest<S> for Sent<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let refused = |why: String| {
            Refused::new(RefusedBy::Usage, format!("the request is not as expected: {}", why.to_lowercase()))
        };
        let body = Bytes::from_request(request, state).await.map_err(|error| refused(error.body_text()))?;
        serde_json::from_slice(&body).map(Self).map_err(|error| refused(error.to_string()))
    }
}

fn value(content: &impl Serialize) -> Value {
    serde_json::to_value(content).unwrap_or_default()
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, kind, code) = match self.kind {
            RefusedBy::Usage => (StatusCode::BAD_REQUEST, "usage", 2),
            RefusedBy::Missing => (StatusCode::NOT_FOUND, "usage", 2),
            RefusedBy::Access => (StatusCode::UNAUTHORIZED, "environment", 3),
            RefusedBy::Forbidden => (StatusCode::FORBIDDEN, "environment", 3),
            RefusedBy::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "usage", 2),
            RefusedBy::Busy => (StatusCode::CONFLICT, "environment", 3),
            RefusedBy::Environment => (StatusCode::UNPROCESSABLE_ENTITY, "environment", 3),
            RefusedBy::Bug => (StatusCode::INTERNAL_SERVER_ERROR, "bug", 4),
        };
        let document = json!({
            "schema": "bdp.error/1",
            "bdp": env!("CARGO_PKG_VERSION"),
            "run": null,
            "error": { "kind": kind, "message": self.message, "exit_code": code },
        });
        (status, Json(document)).into_response()
    }
}
