//! Tickets are used once, journals survive, and what was changed is refused: the same for every kind of store.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};

use outrigger_mustard::host::store::{
    CallId, Capacity, Dialect, Directory, Entry, HoldError, PeekError, PutError, Record, RunId, Sqlite,
    Store, StoreError, TakeError, Ticket, UnixMillis, Usage, Waiting,
};
use outrigger_mustard::host::{HostKey, Limits, Plain};
use tempfile::TempDir;

const ROOMY: Capacity = Capacity { entries: 100, bytes: 1 << 20 };

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Directory,
    Sqlite,
}

const BOTH: [Kind; 2] = [Kind::Directory, Kind::Sqlite];

fn open_with(kind: Kind, at: &Path, key: [u8; 32], capacity: Capacity) -> Result<Arc<dyn Store>, StoreError> {
    let key = HostKey::from_bytes(key);
    Ok(match kind {
        Kind::Directory => Arc::new(Directory::open(at.join("store"), key, capacity)?),
        Kind::Sqlite => Arc::new(Sqlite::open(at.join("store.db"), key, capacity)?),
    })
}

fn open(kind: Kind, at: &Path) -> Arc<dyn Store> {
    open_with(kind, at, [1; 32], ROOMY).expect("the store opens")
}

fn record(step: u64) -> Record {
    let waiting = |call, capability: &str| Waiting {
        call: CallId(call),
        capability: capability.to_owned(),
        args: vec![Plain::Number(1.5), Plain::Array(vec![Plain::Hole])],
    };
    Record {
        run: RunId::random().expect("randomness"),
        step,
        dialect: Dialect::Extended,
        capabilities: vec!["approve".to_owned(), "fetch".to_owned()],
        limits: Limits { instruction_budget: Some(7), ..Limits::DEFAULTS },
        calls: vec![waiting(3, "approve"), waiting(4, "fetch")],
        stored_at: UnixMillis(1_700_000_000_000),
        snapshot: (0..=255).cycle().take(5000).collect(),
    }
}

#[test]
fn a_ticket_gives_its_record_once_and_says_when_it_was_used() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store = open(kind, at.path());
        let parked = record(2);
        let before = UnixMillis::now();
        let ticket = store.put(&parked).expect("room");
        assert_eq!(store.peek(&ticket).expect("there"), (parked.clone(), Usage::Fresh));
        assert_eq!(store.take(&ticket).expect("fresh"), parked);

        let Err(TakeError::AlreadyUsed { ticket: named, when }) = store.take(&ticket) else {
            panic!("{kind:?}: a second take")
        };
        assert_eq!(named, ticket);
        assert!(when >= before && when <= UnixMillis::now());
        assert_eq!(store.peek(&ticket).expect("still there").1, Usage::Used(when));
        // Another process sees the same.
        let again = open(kind, at.path());
        assert!(matches!(again.take(&ticket), Err(TakeError::AlreadyUsed { .. })));
    }
}

#[test]
fn a_replay_has_to_be_asked_for_and_is_a_run_of_its_own() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store = open(kind, at.path());
        let parked = record(2);
        let ticket = store.put(&parked).expect("room");
        store.take(&ticket).expect("fresh");
        let replayed = store.replay(&ticket).expect("still there");
        assert_ne!(replayed.run, parked.run);
        assert_eq!(Record { run: parked.run.clone(), ..replayed }, parked);
        store.remove(&ticket).expect("removed");
        assert!(matches!(store.replay(&ticket), Err(PeekError::Unknown { .. })));
        assert!(matches!(store.take(&ticket), Err(TakeError::Unknown { .. })));
        store.remove(&ticket).expect("removing nothing is fine");
    }
}

