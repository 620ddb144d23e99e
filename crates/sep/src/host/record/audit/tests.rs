//! A trail as those meet it who try to stop it, to forge it, or are killed while they write it.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_policy::Millis;
use outrigger_policy::audit::Fault;
use outrigger_wire::rpc::Id;
use serde_json::value::RawValue;

use super::*;
use crate::host::record::stamp::Now;
use crate::protocol::{ExtensionId, Permission, SessionId};

/// A trail in its own folder, by a clock that goes when it is told to.
struct Bench {
    dir: tempfile::TempDir,
    time: Arc<AtomicU64>,
    ext: ExtensionId,
    session: SessionId,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            time: Arc::new(AtomicU64::new(0)),
            ext: ExtensionId::new("org.example.notes").unwrap(),
            session: SessionId::from_text("01JCX0000000000000000000AB"),
        }
    }

    fn open(&self) -> Audit {
        self.open_small(AuditLimits::USUAL)
    }

    fn open_small(&self, limits: AuditLimits) -> Audit {
        let time = Arc::clone(&self.time);
        let clock = move || {
            let steady = time.load(Ordering::Relaxed);
            Now { wall: Millis(1_790_000_000_000 + steady), steady: Millis(steady) }
        };
        Audit::open_with(self.dir.path(), limits, Arc::new(clock)).unwrap()
    }

    fn pass_time(&self, millis: u64) {
        self.time.fetch_add(millis, Ordering::Relaxed);
    }

    fn entry(&self, decision: Ruling, reason: &'static str) -> Entry<'_> {
        Entry {
            extension: Some(&self.ext),
            session: Some(&self.session),
            kind: AuditKind::Rpc,
            method: "host.contacts.list",
            permission: Some(Permission::ContactsRead),
            decision,
            reason,
            request: None,
            params: None,
        }
    }

    fn allow(&self) -> Entry<'_> {
        self.entry(Ruling::Allow, "granted")
    }

    fn deny(&self) -> Entry<'_> {
        self.entry(Ruling::Deny, "not_granted")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("audit.log")).unwrap()
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn verify(&self) -> Result<Verified, Broken> {
        verify(self.dir.path())
    }

    /// What is on the disk, as if the host had been killed now.
    fn killed(&self, audit: &Audit) -> Bench {
        let copy = Bench { dir: tempfile::tempdir().unwrap(), ..Bench::new() };
        let _still = audit.shared.lock();
        // Not the head: it is written beside the trail, whenever it comes to that.
        for name in file_names(self) {
            fs::copy(self.path(&name), copy.path(&name)).unwrap();
        }
        copy.pass_time(self.time.load(Ordering::Relaxed));
        copy
    }
}

