//! Whole hosts on a phone, with real processes: what the platform does to extensions, and what it cannot do to the host.

use std::time::Duration;

use libtest_mimic::Trial;
use nix::sys::signal::Signal;
use outrigger_sep::config::Background;
use outrigger_sep::host::Happening;
use outrigger_sep::host::life::platform::{Script, SimPlatform};
use outrigger_sep::host::life::{PlatformSignal, TrimLevel};
use outrigger_sep::host::record::Way;
use outrigger_sep::protocol::{ExitKind, State};
use outrigger_sep::reference::Draft;
use serde_json::{Value, json};

use crate::fleet_kit::{Host, steps, trial};
use crate::phone_kit::{Phone, packaged, restless, site, write};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an_extension_in_the_background_is_paused_and_comes_back_where_it_was", paused_and_resumed),
        trial("a_call_that_was_begun_before_the_pause_may_still_be_answered", answered_in_time),
        trial("an_action_that_is_paused_in_the_middle_has_one_answer", paused_action),
        trial("what_the_platform_takes_is_no_crash_and_what_dies_in_sight_is_one", reclaimed),
        trial("an_action_whose_process_is_taken_has_one_answer", reclaimed_action),
        trial("a_frozen_process_may_answer_late", frozen),
        trial("a_hundred_changes_of_mind_are_one", churn),
        trial("an_extension_that_nobody_sees_goes_when_memory_is_short", trimmed),
        trial("an_extension_that_may_stay_in_the_background_stays_with_half_the_window", allowed_to_stay),
        trial("nothing_is_started_while_nobody_looks", born_in_the_background),
        trial("a_start_that_nobody_waits_for_is_given_up_and_made_up_for", abandoned_start),
        trial("what_may_run_in_the_background_is_started_there", started_in_the_background),
    ]
}

const ID: &str = "org.example.phone";
const SUSPENDED: i64 = -32041;

fn draft(script: Value) -> Draft {
    let mut draft = Draft::fault(ID, &steps(script));
    draft.heartbeat_ms = 1000;
    draft
}

/// A phone on which one extension plays this script and is ready.
async fn ready(script: Value) -> Phone {
    let site = site();
    write(&packaged(draft(script)), &site.builtin());
    let phone = Phone::start(site).await;
    phone.host.until(ID, State::Ready).await;
    phone
}

fn attach_and_serve() -> Value {
    json!([{"do":"attach"},{"do":"serve"}])
}

async fn paused_and_resumed() {
    let phone = ready(json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"},
        {"do":"call","method":"host.contacts.list"},
        {"do":"call","method":"host.get_capabilities"},
        {"do":"serve","until":"sep.event","times":3},
        {"do":"call","method":"host.get_capabilities"},
        {"do":"serve"}
    ]))
    .await;
    let mut happenings = phone.host.fleet.listen();
    phone.net.asked().await;
    phone.suspend(ID).await;
    let pings = phone.asked(ID, "sep.health").await;
    for hops in 1..=3 {
        phone.net.online(1, hops);
    }
    phone.net.online(2, 7);

    // What was begun has two more seconds, which is two heartbeats; what comes later has none.
    phone.host.until_so("both calls are answered", async || phone.answers(ID).len() == 2).await;
    let refused = |method: &str| (method.to_owned(), json!(SUSPENDED));
    assert_eq!(phone.answers(ID), [refused("host.contacts.list"), refused("host.get_capabilities")]);
    assert_eq!(phone.asked(ID, "sep.health").await, pings, "no heart beats while it is suspended");
    assert_eq!(phone.topics(ID), ["lifecycle.pausing"], "events wait");

    phone.resume(ID).await;
    phone.host.until_so("it is served again", async || phone.answers(ID).len() == 3).await;
    assert_eq!(phone.answers(ID)[2], ("host.get_capabilities".to_owned(), json!("ok")));
    let heard = phone.heard(ID);
    assert_eq!(
        phone.topics(ID),
        ["lifecycle.pausing", "lifecycle.resumed", "peer.online", "peer.online"],
        "{heard:#?}"
    );
    assert_eq!((&heard[2]["data"]["hops"], &heard[3]["data"]["hops"]), (&json!(3), &json!(7)));
    let seen = Host::transitions(&mut happenings, ID, State::Ready).await;
    assert_eq!(
        seen,
        [
            "ready>pausing(background)",
            "pausing>suspended(acknowledged)",
            "suspended>resuming(foreground)",
            "resuming>ready(probe_answered)"
        ]
    );
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.starts, detail.exits.len()), (1, 0));
    phone.host.fleet.stop_one(ID).await.expect("stopped");
    phone.assert_one_answer_each(ID).await;
    phone.end().await;
}

