//! What is sent in bulk, what is told when it was written, and ids that cannot be taken for the other side's.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use outrigger_wire::peer::{
    Answer, BoxFuture, CONTROL_PLACES, Call, CallIds, Deadline, End, Handler, Lane, Note, NotifyError,
    OutboxLimits, Peer, PeerConfig, Receipt, Wiring,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::oneshot;

use super::{CONFIG, Script, peer, peer_with_pipe, raw};

#[tokio::test(start_paused = true)]
async fn many_lines_are_sent_at_once_and_arrive_in_order() {
    let (peer, mut remote) = peer(Script::new(), CONFIG);
    peer.notify_lines(Lane::Action, "n", &mut b"{\"a\":1}\n{\"a\":2}\n".to_vec()).await.unwrap();
    peer.notify_lines(Lane::Action, "n", &mut b"{\"a\":3}\n".to_vec()).await.unwrap();
    peer.notify_lines(Lane::Action, "n", &mut Vec::new()).await.unwrap();
    peer.written(Lane::Action).await.unwrap();
    assert_eq!(peer.counts().lines_out, 3);
    for expected in ["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"] {
        assert_eq!(remote.read().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_among_many_that_is_too_long_is_not_sent_and_neither_are_the_others() {
    let config = PeerConfig { max_line_out: 10, ..CONFIG };
    let (peer, mut remote) = peer(Script::new(), config);
    peer.notify_lines(Lane::Action, "n", &mut b"1234567890\n1234567890\n".to_vec()).await.unwrap();
    let error = peer.notify_lines(Lane::Action, "n", &mut b"1\n12345678901\n".to_vec()).await.unwrap_err();
    assert_eq!(error, NotifyError::TooLong { method: "n".into(), length: 11, limit: 10 });
    peer.close().await;
    assert_eq!(remote.read().await, "1234567890");
    assert_eq!(remote.read().await, "1234567890");
    assert_eq!(remote.read().await, "");
}

#[tokio::test(start_paused = true)]
async fn who_sends_many_lines_waits_for_a_reader_that_is_slow() {
    let outbox = OutboxLimits { bytes: 20, ..CONFIG.outbox };
    let (peer, mut remote) = peer_with_pipe(Script::new(), PeerConfig { outbox, ..CONFIG }, 8);
    let sender = peer.clone();
    let sending = tokio::spawn(async move {
        for _ in 0..10 {
            sender.notify_lines(Lane::Action, "n", &mut b"123456\n654321\n".to_vec()).await.unwrap();
        }
        sender.written(Lane::Action).await.unwrap();
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!sending.is_finished(), "there is room for two of ten");
    assert!(peer.counts().outbox_bytes <= 40, "{:?}", peer.counts());
    for _ in 0..10 {
        assert_eq!(remote.read().await, "123456");
        assert_eq!(remote.read().await, "654321");
    }
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_written_is_told_only_when_the_reader_took_it() {
    let (peer, mut remote) = peer_with_pipe(Script::new(), CONFIG, 4);
    peer.notify_lines(Lane::Action, "n", &mut b"123456\n".to_vec()).await.unwrap();
    let waiter = peer.clone();
    let written = tokio::spawn(async move { waiter.written(Lane::Action).await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!written.is_finished(), "only four bytes fit into the pipe");
    assert_eq!(remote.read().await, "123456");
    assert_eq!(written.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_for_a_line_that_is_never_written() {
    let (peer, remote) = peer_with_pipe(Script::new(), CONFIG, 4);
    peer.notify_lines(Lane::Action, "n", &mut b"123456\n".to_vec()).await.unwrap();
    let waiter = peer.clone();
    let written = tokio::spawn(async move { waiter.written(Lane::Action).await });
    assert!(matches!(peer.ended().await, End::WriteStall { .. }));
    assert!(matches!(written.await.unwrap(), Err(End::WriteStall { .. })));
    assert!(matches!(peer.written(Lane::Action).await, Err(End::WriteStall { .. })));
    drop(remote);
}

/// Answers `open` with a receipt, and notifies when it has it.
struct Opening(Mutex<Option<oneshot::Receiver<()>>>);

impl Handler for Opening {
    fn request(&self, call: Call) -> Answer {
        if call.method == "slow" {
            return Answer::Later(Box::pin(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(raw("\"slow\""))
            }));
        }
        let (written, receipt): (Receipt, _) = oneshot::channel();
        *self.0.lock().unwrap() = Some(receipt);
        Answer::Receipted { outcome: Ok(raw("\"open\"")), written }
    }

    fn notification(&self, _: Note) -> Option<BoxFuture<()>> {
        None
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_a_receipt_is_written_before_anything_that_waits_for_it() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let handler = Arc::new(Opening(Mutex::new(None)));
    let peer = Peer::start(Wiring::new(input, output), Arc::clone(&handler) as _, CONFIG);
    let (input, mut output) = tokio::io::split(theirs);
    let mut input = BufReader::new(input);
    let mut line = String::new();

    output.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"open\"}\n").await.unwrap();
    input.read_line(&mut line).await.unwrap();
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"open\"}\n");
    let receipt = handler.0.lock().unwrap().take().unwrap();
    assert_eq!(receipt.await, Ok(()));

    // In a batch the answer is written when the last one is known.
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"open"},{"jsonrpc":"2.0","id":2,"method":"slow"}]"#;
    output.write_all(&[batch, &b"\n"[..]].concat()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut receipt = handler.0.lock().unwrap().take().unwrap();
    assert!(receipt.try_recv().is_err(), "the batch waits for its slow one");
    line.clear();
    input.read_line(&mut line).await.unwrap();
    assert!(line.starts_with("[{") && line.contains("\"open\"") && line.contains("\"slow\""), "{line}");
    assert_eq!(receipt.await, Ok(()));
    peer.close().await;
}

#[tokio::test(start_paused = true)]
async fn own_calls_can_have_ids_that_nobody_takes_for_theirs() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let wiring = Wiring::new(input, output).call_ids(CallIds::Prefixed("srv_"));
    let peer = Peer::start(wiring, Arc::new(Script::new()), CONFIG);
    let (input, mut output) = tokio::io::split(theirs);
    let mut input = BufReader::new(input);
    let caller = peer.clone();
    let calls = tokio::spawn(async move {
        let first = caller.call("a", None, Deadline::Never).await;
        let second = caller.call("b", None, Deadline::After(Duration::from_secs(1))).await;
        (first, second)
    });
    let mut line = String::new();
    input.read_line(&mut line).await.unwrap();
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":\"srv_1\",\"method\":\"a\"}\n");
    let others = ["1", "\"srv_01\"", "\"srv_+1\"", "\"srv_\"", "\"xrv_1\"", "\"srv_7\""];
    for other in others {
        output
            .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{other},\"result\":0}}\n").as_bytes())
            .await
            .unwrap();
    }
    output.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"srv_1\",\"result\":7}\n").await.unwrap();
    line.clear();
    input.read_line(&mut line).await.unwrap();
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":\"srv_2\",\"method\":\"b\"}\n");
    line.clear();
    input.read_line(&mut line).await.unwrap();
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"id\":\"srv_2\"}}\n");
    let (first, second) = calls.await.unwrap();
    assert_eq!(first.unwrap().get(), "7");
    assert!(second.is_err());
    assert_eq!(peer.counts().unknown_replies, others.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn requests_that_arrive_together_are_answered_together_and_in_order() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(ours);
    let _peer = Peer::start(Wiring::new(input, output), Arc::new(super::echo()), CONFIG);
    let (mut input, mut output) = tokio::io::split(theirs);
    let lines: String = (0..1000)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"echo\",\"params\":[]}}\n"))
        .collect();
    output.write_all(lines.as_bytes()).await.unwrap();
    let expected: String =
        (0..1000).map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":[]}}\n")).collect();
    let mut answers = vec![0; expected.len()];
    input.read_exact(&mut answers).await.unwrap();
    assert_eq!(String::from_utf8(answers).unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_about_health_overtakes_events_and_needs_no_room() {
    let outbox = OutboxLimits { bytes: 100, ..CONFIG.outbox };
    let config = PeerConfig { outbox, max_calls: 2, ..CONFIG };
    let (peer, mut remote) = peer_with_pipe(Script::new(), config, 8);
    let call = |lane: Lane, method: &'static str| {
        let peer = peer.clone();
        tokio::spawn(async move { peer.call_on(lane, method, None, Deadline::Never).await })
    };
    // The first one is on its way when the others are sent, the second one takes the room, the third one waits for a place.
    let events = [call(Lane::Event, "event"), call(Lane::Event, "event"), call(Lane::Event, "event")];
    tokio::task::yield_now().await;
    let action = call(Lane::Action, "action");
    let health = call(Lane::Control, "health");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":1,"method":"event"}"#);
    let second = remote.read().await;
    assert!(second.ends_with(r#""method":"health"}"#), "{second}");
    let id = second.split(['"', ':', ',']).find_map(|part| part.parse::<u64>().ok()).unwrap();
    remote.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"well"}}"#)).await;
    assert_eq!(health.await.unwrap().unwrap().get(), r#""well""#);
    peer.close().await;
    assert!(action.await.unwrap().is_err());
    for event in events {
        assert!(event.await.unwrap().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_control_have_a_bounded_number_of_places() {
    let (peer, mut remote) = peer(Script::new(), CONFIG);
    let one = || {
        let peer = peer.clone();
        tokio::spawn(async move { peer.call_on(Lane::Control, "health", None, Deadline::Never).await })
    };
    let calls: Vec<_> = (0..=CONTROL_PLACES).map(|_| one()).collect();
    for _ in 0..CONTROL_PLACES {
        assert!(remote.read().await.contains("health"));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.counts().calls_open, CONTROL_PLACES, "one more waits for its place");
    remote.send(r#"{"jsonrpc":"2.0","id":1,"result":0}"#).await;
    assert!(remote.read().await.contains("health"));
    peer.close().await;
    for call in calls {
        // The first one was answered, the others end with the conversation; none waits for ever.
        let _ = call.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_begun_arrive_in_order_and_are_given_up_when_nobody_waits() {
    let (peer, mut remote) = peer(Script::new(), PeerConfig { max_calls: 2, ..CONFIG });
    let begin = |method| peer.begin_call(Lane::Event, method, None, Deadline::Never);
    let (first, second) = (begin("a").await.unwrap(), begin("b").await.unwrap());
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":2,"method":"b"}"#);
    let third = tokio::time::timeout(Duration::from_secs(1), begin("c")).await;
    assert!(third.is_err(), "two calls may be in flight");
    remote.send(r#"{"jsonrpc":"2.0","id":2,"result":"two"}"#).await;
    assert_eq!(second.await.unwrap().get(), r#""two""#);
    drop(first);
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}"#);
    // Both places are free again, and no more than both.
    let (third, _fourth) = (begin("c").await.unwrap(), begin("d").await.unwrap());
    assert!(tokio::time::timeout(Duration::from_secs(1), begin("e")).await.is_err());
    peer.close().await;
    assert!(third.await.unwrap_err().to_string().contains("`c`"));
}
