//! The bridge and its sidecar: when there is one, how it begins, dies, comes back and ends.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_helmor::host::{
    Bridge, BridgeError, Nobody, StartErrorKind, StoppedBy, StreamEnd, StreamEvent, Terms,
};
use outrigger_helmor::protocol::ProviderName;
use outrigger_helmor::provider::Change;
use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{CrashLimit, Ladder};
use serde_json::json;

use crate::host_kit::{bridge, fake, gone, is_alive, millis, passed, quick, read, supervisor, trial, turn};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("nothing_is_started_before_the_first_request", lazy),
        trial("many_first_requests_start_one_sidecar", one_start),
        trial("a_sidecar_that_is_not_ready_in_time_is_killed_and_the_error_has_its_log", never_ready),
        trial("everybody_who_waited_for_a_start_that_fails_gets_its_error", failed_for_all),
        trial("a_sidecar_that_dies_before_it_is_ready_is_an_error_with_its_last_words", dies_before_ready),
        trial("a_program_that_does_not_exist_is_an_error_at_once", no_program),
        trial("lines_before_ready_do_no_harm", garbage_first),
        trial("a_line_without_end_before_ready_is_an_error_and_not_memory", long_garbage_first),
        trial("a_sidecar_of_another_version_is_refused", other_version),
        trial(
            "a_killed_sidecar_ends_its_streams_with_the_report_and_the_next_request_starts_another",
            killed,
        ),
        trial("a_sidecar_that_dies_again_and_again_is_refused_until_somebody_restarts_it", crash_loop),
        trial("a_restart_keeps_the_sessions_and_tells_the_settings_again", restart),
        trial("settings_come_before_the_request_that_starts_the_sidecar", settings_first),
        trial("a_sidecar_that_leaves_when_asked_is_asked_and_its_streams_are_told", leaves),
        trial("a_sidecar_that_ignores_shutdown_gets_sigterm", ignores_shutdown),
        trial("a_sidecar_that_ignores_sigterm_too_gets_sigkill", ignores_term),
        trial("a_bridge_that_was_shut_down_starts_nothing_any_more", closed),
        trial("a_shutdown_does_not_wait_for_a_sidecar_that_is_never_ready", closed_while_starting),
        trial("dropping_the_last_bridge_kills_the_sidecar_and_ends_its_streams", dropped),
        trial("a_sidecar_that_reads_nothing_is_killed_when_it_has_been_deaf_for_too_long", deaf),
    ]
}

async fn lazy() {
    let bridge = bridge(&[], quick());
    assert_eq!(bridge.pid(), None);
    // What needs no sidecar starts none.
    bridge.stop("s", &ProviderName::Claude).await.unwrap();
    bridge.update_config(Change { model: Some(Some("m".into())), ..Change::default() }).await.unwrap();
    assert_eq!(bridge.pid(), None);
    bridge.ping().await.unwrap();
    assert!(bridge.pid().is_some());
    bridge.shutdown().await;
}

async fn one_start() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let bridge = bridge(&[&format!("starts={}", starts.display())], quick());
    let pings = (0..16).map(|_| {
        let bridge = bridge.clone();
        tokio::spawn(async move { bridge.ping().await.map(drop) })
    });
    for ping in pings.collect::<Vec<_>>() {
        ping.await.unwrap().unwrap();
    }
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "x");
    bridge.shutdown().await;
}

async fn never_ready() {
    let bridge = bridge(&["never-ready"], Terms { ready_within: millis(300), ..quick() });
    let Err(BridgeError::Start(error)) = bridge.ping().await else { panic!("it is never ready") };
    assert_eq!(error.kind, StartErrorKind::Late);
    assert!(error.stderr.iter().any(|line| line.text == "thinking about it"), "{error}");
    assert!(error.to_string().contains("was not ready within 300ms"), "{error}");
    assert!(!is_alive(error.report.unwrap().pid.unwrap().get()));
}

async fn failed_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let terms = Terms { ready_within: millis(300), ..quick() };
    let bridge = bridge(&["never-ready", &format!("starts={}", starts.display())], terms);
    let (a, b, c) = tokio::join!(bridge.ping(), bridge.ping(), bridge.ping());
    for error in [a, b, c].map(Result::unwrap_err) {
        assert_eq!(error.code(), "not_ready");
    }
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "x", "one start for the three of them");
}

