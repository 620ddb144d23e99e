//! MCP servers as tools, over a child of this very program and over HTTP.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::chat::ToolResult;
use outrigger_steerable::net::http::Http;
use outrigger_steerable::tools::mcp::{McpSpec, Offer, Servers, Since};
use outrigger_steerable::tools::{Grants, Mode, NoDispatch, Tool};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::mcp_http::Remote;
use crate::tools_kit::{data, error, place, runtime, supervisor, text};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_program_offers_its_tools_and_is_kept_for_the_next_turn,
        a_server_that_cannot_start_is_told_with_its_last_words_and_the_others_work,
        a_server_that_crashed_is_started_again,
        a_call_that_crashed_a_server_is_only_repeated_if_it_reads,
        a_server_that_changes_its_tools_is_asked_again,
        a_server_may_ask_whether_we_are_there_and_chatter,
        a_server_that_nobody_uses_is_ended,
        another_program_under_the_same_name_replaces_the_server,
        closing_ends_the_programs,
        a_remote_server_offers_its_tools_as_json_or_as_events,
        a_remote_session_that_expired_is_begun_again,
        a_remote_server_that_changes_its_tools_is_asked_again,
        a_remote_server_that_refuses_us_is_told,
        a_remote_call_that_is_dropped_is_cancelled_there,
        a_remote_session_is_ended_when_we_close,
    ]
}

pub(crate) fn servers() -> Servers {
    Servers::new(supervisor(), Http::new())
}

fn program(name: &str, args: &[&str]) -> Value {
    let exe = std::env::current_exe().unwrap();
    let args: Vec<&str> = std::iter::once("__mcp").chain(args.iter().copied()).collect();
    json!({"name": name, "command": exe, "args": args, "env": {"MCP_TEST_WORD": "from env"}})
}

pub(crate) fn specs(list: &[Value]) -> Vec<McpSpec> {
    McpSpec::read_list(&json!(list)).unwrap()
}

pub(crate) fn names(offer: &Offer) -> Vec<String> {
    offer.tools.iter().map(|tool| tool.spec().name.clone()).collect()
}

pub(crate) fn tool(offer: &Offer, name: &str) -> Arc<dyn Tool> {
    let found = offer.tools.iter().find(|tool| tool.spec().name == name);
    Arc::clone(found.unwrap_or_else(|| panic!("{name} in {:?}: {:?}", names(offer), offer.servers)))
}

pub(crate) async fn call(offer: &Offer, name: &str, arguments: Value) -> ToolResult {
    let at = place(&Grants::none(), Arc::new(NoDispatch));
    tool(offer, name).invoke(&to_raw_value(&arguments).unwrap(), &at).await
}

fn a_program_offers_its_tools_and_is_kept_for_the_next_turn() {
    runtime().block_on(async {
        let servers = servers();
        let specs = specs(&[program("test", &[])]);
        let offer = servers.tools_of("rec_1", &specs).await;
        assert_eq!(
            names(&offer),
            [
                "mcp__test__echo",
                "mcp__test__count",
                "mcp__test__grow",
                "mcp__test__get_crash",
                "mcp__test__crash",
                "mcp__test__delete_it",
                "mcp__test__ping_us"
            ]
        );
        assert_eq!((offer.servers[0].since, offer.servers[0].tools), (Since::Now, 7));
        let echo = tool(&offer, "mcp__test__echo");
        assert_eq!(echo.spec().description, "says it again");
        let schema: Value = serde_json::from_str(echo.spec().parameters.get()).unwrap();
        assert_eq!(schema, json!({"type": "object", "properties": {"text": {"type": "string"}}}));
        assert_eq!(echo.mode(), Mode::Read);
        assert_eq!(tool(&offer, "mcp__test__delete_it").mode(), Mode::Destructive);
        assert_eq!(tool(&offer, "mcp__test__grow").mode(), Mode::Other);
        let said = call(&offer, "mcp__test__echo", json!({"text": "hi"})).await;
        assert_eq!(text(&said), "hi from env");
        assert_eq!(data(&call(&offer, "mcp__test__count", json!({})).await, "structured"), &json!({"n": 1}));
        let again = servers.tools_of("rec_1", &specs).await;
        assert_eq!(again.servers[0].since, Since::Before);
        assert_eq!(data(&call(&again, "mcp__test__count", json!({})).await, "structured"), &json!({"n": 2}));
        // Another record has a server of its own.
        let other = servers.tools_of("rec_2", &specs).await;
        assert_eq!(data(&call(&other, "mcp__test__count", json!({})).await, "structured"), &json!({"n": 1}));
        let failed = call(&offer, "mcp__test__delete_it", json!({})).await;
        assert_eq!(error(&failed), "it cannot be deleted");
        let unknown = call(&offer, "mcp__test__grow", json!({"refuse": true})).await;
        assert_eq!(error(&unknown), "MCP server `test`: no such thing");
    });
}

