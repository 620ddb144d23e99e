//! What holds for the registry whatever extensions and hosts do to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::host::record::tests::limits;
use crate::manifest::PanelClaim;
use crate::protocol::{ExtensionId, Slot, TrustLevel};

#[derive(Clone, Debug)]
enum Step {
    Admit(usize),
    Withdraw(usize),
    Start(usize),
    Activate(usize),
    Sleep(usize),
    Fail(usize, String),
    Suspend(usize),
    Resume(usize),
    Register(usize, usize, String, u8),
    Update(usize, usize, String),
    Unregister(usize, usize),
    Begin(usize, usize),
    End,
}

const EXTENSIONS: [&str; 3] = ["a.a", "b.b", "c.c"];
const PANELS: [&str; 7] = ["main", "p1", "p2", "p3", "p4", "p5", "Not An Id"];

fn step() -> impl Strategy<Value = Step> {
    let (e, p) = (0..EXTENSIONS.len(), 0..PANELS.len());
    prop_oneof![
        1 => e.clone().prop_map(Step::Admit),
        1 => e.clone().prop_map(Step::Withdraw),
        1 => e.clone().prop_map(Step::Start),
        2 => e.clone().prop_map(Step::Activate),
        1 => e.clone().prop_map(Step::Sleep),
        1 => (e.clone(), any::<String>()).prop_map(|(e, text)| Step::Fail(e, text)),
        1 => e.clone().prop_map(Step::Suspend),
        1 => e.clone().prop_map(Step::Resume),
        6 => (e.clone(), p.clone(), any::<String>(), any::<u8>()).prop_map(|(e, p, text, n)| Step::Register(e, p, text, n)),
        2 => (e.clone(), p.clone(), any::<String>()).prop_map(|(e, p, text)| Step::Update(e, p, text)),
        1 => (e.clone(), p.clone()).prop_map(|(e, p)| Step::Unregister(e, p)),
        3 => (e, p).prop_map(|(e, p)| Step::Begin(e, p)),
        1 => Just(Step::End),
    ]
}

fn ext(index: usize) -> ExtensionId {
    ExtensionId::new(EXTENSIONS[index]).unwrap()
}

fn admit(panels: &Panels, index: usize) {
    let claims = [PanelClaim { id: "main".into(), title: "Main".into(), slot: Slot::Primary }];
    panels.admit(&Owner {
        id: &ext(index),
        name: "Name\u{202E}",
        trust: TrustLevel::UntrustedLocal,
        claims: &claims,
        limits: &limits(),
        waking: Waking::Never,
    });
}

fn draft(panel: usize, text: &str, n: u8) -> PanelDraft {
    let action = Action { id: "go".into(), label: "Go".into(), style: None, confirm: None, input: None };
    PanelDraft {
        id: PANELS[panel].into(),
        title: if n.is_multiple_of(3) { text.to_owned() } else { "Title".into() },
        slot: Slot::ALL[usize::from(n) % 3],
        description: Some(text.chars().take(300).collect()).filter(|_| n.is_multiple_of(5)),
        icon: None,
        order: Some(u32::from(n)),
        actions: Some(vec![action]),
    }
}

/// What is true of every snapshot.
fn check(snapshot: &UiSnapshot) -> Result<(), TestCaseError> {
    let mut keys = BTreeSet::new();
    for slot in Slot::ALL {
        let panels = snapshot.slots.of(*slot);
        prop_assert!(panels.is_sorted_by_key(|panel| (
            panel.order,
            panel.extension_id.clone(),
            panel.panel_key.clone()
        )));
        for panel in panels {
            prop_assert!(keys.insert(panel.panel_key.clone()), "{} is there twice", panel.panel_key);
            prop_assert_eq!(&panel.extension_name, "Name\u{FFFD}");
            prop_assert!(!panel.title.is_empty() && !panel.title.chars().any(is_hidden));
            prop_assert!(panel.reason.iter().all(|reason| !reason.chars().any(is_hidden)));
            let explained = panel.reason.is_some();
            prop_assert!(!explained || panel.state == PanelState::Unavailable);
            prop_assert!(panel.state != PanelState::Dormant || panel.panel_key.panel() == "main");
        }
    }
    for index in 0..EXTENSIONS.len() {
        let own = keys.iter().filter(|key| *key.extension() == ext(index)).count();
        prop_assert!(own <= limits().panels);
    }
    let json = serde_json::to_string(snapshot);
    prop_assert!(json.is_ok());
    let shown = render_text(snapshot);
    prop_assert!(!shown.chars().any(|c| is_hidden(c) && c != '\n'));
    Ok(())
}

proptest! {
    #[test]
    fn whatever_happens_every_panel_has_an_owner_a_place_and_a_state(steps in prop::collection::vec(step(), 1..60)) {
        let panels = Arc::new(Panels::new());
        let mut running = Vec::new();
        let mut revision = 0;
        for step in steps {
            match step {
                Step::Admit(e) => admit(&panels, e),
                Step::Withdraw(e) => {
                    panels.withdraw(&ext(e));
                    prop_assert_eq!(panels.count(&ext(e)), 0);
                }
                Step::Start(e) => panels.start(&ext(e)),
                Step::Activate(e) => panels.activate(&ext(e)),
                Step::Sleep(e) => {
                    panels.sleep(&ext(e));
                    prop_assert!(panels.count(&ext(e)) <= 1);
                }
                Step::Fail(e, text) => {
                    let before = panels.count(&ext(e));
                    panels.fail(&ext(e), &text);
                    prop_assert!(panels.count(&ext(e)) <= before);
                }
                Step::Suspend(e) => panels.suspend(&ext(e), "paused"),
                Step::Resume(e) => panels.resume(&ext(e)),
                Step::Register(e, p, text, n) => {
                    if let Ok(key) = panels.register(&ext(e), draft(p, &text, n)) {
                        prop_assert_eq!(PanelKey::parse(&key.to_string()).unwrap(), key);
                    }
                }
                Step::Update(e, p, text) => {
                    let content = Some(vec![Node::Text { text: text.clone(), tone: None }]);
                    let patch = PanelPatch { title: Some(text), content, ..PanelPatch::default() };
                    let _ = panels.update(&ext(e), PANELS[p], patch);
                }
                Step::Unregister(e, p) => {
                    let _ = panels.unregister(&ext(e), PANELS[p]);
                }
                Step::Begin(e, p) => running.extend(panels.begin(&PanelKey::new(&ext(e), PANELS[p]), "go", None)),
                Step::End => {
                    running.pop();
                }
            }
            let snapshot = panels.snapshot();
            prop_assert!(snapshot.revision >= revision);
            prop_assert_eq!(*panels.watch().borrow(), snapshot.revision);
            if snapshot.revision == revision {
                prop_assert!(Arc::ptr_eq(&snapshot, &panels.snapshot()));
            }
            revision = snapshot.revision;
            check(&snapshot)?;
        }
        drop(running);
        prop_assert!(panels.snapshot().slots.iter().all(|(_, panel)| panel.state != PanelState::Busy));
    }

    #[test]
    fn any_text_can_be_cleaned(text in any::<String>(), most in 0usize..50) {
        let shown = clean(&text, most);
        prop_assert!(shown.chars().count() <= most);
        prop_assert!(!shown.chars().any(is_hidden));
    }

    #[test]
    fn any_json_is_a_report_or_a_reason(text in "\\PC{0,80}|[\\[\\]{}:,\"a-z0-9]{0,80}") {
        if let Ok(raw) = serde_json::value::RawValue::from_string(text) {
            let _ = ActionReport::read(&raw);
        }
    }
}
