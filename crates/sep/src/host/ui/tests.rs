//! Panels and notices as extensions declare them and people see them.

use std::sync::Arc;
use std::time::Duration;

use outrigger_policy::Millis;
use serde_json::value::RawValue;

use super::*;
use crate::host::record::tests::limits;
use crate::manifest::PanelClaim;
use crate::protocol::{ExtensionId, Slot, TrustLevel};

fn ext(name: &str) -> ExtensionId {
    ExtensionId::new(name).unwrap()
}

fn notes() -> ExtensionId {
    ext("org.example.notes")
}

fn claims() -> Vec<PanelClaim> {
    vec![PanelClaim { id: "main".into(), title: "Notes".into(), slot: Slot::Primary }]
}

fn admit(panels: &Panels, id: &ExtensionId, name: &str) {
    panels.admit(&Owner {
        id,
        name,
        trust: TrustLevel::TrustedThirdParty,
        claims: &claims(),
        limits: &limits(),
        waking: Waking::OnAction,
    });
}

fn draft(id: &str) -> PanelDraft {
    PanelDraft {
        id: id.into(),
        title: "Statistics".into(),
        slot: Slot::Secondary,
        description: None,
        icon: None,
        order: None,
        actions: Some(actions()),
    }
}

fn action(id: &str, input: Option<Input>) -> Action {
    Action { id: id.into(), label: "Do it".into(), style: None, confirm: None, input }
}

fn input(kind: InputKind) -> Input {
    Input { kind, label: None, max_length: None, options: None }
}

fn actions() -> Vec<Action> {
    vec![
        action("refresh", None),
        action("say", Some(Input { max_length: Some(3), ..input(InputKind::Text) })),
        action(
            "pick",
            Some(Input { options: Some(vec!["a".into(), "b".into()]), ..input(InputKind::Select) }),
        ),
    ]
}

fn states(panels: &Panels) -> Vec<String> {
    let snapshot = panels.snapshot();
    snapshot.slots.iter().map(|(_, panel)| format!("{} {}", panel.panel_key.panel(), panel.state)).collect()
}

/// An extension that is ready, with the panel of its manifest and one of its own.
fn running() -> Arc<Panels> {
    let panels = Arc::new(Panels::new());
    admit(&panels, &notes(), "Notes");
    panels.activate(&notes());
    panels.register(&notes(), draft("stats")).unwrap();
    panels
}

#[test]
fn a_snapshot_has_every_slot_and_says_whose_each_panel_is() {
    let panels = running();
    let patch = PanelPatch {
        content: Some(vec![Node::Badge { text: "ok".into(), tone: Some(Tone::Success) }]),
        ..PanelPatch::default()
    };
    panels.update(&notes(), "stats", patch).unwrap();
    admit(&panels, &ext("org.example.alpha"), "Alpha");
    panels.fail(&ext("org.example.alpha"), "it crashed\n");
    insta::assert_json_snapshot!(*panels.snapshot());
}

#[test]
fn panels_are_sorted_by_order_then_extension_then_name() {
    let panels = Panels::new();
    for id in ["b.b", "a.a"] {
        admit(&panels, &ext(id), "X");
        panels.activate(&ext(id));
        for (panel, order) in [("z", Some(0)), ("y", None), ("x", Some(500)), ("w", Some(1000))] {
            if panel != "w" || id == "a.a" {
                let draft = PanelDraft { order, slot: Slot::Advanced, ..draft(panel) };
                panels.register(&ext(id), draft).ok();
            }
        }
    }
    let keys: Vec<String> =
        panels.snapshot().slots.advanced.iter().map(|panel| panel.panel_key.to_string()).collect();
    assert_eq!(
        keys,
        ["a.a/z", "b.b/z", "a.a/x", "a.a/y", "b.b/x", "b.b/y"],
        "the fifth panel of `a.a` is one too many"
    );
}

