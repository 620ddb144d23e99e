//! Two nodes of the real Reticulum on this machine, and what a host hears when Python or its packages are not there.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Completion, Trial};
use outrigger_sep::mesh::lxmf::{Interface, Lxmf, LxmfError, LxmfOptions};
use outrigger_sep::mesh::{
    Address, DeliveryState, Direction, MeshError, MeshEvent, MessageQuery, Messaging as _, Method, Outgoing,
    Refused,
};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::state::Ladder;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;

use crate::mesh_process::Told;

/// The folder with the packages `lxmf` and `rns`.
const PACKAGES: &str = "OUTRIGGER_PY_LXMF";

/// How long real nodes may take for everything together.
const PATIENCE: Duration = Duration::from_secs(60);

const LADDER: Ladder = Ladder { ask: Duration::from_secs(5), term: Duration::from_secs(2) };

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = trials![
        without_python_the_error_says_what_to_install,
        without_the_packages_the_error_says_how_to_install_them,
        a_version_that_nobody_knows_is_refused,
    ];
    trials.push(Trial::ignorable_test("two_real_nodes_exchange_messages_both_ways", || {
        with_packages(exchange)
    }));
    trials.push(Trial::ignorable_test("a_real_node_keeps_its_address_and_its_messages", || {
        with_packages(again)
    }));
    trials.push(Trial::ignorable_test("a_real_node_that_is_killed_comes_back_as_the_same_one", || {
        with_packages(killed)
    }));
    trials
}

/// Runs a test that needs the real packages, or says why it cannot be run.
fn with_packages(test: fn(PathBuf)) -> Result<Completion, libtest_mimic::Failed> {
    match std::env::var_os(PACKAGES) {
        Some(packages) => {
            test(packages.into());
            Ok(Completion::Completed)
        }
        None => Ok(Completion::ignored_with(format!(
            "skipped, because {PACKAGES} is not set: run the tests with `cargo xtask test`"
        ))),
    }
}

fn exchange(packages: PathBuf) {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut ann = Listening::start(folder.path(), "ann", &packages, vec![Interface::Listen(port)]).await;
        let mut bob = Listening::start(folder.path(), "bob", &packages, vec![Interface::Connect(port)]).await;
        assert_eq!(ann.node.versions().lxmf.split('.').next(), Some("1"));

        let nobody = ann.say(Address([7; 16]), "x", None);
        let (to_bob, to_ann) = (bob.node.own_address(), ann.node.own_address());
        for (one, address, name) in [(&mut ann, to_bob, "bob"), (&mut bob, to_ann, "ann")] {
            let online = one.until(|event| matches!(event, MeshEvent::Online { .. })).await;
            assert_eq!(online, MeshEvent::Online { address, hops: Some(1), name: Some(name.to_owned()) });
        }
        let long = "Grüße! ".repeat(500);
        for (content, method) in
            [("hello", None), ("by packet", Some(Method::Opportunistic)), (long.as_str(), None)]
        {
            let sent = ann.say(to_bob, content, method).await.unwrap();
            assert_eq!(sent.state, DeliveryState::Outbound);
            let told = ann.until(|event| matches!(event, MeshEvent::Sent(_))).await;
            let MeshEvent::Sent(told) = told else { panic!("{told:?}") };
            assert_eq!((told.hash, told.method), (sent.hash, method.unwrap_or(Method::Direct)));
            let got = bob.until(|event| matches!(event, MeshEvent::Received(_))).await;
            let MeshEvent::Received(got) = got else { panic!("{got:?}") };
            assert_eq!((got.hash, got.content.as_str(), got.source), (sent.hash, content, to_ann));
            assert_eq!((got.timestamp_ms, got.direction), (told.timestamp_ms, Direction::Incoming));
            let delivered = |event: &MeshEvent| matches!(event, MeshEvent::State { hash, state: DeliveryState::Delivered, .. } if *hash == sent.hash);
            ann.until(delivered).await;
        }
        let reply = Outgoing {
            destination: to_ann,
            content: "an answer".to_owned(),
            title: Some("re".to_owned()),
            method: None,
            reply_to: Some(bob.list().await[0].hash),
        };
        let sent = bob.node.send(reply.clone()).await.unwrap();
        let got = ann.until(|event| matches!(event, MeshEvent::Received(_))).await;
        let MeshEvent::Received(got) = got else { panic!("{got:?}") };
        assert_eq!((got.hash, got.title.as_str(), got.reply_to), (sent.hash, "re", reply.reply_to));
        bob.until(|event| matches!(event, MeshEvent::State { state: DeliveryState::Delivered, .. })).await;

        assert_eq!(nobody.await, Err(MeshError::Refused(Refused::NoPath)));
        assert_eq!(ann.say(to_ann, "x", None).await, Err(MeshError::Refused(Refused::InvalidDestination)));
        ann.node.block(to_bob).await.unwrap();
        assert_eq!(ann.say(to_bob, "x", None).await, Err(MeshError::Refused(Refused::BlockedDestination)));
        assert_eq!((ann.list().await.len(), bob.list().await.len()), (4, 4));
        ann.stop().await;
        bob.stop().await;
    });
}