fn a_server_that_cannot_start_is_told_with_its_last_words_and_the_others_work() {
    runtime().block_on(async {
        let servers = servers();
        let missing = json!({"name": "gone", "command": "/no/such/program"});
        let offer = servers
            .tools_of("r", &specs(&[program("broken", &["broken"]), missing, program("good", &[])]))
            .await;
        let problem = |index: usize| offer.servers[index].error.as_ref().unwrap().to_string();
        assert!(problem(0).starts_with("MCP server `broken`: "), "{}", problem(0));
        assert!(problem(0).contains("cannot find my config"), "{}", problem(0));
        assert!(problem(0).contains("exit code 4"), "{}", problem(0));
        assert!(problem(1).contains("could not be started"), "{}", problem(1));
        assert_eq!(offer.servers[2].error, None);
        assert_eq!(text(&call(&offer, "mcp__good__echo", json!({"text": "x"})).await), "x from env");
        let health: Vec<(String, bool)> =
            servers.health().into_iter().map(|health| (health.name, health.problem.is_some())).collect();
        assert_eq!(health, [("broken".into(), true), ("gone".into(), true), ("good".into(), false)]);
    });
}

fn a_server_that_crashed_is_started_again() {
    runtime().block_on(async {
        let servers = servers();
        let specs = specs(&[program("test", &[])]);
        let offer = servers.tools_of("r", &specs).await;
        call(&offer, "mcp__test__count", json!({})).await;
        let crashed = call(&offer, "mcp__test__crash", json!({})).await;
        assert!(error(&crashed).contains("exit code 5"), "{crashed:?}");
        assert!(error(&crashed).contains("goodbye"), "{crashed:?}");
        // The same tool objects go on working with the new process.
        assert_eq!(data(&call(&offer, "mcp__test__count", json!({})).await, "structured"), &json!({"n": 1}));
        assert_eq!(servers.health()[0].problem, None);
        assert_eq!(servers.tools_of("r", &specs).await.servers[0].since, Since::Before);
    });
}

fn a_call_that_crashed_a_server_is_only_repeated_if_it_reads() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let servers = servers();
        let offer = servers.tools_of("r", &specs(&[program("test", &[])])).await;
        // Crashes if the mark is not there yet, and makes it.
        let read = call(&offer, "mcp__test__get_crash", json!({"mark": mark})).await;
        assert_eq!(text(&read), "survived", "{read:?}");
        let write = call(&offer, "mcp__test__crash", json!({})).await;
        assert!(error(&write).contains("may or may not have done something"), "{write:?}");
    });
}

fn a_server_that_changes_its_tools_is_asked_again() {
    runtime().block_on(async {
        let servers = servers();
        let specs = specs(&[program("test", &[])]);
        let offer = servers.tools_of("r", &specs).await;
        assert_eq!(text(&call(&offer, "mcp__test__grow", json!({})).await), "grown");
        let grown = servers.tools_of("r", &specs).await;
        assert_eq!(grown.servers[0].since, Since::Before);
        assert_eq!(names(&grown).last().unwrap(), "mcp__test__grown");
    });
}

fn a_server_may_ask_whether_we_are_there_and_chatter() {
    runtime().block_on(async {
        let servers = servers();
        let offer = servers.tools_of("r", &specs(&[program("test", &["chatty"])])).await;
        let answer = call(&offer, "mcp__test__ping_us", json!({})).await;
        assert_eq!(text(&answer), r#"{"id":"p1","jsonrpc":"2.0","result":{}}"#, "{answer:?}");
    });
}

fn a_server_that_nobody_uses_is_ended() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let remote = Remote::start().await;
        let servers = servers();
        let specs = specs(&[remote.spec()]);
        servers.tools_of("r", &specs).await;
        assert_eq!(servers.health().len(), 1);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(300)).await;
        tokio::time::resume();
        servers.tools_of("r", &specs).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(599)).await;
        tokio::time::resume();
        assert_eq!(servers.health().len(), 1, "it was used 599 seconds ago");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(2)).await;
        tokio::time::resume();
        remote.ended().await;
        assert_eq!(servers.health(), []);
        let again = servers.tools_of("r", &specs).await;
        assert_eq!(again.servers[0].since, Since::Now);
    });
}

fn another_program_under_the_same_name_replaces_the_server() {
    runtime().block_on(async {
        let servers = servers();
        servers.tools_of("r", &specs(&[program("test", &[])])).await;
        let other = servers.tools_of("r", &specs(&[program("test", &["chatty"])])).await;
        assert_eq!(other.servers[0].since, Since::Now);
        assert_eq!(servers.health().len(), 1);
    });
}