#[test]
fn panels_follow_the_life_of_their_extension() {
    let panels = Arc::new(Panels::new());
    assert_eq!(panels.register(&notes(), draft("stats")), Err(RegisterError::NoOwner));
    admit(&panels, &notes(), "Notes");
    assert_eq!(states(&panels), ["main dormant"]);
    panels.start(&notes());
    panels.register(&notes(), draft("stats")).unwrap();
    assert_eq!(states(&panels), ["main dormant", "stats unavailable"], "it was quicker than its host");
    panels.activate(&notes());
    assert_eq!(states(&panels), ["main active", "stats active"]);
    panels.fail(&notes(), "it crashed");
    assert_eq!(states(&panels), ["main unavailable", "stats unavailable"]);
    panels.resume(&notes());
    panels.update(&notes(), "stats", PanelPatch::default()).unwrap_err();
    assert_eq!(states(&panels), ["main unavailable", "stats unavailable"], "what is gone does not resume");
    panels.activate(&notes());
    assert_eq!(states(&panels), ["main active", "stats unavailable"], "until it is registered again");
    panels.register(&notes(), draft("stats")).unwrap();
    assert_eq!(states(&panels), ["main active", "stats active"]);
    panels.suspend(&notes(), "suspended");
    assert_eq!(states(&panels), ["main unavailable", "stats unavailable"]);
    panels.update(&notes(), "stats", PanelPatch::default()).unwrap();
    panels.resume(&notes());
    assert_eq!(states(&panels), ["main active", "stats active"], "the session went on");
    panels.sleep(&notes());
    assert_eq!(states(&panels), ["main dormant"]);
    panels.withdraw(&notes());
    assert_eq!(states(&panels), Vec::<String>::new());
}

#[test]
fn a_panel_that_a_dying_session_still_registered_does_not_stand_in_the_way_of_the_next() {
    let panels = running();
    panels.fail(&notes(), "it crashed");
    panels.register(&notes(), draft("stats")).unwrap();
    panels.start(&notes());
    panels.register(&notes(), draft("stats")).unwrap();
    panels.activate(&notes());
    assert_eq!(states(&panels), ["main active", "stats active"]);
}

#[test]
fn being_admitted_again_keeps_what_runs_and_follows_the_manifest() {
    let panels = running();
    admit(&panels, &notes(), "New name");
    assert_eq!(states(&panels), ["main active", "stats active"]);
    assert_eq!(panels.snapshot().slots.primary[0].extension_name, "New name");
    let claims = [PanelClaim { id: "other".into(), title: "Other".into(), slot: Slot::Advanced }];
    panels.admit(&Owner {
        id: &notes(),
        name: "Notes",
        trust: TrustLevel::FirstParty,
        claims: &claims,
        limits: &limits(),
        waking: Waking::Never,
    });
    assert_eq!(
        states(&panels),
        ["stats active", "other active"],
        "its old panel is no longer in the manifest"
    );
}

#[test]
fn what_a_crashed_session_left_goes_when_the_next_one_does_not_want_it() {
    let panels = running();
    panels.fail(&notes(), "it crashed");
    panels.activate(&notes());
    panels.fail(&notes(), "it crashed again");
    assert_eq!(states(&panels), ["main unavailable"]);
}

#[test]
fn a_panel_is_registered_once_a_session() {
    let panels = running();
    let conflict = Err(RegisterError::Conflict { id: "stats".into() });
    assert_eq!(panels.register(&notes(), draft("stats")), conflict);
    let main = PanelDraft { slot: Slot::Primary, ..draft("main") };
    assert_eq!(panels.register(&notes(), main.clone()).unwrap().to_string(), "org.example.notes/main");
    assert_eq!(panels.register(&notes(), main), Err(RegisterError::Conflict { id: "main".into() }));
}

