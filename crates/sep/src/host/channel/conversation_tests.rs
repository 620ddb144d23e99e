//! The conversation over an in-memory pipe, with the extension spoken by hand, on a paused clock.

use std::sync::Mutex;

use outrigger_wire::peer::NoMethods;
use outrigger_wire::tape::Direction;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::super::test_limits;
use super::*;
use crate::protocol::{
    ActionOutcome, ExitKind, ExtensionId, HealthStatus, InitializeEvents, InitializeExtension,
    InitializePlatform, LaunchReason, LimitsJson, PlatformState, Profile, Program, TrustLevel, V1_0, V1_1,
};

/// An extension, spoken by hand.
pub(crate) struct Remote {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Remote {
    /// The next frame; null at the end.
    pub(crate) async fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.input.read_line(&mut line).await.expect("a pipe can be read");
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }

    pub(crate) async fn say(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.expect("a pipe takes it");
    }

    /// Answers a call.
    pub(crate) async fn answer(&mut self, call: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string()).await;
    }
}

/// A conversation and the extension at its other end, over a pipe that holds `pipe` bytes.
pub(crate) fn conversation(max_frame_bytes: usize, pipe: usize) -> (Conversation, Remote) {
    conversation_with(max_frame_bytes, pipe, None)
}

fn conversation_with(max_frame_bytes: usize, pipe: usize, tap: Option<TraceTap>) -> (Conversation, Remote) {
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (input, output) = tokio::io::split(ours);
    let session = SessionId::new(1, [0; 10]);
    let (input, output) = (Box::new(input), Box::new(output));
    let attached = Attached { session, sdk: None, pid: None, input, output };
    let limits = test_limits(max_frame_bytes);
    let conversation = Conversation::start(attached, Arc::new(NoMethods), &limits, tap);
    let (input, output) = tokio::io::split(theirs);
    (conversation, Remote { input: BufReader::new(input), output })
}

