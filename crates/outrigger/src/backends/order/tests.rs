//! Agents as runs, without a child: what is refused, what is asked, what an end means, what is passed on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outrigger_abp::conduct::{self, Audience, ConductError, Job};
use outrigger_abp::govern::approvals::{Waits, input_hash};
use outrigger_abp::govern::{self, ApprovalRequest, Approver, Ledger, default_profile};
use outrigger_abp::host::{Command, RunControl};
use outrigger_abp::protocol::{
    AgentEvent, Ask, AskDecision, Capability, ErrorCode, EventKind, Hello, Manifest, Outcome, PolicyProfile,
    RunId as OrderRun, SupportLevel, Timestamp, Usage, WorkspaceMode,
};
use outrigger_abp::receipt::{Ending, Folder, Recorder, SignatureState, SigningKey, SpoolLimit, verify};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::attend::{Attendant, GOING_DOWN, Leaving};
use super::ending::{self, Retry};
use super::job::{self, Made, Window};
use super::memory::Memory;
use super::onlooker::{self, News, Onlooker, Seen};
use super::{House, left_behind, look};
use crate::config::{Agent, Backend, Command as Program};
use crate::engine::sqlite::Sqlite;
use crate::runs::backend::{Again, Telling};
use crate::runs::entry::{Accepted, Entry, Line};
use crate::runs::request::ApprovalTerms;
use crate::runs::state::{Moment, Spent};
use crate::runs::{
    Actor, Answer, Approval, ApprovalId, Choice, Concluded, Control, DefaultAnswer, Given, NewRun, Phase,
    Receipts, RunId, RunState, Teller,
};

fn run() -> RunId {
    RunId::parse("r1").unwrap()
}

fn request(value: Value) -> NewRun {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_cannot_be_done_is_said_when_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (root, gone) = (folder.path().to_str().unwrap(), folder.path().join("gone"));
    let (file, gone) = (file.to_str().unwrap(), gone.to_str().unwrap());
    let staged = json!({ "root": root, "mode": "staged" });
    let cases = [
        (json!({ "task": "x" }), ""),
        (json!({ "task": "x", "workspace": staged }), ""),
        (json!({ "task": "x", "workspace": { "root": root, "mode": "pass_through" } }), ""),
        (
            json!({ "script": "1" }),
            "script: this backend takes a `task`; a `script` is for the backend `mustard`",
        ),
        (json!({ "task": " \n" }), "task: there is no task: say what is to be done"),
        (
            json!({ "task": "x", "workspace": {} }),
            "workspace.root: `.` is not an absolute path; say which folder",
        ),
        (
            json!({ "task": "x", "workspace": { "root": "src" } }),
            "workspace.root: `src` is not an absolute path",
        ),
        (json!({ "task": "x", "workspace": { "root": gone } }), "workspace.root: the folder "),
        (json!({ "task": "x", "workspace": { "root": file } }), "workspace.root: "),
        (
            json!({ "task": "x", "workspace": { "root": root, "mode": "copied" } }),
            "workspace.mode: `copied` is no mode of a workspace; it may be `staged` or `pass_through`",
        ),
        (json!({ "task": "x", "config": { "max_budget_usd": 0 } }), ""),
        (
            json!({ "task": "x", "config": { "max_budget_usd": -0.5 } }),
            "config.max_budget_usd: -0.5 US dollars is no budget; it is a number from 0 up",
        ),
    ];
    for (value, expected) in cases {
        let said = match job::check(&request(value.clone())) {
            Ok(()) => String::new(),
            Err(error) => format!("{}: {}", error.field, error.message),
        };
        assert!(said.starts_with(expected) && said.is_empty() == expected.is_empty(), "{value}: {said}");
    }
}

fn house(folder: &Path) -> House {
    House {
        here: folder.to_owned(),
        stages: folder.join("stages"),
        scratch: folder.join("scratch"),
        policy: None,
    }
}

