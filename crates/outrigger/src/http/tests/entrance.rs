//! Who gets in, and what the others read.

use serde_json::json;

use super::site::{Site, roomy};

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_reads_json_or_a_page_and_nothing_else() {
    let site = Site::start(roomy()).await;
    for path in ["/v1/runs", "/metrics", "/", "/v1/openapi.json", "/nowhere", "/v1/runs/x/events"] {
        let answer = site.bare("GET", path, &[], "").await;
        assert_eq!(answer.problem(), (401, "unauthorized".to_owned()), "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"outrigger\""));
    }
    let page = site.bare("GET", "/", &["Accept: text/html,*/*"], "").await;
    assert_eq!((page.status, page.header("content-type")), (401, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("outrigger up --link"), "{}", page.text());
    let wrong = site.bare("GET", "/v1/runs", &["Authorization: Bearer guess"], "").await;
    assert!(wrong.json()["error"]["message"].as_str().unwrap().contains("not the token"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_lets_one_browser_in_once_and_it_stays_in() {
    let site = Site::start(roomy()).await;
    let made = site.ask("POST", "/v1/links", &[], "").await.json();
    let url = made["url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", site.address)).unwrap();
    // Somebody who only looks does not use it up.
    assert_eq!(site.bare("HEAD", path, &[], "").await.status, 403);
    let entered = site.bare("GET", path, &[], "").await;
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let cookie = entered.header("set-cookie").unwrap().to_owned();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "outrigger="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let again = site.bare("GET", path, &["Accept: text/html"], "").await;
    assert_eq!(again.status, 403);
    assert!(again.text().contains("outrigger up --link"), "{}", again.text());

    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(site.bare("GET", "/v1/runs", &[&cookie], "").await.status, 200);
    assert_eq!(site.bare("GET", "/", &[&cookie, "Accept: text/html"], "").await.status, 200);
    // Whoever is in and comes with an old link goes on.
    assert_eq!(site.bare("GET", path, &[&cookie], "").await.status, 303);
    let origin = format!("Origin: http://{}", site.address);
    let links = site.bare("POST", "/v1/links", &[&cookie, &origin], "").await;
    assert_eq!(links.problem(), (403, "needs_token".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_comes_from_another_site_goes_on_by_itself() {
    let site = Site::start(roomy()).await;
    let code = site.app.entrance.code().unwrap();
    let from_mail = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"];
    let entered = site.bare("GET", &format!("/login?code={code}"), &from_mail, "").await;
    assert_eq!(entered.status, 200);
    assert!(entered.header("set-cookie").is_some() && entered.text().contains("url=/"), "{}", entered.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_somebody_else_changes_nothing() {
    let site = Site::start(roomy()).await;
    let cookie = format!("Cookie: outrigger={}", site.app.entrance.cookie);
    let order = json!({ "task": "say" }).to_string();
    let json = "Content-Type: application/json";
    let own = format!("Origin: http://{}", site.address);
    let ours = site.bare("POST", "/v1/runs", &[&cookie, &own, json], &order).await;
    assert_eq!(ours.status, 201, "{}", ours.text());
    for foreign in ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "X: y"] {
        let refused = site.bare("POST", "/v1/runs", &[&cookie, foreign, json], &order).await;
        assert_eq!(refused.problem(), (403, "foreign_origin".to_owned()), "{foreign}");
    }
    // Also not with the token, which a page could not know.
    let token = "Authorization: Bearer secret";
    let refused = site.bare("POST", "/v1/runs", &[token, "Origin: http://evil.example", json], &order).await;
    assert_eq!(refused.problem(), (403, "foreign_origin".to_owned()));
    assert_eq!(site.get("/v1/runs").await.json()["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_somebody_pointed_at_us_is_not_answered() {
    let site = Site::start(roomy()).await;
    let port = site.address.port();
    let ask = |target: String, host: String| {
        let site = &site;
        async move {
            let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            site.raw(text.as_bytes()).await.status
        }
    };
    assert_eq!(ask("/healthz".into(), format!("localhost:{port}")).await, 200);
    assert_eq!(ask("/healthz".into(), "box.example".into()).await, 200);
    assert_eq!(ask("/healthz".into(), format!("evil.example:{port}")).await, 421);
    assert_eq!(ask("/assets/app.css".into(), "evil.example".into()).await, 421);
    assert_eq!(ask(format!("http://127.0.0.1:{port}/healthz"), format!("127.0.0.1:{port}")).await, 200);
    assert_eq!(ask("http://evil.example/healthz".into(), format!("127.0.0.1:{port}")).await, 421);
    assert_eq!(site.raw(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").await.status, 400);
    assert_eq!(site.raw(b"GET /healthz HTTP/1.0\r\n\r\n").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_tells_a_browser_what_not_to_do() {
    let site = Site::start(roomy()).await;
    let answers = [
        site.bare("GET", "/healthz", &[], "").await,
        site.bare("GET", "/", &["Accept: text/html"], "").await,
        site.get("/v1/runs").await,
        site.get("/nowhere").await,
        site.get("/v1/backends").await,
    ];
    for answer in answers {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_is_lost_reads_a_page_and_a_program_reads_json() {
    let site = Site::start(roomy()).await;
    let person = site.ask("GET", "/nowhere", &["Accept: text/html"], "").await;
    assert_eq!((person.status, person.header("content-type")), (404, Some("text/html; charset=utf-8")));
    assert!(person.text().contains("There is nothing here"), "{}", person.text());
    assert_eq!(site.get("/nowhere").await.problem(), (404, "no_such_path".to_owned()));
    let api = site.ask("GET", "/v1/nowhere", &["Accept: text/html"], "").await;
    assert_eq!(api.problem(), (404, "no_such_path".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_says_so_and_the_daemon_lives() {
    let site = Site::start(roomy()).await;
    let broken = site.get("/v1/backends").await;
    assert_eq!(broken.problem(), (500, "panicked".to_owned()));
    assert!(broken.json()["error"]["message"].as_str().unwrap().contains("whoever looks at me breaks"));
    assert_eq!(site.get("/v1/runs").await.status, 200);
}
