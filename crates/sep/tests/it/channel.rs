//! The attach with real sockets and real processes: who gets in, who does not, and what is left behind.

use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_sep::host::channel::{
    AttachError, CHILD_FD, Conversation, Expected, GREETING_TIME, MAX_GREETING_BYTES, MAX_UNDECIDED, Refusal,
    Rendezvous, Transport, Why,
};
use outrigger_sep::protocol::ExitKind;
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{self, Level, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec, Stdin};
use outrigger_supervise::state::{Heartbeat, Restart};
use outrigger_supervise::tree::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::channel_child::attach_line;
use crate::channel_kit::{
    Book, Guest, LIMITS, Oracle, Place, attach, block_on, bootstrap, connect, own, rest, say,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        the_process_that_was_started_attaches_over_every_transport,
        a_wrapper_attaches_by_its_child,
        a_process_that_its_parent_left_behind_still_belongs_to_the_box,
        a_stranger_of_the_same_user_is_refused_although_it_has_the_token,
        a_process_of_another_user_is_refused,
        a_wrong_token_is_refused_and_the_right_one_still_works,
        a_token_works_once,
        after_the_attach_nobody_can_connect_and_nothing_is_left_on_disk,
        a_meeting_place_that_nobody_came_to_disappears_with_its_owner,
        the_directory_and_the_socket_are_closed_to_others,
        a_path_that_is_too_long_falls_through_to_the_next_place,
        a_connection_that_dawdles_is_refused_after_two_seconds_and_hinders_nobody,
        the_ninth_undecided_connection_is_closed_at_once,
        a_first_frame_of_four_kibibytes_is_read_and_one_byte_more_is_not,
        a_browser_dies_at_the_door,
        a_port_is_on_the_loopback_address_and_needs_the_token,
        an_extension_that_spoils_its_only_connection_cannot_attach_any_more,
    ]
}

fn the_process_that_was_started_attaches_over_every_transport() {
    for transport in Transport::ALL {
        let place = Place::new();
        block_on(async {
            let mut rendezvous = place.open(*transport);
            let session = rendezvous.session().clone();
            let mut child = Guest::spawn(&mut rendezvous, &["connect", "attach+ask", "read", "read", "wait"]);
            let witness = Book::open();
            let attached = attach(rendezvous, child.expected(), &witness).await;
            assert_eq!(attached.session, session);
            assert_eq!(attached.sdk.as_ref().map(|sdk| sdk.name.as_str()), Some("test"));
            let known = matches!(transport, Transport::Unix).then(|| child.pid());
            assert_eq!(attached.pid, known, "{transport}");
            assert!(place.is_empty(), "{transport}: the meeting place is gone");

            // What came together with the attach has not been lost.
            let conversation = Conversation::start(attached, Arc::new(Oracle), &LIMITS, None);
            let welcome = child.said().await;
            assert_eq!(welcome, json!({"jsonrpc": "2.0", "id": 1, "result": {"session": session.as_str()}}));
            assert_eq!(child.said().await, json!({"jsonrpc": "2.0", "id": 2, "result": "answered"}));
            child.end();
            assert_eq!(conversation.ended().await.kind, ExitKind::ChannelLost, "{transport}");
            assert_eq!(witness.reasons(), []);
        });
    }
}

fn a_wrapper_attaches_by_its_child() {
    let place = Place::new();
    block_on(async {
        let mut rendezvous = place.open(Transport::Unix);
        let child = Guest::spawn(&mut rendezvous, &["grandchild", "wait"]);
        let attached = attach(rendezvous, child.expected(), &Book::open()).await;
        let pid = attached.pid.expect("the kernel says who it is");
        assert_ne!(pid, child.pid(), "it was not the wrapper itself");
    });
}