fn again(packages: PathBuf) {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        // Nobody listens to the first one, so what it receives is still to be told.
        let ann = start(folder.path(), "ann", &packages, vec![Interface::Listen(port)]).await;
        let mut bob = Listening::start(folder.path(), "bob", &packages, vec![Interface::Connect(port)]).await;
        let to = ann.own_address();
        bob.until(|event| matches!(event, MeshEvent::Online { .. })).await;
        bob.say(to, "before", None).await.unwrap();
        bob.until(|event| matches!(event, MeshEvent::State { state: DeliveryState::Delivered, .. })).await;
        ann.stop(LADDER).await;
        drop(ann);
        let mut ann = Listening::start(folder.path(), "ann", &packages, vec![Interface::Listen(port)]).await;
        assert_eq!(ann.node.own_address(), to);
        let got = ann.until(|event| matches!(event, MeshEvent::Received(_))).await;
        assert!(matches!(got, MeshEvent::Received(message) if message.content == "before"));
        assert_eq!(ann.list().await.len(), 1);
        ann.stop().await;
        bob.stop().await;
    });
}

fn killed(packages: PathBuf) {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut ann = Listening::start(folder.path(), "ann", &packages, vec![Interface::Listen(port)]).await;
        let mut bob = Listening::start(folder.path(), "bob", &packages, vec![Interface::Connect(port)]).await;
        let (to_ann, to_bob) = (ann.node.own_address(), bob.node.own_address());
        ann.until(|event| matches!(event, MeshEvent::Online { .. })).await;
        kill_process(pid_of_node(&folder.path().join("ann")), Signal::KILL).unwrap();
        // Nobody can be reached by a node that is not there, and it comes back by itself.
        ann.until(|event| *event == MeshEvent::Offline { address: to_bob }).await;
        ann.until(|event| matches!(event, MeshEvent::Online { .. })).await;
        assert_eq!(ann.node.own_address(), to_ann);
        bob.until(|event| matches!(event, MeshEvent::Online { .. })).await;
        let sent = ann.say(to_bob, "I am back", None).await.unwrap();
        let got = bob.until(|event| matches!(event, MeshEvent::Received(_))).await;
        assert!(matches!(got, MeshEvent::Received(message) if message.hash == sent.hash));
        ann.stop().await;
        bob.stop().await;
    });
}

/// The process that runs in this folder; its launcher has another name.
fn pid_of_node(folder: &Path) -> Pid {
    let wanted = [folder.join("outrigger_lxmf.py"), folder.to_owned()]
        .map(|path| path.into_os_string().into_string().unwrap());
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<&str> = words.trim_end_matches('\0').split('\0').collect();
        words.ends_with(&[wanted[0].as_str(), wanted[1].as_str()]).then_some(pid)
    });
    // The youngest: who starts a program is older than the program.
    Pid::from_raw(pids.max().unwrap()).unwrap()
}

