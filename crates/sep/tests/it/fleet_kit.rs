//! A whole host in a temporary folder, with this binary as its extensions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_sep::config::{HostPolicy, Proof, Trusted, UntrustedLocal};
use outrigger_sep::host::{Begin, Detail, Fleet, FleetOptions, Happening};
use outrigger_sep::manifest::{Home, HostFacts, examine};
use outrigger_sep::mesh::{Embedded, EmbeddedOptions, Nowhere};
use outrigger_sep::protocol::{ExtensionId, Profile, State, TrustLevel};
use outrigger_sep::reference::fault::Step;
use outrigger_sep::reference::{Draft, Program};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use tokio::sync::broadcast::error::RecvError;

/// Longer than anything here takes on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A host and the folder that it lives in.
pub(crate) struct Host {
    pub(crate) fleet: Fleet,
    pub(crate) mesh: Arc<Embedded>,
    pub(crate) policy: HostPolicy,
    pub(crate) place: tempfile::TempDir,
}

/// A folder for a host: `builtin` (first party), `extensions`, `state`.
pub(crate) struct Site {
    pub(crate) place: tempfile::TempDir,
    pub(crate) policy: HostPolicy,
}

impl Site {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let folder = |name: &str| {
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).expect("a folder");
            folder
        };
        let mut policy = HostPolicy::new(folder("state"), vec![folder("extensions")]);
        policy.builtin_dir = Some(folder("builtin"));
        policy.untrusted_local = UntrustedLocal::Allow;
        Self { place, policy }
    }

    pub(crate) fn builtin(&self) -> PathBuf {
        self.place.path().join("builtin")
    }

    pub(crate) fn extensions(&self) -> PathBuf {
        self.place.path().join("extensions")
    }

    /// Puts a first-party extension there that plays this script.
    pub(crate) fn fault(&self, id: &str, script: &[Step]) -> PathBuf {
        put(&first_party(Draft::fault(id, script)), &self.builtin(), "fault")
    }

    /// Vouches for what lies in `extensions` under this id, as it is now.
    pub(crate) fn trust(&mut self, id: &str) {
        let facts = HostFacts::here("0.0.0", Profile::Desktop);
        let found = examine(&self.extensions().join(id), Home::Configured, &self.policy, &facts);
        let tree = found.digest.expect("its files can be read");
        let id = ExtensionId::new(id).expect("an id");
        self.policy.trusted.push(Trusted { id, proof: Proof::Tree(tree) });
    }

    /// What a host needs to begin here.
    pub(crate) fn options(&self) -> FleetOptions {
        FleetOptions {
            policy: self.policy.clone(),
            facts: HostFacts::here("0.0.0", Profile::Desktop),
            supervisor: supervisor(),
            messaging: Arc::new(Nowhere),
            auto_level: "strict",
            seed: 7,
            begin: Begin::Running,
        }
    }

    /// Starts the host and looks at the folders once.
    pub(crate) async fn start(self) -> Host {
        let options = self.options();
        let Self { place, policy } = self;
        let mesh = EmbeddedOptions::named("host");
        let mesh = Arc::new(Embedded::open(place.path().join("mesh.sqlite"), mesh).expect("a mesh"));
        let fleet = Fleet::start(FleetOptions { messaging: Arc::clone(&mesh) as _, ..options });
        let host = Host { fleet: fleet.await.expect("a fleet"), mesh, policy, place };
        host.fleet.rescan().await;
        host
    }
}

/// A trial that runs in a runtime of its own.
pub(crate) fn trial<F: Future<Output = ()> + 'static>(name: &'static str, test: fn() -> F) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(test());
        Ok(())
    })
}

/// A script of the extension that misbehaves.
pub(crate) fn steps(script: serde_json::Value) -> Vec<Step> {
    serde_json::from_value(script).expect("a script")
}

