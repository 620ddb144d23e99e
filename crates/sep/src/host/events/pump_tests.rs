//! Events on their way: in order, in the window, and behind everything that is more urgent.

use outrigger_supervise::state::PingSeq;
use serde_json::{Value, json};

use super::super::{Bounds, Event, Topic};
use super::*;
use crate::host::channel::conversation::tests::{Remote, conversation};
use crate::mesh::Address;
use crate::protocol::ExitKind;

const ACK: Duration = Duration::from_secs(10);

fn event(about: u8) -> Event {
    let data = to_raw_value(&json!({"n": about})).expect("it is JSON").into();
    Event { topic: Topic::PeerOnline, about: Some(Address([about; 16])), time_ms: 5, data }
}

struct Stage {
    conversation: Conversation,
    remote: Remote,
    outbox: Arc<Outbox>,
    pump: tokio::task::JoinHandle<Dry>,
}

fn stage(events: usize, window: usize, pipe: usize) -> Stage {
    let (conversation, remote) = conversation(4096, pipe);
    let outbox = Arc::new(Outbox::new(Bounds { events, bytes: 1 << 16, window }));
    let pump = tokio::spawn(Pump { ack: ACK }.run(conversation.clone(), Arc::clone(&outbox), |_| ()));
    Stage { conversation, remote, outbox, pump }
}

async fn nothing_comes(remote: &mut Remote) -> bool {
    tokio::time::timeout(Duration::from_secs(1), remote.hear()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn events_arrive_in_order_as_many_as_the_window_allows() {
    let Stage { mut remote, outbox, pump, .. } = stage(64, 2, 1 << 16);
    for about in 1..=5 {
        outbox.offer(event(about));
    }
    assert!(nothing_comes(&mut remote).await, "the session is not ready");
    outbox.open();
    let first = remote.hear().await;
    assert_eq!(first["params"], json!({"seq": 1, "topic": "peer.online", "timeMs": 5, "data": {"n": 1}}));
    let second = remote.hear().await;
    assert_eq!(second["params"]["seq"], 2);
    assert!(nothing_comes(&mut remote).await, "two may be on their way");
    // Acknowledged out of order: what counts is how many are on their way.
    remote.answer(&second, json!({})).await;
    assert_eq!(remote.hear().await["params"]["seq"], 3);
    remote
        .say(&json!({"jsonrpc": "2.0", "id": first["id"], "error": {"code": 1, "message": "no"}}).to_string())
        .await;
    assert_eq!(remote.hear().await["params"]["seq"], 4, "an error is an acknowledgement");
    outbox.close();
    assert_eq!(pump.await.expect("no panic"), Dry::Closed);
    assert_eq!(outbox.tally().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_dropped_is_said_with_the_next_event() {
    let Stage { mut remote, outbox, .. } = stage(2, 1, 1 << 16);
    for about in 1..=5 {
        outbox.offer(event(about));
    }
    outbox.open();
    let first = remote.hear().await;
    assert_eq!(first["params"]["seq"], 4);
    assert_eq!(first["params"]["dropped"], json!({"count": 3, "fromSeq": 1, "toSeq": 3}));
    remote.answer(&first, json!({})).await;
    let second = remote.hear().await;
    assert_eq!((&second["params"]["seq"], &second["params"]["dropped"]), (&json!(5), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_late_acknowledgement_is_counted_and_keeps_the_window_shut() {
    let Stage { conversation, mut remote, outbox, .. } = stage(64, 1, 1 << 16);
    outbox.open();
    for about in 1..=2 {
        outbox.offer(event(about));
    }
    let first = remote.hear().await;
    assert_eq!(outbox.late(), 0);
    let mut overdue = conversation.overdue();
    overdue.changed().await.expect("it lives");
    assert_eq!(overdue.borrow().calls, 1, "people are told after three seconds");
    tokio::time::sleep(ACK).await;
    assert_eq!(outbox.late(), 1);
    assert!(nothing_comes(&mut remote).await, "it is not given up, and nothing is sent on top of it");
    remote.answer(&first, json!({})).await;
    assert_eq!(remote.hear().await["params"]["seq"], 2);
    assert_eq!(overdue.borrow_and_update().calls, 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_about_health_overtakes_events_that_are_not_read() {
    let Stage { conversation, mut remote, outbox, .. } = stage(64, 16, 64);
    outbox.open();
    for about in 1..=16 {
        outbox.offer(event(about));
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let health = tokio::spawn({
        let conversation = conversation.clone();
        async move { conversation.health(PingSeq(1)).await }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut before = 0;
    let call = loop {
        let call = remote.hear().await;
        if call["method"] == "sep.health" {
            break call;
        }
        before += 1;
    };
    assert!(before < 16, "it came after {before} events");
    remote.answer(&call, json!({"status": "ok", "seq": 1})).await;
    assert!(health.await.expect("no panic").is_ok());
}

#[tokio::test(start_paused = true)]
async fn while_the_extension_rests_events_wait_and_then_only_the_newest_are_told() {
    let Stage { mut remote, outbox, .. } = stage(64, 4, 1 << 16);
    outbox.open();
    outbox.hold();
    for about in [1, 2, 1, 1] {
        outbox.offer(event(about));
    }
    assert!(nothing_comes(&mut remote).await);
    outbox.resume();
    assert_eq!(remote.hear().await["params"]["seq"], 2);
    assert_eq!(remote.hear().await["params"]["seq"], 4);
    assert!(nothing_comes(&mut remote).await);
}

#[tokio::test(start_paused = true)]
async fn the_pump_ends_with_the_conversation() {
    let Stage { remote, outbox, pump, .. } = stage(64, 4, 1 << 16);
    outbox.open();
    outbox.offer(event(1));
    drop(remote);
    let Dry::Lost(CallFailure::Ended { end, .. }) = pump.await.expect("no panic") else {
        panic!("the conversation is over")
    };
    assert_eq!(end.kind, ExitKind::ChannelLost);
    assert_eq!(outbox.tally().in_flight, 0);
}
