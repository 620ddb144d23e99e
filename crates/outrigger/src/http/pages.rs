//! The few pages that are shown to a browser before it is let in: the one-time link, and what went wrong.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::header::{HeaderMap, LOCATION, SET_COOKIE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, Json};
use maud::{DOCTYPE, Markup, html};
use serde_json::{Value, json};

use super::door::Door;
use super::guard::{COOKIE_NAME, Shown, look, redeem};
use super::problem::Problem;
use super::read::Query;

/// How long a browser stays in, in seconds: 30 days.
const STAYS_IN: u32 = 30 * 24 * 3600;

/// `GET /login?code=…`: a code that was not used yet becomes a cookie.
pub(super) async fn login(
    State(door): State<Arc<Door>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::of(&uri, &["code"])?;
    let entrance = &door.app.entrance;
    // Whoever only looks what is behind the link does not use it up.
    let code = query.text("code").filter(|_| method == Method::GET);
    if code.is_some_and(|code| redeem(entrance, code, Instant::now())) {
        let cookie = format!(
            "{COOKIE_NAME}={}; Path=/; Max-Age={STAYS_IN}; HttpOnly; SameSite=Strict",
            entrance.cookie
        );
        let cookie = HeaderValue::from_str(&cookie)
            .map_err(|_| Problem::own("the cookie of the daemon cannot be sent"))?;
        let mut response = inside(&headers);
        response.headers_mut().insert(SET_COOKIE, cookie);
        return Ok(response);
    }
    if look(&headers, entrance) != Shown::Nothing {
        return Ok(inside(&headers));
    }
    let problem =
        Problem::new(StatusCode::FORBIDDEN, "link_used", "this link was used already, or is too old")
            .hint("`outrigger up --link` prints a new one");
    Ok(self::problem(&problem))
}

/// `POST /v1/links`: another one-time link, for whoever has the token. A browser that is in cannot let others in.
pub(super) async fn link(
    State(door): State<Arc<Door>>,
    Extension(shown): Extension<Shown>,
) -> Result<Json<Value>, Problem> {
    if !matches!(shown, Shown::Token(_)) {
        let message = "links are made with the token, not with the cookie of a browser";
        return Err(Problem::new(StatusCode::FORBIDDEN, "needs_token", message)
            .hint("`outrigger up --link` prints one"));
    }
    let code = door.app.entrance.code();
    let code =
        code.map_err(|error| Problem::own(format!("the system has no randomness to give: {error}")))?;
    let mut address = door.app.address;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(Json(json!({ "url": format!("http://{address}/login?code={code}") })))
}

/// On to the dashboard. A browser that came from another site would not send its new cookie along with a redirect, so it is
/// given a page from which it goes on by itself.
fn inside(headers: &HeaderMap) -> Response {
    let site = headers.get(HeaderName::from_static("sec-fetch-site"));
    if site.is_some_and(|site| site == "cross-site" || site == "same-site") {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="refresh" content="0;url=/";
                    title { "Outrigger" }
                }
                body { p { a href="/" { "On to the dashboard" } } }
            }
        };
        return Html(page.into_string()).into_response();
    }
    (StatusCode::SEE_OTHER, [(LOCATION, "/")]).into_response()
}

/// A problem as a page.
pub(super) fn problem(problem: &Problem) -> Response {
    let title = match problem.status {
        StatusCode::UNAUTHORIZED => "You are not signed in",
        StatusCode::NOT_FOUND => "There is nothing here",
        StatusCode::FORBIDDEN => "This is not allowed",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "Too busy",
        _ => "This did not work",
    };
    let mut response = Html(page(title, problem).into_string()).into_response();
    problem.mark(&mut response);
    response
}

fn page(title: &str, problem: &Problem) -> Markup {
    let signs_in = problem.status == StatusCode::UNAUTHORIZED || problem.code == "link_used";
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Outrigger" }
                link rel="stylesheet" href={ "/assets/app.css?v=" (env!("CARGO_PKG_VERSION")) };
            }
            body class="bare" {
                main class="bare-page" {
                    h1 { (title) }
                    p { (problem.message) }
                    @if signs_in {
                        p { "A link opens the dashboard once, and this browser stays in. Get one in a terminal on the machine of the daemon:" }
                        pre { code { "outrigger up --link" } }
                    } @else {
                        @if let Some(hint) = &problem.hint { p { (hint) } }
                        p { a href="/" { "To the dashboard" } }
                    }
                    p { small { (problem.status.as_u16()) " " code { (problem.code) } } }
                }
            }
        }
    }
}