#[test]
fn tickets_are_listed_with_what_they_wait_for() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store = open(kind, at.path());
        let (first, second) = (store.put(&record(1)).expect("room"), store.put(&record(2)).expect("room"));
        store.take(&first).expect("fresh");
        let listed: BTreeMap<_, _> = store
            .list()
            .expect("readable")
            .into_iter()
            .map(|listed| (listed.ticket, (listed.usage, listed.record.expect("sound"))))
            .collect();
        assert_eq!(listed.len(), 2);
        let (usage, parked) = &listed[&second];
        assert_eq!((*usage, parked.step, parked.calls[0].capability.as_str()), (Usage::Fresh, 2, "approve"));
        assert_eq!(parked.snapshot, b"", "a list does not carry the snapshots around");
        assert!(matches!(listed[&first].0, Usage::Used(_)));
    }
}

#[test]
fn a_store_is_full_at_its_limit_and_used_tickets_make_room() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store =
            open_with(kind, at.path(), [1; 32], Capacity { entries: 2, bytes: 1 << 20 }).expect("opens");
        let first = store.put(&record(1)).expect("room for one");
        let second = store.put(&record(2)).expect("room for two");
        let error = store.put(&record(3)).expect_err("no room for three");
        assert!(matches!(error, PutError::Full { entries: 2, .. }), "{error}");
        store.take(&first).expect("fresh");
        store.put(&record(3)).expect("the used one goes");
        assert!(matches!(store.peek(&first), Err(PeekError::Unknown { .. })));
        store.peek(&second).expect("an unused one never goes");
    }
}

#[test]
fn a_record_may_be_as_large_as_the_store_and_not_one_byte_larger() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let roomy = open(kind, at.path());
        let ticket = roomy.put(&record(1)).expect("room");
        let needed = roomy.list().expect("readable")[0].bytes;
        roomy.remove(&ticket).expect("removed");

        let tight =
            |bytes| open_with(kind, at.path(), [1; 32], Capacity { entries: 9, bytes }).expect("opens");
        let error = tight(needed - 1).put(&record(1)).expect_err("one byte too much");
        assert!(matches!(error, PutError::TooLarge { .. }), "{error}");
        tight(needed).put(&record(1)).expect("exactly as large");
        assert!(matches!(tight(needed).put(&record(1)), Err(PutError::Full { .. })));
        assert!(matches!(tight(needed - 1).checkpoint(&record(1)), Err(PutError::TooLarge { .. })));
    }
}

#[test]
fn what_was_changed_or_sealed_with_another_key_is_refused_and_stays_unused() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let ticket = open(kind, at.path()).put(&record(1)).expect("room");
        let stranger = open_with(kind, at.path(), [2; 32], ROOMY).expect("opens");
        assert!(matches!(stranger.take(&ticket), Err(TakeError::Store(StoreError::Tampered { .. }))));
        assert!(stranger.list().expect("readable")[0].record.is_err());
        open(kind, at.path()).take(&ticket).expect("a refused take used nothing up");
    }
    // A changed bit on disk, and a file under another's name.
    let at = TempDir::new().expect("a directory");
    let store = open(Kind::Directory, at.path());
    let (first, second) = (store.put(&record(1)).expect("room"), store.put(&record(2)).expect("room"));
    let path = |ticket: &Ticket| at.path().join("store/fresh").join(ticket.as_str());
    std::fs::copy(path(&first), path(&second)).expect("copied");
    assert!(matches!(store.take(&second), Err(TakeError::Store(StoreError::Tampered { .. }))));
    let mut bytes = std::fs::read(path(&first)).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path(&first), bytes).expect("written");
    let error = store.take(&first).expect_err("changed");
    assert_eq!(
        error.to_string(),
        format!("{first} was changed, or belongs to a host with another key: its code is wrong")
    );
}