#[test]
fn every_decision_is_a_line_with_all_that_is_known_and_nothing_that_was_said() {
    let bench = Bench::new();
    let audit = bench.open();
    let params = RawValue::from_string(r#"{"content":"secret", "title":"t"}"#.into()).unwrap();
    let id = Id::text("a-7");
    let seven = Id::from(7);
    audit
        .write(&Entry {
            method: "host.messages.send",
            permission: Some(Permission::MessagesSend),
            request: Some(&seven),
            params: Some(&params),
            ..bench.allow()
        })
        .unwrap();
    bench.pass_time(12);
    audit.write(&Entry { request: Some(&id), ..bench.deny() }).unwrap();
    let host = Entry {
        extension: None,
        session: None,
        kind: AuditKind::Lifecycle,
        method: "start",
        permission: None,
        decision: Ruling::Allow,
        reason: "manual",
        request: None,
        params: None,
    };
    audit.write(&host).unwrap();
    insta::assert_snapshot!(bench.text(), @r#"
    {"decision":"allow","ext":"org.example.notes","kind":"rpc","method":"host.messages.send","params":"5c2d777675ab57e9e40de6c93603cfb3f6787e8dda7f19343af3f161a84d265d","permission":"messages.send","prev":"0000000000000000000000000000000000000000000000000000000000000000","reason":"granted","reqId":7,"seq":1,"session":"01JCX0000000000000000000AB","ts":1790000000000}
    {"decision":"deny","ext":"org.example.notes","kind":"rpc","method":"host.contacts.list","permission":"contacts.read","prev":"0ae72e49c51c28a5fc0584f54b9db94d94c42d93f010e9767b014917d275bf88","reason":"not_granted","reqId":"a-7","seq":2,"session":"01JCX0000000000000000000AB","ts":1790000000012}
    {"decision":"allow","kind":"lifecycle","method":"start","prev":"f216b9bad4e24ee1f329968793b0defac02ad4c64d65cfb2afda56d2af753bde","reason":"manual","seq":3,"ts":1790000000012}
    "#);
    drop(audit);
    assert_eq!(bench.verify().unwrap().records, 3);
}

#[test]
fn denials_are_in_the_file_at_once_and_allowed_calls_within_a_second() {
    let bench = Bench::new();
    let audit = bench.open();
    audit.write(&bench.allow()).unwrap();
    audit.write(&bench.deny()).unwrap();
    assert_eq!(bench.lines().len(), 2, "what may wait goes along with what may not");
    audit.write(&bench.allow()).unwrap();
    let begun = Instant::now();
    while bench.lines().len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the writer never came");
        std::thread::yield_now();
    }
}

#[test]
fn the_same_denial_is_written_twenty_times_a_minute_and_then_counted() {
    let bench = Bench::new();
    let audit = bench.open();
    for _ in 0..20 {
        audit.write(&bench.deny()).unwrap();
    }
    assert_eq!(bench.lines().len(), 20);
    for _ in 0..5 {
        bench.pass_time(10);
        audit.write(&bench.deny()).unwrap();
    }
    audit.write(&bench.entry(Ruling::Deny, "revoked")).unwrap();
    assert_eq!(bench.lines().len(), 21, "another reason is another denial");
    bench.pass_time(60_000);
    audit.flush().unwrap();
    let lines = bench.lines();
    assert_eq!(lines.len(), 22);
    assert_eq!(
        (&lines[21]["repeat"], &lines[21]["reason"], &lines[21]["firstTs"]),
        (&5.into(), &"not_granted".into(), &1_790_000_000_010_u64.into())
    );
    audit.write(&bench.deny()).unwrap();
    assert_eq!(bench.lines().len(), 23, "a new minute begins");
}

#[test]
fn what_was_counted_is_written_when_the_host_leaves() {
    let bench = Bench::new();
    let audit = bench.open();
    for _ in 0..23 {
        audit.write(&bench.deny()).unwrap();
    }
    drop(audit);
    let lines = bench.lines();
    assert_eq!((lines.len(), &lines[20]["repeat"]), (21, &3.into()));
    assert_eq!(bench.verify().unwrap().last, 21);
}

#[test]
fn a_second_writer_is_refused_and_told_who_has_it() {
    let bench = Bench::new();
    let audit = bench.open();
    let error = Audit::open(bench.dir.path()).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(audit);
    Audit::open(bench.dir.path()).unwrap();
}

#[test]
fn a_host_killed_at_any_byte_of_a_record_leaves_a_trail_that_goes_on() {
    let bench = Bench::new();
    let audit = bench.open();
    for _ in 0..3 {
        audit.write(&bench.deny()).unwrap();
    }
    let whole = bench.text();
    let last = whole.trim_end().rfind('\n').unwrap() + 1;
    for cut in last..=whole.len() {
        let killed = bench.killed(&audit);
        fs::write(killed.path("audit.log"), &whole[..cut]).unwrap();
        let kept = if cut == whole.len() { 3 } else { 2 };
        let torn = if cut == whole.len() { 0 } else { cut - last };
        let verified = killed.verify().unwrap();
        assert_eq!(
            (verified.records, verified.torn_bytes),
            (kept, torn),
            "before the next start, cut at {cut}"
        );

        let again = killed.open();
        again.write(&killed.deny()).unwrap();
        drop(again);
        let verified = killed.verify().unwrap();
        let noted = usize::from(torn > 0);
        assert_eq!((verified.records, verified.torn_bytes), (kept + noted + 1, 0), "cut at {cut}");
        if torn > 0 {
            assert_eq!(killed.lines()[kept]["reason"], "torn_line");
            assert_eq!(fs::read_to_string(killed.path("audit.torn")).unwrap(), whole[last..cut]);
        }
    }
}

#[test]
fn garbage_at_the_end_is_moved_aside_too() {
    let bench = Bench::new();
    drop(bench.open());
    let audit = bench.open();
    audit.write(&bench.deny()).unwrap();
    drop(audit);
    let mut bytes = fs::read(bench.path("audit.log")).unwrap();
    bytes.extend_from_slice(b"\0\0\0\n{\"seq\":9}\n\xff");
    fs::write(bench.path("audit.log"), bytes).unwrap();
    let audit = bench.open();
    audit.write(&bench.deny()).unwrap();
    drop(audit);
    assert_eq!(bench.verify().unwrap().records, 3);
    assert_eq!(fs::read(bench.path("audit.torn")).unwrap(), b"\0\0\0\n{\"seq\":9}\n\xff");
}

const SMALL: AuditLimits = AuditLimits { file_bytes: 4096, files: 3 };

/// Writes until `files` files exist.
fn fill(bench: &Bench, audit: &Audit, records: usize) {
    for _ in 0..records {
        audit.write(&bench.allow()).unwrap();
    }
    audit.flush().unwrap();
}

fn file_names(bench: &Bench) -> Vec<String> {
    let names = fs::read_dir(bench.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
}

#[test]
fn the_chain_goes_on_from_file_to_file_and_the_oldest_go() {
    let bench = Bench::new();
    let audit = bench.open_small(SMALL);
    fill(&bench, &audit, 200);
    let names = file_names(&bench);
    assert_eq!(names.len(), 3, "{names:?}");
    for name in &names {
        assert!(fs::metadata(bench.path(name)).unwrap().len() <= SMALL.file_bytes, "{name}");
    }
    let verified = bench.verify().unwrap();
    assert_eq!(verified.files, 3);
    assert!(verified.first > 1 && verified.records < 200);
    assert_eq!(verified.last, audit.head().seq);
    drop(audit);

    let audit = bench.open_small(SMALL);
    fill(&bench, &audit, 100);
    drop(audit);
    assert_eq!(file_names(&bench).len(), 3);
    bench.verify().unwrap();
}

#[test]
fn one_file_is_begun_anew() {
    let bench = Bench::new();
    let audit = bench.open_small(AuditLimits { file_bytes: 4096, files: 1 });
    fill(&bench, &audit, 100);
    drop(audit);
    assert_eq!(file_names(&bench), ["audit.log"]);
    assert!(bench.verify().unwrap().first > 1);
}

#[test]
fn a_host_killed_while_it_changed_files_leaves_a_trail_that_goes_on() {
    let bench = Bench::new();
    let audit = bench.open_small(SMALL);
    fill(&bench, &audit, 100);
    let first_line = bench.text().find('\n').unwrap() + 1;
    for left in [None, Some(0), Some(first_line - 1), Some(first_line)] {
        let killed = bench.killed(&audit);
        match left {
            None => fs::remove_file(killed.path("audit.log")).unwrap(),
            Some(length) => fs::write(killed.path("audit.log"), &bench.text()[..length]).unwrap(),
        }
        killed.verify().unwrap();
        let again = killed.open_small(SMALL);
        fill(&killed, &again, 3);
        drop(again);
        let verified = killed.verify().unwrap();
        assert!(verified.first > 1 && verified.torn_bytes == 0, "{left:?}");
    }
}

#[test]
fn whoever_alters_removes_or_reorders_is_found_with_file_and_line() {
    let bench = Bench::new();
    let audit = bench.open_small(SMALL);
    fill(&bench, &audit, 60);
    drop(audit);
    let names = file_names(&bench);
    let oldest = bench.path(&names[0]);
    let text = fs::read_to_string(&oldest).unwrap();

    let fifth = text.match_indices('\n').nth(3).unwrap().0 + 1;
    fs::write(&oldest, format!("{}{}", &text[..fifth], text[fifth..].replacen("allow", "deny", 1))).unwrap();
    let broken = bench.verify().unwrap_err();
    let here = |fault: &Fault| matches!(fault, Fault::Altered { .. });
    assert!(
        matches!(&broken, Broken::Line { file, line: 5, fault } if *file == oldest && here(fault)),
        "{broken}"
    );

    let third = text.match_indices('\n').nth(2).unwrap().0 + 1;
    let fourth = text.match_indices('\n').nth(3).unwrap().0 + 1;
    fs::write(&oldest, format!("{}{}", &text[..third], &text[fourth..])).unwrap();
    let broken = bench.verify().unwrap_err();
    assert!(matches!(&broken, Broken::Line { line: 4, fault: Fault::Removed { .. }, .. }), "{broken}");

    let second = text.find('\n').unwrap() + 1;
    fs::write(&oldest, &text[second..]).unwrap();
    assert_eq!(bench.verify(), Err(Broken::Beheaded { file: oldest.clone() }));

    fs::write(&oldest, &text).unwrap();
    bench.verify().unwrap();
    fs::remove_file(bench.path(&names[1])).unwrap();
    let broken = bench.verify().unwrap_err();
    assert!(matches!(&broken, Broken::Line { line: 1, fault: Fault::Removed { .. }, .. }), "{broken}");
}

#[test]
fn an_end_that_was_cut_off_is_found_and_stays_noted() {
    let bench = Bench::new();
    let audit = bench.open();
    fill(&bench, &audit, 5);
    drop(audit);
    let text = bench.text();
    let cut = text.match_indices('\n').nth(2).unwrap().0 + 1;
    fs::write(bench.path("audit.log"), &text[..cut]).unwrap();
    let broken = bench.verify().unwrap_err();
    assert_eq!(
        broken,
        Broken::Line { file: bench.path("audit.log"), line: 4, fault: Fault::Truncated { last: 3, head: 5 } }
    );
    let audit = bench.open();
    fill(&bench, &audit, 1);
    drop(audit);
    let noted = &bench.lines()[3];
    assert_eq!((&noted["reason"], &noted["repeat"]), (&"records_missing".into(), &2.into()));
}

#[test]
fn a_full_disk_stops_everything_and_the_trail_goes_on_when_there_is_room() {
    let bench = Bench::new();
    let audit = bench.open();
    audit.write(&bench.deny()).unwrap();
    let set_room = |room| audit.shared.lock().set_room(room);

    // Room for one and a half records: the half one must not stay.
    set_room(Some(bench.text().len() * 3 / 2));
    audit.write(&bench.deny()).unwrap();
    let down = audit.write(&bench.deny()).unwrap_err();
    assert!(down.to_string().starts_with("the audit trail cannot be written: "), "{down}");
    assert_eq!(bench.lines().len(), 2);
    assert_eq!(audit.write(&bench.allow()), Err(down.clone()), "nothing is allowed meanwhile");
    assert_eq!(audit.standing(), Err(down));
    bench.pass_time(RETRY);
    assert!(audit.write(&bench.allow()).is_err(), "it was tried again in vain");

    set_room(None);
    assert!(audit.write(&bench.allow()).is_err(), "not tried again so soon");
    bench.pass_time(RETRY);
    audit.write(&bench.allow()).unwrap();
    audit.flush().unwrap();
    let words: Vec<String> = bench
        .lines()
        .iter()
        .map(|line| format!("{} {}", line["decision"], line["method"]).replace('"', ""))
        .collect();
    assert_eq!(
        words,
        [
            "deny host.contacts.list",
            "deny host.contacts.list",
            "deny host.contacts.list",
            "allow audit.resume",
            "allow host.contacts.list"
        ],
        "the denial that nobody could write was kept; what was not allowed is not there"
    );
    drop(audit);
    bench.verify().unwrap();
}

const RETRY: u64 = 250;

#[test]
fn denials_that_nobody_could_keep_are_counted() {
    let bench = Bench::new();
    let audit = bench.open_small(SMALL);
    audit.shared.lock().set_room(Some(0));
    let record = |n: u32| {
        let method = format!("method{n}");
        audit.write(&Entry { method: &method, ..bench.deny() })
    };
    for n in 0..100 {
        record(n).unwrap_err();
    }
    audit.shared.lock().set_room(None);
    bench.pass_time(RETRY);
    record(100).unwrap();
    drop(audit);
    let lines: Vec<serde_json::Value> = file_names(&bench)
        .iter()
        .flat_map(|name| {
            fs::read_to_string(bench.path(name)).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    let written = lines.iter().filter(|line| line["decision"] == "deny").count();
    let lost =
        lines.iter().find(|line| line["method"] == "audit.resume").unwrap()["repeat"].as_u64().unwrap();
    assert_eq!(written as u64 + lost, 101);
    assert!(lost > 0);
    bench.verify().unwrap();
}

#[test]
fn a_file_that_is_taken_away_stops_the_trail_and_the_check_shows_the_hole() {
    let bench = Bench::new();
    let audit = bench.open();
    audit.write(&bench.deny()).unwrap();
    fs::remove_file(bench.path("audit.log")).unwrap();
    fs::create_dir(bench.path("audit.log")).unwrap();
    assert!(audit.flush().is_err());
    bench.pass_time(RETRY);
    assert!(audit.write(&bench.allow()).is_err(), "a folder is no file");
    fs::remove_dir(bench.path("audit.log")).unwrap();
    bench.pass_time(RETRY);
    audit.write(&bench.allow()).unwrap();
    drop(audit);
    assert_eq!(bench.verify(), Err(Broken::Beheaded { file: bench.path("audit.log") }));
}

#[test]
fn a_clock_that_is_set_back_changes_what_is_written_and_nothing_else() {
    let bench = Bench::new();
    let wall = Arc::new(AtomicU64::new(5_000_000));
    let (time, shown) = (Arc::clone(&bench.time), Arc::clone(&wall));
    let clock = move || Now {
        wall: Millis(shown.load(Ordering::Relaxed)),
        steady: Millis(time.load(Ordering::Relaxed)),
    };
    let audit = Audit::open_with(bench.dir.path(), AuditLimits::USUAL, Arc::new(clock)).unwrap();
    for _ in 0..21 {
        audit.write(&bench.deny()).unwrap();
    }
    wall.store(1000, Ordering::Relaxed);
    bench.pass_time(60_000);
    audit.flush().unwrap();
    assert_eq!(bench.lines()[20]["repeat"], 1);
    drop(audit);
    bench.verify().unwrap();
}

#[test]
fn nothing_that_an_extension_can_choose_stops_the_trail() {
    let bench = Bench::new();
    let audit = bench.open();
    let long = "\u{202e}\n\0é".repeat(10_000);
    let id = Id::text(&long);
    for params in ["9007199254740993", "[[[]]]", r#"{"a":1,"a":2}"#, r#""\ud800""#] {
        let params = RawValue::from_string(params.to_owned()).unwrap_or_default();
        let entry = Entry {
            method: &long,
            reason: &long,
            request: Some(&id),
            params: Some(&params),
            ..bench.allow()
        };
        audit.write(&entry).unwrap();
    }
    drop(audit);
    assert_eq!(bench.verify().unwrap().records, 4);
    assert!(bench.text().lines().all(|line| line.len() < 2000));
}

#[test]
fn an_empty_folder_is_an_empty_trail() {
    let bench = Bench::new();
    let verified = bench.verify().unwrap();
    assert_eq!((verified.records, verified.last, verified.files), (0, 0, 0));
    assert!(matches!(verify(&bench.path("nowhere")), Err(Broken::Unreadable { .. })));
}