async fn answered_in_time() {
    let phone = ready(json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"},
        {"do":"call","method":"host.contacts.list"}, {"do":"serve"}
    ]))
    .await;
    phone.net.asked().await;
    phone.suspend(ID).await;
    phone.net.answer();
    phone.host.until_so("it is answered", async || phone.answers(ID).len() == 1).await;
    assert_eq!(phone.answers(ID), [("host.contacts.list".to_owned(), json!("ok"))]);
    assert_eq!(phone.host.state(ID).await, State::Suspended);
    phone.resume(ID).await;
    phone.host.fleet.stop_one(ID).await.expect("stopped");
    phone.assert_one_answer_each(ID).await;
    phone.end().await;
}

/// A script that has a panel with one action, `work/go`, and goes on with these steps.
fn with_panel(then: &[Value]) -> Value {
    let panel = json!({
        "id": "work", "title": "Work", "slot": "tools.page.primary", "actions": [{"id": "go", "label": "Go"}]
    });
    let begin = [
        json!({"do": "attach"}),
        json!({"do": "serve", "until": "sep.initialize"}),
        json!({"do": "call", "method": "host.ui.register_tool_panel", "params": panel}),
    ];
    begin.iter().chain(then).cloned().collect()
}

async fn reclaimed_action() {
    let phone = ready(with_panel(&[json!({"do":"manners","action":"never"}), json!({"do":"serve"})])).await;
    phone.host.log_says(ID, "panelKey").await;
    let acting = tokio::spawn({
        let fleet = phone.host.fleet.clone();
        async move { fleet.call(&format!("{ID}/work"), "go", None).await }
    });
    phone.host.log_says(ID, "sep.action").await;
    phone.suspend(ID).await;
    assert!(!acting.is_finished(), "its time stands still");
    phone.kernel(ID, Signal::SIGKILL).await;
    // At once, and not after the half minute that an action has.
    let failed = tokio::time::timeout(Duration::from_secs(20), acting).await.expect("at once");
    let failed = failed.expect("no panic").expect_err("there is nobody who could have done it");
    assert!(!failed.to_string().is_empty());
    phone.host.until(ID, State::Reclaimed).await;
    phone.resume(ID).await;
    phone.end().await;
}

async fn paused_action() {
    let slow = json!({"do":"manners","action":{"slow":3000}});
    let phone = ready(with_panel(&[slow, json!({"do":"serve"})])).await;
    phone.host.log_says(ID, "panelKey").await;
    let key = format!("{ID}/work");
    let acting = tokio::spawn({
        let (fleet, key) = (phone.host.fleet.clone(), key.clone());
        async move { fleet.call(&key, "go", None).await }
    });
    phone.host.log_says(ID, "sep.action").await;
    phone.suspend(ID).await;
    let refused = phone.host.fleet.call(&key, "go", None).await.expect_err("nothing new while it is paused");
    assert!(refused.to_string().contains("paused"), "{refused}");
    // The answer comes while it is suspended, or was on its way before; it is not lost.
    let acted = acting.await.expect("no panic").expect("an answer");
    assert_eq!(serde_json::to_value(&acted).expect("JSON")["outcome"], "ok");
    phone.resume(ID).await;
    let snapshot = serde_json::to_value(&*phone.host.fleet.panels().snapshot()).expect("JSON");
    assert_eq!(snapshot["slots"]["tools.page.primary"][0]["state"], "active", "{snapshot:#}");
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.starts, detail.exits.len()), (1, 0));
    phone.host.fleet.stop_one(ID).await.expect("stopped");
    assert_eq!(phone.asked(ID, "sep.action").await, 1);
    phone.assert_one_answer_each(ID).await;
    phone.end().await;
}

