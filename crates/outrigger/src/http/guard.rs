//! Who may ask: the right name of the server, the right page, the right token.
//!
//! A server on loopback is reached by every page that a browser of this machine shows. Three things keep those out: a name that
//! somebody else's DNS points at us is refused (the `Host` check), a page of another origin cannot make a browser change
//! anything (`Origin` and `Sec-Fetch-Site`), and nobody gets in without the token or the cookie that a one-time link gives.

use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::Instant;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri};

use super::problem::Problem;
use crate::daemon::Entrance;
use crate::runs::Actor;

/// The name of the cookie.
pub(super) const COOKIE_NAME: &str = "outrigger";
/// Who a program says it is, for the log: a short word.
pub(super) const ACTOR: HeaderName = HeaderName::from_static("x-outrigger-actor");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// How somebody showed that they may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The token; they say that they are this.
    Token(Actor),
    /// The cookie of a browser.
    Cookie,
    /// Nothing, or something that is not right.
    Nothing,
}

impl Shown {
    /// Who it is, for the log.
    pub(super) fn actor(&self) -> Option<Actor> {
        match self {
            Shown::Token(actor) => Some(actor.clone()),
            Shown::Cookie => Some(Actor::new("dashboard")),
            Shown::Nothing => None,
        }
    }
}

/// Whether a request is addressed to us, and not to a name that somebody pointed at us.
pub(super) fn check_host(
    uri: &Uri,
    headers: &HeaderMap,
    address: SocketAddr,
    names: &[String],
) -> Result<(), Problem> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(Problem::bad("bad_host", "a request has exactly one Host header"));
    };
    let host = host.to_str().unwrap_or_default();
    let named = uri.authority().map(|authority| authority.as_str());
    for name in [Some(host), named].into_iter().flatten() {
        if !is_ours(name, address, names) {
            let shown: String = name.chars().take(100).collect();
            let message = format!("`{shown}` is not a name of this server");
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
                .hint(format!("use http://{address}, or add the name to `hosts` under [server]")));
        }
    }
    Ok(())
}

/// Whether `host:port` means us.
fn is_ours(host: &str, address: SocketAddr, names: &[String]) -> bool {
    let port = address.port();
    let loopback = [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")];
    let bound = (!address.ip().is_unspecified()).then(|| address.to_string());
    if loopback.iter().chain(&bound).any(|own| own.eq_ignore_ascii_case(host)) {
        return true;
    }
    // Browsers leave out port 80.
    let bare = |own: &String| {
        port == 80 && own.strip_suffix(":80").is_some_and(|own| own.eq_ignore_ascii_case(host))
    };
    if loopback.iter().chain(&bound).any(bare) {
        return true;
    }
    names.iter().any(|name| {
        // A name without a port stands for all of its ports: the proxy in front decides.
        let without_port =
            host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        name.eq_ignore_ascii_case(host)
            || without_port.is_some_and(|(host, _)| name.eq_ignore_ascii_case(host))
    })
}

/// Whether a page of somebody else is behind a request.
pub(super) fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    shown: &Shown,
    address: SocketAddr,
    names: &[String],
) -> Result<(), Problem> {
    let foreign = |message: &str| Err(Problem::new(StatusCode::FORBIDDEN, "foreign_origin", message));
    let changes = !(method == Method::GET || method == Method::HEAD);
    let site = headers.get(FETCH_SITE).map(|site| site.to_str().unwrap_or_default());
    match site {
        None | Some("same-origin") => {}
        // Somebody typed the address or followed a bookmark.
        Some("none") if !changes => {}
        Some(_) if !changes && headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate") => {}
        Some(_) => return foreign("another site is behind this request"),
    }
    if !changes {
        return Ok(());
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) if matches!(shown, Shown::Token(_)) => Ok(()),
        (None, _) => foreign("a browser that changes something must say which page it is (Origin)"),
        (Some(origin), None) => {
            let origin = origin.to_str().unwrap_or_default();
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            match host.is_some_and(|host| is_ours(host, address, names)) {
                true => Ok(()),
                false => foreign("the page behind this request is not one of ours"),
            }
        }
        (Some(_), Some(_)) => foreign("a request has one Origin"),
    }
}

/// What somebody showed at the entrance. A token that is there must be right, whatever the cookie says.
pub(super) fn look(headers: &HeaderMap, entrance: &Entrance) -> Shown {
    if let Some(authorization) = headers.get(AUTHORIZATION) {
        let token = authorization.to_str().ok().and_then(bearer);
        return match token {
            Some(token) if same(token.as_bytes(), entrance.token.as_bytes()) => Shown::Token(actor(headers)),
            Some(_) | None => Shown::Nothing,
        };
    }
    // Daemons on other ports of this machine have cookies of the same name, and browsers send them all.
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut ours = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    });
    match ours.any(|value| same(value.as_bytes(), entrance.cookie.as_bytes())) {
        true => Shown::Cookie,
        false => Shown::Nothing,
    }
}

fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Who a program says it is. The words of the daemon itself cannot be had.
fn actor(headers: &HeaderMap) -> Actor {
    let word = headers.get(ACTOR).and_then(|word| word.to_str().ok()).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    let right = (1..=32).contains(&word.len()) && word.bytes().all(plain);
    match right && !["dashboard", "deadline", "daemon"].contains(&word) {
        true => Actor::new(word),
        false => Actor::new("api"),
    }
}

/// Uses a one-time code up, if it is one.
pub(super) fn redeem(entrance: &Entrance, code: &str, now: Instant) -> bool {
    let mut codes = entrance.codes.lock().unwrap_or_else(PoisonError::into_inner);
    codes.retain(|(_, void_from)| now < *void_from);
    let found = codes.iter().position(|(known, _)| same(known.as_bytes(), code.as_bytes()));
    found.map(|at| codes.swap_remove(at)).is_some()
}

/// Whether two secrets are the same, in a time that does not depend on where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differs =
        one.iter().zip(other).fold(0, |differs, (one, other)| std::hint::black_box(differs | (one ^ other)));
    // An empty secret opens nothing.
    one.len() == other.len() && !one.is_empty() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use std::sync::Mutex;
    use std::time::Duration;

    fn address() -> SocketAddr {
        "127.0.0.1:7700".parse().unwrap()
    }

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn entrance() -> Entrance {
        Entrance { token: "secret".into(), codes: Mutex::new(Vec::new()), cookie: "biscuit".into() }
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let names = ["box.example".to_owned(), "fixed.example:8443".to_owned()];
        let check = |host: &str, expected: bool| {
            let checked = check_host(&Uri::from_static("/"), &headers(&[("host", host)]), address(), &names);
            assert_eq!(checked.is_ok(), expected, "{host}");
        };
        check("127.0.0.1:7700", true);
        check("localhost:7700", true);
        check("LOCALHOST:7700", true);
        check("[::1]:7700", true);
        check("box.example", true);
        check("Box.Example:443", true);
        check("fixed.example:8443", true);
        check("fixed.example:8444", false);
        check("fixed.example", false);
        check("127.0.0.1", false);
        check("127.0.0.1:7701", false);
        check("localhost:77000", false);
        check("localhost.:7700", false);
        check("localhost:7700.evil.example", false);
        check("evil.example:7700", false);
        check("evil.example", false);
        check("notbox.example", false);
        check("box.example:443:443", false);
        check("box.example:x", false);
        check("", false);
        check("0x7f.1:7700", false);
    }

    #[test]
    fn a_request_without_a_host_or_with_two_is_refused() {
        let uri = Uri::from_static("/");
        let two = headers(&[("host", "127.0.0.1:7700"), ("host", "evil.example")]);
        for headers in [HeaderMap::new(), two] {
            let problem = check_host(&uri, &headers, address(), &[]).unwrap_err();
            assert_eq!((problem.status.as_u16(), problem.code), (400, "bad_host"));
        }
    }

    #[test]
    fn a_proxy_request_for_another_server_is_refused_although_its_host_is_ours() {
        let uri = Uri::from_static("http://evil.example/v1/runs");
        let problem = check_host(&uri, &headers(&[("host", "127.0.0.1:7700")]), address(), &[]).unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.code), (421, "wrong_host"));
    }

    #[test]
    fn only_our_own_pages_and_programs_with_the_token_change_anything() {
        let token = Shown::Token(Actor::new("api"));
        let check = |method: &Method, list: &[(&'static str, &str)], shown: &Shown, expected: bool| {
            let checked = check_origin(method, &headers(list), shown, address(), &[]);
            assert_eq!(checked.is_ok(), expected, "{method} {list:?} {shown:?}");
        };
        let (get, post) = (&Method::GET, &Method::POST);
        let own = ("origin", "http://127.0.0.1:7700");
        check(post, &[own], &Shown::Cookie, true);
        check(post, &[own, ("sec-fetch-site", "same-origin")], &Shown::Cookie, true);
        check(post, &[("origin", "http://localhost:7700")], &Shown::Cookie, true);
        check(post, &[], &token, true);
        check(post, &[], &Shown::Cookie, false);
        check(post, &[], &Shown::Nothing, false);
        check(post, &[("origin", "null")], &Shown::Cookie, false);
        check(post, &[("origin", "null")], &token, false);
        check(post, &[("origin", "http://evil.example")], &token, false);
        check(post, &[("origin", "http://127.0.0.1:7701")], &Shown::Cookie, false);
        check(post, &[("origin", "http://127.0.0.1:7700.evil.example")], &Shown::Cookie, false);
        check(post, &[("origin", "ftp://127.0.0.1:7700")], &Shown::Cookie, false);
        check(post, &[("origin", "")], &Shown::Cookie, false);
        check(post, &[own, ("origin", "http://evil.example")], &Shown::Cookie, false);
        check(post, &[own, ("sec-fetch-site", "cross-site")], &Shown::Cookie, false);
        check(post, &[own, ("sec-fetch-site", "same-site")], &Shown::Cookie, false);
        check(post, &[("sec-fetch-site", "none")], &token, false);
        check(&Method::DELETE, &[], &Shown::Cookie, false);
        check(&Method::OPTIONS, &[], &Shown::Cookie, false);
        check(get, &[], &Shown::Cookie, true);
        check(get, &[("sec-fetch-site", "none")], &Shown::Cookie, true);
        check(
            get,
            &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
            &Shown::Nothing,
            true,
        );
        check(get, &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")], &Shown::Cookie, false);
        check(get, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")], &Shown::Cookie, false);
    }

    #[test]
    fn the_token_or_the_cookie_opens_and_nothing_that_looks_like_it() {
        let api = Shown::Token(Actor::new("api"));
        let check = |list: &[(&'static str, &str)], expected: &Shown| {
            assert_eq!(&look(&headers(list), &entrance()), expected, "{list:?}");
        };
        check(&[("authorization", "Bearer secret")], &api);
        check(&[("authorization", "bearer  secret ")], &api);
        check(&[("authorization", "Bearer secre")], &Shown::Nothing);
        check(&[("authorization", "Bearer secret2")], &Shown::Nothing);
        check(&[("authorization", "Bearer ")], &Shown::Nothing);
        check(&[("authorization", "Basic secret")], &Shown::Nothing);
        check(&[("authorization", "secret")], &Shown::Nothing);
        check(&[("cookie", "outrigger=biscuit")], &Shown::Cookie);
        check(&[("cookie", "a=b; outrigger=other; outrigger=biscuit")], &Shown::Cookie);
        check(&[("cookie", "a=b"), ("cookie", "outrigger=biscuit")], &Shown::Cookie);
        check(&[("cookie", "outrigger=")], &Shown::Nothing);
        check(&[("cookie", "outrigger2=biscuit")], &Shown::Nothing);
        check(&[("cookie", "outrigger=secret")], &Shown::Nothing);
        check(&[("authorization", "Bearer wrong"), ("cookie", "outrigger=biscuit")], &Shown::Nothing);
        check(&[], &Shown::Nothing);
    }

    #[test]
    fn an_empty_secret_opens_nothing() {
        let open = Entrance { token: String::new(), codes: Mutex::new(Vec::new()), cookie: String::new() };
        assert_eq!(look(&headers(&[("authorization", "Bearer ")]), &open), Shown::Nothing);
        assert_eq!(look(&headers(&[("cookie", "outrigger=")]), &open), Shown::Nothing);
    }

    #[test]
    fn a_program_may_say_who_it_is_but_not_that_it_is_the_daemon() {
        let check = |word: &str, expected: &str| {
            let shown = look(
                &headers(&[("authorization", "Bearer secret"), ("x-outrigger-actor", word)]),
                &entrance(),
            );
            assert_eq!(shown, Shown::Token(Actor::new(expected)), "{word}");
        };
        check("cli", "cli");
        check("ci.nightly-2", "ci.nightly-2");
        check("deadline", "api");
        check("dashboard", "api");
        check("Two Words", "api");
        check("", "api");
        check(&"x".repeat(32), &"x".repeat(32));
        check(&"x".repeat(33), "api");
    }

    #[test]
    fn a_code_works_once_and_not_when_it_is_old() {
        let now = Instant::now();
        let entrance = entrance();
        let minute = Duration::from_secs(60);
        entrance.codes.lock().unwrap().extend([("fresh".to_owned(), now + minute), ("old".to_owned(), now)]);
        assert!(!redeem(&entrance, "", now));
        assert!(!redeem(&entrance, "other", now));
        assert!(!redeem(&entrance, "old", now));
        assert!(redeem(&entrance, "fresh", now));
        assert!(!redeem(&entrance, "fresh", now));
    }
}
