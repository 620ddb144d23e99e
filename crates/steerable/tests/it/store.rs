//! Sessions, transcripts, forks and settings, as a sidecar uses them; each in memory and in a file.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_steerable::store::{
    Filter, Fork, ForkError, ForkPoint, Level, MemoryLimits, NewSession, Seq, Store, StoreError, Which,
};
use serde_json::json;
use serde_json::value::RawValue;

use crate::store_kit::{answer, both, calling, record, said, sql, told, trial, user};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_session_made_again_keeps_when_it_was_made_and_what_was_said", made_again),
        trial("sessions_are_listed_by_filter_the_last_updated_first", listed),
        trial("a_thousand_sessions_are_listed_quickly", a_thousand),
        trial("a_transcript_is_read_as_it_was_written", written),
        trial("a_summary_stands_for_what_it_replaced_and_the_history_stays", compacted),
        trial("a_transcript_is_forked_at_any_place_with_its_session", forked),
        trial("a_fork_of_a_compacted_transcript_is_compacted_only_if_it_goes_that_far", forked_compacted),
        trial("a_fork_that_cannot_be_says_why", not_forked),
        trial("calls_that_were_never_answered_are_answered_when_a_turn_begins", interrupted),
        trial("settings_are_kept_as_a_whole", settings),
        trial("memory_takes_as_many_sessions_as_its_limit_and_not_one_more", session_limit),
        trial("memory_takes_as_many_bytes_as_its_limit_and_not_one_more", byte_limit),
        trial("a_message_of_more_than_32_mib_is_refused", large_message),
        trial("a_transcript_in_a_file_takes_128_mib_and_not_one_byte_more", large_transcript),
    ]
}

fn session(id: &str, chat: &str, user: &str) -> NewSession {
    NewSession { session_id: id.to_owned(), user_id: user.to_owned(), ..NewSession::of_chat(chat) }
}