async fn reclaimed() {
    let phone = ready(attach_and_serve()).await;
    phone.suspend(ID).await;
    let mut happenings = phone.host.fleet.listen();
    phone.kernel(ID, Signal::SIGKILL).await;
    phone.host.until(ID, State::Reclaimed).await;
    let exits = phone.host.fleet.show(ID).await.expect("there").exits;
    let last = exits.back().expect("an exit");
    assert_eq!((last.kind, last.signal, last.counted), (ExitKind::Reclaimed, Some(9), false));
    let metrics = phone.host.fleet.metrics().to_text();
    assert!(metrics.contains(&format!(r#"sep_reclaims_total{{ext="{ID}"}} 1"#)), "{metrics}");

    phone.resume(ID).await;
    let seen = Host::transitions(&mut happenings, ID, State::Ready).await;
    assert_eq!(
        seen,
        [
            "suspended>reclaimed(reclaimed)",
            "reclaimed>starting(resume_after_reclaim)",
            "starting>ready(initialized)"
        ]
    );
    let introductions: Vec<Value> = phone
        .frames(ID)
        .await
        .into_iter()
        .filter(|(way, frame)| *way == Way::ToExtension && frame["method"] == "sep.initialize")
        .map(|(_, frame)| frame["params"]["launchReason"].clone())
        .collect();
    assert_eq!(introductions, ["first", "resume_after_reclaim"]);

    phone.kernel(ID, Signal::SIGKILL).await;
    phone.host.until(ID, State::Backoff).await;
    let exits = phone.host.fleet.show(ID).await.expect("there").exits;
    let last = exits.back().expect("an exit");
    assert_eq!((last.kind, last.signal, last.counted), (ExitKind::Crash, Some(9), true));
    let metrics = phone.host.fleet.metrics().to_text();
    assert!(metrics.contains(&format!(r#"sep_reclaims_total{{ext="{ID}"}} 1"#)), "{metrics}");
    phone.end().await;
}

async fn frozen() {
    let site = site();
    let mut draft = draft(attach_and_serve());
    draft.missed = 20;
    write(&packaged(draft), &site.builtin());
    let phone = Phone::start(site).await;
    phone.host.until(ID, State::Ready).await;
    let pid = phone.pid(ID).await;

    // The platform stops it first and says so afterwards; a heartbeat and an event are on their way meanwhile.
    let pings = phone.asked(ID, "sep.health").await;
    phone.kernel(ID, Signal::SIGSTOP).await;
    phone.net.online(1, 1);
    phone.host.until_so("a heartbeat waits", async || phone.asked(ID, "sep.health").await > pings).await;
    phone.signal(PlatformSignal::Freeze).await;
    phone.host.until(ID, State::Suspended).await;
    let pings = phone.asked(ID, "sep.health").await;
    // It is the time that is tried here: more than a heartbeat.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(phone.asked(ID, "sep.health").await, pings);

    phone.kernel(ID, Signal::SIGCONT).await;
    phone.signal(PlatformSignal::Thaw).await;
    phone.host.until(ID, State::Ready).await;
    phone.host.until_so("it heard", async || phone.topics(ID) == ["peer.online", "lifecycle.resumed"]).await;
    // Its heart beats on.
    let pings = phone.asked(ID, "sep.health").await;
    phone.host.until_so("it is asked again", async || phone.asked(ID, "sep.health").await > pings).await;
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.pid, detail.summary.starts, detail.exits.len()), (Some(pid), 1, 0));
    phone.host.fleet.stop_one(ID).await.expect("stopped");
    phone.assert_one_answer_each(ID).await;
    phone.end().await;
}

async fn churn() {
    let phone = ready(attach_and_serve()).await;
    let pid = phone.pid(ID).await;
    let mut happenings = phone.host.fleet.listen();
    let script: Vec<String> = (0..100)
        .map(|turn| format!("t=0.{:03} {}", turn * 2, if turn % 2 == 0 { "bg" } else { "fg" }))
        .chain(["t=0.2 bg".to_owned()])
        .collect();
    let script: Script = script.join("; ").parse().expect("a script");
    phone.host.fleet.follow(SimPlatform::new(script)).await;
    phone.host.until(ID, State::Suspended).await;
    for turn in 0..100 {
        let signal = if turn % 2 == 0 { PlatformSignal::Background } else { PlatformSignal::Foreground };
        phone.signal(signal).await;
    }
    phone.host.until(ID, State::Ready).await;
    // Of a hundred changes within the time for one, the first sets the time and the last the direction.
    let mut pauses = 0;
    while let Ok(happening) = happenings.try_recv() {
        pauses += u32::from(matches!(&*happening, Happening::Changed { to: State::Pausing, .. }));
    }
    assert!((1..=10).contains(&pauses), "{pauses} of 101 times");
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.pid, detail.summary.starts, detail.exits.len()), (Some(pid), 1, 0));
    phone.end().await;
}

async fn trimmed() {
    let phone = ready(attach_and_serve()).await;
    // In sight it is only a hint.
    phone.signal(PlatformSignal::TrimMemory(TrimLevel::Critical)).await;
    phone.host.until_so("it heard", async || phone.topics(ID) == ["lifecycle.trim"]).await;
    assert_eq!(phone.heard(ID)[0]["data"], json!({"level": "critical"}));
    assert_eq!(phone.host.state(ID).await, State::Ready);

    phone.suspend(ID).await;
    let mut happenings = phone.host.fleet.listen();
    phone.signal(PlatformSignal::TrimMemory(TrimLevel::Low)).await;
    assert_eq!(phone.host.state(ID).await, State::Suspended);
    phone.signal(PlatformSignal::TrimMemory(TrimLevel::Critical)).await;
    let seen = Host::transitions(&mut happenings, ID, State::Reclaimed).await;
    assert_eq!(seen, ["suspended>stopping(reclaimed)", "stopping>reclaimed(reclaimed)"]);
    let exits = phone.host.fleet.show(ID).await.expect("there").exits;
    assert_eq!((exits[0].kind, exits[0].code, exits[0].counted), (ExitKind::Reclaimed, Some(0), false));
    phone.resume(ID).await;
    phone.end().await;
}

async fn allowed_to_stay() {
    let mut site = site();
    site.policy.android.background = Background::Allow;
    // It hears and never says so.
    let script = with_panel(&[
        json!({"do":"serve","until":"sep.event"}),
        json!({"do":"manners","event":"never"}),
        json!({"do":"serve"}),
    ]);
    write(&restless(draft(script)), &site.builtin());
    let phone = Phone::start(site).await;
    phone.host.until(ID, State::Ready).await;
    phone.host.log_says(ID, "panelKey").await;
    let mut happenings = phone.host.fleet.listen();
    phone.signal(PlatformSignal::Background).await;
    phone.host.until_so("it heard", async || phone.topics(ID) == ["lifecycle.background"]).await;
    assert_eq!(Host::transitions(&mut happenings, ID, State::Ready).await, ["ready>ready(background)"]);

    let delivered = async || {
        let frames = phone.frames(ID).await;
        frames.iter().filter(|(_, frame)| frame["params"]["topic"] == "peer.online").count()
    };
    for who in 0..60 {
        phone.net.online(who, 1);
    }
    phone.host.until_so("the window is full", async || delivered().await >= 16).await;
    // A call there and back again: whatever else could have been sent has been sent.
    phone.host.fleet.call(&format!("{ID}/work"), "go", None).await.expect("it is there");
    assert_eq!(delivered().await, 16, "half of the window of a first party");
    phone.signal(PlatformSignal::Foreground).await;
    phone.host.until_so("the window is full", async || delivered().await >= 32).await;
    phone.host.fleet.call(&format!("{ID}/work"), "go", None).await.expect("it is there");
    assert_eq!(delivered().await, 32, "the whole window");
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.starts, detail.exits.len()), (1, 0));

    // It may stay, and is taken all the same: that is no crash either.
    phone.signal(PlatformSignal::Background).await;
    let background = "lifecycle.background";
    phone
        .host
        .until_so("it is there", async || {
            phone.topics(ID).iter().filter(|topic| *topic == background).count() == 2
        })
        .await;
    phone.kernel(ID, Signal::SIGKILL).await;
    phone.host.until(ID, State::Reclaimed).await;
    phone.end().await;
}