fn without_python_the_error_says_what_to_install() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut options = LxmfOptions::usual(folder.path(), "ann");
        options.python = Some("no-such-python".into());
        let error = Lxmf::start(&supervisor(), options).await.unwrap_err();
        assert!(matches!(error, LxmfError::NoPython { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "there is no `no-such-python` to run Reticulum with; install Python 3.9 or newer"
        );
    });
}

fn without_the_packages_the_error_says_how_to_install_them() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        // A package that cannot be imported hides one that may be installed.
        let packages = folder.path().join("packages");
        std::fs::create_dir(&packages).unwrap();
        std::fs::write(packages.join("RNS.py"), "raise ImportError('no RNS here')").unwrap();
        let mut options = LxmfOptions::usual(folder.path().join("node"), "ann");
        options.packages = Some(packages);
        let error = Lxmf::start(&supervisor(), options).await.unwrap_err();
        assert!(matches!(error, LxmfError::NoPackages { .. }), "{error}");
        let expected =
            "Python has no packages for Reticulum: no RNS here; `pip install lxmf` installs what is missing";
        assert_eq!(error.to_string(), expected);
    });
}

fn a_version_that_nobody_knows_is_refused() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join("packages");
        std::fs::create_dir(&packages).unwrap();
        std::fs::write(packages.join("RNS.py"), "__version__ = '2.0.0'").unwrap();
        std::fs::write(packages.join("LXMF.py"), "__version__ = '1.0.0'").unwrap();
        let mut options = LxmfOptions::usual(folder.path().join("node"), "ann");
        options.packages = Some(packages);
        let error = Lxmf::start(&supervisor(), options).await.unwrap_err();
        assert!(matches!(error, LxmfError::Unsupported { .. }), "{error}");
        assert_eq!(error.to_string(), "rns 2.0.0 is not supported; 1.x is");
    });
}

struct Listening {
    node: Lxmf,
    heard: mpsc::Receiver<MeshEvent>,
}

impl Listening {
    async fn start(folder: &Path, name: &str, packages: &Path, interfaces: Vec<Interface>) -> Self {
        let node = start(folder, name, packages, interfaces).await;
        // More than a test ever makes happen.
        let (ear, heard) = mpsc::channel(10_000);
        node.listen(Arc::new(Told(move |event: &MeshEvent| {
            let _ = ear.try_send(event.clone());
        })));
        Self { node, heard }
    }

    fn say(
        &self,
        to: Address,
        content: &str,
        method: Option<Method>,
    ) -> outrigger_wire::peer::BoxFuture<Result<outrigger_sep::mesh::Sent, MeshError>> {
        self.node.send(Outgoing {
            destination: to,
            content: content.to_owned(),
            title: None,
            method,
            reply_to: None,
        })
    }

    async fn until(&mut self, wanted: impl Fn(&MeshEvent) -> bool) -> MeshEvent {
        loop {
            let event = self.heard.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    }

    async fn list(&self) -> Vec<outrigger_sep::mesh::Message> {
        let query = MessageQuery {
            peer: None,
            direction: None,
            since_ms: None,
            until_ms: None,
            after: None,
            limit: 100,
        };
        self.node.messages(query).await.unwrap()
    }

    async fn stop(self) {
        self.node.stop(LADDER).await;
    }
}

async fn start(folder: &Path, name: &str, packages: &Path, interfaces: Vec<Interface>) -> Lxmf {
    let mut options = LxmfOptions::usual(folder.join(name), name);
    options.packages = Some(packages.to_owned());
    options.interfaces = interfaces;
    Lxmf::start(&supervisor(), options).await.unwrap()
}

fn supervisor() -> Supervisor {
    Supervisor::new(Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN })
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("it takes too long") });
}
