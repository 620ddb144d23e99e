//! The host itself is killed, at the worst moment: after an answer was written down and before it was sent.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use outrigger_mustard::host::store::{
    CallId, Capacity, Directory, Entry, HoldError, Lease, Listed, PeekError, PutError, Record, RunId, Sqlite,
    Store, StoreError, TakeError, Ticket, Usage,
};
use outrigger_mustard::host::{Capabilities, HostKey, Plain};
use tempfile::TempDir;

use super::{compile, finish, host, ours, rules};
use crate::process::{PATIENCE, Tag};

/// Makes this test binary the host that dies.
const VICTIM: &str = "OUTRIGGER_TEST_HOST_VICTIM";

/// The call at whose answer it dies.
const FATAL: CallId = CallId(3);

#[test]
fn a_host_that_is_killed_between_an_answer_and_its_sending_is_followed_by_one_that_does_not_ask_again() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let Ok(place) = std::env::var(VICTIM) {
        runtime.block_on(be_the_victim(Path::new(&place)));
        return;
    }
    for kind in ["directory", "sqlite"] {
        let at = TempDir::new().expect("a directory");
        let place = at.path().join(kind);
        std::fs::create_dir(&place).expect("made");
        let tag = Tag::new();
        let (name, value) = tag.as_arg().split_once('=').expect("a variable");
        let status = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "--quiet", "--nocapture"])
            .arg("mustard_host::crash::a_host_that_is_killed_between_an_answer_and_its_sending_is_followed_by_one_that_does_not_ask_again")
            .env(VICTIM, &place)
            .env(name, value)
            .status()
            .expect("it runs");
        assert_eq!(status.signal(), Some(9), "{kind}: it killed itself");
        tag.must_be_gone(PATIENCE, "no sidecar outlives its host");
        assert_eq!(effects(&place), ["1", "2", "3"], "{kind}");

        runtime.block_on(async {
            let store = open(&place);
            let runs = store.unfinished().expect("readable");
            assert_eq!(runs.len(), 1, "{kind}");
            let next = host(ours());
            let run = next.recover(store.clone(), &runs[0]).await.expect("its host is gone");
            let done = finish(run.capabilities(table(&place)).rules(rules())).await;
            assert_eq!(done.value, Plain::Number(150.0), "{kind}");
            assert_eq!(done.statistics.remembered, 1, "{kind}: the answer to call 3");
            next.pool().shutdown().await;
            assert_eq!(store.unfinished().expect("readable"), [], "{kind}");
        });
        assert_eq!(effects(&place), ["1", "2", "3", "4", "5"], "{kind}: each effect once, over both hosts");
    }
}

async fn be_the_victim(place: &Path) {
    let store: Arc<dyn Store> = Arc::new(Deadly(open(place)));
    let host = host(ours());
    let script =
        compile(&host, "let sum = 0; for (let i = 1; i <= 5; i += 1) { sum += effect(i); } sum").await;
    let ended = host.run(&script).capabilities(table(place)).rules(rules()).store(store).go().await;
    panic!("it should be dead: {ended:?}");
}

fn open(place: &Path) -> Arc<dyn Store> {
    let (key, capacity) = (HostKey::from_bytes([9; 32]), Capacity { entries: 10, bytes: 1 << 24 });
    if place.ends_with("sqlite") {
        Arc::new(Sqlite::open(place.join("runs.db"), key, capacity).expect("it opens"))
    } else {
        Arc::new(Directory::open(place, key, capacity).expect("it opens"))
    }
}

/// The effect is a line in a file, which no crash of a process undoes.
fn table(place: &Path) -> Capabilities {
    let file = place.join("effects");
    Capabilities::none().on_call("effect", move |call| {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&file).expect("it opens");
        writeln!(file, "{}", call.id).expect("written");
        let Plain::Number(argument) = call.args[0] else { panic!("a number was passed") };
        async move { Plain::Number(argument * 10.0) }
    })
}

fn effects(place: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(place.join("effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A store that works, and kills the process right after it has written down the answer to one call.
#[derive(Debug)]
struct Deadly(Arc<dyn Store>);

impl Store for Deadly {
    fn answer(&self, run: &RunId, call: CallId, payload: &str) -> Result<(), PutError> {
        self.0.answer(run, call, payload)?;
        if call == FATAL {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("one may kill oneself");
            loop {
                std::thread::park();
            }
        }
        Ok(())
    }

    fn put(&self, record: &Record) -> Result<Ticket, PutError> {
        self.0.put(record)
    }

    fn take(&self, ticket: &Ticket) -> Result<Record, TakeError> {
        self.0.take(ticket)
    }

    fn peek(&self, ticket: &Ticket) -> Result<(Record, Usage), PeekError> {
        self.0.peek(ticket)
    }

    fn list(&self) -> Result<Vec<Listed>, StoreError> {
        self.0.list()
    }

    fn remove(&self, ticket: &Ticket) -> Result<(), StoreError> {
        self.0.remove(ticket)
    }

    fn hold(&self, run: &RunId) -> Result<Lease, HoldError> {
        self.0.hold(run)
    }

    fn checkpoint(&self, record: &Record) -> Result<(), PutError> {
        self.0.checkpoint(record)
    }

    fn latest(&self, run: &RunId) -> Result<Option<Record>, StoreError> {
        self.0.latest(run)
    }

    fn unfinished(&self) -> Result<Vec<RunId>, StoreError> {
        self.0.unfinished()
    }

    fn begin(&self, run: &RunId, call: CallId) -> Result<(), StoreError> {
        self.0.begin(run, call)
    }

    fn journal(&self, run: &RunId) -> Result<BTreeMap<CallId, Entry>, StoreError> {
        self.0.journal(run)
    }

    fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        self.0.forget(run)
    }
}
