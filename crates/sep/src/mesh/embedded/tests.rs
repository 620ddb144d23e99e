//! Two nodes in one process.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;

use super::*;
use crate::mesh::{Change, DeliveryState, Direction, MeshEvent, Method, Position, Refused};

/// Longer than any test should take; whoever waits this long has found a bug.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with a mesh in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("mesh.db")
    }

    fn open(&self, node: &str) -> Listening {
        self.open_with(EmbeddedOptions::named(node))
    }

    fn open_with(&self, options: EmbeddedOptions) -> Listening {
        let node = Embedded::open(self.path(), options).unwrap();
        let (ear, heard) = sync_channel(100_000);
        node.listen(Arc::new(Listener(Mutex::new(ear))));
        Listening { node, heard }
    }
}

struct Listener(Mutex<SyncSender<MeshEvent>>);

impl Ear for Listener {
    fn hear(&self, event: &MeshEvent) {
        // A test that has seen enough does not listen any more.
        let _ = self.0.lock().unwrap().try_send(event.clone());
    }
}

struct Listening {
    node: Embedded,
    heard: Receiver<MeshEvent>,
}

impl Listening {
    fn address(&self) -> Address {
        self.node.own_address()
    }

    fn say(&self, to: Address, content: &str) -> Result<Sent, MeshError> {
        wait(self.node.send(outgoing(to, content)))
    }

    fn next(&self) -> MeshEvent {
        self.heard.recv_timeout(PATIENCE).expect("nothing more is heard")
    }

    /// The next event that is not about presence.
    fn next_news(&self) -> MeshEvent {
        loop {
            match self.next() {
                MeshEvent::Online { .. } | MeshEvent::Offline { .. } => {}
                event => return event,
            }
        }
    }

    fn until(&self, wanted: impl Fn(&MeshEvent) -> bool) -> MeshEvent {
        loop {
            let event = self.next();
            if wanted(&event) {
                return event;
            }
        }
    }

    fn until_online(&self, address: Address) {
        self.until(|event| matches!(event, MeshEvent::Online { address: who, .. } if *who == address));
    }

    /// The states that a message comes to, as they are told.
    fn states(&self, count: usize) -> Vec<DeliveryState> {
        let state = || loop {
            if let MeshEvent::State { state, .. } = self.next_news() {
                return state;
            }
        };
        (0..count).map(|_| state()).collect()
    }

    fn list(&self, query: MessageQuery) -> Vec<Message> {
        wait(self.node.messages(query)).unwrap()
    }
}

const ALL: MessageQuery = MessageQuery {
    peer: None,
    direction: None,
    since_ms: None,
    until_ms: None,
    after: None,
    limit: 1_000_000,
};

fn outgoing(to: Address, content: &str) -> Outgoing {
    Outgoing { destination: to, content: content.to_owned(), title: None, method: None, reply_to: None }
}

fn line(content: &str) -> Line {
    Line { title: String::new(), content: content.to_owned(), reply_to: None }
}