#[test]
fn nobody_else_can_read_the_files_of_a_store() {
    let at = TempDir::new().expect("a directory");
    for kind in BOTH {
        let store = open(kind, at.path());
        store.put(&record(1)).expect("room");
        store.checkpoint(&record(2)).expect("room");
    }
    let mut looked_at = 0;
    let mut rooms = vec![at.path().join("store"), at.path().join("store.db-leases")];
    let mut files = vec![at.path().join("store.db"), at.path().join("store.db-wal")];
    while let Some(room) = rooms.pop() {
        assert_eq!(mode(&room), 0o700, "{}", room.display());
        for entry in std::fs::read_dir(&room).expect("readable").flatten() {
            let list = if entry.path().is_dir() { &mut rooms } else { &mut files };
            list.push(entry.path());
        }
    }
    for file in files.iter().filter(|file| file.exists()) {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        looked_at += 1;
    }
    assert!(looked_at >= 3, "a database, a ticket and a checkpoint");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn a_run_is_held_by_one_at_a_time() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let (ours, theirs) = (open(kind, at.path()), open(kind, at.path()));
        let run = record(1).run;
        let lease = ours.hold(&run).expect("free");
        assert_eq!(lease.run(), &run);
        assert!(matches!(theirs.hold(&run), Err(HoldError::Held { .. })));
        drop(lease);
        let lease = theirs.hold(&run).expect("free again");
        theirs.forget(&run).expect("forgotten while it is held");
        drop(lease);
        ours.hold(&run).expect("and free once more");
    }
}

#[test]
fn what_a_crash_left_of_a_run_without_a_snapshot_is_swept_and_nothing_else_is() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store = open(kind, at.path());
        let (crashed, held, kept) = (record(1).run, record(1).run, record(1));
        drop(store.hold(&crashed).expect("free"));
        let _lease = store.hold(&held).expect("free");
        drop(store.hold(&kept.run).expect("free"));
        store.checkpoint(&kept).expect("room");
        let room = at.path().join(if kind == Kind::Directory { "store/runs" } else { "store.db-leases" });
        let runs = || {
            let names = std::fs::read_dir(&room).expect("readable").flatten();
            names.map(|entry| entry.file_name().into_string().expect("text")).collect::<Vec<_>>()
        };
        open(kind, at.path());
        assert_eq!(runs().len(), 3, "they may have begun this very moment");
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(4000);
        for name in runs() {
            let entry = std::fs::File::open(room.join(name)).expect("it opens");
            entry.set_modified(long_ago).expect("it is ours");
        }
        open(kind, at.path());
        let mut expected = [held.to_string(), kept.run.to_string()];
        let mut left = runs();
        left.sort();
        expected.sort();
        assert_eq!(left, expected, "{kind:?}");
    }
}

#[test]
fn the_journal_keeps_the_last_snapshot_and_the_first_answers_of_the_calls_that_wait() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store = open(kind, at.path());
        let first = record(1);
        let run = first.run.clone();
        assert_eq!(store.latest(&run).expect("readable"), None);
        store.checkpoint(&first).expect("room");
        store.begin(&run, CallId(3)).expect("written");
        store.begin(&run, CallId(4)).expect("written");
        store.answer(&run, CallId(4), "four").expect("written");
        store.answer(&run, CallId(4), "another").expect("ignored");
        store.begin(&run, CallId(4)).expect("ignored");
        let expected = [(CallId(3), Entry::Begun), (CallId(4), Entry::Answered("four".to_owned()))];
        assert_eq!(open(kind, at.path()).journal(&run).expect("readable"), BTreeMap::from(expected));
        assert_eq!(store.unfinished().expect("readable"), std::slice::from_ref(&run));

        let mut second = Record { run: run.clone(), ..record(2) };
        second.calls.remove(1);
        store.checkpoint(&second).expect("room");
        assert_eq!(store.latest(&run).expect("readable"), Some(second));
        let expected = [(CallId(3), Entry::Begun)];
        assert_eq!(store.journal(&run).expect("readable"), BTreeMap::from(expected), "4 no longer waits");

        store.forget(&run).expect("forgotten");
        assert_eq!(store.latest(&run).expect("readable"), None);
        assert_eq!(store.journal(&run).expect("readable"), BTreeMap::new());
        assert_eq!(store.unfinished().expect("readable"), []);
    }
}