async fn born_in_the_background() {
    let site = site();
    let phone = Phone::wait(site).await;
    phone.signal(PlatformSignal::Background).await;
    write(&packaged(draft(attach_and_serve())), &phone.host.builtin());
    phone.host.fleet.rescan().await;
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.state, detail.summary.starts), (State::Stopped, 0));
    phone.resume(ID).await;
    assert_eq!(phone.host.fleet.show(ID).await.expect("there").summary.starts, 1);
    phone.end().await;
}

async fn abandoned_start() {
    let site = site();
    let script = json!([{"do":"first","times":1,"steps":[{"do":"hang"}]},{"do":"attach"},{"do":"serve"}]);
    write(&packaged(draft(script)), &site.builtin());
    let phone = Phone::start(site).await;
    phone.host.until_detail(ID, |detail| detail.summary.phase == Some("attaching")).await;
    let mut happenings = phone.host.fleet.listen();
    phone.signal(PlatformSignal::Background).await;
    let seen = Host::transitions(&mut happenings, ID, State::Stopped).await;
    assert_eq!(seen, ["starting>stopping(background)", "stopping>stopped(requested)"]);
    phone.resume(ID).await;
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.starts, detail.exits.len()), (2, 1));
    assert_eq!((detail.exits[0].kind, detail.exits[0].counted), (ExitKind::Requested, false));
    phone.end().await;
}

async fn started_in_the_background() {
    let mut site = site();
    site.policy.android.background = Background::Allow;
    write(&restless(draft(attach_and_serve())), &site.builtin());
    let phone = Phone::wait(site).await;
    phone.signal(PlatformSignal::Background).await;
    phone.host.fleet.rescan().await;
    phone.host.until(ID, State::Ready).await;
    phone.host.until_so("it heard", async || phone.topics(ID) == ["lifecycle.background"]).await;
    assert_eq!(phone.host.state(ID).await, State::Ready);
    let frames = phone.frames(ID).await;
    let introduction = frames.iter().find(|(_, frame)| frame["method"] == "sep.initialize");
    let platform = &introduction.expect("it was introduced").1["params"]["platform"];
    assert_eq!(platform, &json!({"profile": "android", "state": "background"}));
    phone.end().await;
}
