//! A governor and what it says, told as conversations.

use std::time::Duration;

use outrigger_policy::{Micros, Resource};

use super::super::account::Worth;
use super::super::approvals::{AnswerError, Answered, Choice, Waits};
use super::super::desk::POLL;
use super::super::tally::Crossed;
use super::super::verdict::{Approver, How};
use super::*;
use crate::protocol::{Envelope, OrderId, RunId, Timestamp};

const RUN: &str = "1435d8a3-b669-4b75-82d5-df8e55e2c877";

/// So many milliseconds into the run.
fn at(millis: u64) -> Moment {
    let start = Timestamp::from_unix_millis(1_790_000_000_000);
    let since_start = Duration::from_millis(millis);
    Moment { since_start, at: start.after(since_start) }
}

struct Case {
    order: WorkOrder,
    rules: Rules,
    folder: tempfile::TempDir,
}

/// A run whose child asks for nothing and whose operator answers within ten seconds.
fn case() -> Case {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("root")).unwrap();
    let rules = Rules {
        run_id: RunId::new(RUN),
        subject: "agent".to_owned(),
        asks: Vec::new(),
        limits: Limits::none(),
        on_denied: OnDenied::End,
        approver: Approver::Person { within: Duration::from_secs(10), default: Choice::Deny },
    };
    Case { order: WorkOrder::new(OrderId::new("order"), "task"), rules, folder }
}

impl Case {
    fn disallow(mut self, tool: &str) -> Case {
        self.order.policy.disallowed_tools.push(tool.to_owned());
        self
    }

    fn approve(mut self, tool: &str) -> Case {
        self.order.policy.require_approval_for.push(tool.to_owned());
        self
    }

    fn asking(mut self) -> Case {
        self.rules.asks = AskAction::ALL.to_vec();
        self
    }

    fn approver(mut self, approver: Approver) -> Case {
        self.rules.approver = approver;
        self
    }

    fn govern(self) -> Governed {
        let root = self.folder.path().join("root");
        let governor = Governor::new(&self.order, &root, self.rules, None).unwrap();
        Governed { governor, _folder: self.folder }
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(&self.folder.path().join("approvals.jsonl")).unwrap()
    }

    fn govern_with_ledger(self) -> Governed {
        let root = self.folder.path().join("root");
        let ledger = self.ledger();
        let governor = Governor::new(&self.order, &root, self.rules, Some(ledger)).unwrap();
        Governed { governor, _folder: self.folder }
    }
}

struct Governed {
    governor: Governor,
    _folder: tempfile::TempDir,
}

