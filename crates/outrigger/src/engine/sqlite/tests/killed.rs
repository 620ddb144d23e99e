//! A process that is killed while it writes: what it was told is stored is stored, and nothing else is half there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::super::Sqlite;
use crate::engine::{Append, Claimed, Engine, LogId, Millis, NewHead, QueueName, ReadLimit, Seq, Work};

/// Where the child finds the store, which makes it the child.
const STORE: &str = "OUTRIGGER_TEST_STORE";

/// How many append at once.
const LOGS: usize = 8;

/// How often the process is killed.
const KILLS: usize = 5;

/// How many appends are acknowledged before each.
const APPENDS: usize = 150;

#[test]
fn an_append_that_was_acknowledged_survives_a_kill_and_nothing_is_half_there() {
    if let Some(path) = std::env::var_os(STORE) {
        return append_for_ever(Path::new(&path));
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let mut acknowledged = BTreeMap::<String, u64>::new();
    for _ in 0..KILLS {
        let mut child = start(&path);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut note = |line: String| -> usize {
            let Some(told) = line.strip_prefix("appended ") else { return 0 };
            // The last line may have been cut off by the kill.
            let Some((log, Ok(seq))) = told.split_once(' ').map(|(log, seq)| (log, seq.parse())) else {
                return 0;
            };
            acknowledged.insert(log.to_owned(), seq);
            1
        };
        let mut told = 0;
        while told < APPENDS {
            told += note(lines.next().expect("the child ended").unwrap());
        }
        // While it lives nobody else gets in.
        let refused = Sqlite::open(&path).map(|_| ()).unwrap_err().to_string();
        assert!(refused.ends_with(&format!("process {} has it open", child.id())), "{refused}");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        // What it said before it died counts too. The last line has its end, or is not there.
        lines.map_while(Result::ok).for_each(|line| _ = note(line));
        child.wait().unwrap();
        check(&path, &acknowledged);
    }
    assert_eq!(acknowledged.len(), LOGS);
}

#[expect(clippy::disallowed_methods, reason = "the test executes itself, to be killed")]
fn start(path: &Path) -> Child {
    let name = "engine::sqlite::tests::killed::an_append_that_was_acknowledged_survives_a_kill_and_nothing_is_half_there";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Is the child: appends to several logs at once and says so. It ends when nobody listens any more.
fn append_for_ever(path: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine: Arc<dyn Engine> = Arc::new(Sqlite::open(path).unwrap());
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..LOGS {
            let engine = Arc::clone(&engine);
            tasks.spawn(async move {
                let name = format!("log{number}");
                let log = LogId(name.clone());
                let mut seq = engine.head(&log).await.unwrap().map_or(Seq(0), |head| head.seq);
                loop {
                    seq = engine.append_if(step(&log, seq)).await.unwrap();
                    let line = format!("\nappended {name} {}\n", seq.0);
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                }
            });
        }
        tasks.join_next().await;
    });
}

/// Two records, a head that says how many there are, and work for exactly this length.
fn step(log: &LogId, expected: Seq) -> Append {
    let end = expected.0 + 2;
    Append {
        log: log.clone(),
        expected,
        records: vec![format!("{log} {}", end - 1), format!("{log} {end}")],
        head: Some(NewHead { label: "l".to_owned(), body: end.to_string() }),
        work: vec![Work { queue: QueueName(log.0.clone()), key: end.to_string(), due: Millis(end) }],
    }
}

fn check(path: &Path, acknowledged: &BTreeMap<String, u64>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Sqlite::open(path).unwrap();
        for (name, &told) in acknowledged {
            let log = LogId(name.clone());
            let head = engine.head(&log).await.unwrap().expect("an acknowledged log is there");
            assert!(head.seq.0 >= told, "{name}: {told} were acknowledged, {} are there", head.seq.0);
            assert_eq!(head.body, head.seq.0.to_string());
            let all = ReadLimit { records: usize::MAX, bytes: usize::MAX };
            let records = engine.read(&log, Seq(0), all).await.unwrap();
            let expected: Vec<_> = (1..=head.seq.0).map(|seq| (seq, format!("{name} {seq}"))).collect();
            let found: Vec<_> = records.into_iter().map(|stored| (stored.seq.0, stored.record)).collect();
            assert_eq!(found, expected);
            // One piece of work an append, the oldest first; they are left in the queue, so all of them are there each time.
            let queue = QueueName(name.clone());
            let mut keys = Vec::new();
            while let Claimed::Work(claim) = engine.claim(&queue, Duration::from_secs(3600)).await.unwrap() {
                keys.push(claim.key);
            }
            let expected: Vec<_> = (1..=head.seq.0 / 2).map(|step| (step * 2).to_string()).collect();
            assert_eq!(keys, expected);
        }
    });
}
