//! Which extensions a phone runs, and what people see of those that it cannot run.

use libtest_mimic::Trial;
use outrigger_sep::host::life::PlatformSignal;
use outrigger_sep::host::life::platform::{Script, SimPlatform};
use outrigger_sep::manifest::{AuthorKey, KeyId, Severity, sign};
use outrigger_sep::mesh::embedded::Line;
use outrigger_sep::mesh::{Address, MessageQuery, Messaging, Outgoing};
use outrigger_sep::protocol::{Slot, State};
use outrigger_sep::reference::Draft;
use serde_json::{Value, json};

use crate::fleet_kit::{PATIENCE, Site, first_party, put, serving, trial};
use crate::phone_kit::{Phone, bare_site, packaged, runtime_in, site, write};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("without_its_runtime_an_extension_is_shown_and_left_alone", no_runtime),
        trial("a_phone_runs_what_it_was_made_for_and_a_desktop_does_not", wrong_profile),
        trial("third_parties_are_refused_on_a_phone_unless_they_are_allowed", third_party),
        trial("what_is_not_an_extension_any_more_has_no_panels", panels_gone),
        trial("nobody_follows_a_platform_when_the_host_has_gone", follows_no_more),
    ]
}

const ID: &str = "org.example.phone";

fn draft() -> Draft {
    let panels = vec![("work".to_owned(), "Work".to_owned(), Slot::Primary)];
    Draft { panels, ..Draft::fault(ID, &serving()) }
}

fn panel(phone: &Phone) -> Value {
    let snapshot = serde_json::to_value(&*phone.host.fleet.panels().snapshot()).expect("JSON");
    snapshot["slots"]["tools.page.primary"][0].clone()
}

async fn no_runtime() {
    let site = bare_site();
    write(&packaged(draft()), &site.builtin());
    let phone = Phone::start(site).await;
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!((detail.summary.state, detail.summary.starts), (State::Unavailable, 0));
    let why = detail.summary.detail.expect("a reason");
    assert!(why.contains("runtime is not installed"), "{why}");
    let shown = panel(&phone);
    assert_eq!((&shown["title"], &shown["state"]), (&json!("Work"), &json!("unavailable")), "{shown:#}");
    assert!(shown["reason"].as_str().is_some_and(|why| why.contains("not installed")), "{shown:#}");
    let refused =
        phone.host.fleet.call(&format!("{ID}/work"), "go", None).await.expect_err("nobody is there");
    assert!(refused.to_string().contains("not installed"), "{refused}");

    // Neither a person nor the platform nor another look makes it try.
    let refused = phone.host.fleet.start_one(ID).await.expect_err("it cannot be started");
    assert!(refused.to_string().contains("unavailable"), "{refused}");
    phone.signal(PlatformSignal::Background).await;
    phone.signal(PlatformSignal::Foreground).await;
    phone.host.fleet.rescan().await;
    assert_eq!(phone.host.fleet.show(ID).await.expect("there").summary.starts, 0);
    assert_eq!(panel(&phone)["state"], "unavailable");
    let mesh = &phone.host.mesh;
    let line = Line { title: String::new(), content: "hello".to_owned(), reply_to: None };
    mesh.incoming("ada", line).await.expect("heard");
    let all = MessageQuery { limit: 10, ..everything() };
    let ada = mesh.messages(all).await.expect("messages")[0].source;
    mesh.send(message(ada)).await.expect("messages go on");

    runtime_in(phone.host.place.path());
    phone.host.fleet.rescan().await;
    phone.host.until(ID, State::Ready).await;
    assert_eq!(panel(&phone)["state"], "active");
    phone.end().await;
}

fn everything() -> MessageQuery {
    MessageQuery { peer: None, direction: None, since_ms: None, until_ms: None, after: None, limit: 100 }
}

fn message(destination: Address) -> Outgoing {
    let content = "still here".to_owned();
    Outgoing { destination, content, title: None, method: None, reply_to: None }
}

