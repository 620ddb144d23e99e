//! Who hears what, from when on and until when; and how fast the network gets rid of its news.

use std::time::Instant;

use super::super::{Bus, NoLedger};
use super::*;
use crate::host::channel::test_limits;
use crate::mesh::{Address, Change, DeliveryState, Direction, MeshEvent, Message, MessageHash, Method};
use crate::protocol::{ExtensionId, V1_0};

fn online(about: u64) -> MeshEvent {
    let mut address = [0; 16];
    address[..8].copy_from_slice(&about.to_be_bytes());
    MeshEvent::Online { address: Address(address), hops: Some(1), name: Some("Ada".into()) }
}

fn received() -> MeshEvent {
    MeshEvent::Received(Message {
        hash: MessageHash([1; 32]),
        source: Address([2; 16]),
        destination: Address([3; 16]),
        direction: Direction::Incoming,
        state: DeliveryState::Delivered,
        method: Method::Direct,
        title: String::new(),
        content: "hello".into(),
        lossy: false,
        attachments: Vec::new(),
        reply_to: None,
        timestamp_ms: 1,
        rssi: None,
        snr: None,
        quality: None,
    })
}

fn contact() -> MeshEvent {
    MeshEvent::Contact { id: 1, change: Change::Added }
}

fn bus_with(subscription: &Arc<Subscription>) -> Bus {
    let bus = Bus::new(Arc::new(NoLedger));
    bus.join(ExtensionId::new("org.example.ear").expect("it is an id"), Arc::clone(subscription));
    bus
}

fn subscription() -> Arc<Subscription> {
    Arc::new(Subscription::new(&test_limits(65_536)))
}

/// What waits, as numbers and topics.
async fn waiting(outbox: &Outbox) -> Vec<(u64, Topic)> {
    let mut all = Vec::new();
    while outbox.tally().waiting > 0 {
        let delivery = outbox.next().await.expect("it is open");
        outbox.acknowledge();
        all.push((delivery.seq, delivery.event.topic));
    }
    all
}

use Permission::{ContactsRead, EventsSubscribe, MessagesRead};

#[tokio::test]
async fn events_before_ready_wait_and_are_delivered_after_it() {
    let subscription = subscription();
    let bus = bus_with(&subscription);
    bus.offer(&online(0));
    let outbox = subscription.begin(Topic::ALL, &[EventsSubscribe, MessagesRead]);
    bus.offer(&contact());
    bus.offer(&received());
    bus.offer(&online(1));
    assert_eq!(
        outbox.tally().offered,
        2,
        "what came before the session and what it may not hear is not counted"
    );
    subscription.ready(V1_1);
    assert_eq!(waiting(&outbox).await, [(1, Topic::MessageReceived), (2, Topic::PeerOnline)]);
}

#[tokio::test]
async fn a_session_of_the_older_version_never_hears_of_newer_topics() {
    let subscription = subscription();
    let bus = bus_with(&subscription);
    let outbox = subscription.begin(Topic::ALL, &[EventsSubscribe, MessagesRead, ContactsRead]);
    bus.offer(&contact());
    bus.offer(&received());
    subscription.ready(V1_0);
    bus.offer(&contact());
    bus.offer(&online(1));
    assert_eq!(waiting(&outbox).await, [(1, Topic::MessageReceived), (2, Topic::PeerOnline)]);
    assert_eq!(subscription.topics(), [Topic::MessageReceived, Topic::MessageSent, Topic::PeerOnline]);
}

#[tokio::test]
async fn what_is_revoked_is_not_delivered_even_if_it_waits() {
    let subscription = subscription();
    let bus = bus_with(&subscription);
    let outbox = subscription.begin(Topic::ALL, &[EventsSubscribe, MessagesRead]);
    bus.offer(&received());
    bus.offer(&online(1));
    subscription.permit(&[EventsSubscribe]);
    bus.offer(&received());
    subscription.ready(V1_1);
    subscription.permit(&[EventsSubscribe, MessagesRead]);
    bus.offer(&received());
    let all = waiting(&outbox).await;
    assert_eq!(all, [(2, Topic::PeerOnline), (3, Topic::MessageReceived)]);
    subscription.permit(&[]);
    bus.offer(&online(2));
    assert_eq!((outbox.tally().offered, subscription.topics()), (3, Vec::new()), "it hears nothing at all");
}