async fn dies_before_ready() {
    let bridge = bridge(&["dies-before-ready"], quick());
    let Err(BridgeError::Start(error)) = bridge.ping().await else { panic!("it dies") };
    assert_eq!(error.kind, StartErrorKind::Exited);
    assert_eq!(error.report.as_ref().unwrap().status, Some(Status::Code(3)));
    assert!(error.to_string().contains("out of cheese"), "{error}");
}

async fn no_program() {
    let mut spec = fake(&[]);
    spec.program = "/no/such/program".into();
    let bridge = Bridge::new(supervisor(), spec, quick(), Arc::new(Nobody));
    let Err(BridgeError::Start(error)) = bridge.ping().await else { panic!("there is none") };
    assert_eq!(error.kind, StartErrorKind::Spawn);
}

async fn garbage_first() {
    let bridge = bridge(&["garbage-first"], quick());
    bridge.ping().await.unwrap();
    bridge.shutdown().await;
}

async fn long_garbage_first() {
    let bridge = bridge(&["long-garbage-first"], quick());
    let Err(BridgeError::Start(error)) = bridge.ping().await else { panic!("that is no sidecar") };
    assert_eq!(error.kind, StartErrorKind::Exited);
}

async fn other_version() {
    let bridge = bridge(&["version-2"], quick());
    let Err(BridgeError::Start(error)) = bridge.ping().await else { panic!("it is another one") };
    assert_eq!(error.kind, StartErrorKind::Incompatible);
    assert!(error.what.contains("version 2"), "{error}");
}

async fn killed() {
    let bridge = bridge(&[], quick());
    let mut streams = Vec::new();
    for session in ["a", "b"] {
        let init = json!({"type":"system","subtype":"init","session_id":format!("claude-{session}")});
        let steps = json!([{"log":"about to die"}, {"pass":init}, {"hang":true}]);
        let mut stream = bridge.send(turn(session, &steps)).await.unwrap();
        passed(&mut stream).await;
        streams.push(stream);
    }
    let first = bridge.pid().unwrap();
    kill(first);
    for stream in streams {
        let StreamEnd::Lost(lost) = stream.end().await.unwrap() else { panic!("it was killed") };
        assert!(lost.what.contains("exited unexpectedly"), "{lost}");
        let report = lost.report.unwrap();
        assert_eq!(report.status, Some(Status::Signal(9)));
        assert!(report.stderr.iter().any(|line| line.text == "about to die"), "{report}");
    }
    for session in ["a", "b"] {
        let stream = bridge.send(turn(session, &json!([{"echo":true}]))).await.unwrap();
        let (said, end) = read(stream).await;
        assert!(end.is_good());
        assert_eq!(said[0]["params"]["resume"], format!("claude-{session}"));
    }
    assert_ne!(bridge.pid().unwrap(), first);
    bridge.shutdown().await;
}

async fn crash_loop() {
    let crashes = CrashLimit { crashes: NonZeroU32::new(3).unwrap(), within: Duration::from_secs(600) };
    let bridge = bridge(&[], Terms { crashes, ..quick() });
    for _ in 0..3 {
        let stream = bridge.send(turn("s", &json!([{"log":"no more"}, {"die":7}]))).await.unwrap();
        assert_eq!(stream.end().await.unwrap().code(), "sidecar_lost");
    }
    let error = bridge.ping().await.unwrap_err();
    assert_eq!(error.code(), "crash_loop");
    assert!(error.to_string().contains("died 3 times"), "{error}");
    assert!(error.to_string().contains("no more"), "{error}");
    bridge.restart().await.unwrap();
    bridge.ping().await.unwrap();
    bridge.shutdown().await;
}

