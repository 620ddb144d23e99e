//! A mesh that several processes share: what arrives, in which order and how often, also when one of them is killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_sep::mesh::{
    Address, DeliveryState, Embedded, MeshEvent, Message, MessageQuery, Messaging as _,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::mesh_process::{Node, PATIENCE, listen, open, post};

const LEASE: Duration = Duration::from_secs(6);

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        two_processes_talk_with_each_other_in_order,
        a_receiver_that_is_killed_again_and_again_has_every_message_once,
        a_sender_that_is_killed_again_and_again_has_sent_what_it_said_and_nothing_twice,
        a_process_that_is_killed_goes_offline_and_its_messages_wait,
        a_process_that_hangs_goes_offline_when_its_lease_is_over_and_comes_back,
    ]
}

fn two_processes_talk_with_each_other_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.db");
    let bob = Node::start("echo", "bob", LEASE, &path);
    let ann = open(&path, "ann", LEASE);
    let (_ear, heard) = listen(&ann);
    let to = address_of(&ann, "bob");
    for number in 0..100 {
        post(&ann, to, &number.to_string()).unwrap();
    }
    let answers: Vec<String> = (0..100).map(|_| received(&heard).content).collect();
    let expected: Vec<String> = (0..100).map(|number| format!("re: {number}")).collect();
    assert_eq!(answers, expected);
    bob.end();
    until(&heard, |event| matches!(event, MeshEvent::Offline { address } if *address == to));
    assert!(messages(&ann).iter().all(|message| message.state == DeliveryState::Delivered));
}

fn a_receiver_that_is_killed_again_and_again_has_every_message_once() {
    const KILLS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.db");
    let mut bob = Node::start("receive", "bob", LEASE, &path);
    let ann = open(&path, "ann", LEASE);
    let to = address_of(&ann, "bob");
    let enough = Arc::new(AtomicBool::new(false));
    let is_enough = Arc::clone(&enough);
    // It goes on as long as processes are killed, so that each is killed in the middle of something.
    let sender = std::thread::spawn(move || {
        let mut count = 0;
        while !is_enough.load(Ordering::Relaxed) {
            // While nobody receives, so many may wait and no more.
            count += u64::from(post(&ann, to, &count.to_string()).is_ok());
        }
        (ann, count)
    });
    let mut said: Vec<Vec<String>> = Vec::new();
    for kill in 0..KILLS {
        let mut lines: Vec<String> = (0..5 + 7 * kill).map(|_| bob.line().unwrap()).collect();
        lines.extend(bob.kill());
        said.push(lines);
        bob = Node::start("receive", "bob", LEASE, &path);
    }
    enough.store(true, Ordering::Relaxed);
    let (ann, end) = sender.join().unwrap();
    // The queue may be full at this very moment.
    while post(&ann, to, &end.to_string()).is_err() {}
    let mut last: Vec<String> = Vec::new();
    while last.last() != Some(&end.to_string()) {
        last.push(bob.line().unwrap());
    }
    said.push(last);
    bob.end();

    // What it was told: everything, in order; where a process was killed, the last one may come again, and only that one.
    let mut expected = 0;
    for lines in &said {
        for (index, line) in lines.iter().enumerate() {
            let number: u64 = line.parse().unwrap();
            let is_repeated = index == 0 && number + 1 == expected;
            assert!(number == expected || is_repeated, "{number} was told where {expected} was expected");
            expected = number + 1;
        }
    }
    assert_eq!(expected, end + 1);

    // What it has: everything, once.
    let bob = open(&path, "bob", LEASE);
    let mut kept: BTreeMap<u64, u32> = BTreeMap::new();
    for message in messages(&bob) {
        *kept.entry(message.content.parse().unwrap()).or_default() += 1;
    }
    assert_eq!(kept, (0..=end).map(|number| (number, 1)).collect());
    assert!(messages(&ann).iter().all(|message| message.state == DeliveryState::Delivered));
}

