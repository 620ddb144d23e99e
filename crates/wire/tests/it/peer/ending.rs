//! How conversations end: in good order, by death, by violation, and what everyone is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_wire::line::{LineError, LineLimit, LinePolicy, Overlong, Patience, dialect};
use outrigger_wire::peer::{CallError, Complaint, Deadline, End, Lane, Peer, PeerConfig, Reaction, Wiring};
use outrigger_wire::tape::{Direction, Said, Tape, TapeSize, every_split, read_tape, stream};
use tokio::time::Instant;

use super::{CONFIG, Script, echo, peer, raw};
use crate::lines::decode_chunks;

#[tokio::test(start_paused = true)]
async fn when_the_other_side_dies_every_call_fails_with_the_reason() {
    let (peer, mut remote) = peer(Script::new(), CONFIG);
    let calls = tokio::spawn({
        let peer = peer.clone();
        async move { tokio::join!(peer.call("a", None, Deadline::Never), peer.call("b", None, Deadline::Never)) }
    });
    remote.read().await;
    remote.read().await;
    drop(remote);
    let (a, b) = calls.await.unwrap();
    assert_eq!(a.unwrap_err(), CallError::Ended { method: "a".into(), end: End::RemoteClosed });
    assert_eq!(b.unwrap_err().to_string(), "`b` cannot be answered: the other side closed the connection");
    assert_eq!(peer.ended().await, End::RemoteClosed);
    let late = peer.call("c", None, Deadline::Never).await;
    assert_eq!(late.unwrap_err(), CallError::Ended { method: "c".into(), end: End::RemoteClosed });
}

#[tokio::test(start_paused = true)]
async fn a_death_inside_a_line_is_told_from_a_clean_end_where_the_dialect_cares() {
    let lines = dialect::sep(1000);
    let (peer, mut remote) = peer(Script::new(), PeerConfig { lines, ..CONFIG });
    tokio::io::AsyncWriteExt::write_all(&mut remote.output, b"{\"jsonrpc\"").await.unwrap();
    remote.hang_up().await;
    assert!(matches!(peer.ended().await, End::Line(LineError::Truncated { held: 10, .. })));
}

