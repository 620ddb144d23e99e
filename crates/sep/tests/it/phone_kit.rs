//! A phone: a host under the profile for phones, whose packaged runtime is this binary, on a network that can be made to wait.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use outrigger_sep::config::{PACKAGED_RUNTIME, TracePolicy};
use outrigger_sep::host::life::PlatformSignal;
use outrigger_sep::host::record::Way;
use outrigger_sep::host::{Fleet, FleetOptions};
use outrigger_sep::manifest::HostFacts;
use outrigger_sep::mesh::{
    Address, Contact, ContactQuery, Ear, Embedded, EmbeddedOptions, MeshError, MeshEvent, Message,
    MessageQuery, Messaging, Outgoing, Sent,
};
use outrigger_sep::protocol::{Profile, State};
use outrigger_sep::reference::{Draft, Program};
use outrigger_wire::peer::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::fleet_kit::{Host, PATIENCE, Site, first_party};

/// The module that the packaged runtime has.
pub(crate) const MODULE: &str = "fault";

/// A host on a phone.
pub(crate) struct Phone {
    pub(crate) host: Host,
    pub(crate) net: Arc<Net>,
}

/// A network of which the test has the strings: contacts are found, and events happen when the test says so.
pub(crate) struct Net {
    mesh: Arc<Embedded>,
    ear: Mutex<Option<Arc<dyn Ear>>>,
    asked: watch::Sender<u32>,
    answers: watch::Sender<bool>,
}

/// A phone that has its runtime, and keeps the last frames.
pub(crate) fn site() -> Site {
    let mut site = bare_site();
    install_runtime(&site);
    site.policy.trace = TracePolicy::Redacted;
    site
}

/// A phone whose makers forgot the runtime.
pub(crate) fn bare_site() -> Site {
    let mut site = Site::new();
    let folder = site.place.path().join("runtime");
    std::fs::create_dir(&folder).expect("a folder");
    site.policy.runtime_path = folder.to_str().expect("a path of letters").to_owned();
    site.policy.android.packaged_modules = vec![MODULE.to_owned()];
    site
}

/// Installs this binary under the name of the runtime.
pub(crate) fn install_runtime(site: &Site) {
    runtime_in(site.place.path());
}

pub(crate) fn runtime_in(place: &Path) {
    let own = std::env::current_exe().expect("own path");
    let runtime = place.join("runtime").join(PACKAGED_RUNTIME);
    if std::fs::hard_link(&own, &runtime).is_err() {
        std::fs::copy(&own, &runtime).expect("a copy");
    }
}

/// What the manifest of an extension for phones says that runs as a module of the packaged runtime.
pub(crate) fn packaged(draft: Draft) -> Value {
    let mut manifest =
        first_party(draft).manifest(Program::Command { command: PACKAGED_RUNTIME, args: &[MODULE] });
    manifest["platformProfile"] = json!("android");
    manifest["android"] = json!({"runtimeMode": "packaged_module", "allowBackgroundExecution": false});
    manifest
}

/// The same, and it would like to run in the background.
pub(crate) fn restless(draft: Draft) -> Value {
    let mut manifest = packaged(draft);
    manifest["android"]["allowBackgroundExecution"] = json!(true);
    manifest
}

/// Writes the folder of an extension that is nothing but its manifest.
pub(crate) fn write(manifest: &Value, root: &Path) -> PathBuf {
    let folder = root.join(manifest["id"].as_str().expect("an id"));
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("sep_manifest.json");
    std::fs::write(&path, format!("{manifest:#}\n")).expect("a manifest");
    let only_ours = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    only_ours(&folder, 0o755);
    only_ours(&path, 0o644);
    folder
}

/// What an extension printed, of what was JSON.
pub(crate) fn said(host: &Host, id: &str) -> Vec<Value> {
    let log = host.log(id);
    // The last line may be being written.
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let said = lines.filter(|line| line["stream"] == "stdout");
    said.filter_map(|line| serde_json::from_str(line["msg"].as_str()?).ok()).collect()
}

impl Phone {
    /// Starts the host and looks at the folders once.
    pub(crate) async fn start(site: Site) -> Self {
        let phone = Self::wait(site).await;
        phone.host.fleet.rescan().await;
        phone
    }

    /// Starts the host, which has not looked at its folders yet.
    pub(crate) async fn wait(site: Site) -> Self {
        let options = site.options();
        let Site { place, policy } = site;
        let mesh = EmbeddedOptions::named("phone");
        let mesh = Arc::new(Embedded::open(place.path().join("mesh.sqlite"), mesh).expect("a mesh"));
        let net = Arc::new(Net {
            mesh: Arc::clone(&mesh),
            ear: Mutex::new(None),
            asked: watch::Sender::new(0),
            answers: watch::Sender::new(false),
        });
        let fleet = Fleet::start(FleetOptions {
            messaging: Arc::clone(&net) as _,
            facts: HostFacts::here("0.0.0", Profile::Android),
            ..options
        });
        Self { host: Host { fleet: fleet.await.expect("a fleet"), mesh, policy, place }, net }
    }

    /// Stops everything; the folders stay for another host.
    pub(crate) async fn end(self) -> Site {
        let Self { host, net } = self;
        drop(net);
        host.end().await
    }

