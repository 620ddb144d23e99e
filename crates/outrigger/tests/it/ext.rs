//! The extension host as a user meets it: from an empty folder to a panel that answers, and everything that can go wrong.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::process::{Finished, PATIENCE, Running, outrigger, wait_until};

const HELLO: &str = "org.example.hello";

/// A folder in which hosts live.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `outrigger ext …` about the host in the folder `home`.
    fn command(&self, home: &str, args: &[&str]) -> Command {
        let mut command = outrigger(["ext"].into_iter().chain(args.iter().copied()));
        command
            .env("OUTRIGGER_EXT_HOME", self.path(home))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("HOME", self.folder.path())
            .env_remove("OUTRIGGER_EXT_POLICY");
        command
    }

    fn run(&self, home: &str, args: &[&str]) -> Finished {
        crate::process::finish(&mut self.command(home, args))
    }

    /// What it printed with `--json`; it must have worked.
    fn json(&self, home: &str, args: &[&str]) -> Vec<Value> {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let finished = self.run(home, &args);
        assert_eq!(finished.code(), 0, "{args:?}\n{}\n{}", finished.stdout, finished.stderr);
        finished.events()
    }

    /// A host that is up.
    fn up(&self, home: &str, more: &[&str]) -> Running {
        let args: Vec<&str> = ["up", "--json"].into_iter().chain(more.iter().copied()).collect();
        let running = Running::start(&mut self.command(home, &args));
        running.wait_for_output("\"event\":\"up\"");
        running
    }

    /// Waits until an extension is in this state.
    fn until(&self, home: &str, id: &str, state: &str) -> Value {
        let mut last = Value::Null;
        let seen = wait_until(PATIENCE, || {
            last = self.json(home, &["list"]).into_iter().find(|one| one["id"] == id).unwrap_or_default();
            last["state"] == state
        });
        seen.unwrap_or_else(|()| panic!("{id} never was {state}: {last:#}"));
        last
    }

    /// A Python extension that was read, trusted and granted what it asks for.
    fn hello(&self, home: &str) {
        assert_eq!(self.run(home, &["new", HELLO]).code(), 0);
        assert_eq!(self.run(home, &["trust", HELLO]).code(), 0);
        assert_eq!(self.run(home, &["grant", HELLO]).code(), 0);
    }
}

fn stop(running: Running) -> Finished {
    running.signal("INT");
    running.finish()
}