fn a_sender_that_is_killed_again_and_again_has_sent_what_it_said_and_nothing_twice() {
    const KILLS: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.db");
    let bob = open(&path, "bob", LEASE);
    let (_ear, heard) = listen(&bob);
    let mut said: Vec<u64> = Vec::new();
    for kill in 0..KILLS {
        let mut ann = Node::start("send", "ann", LEASE, &path);
        let request = format!("{} {}\n", bob.own_address(), kill * 1_000_000);
        std::io::Write::write_all(ann.input.as_mut().unwrap(), request.as_bytes()).unwrap();
        let lines: Vec<String> = (0..10 + 5 * kill).map(|_| ann.line().unwrap()).collect();
        said.extend(lines.into_iter().chain(ann.kill()).map(|line| line.parse::<u64>().unwrap()));
    }
    // One more message, after everything else.
    let ann = open(&path, "ann", LEASE);
    post(&ann, bob.own_address(), "999999999").unwrap();
    let mut got: Vec<u64> = Vec::new();
    while got.last() != Some(&999_999_999) {
        got.push(received(&heard).content.parse().unwrap());
    }
    assert!(got.is_sorted_by(|a, b| a < b), "in order, and nothing twice");
    for number in said {
        assert!(got.binary_search(&number).is_ok(), "{number} was taken for delivery and never came");
    }
    // One that was taken when its process was killed may have been sent without a word; each process at most one.
    assert_eq!(messages(&bob).len(), got.len());
}

fn a_process_that_is_killed_goes_offline_and_its_messages_wait() {
    let lease = Duration::from_millis(900);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.db");
    let ann = open(&path, "ann", lease);
    let (_ear, heard) = listen(&ann);
    let bob = Node::start("receive", "bob", lease, &path);
    let to = address_of(&ann, "bob");
    until(&heard, |event| matches!(event, MeshEvent::Online { address, .. } if *address == to));
    bob.kill();
    until(&heard, |event| matches!(event, MeshEvent::Offline { address } if *address == to));
    post(&ann, to, "are you well?").unwrap();
    until(&heard, |event| matches!(event, MeshEvent::Sent(_)));
    assert_eq!(messages(&ann)[0].state, DeliveryState::Outbound);
    let mut bob = Node::start("receive", "bob", lease, &path);
    assert_eq!(bob.line().as_deref(), Some("are you well?"));
    until(&heard, |event| matches!(event, MeshEvent::State { state: DeliveryState::Delivered, .. }));
    bob.end();
}

fn a_process_that_hangs_goes_offline_when_its_lease_is_over_and_comes_back() {
    let lease = Duration::from_millis(900);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.db");
    let ann = open(&path, "ann", lease);
    let (_ear, heard) = listen(&ann);
    let mut bob = Node::start("receive", "bob", lease, &path);
    let to = address_of(&ann, "bob");
    until(&heard, |event| matches!(event, MeshEvent::Online { address, .. } if *address == to));
    let pid = Pid::from_child(&bob.process);
    // One that is stopped in the middle of a transaction holds up everybody; then it is let go and stopped again.
    loop {
        kill_process(pid, Signal::STOP).unwrap();
        waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        if post(&ann, to, "wake up").is_ok() {
            break;
        }
        kill_process(pid, Signal::CONT).unwrap();
    }
    // What was on its way to it waits again.
    until(&heard, |event| matches!(event, MeshEvent::State { state: DeliveryState::Sending, .. }));
    let back = until(&heard, |event| matches!(event, MeshEvent::State { .. }));
    assert!(matches!(
        back,
        MeshEvent::State { state: DeliveryState::Outbound, previous: DeliveryState::Sending, .. }
    ));
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(bob.line().as_deref(), Some("wake up"));
    until(&heard, |event| matches!(event, MeshEvent::State { state: DeliveryState::Delivered, .. }));
    bob.end();
}

fn address_of(node: &Embedded, name: &str) -> Address {
    let nodes = wait(node.nodes()).unwrap();
    nodes.into_iter().find(|node| node.name == name).unwrap().address
}

fn messages(node: &Embedded) -> Vec<Message> {
    let query = MessageQuery {
        peer: None,
        direction: None,
        since_ms: None,
        until_ms: None,
        after: None,
        limit: 1_000_000,
    };
    wait(node.messages(query)).unwrap()
}

fn received(heard: &Receiver<MeshEvent>) -> Message {
    match until(heard, |event| matches!(event, MeshEvent::Received(_))) {
        MeshEvent::Received(message) => message,
        other => panic!("{other:?}"),
    }
}

fn until(heard: &Receiver<MeshEvent>, wanted: impl Fn(&MeshEvent) -> bool) -> MeshEvent {
    loop {
        let event = heard.recv_timeout(PATIENCE).expect("nothing more is heard");
        if wanted(&event) {
            return event;
        }
    }
}

fn wait<T>(future: outrigger_wire::peer::BoxFuture<T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