#[tokio::test(start_paused = true)]
async fn requests_that_came_before_the_end_are_answered_and_the_farewell_is_last() {
    let script = echo().farewell("lifecycle.shutdown").later("slow", |_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(raw("\"slow\""))
    });
    let (peer, mut remote) = peer(script, CONFIG);
    remote.send(r#"{"jsonrpc":"2.0","id":1,"method":"slow"}"#).await;
    tokio::io::AsyncWriteExt::write_all(&mut remote.output, br#"{"jsonrpc":"2.0","id":2,"method":"echo"}"#)
        .await
        .unwrap();
    remote.hang_up().await;
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":2,"result":null}"#);
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","id":1,"result":"slow"}"#);
    assert_eq!(remote.read().await, r#"{"jsonrpc":"2.0","method":"lifecycle.shutdown"}"#);
    assert_eq!(remote.read().await, "");
    assert_eq!(peer.ended().await, End::RemoteClosed);
}

#[tokio::test(start_paused = true)]
async fn closing_lets_handlers_finish_and_writes_what_waits() {
    let script = Script::new().farewell("bye").later("slow", |call| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        call.peer.notify(Lane::Control, "note", None).await.unwrap();
        Ok(raw("1"))
    });
    let (peer, mut remote) = peer(script, CONFIG);
    remote.send(r#"{"jsonrpc":"2.0","id":1,"method":"slow"}"#).await;
    while peer.counts().requests_running == 0 {
        tokio::task::yield_now().await;
    }
    let call = peer.call("m", None, Deadline::Never);
    let (call, end) = tokio::join!(biased; call, peer.close());
    assert_eq!(call.unwrap_err(), CallError::Ended { method: "m".into(), end: End::Closed });
    assert_eq!(end, End::Closed);
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| !line.is_empty()) {
        lines.push(remote.read().await);
    }
    assert_eq!(
        lines,
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","method":"note"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1}"#,
            r#"{"jsonrpc":"2.0","method":"bye"}"#,
            ""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_longer_than_the_drain_for_a_handler_that_hangs() {
    let script = Script::new().farewell("bye").later("hang", |_| std::future::pending());
    let (peer, mut remote) = peer(script, CONFIG);
    remote.send(r#"{"jsonrpc":"2.0","id":1,"method":"hang"}"#).await;
    while peer.counts().requests_running == 0 {
        tokio::task::yield_now().await;
    }
    let start = Instant::now();
    assert_eq!(peer.close().await, End::Closed);
    assert_eq!(start.elapsed(), CONFIG.drain);
    assert_eq!(remote.read().await, "", "an abandoned conversation has no farewell");
    assert_eq!(peer.counts().requests_running, 0, "the handle outlives the conversation, the streams do not");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_the_conversation() {
    let (peer, mut remote) = peer(echo(), CONFIG);
    drop(peer);
    assert_eq!(remote.read().await, "");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_runs_keeps_its_peer_and_the_end_stops_it() {
    let stopped = Arc::new(Mutex::new(None));
    let note = Arc::clone(&stopped);
    let script = Script::new().later("hang", move |call| {
        let note = Arc::clone(&note);
        async move {
            let end = call.peer.ended().await;
            *note.lock().unwrap() = Some(end);
            Ok(raw("1"))
        }
    });
    let (peer, mut remote) = peer(script, PeerConfig { drain: Duration::ZERO, ..CONFIG });
    remote.send(r#"{"jsonrpc":"2.0","id":1,"method":"hang"}"#).await;
    while peer.counts().requests_running == 0 {
        tokio::task::yield_now().await;
    }
    drop(remote);
    assert_eq!(peer.ended().await, End::RemoteClosed);
    assert_eq!(peer.counts().requests_running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_far_past_the_limit_ends_the_conversation_by_name() {
    let lines = LinePolicy {
        limit: LineLimit::before_newline(10),
        overlong: Overlong::Skip(Patience::Bytes(40)),
        ..dialect::STEERABLE
    };
    let (peer, mut remote) = peer(Script::new(), PeerConfig { lines, ..CONFIG });
    remote.send(&"x".repeat(41)).await;
    let end = peer.ended().await;
    assert!(matches!(end, End::Line(LineError::Overrun { limit: 10, patience: 40, .. })), "{end}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_has_had_enough_answers_and_ends_the_conversation() {
    let strikes = Mutex::new(0);
    let script = echo().temper(move |complaint| {
        assert!(matches!(complaint, Complaint::Refused(_)));
        let mut strikes = strikes.lock().unwrap();
        *strikes += 1;
        (*strikes == 3).then(|| Reaction::End {
            reason: "protocol_violation".into(),
            answer: Some(complaint.to_error()),
        })
    });
    let (peer, mut remote) = peer(script, CONFIG);
    for _ in 0..4 {
        remote.send("?").await;
    }
    for _ in 0..3 {
        assert!(remote.read().await.contains("-32700"));
    }
    assert_eq!(remote.read().await, "");
    assert_eq!(peer.ended().await, End::Violation("protocol_violation".into()));
}

/// A tape kept in memory.
#[derive(Clone, Default)]
struct Reel(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Reel {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_can_be_taped_and_replayed_cut_anywhere() {
    let reel = Reel::default();
    let tape = Tape::new(reel.clone(), TapeSize(1 << 20));
    let (ours, theirs) = tokio::io::duplex(4096);
    let (input, output) = tokio::io::split(ours);
    let wiring = Wiring::new(input, output).taped(tape.clone());
    let peer = Peer::start(wiring, Arc::new(echo().farewell("bye")), CONFIG);
    let (input, output) = tokio::io::split(theirs);
    let mut remote = super::Remote { input: tokio::io::BufReader::new(input), output };
    remote.send(r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":"é"}"#).await;
    remote.read().await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    tokio::io::AsyncWriteExt::write_all(&mut remote.output, b"\xFF?\n").await.unwrap();
    remote.read().await;
    peer.close().await;
    assert_eq!(tape.summary().entries, 5);

    let text = String::from_utf8(reel.0.lock().unwrap().clone()).unwrap();
    let entries = read_tape(&text).unwrap();
    let seen: Vec<_> = entries.iter().map(|entry| (entry.dir, entry.t_us)).collect();
    let (incoming, outgoing) = (Direction::In, Direction::Out);
    // The paused clock moved once, by five milliseconds.
    assert_eq!(seen, [(incoming, 0), (outgoing, 0), (incoming, 5000), (outgoing, 5000), (outgoing, 5000)]);
    assert_eq!(entries[2].said, Said::Bytes(b"\xFF?\n".to_vec()));
    assert_eq!(entries[4].said, Said::Line(r#"{"jsonrpc":"2.0","method":"bye"}"#.into()));
    let lines =
        every_split(&stream(&entries, Direction::In), |chunks| decode_chunks(CONFIG.lines, chunks)).unwrap();
    assert_eq!(lines.len(), 2);
}
