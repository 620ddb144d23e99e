//! The file of a store when things go wrong: kills in the middle of writes, two owners, a newer program, a damaged file, a
//! folder that cannot be written, a disk that is full.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::Trial;
use outrigger_steerable::chat::Usage;
use outrigger_steerable::protocol::{EventKind, SpanKind, SpanStatus, TraceStatus};
use outrigger_steerable::store::{
    Level, MemoryLimits, NewSession, OpenError, RecordId, Seq, Store, StoreError, TraceHead, TraceKey,
    TraceTree,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::{Map, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::store_kit::{answer, calling, process, record, said, sql, told, trial, user};

/// How often a process is killed.
const KILLS: usize = 50;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what_was_acknowledged_survives_fifty_kills_and_nothing_is_torn", fifty_kills),
        trial("a_run_that_was_cut_off_is_closed_at_the_next_start", cut_off),
        trial("everything_is_there_after_a_restart", restart),
        trial("a_second_owner_is_told_who_the_first_is", two_owners),
        trial("a_file_of_a_newer_program_is_refused_and_not_touched", newer),
        trial("a_file_of_another_program_is_refused_and_not_touched", foreign),
        trial("a_damaged_file_is_named_and_not_touched", damaged),
        trial("damage_inside_a_file_is_told_when_it_is_met", damaged_inside),
        trial("a_folder_that_cannot_be_written_or_is_not_there_is_named", no_folder),
        trial("a_full_disk_is_an_error_and_what_was_there_stays", full_disk),
        trial("only_the_owner_can_read_the_file", private),
        trial("a_store_in_memory_starts_no_thread", no_thread),
    ]
}

/// This binary as a process that writes until it is killed.
pub(crate) fn child(args: &[String]) -> ExitCode {
    let (role, path) = (args[0].as_str(), Path::new(&args[1]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match role {
            "append" => append_forever(path).await,
            "turn" => begin_a_turn(path).await,
            "full" => fill_the_disk(path).await,
            "idle" => count_threads().await,
            other => panic!("{other}"),
        }
    });
    ExitCode::SUCCESS
}

fn say(line: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).expect("somebody who reads");
}

/// Appends pairs of messages to a few transcripts, and says each that is acknowledged.
async fn append_forever(path: &Path) {
    let store = Store::open(path).expect("a store");
    let session = store.create_session(NewSession::of_chat("c")).await.expect("a session");
    say(&format!("session {}", session.session_id));
    let tracer = store.begin_trace(TraceHead::default());
    for number in 0_u64.. {
        let name = format!("r{}", number % 3);
        // Of many sizes, so that kills hit in the middle of pages, of the log and of checkpoints.
        let filler = "x".repeat(usize::try_from(number * 977 % 5_000).expect("small"));
        let pair = [user(&format!("{number}")), said(&filler)];
        let last = store.append(&record(&name), &pair).await.expect("an append");
        tracer.event(EventKind::Log, "append", None, Map::new());
        say(&format!("{name} {last} {number}"));
    }
}

async fn fifty_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut acknowledged: HashMap<String, Vec<String>> = HashMap::new();
    for round in 0..KILLS {
        let mut child = process("append", &path);
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut sessions = Vec::new();
        // A different number of writes each time, then a kill at whatever moment that is.
        for line in lines.by_ref().take(2 + round * 3) {
            note(&line.expect("a line"), &mut acknowledged, &mut sessions);
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("the end");
        // What was said before the kill counts, whether or not it was read before it.
        for line in lines {
            note(&line.expect("a line"), &mut acknowledged, &mut sessions);
        }
        let store = Store::open(&path).expect("a store after a kill");
        for session in sessions {
            assert!(store.session(&session).await.unwrap().is_some(), "{session} is lost");
        }
        for (name, numbers) in &mut acknowledged {
            let found = store.transcript(&RecordId::new(name.as_str())).await.expect("a transcript");
            // Pairs are whole, places have no gaps, and everything acknowledged is there.
            assert_eq!(found.len() % 2, 0, "half a pair in {name}");
            assert!(found.iter().zip(1..).all(|(stored, place)| stored.seq.0 == place), "{name}");
            let users: Vec<String> =
                found.iter().step_by(2).map(|stored| stored.message.plain_text()).collect();
            assert_eq!(users[..numbers.len()], numbers[..], "{name} after kill {round}");
            // At most the one that was being written came on top.
            assert!(users.len() <= numbers.len() + 1, "{name}: {} and {}", users.len(), numbers.len());
            for (number, pair) in users.iter().zip(found.chunks(2)) {
                let length = number.parse::<usize>().unwrap() * 977 % 5_000;
                assert_eq!(pair[1].message.plain_text().len(), length, "a torn message in {name}");
            }
            numbers.clone_from(&users);
        }
    }
    let pairs: usize = acknowledged.values().map(Vec::len).sum();
    assert!(pairs >= KILLS * KILLS, "only {pairs}");
}