async fn wrong_profile() {
    let desktop = Site::new();
    write(&packaged(draft()), &desktop.builtin());
    let host = desktop.start().await;
    let detail = host.fleet.show(ID).await.expect("there");
    assert_eq!(detail.summary.state, State::Blocked);
    assert!(detail.findings.iter().any(|finding| finding.code == "M-profile"), "{:#?}", detail.findings);
    host.end().await;

    let phone = site();
    put(&first_party(Draft::fault(ID, &serving())), &phone.builtin(), "fault");
    let mut unlisted = packaged(Draft::fault("org.example.unlisted", &serving()));
    unlisted["android"]["runtimeMode"] = json!("approved_runtime");
    unlisted["entrypoint"]["command"] = json!("/usr/bin/python3");
    let folder = write(&unlisted, &phone.builtin());
    let key = AuthorKey::create(&phone.place.path().join("makers")).expect("a key");
    std::fs::create_dir_all(&phone.policy.keys_dir).expect("a folder");
    std::fs::rename(phone.place.path().join("makers.pub"), phone.policy.keys_dir.join("makers.pub"))
        .expect("moved");
    let makers = KeyId::new("makers").expect("a name");
    sign(&folder, &key, &makers).expect("signed").install().expect("written");
    unlisted["id"] = json!("org.example.unsigned");
    write(&unlisted, &phone.builtin());
    let mut unknown = packaged(Draft::fault("org.example.unknown", &serving()));
    unknown["entrypoint"]["args"][0] = json!("no-such-module");
    write(&unknown, &phone.builtin());
    let phone = Phone::start(phone).await;
    let codes = async |id: &str| {
        let detail = phone.host.fleet.show(id).await.expect("there");
        let blocks = detail.findings.iter().filter(|finding| finding.severity != Severity::Warning);
        let codes: Vec<&str> = blocks.map(|finding| finding.code).collect();
        (detail.summary.state, codes.join(" "))
    };
    assert_eq!(codes(ID).await, (State::Blocked, "M-profile".to_owned()));
    assert_eq!(codes("org.example.unknown").await.0, State::Unavailable);
    assert_eq!(codes("org.example.unlisted").await, (State::Unavailable, "M-runtime".to_owned()));
    // Unsigned, it does not run, whoever would run it.
    let (state, said) = codes("org.example.unsigned").await;
    assert_eq!(state, State::Blocked);
    assert!(said.contains("M-sign-missing"), "{said}");
    phone.end().await;
}

async fn third_party() {
    let mut manifest = packaged(draft());
    manifest["trustLevel"] = json!("trusted_third_party");
    let mut site = site();
    write(&manifest, &site.extensions());
    site.trust(ID);
    let phone = Phone::start(site).await;
    let detail = phone.host.fleet.show(ID).await.expect("there");
    assert_eq!(detail.summary.state, State::Blocked);
    let why = detail.summary.detail.expect("a reason");
    assert!(why.contains("on a phone only first_party"), "{why}");
    let mut site = phone.end().await;

    site.policy.android.allow_third_party = true;
    let phone = Phone::start(site).await;
    assert_eq!(phone.host.state(ID).await, State::NeedsConsent);
    phone.host.fleet.grant(ID, &[]).await.expect("granted");
    phone.host.until(ID, State::Ready).await;
    phone.suspend(ID).await;
    phone.resume(ID).await;
    phone.end().await;
}

async fn panels_gone() {
    let site = site();
    let folder = write(&packaged(draft()), &site.builtin());
    let phone = Phone::start(site).await;
    phone.host.until(ID, State::Ready).await;
    phone.host.fleet.stop_one(ID).await.expect("stopped");
    assert_eq!(panel(&phone)["state"], "dormant");
    let manifest = folder.join("sep_manifest.json");
    let good = std::fs::read_to_string(&manifest).expect("a manifest");
    std::fs::write(&manifest, good.replace("\"apiVersion\": \"1.0.0\"", "\"apiVersion\": \"2.0.0\""))
        .expect("room");
    phone.host.fleet.rescan().await;
    assert_eq!(phone.host.state(ID).await, State::Blocked);
    assert_eq!(panel(&phone), Value::Null);
    std::fs::write(&manifest, good).expect("room");
    phone.host.fleet.rescan().await;
    phone.host.until(ID, State::Ready).await;
    assert_eq!(panel(&phone)["state"], "active");
    phone.end().await;
}

async fn follows_no_more() {
    let site = site();
    write(&packaged(draft()), &site.builtin());
    let phone = Phone::start(site).await;
    phone.host.until(ID, State::Ready).await;
    let fleet = phone.host.fleet.clone();
    let script: Script = "t=0 bg; t=86400 fg".parse().expect("a script");
    let following = tokio::spawn(async move { fleet.follow(SimPlatform::new(script)).await });
    phone.host.until(ID, State::Suspended).await;
    phone.host.fleet.shutdown().await;
    tokio::time::timeout(PATIENCE, following).await.expect("it ends with the host").expect("no panic");
    phone.end().await;
}