fn receipts(folder: &Path) -> Arc<Folder> {
    Arc::new(Folder::open(folder.join("receipts"), SpoolLimit::USUAL).unwrap())
}

fn kept(folder: &Path) -> Receipts {
    Receipts { folder: receipts(folder), sign: None }
}

fn make(folder: &Path, number: u32, value: Value) -> Made {
    let mock = Backend::Mock { script: None };
    let made = job::make(&house(folder), "mock", &mock, &run(), number, &request(value), kept(folder));
    made.unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn a_run_without_a_folder_works_in_an_empty_one_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let Made { job, scratch, window, .. } = make(folder.path(), 1, json!({ "task": "x" }));
    let expected = folder.path().join("scratch/r1");
    assert_eq!(scratch.as_deref(), Some(expected.as_path()));
    assert!(expected.read_dir().unwrap().next().is_none());
    assert_eq!(job.run.as_str(), "r1");
    assert_eq!(job.order.workspace.root, expected.to_str().unwrap());
    assert_eq!(job.order.workspace.mode, WorkspaceMode::PassThrough);
    assert_eq!(job.order.policy, default_profile());
    assert_eq!(window, Window { within: None, default: DefaultAnswer::Deny });
}

#[test]
fn a_later_attempt_has_a_receipt_and_a_folder_of_its_own_and_the_run_its_own_policy() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let value = json!({
        "task": "x", "workspace": { "root": root.to_str().unwrap() }, "policy": {},
        "approvals": { "within": "10m", "default": "approve" },
    });
    let Made { job, scratch, window, .. } = make(folder.path(), 3, value);
    assert_eq!((job.run.as_str(), scratch), ("r1-3", None));
    assert_eq!(job.order.id.as_str(), "r1");
    assert_eq!(Path::new(&job.order.workspace.root), root);
    assert_eq!(job.order.workspace.mode, WorkspaceMode::Staged);
    assert_eq!(job.order.policy, PolicyProfile::unrestricted());
    assert_eq!(window, Window { within: Some(Duration::from_secs(600)), default: DefaultAnswer::Approve });
    // The log has the first word, the control plane the last one.
    let Approver::Person { within, default } = job.approver else { panic!() };
    assert_eq!((within, default), (Duration::from_secs(660), govern::Choice::Allow));
}