#[tokio::test]
async fn a_name_that_may_no_longer_be_known_is_not_delivered_either() {
    let subscription = subscription();
    let bus = bus_with(&subscription);
    let outbox = subscription.begin(Topic::ALL, &[EventsSubscribe, ContactsRead]);
    subscription.ready(V1_1);
    bus.offer(&online(1));
    subscription.permit(&[EventsSubscribe]);
    bus.offer(&online(2));
    let delivery = outbox.next().await.expect("it is open");
    assert!(!delivery.event.data.get().contains("Ada"), "{}", delivery.event.data);
    assert_eq!(delivery.dropped.map(|dropped| dropped.count), Some(1));
}

#[tokio::test]
async fn topics_come_and_go_within_a_session_and_a_new_one_begins_anew() {
    let subscription = subscription();
    let bus = bus_with(&subscription);
    let first = subscription.begin(&[Topic::PeerOnline], &[EventsSubscribe, MessagesRead]);
    subscription.ready(V1_1);
    bus.offer(&received());
    subscription.add(&[Topic::MessageReceived]);
    bus.offer(&received());
    subscription.remove(&[Topic::PeerOnline]);
    bus.offer(&online(1));
    assert_eq!(waiting(&first).await, [(1, Topic::MessageReceived)]);
    let second = subscription.begin(&[Topic::PeerOnline], &[EventsSubscribe]);
    assert!(first.next().await.is_none(), "the old session is over");
    bus.offer(&online(1));
    subscription.ready(V1_1);
    assert_eq!(waiting(&second).await, [(1, Topic::PeerOnline)]);
    subscription.end();
    bus.offer(&online(1));
    assert_eq!(second.tally().offered, 1);
    assert!(subscription.topics().is_empty() && subscription.outbox().is_none());
}

#[tokio::test]
async fn an_extension_that_waits_for_an_event_is_told_when_one_comes() {
    let subscription = subscription();
    let bus = bus_with(&subscription);
    let outbox = subscription.begin(&[Topic::PeerOnline], &[EventsSubscribe]);
    let waiter = tokio::spawn({
        let outbox = Arc::clone(&outbox);
        async move { outbox.arrived().await }
    });
    tokio::task::yield_now().await;
    bus.offer(&online(1));
    waiter.await.expect("it is woken");
}

#[test]
fn an_extension_that_left_the_bus_is_not_told() {
    let subscription = subscription();
    let bus = bus_with(&subscription);
    let outbox = subscription.begin(Topic::ALL, &[EventsSubscribe]);
    bus.offer(&online(1));
    bus.leave(&ExtensionId::new("org.example.ear").expect("it is an id"));
    bus.offer(&online(2));
    assert_eq!(outbox.tally().offered, 1);
}

/// A hundred thousand events a second must leave the core nearly all of its time: ten microseconds each would be all of it.
#[test]
fn a_storm_does_not_keep_the_network_waiting() {
    const STORM: u64 = 100_000;
    const BATCHES: u64 = 20;
    let subscription = subscription();
    let bus = bus_with(&subscription);
    let outbox = subscription.begin(Topic::ALL, &[EventsSubscribe, MessagesRead]);
    subscription.ready(V1_1);
    let mut each = Vec::new();
    for batch in 0..BATCHES {
        let begun = Instant::now();
        for about in 0..STORM / BATCHES {
            bus.offer(&online((batch + about) % 1000));
        }
        each.push(begun.elapsed().as_nanos() / u128::from(STORM / BATCHES));
    }
    let tally = outbox.tally();
    assert_eq!(tally.offered, STORM);
    assert_eq!(tally.offered, tally.dropped + tally.coalesced + tally.waiting);
    // Other programs run on the same machine and take their share of some batches, so the quickest one counts.
    let quickest = each.iter().min().copied().unwrap_or_default();
    assert!(quickest < 10_000, "an offer took {quickest} ns at best, by batch: {each:?}");
}
