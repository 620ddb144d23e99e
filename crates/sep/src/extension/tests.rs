//! The kit under the host for tests, in one process.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::testing::{MockHost, Scripted};
use super::{
    About, ActionReply, Ending, Event, Extension, Health, HostClient, HostError, Lifecycle, Shutdown, Trouble,
};
use crate::protocol::{
    ActionCall, ActionOutcome, HealthAnswer, HealthStatus, ListContacts, PanelPatch, Permission,
    ShutdownReason, ToastLevel, V1_0, V1_1,
};

/// An extension made of functions, so that a test says only what it is about.
struct Made<E, A> {
    event: E,
    action: A,
}

type Handled = Result<(), Trouble>;
type Replied = Result<ActionReply, Trouble>;

impl<E, A> Extension for Made<E, A>
where
    E: Fn(&HostClient, &Event) -> Handled + Send + Sync + 'static,
    A: Fn(&HostClient, &ActionCall) -> Replied + Send + Sync + 'static,
{
    fn on_event(&self, host: &HostClient, event: &Event) -> Handled {
        (self.event)(host, event)
    }

    fn on_action(&self, host: &HostClient, action: &ActionCall) -> Replied {
        (self.action)(host, action)
    }
}

fn on_event(event: impl Fn(&HostClient, &Event) -> Handled + Send + Sync + 'static) -> impl Extension {
    Made { event, action: |_: &HostClient, _: &ActionCall| Ok(ActionReply::ok()) }
}

fn on_action(action: impl Fn(&HostClient, &ActionCall) -> Replied + Send + Sync + 'static) -> impl Extension {
    Made { event: |_: &HostClient, _: &Event| Ok(()), action }
}

/// What a handler waits for, and who lets it go on.
fn latch() -> (SyncSender<()>, Mutex<Receiver<()>>) {
    let (open, wait) = sync_channel(1);
    (open, Mutex::new(wait))
}

fn wait(latch: &Mutex<Receiver<()>>) {
    let _ = latch.lock().expect("one waits").recv();
}

#[test]
fn a_handler_that_panics_fails_alone() {
    let session = MockHost::new().start(on_event(|_, event| match event.topic.as_str() {
        "a.panic" => panic!("as the test wants"),
        "an.error" => Err("oh no".into()),
        _ => Ok(()),
    }));
    let told = |topic: &str| session.event(topic, json!({})).expect_err("it failed").message;
    assert_eq!(told("a.panic"), "the handler panicked");
    assert_eq!(told("an.error"), "oh no");
    assert_eq!(session.event("a.joy", json!({})), Ok(()));
    assert_eq!(session.shutdown(), Ending::Asked);
}

#[test]
fn events_wait_for_each_other_and_actions_do_not() {
    let (open, held) = latch();
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let session = MockHost::new().start(Made {
        event: move |_: &HostClient, event: &Event| {
            if event.topic == "hold.it" {
                wait(&held);
            }
            seen.lock().expect("no panic").push(event.seq);
            Ok(())
        },
        action: move |_: &HostClient, _: &ActionCall| Ok(ActionReply::ok()),
    });
    let first = session.begin_event("hold.it", json!({}));
    let second = session.begin_event("go.on", json!({}));
    assert_eq!(session.action("p", "a", None).expect("an answer").outcome, ActionOutcome::Ok);
    assert_eq!(order.lock().expect("no panic").len(), 0);
    open.send(()).expect("it waits");
    first.wait::<serde_json::Value>().expect("an ack");
    second.wait::<serde_json::Value>().expect("an ack");
    assert_eq!(*order.lock().expect("no panic"), [1, 2]);
    session.shutdown();
}

#[test]
fn an_action_that_fails_is_shown_to_the_person() {
    let session = MockHost::new().start(on_action(|_, _| Err("line one\nline two".into())));
    let result = session.action("p", "a", None).expect("an answer");
    assert_eq!(result.outcome, ActionOutcome::Error);
    assert_eq!(result.toast.expect("a notice").message, "line one line two");
    session.shutdown();
}

#[test]
fn what_came_with_1_1_is_left_out_at_1_0() {
    let reply = |_: &HostClient, _: &ActionCall| {
        let panel = PanelPatch { title: Some("new".to_owned()), ..PanelPatch::default() };
        Ok(ActionReply::ok().say(ToastLevel::Info, "done").show(panel))
    };
    for (offer, has_panel) in [(&[V1_1, V1_0][..], true), (&[V1_0][..], false)] {
        let session = MockHost::new().offering(offer).start(on_action(reply));
        assert_eq!(session.version(), offer.first().copied());
        let result = session.action("p", "a", None).expect("an answer");
        assert_eq!(result.panel.is_some(), has_panel);
        session.shutdown();
    }
}