#[test]
fn a_panel_of_the_manifest_keeps_its_slot_and_gets_back_its_title() {
    let panels = running();
    let flaw = Flaw {
        path: "/slot".into(),
        reason: "the manifest puts this panel into `tools.page.primary`".into(),
    };
    assert_eq!(panels.register(&notes(), draft("main")), Err(RegisterError::Invalid(vec![flaw])));
    let missing = Err(UpdateError::NotFound { id: "main".into() });
    assert_eq!(panels.unregister(&notes(), "main"), missing, "nothing was attached to it");
    panels.register(&notes(), PanelDraft { slot: Slot::Primary, ..draft("main") }).unwrap();
    assert_eq!(panels.snapshot().slots.primary[0].title, "Statistics");
    panels.unregister(&notes(), "main").unwrap();
    let main = &panels.snapshot().slots.primary[0];
    assert_eq!((main.title.as_str(), main.actions.len(), main.state), ("Notes", 0, PanelState::Active));
    panels.unregister(&notes(), "stats").unwrap();
    assert_eq!(panels.unregister(&notes(), "stats"), Err(UpdateError::NotFound { id: "stats".into() }));
}

#[test]
fn quotas_hold_at_the_limit_and_not_one_past_it() {
    let panels = running();
    panels.register(&notes(), draft("third")).unwrap();
    panels.register(&notes(), draft("fourth")).unwrap();
    let full = Err(RegisterError::Quota { quota: "panels", limit: 4 });
    assert_eq!(panels.register(&notes(), draft("fifth")), full);
    let many = |count: usize| Some((0..count).map(|n| action(&n.to_string(), None)).collect::<Vec<_>>());
    panels.unregister(&notes(), "fourth").unwrap();
    let nine = PanelDraft { actions: many(9), ..draft("fourth") };
    assert_eq!(panels.register(&notes(), nine), Err(RegisterError::Quota { quota: "actions", limit: 8 }));
    panels.register(&notes(), PanelDraft { actions: many(8), ..draft("fourth") }).unwrap();
    let patch = |count| PanelPatch { actions: many(count), ..PanelPatch::default() };
    assert_eq!(panels.update(&notes(), "fourth", patch(9)), Err(UpdateError::Quota { limit: 8 }));
    panels.update(&notes(), "fourth", patch(8)).unwrap();
}

#[test]
fn what_a_crashed_session_left_makes_room_for_the_next_one() {
    let panels = running();
    panels.register(&notes(), draft("third")).unwrap();
    panels.register(&notes(), draft("fourth")).unwrap();
    panels.fail(&notes(), "it crashed");
    panels.activate(&notes());
    for id in ["a", "b", "c"] {
        panels.register(&notes(), draft(id)).unwrap();
    }
    assert!(matches!(panels.register(&notes(), draft("d")), Err(RegisterError::Quota { .. })));
    assert_eq!(panels.count(&notes()), 4);
}

#[test]
fn a_declaration_is_right_at_every_limit_and_wrong_one_past_it() {
    let reasons = |draft: &PanelDraft| match draft.check() {
        Ok(()) => Vec::new(),
        Err(flaws) => flaws.into_iter().map(|flaw| flaw.path).collect::<Vec<_>>(),
    };
    let full = |extra: usize| PanelDraft {
        id: "x".repeat(128 + extra),
        title: "é".repeat(80 + extra),
        slot: Slot::Primary,
        description: Some("x\n".repeat(128) + &"x".repeat(extra)),
        icon: Some(if extra == 0 { "puzzle".into() } else { "skull".into() }),
        order: Some(1000 + extra as u32),
        actions: Some(vec![Action {
            id: "x".repeat(64 + extra),
            label: "x".repeat(40 + extra),
            style: Some(ActionStyle::Danger),
            confirm: Some("x".repeat(160 + extra)),
            input: Some(Input {
                kind: InputKind::Select,
                label: Some("x".repeat(40 + extra)),
                max_length: Some(2048 + extra as u32),
                options: Some(vec!["x".repeat(80 + extra); 32]),
            }),
        }]),
    };
    assert_eq!(reasons(&full(0)), Vec::<String>::new());
    let wrong = reasons(&full(1));
    assert_eq!(
        wrong[..9],
        [
            "/id",
            "/title",
            "/description",
            "/icon",
            "/order",
            "/actions/0/id",
            "/actions/0/label",
            "/actions/0/confirm",
            "/actions/0/input/label"
        ]
    );
    assert_eq!(wrong.len(), MAX_FLAWS, "more are not listed");
    let with = |actions| PanelDraft { actions: Some(actions), ..draft("p") };
    assert_eq!(reasons(&with(vec![action("a", None), action("a", None)])), ["/actions/1/id"]);
    assert_eq!(reasons(&with((0..17).map(|n| action(&n.to_string(), None)).collect())), ["/actions"]);
    assert_eq!(
        reasons(&with(vec![action("a", Some(input(InputKind::Select)))])),
        ["/actions/0/input/options"]
    );
    let texts = Input { options: Some(vec!["x".into()]), ..input(InputKind::Text) };
    assert_eq!(reasons(&with(vec![action("a", Some(texts))])), ["/actions/0/input/options"]);
    let many = Input { options: Some(vec!["x".into(); 33]), ..input(InputKind::Select) };
    assert_eq!(reasons(&with(vec![action("a", Some(many))])), ["/actions/0/input/options"]);
    assert_eq!(reasons(&PanelDraft { title: "a\u{202E}b".into(), ..draft("p") }), ["/title"]);
    for wrong in ["", "A", "a b", "a..b", "../x", "-a"] {
        assert_eq!(reasons(&draft(wrong)), ["/id"], "{wrong}");
    }
}