/// The script of one that behaves.
pub(crate) fn serving() -> Vec<Step> {
    steps(serde_json::json!([{"do":"attach"},{"do":"serve"}]))
}

pub(crate) fn supervisor() -> Supervisor {
    let four = std::num::NonZeroUsize::new(4).expect("not zero");
    Supervisor::new(Settings { launcher: Launcher::current_exe(), starting_at_once: four })
}

/// The same extension, as the makers of the host would ship it.
pub(crate) fn first_party(draft: Draft) -> Draft {
    Draft { trust: TrustLevel::FirstParty, ..draft }
}

/// Puts an extension into a folder; `role` is what this binary is asked to be.
pub(crate) fn put(draft: &Draft, root: &Path, role: &str) -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let program = Program::Own { file: &own, args: &["__extension", role] };
    draft.install(root, program).expect("an extension")
}

impl Host {
    /// Waits until an extension is in this state.
    pub(crate) async fn until(&self, id: &str, state: State) {
        self.until_such(id, |now| now == state).await;
    }

    pub(crate) async fn until_such(&self, id: &str, such: impl Fn(State) -> bool) -> State {
        let mut happenings = self.fleet.listen();
        let waiting = async {
            loop {
                let now = self.state(id).await;
                if such(now) {
                    return now;
                }
                match happenings.recv().await {
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => panic!("the host is gone"),
                }
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(state) => state,
            Err(_) => panic!("{id} is {:#?}", self.fleet.show(id).await),
        }
    }

    pub(crate) async fn state(&self, id: &str) -> State {
        self.fleet.show(id).await.expect("an extension").summary.state
    }

    /// What happened to one extension, as `from>to(cause)`, until `last`.
    pub(crate) async fn transitions(
        happenings: &mut tokio::sync::broadcast::Receiver<Arc<Happening>>,
        id: &str,
        last: State,
    ) -> Vec<String> {
        let id = ExtensionId::new(id).expect("an id");
        let mut seen = Vec::new();
        let listening = async {
            loop {
                let happening = happenings.recv().await.expect("a happening");
                if let Happening::Changed { ext, from, to, cause, .. } = &*happening
                    && ext.as_ref() == Some(&id)
                {
                    seen.push(format!("{from}>{to}({cause})"));
                    if *to == last {
                        break;
                    }
                }
            }
        };
        tokio::time::timeout(PATIENCE, listening).await.expect("in time");
        seen
    }

    pub(crate) fn builtin(&self) -> PathBuf {
        self.place.path().join("builtin")
    }

    pub(crate) fn extensions(&self) -> PathBuf {
        self.place.path().join("extensions")
    }

    /// Stops everything; the folders stay for another host.
    pub(crate) async fn end(self) -> Site {
        let Self { fleet, mesh, policy, place } = self;
        fleet.shutdown().await;
        drop((fleet, mesh));
        Site { place, policy }
    }

    /// Waits until something that is looked at again and again is so.
    pub(crate) async fn until_so<F: Future<Output = bool>>(&self, what: &str, mut so: impl FnMut() -> F) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !so().await {
            assert!(std::time::Instant::now() < deadline, "it never came to be that {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_known(&self, id: &str) {
        self.until_so("it is known", async || self.fleet.show(id).await.is_ok()).await;
    }

    pub(crate) async fn until_detail(&self, id: &str, such: impl Fn(&Detail) -> bool) {
        self.until_so("it looks so", async || self.fleet.show(id).await.is_ok_and(|detail| such(&detail)))
            .await;
    }

    /// Waits until the log of an extension says this.
    pub(crate) async fn log_says(&self, id: &str, words: &str) {
        self.until_so(words, async || self.log(id).contains(words)).await;
    }

    /// The log of an extension, as text.
    pub(crate) fn log(&self, id: &str) -> String {
        let path = self.policy.state_dir.join("logs").join(id).join("current.log");
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// The trail of decisions.
    pub(crate) fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.policy.state_dir.join("audit/audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}
