//! Whole hosts with real processes: how extensions live, and what the host does about those that misbehave.

use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_sep::config::Activation;
use outrigger_sep::host::AskError;
use outrigger_sep::mesh::embedded::Line;
use outrigger_sep::mesh::{Direction, MessageQuery, Messaging};
use outrigger_sep::protocol::{DisabledReason, ExitKind, FailedReason, Permission, State};
use outrigger_sep::reference::Draft;
use serde_json::json;

use crate::fleet_kit::{Host, Site, first_party, put, serving, steps, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an_extension_is_found_started_and_stopped_in_good_order", a_good_life),
        trial("an_extension_that_crashes_comes_back_and_then_is_disabled", a_crash_loop),
        trial("a_crash_loop_and_what_the_operator_said_outlive_the_host", what_outlives),
        trial("an_extension_that_is_not_ready_in_time_is_killed", too_slow),
        trial("an_extension_that_stops_answering_for_its_health_is_replaced", unhealthy),
        trial("an_extension_that_leaves_by_itself_stays_away", leaves),
        trial("codes_76_and_78_say_that_trying_again_cannot_help", final_codes),
        trial("an_extension_that_speaks_no_version_of_ours_is_not_started_again", no_version),
        trial("an_extension_that_neither_leaves_nor_minds_sigterm_is_killed", stubborn),
        trial("a_channel_that_closes_is_a_crash", channel_lost),
        trial(
            "nobody_runs_before_somebody_agreed_and_what_is_taken_back_is_gone_with_the_next_call",
            consent,
        ),
        trial("a_new_extension_is_noticed_a_changed_one_waits_and_a_vanished_one_is_stopped", rescan),
        trial("files_that_are_not_those_that_were_trusted_do_not_start", tampered),
        trial("a_lazy_extension_sleeps_until_its_panel_is_used", lazy),
        trial(
            "a_lazy_extension_is_woken_by_a_message_and_goes_when_it_has_nothing_to_do",
            woken_by_a_message,
        ),
        trial("an_extension_that_is_stopped_as_soon_as_it_is_ready_is_asked_first", asked_first),
        trial("one_host_has_a_state", one_host),
    ]
}

const ID: &str = "org.example.fault";

async fn a_good_life() {
    let site = Site::new();
    put(&first_party(Draft::autoreply()), &site.builtin(), "autoreply");
    let host = site.start().await;
    let id = "org.outrigger.autoreply";
    host.until(id, State::Ready).await;
    let detail = host.fleet.show(id).await.expect("there");
    let session = detail.session.expect("a session");
    assert_eq!(session.transport, "unix");
    assert_eq!(session.protocol_version.map(|version| version.to_string()).as_deref(), Some("1.1.0"));
    assert_eq!(detail.permissions.expect("permissions").granted.len(), 6);

    let mut happenings = host.fleet.listen();
    host.fleet.stop_one(id).await.expect("stopped");
    let seen = Host::transitions(&mut happenings, id, State::Stopped).await;
    assert_eq!(seen, ["ready>stopping(stop)", "stopping>stopped(requested)"]);
    let detail = host.fleet.show(id).await.expect("there");
    let last = detail.exits.back().expect("an exit");
    assert_eq!((last.kind, last.code, last.counted), (ExitKind::Requested, Some(0), false));
    host.fleet.start_one(id).await.expect("started");
    host.until(id, State::Ready).await;
    host.end().await;
}