impl Governed {
    /// An event with these members.
    fn hear(&mut self, millis: u64, members: &str) -> Verdict {
        let text = format!(r#"{{"ts":"2026-01-01T00:00:00Z",{members}}}"#);
        self.governor.event(&at(millis), &AgentEvent::read(&text).unwrap())
    }

    fn call(&mut self, millis: u64, tool: &str, id: &str, input: &str) -> Verdict {
        self.hear(
            millis,
            &format!(r#""type":"tool_call","tool_name":"{tool}","tool_use_id":"{id}","input":{input}"#),
        )
    }

    fn result(&mut self, millis: u64, id: &str, is_error: bool) -> Verdict {
        let members = format!(
            r#""type":"tool_result","tool_name":"x","tool_use_id":"{id}","output":1,"is_error":{is_error}"#
        );
        self.hear(millis, &members)
    }

    /// A question with these members.
    fn ask(&mut self, millis: u64, members: &str) -> Verdict {
        let line = format!(r#"{{"t":"ask","ref_id":"{RUN}",{members}}}"#);
        let Envelope::Ask(ask) = crate::protocol::read(&line).unwrap() else { panic!("it is a question") };
        self.governor.ask(&at(millis), &ask)
    }

    fn ask_call(&mut self, millis: u64, ask: &str, tool: &str, id: &str, input: &str) -> Verdict {
        let members = format!(
            r#""id":"{ask}","action":"tool","tool_name":"{tool}","tool_use_id":"{id}","input":{input}"#
        );
        self.ask(millis, &members)
    }

    fn says(&mut self, millis: u64, id: &ApprovalId, choice: Choice) -> Verdict {
        self.governor.answered(&at(millis), id, choice, "ann").unwrap()
    }

    fn tick(&mut self, millis: u64) -> Verdict {
        self.governor.tick(&at(millis))
    }

    fn account(&self) -> Account {
        self.governor.account(None)
    }
}

/// The id of the request that was raised.
fn raised(verdict: Verdict) -> ApprovalId {
    match verdict {
        Verdict::Raise(request) => request.id,
        other => panic!("nobody was asked: {other:?}"),
    }
}

/// What the child is told.
fn told(verdict: Verdict) -> (String, AskDecision, String) {
    match verdict {
        Verdict::Answer(answer) => {
            assert_eq!(answer.ref_id, RUN);
            (answer.id, answer.decision, answer.reason)
        }
        other => panic!("nothing was answered: {other:?}"),
    }
}

fn allowed(verdict: Verdict) -> String {
    let (id, decision, reason) = told(verdict);
    assert_eq!(decision, AskDecision::Allow, "{reason}");
    id
}

fn denied(verdict: Verdict) -> (String, String) {
    let (id, decision, reason) = told(verdict);
    assert_eq!(decision, AskDecision::Deny, "{reason}");
    (id, reason)
}

/// The sentence with which the run is ended.
fn ended(verdict: Verdict) -> String {
    match verdict {
        Verdict::End(reason) => reason.to_string(),
        other => panic!("the run goes on: {other:?}"),
    }
}

fn warned(verdict: Verdict) -> String {
    match verdict {
        Verdict::Warn(text) => text,
        other => panic!("nobody was warned: {other:?}"),
    }
}

#[test]
fn what_a_child_reports_and_may_not_do_ends_the_run_once() {
    let mut run = case().disallow("Bash").govern();
    assert_eq!(run.call(1, "Read", "t1", r#"{"path":"a"}"#), Verdict::Go);
    let sentence = ended(run.call(2, "Bash", "t2", "{}"));
    let why = "it is on the list of what is denied (disallowed_tools has `Bash`)";
    assert_eq!(sentence, format!("agent may not call `Bash`: {why}"));
    assert_eq!(run.call(3, "Bash", "t3", "{}"), Verdict::Go, "it is ending already");
    let decisions = run.account().decisions;
    assert_eq!((decisions.allowed, decisions.denied, decisions.asked), (1, 2, 0));
    assert_eq!(decisions.first_denied[0].how, How::Reported);
}

#[test]
fn a_denial_only_warns_when_the_operator_wants_that() {
    let mut case = case().disallow("Bash");
    case.rules.on_denied = OnDenied::Warn;
    let mut run = case.govern();
    assert!(warned(run.call(1, "Bash", "t1", "{}")).starts_with("agent may not call `Bash`"));
    assert_eq!(run.call(2, "Read", "t2", "{}"), Verdict::Go);
}

#[test]
fn a_child_that_misbehaves_without_end_is_warned_about_so_often_and_no_more() {
    let mut case = case().disallow("Bash");
    case.rules.on_denied = OnDenied::Warn;
    let mut run = case.govern();
    let warnings = (0..MAX_WARNINGS + 5).filter(|_| run.call(1, "Bash", "t", "{}") != Verdict::Go).count();
    assert_eq!(warnings, MAX_WARNINGS);
    let decisions = run.account().decisions;
    assert_eq!((decisions.denied, decisions.first_denied.len()), (MAX_WARNINGS as u64 + 5, 32));
}

#[test]
fn a_changed_file_is_judged_as_a_write() {
    let mut case = case();
    case.order.policy.deny_write.push("**/.git/**".to_owned());
    let mut run = case.govern();
    assert_eq!(run.hear(1, r#""type":"file_changed","path":"src/a","summary":"""#), Verdict::Go);
    let sentence = ended(run.hear(2, r#""type":"file_changed","path":".git/config","summary":"""#));
    assert!(sentence.contains("may not write `.git/config`"), "{sentence}");
}

#[test]
fn a_command_is_judged_as_bash_unless_a_reported_call_of_a_shell_announced_it() {
    let executed = r#""type":"command_executed","command":"ls""#;
    let mut case = case().disallow("Bash");
    case.rules.limits.tool_calls = Some(10);
    let mut run = case.govern();
    assert_eq!(run.call(1, "local_shell", "t1", "{}"), Verdict::Go);
    assert_eq!(run.hear(2, executed), Verdict::Go);
    assert!(ended(run.hear(3, executed)).contains("may not call `Bash`"));
    let spent = run.account().budgets.iter().find(|one| one.resource == Resource::ToolCalls).unwrap().spent;
    assert_eq!(spent, 2);
}

#[test]
fn a_command_that_nothing_announced_is_asked_about() {
    let mut run = case().approve("Bash").govern();
    let id = raised(run.hear(1, r#""type":"command_executed","command":"ls""#));
    assert!(ended(run.says(2, &id, Choice::Deny)).contains("`Bash` was denied by ann"));
}

#[test]
fn a_child_that_asks_is_told_no_and_the_run_goes_on() {
    let mut case = case().asking().disallow("Bash");
    case.order.policy.deny_read.push("**/.env".to_owned());
    case.order.policy.allow_network.push("example.org".to_owned());
    let mut run = case.govern();
    let (id, reason) = denied(run.ask_call(1, "a1", "Bash", "t1", "{}"));
    assert_eq!((id.as_str(), reason.contains("disallowed_tools has `Bash`")), ("a1", true), "{reason}");
    let table = [
        (r#""action":"tool","tool_name":"Read","input":{"path":"a"}"#, AskDecision::Allow),
        (r#""action":"tool","tool_name":"Read","input":{"path":".env"}"#, AskDecision::Deny),
        (r#""action":"tool","tool_name":"Read""#, AskDecision::Allow),
        (r#""action":"tool""#, AskDecision::Deny),
        (r#""action":"read","path":"a""#, AskDecision::Allow),
        (r#""action":"read","path":"x/.env""#, AskDecision::Deny),
        (r#""action":"read","path":"../x""#, AskDecision::Deny),
        (r#""action":"read""#, AskDecision::Deny),
        (r#""action":"write","path":"x/.env""#, AskDecision::Allow),
        (r#""action":"write","path":"/etc/x""#, AskDecision::Deny),
        (r#""action":"network","host":"example.org:443""#, AskDecision::Allow),
        (r#""action":"network","host":"https://example.org/x""#, AskDecision::Allow),
        (r#""action":"network","host":"example.net""#, AskDecision::Deny),
        (r#""action":"network""#, AskDecision::Deny),
        (r#""action":"launch","path":"a""#, AskDecision::Deny),
    ];
    for (members, expected) in table {
        let (_, decision, reason) = told(run.ask(2, &format!(r#""id":"q",{members}"#)));
        assert_eq!(decision, expected, "{members}: {reason}");
    }
    assert!(run.account().decisions.first_denied.iter().all(|denial| denial.how == How::Asked));
}

#[test]
fn a_question_that_cannot_be_judged_or_answered_is_denied() {
    let mut run = case().asking().govern();
    let input = format!(r#"{{"content":"{}"}}"#, "x".repeat(4 << 20));
    let (_, reason) = denied(run.ask_call(1, "a1", "Write", "t1", &input));
    assert!(reason.contains("cannot be judged"), "{reason}");
    assert_eq!(run.account().decisions.unread, 1);
    let longest = "i".repeat(MAX_ID_BYTES);
    assert_eq!(allowed(run.ask_call(2, &longest, "Write", "t1", "{}")), longest);
    denied(run.ask_call(3, &format!("{longest}i"), "Write", "t1", "{}"));
}

#[test]
fn a_reported_call_that_cannot_be_looked_into_is_judged_by_its_tool_and_the_account_says_so() {
    let mut run = case().govern();
    let input = format!(r#"{{"path":"/etc/x","content":"{}"}}"#, "x".repeat(4 << 20));
    assert_eq!(run.call(1, "Write", "t1", &input), Verdict::Go);
    assert_eq!(run.account().decisions.unread, 1);
}

#[test]
fn a_child_that_was_denied_and_did_it_all_the_same_is_ended_by_its_result() {
    let mut run = case().asking().disallow("Bash").govern();
    denied(run.ask_call(1, "a1", "Bash", "t1", "{}"));
    assert_eq!(run.result(2, "t1", true), Verdict::Go, "it says that it was denied");
    denied(run.ask_call(3, "a2", "Bash", "t2", "{}"));
    warned(run.call(4, "Bash", "t2", "{}"));
    assert!(ended(run.result(5, "t2", false)).ends_with("it was made all the same"));
}

#[test]
fn a_child_that_reports_before_it_asks_gets_its_answer_and_is_not_ended() {
    let mut run = case().asking().disallow("Bash").approve("Write").govern();
    warned(run.call(1, "Bash", "t1", "{}"));
    denied(run.ask_call(2, "a1", "Bash", "t1", "{}"));
    assert_eq!(run.result(3, "t1", true), Verdict::Go);

    let id = raised(run.call(4, "Write", "t2", r#"{"path":"a"}"#));
    assert_eq!(
        run.ask_call(5, "a2", "Write", "t2", r#"{ "path": "a" }"#),
        Verdict::Go,
        "it was raised already"
    );
    assert_eq!(allowed(run.says(6, &id, Choice::Allow)), "a2");
    assert_eq!(run.result(7, "t2", false), Verdict::Go);
}

#[test]
fn a_child_that_asks_twice_about_the_same_call_is_asked_about_once() {
    let mut run = case().asking().approve("Bash").govern();
    let input = r#"{"command":"ls"}"#;
    let id = raised(run.call(0, "Bash", "t1", input));
    run.says(1, &id, Choice::Allow);
    assert_eq!(allowed(run.ask_call(2, "q1", "Bash", "t1", input)), "q1");
    assert_eq!(allowed(run.ask_call(3, "q2", "Bash", "t1", input)), "q2");
    // Another input under the same id, and the same input under another one, are other calls.
    raised(run.ask_call(4, "q3", "Bash", "t1", r#"{"command":"rm"}"#));
    raised(run.ask_call(5, "q4", "Bash", "t2", input));
}

#[test]
fn a_child_that_asks_and_then_reports_is_asked_about_once() {
    let mut run = case().asking().approve("Bash").govern();
    let verdict = run.ask_call(1000, "a1", "Bash", "t1", r#"{"command":"ls"}"#);
    let Verdict::Raise(request) = verdict else { panic!("{verdict:?}") };
    assert_eq!(
        *request,
        super::super::approvals::ApprovalRequest {
            id: ApprovalId::new("1435d8a3-1"),
            run_id: RunId::new(RUN),
            tool_name: "Bash".to_owned(),
            tool_use_id: Some("t1".to_owned()),
            input: r#"{"command":"ls"}"#.to_owned(),
            input_bytes: 16,
            input_sha256: outrigger_policy::Digest::of(br#"{"command":"ls"}"#),
            reason: "agent may, once approved, call `Bash`: a person has to approve it (require_approval_for has `Bash`)"
                .to_owned(),
            waits: Waits::Asked,
            asked_at: at(1000).at,
            deadline: at(11_000).at,
            default: Choice::Deny,
        }
    );
    assert_eq!(allowed(run.says(2000, &request.id, Choice::Allow)), "a1");
    assert_eq!(run.call(2001, "Bash", "t1", r#"{"command":"ls"}"#), Verdict::Go);
    // Approved was that call, not another one under its name, and not the same again.
    raised(run.call(2002, "Bash", "t1", r#"{"command":"rm -rf ."}"#));
    raised(run.call(2003, "Bash", "t9", r#"{"command":"ls"}"#));
    let account = run.account();
    assert_eq!((account.decisions.asked, account.decisions.denied), (4, 0));
    let approvals = serde_json::to_value(&account.approvals).unwrap();
    let expected = serde_json::json!([
        {"id":"1435d8a3-1","tool_name":"Bash","decision":"allow","by":"ann","at":"2026-09-21T14:13:22Z"}
    ]);
    assert_eq!(approvals, expected);
}

#[test]
fn a_child_that_does_not_ask_goes_on_until_somebody_says_no() {
    let mut run = case().approve("Bash").govern();
    let first = raised(run.call(1, "Bash", "t1", "{}"));
    assert_eq!(run.result(2, "t1", false), Verdict::Go);
    assert_eq!(run.says(3, &first, Choice::Allow), Verdict::Go);
    let second = raised(run.call(4, "Bash", "t2", "{}"));
    assert_eq!(ended(run.says(5, &second, Choice::Deny)), "`Bash` was denied by ann");
    assert_eq!(run.account().decisions.first_denied[0].code, "not_approved");
}

#[test]
fn a_second_answer_is_refused_with_the_first_one() {
    let mut run = case().asking().approve("Bash").govern();
    let id = raised(run.ask_call(1, "a1", "Bash", "t1", "{}"));
    run.says(2, &id, Choice::Deny);
    let refused = run.governor.answered(&at(3), &id, Choice::Allow, "bob").unwrap_err();
    assert!(matches!(&refused, AnswerError::Already(first) if first.by == "ann"), "{refused}");
    let unknown = run.governor.answered(&at(3), &ApprovalId::new("x-1"), Choice::Allow, "bob").unwrap_err();
    assert!(matches!(unknown, AnswerError::Unknown(_)));
}

#[test]
fn when_nobody_answers_the_default_applies_at_the_deadline_and_not_before() {
    for (default, expected) in [(Choice::Deny, AskDecision::Deny), (Choice::Allow, AskDecision::Allow)] {
        let within = Duration::from_secs(10);
        let mut run = case().asking().approve("Bash").approver(Approver::Person { within, default }).govern();
        raised(run.ask_call(1000, "a1", "Bash", "t1", "{}"));
        assert_eq!(run.governor.wake_at(), Some(Duration::from_secs(11)));
        assert_eq!(run.tick(10_999), Verdict::Go);
        let (id, decision, reason) = told(run.tick(11_000));
        assert_eq!((id.as_str(), decision), ("a1", expected));
        assert!(reason.ends_with("by deadline: nobody answered in time"), "{reason}");
        assert_eq!((run.governor.wake_at(), run.account().approvals[0].by.as_str()), (None, "deadline"));
    }
}

#[test]
fn a_deadline_that_passed_while_the_machine_slept_has_passed() {
    let mut run = case().asking().approve("Bash").govern();
    raised(run.ask_call(1000, "a1", "Bash", "t1", "{}"));
    let slept = Moment { since_start: Duration::from_secs(2), at: at(3_600_000).at };
    denied(run.governor.tick(&slept));
}

#[test]
fn several_deadlines_at_once_are_several_answers_one_at_a_time() {
    let mut run = case().asking().approve("Bash").govern();
    for ask in ["a1", "a2", "a3"] {
        raised(run.ask_call(0, ask, "Bash", ask, "{}"));
    }
    let mut answered = vec![denied(run.tick(10_000)).0];
    while run.governor.wake_at() == Some(Duration::ZERO) {
        answered.push(denied(run.tick(10_000)).0);
    }
    assert_eq!(answered, ["a1", "a2", "a3"]);
}

#[test]
fn always_allows_the_tool_for_the_rest_of_the_run_and_nothing_else() {
    let mut case = case().asking().approve("Bash").approve("Write");
    case.order.policy.deny_write.push("secret".to_owned());
    let mut run = case.govern();
    let first = raised(run.ask_call(1, "a1", "Bash", "t1", r#"{"command":"a"}"#));
    raised(run.ask_call(2, "a2", "Bash", "t2", r#"{"command":"b"}"#));
    raised(run.ask_call(3, "a3", "Write", "t3", r#"{"path":"a"}"#));
    assert_eq!(allowed(run.says(4, &first, Choice::AllowAlways)), "a1");
    assert_eq!(allowed(run.tick(5)), "a2", "what was open about the same tool");
    assert_eq!(run.tick(5), Verdict::Go);
    assert_eq!(allowed(run.ask_call(6, "a4", "Bash", "t4", r#"{"command":"c"}"#)), "a4");
    // A person's word does not open what the policy denies.
    denied(run.ask_call(7, "a5", "Bash", "t5", r#"{"path":"secret"}"#));
}

#[test]
fn an_operator_can_approve_everything_or_nothing_in_advance() {
    let mut run = case().asking().approve("Bash").approver(Approver::Everything).govern();
    allowed(run.ask_call(1, "a1", "Bash", "t1", "{}"));
    assert_eq!(run.call(2, "Bash", "t1", "{}"), Verdict::Go);
    let approvals = run.account().approvals;
    assert_eq!((approvals.len(), approvals[0].by.as_str()), (1, "operator, everything"));

    let mut run = case().asking().approve("Bash").approver(Approver::Nobody).govern();
    let (_, reason) = denied(run.ask_call(1, "a1", "Bash", "t1", "{}"));
    assert!(reason.contains("there is nobody to ask"), "{reason}");
    let mut run = case().approve("Bash").approver(Approver::Nobody).govern();
    ended(run.call(1, "Bash", "t1", "{}"));
}

#[test]
fn requests_and_answers_are_written_down_and_others_can_answer() {
    let case = case().asking().approve("Bash");
    let path = case.folder.path().join("approvals.jsonl");
    let mut run = case.govern_with_ledger();
    let id = raised(run.ask_call(1000, "a1", "Bash", "t1", "{}"));
    let mut other = Ledger::open_existing(&path).unwrap();
    assert_eq!(other.open_requests().next().unwrap().id, id);
    assert_eq!(run.governor.wake_at(), Some(Duration::from_secs(1) + POLL));
    let bob = Answered {
        id: id.clone(),
        choice: Choice::Allow,
        by: "bob".to_owned(),
        at: at(1100).at,
        reason: None,
    };
    other.answer(&bob).unwrap();
    assert_eq!(allowed(run.tick(1200)), "a1");
    let refused = run.governor.answered(&at(1300), &id, Choice::Deny, "ann").unwrap_err();
    assert!(matches!(&refused, AnswerError::Already(first) if *first == bob), "{refused}");
}

#[test]
fn of_two_answers_at_the_same_time_the_one_that_was_written_first_counts() {
    let case = case().asking().approve("Bash");
    let path = case.folder.path().join("approvals.jsonl");
    let mut run = case.govern_with_ledger();
    let id = raised(run.ask_call(1000, "a1", "Bash", "t1", "{}"));
    let bob = Answered {
        id: id.clone(),
        choice: Choice::Deny,
        by: "bob".to_owned(),
        at: at(1100).at,
        reason: None,
    };
    Ledger::open_existing(&path).unwrap().answer(&bob).unwrap();
    // Not noticed yet; the answer here comes too late, and bob's reaches the child.
    let refused = run.governor.answered(&at(1100), &id, Choice::Allow, "ann").unwrap_err();
    assert!(matches!(&refused, AnswerError::Already(first) if *first == bob), "{refused}");
    assert_eq!(denied(run.tick(1100)).1, "`Bash` was denied by bob");
}

#[test]
fn what_cannot_be_written_down_is_denied() {
    let case = case().asking().approve("Bash");
    let path = case.folder.path().join("approvals.jsonl");
    let mut run = case.govern_with_ledger();
    raised(run.ask_call(1000, "a1", "Bash", "t1", "{}"));
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1).unwrap();
    let (_, reason) = denied(run.ask_call(1001, "a2", "Bash", "t2", r#"{"command":"x"}"#));
    assert!(reason.contains("were cut short by somebody"), "{reason}");
    assert!(warned(run.tick(1200)).contains("answers of others are not seen any more"));
    assert_eq!(denied(run.tick(11_000)).0, "a1", "what is open goes by its deadline");
}

#[test]
fn so_many_requests_may_be_open_and_the_next_one_is_denied() {
    use super::super::approvals::MAX_OPEN;
    let mut run = case().asking().approve("Bash").govern();
    for number in 0..MAX_OPEN {
        raised(run.ask_call(1, "a", "Bash", &format!("t{number}"), "{}"));
    }
    let (_, reason) = denied(run.ask_call(1, "a", "Bash", "one more", "{}"));
    assert!(reason.contains("64 of them open"), "{reason}");
}

#[test]
fn a_run_that_is_over_leaves_no_question_open() {
    let case = case().asking().approve("Bash");
    let path = case.folder.path().join("approvals.jsonl");
    let mut run = case.govern_with_ledger();
    let id = raised(run.ask_call(1000, "a1", "Bash", "t1", "{}"));
    run.governor.close(&at(2000));
    let ledger = Ledger::open_existing(&path).unwrap();
    assert_eq!(ledger.open_requests().count(), 0);
    assert_eq!(ledger.answer_to(&id).unwrap().by, "end of the run");
    assert_eq!((run.tick(3000), run.governor.wake_at()), (Verdict::Go, None));
    denied(run.ask_call(3000, "a2", "Bash", "t2", "{}"));
}

#[test]
fn what_the_agent_itself_wants_approved_goes_to_a_person_unless_the_policy_denies_it() {
    let person = |id: &str, tool: &str, call: &str| {
        format!(
            r#""id":"{id}","action":"tool","tool_name":"{tool}","tool_use_id":"{call}","input":{{}},"needs":"person""#
        )
    };
    let mut run = case().asking().disallow("Rm").govern();
    allowed(run.ask_call(1, "a1", "Bash", "t1", "{}"));
    let id = raised(run.ask(2, &person("a2", "Bash", "t1")));
    allowed(run.says(3, &id, Choice::Allow));
    allowed(run.ask(4, &person("a3", "Bash", "t1")));
    let again = raised(run.ask(5, &person("a4", "Bash", "t2")));
    denied(run.says(6, &again, Choice::Deny));
    denied(run.ask(7, &person("a5", "Rm", "t3")));
    let mut run = case().asking().approver(Approver::Everything).govern();
    allowed(run.ask(1, &person("a1", "Bash", "t1")));
    let mut run = case().asking().approver(Approver::Nobody).govern();
    denied(run.ask(1, &person("a1", "Bash", "t1")));
    denied(run.ask(2, r#""id":"a2","action":"question","input":{"message":"which?"}"#));
}

#[test]
fn a_budget_is_counted_from_whatever_the_child_says_and_ends_the_run_when_it_is_crossed() {
    let mut case = case();
    case.order.config.max_budget_usd = Some(0.5);
    case.rules.limits.money = Some(Micros(900_000));
    let mut run = case.govern();
    let usage = r#""type":"usage","input_tokens":10,"estimated_cost_usd":0.2"#;
    assert_eq!(run.hear(1, usage), Verdict::Go);
    let ext = r#""type":"assistant_delta","text":"x","ext":{"usage":{"estimated_cost_usd":0.2}}"#;
    assert_eq!(run.hear(2, ext), Verdict::Go);
    let total = r#""type":"usage","estimated_cost_usd":0.5,"total":true"#;
    assert_eq!(run.hear(3, total), Verdict::Go, "to the last unit");
    let tiny = r#""type":"usage","usage":{"estimated_cost_usd":0.0000001}"#;
    let verdict = run.hear(4, tiny);
    let crossed = Crossed { resource: Resource::Money, limit: 500_000, spent: 500_001 };
    assert_eq!(verdict, Verdict::End(EndReason::Budget(crossed)));
    assert_eq!(ended(verdict), "the budget of $0.50 is used up: $0.500001 spent");
    assert_eq!(run.hear(5, tiny), Verdict::Go, "it is ending already, and still counted");
    let budgets = serde_json::to_value(run.account().budgets).unwrap();
    let expected = serde_json::json!([
        {"resource":"money","limit":500_000,"spent":500_002},
        {"resource":"total_tokens","limit":null,"spent":10},
        {"resource":"input_tokens","limit":null,"spent":10},
    ]);
    assert_eq!(budgets, expected);
    assert_eq!(run.governor.usage().estimated_cost_usd, Some(0.500_002));
}

#[test]
fn turns_and_calls_have_limits() {
    let mut case1 = case();
    case1.order.config.max_turns = Some(1);
    let mut run = case1.govern();
    let message = r#""type":"assistant_message","text":"x""#;
    assert_eq!(run.hear(1, message), Verdict::Go);
    assert_eq!(ended(run.hear(2, message)), "the budget of 1 turns is used up: 2 turns spent");

    let mut case2 = case().asking();
    case2.rules.limits.tool_calls = Some(1);
    let mut run = case2.govern();
    allowed(run.ask_call(1, "a1", "Read", "t1", "{}"));
    assert_eq!(run.call(2, "Read", "t1", "{}"), Verdict::Go);
    ended(run.ask_call(3, "a2", "Read", "t2", "{}"));
}

#[test]
fn time_is_looked_at_when_it_is_up() {
    let mut case = case();
    case.rules.limits.wall = Some(Duration::from_secs(5));
    let mut run = case.govern();
    assert_eq!(run.governor.wake_at(), Some(Duration::from_secs(5)));
    assert_eq!(run.tick(4999), Verdict::Go);
    assert_eq!(ended(run.tick(5000)), "the budget of 5000 ms is used up: 5000 ms spent");
    assert_eq!((run.governor.wake_at(), run.tick(9000)), (None, Verdict::Go));
}

#[test]
fn numbers_that_are_no_amounts_are_warned_about_and_never_lower_a_count() {
    let mut case = case();
    case.rules.limits.input_tokens = Some(100);
    let mut run = case.govern();
    assert_eq!(run.hear(1, r#""type":"usage","input_tokens":100"#), Verdict::Go);
    let warning = warned(run.hear(2, r#""type":"usage","input_tokens":-50"#));
    assert_eq!(warning, "the reported `input_tokens` is -50, which is no amount; it counts as nothing");
    warned(run.hear(3, r#""type":"warning","message":"x","ext":{"usage":{"input_tokens":"none"}}"#));
    assert_eq!(run.governor.usage().input_tokens, Some(100));
    ended(run.hear(4, r#""type":"usage","input_tokens":1e300"#));
    assert!(warned(run.tick(5)).contains("it counts as the most there is"));
}

#[test]
fn an_order_whose_budget_or_policy_is_wrong_is_not_run() {
    let mut bad = case();
    bad.order.config.max_budget_usd = Some(-1.0);
    let error = Governor::new(&bad.order, bad.folder.path(), bad.rules.clone(), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the work order's `max_budget_usd` is -1, which is no budget: the amount is negative"
    );
    let mut bad = case();
    bad.order.policy.deny_read.push("[".to_owned());
    let error = Governor::new(&bad.order, bad.folder.path(), bad.rules.clone(), None).unwrap_err();
    assert!(error.to_string().contains("`deny_read`"), "{error}");
    let bad = case();
    let nowhere = bad.folder.path().join("nowhere");
    assert!(matches!(Governor::new(&bad.order, &nowhere, bad.rules, None), Err(GovernError::Root(_))));
}

#[test]
fn the_account_says_enforced_only_of_a_child_that_asks() {
    let worths = |case: Case| {
        let one = case.govern().account().enforcement;
        [one.tools, one.files, one.network, one.approvals, one.budgets]
    };
    assert_eq!(worths(case()), [Worth::None, Worth::Observed, Worth::None, Worth::None, Worth::None]);
    let ruled = || {
        let mut case = case().disallow("x").approve("y");
        case.order.policy.deny_network.push("z".to_owned());
        case.rules.limits.turns = Some(1);
        case
    };
    assert_eq!(worths(ruled()), [Worth::Observed; 5]);
    let asking = [Worth::Enforced, Worth::Enforced, Worth::Enforced, Worth::Enforced, Worth::Observed];
    assert_eq!(worths(ruled().asking()), asking);
    let mut timed = case();
    timed.rules.limits.wall = Some(Duration::from_secs(1));
    assert_eq!(worths(timed)[4], Worth::Enforced, "our own clock needs nobody's word");
}