fn wait<T>(future: BoxFuture<T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn refused(result: Result<Sent, MeshError>) -> Refused {
    match result {
        Err(MeshError::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_message_to_a_node_that_is_online_arrives_and_its_sender_sees_every_step() {
    let place = Place::new();
    let (ann, bob) = (place.open("ann"), place.open("bob"));
    ann.until_online(bob.address());
    bob.until_online(ann.address());
    let sent = ann.say(bob.address(), "hello").unwrap();
    assert_eq!(sent.state, DeliveryState::Outbound);

    let MeshEvent::Sent(told) = ann.next_news() else { panic!("not told that it was sent") };
    assert_eq!((told.hash, told.state, told.content.as_str()), (sent.hash, DeliveryState::Outbound, "hello"));
    assert_eq!(ann.states(3), [DeliveryState::Sending, DeliveryState::Sent, DeliveryState::Delivered]);
    let MeshEvent::Received(got) = bob.next_news() else { panic!("not received") };
    let expected =
        Message { direction: Direction::Incoming, state: DeliveryState::Delivered, ..told.clone() };
    assert_eq!(got, expected);
    assert_eq!((got.source, got.destination, got.method), (ann.address(), bob.address(), Method::Direct));
    assert_eq!(bob.list(ALL), [got]);
    assert_eq!(ann.list(ALL), [Message { state: DeliveryState::Delivered, ..told }]);
}

#[test]
fn a_message_waits_for_a_node_that_is_away_and_arrives_in_order_when_it_comes_back() {
    let place = Place::new();
    let bob = place.open("bob");
    let address = bob.address();
    drop(bob);
    let ann = place.open("ann");
    for number in 0..200 {
        assert_eq!(ann.say(address, &number.to_string()).unwrap().state, DeliveryState::Outbound);
    }
    let bob = place.open("bob");
    assert_eq!(bob.address(), address, "a node keeps its identity");
    for number in 0..200 {
        let MeshEvent::Received(message) = bob.next_news() else { panic!("not received") };
        assert_eq!(message.content, number.to_string());
    }
    let delivered = || matches!(ann.next_news(), MeshEvent::State { state: DeliveryState::Delivered, .. });
    let mut count = 0;
    while count < 200 {
        count += usize::from(delivered());
    }
    assert!(ann.list(ALL).iter().all(|message| message.state == DeliveryState::Delivered));
}

#[test]
fn what_arrived_before_anybody_listened_is_told_to_the_first_ear_and_never_again() {
    let place = Place::new();
    let bob = Embedded::open(place.path(), EmbeddedOptions::named("bob")).unwrap();
    let ann = place.open("ann");
    ann.say(bob.own_address(), "early").unwrap();
    assert_eq!(ann.states(3)[2], DeliveryState::Delivered);
    drop(bob);
    let bob = place.open("bob");
    assert!(matches!(bob.next_news(), MeshEvent::Received(message) if message.content == "early"));
    drop(bob);
    let bob = place.open("bob");
    ann.say(bob.address(), "late").unwrap();
    assert!(matches!(bob.next_news(), MeshEvent::Received(message) if message.content == "late"));
}

#[test]
fn messages_that_cannot_go_are_refused_with_the_reason() {
    let place = Place::new();
    let mut options = EmbeddedOptions::named("ann");
    options.bounds.waiting = 2;
    let ann = place.open_with(options);
    let away = place.open("away");
    let away_at = away.address();
    drop(away);

    assert_eq!(refused(ann.say(Address([9; 16]), "x")), Refused::NoPath);
    assert_eq!(refused(ann.say(ann.address(), "x")), Refused::InvalidDestination);
    ann.say(away_at, "one").unwrap();
    ann.say(away_at, "two").unwrap();
    assert_eq!(refused(ann.say(away_at, "three")), Refused::QueueFull);
    wait(ann.node.block(away_at)).unwrap();
    assert_eq!(wait(ann.node.blocked()).unwrap(), [away_at]);
    assert_eq!(refused(ann.say(away_at, "x")), Refused::BlockedDestination);
    wait(ann.node.unblock(away_at)).unwrap();
    assert_eq!(refused(ann.say(away_at, "x")), Refused::QueueFull);
    assert_eq!(ann.list(ALL).len(), 2, "what was refused is not kept");
}

#[test]
fn a_receiver_that_blocks_the_sender_rejects_the_message() {
    let place = Place::new();
    let (ann, bob) = (place.open("ann"), place.open("bob"));
    wait(bob.node.block(ann.address())).unwrap();
    ann.say(bob.address(), "psst").unwrap();
    assert_eq!(ann.states(3).last(), Some(&DeliveryState::Rejected));
    assert_eq!(bob.list(ALL), []);
}

#[test]
fn everybody_sees_who_comes_and_who_goes() {
    let place = Place::new();
    let ann = place.open("ann");
    let bob = place.open("bob");
    let address = bob.address();
    let came = ann.next();
    assert_eq!(came, MeshEvent::Online { address, hops: Some(0), name: Some("bob".to_owned()) });
    let standing = |node: &Listening| -> Vec<(String, Standing)> {
        wait(node.node.nodes()).unwrap().into_iter().map(|node| (node.name, node.standing)).collect()
    };
    assert_eq!(standing(&ann), [("ann".to_owned(), Standing::Online), ("bob".to_owned(), Standing::Online)]);
    drop(bob);
    assert_eq!(ann.next(), MeshEvent::Offline { address });
    assert_eq!(standing(&ann)[1], ("bob".to_owned(), Standing::Offline));
}

#[test]
fn contacts_are_added_found_changed_and_removed_and_each_change_is_told() {
    let place = Place::new();
    let ann = place.open("ann");
    let entry = |name: &str, byte| Entry {
        name: name.to_owned(),
        identity: Address([byte; 16]),
        lxmf: Some(Address([byte + 1; 16])),
        lxst: None,
    };
    let add = |entry| wait(ann.node.contact_add(entry));
    let ids: Vec<u64> =
        [entry("Ärger", 0x10), entry("Zoë 100%", 0x20), entry("bob_", 0x30)].map(|e| add(e).unwrap()).into();
    let find = |text: Option<&str>, after, limit| -> Vec<String> {
        let query = ContactQuery { text: text.map(str::to_owned), after, limit };
        wait(ann.node.contacts(query)).unwrap().into_iter().map(|contact| contact.name).collect()
    };
    assert_eq!(find(None, None, 10), ["Ärger", "Zoë 100%", "bob_"]);
    assert_eq!(find(None, Some(ids[0]), 1), ["Zoë 100%"]);
    assert_eq!(find(Some("ärg"), None, 10), ["Ärger"]);
    assert_eq!(find(Some("ZOË"), None, 10), ["Zoë 100%"]);
    assert_eq!(find(Some("%"), None, 10), ["Zoë 100%"], "nothing is a pattern");
    assert_eq!(find(Some("2121"), None, 10), ["Zoë 100%"], "addresses are found too");
    assert_eq!(find(Some("nobody"), None, 10), [""; 0]);

    wait(ann.node.contact_update(ids[2], entry("Bob", 0x30))).unwrap();
    assert_eq!(find(Some("BOB"), None, 10), ["Bob"]);
    wait(ann.node.contact_remove(ids[2])).unwrap();
    assert_eq!(wait(ann.node.contact_remove(ids[2])), Err(ContactError::Unknown { id: ids[2] }));
    assert_eq!(wait(ann.node.contact_update(99, entry("x", 1))), Err(ContactError::Unknown { id: 99 }));
    assert!(matches!(add(entry("", 1)), Err(ContactError::Name { .. })));
    assert!(matches!(add(entry("a\nb", 1)), Err(ContactError::Name { .. })));
    assert!(matches!(add(entry(&"x".repeat(257), 1)), Err(ContactError::Name { .. })));
    let changes: Vec<(u64, Change)> = (0..5)
        .map(|_| match ann.next_news() {
            MeshEvent::Contact { id, change } => (id, change),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (ids[0], Change::Added),
        (ids[1], Change::Added),
        (ids[2], Change::Added),
        (ids[2], Change::Updated),
        (ids[2], Change::Removed),
    ];
    assert_eq!(changes, expected);
    let next = add(entry("new", 0x40)).unwrap();
    assert!(next > ids[2], "the number of one who is gone is not given to another");
}

#[test]
fn contacts_are_bounded() {
    let place = Place::new();
    let mut options = EmbeddedOptions::named("ann");
    options.bounds.contacts = 2;
    let ann = place.open_with(options);
    let entry = Entry { name: "x".to_owned(), identity: Address([1; 16]), lxmf: None, lxst: None };
    wait(ann.node.contact_add(entry.clone())).unwrap();
    wait(ann.node.contact_add(entry.clone())).unwrap();
    assert_eq!(wait(ann.node.contact_add(entry)), Err(ContactError::Full { limit: 2 }));
}

#[test]
fn a_contact_that_comes_online_is_called_what_we_call_them() {
    let place = Place::new();
    let bob = place.open("bob");
    let ann = place.open("ann");
    let entry =
        Entry { name: "Robert".to_owned(), identity: bob.address(), lxmf: Some(bob.address()), lxst: None };
    wait(ann.node.contact_add(entry)).unwrap();
    let address = bob.address();
    drop(bob);
    ann.until(|event| *event == MeshEvent::Offline { address });
    let bob = place.open("bob");
    ann.until(|event| {
        *event == MeshEvent::Online { address: bob.address(), hops: Some(0), name: Some("Robert".to_owned()) }
    });
}

#[test]
fn somebody_can_be_made_to_speak_and_takes_the_answer() {
    let place = Place::new();
    let ann = place.open("ann");
    let sent = wait(ann.node.incoming("carol", line("are you there?"))).unwrap();
    assert_eq!(sent.state, DeliveryState::Delivered);
    let MeshEvent::Received(question) = ann.next_news() else { panic!("not received") };
    assert_eq!((question.hash, question.content.as_str()), (sent.hash, "are you there?"));
    ann.say(question.source, "yes").unwrap();
    assert_eq!(ann.states(3), [DeliveryState::Sending, DeliveryState::Sent, DeliveryState::Delivered]);
    let carol = wait(ann.node.nodes()).unwrap().into_iter().find(|node| node.name == "carol").unwrap();
    assert_eq!((carol.address, carol.standing), (question.source, Standing::Puppet));

    let _bob = place.open("bob");
    let error = wait(ann.node.incoming("bob", line("x"))).unwrap_err();
    assert_eq!(error, SpeakError::Real { name: "bob".to_owned() });
    assert!(matches!(wait(ann.node.incoming("", line("x"))), Err(SpeakError::Name { .. })));
}

#[test]
fn only_the_newest_messages_are_kept_and_the_count_is_exact() {
    let place = Place::new();
    let mut options = EmbeddedOptions::named("ann");
    options.bounds.messages = 10;
    let ann = place.open_with(options.clone());
    for number in 0..10 {
        wait(ann.node.incoming("carol", line(&number.to_string()))).unwrap();
    }
    assert_eq!(ann.list(ALL).len(), 10);
    wait(ann.node.incoming("carol", line("10"))).unwrap();
    assert_eq!(ann.list(ALL).len(), 10);
    drop(ann);
    // A smaller bound holds from the next message on.
    options.bounds.messages = 4;
    let ann = place.open_with(options);
    wait(ann.node.incoming("carol", line("11"))).unwrap();
    assert_eq!(ann.list(ALL).len(), 4);
    assert!(ann.list(ALL).iter().any(|message| message.content == "11"));
}

#[test]
fn ten_thousand_messages_are_paged_without_a_gap_or_a_repetition_while_more_come() {
    let place = Place::new();
    let ann = place.open("ann");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut waiting = tokio::task::JoinSet::new();
        for number in 0..10_000u32 {
            let name = format!("peer{}", number % 7);
            waiting.spawn(ann.node.incoming(name, line(&number.to_string())));
        }
        while let Some(done) = waiting.join_next().await {
            done.unwrap().unwrap();
        }
    });
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let page = ann.list(MessageQuery { after, limit: 200, ..ALL });
        let Some(last) = page.last() else { break };
        after = Some(Position { timestamp_ms: last.timestamp_ms, hash: last.hash });
        seen.extend(page.into_iter().map(|message| (message.timestamp_ms, message.hash, message.content)));
        if seen.len() < 2000 {
            wait(ann.node.incoming("late", line("late"))).unwrap();
        }
    }
    assert!(seen.is_sorted_by(|a, b| (a.0, a.1) > (b.0, b.1)), "newest first, strictly");
    assert_eq!(seen.len(), 10_000, "what came after the first page is before it");
    let peer = wait(ann.node.nodes()).unwrap().into_iter().find(|node| node.name == "peer3").unwrap().address;
    let of_peer = ann.list(MessageQuery { peer: Some(peer), ..ALL });
    assert!(of_peer.len() >= 1428 && of_peer.iter().all(|message| message.source == peer));
    let (low, high) = (seen[6000].0, seen[3000].0);
    let between = ann.list(MessageQuery { since_ms: Some(low), until_ms: Some(high), ..ALL });
    assert_eq!(between.len(), seen.iter().filter(|entry| (low..=high).contains(&entry.0)).count());
    assert_eq!(ann.list(MessageQuery { direction: Some(Direction::Outgoing), ..ALL }), []);
    assert_eq!(ann.list(MessageQuery { limit: 0, ..ALL }), []);
}

#[test]
fn a_node_can_only_be_opened_once() {
    let place = Place::new();
    let _ann = place.open("ann");
    let error = Embedded::open(place.path(), EmbeddedOptions::named("ann")).unwrap_err();
    assert!(matches!(error, OpenError::InUse { ref node, .. } if node == "ann"), "{error}");
    let error = Embedded::open(place.path(), EmbeddedOptions::named("")).unwrap_err();
    assert!(matches!(error, OpenError::Name { .. }), "{error}");
}

#[test]
fn a_file_that_is_newer_or_foreign_or_damaged_is_named_and_left_as_it_is() {
    let check = |spoil: &dyn Fn(&Path), expected: &str| {
        let place = Place::new();
        drop(place.open("ann"));
        spoil(&place.path());
        let before = std::fs::read(place.path()).unwrap();
        let error = Embedded::open(place.path(), EmbeddedOptions::named("ann")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains("mesh.db"), "{text}");
        assert_eq!(std::fs::read(place.path()).unwrap(), before, "the file was changed");
    };
    let pragma = |statement: &'static str| {
        move |path: &Path| Connection::open(path).unwrap().execute_batch(statement).unwrap()
    };
    check(&pragma("PRAGMA user_version = 2"), "has version 2, and this program knows up to 1");
    check(&pragma("PRAGMA application_id = 5"), "another program made this database");
    check(
        &|path| std::fs::write(path, "this is not a database, it is a letter".repeat(50)).unwrap(),
        "is damaged",
    );
    check(
        &|path| {
            let mut bytes = std::fs::read(path).unwrap();
            // The first page stays as it is: only who looks further finds out.
            bytes[4096..].fill(0x5a);
            std::fs::write(path, bytes).unwrap();
        },
        "is damaged",
    );
}

#[test]
fn the_hash_of_a_message_covers_everything_that_was_written() {
    let place = Place::new();
    let ann = place.open("ann");
    let say = |title: &str, content: &str| {
        let line = Line { title: title.to_owned(), content: content.to_owned(), reply_to: None };
        wait(ann.node.incoming("carol", line)).unwrap().hash
    };
    let hashes = [say("ab", "c"), say("a", "bc"), say("", "abc"), say("", "abc")];
    let unique: std::collections::BTreeSet<_> = hashes.iter().collect();
    assert_eq!(unique.len(), 4);
}
