//! The laws of the queue, and each of its bounds at the limit and one past it.

use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { events: 4, bytes: 40, window: 2 };

fn raw(bytes: usize) -> Arc<RawValue> {
    let text = format!("\"{}\"", "x".repeat(bytes - 2));
    RawValue::from_string(text).expect("a string is JSON").into()
}

fn event(topic: Topic, about: Option<u8>, bytes: usize) -> Event {
    Event { topic, about: about.map(|byte| Address([byte; 16])), time_ms: 0, data: raw(bytes) }
}

fn message() -> Event {
    event(Topic::MessageReceived, None, 4)
}

fn online(about: u8) -> Event {
    event(Topic::PeerOnline, Some(about), 4)
}

/// How many were lost, the first and the last of them.
type Lost = Option<(u64, u64, u64)>;

/// Everything that can be delivered, as its numbers and what was lost before each.
fn drain(queue: &mut Queue) -> Vec<(u64, Lost)> {
    let mut all = Vec::new();
    while let Some(delivery) = queue.deliver() {
        queue.acknowledge();
        let lost = delivery.dropped.map(|lost| (lost.count, lost.from_seq, lost.to_seq));
        all.push((delivery.seq, lost));
    }
    all
}

#[test]
fn events_are_delivered_in_order_whatever_their_class() {
    let mut queue = Queue::new(BOUNDS);
    for event in [message(), online(1), message(), online(2)] {
        assert_eq!(queue.offer(event), Loss::default());
    }
    assert_eq!(drain(&mut queue), [(1, None), (2, None), (3, None), (4, None)]);
}

#[test]
fn one_past_the_limit_drops_the_oldest_of_its_class_and_says_so() {
    let mut queue = Queue::new(BOUNDS);
    for event in [online(1), message(), message(), message()] {
        assert_eq!(queue.offer(event), Loss::default(), "four may wait");
    }
    assert_eq!(queue.offer(message()), Loss { dropped: 1, coalesced: 0 });
    assert_eq!(drain(&mut queue), [(1, Some((1, 2, 2))), (3, None), (4, None), (5, None)]);
}

#[test]
fn an_event_whose_class_has_nothing_to_give_goes_itself() {
    let mut queue = Queue::new(BOUNDS);
    for _ in 0..4 {
        queue.offer(message());
    }
    assert_eq!(
        queue.offer(online(1)),
        Loss { dropped: 1, coalesced: 0 },
        "news about peers never displace messages"
    );
    assert_eq!(drain(&mut queue), [(1, Some((1, 5, 5))), (2, None), (3, None), (4, None)]);
}

#[test]
fn newer_news_about_a_peer_replace_older_ones_only_when_there_is_no_room() {
    let mut queue = Queue::new(BOUNDS);
    for event in [online(1), online(1), online(2), message()] {
        assert_eq!(queue.offer(event), Loss::default());
    }
    let offline = event(Topic::PeerOffline, Some(2), 4);
    assert_eq!(queue.offer(offline), Loss { dropped: 0, coalesced: 1 });
    assert_eq!(drain(&mut queue), [(1, None), (2, None), (4, None), (5, None)], "nothing was lost");
    let tally = queue.tally();
    assert_eq!((tally.offered, tally.delivered, tally.coalesced), (5, 4, 1));
}

#[test]
fn bytes_count_too_at_the_limit_and_one_past_it() {
    let mut queue = Queue::new(BOUNDS);
    queue.offer(event(Topic::MessageReceived, None, 20));
    assert_eq!(queue.offer(event(Topic::MessageReceived, None, 20)), Loss::default(), "forty bytes may wait");
    assert_eq!(queue.offer(event(Topic::MessageSent, None, 3)), Loss { dropped: 1, coalesced: 0 });
    assert_eq!(queue.tally().waiting_bytes, 23);
    assert_eq!(
        queue.offer(event(Topic::MessageSent, None, 40)).dropped,
        2,
        "a large one takes the place of many"
    );
    assert_eq!(
        queue.offer(event(Topic::MessageSent, None, 41)).dropped,
        1,
        "one that never fits goes itself"
    );
    assert_eq!(drain(&mut queue), [(4, Some((4, 1, 5)))]);
}

#[test]
fn the_window_is_shut_until_something_is_acknowledged() {
    let mut queue = Queue::new(BOUNDS);
    for _ in 0..3 {
        queue.offer(message());
    }
    assert!(queue.deliver().is_some() && queue.deliver().is_some());
    assert!(queue.deliver().is_none(), "two may be on their way");
    queue.acknowledge();
    assert_eq!(queue.deliver().map(|delivery| delivery.seq), Some(3));
    queue.offer(message());
    queue.set_window(1);
    queue.acknowledge();
    assert!(queue.deliver().is_none(), "one is still on its way");
    queue.acknowledge();
    assert!(queue.deliver().is_some());
}

#[test]
fn what_is_withdrawn_is_never_delivered_and_counts_as_dropped() {
    let mut queue = Queue::new(BOUNDS);
    for event in [message(), online(1), message()] {
        queue.offer(event);
    }
    queue.withdraw(|topic| topic == Topic::MessageReceived);
    assert_eq!(drain(&mut queue), [(2, Some((2, 1, 3)))]);
}