#[test]
fn an_action_needs_to_exist_and_to_get_what_it_asks_for() {
    let panels = running();
    let key = PanelKey::parse("org.example.notes/stats").unwrap();
    let begin = |action: &str, input: Option<&str>| match panels.begin(&key, action, input) {
        Ok(_) => "begun".to_owned(),
        Err(error) => error.to_string(),
    };
    let why = |why: &str| format!("the input is not what the action asks for: {why}");
    assert_eq!(begin("refresh", None), "begun");
    assert_eq!(begin("refresh", Some("")), why("it takes none"));
    assert_eq!(begin("say", None), why("it needs one"));
    assert_eq!(begin("say", Some("ééé")), "begun");
    assert_eq!(begin("say", Some("four")), why("it is longer than 3 characters"));
    assert_eq!(begin("say", Some("a\0")), why("it contains NUL"));
    assert_eq!(begin("pick", Some("a")), "begun");
    assert_eq!(begin("pick", Some("c")), why("it is none of the options"));
    assert_eq!(begin("nothing\n", None), "the panel has no action `nothing\u{FFFD}`");
    let nowhere = PanelKey::new(&notes(), "nowhere");
    assert_eq!(
        panels.begin(&nowhere, "x", None).unwrap_err().to_string(),
        "there is no panel `org.example.notes/nowhere`"
    );
}

#[test]
fn a_panel_is_busy_while_its_action_runs_and_free_when_it_ends_however_it_ends() {
    let panels = running();
    let key = PanelKey::new(&notes(), "stats");
    let busy = panels.begin(&key, "refresh", None).unwrap();
    assert_eq!(states(&panels), ["main active", "stats busy"]);
    assert_eq!(panels.begin(&key, "refresh", None).unwrap_err(), InvokeError::Busy);
    drop(busy);
    assert_eq!(states(&panels), ["main active", "stats active"]);

    let stale = panels.begin(&key, "refresh", None).unwrap();
    panels.fail(&notes(), "it crashed");
    let unavailable = InvokeError::Unavailable { reason: "it crashed".into() };
    assert_eq!(panels.begin(&key, "refresh", None).unwrap_err(), unavailable);
    panels.activate(&notes());
    panels.register(&notes(), draft("stats")).unwrap();
    let fresh = panels.begin(&key, "refresh", None).unwrap();
    assert_ne!(stale.invocation(), fresh.invocation());
    drop(stale);
    assert_eq!(states(&panels), ["main active", "stats busy"], "an old action does not end a new one");
    panels.withdraw(&notes());
    drop(fresh);
    assert_eq!(states(&panels), Vec::<String>::new());
}