async fn made_again() {
    let (_folder, stores) = both();
    for store in stores {
        let first = store.create_session(session("s1", "c1", "u1")).await.unwrap();
        assert_eq!(first.created_at, first.updated_at);
        assert!(first.is_active);
        store.append(&record("s1"), &[user("hi")]).await.unwrap();
        let data = RawValue::from_string(r#"{"z":1.0,"a":[null]}"#.to_owned()).unwrap();
        let again = NewSession { stage_data: Some(data), ..session("s1", "c2", "u2") };
        let second = store.create_session(again).await.unwrap();
        assert_eq!((second.chat_id.as_str(), second.user_id.as_str()), ("c2", "u2"));
        assert_eq!(second.created_at, first.created_at);
        assert!(second.updated_at > first.updated_at);
        let found = store.session("s1").await.unwrap().expect("the session");
        assert_eq!(serde_json::to_string(&found).unwrap(), serde_json::to_string(&second).unwrap());
        assert_eq!(found.stage_data.expect("data").get(), r#"{"z":1.0,"a":[null]}"#);
        assert_eq!(told(&store.transcript(&record("s1")).await.unwrap()), ["1 user hi"]);
        assert!(store.session("s2").await.unwrap().is_none());
    }
}

async fn listed() {
    let (_folder, stores) = both();
    for store in stores {
        for (id, chat, user) in [("a", "c1", "u1"), ("b", "c1", "u2"), ("c", "c2", "u1")] {
            store.create_session(session(id, chat, user)).await.unwrap();
        }
        let list = async |filter: Filter| {
            let found = store.sessions(filter).await.unwrap();
            found.into_iter().map(|session| session.session_id).collect::<String>()
        };
        assert_eq!(list(Filter::default()).await, "cba");
        store.append(&record("a"), &[user("a turn makes it the newest")]).await.unwrap();
        assert_eq!(list(Filter::default()).await, "acb");
        assert_eq!(list(Filter { user_id: Some("u1".to_owned()), ..Filter::default() }).await, "ac");
        assert_eq!(list(Filter { chat_id: Some("c1".to_owned()), ..Filter::default() }).await, "ab");
        assert_eq!(list(Filter { chat_id: Some("c".to_owned()), ..Filter::default() }).await, "");
        assert_eq!(list(Filter { which: Which::Active, limit: Some(2), ..Filter::default() }).await, "ac");
        assert_eq!(list(Filter { limit: Some(0), ..Filter::default() }).await, "");
    }
}

async fn a_thousand() {
    let (_folder, stores) = both();
    for store in stores {
        for number in 0..1000 {
            store.create_session(session(&format!("s{number:04}"), "c", "u")).await.unwrap();
        }
        let began = Instant::now();
        let found = store.sessions(Filter::default()).await.unwrap();
        let took = began.elapsed();
        assert_eq!(found.len(), 1000);
        assert_eq!(found[0].session_id, "s0999");
        // A few milliseconds; the bound is far away because machines are busy.
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

async fn written() {
    let (_folder, stores) = both();
    for store in stores {
        let r = record("r");
        assert!(!store.has_record(&r).await.unwrap());
        assert!(store.transcript(&r).await.unwrap().is_empty());
        assert_eq!(store.append(&r, &[user("1"), calling(&["x", "y"])]).await.unwrap(), Seq(2));
        assert_eq!(store.append(&r, &[answer("y"), answer("x")]).await.unwrap(), Seq(4));
        assert_eq!(store.append(&r, &[]).await.unwrap(), Seq(4));
        assert!(store.has_record(&r).await.unwrap());
        let expected = ["1 user 1", "2 assistant", "3 tool y", "4 tool x"];
        assert_eq!(told(&store.transcript(&r).await.unwrap()), expected);
        assert_eq!(told(&store.transcript(&record("other")).await.unwrap()), Vec::<String>::new());
    }
}

async fn compacted() {
    let (_folder, stores) = both();
    for store in stores {
        let r = record("r");
        let texts = ["a", "b", "c", "d"].map(user);
        store.append(&r, &texts).await.unwrap();
        assert_eq!(store.note_compaction(&r, Seq(1)..=Seq(3), &said("abc")).await.unwrap(), Seq(5));
        assert_eq!(told(&store.transcript(&r).await.unwrap()), ["3 assistant abc", "4 user d"]);
        store.append(&r, &[user("e")]).await.unwrap();
        store.note_compaction(&r, Seq(3)..=Seq(4), &said("abcd")).await.unwrap();
        assert_eq!(told(&store.transcript(&r).await.unwrap()), ["4 assistant abcd", "6 user e"]);
        let history = ["1 user a", "2 user b", "3 user c", "4 user d", "6 user e"];
        assert_eq!(told(&store.history(&r).await.unwrap()), history);
        let nobody = store.note_compaction(&record("nobody"), Seq(1)..=Seq(1), &said("x")).await;
        assert!(matches!(nobody, Err(StoreError::Unknown { what: "record", .. })), "{nobody:?}");
    }
}

fn fork(source: &str, until: ForkPoint, name: &str) -> Fork {
    Fork { source: record(source), until, new_record: Some(record(name)), label: Some("try".to_owned()) }
}

async fn forked() {
    let (_folder, stores) = both();
    for store in stores {
        let data = RawValue::from_string(r#"{"k":1}"#.to_owned()).unwrap();
        let new =
            NewSession { stage_data: Some(data), current_stage: "act".to_owned(), ..session("s", "c", "u") };
        store.create_session(new).await.unwrap();
        let all = [user("one"), said("1"), user("two"), said("2"), user("three")];
        store.append(&record("s"), &all).await.unwrap();
        let whole = ["1 user one", "2 assistant 1", "3 user two", "4 assistant 2", "5 user three"];
        for (name, until, length) in [
            ("f1", ForkPoint::End, 5),
            ("f2", ForkPoint::Until(Seq(2)), 2),
            ("f3", ForkPoint::BeforeLastUser, 4),
            ("f4", ForkPoint::BeforeUser(1), 2),
            ("f5", ForkPoint::BeforeUser(0), 0),
            ("f6", ForkPoint::Until(Seq(0)), 0),
        ] {
            let done = store.fork(fork("s", until, name)).await.unwrap();
            assert_eq!(done.record, record(name));
            assert_eq!(done.source, record("s"));
            assert_eq!((done.source_until, done.seed_messages), (Seq(length as u64), length), "{name}");
            assert_eq!(done.label.as_deref(), Some("try"));
            assert_eq!(told(&store.transcript(&record(name)).await.unwrap()), whole[..length], "{name}");
            let copy = store.session(name).await.unwrap().expect("a session of the fork");
            assert_eq!((copy.current_stage.as_str(), copy.chat_id.as_str()), ("act", "c"));
            assert_eq!(copy.stage_data.expect("data").get(), r#"{"k":1}"#);
        }
        // The original and its fork go their own ways.
        assert_eq!(store.append(&record("f2"), &[user("new")]).await.unwrap(), Seq(3));
        assert_eq!(told(&store.transcript(&record("s")).await.unwrap()), whole);
        let unnamed =
            store.fork(Fork { new_record: None, label: None, ..fork("f2", ForkPoint::End, "") }).await;
        assert!(unnamed.unwrap().record.as_str().starts_with("rec_"));
    }
}

async fn forked_compacted() {
    let (_folder, stores) = both();
    for store in stores {
        let r = record("r");
        store.append(&r, &[user("a"), said("b"), user("c")]).await.unwrap();
        store.note_compaction(&r, Seq(1)..=Seq(2), &said("ab")).await.unwrap();
        store.append(&r, &[user("d")]).await.unwrap();
        let early = store.fork(fork("r", ForkPoint::Until(Seq(3)), "early")).await.unwrap();
        assert_eq!((early.source_until, early.seed_messages), (Seq(3), 3));
        let expected = ["1 user a", "2 assistant b", "3 user c"];
        assert_eq!(told(&store.transcript(&record("early")).await.unwrap()), expected);
        let late = store.fork(fork("r", ForkPoint::BeforeUser(2), "late")).await.unwrap();
        assert_eq!((late.source_until, late.seed_messages), (Seq(4), 3));
        assert_eq!(told(&store.transcript(&record("late")).await.unwrap()), ["2 assistant ab", "3 user c"]);
    }
}

async fn not_forked() {
    let (_folder, stores) = both();
    for store in stores {
        store.append(&record("r"), &[said("hello")]).await.unwrap();
        let missing = store.fork(fork("nobody", ForkPoint::End, "x")).await.unwrap_err();
        assert!(matches!(&missing, ForkError::Store(error) if error.is_unknown()), "{missing}");
        assert_eq!(missing.to_string(), "record not found: nobody");
        let taken = store.fork(fork("r", ForkPoint::End, "r")).await.unwrap_err();
        assert!(matches!(taken, ForkError::Taken { .. }), "{taken}");
        let beyond = store.fork(fork("r", ForkPoint::Until(Seq(2)), "x")).await.unwrap_err();
        assert_eq!(beyond.to_string(), "untilSeq must be at most 1, which is the last of r");
        for until in [ForkPoint::BeforeLastUser, ForkPoint::BeforeUser(0)] {
            let none = store.fork(fork("r", until, "x")).await.unwrap_err();
            assert!(matches!(none, ForkError::NoUserMessage { users: 0, .. }), "{none}");
        }
        assert!(!store.has_record(&record("x")).await.unwrap(), "nothing was left behind");
    }
}

async fn interrupted() {
    let (_folder, stores) = both();
    for store in stores {
        let r = record("r");
        store.append(&r, &[user("go"), calling(&["x", "y", "z"]), answer("y")]).await.unwrap();
        // While the turn goes on, nothing is made up.
        let during = ["1 user go", "2 assistant", "3 tool y"];
        assert_eq!(told(&store.transcript(&r).await.unwrap()), during);
        let resumed =
            ["1 user go", "2 assistant", "3 tool y", "4 tool x interrupted", "5 tool z interrupted"];
        assert_eq!(told(&store.resume(&r).await.unwrap()), resumed);
        assert_eq!(told(&store.resume(&r).await.unwrap()), resumed, "once is enough");
        assert_eq!(told(&store.transcript(&r).await.unwrap()), resumed);

        // A turn that wrote on without them.
        let r = record("r2");
        store.append(&r, &[calling(&["x"]), user("never mind"), said("fine")]).await.unwrap();
        let closed = ["1 assistant", "1 tool x interrupted", "2 user never mind", "3 assistant fine"];
        assert_eq!(told(&store.transcript(&r).await.unwrap()), closed);
        assert_eq!(told(&store.resume(&r).await.unwrap()), closed);
        assert!(store.resume(&record("nobody")).await.unwrap().is_empty());
        assert!(!store.has_record(&record("nobody")).await.unwrap());
    }
}

async fn settings() {
    let (_folder, stores) = both();
    for store in stores {
        assert!(store.settings().await.unwrap().is_empty());
        let first = json!({"logLevel": "DEBUG", "gracePeriodSeconds": 2.5});
        store.keep_settings(first.as_object().unwrap()).await.unwrap();
        assert_eq!(json!(store.settings().await.unwrap()), first);
        let second = json!({"logLevel": "INFO", "toolTimeoutMs": 5});
        store.keep_settings(second.as_object().unwrap()).await.unwrap();
        assert_eq!(json!(store.settings().await.unwrap()), second);
    }
}

async fn session_limit() {
    let store = Store::memory(MemoryLimits { sessions: 10, ..MemoryLimits::STANDARD });
    for number in 0..10 {
        store.create_session(session(&format!("s{number}"), "c", "u")).await.unwrap();
    }
    assert_eq!(store.health().level, Level::Warn);
    let full = store.create_session(session("one more", "c", "u")).await.unwrap_err();
    assert_eq!(full.to_string(), "the store is full: it holds at most 10 sessions");
    store.create_session(session("s3", "c", "u")).await.expect("one that is there already is no more");
    assert!(store.session("one more").await.unwrap().is_none());
}

async fn byte_limit() {
    let limits = MemoryLimits { bytes: 10_000, ..MemoryLimits::STANDARD };
    let r = record("r");
    // The cost of a message without text is what is left out of the limit.
    let probe = |length: usize| async move {
        let store = Store::memory(limits);
        store.append(&record("r"), &[user(&"x".repeat(length))]).await.map(|_| store)
    };
    let mut fits = 0;
    for length in 0..10_000 {
        if probe(length).await.is_err() {
            break;
        }
        fits = length;
    }
    assert!(fits > 9_500, "{fits}");
    let store = probe(fits).await.unwrap();
    assert_eq!(store.health().level, Level::Warn);
    let full = store.append(&r, &[user("")]).await.unwrap_err();
    assert!(matches!(full, StoreError::Full { limit: 10_000, .. }), "{full}");
    assert_eq!(store.transcript(&r).await.unwrap().len(), 1);
    // A session counts, too, and one that is refused leaves nothing behind.
    let full = store.create_session(session("s", "c", "u")).await.unwrap_err();
    assert!(matches!(full, StoreError::Full { limit: 10_000, .. }), "{full}");
    assert!(store.session("s").await.unwrap().is_none());
}

async fn large_message() {
    let (_folder, stores) = both();
    let frame = r#"{"role":"user","parts":[{"text":""}]}"#.len();
    let largest = "x".repeat((32 << 20) - frame);
    for store in stores {
        store.append(&record("r"), &[user(&largest)]).await.expect("exactly as much as fits");
        let one_more = user(&format!("{largest}x"));
        let refused = store.append(&record("r"), &[user("small"), one_more]).await.unwrap_err();
        assert!(matches!(refused, StoreError::TooLarge { what: "message", .. }), "{refused}");
        assert_eq!(store.transcript(&record("r")).await.unwrap().len(), 1, "all or none");
    }
}

async fn large_transcript() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Store::open(&path).unwrap();
    store.append(&record("r"), &[user("a")]).await.unwrap();
    drop(store);
    // As if it had grown to that.
    let frame = r#"{"role":"user","parts":[{"text":""}]}"#.len();
    sql(&path, &format!("UPDATE records SET bytes = {}", (128 << 20) - 2 * frame - 2));
    let store = Store::open(&path).unwrap();
    let refused = store.append(&record("r"), &[user("b"), user("cd")]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Full { limit: 134_217_728, .. }), "{refused}");
    assert_eq!(store.append(&record("r"), &[user("b"), user("c")]).await.unwrap(), Seq(3), "all or none");
    store.append(&record("r"), &[user("")]).await.unwrap_err();
    assert_eq!(told(&store.transcript(&record("r")).await.unwrap()), ["1 user a", "2 user b", "3 user c"]);
    store.append(&record("other"), &[user("there is room elsewhere")]).await.unwrap();
}