#[test]
fn a_database_of_a_later_time_is_refused() {
    let at = TempDir::new().expect("a directory");
    drop(open(Kind::Sqlite, at.path()));
    let connection = rusqlite::Connection::open(at.path().join("store.db")).expect("a database");
    connection.pragma_update(None, "user_version", 9).expect("written");
    let error = open_with(Kind::Sqlite, at.path(), [1; 32], ROOMY).expect_err("from the future");
    assert_eq!(error.to_string(), "the snapshot database has version 9, and this program knows 1");
}

#[test]
fn of_many_threads_exactly_one_gets_the_ticket() {
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store = open(kind, at.path());
        for _ in 0..20 {
            let ticket = store.put(&record(1)).expect("room");
            let start = Barrier::new(4);
            let winners = std::thread::scope(|scope| {
                let racers: Vec<_> = (0..4)
                    .map(|_| {
                        let (store, ticket, start) = (open(kind, at.path()), &ticket, &start);
                        scope.spawn(move || {
                            start.wait();
                            match store.take(ticket) {
                                Ok(_) => 1,
                                Err(TakeError::AlreadyUsed { .. }) => 0,
                                Err(error) => panic!("{error}"),
                            }
                        })
                    })
                    .collect();
                racers.into_iter().map(|racer| racer.join().expect("no panic")).sum::<u32>()
            });
            assert_eq!(winners, 1);
            store.remove(&ticket).expect("removed");
        }
    }
}

/// The other side of the race between processes: takes every ticket it can and prints which it got.
const RACER: &str = "OUTRIGGER_TEST_STORE_RACER";

#[test]
fn of_two_processes_exactly_one_gets_each_ticket() {
    if let Ok(place) = std::env::var(RACER) {
        let (kind, at) = place.split_once(':').expect("kind and place");
        let kind = if kind == "directory" { Kind::Directory } else { Kind::Sqlite };
        take_all(kind, Path::new(at));
        return;
    }
    for kind in BOTH {
        let at = TempDir::new().expect("a directory");
        let store = open(kind, at.path());
        let tickets: Vec<_> = (0..50).map(|step| store.put(&record(step)).expect("room")).collect();
        let list: Vec<_> = tickets.iter().map(Ticket::as_str).collect();
        std::fs::write(at.path().join("tickets"), list.join("\n")).expect("written");
        let name = if kind == Kind::Directory { "directory" } else { "sqlite" };
        let racers: Vec<_> = (0..2)
            .map(|_| {
                #[expect(clippy::disallowed_methods, reason = "the test needs a second process of its own")]
                let mut command = Command::new(std::env::current_exe().expect("this test"));
                command
                    .args(["--exact", "host_store::of_two_processes_exactly_one_gets_each_ticket", "--quiet"])
                    .env(RACER, format!("{name}:{}", at.path().display()))
                    .stdout(Stdio::piped());
                command.spawn().expect("it starts")
            })
            .collect();
        for mut racer in racers {
            assert!(racer.wait().expect("it ends").success());
        }
        let mut got = Vec::new();
        for entry in std::fs::read_dir(at.path().join("got")).expect("both have written").flatten() {
            let text = std::fs::read_to_string(entry.path()).expect("text");
            got.extend(text.lines().map(str::to_owned));
        }
        got.sort();
        let mut expected: Vec<String> = list.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!(got, expected, "{kind:?}: each exactly once");
    }
}

fn take_all(kind: Kind, at: &Path) {
    let store = open(kind, at);
    let mut got = String::new();
    for ticket in std::fs::read_to_string(at.join("tickets")).expect("the list").lines() {
        match store.take(&ticket.parse().expect("a ticket")) {
            Ok(_) => got = format!("{got}{ticket}\n"),
            Err(TakeError::AlreadyUsed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    std::fs::create_dir_all(at.join("got")).expect("made");
    std::fs::write(at.join("got").join(std::process::id().to_string()), got).expect("written");
}