#[test]
fn a_dormant_panel_says_whether_using_it_starts_its_extension() {
    let panels = Arc::new(Panels::new());
    admit(&panels, &notes(), "Notes");
    let key = PanelKey::new(&notes(), "main");
    let dormant = InvokeError::Dormant { waking: Waking::OnAction };
    assert_eq!(panels.begin(&key, "refresh", None).unwrap_err(), dormant);
    panels.activate(&notes());
    panels.register(&notes(), PanelDraft { slot: Slot::Primary, ..draft("main") }).unwrap();
    panels.sleep(&notes());
    assert_eq!(
        panels.snapshot().slots.primary[0].actions.len(),
        3,
        "what it can do is remembered while it sleeps"
    );
    assert_eq!(panels.begin(&key, "refresh", None).unwrap_err(), dormant);
}

#[test]
fn only_what_changes_makes_a_new_revision() {
    let panels = running();
    let mut watch = panels.watch();
    let before = *watch.borrow_and_update();
    assert_eq!(panels.snapshot().revision, before);
    assert!(Arc::ptr_eq(&panels.snapshot(), &panels.snapshot()));
    panels.register(&notes(), draft("stats")).unwrap_err();
    panels.update(&notes(), "nothing", PanelPatch::default()).unwrap_err();
    assert!(!watch.has_changed().unwrap());
    panels.unregister(&notes(), "stats").unwrap();
    assert!(watch.has_changed().unwrap());
    assert_eq!(*watch.borrow_and_update(), before + 1);
}

