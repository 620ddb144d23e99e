//! A platform that follows a script, on whatever clock the runtime has: real, or paused in tests.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio::time::Instant;

use super::{NextSignal, Platform, RuntimePlan, Script};
use crate::manifest::{Manifest, RuntimeMode};
use crate::protocol::Profile;

/// A phone that nobody has to buy: signals from a script, a packaged runtime that is any program, a registry of modules.
#[derive(Clone, Debug)]
pub struct SimPlatform {
    script: Script,
    next: usize,
    /// When the script began: with the first question.
    began: Option<Instant>,
    runtime: Option<Runtime>,
    modules: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Runtime {
    name: String,
    program: PathBuf,
}

impl SimPlatform {
    /// A platform that has nothing to run extensions with.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script, next: 0, began: None, runtime: None, modules: BTreeSet::new() }
    }

    /// Packages `program` as the runtime that manifests call `name`.
    #[must_use]
    pub fn with_runtime(mut self, name: &str, program: PathBuf) -> Self {
        self.runtime = Some(Runtime { name: name.to_owned(), program });
        self
    }

    /// Packages a module that the runtime can run.
    #[must_use]
    pub fn with_module(mut self, name: &str) -> Self {
        self.modules.insert(name.to_owned());
        self
    }
}

impl Platform for SimPlatform {
    fn next(&mut self) -> NextSignal<'_> {
        Box::pin(async move {
            let began = *self.began.get_or_insert_with(Instant::now);
            let (at, signal) = *self.script.entries().get(self.next)?;
            tokio::time::sleep_until(began + at).await;
            // Only here: one who stops waiting has not heard it.
            self.next += 1;
            Some(signal)
        })
    }

    fn runtime(&self, manifest: &Manifest) -> RuntimePlan {
        let module = manifest.entrypoint.args.first();
        match (manifest.profile, manifest.android, &self.runtime) {
            (Profile::Desktop, _, _) | (_, None, _) => {
                RuntimePlan::Unavailable("it is made for a desktop".to_owned())
            }
            (Profile::Android, Some(android), _) if android.runtime == RuntimeMode::ApprovedRuntime => {
                RuntimePlan::OwnProgram
            }
            (Profile::Android, Some(_), None) => {
                RuntimePlan::Unavailable("no runtime is packaged with this host".to_owned())
            }
            (Profile::Android, Some(_), Some(runtime)) if runtime.name != manifest.entrypoint.command => {
                RuntimePlan::Unavailable(format!("the packaged runtime is `{}`", runtime.name))
            }
            (Profile::Android, Some(_), Some(runtime)) => match module {
                Some(module) if self.modules.contains(module) => {
                    RuntimePlan::Packaged { program: runtime.program.clone() }
                }
                Some(_) | None => {
                    RuntimePlan::Unavailable("its module is not packaged with this host".to_owned())
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::PlatformSignal;
    use super::*;

    fn manifest(runtime: &str, module: &str) -> Manifest {
        let text = serde_json::json!({
            "schemaVersion": "1.0.0",
            "id": "org.example.phone",
            "name": "Phone",
            "version": "1.0.0",
            "apiVersion": "1.0.0",
            "trustLevel": "first_party",
            "platformProfile": "android",
            "entrypoint": {"command": "packaged-runtime", "args": [module]},
            "permissions": [],
            "health": {"startupTimeoutMs": 5000, "heartbeatIntervalMs": 5000, "unhealthyAfterMissedHeartbeats": 3},
            "limits": {"maxRequestBytes": 4096, "maxRequestsPerSecond": 10, "maxConcurrentRequests": 4},
            "android": {"runtimeMode": runtime, "allowBackgroundExecution": false},
        });
        let checked = crate::manifest::check_bytes(text.to_string().as_bytes());
        checked.manifest.unwrap_or_else(|| panic!("{:?}", checked.findings))
    }

    #[test]
    fn only_what_is_packaged_can_be_run() {
        let bare = SimPlatform::new(Script::default());
        let full = bare.clone().with_runtime("packaged-runtime", "/opt/runtime".into()).with_module("notes");
        let other = bare.clone().with_runtime("other-runtime", "/opt/other".into()).with_module("notes");
        let unavailable = |why: &str| RuntimePlan::Unavailable(why.to_owned());
        let notes = manifest("packaged_module", "notes");
        assert_eq!(full.runtime(&notes), RuntimePlan::Packaged { program: "/opt/runtime".into() });
        assert_eq!(bare.runtime(&notes), unavailable("no runtime is packaged with this host"));
        assert_eq!(other.runtime(&notes), unavailable("the packaged runtime is `other-runtime`"));
        let stranger = manifest("packaged_module", "stranger");
        assert_eq!(full.runtime(&stranger), unavailable("its module is not packaged with this host"));
        let approved = manifest("approved_runtime", "notes");
        assert_eq!(bare.runtime(&approved), RuntimePlan::OwnProgram);
        let desktop = Manifest { profile: Profile::Desktop, ..notes };
        assert_eq!(full.runtime(&desktop), unavailable("it is made for a desktop"));
    }

    #[tokio::test(start_paused = true)]
    async fn signals_come_at_their_time_and_are_not_lost_by_one_who_stops_waiting() {
        let mut platform = SimPlatform::new("t=0 fg; t=2.5 bg".parse().expect("a good script"));
        let began = Instant::now();
        assert_eq!(platform.next().await, Some(PlatformSignal::Foreground));
        let impatient = tokio::time::timeout(Duration::from_secs(1), platform.next()).await;
        assert!(impatient.is_err());
        assert_eq!(platform.next().await, Some(PlatformSignal::Background));
        assert_eq!(began.elapsed(), Duration::from_millis(2500));
        assert_eq!(platform.next().await, None);
    }
}