fn note(line: &str, acknowledged: &mut HashMap<String, Vec<String>>, sessions: &mut Vec<String>) {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["session", id] => sessions.push(id.to_owned()),
        [record, _, number] => acknowledged.entry(record.to_owned()).or_default().push(number.to_owned()),
        _ => panic!("{line}"),
    }
}

/// Gets as far as the middle of a turn.
async fn begin_a_turn(path: &Path) {
    let store = Store::open(path).expect("a store");
    let head = TraceHead { stream_id: Some("str_1".to_owned()), ..TraceHead::default() };
    let tracer = store.begin_trace(head);
    let run = tracer.span("agent.run", SpanKind::Custom, None, Map::new());
    let model = tracer.span("llm.request", SpanKind::Llm, Some(run), Map::new());
    tracer.end_span(model, SpanStatus::Ok, Map::new());
    tracer.span("tool.run_command", SpanKind::Tool, Some(run), Map::new());
    tracer.event(EventKind::ToolCall, "run_command", None, Map::new());
    let messages = [user("go"), calling(&["x", "y"]), answer("x")];
    store.append(&record("r"), &messages).await.expect("an append");
    // Reading a trace writes what is known of it.
    let known = store.trace(TraceKey::Trace(tracer.id())).await.expect("a trace").expect("this one");
    assert_eq!(
        (known.trace.status, known.trace.span_count, known.trace.event_count),
        (TraceStatus::Running, 3, 1)
    );
    say(tracer.id());
    std::future::pending().await
}

async fn cut_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut child = process("turn", &path);
    let mut id = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut id).expect("a line");
    child.kill().expect("SIGKILL");
    child.wait().expect("the end");

    let store = Store::open(&path).expect("a store after a kill");
    let TraceTree { trace, spans, events } =
        store.trace(TraceKey::Stream("str_1")).await.unwrap().expect("the trace");
    assert_eq!(trace.trace_id, id.trim());
    assert_eq!(trace.status, TraceStatus::Error);
    assert_eq!(trace.error_message.as_deref(), Some("the runtime ended before the run did"));
    assert!(trace.had_error && trace.duration_ms.is_some());
    assert_eq!((trace.span_count, trace.event_count), (3, 1));
    let statuses: Vec<SpanStatus> = spans.iter().map(|span| span.status.clone()).collect();
    assert_eq!(statuses, [SpanStatus::Cancelled, SpanStatus::Ok, SpanStatus::Cancelled]);
    assert!(spans.iter().all(|span| span.end_ms.is_some_and(|end| end >= span.start_ms)));
    assert_eq!(events.len(), 1);
    assert_eq!(store.active_traces(), 0);
    // No turn is running any more, so the call is answered, also for those who only read.
    let read = ["1 user go", "2 assistant", "3 tool x", "3 tool y interrupted"];
    assert_eq!(told(&store.transcript(&record("r")).await.unwrap()), read);
    let resumed = ["1 user go", "2 assistant", "3 tool x", "4 tool y interrupted"];
    assert_eq!(told(&store.resume(&record("r")).await.unwrap()), resumed);
    // The next trace does not take the number of this one.
    let next = store.begin_trace(TraceHead::default());
    next.finish(TraceStatus::Completed, None, Usage::default()).await;
    assert!(store.trace(TraceKey::Trace(next.id())).await.unwrap().is_some());
}

async fn restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Store::open(&path).unwrap();
    let session = store.create_session(NewSession::of_chat("c")).await.unwrap();
    let r = record(&session.session_id);
    store.append(&r, &[user("a"), said("b"), user("c")]).await.unwrap();
    store.note_compaction(&r, Seq(1)..=Seq(2), &said("ab")).await.unwrap();
    store.keep_settings(json!({"logLevel": "DEBUG"}).as_object().unwrap()).await.unwrap();
    let tracer = store.begin_trace(TraceHead::default());
    tracer.event(EventKind::Log, "x", None, Map::new());
    let id = tracer.id().to_owned();
    // One that is dropped is closed, and written before the file is.
    drop(tracer);
    drop(store);

    let store = Store::open(&path).unwrap();
    assert!(store.session(&session.session_id).await.unwrap().is_some());
    assert_eq!(told(&store.transcript(&r).await.unwrap()), ["2 assistant ab", "3 user c"]);
    assert_eq!(json!(store.settings().await.unwrap()), json!({"logLevel": "DEBUG"}));
    let tree = store.trace(TraceKey::Trace(&id)).await.unwrap().expect("the trace");
    assert_eq!((tree.trace.status, tree.events.len()), (TraceStatus::Cancelled, 1));
    assert_eq!(store.health().level, Level::Ok);
}

async fn two_owners() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut child = process("append", &path);
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut String::new()).expect("a line");
    let refused = Store::open(&path).unwrap_err();
    let pid = child.id();
    assert!(matches!(refused, OpenError::Locked { by: Some(by), .. } if by == pid), "{refused}");
    assert_eq!(refused.to_string(), format!("the storage {} is in use by process {pid}", path.display()));
    child.kill().expect("SIGKILL");
    child.wait().expect("the end");
    let store = Store::open(&path).expect("a lock goes with its owner");
    let again = Store::open(&path).unwrap_err();
    assert!(matches!(again, OpenError::Locked { by: Some(by), .. } if by == std::process::id()), "{again}");
    drop(store);
    Store::open(&path).expect("free again");
}

