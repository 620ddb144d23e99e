//! What happens around every request: who may, how much, how long, and that a handler that panics takes nobody with it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderMap, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, StreamExt};

use super::connection::Handle;
use super::door::Door;
use super::guard::{Shown, check_host, check_origin, look};
use super::pages;
use super::problem::Problem;

/// No script, style, image or connection from elsewhere, nothing inline, and no frame around us.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Everything around the handler of a request.
pub(super) async fn around(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let answering = request.extensions().get::<Handle>().map(Handle::begin);
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let reader = Reader::of(request.headers(), request.uri().path());
    let method = method_word(request.method());

    let answered = match admit(&door, request, route.as_deref()).await {
        // Whatever a handler held is dropped with it; what is shared is behind locks that survive a panic.
        Ok(request) => {
            AssertUnwindSafe(next.run(request)).catch_unwind().await.map_err(|panic| panicked(&*panic))
        }
        Err(problem) => Err(problem),
    };
    let answered = match answered {
        Ok(response) => stream_place(&door, response),
        Err(problem) => Err(problem),
    };
    let mut response = answered.unwrap_or_else(|problem| reader.told(problem));
    harden(response.headers_mut());
    let took = began.elapsed();
    door.meter.answered(route.as_deref().unwrap_or("(none)"), method, response.status().as_u16(), took);
    match response.body().size_hint().exact() {
        // It is all there; writing it is the connection's business.
        Some(_) => response,
        None => response.map(|body| {
            let held = body.into_data_stream().map(move |data| {
                let _ = &answering;
                data
            });
            Body::from_stream(held)
        }),
    }
}

/// Who reads the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Somebody before a browser.
    Person,
    /// Something that wants JSON.
    Program,
}

impl Reader {
    pub(super) fn of(headers: &HeaderMap, path: &str) -> Self {
        let html = headers
            .get_all(ACCEPT)
            .iter()
            .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")));
        if html && !path.starts_with("/v1/") { Reader::Person } else { Reader::Program }
    }

    /// A problem in the form that they can read.
    pub(super) fn told(self, problem: Problem) -> Response {
        match self {
            Reader::Person => pages::problem(&problem),
            Reader::Program => problem.into_response(),
        }
    }
}

/// Lets a request in, with its whole body and the name of who asks.
async fn admit(door: &Door, request: Request, route: Option<&str>) -> Result<Request, Problem> {
    door.pace.take(Instant::now()).map_err(|wait| {
        let message = format!("more than {} requests a second", door.limits.per_second);
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message).again_after(wait)
    })?;
    let app = &door.app;
    check_host(request.uri(), request.headers(), app.address, &app.hosts)?;
    let shown = look(request.headers(), &app.entrance);
    if shown == Shown::Nothing && !route.is_some_and(|route| door.is_open(route)) {
        return Err(stranger(request.headers()));
    }
    check_origin(request.method(), request.headers(), &shown, app.address, &app.hosts)?;
    let mut request = whole(door, request).await?;
    if let Some(actor) = shown.actor() {
        request.extensions_mut().insert(actor);
    }
    request.extensions_mut().insert(shown);
    Ok(request)
}

fn stranger(headers: &HeaderMap) -> Problem {
    let message = match headers.contains_key(axum::http::header::AUTHORIZATION) {
        true => "this is not the token of this daemon",
        false => "this needs the token of the daemon",
    };
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message).hint(
        "send `Authorization: Bearer <token>` with the token from the daemon's token file; for a browser `outrigger up --link` gives a link",
    )
}

/// Reads the whole body, so that no handler waits for a slow sender.
async fn whole(door: &Door, request: Request) -> Result<Request, Problem> {
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return Ok(request);
    }
    let encoded = request.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
    if encoded {
        let message = "a body that is compressed is not taken";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body", message));
    }
    let most = door.limits.body_bytes;
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|announced: u64| announced > most as u64) {
        return Err(too_large(most));
    }
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(door.limits.body_within, collect(body.into_data_stream(), most)).await;
    let bytes = read.map_err(|_| {
        let message = format!("the body did not arrive within {:?}", door.limits.body_within);
        Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message)
    })??;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

async fn collect(mut body: BodyDataStream, most: usize) -> Result<Bytes, Problem> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk =
            chunk.map_err(|error| Problem::bad("broken_body", format!("the body broke off: {error}")))?;
        if bytes.len() + chunk.len() > most {
            return Err(too_large(most));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

fn too_large(most: usize) -> Problem {
    let message = format!("the body has more than {most} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Problem {
    let words =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let message = format!("the daemon failed at this request: {}", words.unwrap_or("it did not say why"));
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "panicked", message)
        .hint("the daemon goes on; please report this")
}

/// Gives an event stream one of the places for streams, and ends it when the daemon leaves.
fn stream_place(door: &Door, response: Response) -> Result<Response, Problem> {
    let content = response.headers().get(CONTENT_TYPE);
    if !content.is_some_and(|content| content.as_bytes().starts_with(b"text/event-stream")) {
        return Ok(response);
    }
    let Ok(place) = Arc::clone(&door.streams).try_acquire_owned() else {
        let message = format!("{} event streams are open already", door.limits.streams);
        return Err(Problem::busy("too_many_streams", message, Duration::from_secs(5)));
    };
    let counted = door.meter.open_stream();
    let left = door.left();
    Ok(response.map(|body| {
        let data = body.into_data_stream().map(move |data| {
            let _ = (&place, &counted);
            data
        });
        Body::from_stream(data.take_until(Box::pin(left)))
    }))
}

/// The headers that tell a browser what not to do.
fn harden(headers: &mut HeaderMap) {
    let fixed: [(HeaderName, &'static str); 6] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// A method as a label, of which there are only so many.
fn method_word(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "DELETE" => "DELETE",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