fn is_alive(pid: u64) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[test]
fn from_an_empty_folder_to_an_extension_that_answers_messages() {
    let place = Place::new();
    let mesh = place.path("mesh.sqlite");
    let mesh = mesh.to_str().unwrap();
    place.hello("alice");
    let validated =
        place.json("alice", &["validate", place.path("alice/extensions").join(HELLO).to_str().unwrap()]);
    assert_eq!(validated[0]["standing"], "admitted", "{validated:?}");
    let alice = place.up("alice", &["--name", "alice", "--mesh", mesh]);
    let bob = place.up("bob", &["--name", "bob", "--mesh", mesh]);
    let ready = place.until("alice", HELLO, "ready");

    // Somebody else on the same machine writes; the extension answers; the answer arrives.
    let to = place.run("alice", &["node"]).stdout.trim().to_owned();
    let sent = place.json("bob", &["message", "send", &to, "are you there?"]);
    assert_eq!(sent[0]["event"], "sent");
    let answered = wait_until(PATIENCE, || {
        place.json("bob", &["message", "list"]).iter().any(|message| {
            message["incoming"] == true && message["content"].as_str().unwrap_or("").contains("I am away")
        })
    });
    answered.unwrap_or_else(|()| panic!("{:#?}", place.json("alice", &["logs", HELLO])));

    // The panel counts it, and a click resets it.
    let panel = |text: &str| place.run("alice", &["ui"]).stdout.contains(text);
    wait_until(PATIENCE, || panel("Auto-reply") && panel("Received")).expect("a panel with numbers");
    assert_eq!(place.json("alice", &["call", HELLO, "stats", "reset"])[0]["outcome"], "ok");
    let typed = place.json("alice", &["call", HELLO, "stats", "set-reply", "--input", "back at nine"]);
    assert_eq!(typed[0]["outcome"], "ok");
    let unknown = place.run("alice", &["call", HELLO, "stats", "no-such-thing"]);
    assert_eq!(unknown.code(), 125);
    assert!(unknown.stderr.contains("no action `no-such-thing`"), "{}", unknown.stderr);

    // What was decided is written down, and what is taken back is gone.
    let revoked = place.json("alice", &["revoke", HELLO, "messages.send"]);
    assert_eq!(revoked[0]["permissions"][0], "messages.send");
    let shown = &place.json("alice", &["show", HELLO])[0];
    assert_eq!(shown["session"]["sandbox"]["level"], "strict");
    let denied = shown["permissions"]["denied"].as_array().unwrap();
    assert!(
        denied.iter().any(|one| one["permission"] == "messages.send" && one["reason"] == "revoked"),
        "{shown:#}"
    );
    let metrics = place.run("alice", &["metrics"]).stdout;
    assert!(metrics.contains("sep_starts_total{ext=\"org.example.hello\"} 1"), "{metrics}");
    assert_eq!(place.json("alice", &["audit", "verify"])[0]["event"], "verified");
    let trail = place.run("alice", &["audit", "show", HELLO, "-n", "500"]).stdout;
    assert!(trail.contains("host.messages.send") && trail.contains("revoke"), "{trail}");
    assert!(!trail.contains("I am away"), "content is never in the trail");

    let pid = ready["pid"].as_u64().unwrap();
    assert!(is_alive(pid));
    let down = stop(alice);
    assert_eq!(down.code(), 0, "{}", down.stderr);
    assert!(!is_alive(pid));
    assert_eq!(down.events().last().unwrap()["event"], "down");
    stop(bob);
    // Without a host the same questions have the same answers.
    assert_eq!(place.json("alice", &["audit", "verify"])[0]["event"], "verified");
    let list = place.json("alice", &["list"]);
    assert_eq!(list[0]["state"], "stopped", "{list:#?}");
}

#[test]
fn a_second_host_is_refused_and_the_wrong_word_is_explained() {
    let place = Place::new();
    place.hello("home");
    let first = place.up("home", &[]);
    place.until("home", HELLO, "ready");
    let second = place.run("home", &["up"]);
    assert_eq!(second.code(), 125);
    assert!(second.stderr.contains(&first.child.id().to_string()), "{}", second.stderr);
    let unknown = place.run("home", &["show", "org.example.helo"]);
    assert!(unknown.stderr.contains("is `org.example.hello` meant?"), "{}", unknown.stderr);
    let word = place.run("home", &["grant", HELLO, "messages.reed"]);
    assert!(word.stderr.contains("messages.read"), "{}", word.stderr);
    assert_eq!(place.run("home", &["up", "--bakend", "lxmf"]).code(), 2);
    assert_eq!(place.run("home", &["down"]).code(), 0);
    assert_eq!(first.finish().code(), 0);
    let nobody = place.run("home", &["start", HELLO]);
    assert_eq!(nobody.code(), 125);
    assert!(nobody.stderr.contains("outrigger ext up"), "{}", nobody.stderr);
    std::fs::write(place.path("home/policy.toml"), "untrusted_lokal = \"allow\"\n").unwrap();
    let policy = place.run("home", &["up"]);
    assert!(
        policy.stderr.contains("line 1") && policy.stderr.contains("untrusted_local"),
        "{}",
        policy.stderr
    );
}

