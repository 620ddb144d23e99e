//! What is remembered, what is forgotten, and who may have what after a restart.

use std::os::unix::fs::PermissionsExt;

use super::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const NOW_MS: u64 = 1_700_000_000_000;

fn id(text: &str) -> ExtensionId {
    ExtensionId::new(text).expect("a good id")
}

fn clocks() -> Clocks {
    Clocks { now: Moment::after_origin(Duration::from_secs(100)), wall_ms: NOW_MS }
}

fn set(permissions: &[Permission]) -> BTreeSet<Permission> {
    permissions.iter().copied().collect()
}

fn asking<'a>(version: &'a str, declared: &'a [Permission]) -> Asking<'a> {
    Asking { version, declared, trust: TrustLevel::TrustedThirdParty }
}

use Permission::{ContactsRead, EventsSubscribe, MessagesRead, ToolsRegister};

#[test]
fn somebody_must_agree_before_anything_is_given() {
    let (mut ledger, a) = (Ledger::default(), id("a.b"));
    let asks = asking("1.0.0", &[MessagesRead, ToolsRegister]);
    assert_eq!(ledger.agreement(&a, asks), Agreement::Needed(set(&[MessagesRead, ToolsRegister])));
    assert_eq!(ledger.agreement(&a, asking("1.0.0", &[])), Agreement::Needed(set(&[])));
    ledger.consent(&a, asks, &[ToolsRegister, ContactsRead]);
    // A subset is enough, and what was not asked for is not given.
    assert_eq!(ledger.agreement(&a, asks), Agreement::Given(set(&[ToolsRegister])));
}

#[test]
fn what_ships_with_the_host_needs_no_consent_but_can_lose_a_permission() {
    let (mut ledger, a) = (Ledger::default(), id("a.b"));
    let asks = Asking { trust: TrustLevel::FirstParty, ..asking("1.0.0", &[MessagesRead, ToolsRegister]) };
    assert_eq!(ledger.agreement(&a, asks), Agreement::Given(set(&[MessagesRead, ToolsRegister])));
    ledger.revoke(&a, MessagesRead);
    assert_eq!(ledger.agreement(&a, asks), Agreement::Given(set(&[ToolsRegister])));
    ledger.grant(&a, MessagesRead);
    assert_eq!(ledger.agreement(&a, asks), Agreement::Given(set(&[MessagesRead, ToolsRegister])));
}

#[test]
fn a_new_version_that_wants_more_takes_another_consent() {
    let (mut ledger, a) = (Ledger::default(), id("a.b"));
    ledger.consent(&a, asking("1.0.0", &[ToolsRegister]), &[ToolsRegister]);
    let more = asking("1.1.0", &[ToolsRegister, MessagesRead]);
    assert!(!ledger.found(&a, more));
    assert_eq!(ledger.agreement(&a, more), Agreement::Needed(set(&[MessagesRead])));
    ledger.revoke(&a, MessagesRead);
    ledger.consent(&a, more, &[ToolsRegister, MessagesRead]);
    assert_eq!(ledger.agreement(&a, more), Agreement::Given(set(&[ToolsRegister, MessagesRead])));
}

#[test]
fn a_permission_that_a_version_dropped_must_be_asked_for_again() {
    let (mut ledger, a) = (Ledger::default(), id("a.b"));
    let both = [ToolsRegister, EventsSubscribe];
    ledger.consent(&a, asking("1.0.0", &both), &both);
    let fewer = asking("2.0.0", &[ToolsRegister]);
    assert_eq!(ledger.agreement(&a, fewer), Agreement::Given(set(&[ToolsRegister])));
    assert!(ledger.found(&a, fewer));
    assert!(!ledger.found(&a, fewer), "nothing new the second time");
    assert_eq!(ledger.entry(&a).expect("known").granted, set(&[ToolsRegister]));
    assert_eq!(ledger.agreement(&a, asking("3.0.0", &both)), Agreement::Needed(set(&[EventsSubscribe])));
}

#[test]
fn crashes_keep_their_distance_over_a_restart() {
    let (mut ledger, a) = (Ledger::default(), id("a.b"));
    let crash = |s| Moment::after_origin(Duration::from_secs(s));
    ledger.note(&a, Some(DisabledReason::CrashLoop), [crash(40), crash(95)], clocks());
    assert_eq!(ledger.entry(&a).expect("noted").crashes_ms, [NOW_MS - 60_000, NOW_MS - 5_000]);
    // The new host began ten seconds ago, a minute later on the wall.
    let later = Clocks { now: Moment::after_origin(Duration::from_secs(10)), wall_ms: NOW_MS + 60_000 };
    let (disabled, crashes) = ledger.recall(&a, later);
    assert_eq!(disabled, Some(DisabledReason::CrashLoop));
    let ago: Vec<u64> = crashes.iter().map(|at| later.now.since(*at).as_secs()).collect();
    assert_eq!(ago, [120, 65]);
}