fn a_process_that_its_parent_left_behind_still_belongs_to_the_box() {
    let place = Place::new();
    block_on(async {
        let settings = Settings {
            launcher: Launcher::current_exe(),
            starting_at_once: NonZeroUsize::new(1).expect("not zero"),
        };
        let supervisor = Supervisor::new(settings);
        let rules = Rules {
            ready: Ready::OnSpawn,
            heartbeat: Heartbeat::None,
            restart: Restart::Never,
            logs: Logs { tail_lines: 5, tail_bytes: 4096, max_line_bytes: 1000, file: None },
        };
        let program = std::env::current_exe().expect("this binary");
        let boxed = Request::new(Level::Off, sandbox::Limits::as_the_host());
        let spec = Spec::new("test", program, "/", boxed, rules).args(["__channel", "orphan", "wait"]);
        let child = supervisor.start(Spec { stdin: Stdin::Session, ..spec }).expect("a spec");
        let mut session = child.next_session().await.expect("it starts");
        let rendezvous = place.open(Transport::Unix);
        let mut lifeline = session.stdin.take().expect("it is the session's");
        lifeline.write_all(rendezvous.bootstrap().as_bytes()).await.expect("it reads");
        let witness = Book::open();
        let attached = attach(rendezvous, Expected { pid: session.pid, ..own() }, &witness).await;
        assert_ne!(attached.pid, Some(session.pid));
        assert_eq!(witness.reasons(), []);
        child.kill().await;
    });
}

fn a_stranger_of_the_same_user_is_refused_although_it_has_the_token() {
    let place = Place::new();
    block_on(async {
        let mut rendezvous = place.open(Transport::Unix);
        let mut stranger = Guest::spawn(&mut rendezvous, &["connect", "attach", "read", "wait"]);
        let mut child = Guest::spawn(&mut rendezvous, &["wait"]);
        let mut witness = Book::open();
        let attaching = tokio::spawn(rendezvous.attach(child.expected(), witness.witness()));
        let refusal = witness.next().await;
        assert_eq!(refusal, Refusal { why: Why::Pid, pid: Some(stranger.pid()) });
        assert_eq!(stranger.said_text().await, "closed", "it is not even answered");
        assert!(!attaching.is_finished(), "a stranger changes nothing");
        attaching.abort();
        child.end();
        stranger.end();
    });
    assert!(place.is_empty());
}

fn a_process_of_another_user_is_refused() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        let path = place.socket(&rendezvous);
        let mut witness = Book::open();
        let other = Expected { uid: own().uid + 1, ..own() };
        let attaching = tokio::spawn(rendezvous.attach(other, witness.witness()));
        let mut visitor = connect(&path).await;
        assert_eq!(witness.next().await.why, Why::Uid);
        assert_eq!(rest(&mut visitor).await, "");
        attaching.abort();
    });
}

fn a_wrong_token_is_refused_and_the_right_one_still_works() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        let (path, right) = (place.socket(&rendezvous), bootstrap(&rendezvous));
        let mut witness = Book::open();
        let attaching = tokio::spawn(rendezvous.attach(own(), witness.witness()));
        let mut wrong = right.clone();
        wrong["token"] = "0".repeat(64).into();
        let mut visitor = connect(&path).await;
        say(&mut visitor, &attach_line(&wrong)).await;
        let answer = rest(&mut visitor).await;
        let answer: Value = serde_json::from_str(&answer).expect("one answer, and the end");
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32006)));
        assert_eq!(answer["error"]["data"]["sep"], "auth_failed");
        assert_eq!(witness.next().await, Refusal { why: Why::WrongToken, pid: Some(own().pid) });

        let mut elsewhere = right.clone();
        elsewhere["session"] = "another".into();
        say(&mut connect(&path).await, &attach_line(&elsewhere)).await;
        assert_eq!(witness.next().await.why, Why::WrongSession);

        let mut visitor = connect(&path).await;
        say(&mut visitor, &attach_line(&right)).await;
        assert!(attaching.await.expect("no panic").is_ok());
    });
}

fn a_token_works_once() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        let (path, right) = (place.socket(&rendezvous), bootstrap(&rendezvous));
        let mut witness = Book::open();
        let attaching = tokio::spawn(rendezvous.attach(own(), witness.witness()));
        let mut second = connect(&path).await;
        // Something must have arrived from it, so that it is known to be inside when the first one attaches.
        second.write_all(b" ").await.expect("it is connected");
        let mut first = connect(&path).await;
        say(&mut first, &attach_line(&right)).await;
        attaching.await.expect("no panic").expect("it has the token");
        say(&mut second, &attach_line(&right)).await;
        assert!(rest(&mut second).await.contains("-32006"));
        assert_eq!(witness.next().await.why, Why::UsedToken);
    });
}