fn closing_ends_the_programs() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let servers = servers();
        let offer =
            servers.tools_of("r", &specs(&[program("test", &["lock", lock.to_str().unwrap()])])).await;
        let held = std::fs::File::open(&lock).unwrap();
        assert!(held.try_lock().is_err(), "the server holds it");
        servers.close().await;
        held.try_lock().expect("the server is gone");
        drop(offer);
    });
}

fn a_remote_server_offers_its_tools_as_json_or_as_events() {
    runtime().block_on(async {
        let remote = Remote::start().await;
        let servers = servers();
        let offer = servers.tools_of("r", &specs(&[remote.spec()])).await;
        assert_eq!(
            names(&offer),
            ["mcp__far__json", "mcp__far__events", "mcp__far__hang", "mcp__far__change"]
        );
        assert_eq!(text(&call(&offer, "mcp__far__json", json!({"a": 1})).await), "json {\"a\":1}");
        assert_eq!(text(&call(&offer, "mcp__far__events", json!({})).await), "events {}");
        let seen = remote.posts();
        assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Bearer key")));
        let (first, rest) = seen.split_first().unwrap();
        assert_eq!(first.header("mcp-session-id"), None);
        for seen in rest {
            assert_eq!(seen.header("mcp-session-id"), Some("session-1"), "{}", seen.body);
        }
        assert_eq!(rest[1].header("mcp-protocol-version"), Some("2025-06-18"));
        // In the middle of the events the server asked whether we are there.
        assert!(seen.iter().any(|seen| seen.body == r#"{"id":"ping-1","jsonrpc":"2.0","result":{}}"#));
    });
}

fn a_remote_session_that_expired_is_begun_again() {
    runtime().block_on(async {
        let remote = Remote::start().await;
        let servers = servers();
        let offer = servers.tools_of("r", &specs(&[remote.spec()])).await;
        remote.forget_sessions();
        assert_eq!(text(&call(&offer, "mcp__far__json", json!({})).await), "json {}");
        assert_eq!(remote.posts().last().unwrap().header("mcp-session-id"), Some("session-2"));
    });
}

fn a_remote_server_that_changes_its_tools_is_asked_again() {
    runtime().block_on(async {
        let remote = Remote::start().await;
        let servers = servers();
        let specs = specs(&[remote.spec()]);
        let offer = servers.tools_of("r", &specs).await;
        assert_eq!(text(&call(&offer, "mcp__far__change", json!({})).await), "changed");
        let changed = servers.tools_of("r", &specs).await;
        assert_eq!(names(&changed).last().unwrap(), "mcp__far__new_one");
        // And by itself, in the stream that we hold open.
        remote.say_changed("newer_one").await;
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !names(&servers.tools_of("r", &specs).await).contains(&"mcp__far__newer_one".to_owned()) {
            assert!(std::time::Instant::now() < until, "nobody listened");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

fn a_remote_server_that_refuses_us_is_told() {
    runtime().block_on(async {
        let remote = Remote::start().await;
        let mut stranger = remote.spec();
        stranger["headers"] = json!({});
        let nobody = json!({"name": "nobody", "url": "http://127.0.0.1:1/mcp"});
        let offer = servers().tools_of("r", &specs(&[stranger, nobody])).await;
        let problem = |index: usize| offer.servers[index].error.as_ref().unwrap().to_string();
        assert_eq!(problem(0), "MCP server `far`: it answered 401 Unauthorized");
        assert!(problem(1).contains("Connection refused"), "{}", problem(1));
    });
}

fn a_remote_call_that_is_dropped_is_cancelled_there() {
    runtime().block_on(async {
        let remote = Remote::start().await;
        let servers = servers();
        let offer = servers.tools_of("r", &specs(&[remote.spec()])).await;
        let calling = call(&offer, "mcp__far__hang", json!({}));
        tokio::select! {
            result = calling => panic!("{result:?}"),
            () = remote.saw("\"name\":\"hang\"") => {}
        }
        remote.saw("notifications/cancelled").await;
        let posts = remote.posts();
        let hang: Value =
            serde_json::from_str(&posts.iter().find(|seen| seen.body.contains("hang")).unwrap().body)
                .unwrap();
        let cancelled: Value = serde_json::from_str(&posts.last().unwrap().body).unwrap();
        assert_eq!(cancelled["params"]["requestId"], hang["id"]);
    });
}

fn a_remote_session_is_ended_when_we_close() {
    runtime().block_on(async {
        let remote = Remote::start().await;
        let servers = servers();
        servers.tools_of("r", &specs(&[remote.spec()])).await;
        servers.close().await;
        let last = remote.all().into_iter().find(|seen| seen.method == "DELETE").unwrap();
        assert_eq!(last.header("mcp-session-id"), Some("session-1"));
    });
}