    pub(crate) async fn signal(&self, signal: PlatformSignal) {
        self.host.fleet.signal(signal, None).await;
    }

    /// Sends the extension away from the user's eyes, and waits until it is there.
    pub(crate) async fn suspend(&self, id: &str) {
        self.signal(PlatformSignal::Background).await;
        self.host.until(id, State::Suspended).await;
    }

    /// Brings it back, and waits until it is there.
    pub(crate) async fn resume(&self, id: &str) {
        self.signal(PlatformSignal::Foreground).await;
        self.host.until(id, State::Ready).await;
    }

    /// What the kernel does to all of its processes.
    pub(crate) async fn kernel(&self, id: &str, signal: Signal) {
        let pid = self.pid(id).await;
        killpg(Pid::from_raw(pid.try_into().expect("a pid")), signal).expect("it is there");
    }

    pub(crate) async fn pid(&self, id: &str) -> u32 {
        self.host.fleet.show(id).await.expect("there").summary.pid.expect("a process")
    }

    /// What the extension printed, of what was JSON.
    pub(crate) fn said(&self, id: &str) -> Vec<Value> {
        said(&self.host, id)
    }

    /// The answers to its calls: the result, or the code of the error.
    pub(crate) fn answers(&self, id: &str) -> Vec<(String, Value)> {
        let calls = self.said(id).into_iter().filter(|line| line["do"] == "call");
        let answer = |line: &Value| match line["ok"] == true {
            true => json!("ok"),
            false => line["error"]["code"].clone(),
        };
        calls.map(|line| (line["method"].as_str().expect("a method").to_owned(), answer(&line))).collect()
    }

    /// The events it heard, in order.
    pub(crate) fn heard(&self, id: &str) -> Vec<Value> {
        let said = self.said(id).into_iter();
        said.filter(|line| line["method"] == "sep.event").map(|line| line["params"].clone()).collect()
    }

    pub(crate) fn topics(&self, id: &str) -> Vec<String> {
        let topic = |event: Value| event["topic"].as_str().expect("a topic").to_owned();
        self.heard(id).into_iter().map(topic).collect()
    }

    /// The frames that were exchanged with it.
    pub(crate) async fn frames(&self, id: &str) -> Vec<(Way, Value)> {
        let frames = self.host.fleet.trace(id).await.expect("frames");
        frames
            .into_iter()
            .map(|frame| (frame.way, serde_json::from_str(&frame.text).expect("JSON")))
            .collect()
    }

    /// How many requests for a method the host made.
    pub(crate) async fn asked(&self, id: &str, method: &str) -> usize {
        let frames = self.frames(id).await;
        frames.iter().filter(|(way, frame)| *way == Way::ToExtension && frame["method"] == method).count()
    }

    /// Every request has been answered, once, in either direction.
    pub(crate) async fn assert_one_answer_each(&self, id: &str) {
        let frames = self.frames(id).await;
        for asker in [Way::FromExtension, Way::ToExtension] {
            for (_, request) in frames.iter().filter(|(way, frame)| *way == asker && is_request(frame)) {
                let answers = frames
                    .iter()
                    .filter(|(way, frame)| *way != asker && is_answer_to(frame, request))
                    .count();
                assert_eq!(answers, 1, "{request} in {frames:#?}");
            }
        }
    }
}

impl Net {
    /// Waits until somebody has asked for contacts, and waits for them.
    pub(crate) async fn asked(&self) {
        let mut asked = self.asked.subscribe();
        let waiting = tokio::time::timeout(PATIENCE, asked.wait_for(|asked| *asked > 0));
        waiting.await.expect("somebody asks").expect("the network is there");
    }

    /// Whoever waits for contacts learns that there are none.
    pub(crate) fn answer(&self) {
        self.answers.send_replace(true);
    }

    pub(crate) fn happens(&self, event: &MeshEvent) {
        let ear = self.ear.lock().unwrap_or_else(PoisonError::into_inner);
        ear.as_ref().expect("somebody listens").hear(event);
    }

    pub(crate) fn online(&self, who: u8, hops: u32) {
        self.happens(&MeshEvent::Online { address: Address([who; 16]), hops: Some(hops), name: None });
    }
}

impl Messaging for Net {
    fn own_address(&self) -> Address {
        self.mesh.own_address()
    }

    fn send(&self, message: Outgoing) -> BoxFuture<Result<Sent, MeshError>> {
        self.mesh.send(message)
    }

    fn messages(&self, query: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>> {
        self.mesh.messages(query)
    }

    fn contacts(&self, _: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>> {
        self.asked.send_modify(|asked| *asked += 1);
        let mut answers = self.answers.subscribe();
        Box::pin(async move {
            // It cannot be gone while somebody asks it.
            let _ = answers.wait_for(|answers| *answers).await;
            Ok(Vec::new())
        })
    }

    fn listen(&self, ear: Arc<dyn Ear>) {
        *self.ear.lock().unwrap_or_else(PoisonError::into_inner) = Some(ear);
    }
}

fn is_answer_to(frame: &Value, request: &Value) -> bool {
    frame["method"].is_null() && frame["id"] == request["id"]
}

fn is_request(frame: &Value) -> bool {
    frame["method"].is_string() && !frame["id"].is_null()
}