fn after_the_attach_nobody_can_connect_and_nothing_is_left_on_disk() {
    let place = Place::new();
    block_on(async {
        let mut rendezvous = place.open(Transport::Unix);
        let path = place.socket(&rendezvous);
        let steps = ["connect", "attach", "read", "connect", "wait"];
        let mut child = Guest::spawn(&mut rendezvous, &steps);
        assert!(path.exists());
        let attached = attach(rendezvous, child.expected(), &Book::open()).await;
        assert!(place.is_empty(), "not even the directory is left");
        assert!(child.said_text().await.contains("result"));
        assert_eq!(child.said_text().await, "no connection: entity not found");
        drop(attached);
    });
}

fn a_meeting_place_that_nobody_came_to_disappears_with_its_owner() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        assert!(!place.is_empty());
        drop(rendezvous);
        assert!(place.is_empty());
        let rendezvous = place.open(Transport::Unix);
        let waiting = rendezvous.attach(own(), Book::open().witness());
        assert!(timeout(Duration::from_millis(10), waiting).await.is_err());
        assert!(place.is_empty(), "also when the waiting is given up");
    });
}

fn the_directory_and_the_socket_are_closed_to_others() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        let path = place.socket(&rendezvous);
        let mode =
            |path: &Path| fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(path.parent().expect("it is in a directory")), 0o700);
        assert_eq!(mode(&path), 0o600);
        assert!(fs::symlink_metadata(&path).expect("it is there").file_type().is_socket());
        assert!(path.as_os_str().len() <= 100);
    });
}

fn a_path_that_is_too_long_falls_through_to_the_next_place() {
    let place = Place::new();
    block_on(async {
        let mut dirs = place.dirs();
        dirs.runtime = Some(place.root.path().join("x".repeat(100)));
        let rendezvous = Rendezvous::open(Transport::Unix, &dirs).expect("the state is next");
        assert!(rendezvous.endpoint().contains("/state/run/sep-"), "{}", rendezvous.endpoint());
        dirs.state = place.root.path().join("y".repeat(100));
        dirs.temporary = place.root.path().join("z".repeat(100));
        let error = Rendezvous::open(Transport::Unix, &dirs).expect_err("no place is left");
        assert_eq!(error.to_string().matches("a socket there would have a path of").count(), 3, "{error}");
    });
}

fn a_connection_that_dawdles_is_refused_after_two_seconds_and_hinders_nobody() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        let (path, right) = (place.socket(&rendezvous), bootstrap(&rendezvous));
        let mut witness = Book::open();
        let attaching = tokio::spawn(rendezvous.attach(own(), witness.witness()));
        let begun = Instant::now();
        let (mut input, mut output) = connect(&path).await.into_split();
        let line = attach_line(&right).to_string();
        let dawdling = tokio::spawn(async move {
            // One byte at a time; each write is followed by a wait, so the whole would take much longer than it may.
            for byte in line.bytes() {
                if output.write_all(&[byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        assert_eq!(witness.next().await.why, Why::Late);
        assert!(begun.elapsed() >= GREETING_TIME);
        let mut answer = String::new();
        input.read_to_string(&mut answer).await.expect("an answer, and the end");
        assert!(answer.contains("-32006"), "{answer}");
        dawdling.abort();
        let mut visitor = connect(&path).await;
        say(&mut visitor, &attach_line(&right)).await;
        attaching.await.expect("no panic").expect("nobody was hindered");
    });
}

fn the_ninth_undecided_connection_is_closed_at_once() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        let (path, right) = (place.socket(&rendezvous), bootstrap(&rendezvous));
        let mut witness = Book::open();
        let attaching = tokio::spawn(rendezvous.attach(own(), witness.witness()));
        let mut undecided = Vec::new();
        for _ in 0..MAX_UNDECIDED {
            undecided.push(connect(&path).await);
        }
        let mut ninth = connect(&path).await;
        assert_eq!(witness.next().await.why, Why::Crowded);
        assert_eq!(rest(&mut ninth).await, "");
        undecided.pop();
        assert_eq!(witness.next().await.why, Why::HungUp);
        let mut visitor = connect(&path).await;
        say(&mut visitor, &attach_line(&right)).await;
        attaching.await.expect("no panic").expect("there is a place again");
    });
}

