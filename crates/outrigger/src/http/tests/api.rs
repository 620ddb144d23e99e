//! What can be asked, from the first request to the last event.

use serde_json::json;

use super::super::routes::{Verb, routes};
use super::site::{Site, roomy};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_begun_once_followed_to_its_end_and_forgotten() {
    let site = Site::start(roomy()).await;
    let order = json!({ "id": "mine", "task": "say 2", "title": "Two words" });
    let begun = site.post("/v1/runs", order.clone()).await;
    assert_eq!((begun.status, begun.header("location")), (201, Some("/v1/runs/mine")));

    let events = site.stream("/v1/runs/mine/events", &[]).await.all().await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["accepted", "started", "event", "event", "finished", "end"]);
    let ids: Vec<Option<u64>> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids, [Some(1), Some(2), Some(3), Some(4), Some(5), None]);
    let third: serde_json::Value = serde_json::from_str(&events[2].data).unwrap();
    assert_eq!((&third["seq"], &third["kind"], &third["v"]), (&json!(3), &json!("event"), &json!(1)));
    assert_eq!(events[5].data, r#"{"phase":"completed"}"#);

    let again = site.post("/v1/runs", order).await;
    assert_eq!((again.status, again.json()["phase"].clone()), (200, json!("completed")));
    let other = site.post("/v1/runs", json!({ "id": "mine", "task": "say 3" })).await;
    assert_eq!(other.problem(), (409, "refused".to_owned()));

    assert_eq!(site.get("/v1/runs/mine/request").await.json()["title"], "Two words");
    let receipt = site.get("/v1/runs/mine/receipt").await;
    assert_eq!(receipt.problem(), (404, "no_receipt".to_owned()));
    assert_eq!(site.get("/v1/runs/mine/patch").await.problem(), (404, "no_patch".to_owned()));
    assert_eq!(site.ask("DELETE", "/v1/runs/mine", &[], "").await.status, 204);
    assert_eq!(site.get("/v1/runs/mine").await.problem(), (404, "no_such_run".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_back_gets_the_rest_and_then_nothing() {
    let site = Site::start(roomy()).await;
    let id = site.run("say 3", "completed").await;
    let path = format!("/v1/runs/{id}/events");
    let rest = site.stream(&format!("{path}?after=1"), &["Last-Event-ID: 4"]).await.all().await;
    assert_eq!(rest.iter().map(|event| event.id).collect::<Vec<_>>(), [Some(5), Some(6), None]);
    // A browser that has everything is told to stop coming.
    assert_eq!(site.stream(&path, &["Last-Event-ID: 6"]).await.status, 204);
    // A program that asks for what comes after the last record is told that this was the end.
    let after = site.stream(&format!("{path}?after=6"), &[]).await.all().await;
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].kind, "end");

    let page = site.get(&format!("{path}?after=2&limit=2")).await.json();
    assert_eq!((page["events"].as_array().unwrap().len(), &page["after"]), (2, &json!(4)));
    assert_eq!(page["events"][0]["seq"], 3);
    let page = site.get(&format!("{path}?after=6")).await.json();
    assert_eq!(page, json!({ "events": [], "after": 6 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_answered_once_and_the_second_hears_who_was_first() {
    let site = Site::start(roomy()).await;
    let id = site.run("ask", "waiting").await;
    let waiting = site.get("/v1/approvals").await.json();
    assert_eq!((&waiting["total"], &waiting["approvals"][0]["run"]), (&json!(1), &json!(id)));
    let answer = waiting["approvals"][0]["links"]["answer"].as_str().unwrap();
    // The list has the beginning of what is long, and the approval itself has all of it.
    let short = waiting["approvals"][0]["approval"]["input"].as_str().unwrap().len();
    let full = site.get(answer).await.json()["approval"]["input"].as_str().unwrap().len();
    assert!(short < 3000 && full > 5000, "{short} {full}");

    let wrong = site.post(answer, json!({ "choice": "edit", "arguments": [] })).await;
    assert_eq!(wrong.problem(), (422, "bad_request".to_owned()));
    let given = site.ask("POST", answer, &["X-Outrigger-Actor: cli"], r#"{"choice":"approve"}"#).await;
    assert_eq!(given.status, 200, "{}", given.text());
    let late = site.post(answer, json!({ "choice": "deny" })).await;
    assert_eq!(late.problem(), (409, "answered_already".to_owned()));
    let first = &late.json()["error"]["given"];
    assert_eq!((&first["by"], &first["answer"]["choice"]), (&json!("cli"), &json!("approve")));
    site.until(&id, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_yes_or_no_needs_one_thing_that_waits() {
    let site = Site::start(roomy()).await;
    let two = site.run("ask 2", "waiting").await;
    site.when(&two, |state| state.approvals.len() == 2).await;
    let unclear = site.post(&format!("/v1/runs/{two}/approve"), json!({})).await;
    assert_eq!(unclear.problem(), (409, "several_wait".to_owned()));
    assert_eq!(unclear.json()["error"]["open"], json!(["a1", "a2"]));
    let named = site.post(&format!("/v1/runs/{two}/approve"), json!({ "approval": "a1" })).await;
    assert_eq!(named.status, 200, "{}", named.text());
    let unknown = site.post(&format!("/v1/runs/{two}/deny"), json!({ "approval": "a9" })).await;
    assert_eq!(unknown.problem(), (404, "no_such_approval".to_owned()));
    let denied = site.post(&format!("/v1/runs/{two}/deny"), json!({ "reason": "no" })).await;
    assert_eq!(denied.status, 200, "{}", denied.text());
    assert_eq!(denied.json()["approvals"][1]["given"]["answer"]["reason"], "no");
    site.until(&two, "completed").await;
    // An empty body is an empty object.
    let nothing = site.ask("POST", &format!("/v1/runs/{two}/approve"), &[], "").await;
    assert_eq!(nothing.problem(), (409, "nothing_waits".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_steered_cancelled_resumed_and_forked() {
    let site = Site::start(roomy()).await;
    let id = site.run("linger", "running").await;
    let at = |what: &str| format!("/v1/runs/{id}/{what}");
    let steered = site.post(&at("steer"), json!({ "text": "faster" })).await;
    assert_eq!(steered.status, 200, "{}", steered.text());
    assert_eq!(site.post(&at("steer"), json!({ "text": "  " })).await.problem().0, 422);
    let longest = "x".repeat(64 << 10);
    assert_eq!(site.post(&at("steer"), json!({ "text": longest })).await.status, 200);
    let too_long = site.post(&at("steer"), json!({ "text": format!("{longest}x") })).await;
    assert_eq!((too_long.status, too_long.json()["error"]["field"].clone()), (422, json!("text")));
    assert_eq!(site.post(&at("resume"), json!({})).await.problem(), (409, "wrong_phase".to_owned()));
    assert_eq!(site.ask("DELETE", &format!("/v1/runs/{id}"), &[], "").await.status, 409);

    let cancelled = site.post(&at("cancel"), json!({ "why": "enough" })).await;
    assert_eq!((cancelled.status, cancelled.json()["cancelling"].clone()), (200, json!("enough")));
    site.until(&id, "cancelled").await;
    assert_eq!(site.post(&at("cancel"), json!({})).await.problem(), (409, "wrong_phase".to_owned()));
    let resumed = site.post(&at("resume"), json!({})).await;
    assert_eq!((resumed.status, resumed.json()["origin"]["run"].clone()), (201, json!(id)));
    let forked = site.post(&at("fork"), json!({})).await;
    assert_eq!(forked.status, 201);
    assert_eq!(forked.header("location").unwrap(), forked.json()["links"]["self"].as_str().unwrap());
    let nowhere = site.post(&at("fork"), json!({ "at": 1 })).await;
    assert_eq!(nowhere.problem(), (409, "refused".to_owned()));
    assert_eq!(site.post(&at("replay"), json!({})).await.problem(), (409, "wrong_phase".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_by_phase_a_page_at_a_time() {
    let site = Site::start(roomy()).await;
    let first = site.run("say", "completed").await;
    let second = site.run("say", "completed").await;
    let third = site.run("linger", "running").await;
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let runs = page["runs"].as_array().unwrap().iter();
        runs.map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let page = site.get("/v1/runs?limit=2").await.json();
    assert_eq!(ids(&page), [third.clone(), second.clone()]);
    let next = page["next"].as_u64().unwrap();
    let page = site.get(&format!("/v1/runs?limit=2&before={next}")).await.json();
    assert_eq!((ids(&page), &page["next"]), (vec![first.clone()], &json!(null)));
    assert_eq!(ids(&site.get("/v1/runs?phase=running").await.json()), [third]);
    assert_eq!(ids(&site.get("/v1/runs?phase=completed,failed").await.json()), [second, first]);
    let wrong = site.get("/v1/runs?phase=done").await;
    assert_eq!((wrong.status, wrong.json()["error"]["field"].clone()), (400, json!("phase")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_order_is_told_with_its_place() {
    let site = Site::start(roomy()).await;
    let check = |body: &'static str, status: u16, code: &'static str, field: Option<&'static str>| {
        let site = &site;
        async move {
            let answer = site.ask("POST", "/v1/runs", &[], body).await;
            assert_eq!(answer.problem(), (status, code.to_owned()), "{body}");
            assert_eq!(answer.json()["error"]["field"].as_str(), field, "{body}");
        }
    };
    check("{", 400, "bad_json", None).await;
    check("[]", 422, "bad_request", None).await;
    check(r#"{"tsak":"say"}"#, 422, "bad_request", Some("tsak")).await;
    check("{}", 422, "bad_request", Some("task")).await;
    check(r#"{"script":"1","backend":"obedient"}"#, 422, "bad_request", Some("script")).await;
    check(r#"{"task":"say","retries":21}"#, 422, "bad_request", Some("retries")).await;
    check(r#"{"task":"say","id":"../etc"}"#, 422, "bad_request", Some("id")).await;
    let plain = site.ask("POST", "/v1/runs", &["Content-Type: text/plain"], "").await;
    assert_eq!(plain.problem(), (415, "not_json".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_kept_alive_by_the_changes() {
    let site = Site::start(roomy()).await;
    let mut changes = site.stream("/v1/changes", &[]).await;
    let id = site.run("linger", "running").await;
    let mut last = String::new();
    while last != "running" {
        let event = changes.next().await.unwrap();
        let run: serde_json::Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!((event.kind.as_str(), run["id"].as_str().unwrap()), ("run", id.as_str()));
        last = run["phase"].as_str().unwrap().to_owned();
    }
    site.post(&format!("/v1/runs/{id}/cancel"), json!({})).await;
    site.until(&id, "cancelled").await;
    assert_eq!(site.ask("DELETE", &format!("/v1/runs/{id}"), &[], "").await.status, 204);
    let gone = async {
        loop {
            let event = changes.next().await.unwrap();
            if event.kind == "gone" {
                return event.data;
            }
        }
    };
    assert_eq!(super::site::within(gone).await, json!({ "id": id }).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_tells_about_itself() {
    let site = Site::start(roomy()).await;
    assert_eq!(site.bare("GET", "/healthz", &[], "").await.json()["ok"], true);
    assert_eq!(site.get("/v1/version").await.json()["api"], "v1");
    assert_eq!(
        site.get("/v1/tools").await.json(),
        json!({ "tools": [{ "name": "clock", "about": "what time it is" }] })
    );
    assert_eq!(site.get("/v1/sidecars").await.json(), json!({ "sidecars": [], "starts": 0, "restarts": 0 }));
    assert_eq!(site.get("/v1/sidecars/7/logs").await.problem(), (404, "no_such_sidecar".to_owned()));
    let off = site.get("/v1/extensions").await;
    assert_eq!(off.problem(), (404, "extensions_off".to_owned()));
    assert_eq!(off.json()["error"]["hint"], "set [extensions] home");
    let document = site.get("/v1/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    site.run("say", "completed").await;
    let metrics = site.get("/metrics").await;
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for part in [
        "outrigger_runs{phase=\"completed\"} 1",
        "outrigger_http_requests_total{route=\"/healthz\",method=\"GET\",status=\"200\"} 1",
        "outrigger_http_request_seconds_count{route=\"/v1/version\"} 1",
        "outrigger_http_streams 0",
        "outrigger_run_appends_total ",
        "process_resident_memory_bytes ",
        "outrigger_uptime_seconds ",
        "outrigger_child_starts_total 0",
    ] {
        assert!(metrics.text().contains(part), "{part} is not in {}", metrics.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_the_table_is_answered() {
    let site = Site::start(roomy()).await;
    for route in routes() {
        if route.path == "/v1/changes" || route.path == "/v1/backends" {
            // The one never ends, and the other breaks the fake backend; both have tests of their own.
            continue;
        }
        let path =
            route.path.replace("{id}", "nobody").replace("{key}", "org.example").replace("{approval}", "a1");
        let method = match route.verb {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Delete => "DELETE",
        };
        let answer = site.ask(method, &path, &[], "").await;
        let reached = !answer.text().contains("no_such_path") && answer.status != 405 && answer.status != 0;
        assert!(reached && answer.status != 500, "{method} {path}: {}{}", answer.head, answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_exactly_the_members_that_are_documented() {
    let site = Site::start(roomy()).await;
    let id = site.run("ask", "waiting").await;
    let run = site.get(&format!("/v1/runs/{id}")).await.json();
    let document = site.get("/v1/openapi.json").await.json();
    let names = |value: &serde_json::Value| -> Vec<String> {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let schemas = &document["components"]["schemas"];
    assert_eq!(names(&run), names(&schemas["Run"]["properties"]));
    assert_eq!(names(&run["approvals"][0]), names(&schemas["Approval"]["properties"]));
    assert_eq!(names(&run["spent"]), names(&schemas["Spent"]["properties"]));
}