#[test]
fn an_extension_that_wants_only_1_0_gets_it_and_newer_calls_are_unknown() {
    struct Old;
    impl Extension for Old {
        fn about(&self) -> About {
            About { highest: V1_0, ..About::default() }
        }
        fn on_event(&self, host: &HostClient, _: &Event) -> Result<(), Trouble> {
            let error = host.subscribe(&["peer.online"]).expect_err("too new");
            assert!(error.is_unknown_method());
            Ok(())
        }
    }
    let session = MockHost::new().start(Old);
    assert_eq!(session.version(), Some(V1_0));
    assert_eq!(session.event("a.b", json!({})), Ok(()));
    session.shutdown();
}

#[test]
fn without_a_common_version_nothing_begins() {
    struct New;
    impl Extension for New {
        fn about(&self) -> About {
            About { lowest: V1_1, ..About::default() }
        }
    }
    let session = MockHost::new().offering(&[V1_0]).start(New);
    assert_eq!(session.initialized().as_ref().expect_err("no version").code, -32004);
    assert!(matches!(session.ended(), Ending::Incompatible(_)));
}

#[test]
fn all_pages_are_read_and_an_error_ends_them() {
    let contact = |id: u64| super::Contact {
        id,
        name: format!("contact {id}").into(),
        identity_hash: crate::mesh::Address([1; 16]),
        lxmf_address: None,
        lxst_address: None,
        created_at_ms: 0,
        updated_at_ms: 0,
    };
    let host = MockHost::new().with_contacts((1..=7).map(contact).collect());
    let session = host.start(on_action(|host, _| {
        let query = ListContacts { limit: Some(3), ..ListContacts::default() };
        let ids: Result<Vec<u64>, _> = host.contacts(query).map(|found| found.map(|one| one.id)).collect();
        Ok(ActionReply::ok().say(ToastLevel::Info, &format!("{:?}", ids?)))
    }));
    let result = session.action("p", "a", None).expect("an answer");
    assert_eq!(result.toast.expect("a notice").message, "[1, 2, 3, 4, 5, 6, 7]");
    assert_eq!(session.calls_of("host.contacts.list").len(), 3);
    session.shutdown();

    let denied = MockHost::new().granting(&[Permission::MessagesRead]);
    let session = denied.start(on_action(|host, _| {
        let mut pages = host.contacts(ListContacts::default());
        assert!(pages.next().expect("an error").expect_err("denied").is_denied());
        assert!(pages.next().is_none());
        Ok(ActionReply::ok())
    }));
    assert_eq!(session.action("p", "a", None).expect("an answer").outcome, ActionOutcome::Ok);
    session.shutdown();
}

#[test]
fn no_more_calls_are_under_way_than_the_host_takes() {
    let host = MockHost::new().taking(4096, 1).answering("host.get_capabilities", Scripted::Silence);
    let session = host.start(on_action(|host, _| {
        let patience = Duration::from_millis(30);
        let both = std::thread::scope(|scope| {
            let ask = || scope.spawn(|| host.within(patience).get_capabilities());
            [ask(), ask()].map(|asked| asked.join().expect("no panic"))
        });
        assert!(both.iter().all(|asked| matches!(asked, Err(HostError::NoAnswer { .. }))));
        Ok(ActionReply::ok())
    }));
    assert_eq!(session.action("p", "a", None).expect("an answer").outcome, ActionOutcome::Ok);
    let asked = session.calls_of("host.get_capabilities").len();
    let given_up = session.calls_of("$/cancel").len();
    // The second may begin in the moment in which the first is given up, and then is given up too.
    assert_eq!(asked, given_up);
    assert!((1..=2).contains(&asked), "{asked}");
    session.shutdown();
}