async fn newer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    drop(Store::open(&path).unwrap());
    sql(&path, "PRAGMA user_version = 2; PRAGMA journal_mode = DELETE;");
    let before = std::fs::read(&path).unwrap();
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::TooNew { found: 2, known: 1, .. }), "{refused}");
    assert!(refused.to_string().contains("store.db was written by a newer program"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

async fn foreign() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    sql(&path, "CREATE TABLE sessions (x); PRAGMA user_version = 1;");
    let before = std::fs::read(&path).unwrap();
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

async fn damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let text = "not a database, but longer than a header of one ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

async fn damaged_inside() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Store::open(&path).unwrap();
    store.append(&record("r"), &[user("a")]).await.unwrap();
    drop(store);
    sql(&path, "UPDATE entries SET data = '{\"role\":\"user\",\"parts'");
    let store = Store::open(&path).unwrap();
    let refused = store.transcript(&record("r")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    assert!(refused.to_string().contains("store.db is damaged"), "{refused}");
    assert!(!refused.is_unknown());
    store.append(&record("other"), &[user("a")]).await.expect("the rest still works");
}

async fn no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("missing").join("store.db");
    let refused = Store::open(&path).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound),
        "{refused}"
    );
    assert!(refused.to_string().contains("missing"), "{refused}");
    // A folder in the place of the file.
    let path = folder.path().join("folder.db");
    std::fs::create_dir(&path).unwrap();
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
    if rustix::process::geteuid().is_root() {
        // Nobody can keep root from writing into a folder, so a system file system stands for it.
        let refused = Store::open(Path::new("/proc/store.db")).unwrap_err();
        assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
        return;
    }
    let shut = folder.path().join("shut");
    std::fs::create_dir(&shut).unwrap();
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o555)).unwrap();
    let refused = Store::open(&shut.join("store.db")).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied),
        "{refused}"
    );
}

/// Writes until files may not grow any more, which is what a full disk looks like to a process.
async fn fill_the_disk(path: &Path) {
    // With a handler, a write beyond the limit fails instead of killing the process.
    let _handler = signal(SignalKind::from_raw(25)).expect("a handler for SIGXFSZ");
    let store = Store::open(path).expect("a store");
    let r = record("r");
    store.append(&r, &[user("first")]).await.expect("room for one");
    let limit = Some(256 << 10);
    setrlimit(Resource::Fsize, Rlimit { current: limit, maximum: limit }).expect("a limit");
    let filler = "x".repeat(20_000);
    let mut kept = 1;
    let refused = loop {
        match store.append(&r, &[said(&filler)]).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1_000, "there is no limit");
    };
    assert!(matches!(refused, StoreError::DiskFull { .. } | StoreError::Sqlite { .. }), "{refused:?}");
    assert!(!refused.is_unknown());
    let health = store.health();
    assert_eq!(health.level, Level::Error, "{health:?}");
    assert!(health.message.is_some());
    // Reading goes on, and a run does not notice.
    assert_eq!(store.transcript(&r).await.expect("a transcript").len(), kept);
    let tracer = store.begin_trace(TraceHead::default());
    tracer.event(EventKind::Log, "x", None, json!({"text": filler}).as_object().expect("an object").clone());
    tracer.finish(TraceStatus::Completed, None, Usage::default()).await;
    say(&format!("kept {kept}"));
}

async fn full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut child = process("full", &path);
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("the end").success(), "{said}");
    let kept: usize = said.trim().strip_prefix("kept ").expect("a count").parse().expect("a number");
    let store = Store::open(&path).expect("a store");
    let found = store.transcript(&record("r")).await.unwrap();
    assert_eq!(found.len(), kept);
    store.append(&record("r"), &[user("there is room again")]).await.unwrap();
    assert_eq!(store.health().level, Level::Ok);
}

async fn private() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Store::open(&path).unwrap();
    store.append(&record("r"), &[user("a")]).await.unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
    }
}

async fn count_threads() {
    let threads = || std::fs::read_dir("/proc/self/task").expect("threads").count();
    let before = threads();
    let store = Store::memory(MemoryLimits::STANDARD);
    store.create_session(NewSession::of_chat("c")).await.expect("a session");
    let tracer = store.begin_trace(TraceHead::default());
    tracer.event(EventKind::Log, "x", None, Map::new());
    tracer.finish(TraceStatus::Completed, None, Usage::default()).await;
    assert!(store.trace(TraceKey::Trace(tracer.id())).await.expect("a trace").is_some());
    say(&format!("{before} {}", threads()));
}

async fn no_thread() {
    let mut child = process("idle", Path::new("unused"));
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("the end").success(), "{said}");
    assert_eq!(said, "1 1\n");
}