#[test]
fn one_bad_manifest_hides_no_other_and_all_that_is_wrong_is_said() {
    let place = Place::new();
    place.hello("home");
    let bad = place.path("home/extensions/org.example.bad");
    std::fs::create_dir(&bad).unwrap();
    let manifest =
        std::fs::read_to_string(place.path("home/extensions").join(HELLO).join("sep_manifest.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
    manifest["id"] = "org.example.bad".into();
    manifest["permisions"] = Value::Null;
    manifest["health"]["startupTimeoutMs"] = 5.into();
    std::fs::write(bad.join("sep_manifest.json"), manifest.to_string()).unwrap();
    let worse = place.path("home/extensions/org.example.worse");
    std::fs::create_dir(&worse).unwrap();
    std::fs::write(worse.join("sep_manifest.json"), b"{\"id\": \"a.b\", \"id\"").unwrap();

    let told = place.run("home", &["validate", bad.to_str().unwrap(), worse.to_str().unwrap()]);
    assert_eq!(told.code(), 1);
    for words in ["M-schema", "/permisions", "permissions", "/health/startupTimeoutMs", "1000", "M-json"] {
        assert!(told.stdout.contains(words), "{words}\n{}", told.stdout);
    }
    let up = place.up("home", &[]);
    place.until("home", HELLO, "ready");
    place.until("home", "org.example.bad", "invalid");
    place.until("home", "org.example.worse", "invalid");
    stop(up);
}

#[test]
fn a_file_that_changed_after_it_was_trusted_does_not_start() {
    let place = Place::new();
    place.hello("home");
    let main = place.path("home/extensions").join(HELLO).join("main.py");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, text + "\n# something else\n").unwrap();
    let up = place.up("home", &[]);
    let one = place.until("home", HELLO, "disabled");
    assert_eq!(one["disabled"], "tampered", "{one:#}");
    stop(up);
    assert_eq!(place.run("home", &["trust", HELLO]).code(), 0);
    let up = place.up("home", &[]);
    // What was disabled stays so until somebody says otherwise.
    place.until("home", HELLO, "disabled");
    let enabled = place.run("home", &["enable", HELLO]);
    assert_eq!(enabled.code(), 0, "{}", enabled.stderr);
    place.until("home", HELLO, "ready");
    stop(up);
}

#[test]
fn a_signature_is_as_good_as_a_digest_and_a_wrong_one_blocks() {
    let place = Place::new();
    assert_eq!(place.run("home", &["new", HELLO]).code(), 0);
    let key = place.path("release.key");
    assert_eq!(place.run("home", &["sign", "--new-key", key.to_str().unwrap()]).code(), 0);
    let folder = place.path("home/extensions").join(HELLO);
    let signed = place.run(
        "home",
        &["sign", folder.to_str().unwrap(), "--key", key.to_str().unwrap(), "--key-id", "release"],
    );
    assert_eq!(signed.code(), 0, "{}", signed.stderr);
    std::fs::create_dir(place.path("home/keys")).unwrap();
    std::fs::copy(place.path("release.pub"), place.path("home/keys/release.pub")).unwrap();
    let policy = format!("[[trusted]]\nid = \"{HELLO}\"\nkey_id = \"release\"\n");
    std::fs::write(place.path("home/policy.toml"), policy).unwrap();
    assert_eq!(place.run("home", &["grant", HELLO]).code(), 0);
    let one = &place.json("home", &["list"])[0];
    assert_eq!((&one["state"], &one["trust"]), (&"stopped".into(), &"trusted_third_party".into()), "{one:#}");
    std::fs::write(folder.join("more.txt"), "not signed").unwrap();
    let one = &place.json("home", &["list"])[0];
    assert_eq!(one["state"], "blocked", "{one:#}");
    assert!(one["detail"].as_str().unwrap().contains("M-sign-invalid"), "{one:#}");
}

#[test]
fn kill_minus_nine_of_the_host_leaves_no_extension_and_the_next_one_goes_on() {
    let place = Place::new();
    place.hello("home");
    for _ in 0..3 {
        let up = place.up("home", &[]);
        let pid = place.until("home", HELLO, "ready")["pid"].as_u64().unwrap();
        up.signal("KILL");
        up.finish();
        wait_until(Duration::from_secs(3), || !is_alive(pid)).expect("the extension is gone with its host");
    }
    assert_eq!(place.json("home", &["audit", "verify"])[0]["event"], "verified");
    let up = place.up("home", &[]);
    place.until("home", HELLO, "ready");
    stop(up);
}

#[test]
fn the_reference_extension_in_rust_runs_from_the_same_program() {
    let place = Place::new();
    assert_eq!(place.run("home", &["new", "org.example.rusty", "--language", "rust"]).code(), 0);
    assert_eq!(place.run("home", &["trust", "org.example.rusty"]).code(), 0);
    assert_eq!(place.run("home", &["grant", "org.example.rusty"]).code(), 0);
    let up = place.up("home", &["--lazy", "--trace"]);
    place.until("home", "org.example.rusty", "stopped");
    assert_eq!(place.json("home", &["call", "org.example.rusty", "stats", "reset"])[0]["outcome"], "ok");
    place.until("home", "org.example.rusty", "ready");
    let frames = place.run("home", &["trace", "org.example.rusty"]).stdout;
    assert!(frames.contains("sep.initialize") && frames.contains("sep.action"), "{frames}");
    assert_eq!(place.run("home", &["disable", "org.example.rusty"]).code(), 0);
    place.until("home", "org.example.rusty", "disabled");
    assert!(place.run("home", &["ui"]).stdout.is_empty());
    stop(up);
}

#[test]
fn a_phone_without_a_runtime_shows_the_panel_and_says_why() {
    let place = Place::new();
    let folder = place.path("home/builtin/org.example.pocket");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(place.path("home/policy.toml"), "builtin_dir = \"builtin\"\n").unwrap();
    let manifest = serde_json::json!({
        "schemaVersion": "1.0.0", "id": "org.example.pocket", "name": "Pocket", "version": "0.1.0", "apiVersion": "1.0.0",
        "trustLevel": "first_party", "platformProfile": "android",
        "entrypoint": { "command": "meshchatx-android-extension-runtime", "args": ["pocket"] },
        "permissions": ["tools.register"],
        "health": { "startupTimeoutMs": 5000, "heartbeatIntervalMs": 5000, "unhealthyAfterMissedHeartbeats": 2 },
        "limits": { "maxRequestBytes": 32768, "maxRequestsPerSecond": 30, "maxConcurrentRequests": 8 },
        "ui": { "toolPanels": [{ "id": "pocket", "title": "In the pocket", "slot": "tools.page.primary" }] },
        "android": { "runtimeMode": "packaged_module", "allowBackgroundExecution": false },
    });
    std::fs::write(folder.join("sep_manifest.json"), manifest.to_string()).unwrap();
    let wrong = place.run("home", &["up", "--phone", "t=0 sideways"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("sideways"), "{}", wrong.stderr);

    let up = place.up("home", &["--phone", "t=0 fg"]);
    let one = place.until("home", "org.example.pocket", "unavailable");
    assert_eq!(one["starts"], 0, "{one:#}");
    let ui = place.run("home", &["ui"]).stdout;
    assert!(ui.contains("In the pocket") && ui.contains("unavailable"), "{ui}");
    stop(up);
    // On a desktop the same manifest is for somebody else.
    let up = place.up("home", &[]);
    let one = place.until("home", "org.example.pocket", "blocked");
    assert!(one["detail"].as_str().unwrap().contains("M-profile"), "{one:#}");
    stop(up);
}

#[test]
fn the_box_for_untrusted_extensions_is_probed() {
    let place = Place::new();
    let probed = place.json("home", &["sandbox", "probe"]);
    assert_eq!(probed[0]["auto_level"], "strict", "{probed:#?}");
}

/// Two real Reticulum nodes, each below a host of its own.
#[test]
fn an_extension_answers_over_real_reticulum_nodes() {
    let Some(packages) = std::env::var_os("OUTRIGGER_PY_LXMF") else {
        eprintln!("skipped, because lxmf and rns are not installed: run the tests with `cargo xtask test`");
        return;
    };
    let packages = packages.to_str().unwrap().to_owned();
    let port = free_port().to_string();
    let place = Place::new();
    place.hello("alice");
    let more = ["--backend", "lxmf", "--packages", &packages];
    let alice = place.up("alice", &[&more[..], &["--listen", &port, "--name", "alice"]].concat());
    let bob = place.up("bob", &[&more[..], &["--connect", &port, "--name", "bob"]].concat());
    place.until("alice", HELLO, "ready");
    let to = place.run("alice", &["node"]).stdout.trim().to_owned();
    // The first announcements have to cross; until then there is no path.
    let sent =
        wait_until(PATIENCE * 2, || place.run("bob", &["message", "send", &to, "over the air"]).code() == 0);
    sent.expect("a path to the other node");
    let answered = wait_until(PATIENCE * 2, || {
        place.json("bob", &["message", "list"]).iter().any(|message| message["incoming"] == true)
    });
    answered.expect("an answer");
    stop(alice);
    stop(bob);
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