#[test]
fn a_request_at_the_limit_is_sent_and_one_byte_more_is_not() {
    const LIMIT: usize = 2048;
    let session = MockHost::new().taking(LIMIT, 4).start(on_action(|host, action| {
        let length: usize = action.input.as_deref().unwrap_or_default().parse()?;
        let empty = r#"{"jsonrpc":"2.0","id":2,"method":"host.notifications.toast","params":{"m":""}}"#.len();
        let text = "x".repeat(length - empty);
        match host.call::<serde_json::Value>("host.notifications.toast", &json!({ "m": text })) {
            Ok(_) => Ok(ActionReply::ok()),
            Err(HostError::TooLong { length, limit, .. }) => {
                Ok(ActionReply::error(&format!("{length} > {limit}")))
            }
            Err(error) => Err(error.into()),
        }
    }));
    let result = session.action("p", "a", Some("2049")).expect("an answer");
    assert_eq!(result.toast.expect("a notice").message, "2049 > 2048");
    let result = session.action("p", "a", Some("2048")).expect("an answer");
    assert_eq!((result.outcome, result.toast), (ActionOutcome::Ok, None));
    session.shutdown();
}

#[test]
fn a_host_that_is_busy_says_when_to_come_back() {
    let data = json!({"sep": "rate_limited", "retryAfterMs": 7, "limit": 1});
    let host =
        MockHost::new().answering("host.get_capabilities", Scripted::Fail { times: 1, code: -32020, data });
    let session = host.start(on_action(|host, _| {
        let error = host.get_capabilities().expect_err("once");
        assert_eq!((error.retry_after(), error.is_temporary()), (Some(Duration::from_millis(7)), true));
        let capabilities = host.get_capabilities()?;
        Ok(ActionReply::ok().say(ToastLevel::Info, capabilities.trust_level.as_str()))
    }));
    let result = session.action("p", "a", None).expect("an answer");
    assert_eq!(result.toast.expect("a notice").message, "trusted_third_party");
    session.shutdown();
}

#[test]
fn too_many_actions_at_once_are_refused() {
    let host = MockHost::new().taking(65536, 64).answering("host.get_capabilities", Scripted::Silence);
    let session = host.start(on_action(|host, _| {
        host.get_capabilities()?;
        Ok(ActionReply::ok())
    }));
    let running: Vec<_> = (0..16).map(|_| session.begin_action("p", "a", None)).collect();
    assert_eq!(session.action("p", "a", None).expect_err("one too many").code, -32021);
    running.iter().for_each(super::testing::Asked::cancel);
    for asked in running {
        assert_eq!(asked.wait::<serde_json::Value>().expect_err("given up").code, -32023);
    }
    session.shutdown();
}

#[test]
fn a_slow_health_handler_is_degraded_and_recovers() {
    struct Slow(Mutex<Receiver<()>>);
    impl Extension for Slow {
        fn on_health(&self) -> Health {
            wait(&self.0);
            Health::Degraded("tired".to_owned())
        }
    }
    let (open, held) = latch();
    let session = MockHost::new().start(Slow(held));
    let late = HealthAnswer {
        status: HealthStatus::Degraded,
        detail: Some("the health handler takes its time".to_owned()),
        seq: 1,
    };
    assert_eq!(session.health(), Ok(late.clone()));
    // The second is answered at once: the first question is still open.
    assert_eq!(session.health(), Ok(late));
    drop(open);
    loop {
        let answer = session.health().expect("an answer");
        if answer.detail.as_deref() == Some("tired") {
            break;
        }
    }
    session.shutdown();
}

#[test]
fn the_platform_is_heard_and_the_end_is_announced() {
    struct Listening(SyncSender<String>);
    impl Extension for Listening {
        fn on_lifecycle(&self, _: &HostClient, change: &Lifecycle) -> Result<(), Trouble> {
            self.0.send(format!("{change:?}"))?;
            Ok(())
        }
        fn on_shutdown(&self, shutdown: &Shutdown) {
            assert_eq!(shutdown.reason, ShutdownReason::Stop);
            assert_eq!(shutdown.within, Duration::from_millis(2800));
            let _ = self.0.send("goodbye".to_owned());
        }
    }
    let (say, heard) = sync_channel(8);
    let session = MockHost::new().start(Listening(say));
    for topic in ["lifecycle.pausing", "lifecycle.resumed", "lifecycle.background", "lifecycle.nap"] {
        assert_eq!(session.event(topic, json!({})), Ok(()));
    }
    assert_eq!(session.event("lifecycle.trim", json!({"level": 3})), Ok(()));
    assert_eq!(session.shutdown(), Ending::Asked);
    let heard: Vec<String> = heard.try_iter().collect();
    let expected = [
        "Pausing",
        "Resumed",
        "Background",
        "Other(\"lifecycle.nap\")",
        "Trim(Object {\"level\": Number(3)})",
        "goodbye",
    ];
    assert_eq!(heard, expected);
}