async fn restart() {
    let bridge = bridge(&[], quick());
    bridge
        .update_config(Change { cursor_api_key: Some(Some("key".into())), ..Change::default() })
        .await
        .unwrap();
    let init = json!({"type":"system","subtype":"init","session_id":"claude-1"});
    let mut stream = bridge.send(turn("s", &json!([{"pass":init}, {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let before = bridge.pid().unwrap();
    bridge.restart().await.unwrap();
    assert!(matches!(stream.end().await, Some(StreamEnd::Aborted { reason }) if reason == "shutdown"));
    assert!(!is_alive(before));
    assert_eq!(bridge.resume_id("s"), Some((ProviderName::Claude, "claude-1".to_owned())));
    let (said, _) = read(bridge.send(turn("s", &json!([{"echo":true}]))).await.unwrap()).await;
    assert_eq!(said[0]["params"]["resume"], "claude-1");
    assert_eq!(said[0]["config"]["cursorApiKey"], "key");
    bridge.shutdown().await;
}

async fn settings_first() {
    let bridge = bridge(&[], quick());
    bridge
        .update_config(Change { cursor_api_key: Some(Some("old".into())), ..Change::default() })
        .await
        .unwrap();
    bridge.update_config(Change { model: Some(Some("m".into())), ..Change::default() }).await.unwrap();
    bridge
        .update_config(Change { cursor_api_key: Some(Some("new".into())), ..Change::default() })
        .await
        .unwrap();
    let (said, _) = read(bridge.send(turn("s", &json!([{"echo":true}]))).await.unwrap()).await;
    assert_eq!(said[0]["config"], json!({"cursorApiKey":"new","model":"m"}));
    // A change is told to the one that runs.
    bridge.update_config(Change { cursor_api_key: Some(None), ..Change::default() }).await.unwrap();
    let (said, _) = read(bridge.send(turn("s", &json!([{"echo":true}]))).await.unwrap()).await;
    assert_eq!(said[0]["config"], json!({"cursorApiKey":null}));
    bridge.shutdown().await;
}

async fn leaves() {
    let bridge = bridge(&[], quick());
    let mut stream = bridge.send(turn("s", &json!(["hi", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let stopped = bridge.shutdown().await;
    assert_eq!(stopped.by, StoppedBy::Request);
    assert_eq!(stopped.report.unwrap().status, Some(Status::Code(0)));
    assert!(matches!(stream.end().await, Some(StreamEnd::Aborted { reason }) if reason == "shutdown"));
    assert_eq!(bridge.shutdown().await.by, StoppedBy::NotRunning);
}

async fn ignores_shutdown() {
    let ladder = Ladder { ask: millis(100), term: Duration::from_secs(20) };
    let bridge = bridge(&["ignores-shutdown"], Terms { ladder, ..quick() });
    let mut stream = bridge.send(turn("s", &json!(["hi", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let stopped = bridge.shutdown().await;
    assert_eq!(stopped.by, StoppedBy::Sigterm);
    assert_eq!(stopped.report.unwrap().status, Some(Status::Code(143)));
    assert_eq!(stream.end().await.unwrap().code(), "sidecar_lost");
}

async fn ignores_term() {
    let ladder = Ladder { ask: millis(100), term: millis(100) };
    let bridge = bridge(&["ignores-shutdown", "ignores-term", "stays"], Terms { ladder, ..quick() });
    bridge.ping().await.unwrap();
    let stopped = bridge.shutdown().await;
    assert_eq!(stopped.by, StoppedBy::Sigkill);
    assert_eq!(stopped.report.unwrap().status, Some(Status::Signal(9)));
}

async fn closed() {
    let bridge = bridge(&[], quick());
    bridge.ping().await.unwrap();
    let pid = bridge.pid().unwrap();
    bridge.shutdown().await;
    assert!(!is_alive(pid));
    assert!(matches!(bridge.ping().await, Err(BridgeError::Closed)));
    assert!(matches!(bridge.send(turn("s", &json!([]))).await, Err(BridgeError::Closed)));
    assert_eq!(bridge.pid(), None);
}

async fn closed_while_starting() {
    let bridge = bridge(&["never-ready"], Terms { ready_within: Duration::from_secs(50), ..quick() });
    let waiting = tokio::spawn({
        let bridge = bridge.clone();
        async move { bridge.ping().await }
    });
    tokio::task::yield_now().await;
    assert_eq!(bridge.shutdown().await.by, StoppedBy::NotRunning);
    assert!(matches!(waiting.await.unwrap(), Err(BridgeError::Closed)));
}

async fn dropped() {
    let bridge = bridge(&["stays", "ignores-term"], quick());
    let mut stream = bridge.send(turn("s", &json!(["hi", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let pid = bridge.pid().unwrap();
    drop(bridge);
    match stream.next().await {
        Some(StreamEvent::End(StreamEnd::Lost(lost))) => assert!(lost.what.contains("let go"), "{lost}"),
        other => panic!("{other:?}"),
    }
    gone(pid).await;
}

async fn deaf() {
    let bridge = bridge(&["deaf"], Terms { write_stall: millis(200), ..quick() });
    // More than a pipe holds.
    let long = json!(["x".repeat(1 << 20)]);
    let stream = bridge.send(turn("s", &long)).await.unwrap();
    let StreamEnd::Lost(lost) = stream.end().await.unwrap() else { panic!("it is deaf") };
    assert!(lost.what.contains("did not read its input"), "{lost}");
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