#[test]
fn a_thread_with_an_agent_goes_on_in_the_same_folder_and_session() {
    let folder = tempfile::tempdir().unwrap();
    let claude =
        Agent { provider: "claude".to_owned(), command: Vec::new(), env: BTreeMap::new(), timeout: None };
    let make = |run: &str| {
        let (run, request) = (RunId::parse(run).unwrap(), request(json!({ "task": "x", "thread": "t" })));
        let (house, claude) = (house(folder.path()), Backend::Agent(claude.clone()));
        let made = job::make(&house, "claude", &claude, &run, 1, &request, kept(folder.path()));
        made.unwrap_or_else(|why| panic!("{why}"))
    };
    let first = make("r1");
    assert!(first.scratch.is_none(), "its folder stays");
    assert!(first.job.order.config.vendor("agent", "resume").is_none());
    first.conversation.unwrap().keep("t", "s-1").unwrap();
    let second = make("r2");
    assert_eq!(second.job.order.workspace.root, first.job.order.workspace.root);
    assert_eq!(second.job.order.config.vendor("agent", "resume").unwrap().as_str(), r#""s-1""#);
    // A mock has no sessions, and works where every run of its own does.
    let Made { scratch, conversation, .. } =
        self::make(folder.path(), 1, json!({ "task": "x", "thread": "t" }));
    assert!(scratch.is_some() && conversation.is_none());
}

#[test]
fn for_ever_is_a_time_too() {
    let terms = ApprovalTerms { within: None, default: DefaultAnswer::Deny };
    let ten_years = Duration::from_secs(10 * 365 * 24 * 3600);
    assert_eq!(Window::of(Some(&terms)).unwrap().patience(), ten_years);
    let long = ApprovalTerms { within: Some("1000000h".to_owned()), default: DefaultAnswer::Deny };
    assert_eq!(Window::of(Some(&long)).unwrap().patience(), ten_years);
}

#[test]
fn every_end_says_how_the_run_stands_and_who_could_do_better() {
    use Again::{Nobody, Other, Same};
    use Outcome::{Complete, Failed as Bad, Partial};
    use Phase::{Cancelled, Completed, Failed};
    use Retry::{Helps, Useless};
    let cases = [
        (Ending::Final, Complete, Useless, Completed, Nobody),
        (Ending::Final, Partial, Useless, Failed, Nobody),
        (Ending::Final, Bad, Useless, Failed, Other),
        (Ending::Final, Bad, Helps, Failed, Same),
        (Ending::Final, Outcome::Other("odd".to_owned()), Useless, Failed, Other),
        (Ending::Cancelled, Partial, Useless, Cancelled, Nobody),
        (Ending::Cancelled, Bad, Helps, Cancelled, Nobody),
        (Ending::Policy, Bad, Helps, Failed, Nobody),
        (Ending::Budget, Partial, Helps, Failed, Nobody),
        (Ending::Timeout, Partial, Helps, Failed, Same),
        (Ending::Stalled, Bad, Helps, Failed, Same),
        (Ending::Exited, Bad, Helps, Failed, Same),
        // There is no such program.
        (Ending::Exited, Bad, Useless, Failed, Other),
        (Ending::Fatal, Bad, Useless, Failed, Other),
        // Its model has no time right now.
        (Ending::Fatal, Bad, Helps, Failed, Same),
        (Ending::Protocol, Bad, Useless, Failed, Other),
        // Its hello came too late.
        (Ending::Protocol, Bad, Helps, Failed, Same),
    ];
    for (ending, outcome, retry, phase, again) in cases {
        assert_eq!(
            ending::verdict(&ending, &outcome, retry),
            (phase, again),
            "{ending:?} {outcome:?} {retry:?}"
        );
    }
}

#[test]
fn what_has_no_receipt_has_an_end_all_the_same() {
    let mode = ConductError::Mode("odd".to_owned());
    let order = ConductError::Order { path: "/x".into(), error: std::io::ErrorKind::StorageFull.into() };
    for (error, phase, ending, again) in [
        (&ConductError::Stopped, Phase::Cancelled, "cancelled", Again::Nobody),
        (&mode, Phase::Failed, "fatal", Again::Nobody),
        (&order, Phase::Failed, "fatal", Again::Same),
    ] {
        let ended = ending::unrecorded(error);
        assert_eq!((ended.phase, ended.ending.as_str(), ended.again), (phase, ending, again), "{error}");
        assert_eq!(ended.error, Some(error.to_string()));
    }
    let drained =
        ending::conclude(Err(ConductError::Stopped), Seen::default(), Spent::default(), Leaving::Yes);
    assert!(matches!(drained, Concluded::Drained));
}

#[test]
fn what_was_spent_is_the_sum_of_all_attempts() {
    let before = Spent { input_tokens: 5, output_tokens: 1, cost_usd: 0.5, tool_calls: 2, model_calls: 1 };
    let usage = Usage { input_tokens: Some(10), estimated_cost_usd: Some(0.25), ..Usage::default() };
    let seen = Seen { tool_calls: 3, model_calls: 4, ..Seen::default() };
    let all = Spent { input_tokens: 15, output_tokens: 1, cost_usd: 0.75, tool_calls: 5, model_calls: 5 };
    assert_eq!(ending::spent(before, usage, &seen), all);
}

fn approval(tool: &str, input: &str, choice: Option<Choice>, by: &str) -> Approval {
    let given =
        choice.map(|choice| Given { answer: Answer::plain(choice), by: Actor::new(by), at: Moment::now() });
    Approval {
        id: ApprovalId("a1".to_owned()),
        attempt: 1,
        key: "r1-1".to_owned(),
        tool: tool.to_owned(),
        input: input.to_owned(),
        input_sha256: input_hash(input),
        reason: String::new(),
        choices: vec![Choice::Approve, Choice::ApproveAlways, Choice::Deny],
        asked_at: Moment::now(),
        deadline: None,
        default: DefaultAnswer::Deny,
        given,
    }
}

fn state(approvals: Vec<Approval>) -> RunState {
    let accepted = Accepted {
        backend: "mock".to_owned(),
        request: request(json!({ "task": "x" })),
        by: Actor::new("api"),
        seed: 1,
        now_ms: 1,
        origin: None,
    };
    let mut state = RunState::begin(run(), &Line::now(Entry::Accepted(Box::new(accepted)))).unwrap();
    state.approvals = approvals;
    state
}

#[test]
fn an_answer_to_an_earlier_attempt_is_used_once_and_for_the_same_call() {
    let mut memory = Memory::of(&state(vec![
        approval("Bash", r#"{"command":"ls"}"#, Some(Choice::Approve), "me"),
        approval("Bash", r#"{"command":"rm"}"#, Some(Choice::Deny), "me"),
        approval("Write", "1", Some(Choice::ApproveAlways), "me"),
        approval("Edit", "2", Some(Choice::Deny), "deadline"),
        approval("Open", "3", None, ""),
    ]));
    let mut recall = |tool: &str, input: &str| {
        memory.recall(tool, &input_hash(input)).map(|recalled| recalled.answer.choice)
    };
    assert_eq!(recall("Bash", r#"{ "command": "ls" }"#), Some(Choice::Approve), "however it is spelled");
    assert_eq!(recall("Bash", r#"{"command":"ls"}"#), None, "it was approved once");
    assert_eq!(recall("Bash", r#"{"command":"rm"}"#), Some(Choice::Deny));
    assert_eq!(recall("Write", "1"), Some(Choice::ApproveAlways));
    assert_eq!(recall("Write", "1"), Some(Choice::ApproveAlways), "always is always");
    assert_eq!(recall("Write", "other"), Some(Choice::ApproveAlways), "whatever it writes");
    assert_eq!(recall("Edit", "2"), None, "nobody was there then, but somebody may be now");
    assert_eq!(recall("Open", "3"), None);
    assert_eq!(recall("Read", "1"), None);
}

fn raised(input: &str) -> ApprovalRequest {
    let run_id = OrderRun::new("r1");
    ApprovalRequest {
        id: govern::ApprovalId::numbered(&run_id, 1),
        run_id,
        tool_name: "Bash".to_owned(),
        tool_use_id: None,
        input: input.to_owned(),
        input_bytes: input.len() as u64,
        input_sha256: input_hash(input),
        reason: "Bash needs approval".to_owned(),
        waits: Waits::Asked,
        asked_at: Timestamp::now(),
        deadline: Timestamp::now().after(Duration::from_secs(60)),
        default: govern::Choice::Deny,
    }
}

fn ask(input: &str) -> Ask<'static> {
    let json = format!(r#"{{"t":"ask","ref_id":"r1","id":"q7","action":"question","input":{input}}}"#);
    let read = outrigger_abp::protocol::read(&json).unwrap();
    let outrigger_abp::protocol::Envelope::Ask(ask) = read else { panic!() };
    ask.into_owned()
}

#[test]
fn calls_and_questions_are_put_with_what_can_be_said_to_them() {
    let window = Window { within: None, default: DefaultAnswer::Approve };
    let put = onlooker::approval(&raised("{}"), None, window);
    assert_eq!((put.key.as_str(), put.tool.as_str(), put.input.as_str()), ("r1-1", "Bash", "{}"));
    assert_eq!(put.choices, [Choice::Approve, Choice::ApproveAlways, Choice::Deny]);
    assert_eq!((put.reason.as_str(), put.default), ("Bash needs approval", DefaultAnswer::Approve));
    let put = onlooker::question(&ask(r#"{"message": "Which?",  "payload":1.0}"#), None);
    assert_eq!((put.key.as_str(), put.tool.as_str(), put.reason.as_str()), ("q/q7", "question", "Which?"));
    assert_eq!(put.input, r#"{"message": "Which?",  "payload":1.0}"#, "as the child wrote it");
    assert_eq!((put.choices, put.default), (vec![Choice::Answer, Choice::Deny], DefaultAnswer::Deny));
}

#[test]
fn what_people_say_reaches_the_child_in_its_own_words() {
    let id = govern::ApprovalId::new("r1-1");
    let choices = [
        (Choice::Approve, govern::Choice::Allow),
        (Choice::ApproveAlways, govern::Choice::AllowAlways),
        (Choice::Deny, govern::Choice::Deny),
        (Choice::Edit, govern::Choice::Deny),
        (Choice::Answer, govern::Choice::Deny),
    ];
    for (choice, expected) in choices {
        let answered = onlooker::answered(&id, &Answer::plain(choice), "me");
        assert_eq!((answered.choice, answered.by.as_str()), (expected, "me"), "{choice:?}");
    }
    let said = Answer { value: Some(json!({ "a": 1 })), ..Answer::plain(Choice::Answer) };
    let reply = onlooker::reply("r1", "q7", &said, "me");
    assert_eq!(
        (reply.ref_id.as_str(), reply.id.as_str(), &reply.decision),
        ("r1", "q7", &AskDecision::Allow)
    );
    assert_eq!(reply.content.unwrap().as_str(), r#"{"a":1}"#);
    let no = Answer { reason: Some("not now".to_owned()), ..Answer::plain(Choice::Deny) };
    let reply = onlooker::reply("r1", "q7", &no, "me");
    assert_eq!(
        (&reply.decision, reply.reason.as_str(), reply.content),
        (&AskDecision::Deny, "not now", None)
    );
}

/// A run's log, as far as an attempt sees it.
struct Log {
    _folder: tempfile::TempDir,
    ledger: std::path::PathBuf,
    teller: Teller,
    told: mpsc::Receiver<Telling>,
}

fn log() -> Log {
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Sqlite::open(&folder.path().join("store.db")).unwrap());
    let (teller, told) = Teller::new(run(), 1, engine);
    Log { ledger: folder.path().join("approvals.jsonl"), _folder: folder, teller, told }
}

impl Log {
    /// What was told so far: events as they are, notes and questions in a word.
    fn told(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok(telling) = self.told.try_recv() {
            all.push(match telling {
                Telling::Event(event) => event.get().to_owned(),
                Telling::Entry(entry) => match *entry {
                    Entry::Note(note) => format!("note: {}", note.text),
                    other => other.kind().to_owned(),
                },
                // Nobody writes it down: whoever asked hears that.
                Telling::Ask(new, _) => format!("ask: {} {}", new.tool, new.key),
                Telling::Flush(_) => "flush".to_owned(),
            });
        }
        all
    }

    fn onlooker(&self, memory: Memory) -> (Onlooker, mpsc::Receiver<News>, Arc<Notify>) {
        let (news, heard) = mpsc::channel(8);
        let deaf = Arc::new(Notify::new());
        let window = Window { within: None, default: DefaultAnswer::Deny };
        let ledger = self.ledger.clone();
        (Onlooker::new(self.teller.clone(), news, Arc::clone(&deaf), ledger, memory, window), heard, deaf)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_child_says_is_written_down_byte_for_byte_and_counted() {
    let mut log = log();
    let (mut onlooker, _news, _) = log.onlooker(Memory::of(&state(Vec::new())));
    let texts = [
        r#"{"ts":"2026-01-31T12:00:00Z","type":"run_started","message":"x","ext":{"agent_session":"s-1"}}"#,
        r#"{"ts":"2026-01-31T12:00:00Z","type":"tool_call","tool_name":"Read", "input":{"n":1.0}}"#,
        r#"{"ts":"2026-01-31T12:00:00Z","type":"usage","input_tokens":3}"#,
        r#"{"type":"error", "ts":"2026-01-31T12:00:00Z","message":"busy","error_code":"backend_rate_limited"}"#,
    ];
    for text in texts {
        onlooker.event(1, &AgentEvent::read(text).unwrap(), "");
    }
    onlooker.remark("odd");
    assert_eq!(log.told(), [texts[0], texts[1], texts[2], texts[3], "note: odd"]);
    let error = Some(("busy".to_owned(), Some(ErrorCode::BackendRateLimited)));
    let session = Some("s-1".to_owned());
    assert_eq!(onlooker.seen(), Seen { tool_calls: 1, model_calls: 1, error, session });
    let made = AgentEvent::now(EventKind::AssistantMessage { text: "x".into() });
    assert!(onlooker::own_text(&made).contains(r#""text":"x""#), "one of our own has a text too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_unless_somebody_said_it_before() {
    let mut log = log();
    let known = approval("Bash", "{}", Some(Choice::Approve), "dashboard");
    let (mut onlooker, mut news, _) = log.onlooker(Memory::of(&state(vec![known])));
    let request = raised("{}");
    Ledger::open(&log.ledger).unwrap().request(&request).unwrap();
    onlooker.approval(&request);
    let note = "note: Bash: approve by dashboard to an earlier attempt (a1) holds";
    assert_eq!(log.told(), [note]);
    let ledger = Ledger::open_existing(&log.ledger).unwrap();
    let answered = ledger.answer_to(&request.id).unwrap();
    assert_eq!((answered.choice, answered.by.as_str()), (govern::Choice::Allow, "dashboard"));
    onlooker.approval(&request);
    assert_eq!(log.told(), ["ask: Bash r1-1"], "the same call again is another call");
    assert!(matches!(news.try_recv(), Ok(News::Asked { key, .. }) if key == "r1-1"));
    assert!(onlooker.question(&ask("{}")));
    assert_eq!(log.told(), ["ask: question q/q7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_ends_the_attempt_and_denies_what_is_asked() {
    let mut log = log();
    let (mut onlooker, _news, deaf) = log.onlooker(Memory::of(&state(Vec::new())));
    log.told.close();
    onlooker.remark("nobody hears this");
    deaf.notified().await;
    let request = raised("{}");
    Ledger::open(&log.ledger).unwrap().request(&request).unwrap();
    onlooker.approval(&request);
    let ledger = Ledger::open_existing(&log.ledger).unwrap();
    assert_eq!(ledger.answer_to(&request.id).unwrap().choice, govern::Choice::Deny);
}

/// Somebody who attends to the job in this folder, and everything they listen to and speak with.
struct Post {
    attendant: Attendant,
    commands: mpsc::Sender<Control>,
    news: mpsc::Sender<News>,
    run: RunControl,
    log: Log,
    ledger: std::path::PathBuf,
}

fn post(folder: &Path) -> Post {
    let log = log();
    let (remote, run) = conduct::control();
    let (commands, control) = mpsc::channel(8);
    let (news, heard) = mpsc::channel(8);
    let Made { job, .. } = make(folder, 1, json!({ "task": "x" }));
    let ledger = Job::ledger(&job);
    let deaf = Arc::new(Notify::new());
    let attendant = Attendant::new(1, &job, remote, control, heard, deaf, log.teller.clone());
    Post { attendant, commands, news, run, log, ledger }
}

/// What the run is told next.
async fn next(attendant: &mut Attendant, run: &mut RunControl) -> String {
    let command = tokio::select! {
        command = run.next() => command,
        never = attendant.attend() => match never {},
    };
    match command {
        Command::Cancel { why } => format!("cancel: {why}"),
        Command::Kill { why } => format!("kill: {why}"),
        Command::Steer { text } => format!("steer: {text}"),
        Command::Answer(answer) => format!("answer: {} {}", answer.id, answer.decision.as_str()),
    }
}

#[tokio::test]
async fn what_is_said_before_the_agent_is_there_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let Post { mut attendant, commands, news, mut run, .. } = post(folder.path());
    for text in ["one", "two"] {
        commands.send(Control::Steer { text: text.to_owned() }).await.unwrap();
    }
    // A run that has no child yet would end for it, so that what comes later is heard first.
    commands.send(Control::Cancel { why: "enough".to_owned() }).await.unwrap();
    assert_eq!(next(&mut attendant, &mut run).await, "cancel: enough");
    news.send(News::Ready).await.unwrap();
    assert_eq!(next(&mut attendant, &mut run).await, "steer: one");
    assert_eq!(next(&mut attendant, &mut run).await, "steer: two");
    commands.send(Control::Steer { text: "three".to_owned() }).await.unwrap();
    assert_eq!(next(&mut attendant, &mut run).await, "steer: three");
    assert_eq!(attendant.leaving(), Leaving::No);
}

#[tokio::test]
async fn a_daemon_that_leaves_with_or_without_a_word_ends_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let Post { mut attendant, commands, mut run, .. } = post(folder.path());
    commands.send(Control::Cancel { why: "enough".to_owned() }).await.unwrap();
    assert_eq!(next(&mut attendant, &mut run).await, "cancel: enough");
    assert_eq!(attendant.leaving(), Leaving::No);
    drop(commands);
    assert_eq!(next(&mut attendant, &mut run).await, format!("cancel: {GOING_DOWN}"));
    assert_eq!(attendant.leaving(), Leaving::Yes);
}

#[tokio::test]
async fn answers_find_their_way_to_the_ledger_or_to_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let Post { mut attendant, commands, mut run, mut log, ledger, .. } = post(folder.path());
    let request = raised("{}");
    Ledger::open(&ledger).unwrap().request(&request).unwrap();
    let answered = |key: &str, attempt: u32, choice: Choice| {
        let known = approval("Bash", "{}", Some(choice), "dashboard");
        Control::Answered(Box::new(Approval { key: key.to_owned(), attempt, ..known }))
    };
    // Of an earlier attempt: nothing here waits for it.
    commands.send(answered("r1-1", 0, Choice::Deny)).await.unwrap();
    commands.send(answered("r1-1", 1, Choice::ApproveAlways)).await.unwrap();
    // Another click, which changes nothing, and an answer to nothing.
    commands.send(answered("r1-1", 1, Choice::Deny)).await.unwrap();
    commands.send(answered("r1-9", 1, Choice::Deny)).await.unwrap();
    commands.send(answered("q/q7", 1, Choice::Deny)).await.unwrap();
    assert_eq!(next(&mut attendant, &mut run).await, "answer: q7 deny");
    let ledger = Ledger::open_existing(&ledger).unwrap();
    let first = ledger.answer_to(&request.id).unwrap();
    assert_eq!((first.choice, first.by.as_str()), (govern::Choice::AllowAlways, "dashboard"));
    let told = log.told();
    assert!(
        matches!(told.as_slice(), [one] if one.starts_with("note: the answer was not taken")),
        "{told:?}"
    );
}

#[tokio::test]
async fn what_a_run_may_not_ask_any_more_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    let Post { mut attendant, commands: _commands, news, mut run, .. } = post(folder.path());
    let (write, written) = tokio::sync::oneshot::channel();
    drop(write);
    news.send(News::Asked { key: "q/q7".to_owned(), written }).await.unwrap();
    assert_eq!(next(&mut attendant, &mut run).await, "answer: q7 deny");
}

#[test]
fn what_a_killed_daemon_left_has_a_receipt_and_counts_as_cut() {
    let folder = tempfile::tempdir().unwrap();
    let sign = Some(SigningKey::create(&folder.path().join("key")).unwrap());
    let kept = Receipts { sign, ..kept(folder.path()) };
    let receipts = Arc::clone(&kept.folder);
    let mut recorder = Recorder::begin(&receipts, &OrderRun::new("r1-2")).unwrap();
    let event = AgentEvent::now(EventKind::AssistantMessage { text: "half".into() });
    recorder.event(&event).unwrap();
    recorder.flush().unwrap();
    assert!(left_behind(&receipts, "r1-2").is_none(), "it has no receipt yet");
    drop(recorder);
    let recover = || conduct::recover(&kept.folder, kept.sign.as_ref()).unwrap();
    let recovered: Vec<_> = recover().into_iter().map(Result::unwrap).collect();
    assert_eq!(recovered.len(), 1);
    let check = verify(&receipts.receipt(&OrderRun::new("r1-2"))).unwrap();
    assert!(matches!(check.signature, SignatureState::Valid { .. }), "{:?}", check.signature);
    let left = left_behind(&receipts, "r1-2").unwrap();
    assert_eq!((left.receipt.file.as_str(), left.receipt.sha256), ("r1-2.json", recovered[0].sha256));
    assert!(left.ended.is_none(), "it did not end by itself");
    let events = left.events.unwrap();
    let said: Vec<_> = events.iter().map(|event| AgentEvent::read(event.get()).unwrap().kind).collect();
    assert_eq!(said, [event.kind]);
    assert!(recover().is_empty(), "once is enough");
    assert!(left_behind(&receipts, "r1").is_none());
}

#[test]
fn a_backend_whose_program_is_not_here_says_which_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let plain = |program: &str| Program::plain(program.to_owned(), vec!["-x".to_owned()]);
    let agent = |provider: &str, command: &[&str]| {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Backend::Agent(Agent { provider: provider.to_owned(), command, env: BTreeMap::new(), timeout: None })
    };
    let nowhere = here.join("nowhere").to_string_lossy().into_owned();
    let cases = [
        (Backend::Mock { script: None }, "plays a script; needs no model and no key", ""),
        (Backend::Sidecar(plain("sh")), "`sh -x` over abp", ""),
        (
            Backend::Sidecar(plain("no-such-program")),
            "`no-such-program -x` over abp",
            "there is no `no-such-program` on PATH",
        ),
        (
            Backend::Process(plain("/no/such")),
            "runs `/no/such -x` for each order",
            "there is no program /no/such",
        ),
        (Backend::Sidecar(plain("./later")), "`./later -x` over abp", ""),
        (agent("claude", &[&nowhere]), "Claude Code through the bridge", "Claude Code cannot be started"),
        (
            agent("acp:agent", &["no-such-program"]),
            "`no-such-program` over ACP through the bridge",
            "there is no `no-such-program` on PATH",
        ),
    ];
    for (backend, about, missing) in cases {
        assert_eq!(look::about(&backend), about);
        let said = look::find(&backend, here).err().unwrap_or_default();
        assert!(said.starts_with(missing) && said.is_empty() == missing.is_empty(), "{about}: {said}");
    }
    assert_eq!(look::dialect(&agent("claude", &[])), "helmor");
    assert_eq!(look::dialect(&Backend::Mock { script: None }), "abp");
}

#[test]
fn capabilities_are_shown_by_the_names_of_the_contract() {
    let text = r#"{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"x"},"capabilities":{},"mode":"mapped"}"#;
    let read = outrigger_abp::protocol::read(text).unwrap();
    let outrigger_abp::protocol::Envelope::Hello(hello) = read else { panic!() };
    let capabilities: Manifest = [
        (Capability::Streaming, SupportLevel::Native),
        (Capability::ToolBash, SupportLevel::Restricted { reason: "no".to_owned() }),
    ]
    .into_iter()
    .collect();
    let shown = look::capabilities(&Hello { capabilities, ..*hello });
    let expected = [("streaming", "native"), ("tool_bash", "restricted")];
    assert_eq!(shown, expected.map(|(name, level)| (name.to_owned(), level.to_owned())).into());
}
