//! Receipts of a log, written once whoever dies in between.

use outrigger_abp::protocol::{EventKind, OrderId};
use outrigger_abp::receipt::{SignatureState, SpoolLimit, verify_chain};
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::*;
use crate::engine::sqlite::Sqlite;
use crate::engine::{Append, Engine};
use crate::runs::Actor;
use crate::runs::entry::{Note, Started, Told};

struct Desk {
    _folder: TempDir,
    engine: Arc<dyn Engine>,
    receipts: Arc<Folder>,
    key: SigningKey,
    run: RunId,
}

fn event(attempt: u32, number: u64, text: &str) -> Entry {
    let event = AgentEvent::now(EventKind::AssistantMessage { text: text.to_owned().into() });
    let mut written = Vec::new();
    event.write(&mut written);
    let event = RawValue::from_string(String::from_utf8(written).unwrap()).unwrap();
    Entry::Event(Told { attempt, number, event })
}

fn started(attempt: u32) -> Entry {
    Entry::Started(Started { attempt, backend: "b".into(), resumed: false })
}

impl Desk {
    /// A run of two attempts, with one and with two events.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine: Arc<dyn Engine> = Arc::new(Sqlite::open(&folder.path().join("runs.sqlite")).unwrap());
        let receipts = Folder::open(folder.path().join("receipts"), SpoolLimit::USUAL).unwrap();
        let key = SigningKey::create(&folder.path().join("key")).unwrap();
        let (receipts, run) = (Arc::new(receipts), RunId::parse("r").unwrap());
        let desk = Self { engine, receipts, key, run, _folder: folder };
        let entries = [
            started(1),
            event(1, 1, "first"),
            started(2),
            event(2, 1, "second"),
            Entry::Note(Note { text: "by the way".into() }),
            event(2, 2, "third"),
        ];
        let records = entries.map(|entry| Line::now(entry).write()).into();
        let append = Append { log: desk.run.log(), expected: Seq(0), records, head: None, work: Vec::new() };
        desk.engine.append_if(append).await.unwrap();
        desk
    }

    async fn seal(&self, attempt: u32) -> Result<Receipt, SealError> {
        let (teller, _telling) = Teller::new(self.run.clone(), attempt, Arc::clone(&self.engine));
        let sealing = Sealing {
            run: self.run.clone(),
            attempt,
            order: WorkOrder::new(OrderId::new("r"), "do it"),
            backend: BackendIdentity::named("b"),
            capabilities: Manifest::default(),
            ending: Ending::Final,
            error: None,
            outcome: Outcome::Complete,
            usage: Usage::default(),
            account: Map::new(),
        };
        let receipts = Receipts { folder: Arc::clone(&self.receipts), sign: Some(self.key.clone()) };
        seal(&teller, &receipts, sealing).await
    }

    fn events_of(&self, receipt: &Receipt) -> u64 {
        let check = verify(&self.receipts.path().join(&receipt.file)).unwrap();
        assert!(check.is_valid(), "{check:?}");
        assert!(
            matches!(&check.signature, SignatureState::Valid { public_key } if *public_key == self.key.public_key()),
            "{check:?}"
        );
        check.events
    }
}

#[tokio::test]
async fn an_attempt_has_a_receipt_of_its_own_events_and_its_own_name() {
    let desk = Desk::new().await;
    let (first, second) = (desk.seal(1).await.unwrap(), desk.seal(2).await.unwrap());
    assert_eq!((first.file.as_str(), second.file.as_str()), ("r.json", "r-2.json"));
    assert_eq!((desk.events_of(&first), desk.events_of(&second)), (1, 2));
    assert!(verify_chain(&desk.receipts).unwrap().is_whole());
}

#[tokio::test]
async fn a_receipt_that_is_there_already_is_the_receipt() {
    let desk = Desk::new().await;
    let first = desk.seal(1).await.unwrap();
    assert_eq!(desk.seal(1).await.unwrap(), first);
}

#[tokio::test]
async fn what_a_killed_daemon_left_of_a_record_is_thrown_away() {
    for left in
        ["{\"outrigger_trace\":1,\"run_id\":\"r\",\"begun_at\":\"2026-01-01T00:00:00Z\"}\nhalf", "", "junk"]
    {
        let desk = Desk::new().await;
        std::fs::write(desk.receipts.path().join("r.trace.part"), left).unwrap();
        let receipt = desk.seal(1).await.unwrap();
        assert_eq!((receipt.file.as_str(), desk.events_of(&receipt)), ("r.json", 1), "{left}");
        assert!(desk.receipts.left_over().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_record_that_somebody_sealed_as_something_else_does_not_stand_in_the_way() {
    let desk = Desk::new().await;
    let head = "{\"outrigger_trace\":1,\"run_id\":\"r\",\"begun_at\":\"2026-01-01T00:00:00Z\"}\n";
    std::fs::write(desk.receipts.path().join("r.trace.part"), head).unwrap();
    let sealed = outrigger_abp::conduct::recover(&desk.receipts, None).unwrap();
    assert!(sealed.len() == 1 && sealed[0].is_ok(), "{sealed:?}");
    let receipt = desk.seal(1).await.unwrap();
    assert_eq!((receipt.file.as_str(), desk.events_of(&receipt)), ("r-sealed-2.json", 1));
    assert_eq!(desk.seal(1).await.unwrap(), receipt);
}

#[tokio::test]
async fn who_was_asked_and_who_answered_is_in_the_account() {
    use crate::runs::{Answer, ApprovalId, Choice, DefaultAnswer};
    let desk = Desk::new().await;
    let asked = Approval {
        id: ApprovalId("a1".into()),
        attempt: 2,
        key: "7".into(),
        tool: "refund".into(),
        input: "[5]".into(),
        input_sha256: outrigger_policy::Digest::of(b"[5]"),
        reason: "money".into(),
        choices: vec![Choice::Approve, Choice::Deny],
        asked_at: Moment::now(),
        deadline: None,
        default: DefaultAnswer::Deny,
        given: None,
    };
    let answer = Answer { reason: Some("fine".into()), ..Answer::plain(Choice::Approve) };
    let answered = Answered { approval: asked.id.clone(), answer, by: Actor::new("dashboard") };
    let records = [Entry::Asked(asked), Entry::Answered(answered)].map(|entry| Line::now(entry).write());
    let (log, records) = (desk.run.log(), records.into());
    let append = Append { log, expected: Seq(6), records, head: None, work: Vec::new() };
    desk.engine.append_if(append).await.unwrap();
    let receipt = desk.seal(2).await.unwrap();
    let head = verify(&desk.receipts.path().join(receipt.file)).unwrap().receipt.unwrap();
    let account = head.outrigger().unwrap();
    assert_eq!(account["attempt"], 2);
    let approval = &account["approvals"][0];
    assert_eq!(
        (&approval["id"], &approval["call"], &approval["tool"]),
        (&json!("a1"), &json!("7"), &json!("refund"))
    );
    let given = &approval["answer"];
    assert_eq!(
        (&given["choice"], &given["by"], &given["reason"]),
        (&json!("approve"), &json!("dashboard"), &json!("fine"))
    );
}