#[test]
fn what_is_restricted_before_the_first_delivery_was_never_there() {
    let mut queue = Queue::new(BOUNDS);
    let newer = || event(Topic::MessageState, None, 4);
    for event in [newer(), message(), newer(), online(1)] {
        queue.offer(event);
    }
    queue.restrict(|topic| topic != Topic::MessageState);
    queue.offer(message());
    assert_eq!(drain(&mut queue), [(1, None), (2, None), (3, None)]);
    assert_eq!(queue.tally().offered, 3);
}

#[test]
fn a_restriction_keeps_what_was_lost_before() {
    let mut queue = Queue::new(BOUNDS);
    for _ in 0..6 {
        queue.offer(message());
    }
    queue.restrict(|_| true);
    assert_eq!(drain(&mut queue), [(3, Some((2, 1, 2))), (4, None), (5, None), (6, None)]);
}

#[test]
fn after_a_long_rest_only_the_newest_about_each_peer_is_told() {
    let mut queue = Queue::new(Bounds { events: 8, ..BOUNDS });
    for event in [online(1), message(), online(2), online(1), online(1)] {
        queue.offer(event);
    }
    queue.coalesce();
    assert_eq!(drain(&mut queue), [(2, None), (3, None), (5, None)]);
    assert_eq!(queue.tally().coalesced, 2);
}

#[derive(Clone, Debug)]
enum Step {
    Offer(Topic, u8, usize),
    Next,
    Acknowledge,
    Withdraw(Topic),
    Coalesce,
    Window(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let topic = || prop::sample::select(Topic::ALL);
    let step = prop_oneof![
        8 => (topic(), 0u8..4, 2usize..50).prop_map(|(topic, about, bytes)| Step::Offer(topic, about, bytes)),
        3 => Just(Step::Next),
        2 => Just(Step::Acknowledge),
        1 => topic().prop_map(Step::Withdraw),
        1 => Just(Step::Coalesce),
        1 => (0usize..4).prop_map(Step::Window),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    /// The laws: nothing is lost without a trace, nothing overtakes, and no bound is ever passed.
    #[test]
    fn every_event_is_accounted_for_and_in_order(
        steps in steps(), events in 0usize..6, bytes in 0usize..100, window in 0usize..4,
    ) {
        let mut queue = Queue::new(Bounds { events, bytes, window });
        let mut window = window;
        let mut last = 0;
        let mut told = 0;
        let mut offered = 0;
        for step in steps {
            let before = queue.tally();
            match step {
                Step::Offer(topic, about, size) => {
                    let about = (topic.class() == Class::Peer).then_some(about);
                    let loss = queue.offer(event(topic, about, size));
                    offered += 1;
                    let now = queue.tally();
                    prop_assert_eq!(now.dropped - before.dropped, loss.dropped);
                    prop_assert_eq!(now.coalesced - before.coalesced, loss.coalesced);
                }
                Step::Next => match queue.deliver() {
                    Some(delivery) => {
                        prop_assert!(before.in_flight < window.max(1));
                        prop_assert!(delivery.seq > last, "{} after {last}", delivery.seq);
                        last = delivery.seq;
                        if let Some(lost) = delivery.dropped {
                            prop_assert!(lost.count > 0 && lost.from_seq <= lost.to_seq);
                            prop_assert!(lost.count <= lost.to_seq - lost.from_seq + 1);
                            prop_assert!(lost.to_seq <= offered);
                            told += lost.count;
                        }
                        // All that were lost so far have been told, and none twice.
                        prop_assert_eq!(told, queue.tally().dropped);
                    }
                    None => prop_assert!(before.waiting == 0 || before.in_flight >= window.max(1)),
                },
                Step::Acknowledge => queue.acknowledge(),
                Step::Withdraw(topic) => queue.withdraw(|other| other == topic),
                Step::Coalesce => queue.coalesce(),
                Step::Window(to) => {
                    window = to;
                    queue.set_window(to);
                }
            }
            let Tally { offered: all, delivered, dropped, coalesced, waiting, waiting_bytes, .. } = queue.tally();
            prop_assert_eq!(all, offered);
            prop_assert_eq!(all, delivered + dropped + coalesced + waiting);
            prop_assert!(waiting <= events as u64 && waiting_bytes <= bytes);
            prop_assert_eq!(waiting == 0, queue.peers.is_empty() && queue.oldest().is_none());
            let sizes: usize = queue.in_order().iter().map(|(_, at)| queue.waiting[*at].event.data.get().len()).sum();
            prop_assert_eq!(sizes, waiting_bytes);
        }
    }

    /// Before anything was delivered, a restriction leaves numbers without gaps beyond what was coalesced or lost.
    #[test]
    fn a_restriction_is_as_if_the_others_had_never_been(topics in prop::collection::vec(prop::sample::select(Topic::ALL), 0..20)) {
        let mut queue = Queue::new(Bounds { events: 100, bytes: 10_000, window: 1000 });
        let mut expected = 0;
        for topic in topics {
            queue.offer(event(topic, None, 4));
            expected += u64::from(topic != Topic::MessageState);
        }
        queue.restrict(|topic| topic != Topic::MessageState);
        let seqs: Vec<u64> = drain(&mut queue).into_iter().map(|(seq, _)| seq).collect();
        prop_assert_eq!(seqs, (1..=expected).collect::<Vec<_>>());
    }
}