fn initialize() -> Initialize {
    Initialize {
        protocol_version: V1_1,
        supported_versions: vec![V1_1, V1_0],
        host: Program { name: "outrigger".into(), version: "1".into() },
        extension: InitializeExtension {
            id: ExtensionId::new("org.example.a").expect("it is an id"),
            version: "1.0.0".into(),
            data_dir: "/data".into(),
        },
        session: SessionId::new(1, [0; 10]),
        launch_reason: LaunchReason::First,
        trust_level: TrustLevel::UntrustedLocal,
        permissions: Vec::new(),
        events: InitializeEvents { subscribed: Vec::new(), denied: Vec::new(), ignored: Vec::new() },
        limits: LimitsJson::from(&test_limits(4096)),
        platform: InitializePlatform { profile: Profile::Desktop, state: PlatformState::Foreground },
        now_ms: 1,
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_call_is_number_one_and_agrees_on_a_version() {
    let (conversation, mut remote) = conversation(4096, 1 << 16);
    let asked = initialize();
    let (initialized, call) = tokio::join!(conversation.initialize(&asked, V1_0), async {
        let call = remote.hear().await;
        remote.answer(&call, json!({"protocolVersion": "1.0.0", "unknown": 1})).await;
        call
    });
    assert_eq!(initialized.expect("they agree").protocol_version, V1_0);
    assert_eq!((&call["id"], &call["method"]), (&json!(1), &json!("sep.initialize")));
    assert_eq!(call["params"]["supportedVersions"], json!(["1.1.0", "1.0.0"]));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_begin_says_why() {
    for (answer, incompatible) in [
        (json!({"result": {"protocolVersion": "1.2.0"}}), Some(Mismatch::NotOffered)),
        (json!({"result": {"protocolVersion": "1.0.0"}}), Some(Mismatch::Inconsistent)),
        (json!({"result": 7}), Some(Mismatch::Missing)),
        (json!({"error": {"code": -32004, "message": "no"}}), Some(Mismatch::Unsupported)),
        (json!({"error": "no object"}), Some(Mismatch::Missing)),
        (json!({"error": {"code": -32603, "message": "no"}}), None),
    ] {
        let (conversation, mut remote) = conversation(4096, 1 << 16);
        let asked = initialize();
        let (refused, ()) = tokio::join!(conversation.initialize(&asked, V1_1), async {
            remote.hear().await;
            let mut line = answer.clone();
            line["jsonrpc"] = "2.0".into();
            line["id"] = 1.into();
            remote.say(&line.to_string()).await;
        });
        match (refused.expect_err("there is no session"), incompatible) {
            (InitializeError::Incompatible { detail, .. }, Some(expected)) => assert_eq!(detail, expected),
            (InitializeError::Refused(error), None) => assert_eq!(error.code.0, -32603),
            (other, _) => panic!("{answer}: {other}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_hangs_up_during_its_start_leaves_a_reason() {
    let (conversation, remote) = conversation(4096, 1 << 16);
    drop(remote);
    let error = conversation.initialize(&initialize(), V1_0).await.expect_err("nobody is there");
    let InitializeError::Unanswered(CallFailure::Ended { end, .. }) = error else { panic!("{error}") };
    assert_eq!(end.kind, ExitKind::ChannelLost);
}

#[tokio::test(start_paused = true)]
async fn health_is_asked_and_answered_by_number() {
    let (conversation, mut remote) = conversation(4096, 1 << 16);
    let ask = |seq, answer: Value| {
        let conversation = conversation.clone();
        let asked = tokio::spawn(async move { conversation.health(PingSeq(seq)).await });
        (asked, answer)
    };
    let (asked, answer) = ask(7, json!({"status": "degraded", "detail": "slow", "seq": 7}));
    let call = remote.hear().await;
    assert_eq!((&call["method"], &call["params"]["seq"]), (&json!("sep.health"), &json!(7)));
    remote.answer(&call, answer).await;
    assert_eq!(asked.await.expect("no panic").expect("it answers").status, HealthStatus::Degraded);
    for wrong in [json!({"status": "ok", "seq": 1}), json!({"status": "splendid", "seq": 7}), json!({})] {
        let (asked, answer) = ask(7, wrong.clone());
        let call = remote.hear().await;
        remote.answer(&call, answer).await;
        let failure = asked.await.expect("no panic").expect_err("that is no answer");
        assert!(matches!(failure, CallFailure::Garbage { .. }), "{wrong}: {failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_is_given_up_after_thirty_seconds_and_the_extension_is_told() {
    let (conversation, mut remote) = conversation(4096, 1 << 16);
    let call =
        ActionCall { panel_id: "p".into(), action_id: "a".into(), input: None, invocation: "i1".into() };
    let mut overdue = conversation.overdue();
    let asked = tokio::spawn({
        let (conversation, call) = (conversation.clone(), call.clone());
        async move { conversation.action(&call).await }
    });
    assert_eq!(remote.hear().await["params"], json!({"panelId": "p", "actionId": "a", "invocation": "i1"}));
    overdue.changed().await.expect("it lives");
    assert_eq!(overdue.borrow_and_update().calls, 1, "people are told after three seconds");
    let failure = asked.await.expect("no panic").expect_err("nobody answered");
    assert_eq!(failure, CallFailure::Late { method: ExtensionMethod::Action, after: ACTION_TIME });
    assert_eq!(remote.hear().await, json!({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": 1}}));
    assert_eq!(conversation.overdue().borrow().calls, 0);
    let (done, ()) = tokio::join!(conversation.action(&call), async {
        let call = remote.hear().await;
        remote.answer(&call, json!({"outcome": "ok", "toast": {"message": "done", "level": "info"}})).await;
    });
    assert_eq!(done.expect("it answers").outcome, ActionOutcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn the_extension_is_asked_to_leave_and_has_as_long_as_it_is_told() {
    let (conversation, mut remote) = conversation(4096, 1 << 16);
    let within = Duration::from_secs(3);
    let (answer, call) = tokio::join!(conversation.shutdown(ShutdownReason::HostExit, within), remote.hear());
    assert_eq!(call["params"], json!({"reason": "host_exit", "deadlineMs": 3000}));
    assert_eq!(answer, Err(CallFailure::Late { method: ExtensionMethod::Shutdown, after: within }));
}

#[tokio::test(start_paused = true)]
async fn news_of_its_own_life_have_no_number_and_an_error_acknowledges_them_too() {
    let (conversation, mut remote) = conversation(4096, 1 << 16);
    let data = RawValue::from_string("{}".into()).expect("it is JSON");
    let (told, ()) = tokio::join!(conversation.lifecycle(LifecycleTopic::Pausing, &data), async {
        let call = remote.hear().await;
        assert_eq!(call["params"]["topic"], "lifecycle.pausing");
        assert_eq!(call["params"]["seq"], 0);
        let error = json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32601, "message": "?"}});
        remote.say(&error.to_string()).await;
    });
    assert_eq!(told, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn no_frame_of_the_host_is_longer_than_the_limit() {
    let (conversation, mut remote) = conversation(1024, 1 << 16);
    let mut call = ActionCall {
        panel_id: "p".into(),
        action_id: "a".into(),
        input: Some(String::new()),
        invocation: "i1".into(),
    };
    let frame = |call: &ActionCall| {
        let params = serde_json::to_value(call).expect("it is JSON");
        json!({"jsonrpc": "2.0", "id": 1, "method": "sep.action", "params": params}).to_string().len()
    };
    call.input = Some("x".repeat(1024 - frame(&call)));
    assert_eq!(frame(&call), 1024);
    let longer = ActionCall { input: call.input.clone().map(|input| input + "x"), ..call.clone() };
    let failure = conversation.action(&longer).await.expect_err("it is too long");
    assert!(matches!(failure, CallFailure::TooLong { limit: 1024, length: 1025, .. }), "{failure}");
    let (done, ()) = tokio::join!(conversation.action(&call), async {
        let call = remote.hear().await;
        remote.answer(&call, json!({"outcome": "error"})).await;
    });
    assert_eq!(done.expect("it fits").outcome, ActionOutcome::Error);
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_reads_nothing_ends_as_a_write_stall() {
    let (conversation, _remote) = conversation(4096, 16);
    let asking = tokio::spawn({
        let conversation = conversation.clone();
        async move { conversation.health(PingSeq(1)).await }
    });
    let begun = tokio::time::Instant::now();
    assert_eq!(conversation.ended().await.kind, ExitKind::WriteStall);
    assert_eq!(begun.elapsed(), WRITE_STALL);
    assert!(matches!(asking.await.expect("no panic"), Err(CallFailure::Ended { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_is_an_overrun_and_a_closed_channel_is_lost() {
    let (talked_to, mut remote) = conversation(1024, 1 << 16);
    remote.say(&"x".repeat(1024 * 6)).await;
    assert_eq!(talked_to.ended().await.kind, ExitKind::FrameOverrun);
    let (talked_to, mut remote) = conversation(1024, 1 << 16);
    remote.output.write_all(b"{\"half").await.expect("a pipe takes it");
    drop(remote);
    assert_eq!(talked_to.ended().await.kind, ExitKind::ChannelLost);
    let (talked_to, _remote) = conversation(1024, 1 << 16);
    assert_eq!(talked_to.close().await.kind, ExitKind::Requested);
}

#[tokio::test(start_paused = true)]
async fn every_frame_can_be_heard_by_somebody_else() {
    #[derive(Default)]
    struct Ear(Mutex<Vec<(Direction, String)>>);
    impl Listener for Ear {
        fn heard(&self, dir: Direction, line: &[u8]) {
            let line = String::from_utf8_lossy(line).into_owned();
            self.0.lock().expect("no panic").push((dir, line));
        }
    }
    let ear = Arc::new(Ear::default());
    let (conversation, mut remote) = conversation_with(4096, 1 << 16, Some(ear.clone()));
    let (answer, ()) =
        tokio::join!(conversation.shutdown(ShutdownReason::Stop, Duration::from_secs(1)), async {
            let call = remote.hear().await;
            remote.answer(&call, json!({})).await;
        });
    answer.expect("it answers");
    let heard = ear.0.lock().expect("no panic");
    assert_eq!(heard.iter().map(|(dir, _)| *dir).collect::<Vec<_>>(), [Direction::Out, Direction::In]);
    assert!(heard[0].1.contains("sep.shutdown") && heard[1].1.contains("result"), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_frame_leaves_out_lists_that_do_not_fit() {
    let mut asked = initialize();
    asked.events.subscribed = vec!["peer.online".into()];
    asked.events.ignored = vec!["a.topic".into()];
    let frame = |asked: &Initialize| {
        let params = serde_json::to_string(asked).expect("it is JSON");
        INITIALIZE_BYTES + params.len()
    };
    let whole = frame(&asked);
    for (limit, ignored, subscribed) in [
        (whole, json!(["a.topic"]), json!(["peer.online"])),
        (whole - 1, json!([]), json!(["peer.online"])),
        (whole - "\"a.topic\"".len() - 1, json!([]), json!([])),
    ] {
        let (conversation, mut remote) = conversation(limit, 1 << 16);
        let (initialized, call) = tokio::join!(conversation.initialize(&asked, V1_0), async {
            let call = remote.hear().await;
            remote.answer(&call, json!({"protocolVersion": "1.1.0"})).await;
            call
        });
        assert!(initialized.is_ok(), "{limit}: {initialized:?}");
        let events = &call["params"]["events"];
        assert_eq!((&events["ignored"], &events["subscribed"]), (&ignored, &subscribed), "{limit}");
    }
}