fn a_first_frame_of_four_kibibytes_is_read_and_one_byte_more_is_not() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Unix);
        let (path, right) = (place.socket(&rendezvous), bootstrap(&rendezvous));
        let mut witness = Book::open();
        let attaching = tokio::spawn(rendezvous.attach(own(), witness.witness()));
        let line = attach_line(&right).to_string();
        let padded = |bytes: usize| format!("{line}{}\n", " ".repeat(bytes - line.len() - 1));
        let mut visitor = connect(&path).await;
        visitor.write_all(padded(MAX_GREETING_BYTES + 1).as_bytes()).await.expect("it is connected");
        assert_eq!(witness.next().await.why, Why::TooLong);
        // Part of it was never read, so the end may also come as a reset.
        let mut answer = String::new();
        let _ = visitor.read_to_string(&mut answer).await;
        assert!(answer.is_empty() || answer.contains("-32006"), "{answer}");
        let mut visitor = connect(&path).await;
        visitor.write_all(padded(MAX_GREETING_BYTES).as_bytes()).await.expect("it is connected");
        attaching.await.expect("no panic").expect("it just fits");
    });
}

fn a_browser_dies_at_the_door() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Tcp);
        let address = rendezvous.endpoint().strip_prefix("tcp:").expect("a port").to_owned();
        let mut witness = Book::open();
        let attaching = tokio::spawn(rendezvous.attach(own(), witness.witness()));
        let mut browser = TcpStream::connect(address).await.expect("it listens");
        browser.write_all(b"GET / HTTP/1.1\r\n").await.expect("it is connected");
        let mut answer = String::new();
        browser.read_to_string(&mut answer).await.expect("an answer, and the end");
        let answer: Value = serde_json::from_str(&answer).expect("it is no page");
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32006)));
        assert_eq!(witness.next().await, Refusal { why: Why::NotAttach, pid: None });
        assert!(!attaching.is_finished());
        attaching.abort();
    });
}

fn a_port_is_on_the_loopback_address_and_needs_the_token() {
    let place = Place::new();
    block_on(async {
        let rendezvous = place.open(Transport::Tcp);
        assert!(rendezvous.endpoint().starts_with("tcp:127.0.0.1:"), "{}", rendezvous.endpoint());
        assert!(place.is_empty(), "a port needs no directory");
        let address = rendezvous.endpoint().strip_prefix("tcp:").expect("a port").to_owned();
        let right = bootstrap(&rendezvous);
        let witness = Book::open();
        // Nobody can be told from anybody here, so the expected process does not matter.
        let nobody = Expected { pid: Pid::new(1), uid: own().uid };
        let attaching = tokio::spawn(rendezvous.attach(nobody, witness.witness()));
        let mut visitor = TcpStream::connect(&address).await.expect("it listens");
        visitor.write_all(format!("{}\n", attach_line(&right)).as_bytes()).await.expect("it is connected");
        attaching.await.expect("no panic").expect("it has the token");
        assert!(TcpStream::connect(&address).await.is_err(), "nobody listens any more");
    });
}

fn an_extension_that_spoils_its_only_connection_cannot_attach_any_more() {
    let place = Place::new();
    block_on(async {
        for (words, why) in [("", Why::HungUp), ("hello\n", Why::NotAttach)] {
            let mut rendezvous = place.open(Transport::Fd);
            assert_eq!(rendezvous.endpoint(), format!("fd:{CHILD_FD}"));
            let end = rendezvous.child_end().expect("there is one");
            assert!(rendezvous.child_end().is_none(), "and no more");
            let mut end = std::os::unix::net::UnixStream::from(end);
            end.write_all(words.as_bytes()).expect("it is connected");
            drop(end);
            let witness = Book::open();
            let error = rendezvous.attach(own(), witness.witness()).await.err().expect("nobody attached");
            assert!(matches!(error, AttachError::Refused { why: said } if said == why), "{error}");
            assert_eq!(witness.reasons(), [why]);
        }
    });
}