#[test]
fn crashes_of_the_future_and_of_the_day_before_yesterday_are_forgotten() {
    let kept = recent(vec![NOW_MS + 1, NOW_MS, 5, NOW_MS - DAY_MS, NOW_MS - DAY_MS - 1], NOW_MS);
    assert_eq!(kept, [NOW_MS - DAY_MS, NOW_MS]);
    let many: Vec<u64> = (0..30).map(|n| NOW_MS - n).collect();
    assert_eq!(recent(many, NOW_MS).len(), MOST_CRASHES);
}

#[test]
fn what_is_saved_is_read_again_and_is_nobody_elses_business() {
    let folder = tempfile::tempdir().expect("a folder");
    let (state, mut ledger) = StateFile::open(folder.path(), NOW_MS).expect("a fresh folder");
    ledger.consent(&id("a.b"), asking("1.0.0", &[ToolsRegister]), &[ToolsRegister]);
    ledger.revoke(&id("a.b"), MessagesRead);
    ledger.note(&id("c.d"), Some(DisabledReason::Operator), [], clocks());
    state.save(&ledger).expect("saved");
    state.save(&ledger).expect("saved over itself");
    let mode = std::fs::metadata(state.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    insta::assert_snapshot!(std::fs::read_to_string(state.path()).expect("text"), @r#"
    {
      "version": 1,
      "extensions": {
        "a.b": {
          "consent": {
            "version": "1.0.0",
            "asked": [
              "tools.register"
            ]
          },
          "granted": [
            "tools.register"
          ],
          "revoked": [
            "messages.read"
          ]
        },
        "c.d": {
          "disabled": "operator"
        }
      }
    }
    "#);
    drop(state);
    let (_state, again) = StateFile::open(folder.path(), NOW_MS).expect("opened again");
    assert_eq!(again, ledger);
}

#[test]
fn an_unreadable_ledger_is_moved_aside_and_nobody_has_agreed_to_anything() {
    let unreadable = [
        "",
        "{",
        "[]",
        r#"{"version":0,"extensions":{}}"#,
        r#"{"version":1,"extensions":{"../x":{}}}"#,
        r#"{"version":1,"extensions":{"a.b":{"granted":["root"]}}}"#,
        r#"{"version":1,"extensions":{"a.b":{"unknown":1}}}"#,
    ];
    for text in unreadable {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("state.json"), text).expect("written");
        let (state, ledger) = StateFile::open(folder.path(), NOW_MS).expect(text);
        let aside = ledger.moved_aside().expect(text);
        assert_eq!(std::fs::read_to_string(aside).expect("kept"), text);
        assert!(!state.path().exists());
        let asks = asking("1.0.0", &[ToolsRegister]);
        assert_eq!(ledger.agreement(&id("a.b"), asks), Agreement::Needed(set(&[ToolsRegister])));
    }
}

#[test]
fn a_link_in_place_of_the_ledger_is_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, r#"{"version":1,"extensions":{}}"#).expect("written");
    std::os::unix::fs::symlink(&elsewhere, folder.path().join("state.json")).expect("linked");
    let (_state, ledger) = StateFile::open(folder.path(), NOW_MS).expect("opened");
    assert!(ledger.moved_aside().is_some());
    assert!(elsewhere.exists());
}

#[test]
fn a_ledger_of_a_later_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    std::fs::write(&path, r#"{"version":2,"pages":[]}"#).expect("written");
    let error = StateFile::open(folder.path(), NOW_MS).expect_err("too new");
    assert!(matches!(error, LedgerError::Newer { version: 2, .. }), "{error}");
    assert!(path.exists());
}

#[test]
fn two_hosts_do_not_share_a_state_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, _) = StateFile::open(folder.path(), NOW_MS).expect("the first");
    let error = StateFile::open(folder.path(), NOW_MS).expect_err("the second");
    let pid = std::process::id();
    assert!(error.to_string().contains(&format!("belongs to another host (process {pid})")), "{error}");
    drop(first);
    StateFile::open(folder.path(), NOW_MS).expect("the first one has left");
}
