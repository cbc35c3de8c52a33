//! Connections of the page.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};
use tokio::time;

use crate::api::{self, Shared};
use crate::{Door, Host};

/// Most connections at once; a browser opens six.
const MOST_CONNECTIONS: usize = 256;
/// Longest time that a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// Time that jobs get to end before the server does.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

/// A server before it serves.
pub struct Server {
    /// Where it listens.
    pub listener: TcpListener,
    /// Who may ask.
    pub door: Door,
    /// What it serves.
    pub host: Arc<dyn Host>,
}

/// Serves until `until` returns, which is called on a thread of its own; then cancels the jobs and ends.
pub fn serve(server: Server, until: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let Server { listener, door, host } = server;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (ends, ending) = watch::channel(false);
        let shared = Shared::new(host, door, ending);
        let jobs = shared.jobs.clone();
        let ended = tokio::task::spawn_blocking(until);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let asked_to_end = async { drop(ended.await) };
        accept(listener, shared, asked_to_end).await;
        jobs.cancel_all();
        let all_ended = async {
            while jobs.list().iter().any(|job| !job.is_over()) {
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        drop(time::timeout(LAST_MOMENTS, all_ended).await);
        ends.send_replace(true);
        // The streams bring the outcome before they end.
        time::sleep(Duration::from_millis(50)).await;
        Ok(())
    })
}

async fn accept(listener: tokio::net::TcpListener, shared: Shared, until: impl Future<Output = ()>) {
    let router = api::router(shared);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    tokio::pin!(until);
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = &mut until => return,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut until => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, for example: others are freed meanwhile.
            time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Events are small, and each should be seen at once.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
            // A client that breaks off is no error of the server.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}