async fn a_crash_loop() {
    let site = Site::new();
    let script = steps(json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"}, {"do":"print","text":"out of cheese"}, {"do":"exit","code":3}
    ]));
    site.fault(ID, &script);
    let host = site.start().await;
    host.until(ID, State::Disabled).await;
    let detail = host.fleet.show(ID).await.expect("there");
    assert_eq!(detail.summary.disabled, Some(DisabledReason::CrashLoop));
    assert_eq!(detail.exits.len(), 5, "{:#?}", detail.exits);
    assert!(detail.exits.iter().all(|exit| exit.code == Some(3) && exit.counted));
    let metrics = host.fleet.metrics().to_text();
    assert!(metrics.contains(r#"sep_starts_total{ext="org.example.fault"} 5"#), "{metrics}");
    assert!(metrics.contains(r#"sep_restarts_total{ext="org.example.fault"} 4"#), "{metrics}");
    host.log_says(ID, "out of cheese").await;
    let enabled = host.fleet.enable(ID).await.expect_err("a crash loop takes a reset");
    assert!(matches!(enabled, AskError::State { state: State::Disabled, .. }), "{enabled}");
    host.end().await;
}

async fn what_outlives() {
    let site = Site::new();
    site.fault(ID, &steps(json!([{"do":"exit","code":3}])));
    site.fault("org.example.quiet", &serving());
    let host = site.start().await;
    host.until(ID, State::Disabled).await;
    host.until("org.example.quiet", State::Ready).await;
    host.fleet.disable("org.example.quiet").await.expect("switched off");
    host.fleet.revoke("org.example.quiet", &[Permission::MessagesRead]).await.expect("taken back");
    let site = host.end().await;

    let host = site.start().await;
    host.until(ID, State::Disabled).await;
    assert_eq!(host.state("org.example.quiet").await, State::Disabled);
    let view = host.fleet.reset(ID).await.expect("reset");
    assert_eq!(view.disabled, None);
    host.fleet.enable("org.example.quiet").await.expect("switched on");
    host.until("org.example.quiet", State::Ready).await;
    let permissions = host.fleet.show("org.example.quiet").await.expect("there").permissions.expect("some");
    assert!(!permissions.granted.contains(&Permission::MessagesRead), "{permissions:?}");
    host.end().await;
}

async fn too_slow() {
    let site = Site::new();
    let mut draft = Draft::fault(ID, &steps(json!([{"do":"hang"}])));
    draft.startup_ms = 1000;
    put(&first_party(draft), &site.builtin(), "fault");
    let host = site.start().await;
    host.until(ID, State::Backoff).await;
    host.fleet.disable(ID).await.expect("switched off");
    let exits = host.fleet.show(ID).await.expect("there").exits;
    assert_eq!(exits[0].kind, ExitKind::StartupTimeout);
    host.end().await;
}

async fn unhealthy() {
    let site = Site::new();
    let script = steps(json!([
        {"do":"first","times":1,"steps":[{"do":"attach"},{"do":"manners","health":"never"},{"do":"serve"}]},
        {"do":"attach"}, {"do":"serve"}
    ]));
    let mut draft = Draft::fault(ID, &script);
    (draft.heartbeat_ms, draft.missed) = (1000, 1);
    put(&first_party(draft), &site.builtin(), "fault");
    let host = site.start().await;
    host.until(ID, State::Ready).await;
    host.until(ID, State::Backoff).await;
    host.until(ID, State::Ready).await;
    let detail = host.fleet.show(ID).await.expect("there");
    assert_eq!(detail.exits[0].kind, ExitKind::Unhealthy);
    assert_eq!((detail.summary.starts, detail.summary.restarts), (2, 1));
    host.end().await;
}

async fn leaves() {
    let site = Site::new();
    site.fault(
        ID,
        &steps(json!([{"do":"attach"},{"do":"serve","until":"sep.initialize"},{"do":"exit","code":0}])),
    );
    let host = site.start().await;
    host.until(ID, State::Stopped).await;
    let exits = host.fleet.show(ID).await.expect("there").exits;
    assert_eq!((exits.len(), exits[0].kind, exits[0].counted), (1, ExitKind::Voluntary, false));
    host.end().await;
}

async fn final_codes() {
    for (code, reason) in [(76, FailedReason::Incompatible), (78, FailedReason::Config)] {
        let site = Site::new();
        // The first is the word of one that was asked to begin, the second of one that had begun.
        let script = match code {
            76 => json!([{"do":"attach"},{"do":"exit","code":code}]),
            _ => json!([{"do":"attach"},{"do":"serve","until":"sep.health"},{"do":"exit","code":code}]),
        };
        site.fault(ID, &steps(script));
        let host = site.start().await;
        host.until(ID, State::Failed).await;
        let detail = host.fleet.show(ID).await.expect("there");
        assert_eq!((detail.summary.failed, detail.exits.len()), (Some(reason), 1), "code {code}");
        host.end().await;
    }
}

async fn no_version() {
    for version in ["2.0.0", "1.2.0", "nonsense"] {
        let site = Site::new();
        let script = json!([{"do":"attach"},{"do":"manners","version":version},{"do":"serve"}]);
        site.fault(ID, &steps(script));
        let host = site.start().await;
        host.until(ID, State::Failed).await;
        let detail = host.fleet.show(ID).await.expect("there");
        assert_eq!(detail.summary.failed, Some(FailedReason::Incompatible), "{version}");
        assert_eq!(detail.summary.starts, 1);
        host.end().await;
    }
}

async fn stubborn() {
    let site = Site::new();
    let script = json!([
        {"do":"ignore_sigterm"}, {"do":"attach"}, {"do":"manners","shutdown":"then_hang"},
        {"do":"start","script":[{"do":"setsid"},{"do":"ignore_sigterm"},{"do":"hang"}]}, {"do":"serve"}
    ]);
    site.fault(ID, &steps(script));
    let host = site.start().await;
    host.until(ID, State::Ready).await;
    let began = std::time::Instant::now();
    host.fleet.stop_one(ID).await.expect("stopped");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    let exits = host.fleet.show(ID).await.expect("there").exits;
    assert_eq!((exits[0].kind, exits[0].signal), (ExitKind::Requested, Some(9)), "{exits:?}");
    host.end().await;
}

async fn channel_lost() {
    let site = Site::new();
    let script =
        json!([{"do":"attach"},{"do":"serve","until":"sep.initialize"},{"do":"close"},{"do":"hang"}]);
    site.fault(ID, &steps(script));
    let host = site.start().await;
    host.until(ID, State::Backoff).await;
    let exits = host.fleet.show(ID).await.expect("there").exits;
    assert_eq!(exits[0].kind, ExitKind::ChannelLost, "{exits:?}");
    host.end().await;
}

async fn consent() {
    let site = Site::new();
    let script = json!([
        {"do":"attach"},
        {"do":"serve","until":"sep.initialize"},
        {"do":"repeat","times":600,"steps":[{"do":"call","method":"host.contacts.list"},{"do":"serve","ms":100}]}
    ]);
    let draft = Draft { permissions: vec![Permission::ContactsRead], ..Draft::fault(ID, &steps(script)) };
    put(&draft, &site.extensions(), "fault");
    let mut site = site;
    site.trust(ID);
    let host = site.start().await;
    assert_eq!(host.state(ID).await, State::NeedsConsent);
    let refused = host.fleet.start_one(ID).await.expect_err("nobody agreed");
    assert!(refused.to_string().contains("contacts.read"), "{refused}");
    let wrong = host.fleet.grant(ID, &[Permission::MessagesSend]).await.expect_err("never declared");
    assert!(wrong.to_string().contains("does not ask for it"), "{wrong}");

    host.fleet.grant(ID, &[]).await.expect("granted");
    host.until(ID, State::Ready).await;
    host.log_says(ID, "nextCursor").await;
    host.fleet.revoke(ID, &[Permission::ContactsRead]).await.expect("taken back");
    host.log_says(ID, "revoked").await;
    let audit = host.audit();
    let about = |decision: &str, reason: &str| {
        audit.iter().any(|line| {
            line["method"] == "host.contacts.list" && line["decision"] == decision && line["reason"] == reason
        })
    };
    assert!(about("allow", "granted") && about("deny", "revoked"), "{audit:#?}");
    host.end().await;
}

async fn rescan() {
    let site = Site::new();
    let folder = site.fault(ID, &serving());
    let host = site.start().await;
    host.until(ID, State::Ready).await;
    let scanning = tokio::spawn({
        let fleet = host.fleet.clone();
        async move { fleet.keep_scanning().await }
    });
    let draft = first_party(Draft::fault("org.example.second", &serving()));
    put(&draft, &host.builtin(), "fault");
    host.until_known("org.example.second").await;
    host.until("org.example.second", State::Ready).await;

    // A changed manifest acts at the next start, and the process that runs is left alone.
    let before = host.fleet.show(ID).await.expect("there").summary.pid;
    let manifest = folder.join("sep_manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    std::fs::write(&manifest, text.replace("\"0.1.0\"", "\"0.2.0\"")).expect("changed");
    host.until_detail(ID, |detail| detail.summary.version.as_deref() == Some("0.2.0")).await;
    assert_eq!(host.fleet.show(ID).await.expect("there").summary.pid, before);

    std::fs::remove_dir_all(&folder).expect("removed");
    host.until(ID, State::Removed).await;
    assert_eq!(host.state("org.example.second").await, State::Ready);
    scanning.abort();
    host.end().await;
}

async fn tampered() {
    let mut site = Site::new();
    put(&Draft::fault(ID, &serving()), &site.extensions(), "fault");
    site.trust(ID);
    let host = site.start().await;
    host.fleet.grant(ID, &[]).await.expect("granted");
    host.until(ID, State::Ready).await;
    host.fleet.stop_one(ID).await.expect("stopped");
    std::fs::write(host.extensions().join(ID).join("more.py"), "evil").expect("a file");
    // Nobody has looked at the folder since; the look before the start finds it.
    let _ = host.fleet.start_one(ID).await;
    host.until(ID, State::Disabled).await;
    assert_eq!(host.fleet.show(ID).await.expect("there").summary.disabled, Some(DisabledReason::Tampered));
    host.end().await;
}

async fn lazy() {
    let mut site = Site::new();
    site.policy.activation = Activation::Lazy;
    put(&first_party(Draft::autoreply()), &site.builtin(), "autoreply");
    let host = site.start().await;
    let id = "org.outrigger.autoreply";
    assert_eq!(host.state(id).await, State::Stopped);
    let snapshot = serde_json::to_value(&*host.fleet.panels().snapshot()).expect("JSON");
    let panel = &snapshot["slots"]["tools.page.primary"][0];
    assert_eq!(panel["state"], "dormant", "{snapshot:#}");
    let key = panel["panelKey"].as_str().expect("a key").to_owned();
    let invoked = host.fleet.call(&key, "reset", None).await.expect("woken and invoked");
    assert_eq!(serde_json::to_value(&invoked).expect("JSON")["outcome"], "ok");
    assert_eq!(host.state(id).await, State::Ready);
    let wrong = host.fleet.call(&key, "no-such-action", None).await.expect_err("no such action");
    assert!(wrong.to_string().contains("no action"), "{wrong}");
    host.end().await;
}

async fn woken_by_a_message() {
    let mut site = Site::new();
    site.policy.activation = Activation::Lazy;
    site.policy.idle_stop = Some(Duration::from_millis(1));
    let mut draft = first_party(Draft::autoreply());
    draft.heartbeat_ms = 1000;
    put(&draft, &site.builtin(), "autoreply");
    let host = site.start().await;
    let id = "org.outrigger.autoreply";
    assert_eq!(host.state(id).await, State::Stopped);
    let line = Line { title: String::new(), content: "wake up".to_owned(), reply_to: None };
    host.mesh.incoming("bob", line).await.expect("taken");
    // The message that woke it is not lost on the way.
    let answered = async || {
        let messages = host.mesh.messages(MessageQuery::newest(10)).await.expect("messages");
        messages.iter().any(|message| message.direction == Direction::Outgoing)
    };
    host.until_so("the message was answered", answered).await;
    host.until(id, State::Stopped).await;
    let exits = host.fleet.show(id).await.expect("there").exits;
    assert_eq!((exits.len(), exits[0].kind), (1, ExitKind::Requested), "{exits:?}");
    host.end().await;
}

async fn asked_first() {
    let newer = "org.example.newer";
    let site = Site::new();
    site.fault(ID, &serving());
    let script = json!([{"do":"attach"}, {"do":"manners","version":"1.2.0"}, {"do":"serve"}]);
    site.fault(newer, &steps(script));
    let host = site.start().await;
    for _ in 0..10 {
        host.until(ID, State::Ready).await;
        host.fleet.stop_one(ID).await.expect("stopped");
        host.fleet.start_one(ID).await.expect("started");
    }
    let exits = host.fleet.show(ID).await.expect("there").exits;
    assert_eq!(exits.len(), 10);
    assert!(exits.iter().all(|exit| exit.code == Some(0)), "{exits:#?}");
    // One that speaks no version of ours learns that it has to go, and goes.
    host.until(newer, State::Failed).await;
    let exits = host.fleet.show(newer).await.expect("there").exits;
    assert_eq!(exits[0].code, Some(0), "{exits:#?}");
    host.end().await;
}

async fn one_host() {
    let site = Site::new();
    let again = site.options();
    let host = site.start().await;
    let error = outrigger_sep::host::Fleet::start(again).await.expect_err("the state is taken");
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    host.end().await;
}
