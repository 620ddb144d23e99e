//! Slow and hostile readers: memory stays within the limits, priorities hold, and a stall has its name.

use std::time::Duration;

use outrigger_wire::peer::{CallError, Deadline, End, Lane, NotifyError, Offered, OutboxLimits, PeerConfig};
use tokio::time::Instant;

use super::{CONFIG, Script, echo, pair, peer_with_pipe, raw};

#[tokio::test(start_paused = true)]
async fn a_sender_waits_when_the_other_side_reads_slowly_and_nothing_is_lost() {
    let outbox = OutboxLimits { bytes: 1000, ..CONFIG.outbox };
    let (peer, mut remote) = peer_with_pipe(Script::new(), PeerConfig { outbox, ..CONFIG }, 100);
    let sender = tokio::spawn({
        let peer = peer.clone();
        async move {
            for n in 0..2000 {
                peer.notify(Lane::Action, "n", Some(&raw(&n.to_string()))).await.unwrap();
            }
        }
    });
    for n in 0..2000 {
        assert_eq!(remote.read().await, format!(r#"{{"jsonrpc":"2.0","method":"n","params":{n}}}"#));
        assert!(peer.counts().outbox_bytes <= 1100, "{} bytes wait", peer.counts().outbox_bytes);
    }
    sender.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_longer_than_the_outbox_passes_alone() {
    let outbox = OutboxLimits { bytes: 50, ..CONFIG.outbox };
    let (peer, mut remote) = peer_with_pipe(Script::new(), PeerConfig { outbox, ..CONFIG }, 16);
    let long = raw(&format!("\"{}\"", "x".repeat(500)));
    let (sent, line) = tokio::join!(peer.notify(Lane::Action, "n", Some(&long)), remote.read());
    sent.unwrap();
    assert!(line.contains(long.get()));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_requests_is_not_read_while_its_answers_are_not() {
    let outbox = OutboxLimits { reply_bytes: 4000, ..CONFIG.outbox };
    let big = |_| Ok(raw(&format!("\"{}\"", "x".repeat(1000))));
    let (peer, mut remote) =
        peer_with_pipe(Script::new().now("big", big), PeerConfig { outbox, ..CONFIG }, 512);
    // More than the two pipes, the chunk buffer and the outbox hold together; the write must come to a halt.
    let flood = async {
        for id in 1..=5000 {
            remote.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"big"}}"#)).await;
        }
    };
    let halted = tokio::time::timeout(Duration::from_secs(5), flood).await;
    assert!(halted.is_err(), "the peer must stop reading");
    let counts = peer.counts();
    assert!(counts.outbox_bytes <= 4000 + 1100, "{} bytes of answers wait", counts.outbox_bytes);
    assert!(counts.lines_in < 100, "{} requests were read", counts.lines_in);
}

#[tokio::test(start_paused = true)]
async fn events_are_dropped_oldest_first_and_counted_exactly() {
    let (peer, mut remote) = peer_with_pipe(Script::new(), CONFIG, 1);
    // The writer takes the first one and is stuck with it, because nobody reads.
    assert_eq!(peer.offer("e", Some(&raw("0"))), Ok(Offered::Queued));
    tokio::time::sleep(Duration::from_millis(1)).await;
    for n in 1..=100 {
        let expect = if n <= 16 { Offered::Queued } else { Offered::Displaced(1) };
        assert_eq!(peer.offer("e", Some(&raw(&n.to_string()))), Ok(expect));
    }
    assert_eq!(peer.counts().events_dropped, 84);
    for n in std::iter::once(0).chain(85..=100) {
        assert_eq!(remote.read().await, format!(r#"{{"jsonrpc":"2.0","method":"e","params":{n}}}"#));
    }
}

#[tokio::test(start_paused = true)]
async fn answers_overtake_actions_and_actions_overtake_events() {
    let (peer, mut remote) = peer_with_pipe(echo(), CONFIG, 1);
    // The writer takes this one first and is stuck with it, because nobody reads yet.
    peer.notify(Lane::Event, "first", None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    peer.notify(Lane::Event, "event", None).await.unwrap();
    peer.notify(Lane::Action, "action", None).await.unwrap();
    peer.notify(Lane::Control, "control", None).await.unwrap();
    remote.send(r#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#).await;
    let mut order = Vec::new();
    for _ in 0..5 {
        let line = remote.read().await;
        let words = ["first", "event", "action", "control", "result"];
        order.push(words.into_iter().find(|word| line.contains(word)).unwrap());
    }
    assert_eq!(order, ["first", "control", "result", "action", "event"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_reads_nothing_for_the_stall_time_is_given_up() {
    let (peer, remote) = peer_with_pipe(Script::new(), CONFIG, 64);
    let start = Instant::now();
    let long = raw(&format!("\"{}\"", "x".repeat(1000)));
    let call = peer.call("m", Some(&long), Deadline::Never).await;
    assert_eq!(start.elapsed(), CONFIG.write_stall);
    let end = peer.ended().await;
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":}"#.len() + 1002 + 1;
    assert_eq!(end, End::WriteStall { after: CONFIG.write_stall, queued: line - 64 });
    assert_eq!(call.unwrap_err(), CallError::Ended { method: "m".into(), end: end.clone() });
    let notify = peer.notify(Lane::Action, "n", None).await;
    assert_eq!(notify.unwrap_err(), NotifyError::Ended { method: "n".into(), end });
    drop(remote);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_reads_a_little_now_and_then_is_not_given_up() {
    let (peer, mut remote) = peer_with_pipe(Script::new(), CONFIG, 64);
    let long = raw(&format!("\"{}\"", "x".repeat(1000)));
    peer.notify(Lane::Action, "m", Some(&long)).await.unwrap();
    let mut got = 0;
    while got < 1000 {
        tokio::time::sleep(CONFIG.write_stall - Duration::from_millis(1)).await;
        let mut some = [0; 50];
        let more = tokio::io::AsyncReadExt::read(remote.input.get_mut(), &mut some).await.unwrap();
        assert!(more > 0, "given up after {got} bytes");
        got += more;
    }
    assert_eq!(peer.offer("still here", None), Ok(Offered::Queued));
}

/// On many threads, over a pipe that is always full: calls both ways, answered now and later, a third of them dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_left_over_when_everything_happens_at_once() {
    let script = || {
        echo().later("later", |call| async move {
            tokio::task::yield_now().await;
            Ok(call.params.unwrap_or_else(|| raw("null")))
        })
    };
    let outbox = OutboxLimits { bytes: 2000, reply_bytes: 2000, ..CONFIG.outbox };
    let (left, right) = pair(script(), script(), PeerConfig { outbox, max_calls: 50, ..CONFIG }, 300);
    let tasks: Vec<_> = (0..8u32)
        .map(|task| {
            let peer = if task % 2 == 0 { left.clone() } else { right.clone() };
            tokio::spawn(async move {
                for n in 0..500u32 {
                    let params = raw(&format!("[{task},{n}]"));
                    let method = if n % 2 == 0 { "echo" } else { "later" };
                    let call = peer.call(method, Some(&params), Deadline::After(Duration::from_secs(60)));
                    if n % 3 == 0 {
                        tokio::select! {
                            biased;
                            answer = call => assert_eq!(answer.unwrap().get(), params.get()),
                            () = tokio::task::yield_now() => {}
                        }
                    } else {
                        assert_eq!(call.await.unwrap().get(), params.get());
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for peer in [&left, &right] {
        // Answered only after everything before it, cancellations included, has been dealt with.
        peer.call("echo", None, Deadline::Never).await.unwrap();
        let counts = peer.counts();
        assert_eq!((counts.calls_open, counts.unknown_replies, counts.refused), (0, 0, 0));
    }
    assert_eq!(left.close().await, End::Closed);
    assert_eq!(right.ended().await, End::RemoteClosed);
}