#[test]
fn what_an_action_returns_is_checked_before_anybody_sees_it() {
    let read = |json: &str| {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        ActionReport::read(&raw).map_err(|error| error.to_string())
    };
    let report = read(
        r#"{"outcome":"ok","toast":{"message":"done","level":"success"},"panel":{"title":"T"},"new":1}"#,
    )
    .unwrap();
    assert_eq!(report.toast, Some(ToastDraft::new("done".into(), ToastLevel::Success)));
    assert_eq!(report.panel.unwrap().title.as_deref(), Some("T"));
    assert_eq!(
        read(r#"{"outcome":"ok","toast":{"message":"a\nb","level":"info"}}"#).unwrap_err(),
        "the result has a flaw at `/toast/message`: has the character U+000A, which cannot be shown"
    );
    assert_eq!(
        read(r#"{"outcome":"ok","panel":{"content":[{"type":"progress","value":2,"max":1}]}}"#).unwrap_err(),
        "the result has a flaw at `/panel/content/0/value`: more than `max`"
    );
    for wrong in ["{}", "null", r#"{"outcome":"great"}"#, r#"{"outcome":"ok","panel":{"html":"x"}}"#] {
        assert!(read(wrong).unwrap_err().starts_with("the result does not have its form: "), "{wrong}");
    }
    let sized = |length: usize| format!("{{\"outcome\":\"ok\"{}}}", " ".repeat(length - 16));
    assert!(read(&sized(MAX_RESULT_BYTES)).is_ok());
    assert!(read(&sized(MAX_RESULT_BYTES + 1)).unwrap_err().starts_with("the result has 262145 bytes"));
}

#[test]
fn terminals_get_plain_text() {
    let panels = running();
    let content = vec![
        Node::Text { text: "two\nlines".into(), tone: None },
        Node::Kv {
            items: vec![
                Row { key: "sent".into(), value: "3".into() },
                Row { key: "received".into(), value: "14".into() },
            ],
        },
        Node::Separator {},
        Node::List { items: vec![Node::Badge { text: "ok".into(), tone: Some(Tone::Success) }] },
        Node::Progress { value: 1, max: 3, label: Some("of all".into()) },
    ];
    let description = Some("What was\nsent.".to_owned());
    let patch = PanelPatch { description, content: Some(content), ..PanelPatch::default() };
    panels.update(&notes(), "stats", patch).unwrap();
    admit(&panels, &ext("org.example.alpha"), "Al\u{1b}[2Jpha\u{202E}");
    panels.fail(&ext("org.example.alpha"), "it crashed");
    insta::assert_snapshot!(render_text(&panels.snapshot()));
    assert_eq!(render_text(&Panels::new().snapshot()), "no panels\n");
}

fn toast(message: &str, key: Option<&str>) -> ToastDraft {
    ToastDraft { key: key.map(Into::into), ..ToastDraft::new(message.into(), ToastLevel::Info) }
}

#[test]
fn a_notice_says_whose_it_is_and_takes_the_place_of_one_with_its_key() {
    let notices = Notices::new();
    let show = |now, ext: &ExtensionId, message: &str, key| {
        let Shown { shown, reason } =
            notices.show(Millis(now), ext, "No\u{202E}tes", toast(message, key)).unwrap();
        (shown, reason)
    };
    let mut watch = notices.watch();
    assert_eq!(show(0, &notes(), "one", Some("k")), (true, None));
    assert!(watch.has_changed().unwrap() && *watch.borrow_and_update() == 1);
    assert_eq!(show(10, &ext("a.b"), "other", Some("k")), (true, None), "a key is the extension's own");
    assert_eq!(show(4999, &notes(), "two", Some("k")), (true, Some(ToastFate::Coalesced)));
    assert_eq!(show(9999, &notes(), "three", Some("k")), (true, None), "that one was no longer to be seen");
    assert_eq!(show(9999, &notes(), "four", None), (true, None));
    notices.set_disturbance(Disturbance::Unwanted);
    assert_eq!(show(9999, &notes(), "five", None), (false, Some(ToastFate::SuppressedDnd)));
    let texts: Vec<String> = notices.after(0).into_iter().map(|notice| notice.text).collect();
    let name = "No\u{FFFD}tes";
    assert_eq!(texts, ["other", "two", "three", "four", "five"].map(|text| format!("{name}: {text}")));
    assert_eq!(notices.after(5).len(), 1);
    insta::assert_json_snapshot!(notices.after(5), @r#"
    [
      {
        "seq": 6,
        "timeMs": 9999,
        "extensionId": "org.example.notes",
        "level": "info",
        "text": "No�tes: five",
        "durationMs": 5000,
        "fate": "suppressed_dnd"
      }
    ]
    "#);
}

#[test]
fn two_hundred_notices_are_kept_and_the_oldest_goes_first() {
    let notices = Notices::new();
    for n in 0..=MAX_NOTICES {
        notices.show(Millis(0), &notes(), "N", toast(&n.to_string(), None)).unwrap();
    }
    let kept = notices.after(0);
    assert_eq!((kept.len(), kept[0].text.as_str()), (200, "N: 1"));
}

#[test]
fn a_notice_is_right_at_its_limits_and_wrong_one_past_them() {
    let right = ToastDraft {
        message: "é".repeat(280),
        level: ToastLevel::Error,
        duration: Duration::from_millis(15_000),
        key: Some("k".repeat(64)),
    };
    assert_eq!(right.check(), Ok(()));
    let paths =
        |draft: ToastDraft| draft.check().unwrap_err().into_iter().map(|flaw| flaw.path).collect::<Vec<_>>();
    let wrong = ToastDraft {
        message: "é".repeat(281),
        level: ToastLevel::Error,
        duration: Duration::from_millis(15_001),
        key: Some("k".repeat(65)),
    };
    assert_eq!(paths(wrong), ["/message", "/durationMs", "/key"]);
    assert_eq!(paths(toast("", Some(""))), ["/message", "/key"]);
    assert_eq!(
        paths(ToastDraft { duration: Duration::from_millis(999), ..toast("x", None) }),
        ["/durationMs"]
    );
    assert_eq!(paths(toast("two\nlines", None)), ["/message"]);
}

#[test]
fn the_name_of_a_panel_is_read_as_it_is_written() {
    let key = PanelKey::parse("org.example.notes/main.x-1").unwrap();
    assert_eq!(key.to_string(), "org.example.notes/main.x-1");
    for wrong in ["", "/", "a.b", "a.b/", "/x", "ab/x", "a.b/x/y", "a.b/X", "a.b/é"] {
        assert!(PanelKey::parse(wrong).is_err(), "{wrong}");
    }
}
