//! Own calls: answers, deadlines, cancellation, and replies that nobody awaits.

use std::time::Duration;

use outrigger_wire::peer::{CallError, CancelWire, Deadline, PeerConfig};
use outrigger_wire::rpc::{Code, ErrorObject};
use tokio::time::Instant;

use super::{CONFIG, Script, echo, pair, peer, raw};

#[tokio::test(start_paused = true)]
async fn both_sides_call_each_other_at_once() {
    let (left, right) = pair(echo(), echo(), CONFIG, 256);
    let one = raw("1");
    let calls = (0..200).map(|_| async {
        let (from_left, from_right) = tokio::join!(
            left.call("echo", Some(&one), Deadline::Never),
            right.call("echo", Some(&one), Deadline::Never)
        );
        assert_eq!((from_left.unwrap().get(), from_right.unwrap().get()), ("1", "1"));
    });
    for call in calls {
        call.await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_call_back_before_it_answers() {
    let right = Script::new().later("outer", |call| async move {
        let inner = call.peer.call("echo", call.params.as_deref(), Deadline::Never).await.unwrap();
        Ok(raw(&format!("[{inner}]")))
    });
    let (left, _right) = pair(echo(), right, CONFIG, 64);
    let answer = left.call("outer", Some(&raw("7")), Deadline::Never).await.unwrap();
    assert_eq!(answer.get(), "[7]");
}

#[tokio::test(start_paused = true)]
async fn answers_reach_their_callers_in_whatever_order_they_come() {
    let (peer, mut remote) = peer(Script::new(), CONFIG);
    let first = peer.call("a", None, Deadline::Never);
    let params = raw("{\"x\":1}");
    let second = peer.call("b", Some(&params), Deadline::Never);
    let other_side = async {
        assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
        assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":2,"method":"b","params":{"x":1}}"#);
        remote.send(r#"{"jsonrpc":"2.0","id":2,"result": {"two" : 2} }"#).await;
        remote.send(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}}"#).await;
    };
    let (first, second, ()) = tokio::join!(first, second, other_side);
    assert_eq!(second.unwrap().get(), r#"{"two" : 2}"#);
    let error = ErrorObject::new(Code(-5), "no");
    assert_eq!(first.unwrap_err(), CallError::Remote { method: "a".into(), error });
}

#[tokio::test(start_paused = true)]
async fn a_handler_knows_that_a_call_was_answered_before_it_sees_what_was_sent_after_the_answer() {
    let script = echo();
    let arrivals = script.arrivals();
    let (peer, mut remote) = peer(script, CONFIG);
    let other_side = async {
        remote.read().await;
        let request = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo"}}"#);
        let answer = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}}"#;
        remote.send(&format!("{}\n{answer}\n{}", request(1), request(2))).await;
        (remote.read().await, remote.read().await)
    };
    let (answer, _) = tokio::join!(peer.call("hello", None, Deadline::Never), other_side);
    assert!(answer.is_err());
    assert_eq!(*arrivals.lock().unwrap(), ["request echo", "answer to hello", "request echo"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_answered_in_time_fails_then_and_tells_the_other_side() {
    let script = Script::new();
    let complaints = script.complaints();
    let (peer, mut remote) = peer(script, CONFIG);
    let start = Instant::now();
    let after = Duration::from_millis(1500);
    let error = peer.call("slow", None, Deadline::After(after)).await.unwrap_err();
    assert_eq!(error, CallError::Deadline { method: "slow".into(), after });
    assert_eq!(error.to_string(), "`slow` was not answered within 1.5s");
    assert_eq!(start.elapsed(), after);
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":1,"method":"slow"}"#);
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}"#);
    // The late answer is counted and harms nobody; neither does one to a call that was never made.
    remote.send(r#"{"jsonrpc":"2.0","id":1,"result":1}"#).await;
    remote.send(r#"{"jsonrpc":"2.0","id":99,"result":1}"#).await;
    remote.send(r#"{"jsonrpc":"2.0","id":"1","result":1}"#).await;
    remote.send(r#"{"jsonrpc":"2.0","id":5,"method":"x"}"#).await;
    remote.read().await;
    let counts = peer.counts();
    assert_eq!((counts.late_replies, counts.unknown_replies, counts.calls_given_up), (1, 2, 1));
    assert_eq!(*complaints.lock().unwrap(), ["LateReply", "UnknownReply", "UnknownReply"]);
}

#[tokio::test(start_paused = true)]
async fn deadlines_are_kept_in_order_while_later_calls_have_earlier_ones() {
    let (peer, _remote) = peer(Script::new(), CONFIG);
    let start = Instant::now();
    let call = async |millis: u64| {
        let after = Duration::from_millis(millis);
        peer.call("m", None, Deadline::After(after)).await.unwrap_err();
        assert_eq!(start.elapsed(), after);
    };
    tokio::join!(call(300), call(100), call(200));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_given_up_and_the_other_side_is_told() {
    let (peer, mut remote) = peer(Script::new(), CONFIG);
    {
        let call = peer.call("long", None, Deadline::Never);
        tokio::select! {
            biased;
            _ = call => panic!("nobody answers"),
            line = remote.read() => assert_eq!(line, r#"{"jsonrpc":"2.0","id":1,"method":"long"}"#),
        }
    }
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}"#);
    assert_eq!((peer.counts().calls_open, peer.counts().calls_given_up), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_dialect_may_have_its_own_word_for_the_id_of_a_call_that_is_given_up() {
    let cancel = CancelWire::Tell { method: "notifications/cancelled", member: "requestId" };
    let (peer, mut remote) = peer(Script::new(), PeerConfig { cancel, ..CONFIG });
    peer.call("one", None, Deadline::After(Duration::from_secs(1))).await.unwrap_err();
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":1,"method":"one"}"#);
    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(remote.read().await, told);
}

#[tokio::test(start_paused = true)]
async fn a_silent_dialect_is_not_told() {
    let config = PeerConfig { cancel: CancelWire::Silent, ..CONFIG };
    let (peer, mut remote) = peer(Script::new(), config);
    let after = Deadline::After(Duration::from_secs(1));
    peer.call("one", None, after).await.unwrap_err();
    peer.call("two", None, after).await.unwrap_err();
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":1,"method":"one"}"#);
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":2,"method":"two"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_answer_fails_its_call_at_once_instead_of_letting_it_wait() {
    let (peer, mut remote) = peer(Script::new(), CONFIG);
    let (answer, ()) = tokio::join!(peer.call("m", None, Deadline::Never), async {
        remote.read().await;
        remote.send(r#"{"jsonrpc":"2.0","id":1,"error":"oops"}"#).await;
    });
    let message = answer.unwrap_err().to_string();
    assert_eq!(message, "`m` was answered with a malformed response: member `error` is not an error object");
}

#[tokio::test(start_paused = true)]
async fn an_error_without_a_call_is_shown_to_the_handler() {
    let script = Script::new();
    let complaints = script.complaints();
    let (_peer, mut remote) = peer(script, CONFIG);
    remote.send(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#).await;
    remote.send(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#).await;
    remote.read().await;
    assert!(complaints.lock().unwrap()[0].starts_with("OrphanError"), "{complaints:?}");
}

#[tokio::test(start_paused = true)]
async fn callers_beyond_the_limit_wait_for_a_place_and_their_deadline_covers_that() {
    let config = PeerConfig { max_calls: 1, ..CONFIG };
    let (peer, mut remote) = peer(Script::new(), config);
    let first = peer.call("first", None, Deadline::Never);
    let second = async {
        let error = peer.call("second", None, Deadline::After(Duration::from_secs(1))).await.unwrap_err();
        assert!(matches!(error, CallError::Deadline { .. }));
        assert_eq!(peer.counts().calls_open, 1);
        remote.read().await;
        remote.send(r#"{"jsonrpc":"2.0","id":1,"result":true}"#).await;
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.unwrap().get(), "true");
    assert_eq!(peer.counts().calls_given_up, 0, "the second one was never sent");
}

#[tokio::test(start_paused = true)]
async fn a_request_at_the_line_limit_is_sent_and_one_past_it_is_not() {
    let config = PeerConfig { max_line_out: 100, ..CONFIG };
    let (left, _right) = pair(Script::new(), echo(), config, 1024);
    let fixed = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":""}"#.len();
    let fits = raw(&format!("\"{}\"", "x".repeat(100 - fixed)));
    let error =
        left.call("echo", Some(&raw(&format!("\"{}\"", "x".repeat(101 - fixed)))), Deadline::Never).await;
    assert_eq!(error.unwrap_err(), CallError::TooLong { method: "echo".into(), length: 101, limit: 100 });
    assert_eq!(left.call("echo", Some(&fits), Deadline::Never).await.unwrap().get(), fits.get());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_can_be_in_flight() {
    let (left, right) = pair(Script::new(), echo(), CONFIG, 4096);
    let tasks: Vec<_> = (0..10_000)
        .map(|n: u32| {
            let left = left.clone();
            tokio::spawn(async move {
                let params = raw(&n.to_string());
                let answer = left.call("echo", Some(&params), Deadline::After(Duration::from_secs(60))).await;
                assert_eq!(answer.unwrap().get(), params.get());
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!((left.counts().lines_in, left.counts().lines_out), (10_000, 10_000));
    assert_eq!((left.counts().calls_open, right.counts().requests_running), (0, 0));
}
