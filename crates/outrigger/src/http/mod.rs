//! The HTTP API: runs, approvals, receipts, backends, sidecars, extensions, metrics; and the checks around the dashboard.
//!
//! # Theory of operation
//!
//! A connection has one of a limited number of places, and clocks of its own ([`connection`]). Every request goes through
//! [`around`]: a token of the rate, the right `Host`, who asks ([`guard`]), the right `Origin`, the whole body within its limit;
//! then its handler. What can be asked is one table ([`routes`]) from which both the router and the OpenAPI document are made.
//! Handlers do nothing themselves: they read the request ([`read`]), ask the daemon, and show the answer ([`view`]). Whatever
//! goes wrong is a [`problem`].
//!
//! Event streams ([`events`], [`changes`]) are pulled by their reader: one that does not read holds a part of the log and
//! nothing of the run; when the daemon leaves they end at once, and their readers come back to the next one.

mod about;
mod approvals;
mod around;
mod changes;
mod connection;
mod door;
mod events;
mod extensions;
mod guard;
mod limits;
mod meter;
mod openapi;
mod pace;
mod pages;
mod problem;
mod read;
mod receipts;
mod routes;
mod runs;
mod schemas;
mod sidecars;
mod sse;
mod summaries;
#[cfg(test)]
mod tests;
mod view;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use limits::ServerLimits;

use self::around::Reader;
use self::connection::{Connection, Places};
use self::door::Door;
use self::problem::Problem;
use crate::daemon::App;

/// The send buffer of a connection. Left alone it grows with what is written, and readers that sleep are fed at the cost of those
/// that are awake.
const UNREAD_BYTES: u32 = 128 << 10;

/// What is held of a connection, either way, between us and its socket. More than the head of a request may have, so that the
/// limit is ours.
const BUFFERED_BYTES: usize = 96 << 10;

/// Connections that may wait to be taken.
const BACKLOG: u32 = 1024;

/// Listens at an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A daemon that comes back finds the connections of the one before it still closing.
    socket.set_reuseaddr(true)?;
    // Connections have it from their listener.
    socket.set_send_buffer_size(UNREAD_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves the API and the dashboard until `shutdown` ends. Then streams end at once, and requests under way are finished as far
/// as the limits give them time.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    limits: ServerLimits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let limits = Arc::new(limits);
    let (leave, leaving) = watch::channel(false);
    let door = Arc::new(Door::new(app, Arc::clone(&limits), leaving));
    let places = Places::new(listener, Arc::clone(&limits));
    let router = router(&door);
    // Whatever is left of them goes with this.
    let mut conversations = JoinSet::new();
    let open = async {
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                connection = places.accept() => {
                    conversations.spawn(converse(connection, router.clone(), door.left()));
                }
                Some(_) = conversations.join_next() => {}
                () = &mut shutdown => return,
            }
        }
    };
    tokio::select! {
        () = open => {}
        () = count_appends(&door) => {}
    }
    drop(places);
    leave.send_replace(true);
    let _ = tokio::time::timeout(limits.drain_within, async {
        while conversations.join_next().await.is_some() {}
    })
    .await;
}

/// Answers the requests of a connection until either side has enough; the one that is under way when the daemon leaves is the last.
async fn converse(connection: Connection, router: axum::Router, left: impl Future<Output = ()>) {
    let handle = connection.handle();
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(handle.clone());
        service.call(request)
    });
    let conversation = http1::Builder::new()
        .max_buf_size(BUFFERED_BYTES)
        .serve_connection(TokioIo::new(connection), service);
    tokio::pin!(conversation, left);
    // How it ends is the other side's business: whatever went wrong here was said in an answer.
    tokio::select! {
        _ = &mut conversation => return,
        () = &mut left => conversation.as_mut().graceful_shutdown(),
    }
    let _ = conversation.await;
}

/// Everything that is answered, with the checks around it.
fn router(door: &Arc<Door>) -> axum::Router {
    let mut api = axum::Router::new();
    for route in routes::routes() {
        api = api.route(route.path, route.handler);
    }
    let pages = crate::dashboard::router().with_state(Arc::clone(&door.app));
    api.with_state(Arc::clone(door))
        .merge(pages)
        .fallback(nowhere)
        .method_not_allowed_fallback(not_that_way)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(door), around::around))
}

async fn nowhere(uri: Uri, headers: HeaderMap) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    let problem = Problem::not_found("no_such_path", format!("there is nothing at {path}"))
        .hint("GET /v1/openapi.json says what there is");
    Reader::of(&headers, uri.path()).told(problem)
}

async fn not_that_way(method: Method, uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    let message = format!("{path} cannot be asked with {method}");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message)
        .hint("GET /v1/openapi.json says what there is")
}

/// Counts how often logs grow, for the numbers. Never ends while the store is open.
async fn count_appends(door: &Door) {
    let mut changes = door.app.runs.changes();
    loop {
        match changes.recv().await {
            Ok(_) => door.meter.appended(1),
            Err(RecvError::Lagged(missed)) => door.meter.appended(missed),
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
