//! What is done with a call, case by case: what stands behind it, what the policy says, what the log says.

use outrigger_mustard::host::store::{CallId, Waiting};
use outrigger_policy::{PolicyProfile, Subject};

use super::super::decide::{Behind, By, Leave, Question, Stepping, Todo, decide};
use super::super::journal::Journal;
use super::super::outcome::{HostCall, Outcome, Thrown};
use super::*;
use crate::runs::state::Moment;
use crate::runs::{Approval, ApprovalId, Given};

/// A call of `f`, and everything that decides about it.
struct Case {
    behind: Behind,
    policy: PolicyProfile,
    stepping: Stepping,
    journal: Journal,
    asked: u32,
}

fn tool(approval: ApprovalRule, repeat: Repeat) -> Behind {
    Behind::Tool { name: "f".into(), approval, repeat }
}

impl Case {
    fn of(behind: Behind) -> Self {
        let policy = PolicyProfile::unrestricted();
        Self { behind, policy, stepping: Stepping::Off, journal: Journal::default(), asked: 0 }
    }

    fn denied(mut self) -> Self {
        self.policy.disallowed_tools.push("f".into());
        self
    }

    fn approved_by_policy(mut self) -> Self {
        self.policy.require_approval_for.push("f".into());
        self
    }

    fn stepping(self) -> Self {
        Self { stepping: Stepping::On, ..self }
    }

    fn begun(mut self) -> Self {
        self.journal.begin(1);
        self
    }

    fn asked(mut self) -> Self {
        self.asked += 1;
        self.journal.ask(Approval {
            id: ApprovalId(format!("a{}", self.asked)),
            attempt: 1,
            key: "1".into(),
            tool: "f".into(),
            input: "[]".into(),
            input_sha256: outrigger_policy::Digest::of(b"[]"),
            reason: String::new(),
            choices: Vec::new(),
            asked_at: Moment::now(),
            deadline: None,
            default: DefaultAnswer::Deny,
            given: None,
        });
        self
    }

    fn given(mut self, answer: Answer) -> Self {
        let given = Given { answer, by: me(), at: Moment::now() };
        self.journal.give(&ApprovalId(format!("a{}", self.asked)), given);
        self
    }

    fn settled(mut self, outcome: Outcome) -> Self {
        self.journal.settle(1, outcome);
        self
    }

    fn todo(&self) -> Todo {
        let waiting = Waiting { call: CallId(1), capability: "f".into(), args: Vec::new() };
        let policy = self.policy.compile().unwrap().check_tool(&Subject::new("the script"), "f");
        decide(&Question {
            call: &HostCall::of(&waiting),
            behind: &self.behind,
            seen: self.journal.seen(1),
            policy: &policy,
            stepping: self.stepping,
            leave: if self.journal.is_always("f") { Leave::Given } else { Leave::None },
        })
    }

    /// The decision in a word or two.
    fn word(&self) -> String {
        match self.todo() {
            Todo::Settled(outcome) => format!("settled {outcome:?}"),
            Todo::Wait => "wait".into(),
            Todo::Reply(Outcome::Value(value), _) => format!("reply {value}"),
            Todo::Reply(Outcome::Thrown(thrown), _) => format!("throw {}", thrown.code.unwrap_or_default()),
            Todo::Make(_) => "make".into(),
            Todo::Ask { choices, .. } => {
                let words: Vec<_> = choices.iter().map(|choice| choice.word()).collect();
                format!("ask {}", words.join(" "))
            }
        }
    }
}

const ALL: &str = "ask approve approve_always edit answer deny";
const AGAIN: &str = "ask approve answer deny";

#[test]
fn a_fresh_call_is_made_given_asked_or_refused() {
    use ApprovalRule::{Always, Never};
    use Repeat::{Ask, Safe};
    let fixed = || Behind::Value(json!(5));
    for (case, expected) in [
        (Case::of(tool(Never, Ask)), "make"),
        (Case::of(tool(Never, Safe)), "make"),
        (Case::of(tool(Always, Safe)), ALL),
        (Case::of(tool(Never, Safe)).stepping(), ALL),
        (Case::of(tool(Never, Safe)).approved_by_policy(), ALL),
        (Case::of(tool(Never, Safe)).denied(), "throw policy_denied"),
        (Case::of(tool(Always, Safe)).denied(), "throw policy_denied"),
        (Case::of(fixed()), "reply 5"),
        (Case::of(fixed()).stepping(), ALL),
        (Case::of(fixed()).denied(), "throw policy_denied"),
        (Case::of(fixed()).approved_by_policy(), ALL),
        (Case::of(Behind::Person), "ask answer deny"),
        (Case::of(Behind::Person).stepping(), "ask answer deny"),
        (Case::of(Behind::Person).denied(), "throw policy_denied"),
        (Case::of(Behind::Nothing), "throw no_such_tool"),
    ] {
        assert_eq!(case.word(), expected, "{:?} {:?}", case.behind, case.policy);
    }
}

#[test]
fn what_was_asked_is_not_asked_twice_and_what_was_answered_is_obeyed_once() {
    let guarded = || Case::of(tool(ApprovalRule::Always, Repeat::Ask)).asked();
    assert_eq!(guarded().word(), "wait");
    assert_eq!(guarded().given(plainly(Choice::Approve)).word(), "make");
    assert_eq!(guarded().given(plainly(Choice::ApproveAlways)).word(), "make");
    assert_eq!(guarded().given(plainly(Choice::Edit)).word(), "make");
    assert_eq!(guarded().given(value(json!(1))).word(), "reply 1");
    assert_eq!(guarded().given(plainly(Choice::Deny)).word(), "throw denied");
    // The second answer to the same question is no answer.
    assert_eq!(guarded().given(plainly(Choice::Deny)).given(plainly(Choice::Approve)).word(), "throw denied");
    // A person who is asked for a value cannot let anything through.
    assert_eq!(Case::of(Behind::Person).asked().given(plainly(Choice::Approve)).word(), "throw no_such_tool");
    assert_eq!(Case::of(Behind::Value(json!(5))).asked().given(plainly(Choice::Approve)).word(), "reply 5");
    let by = By::Person { approval: "a1".into(), choice: Choice::Approve, who: "test".into() };
    assert_eq!(guarded().given(plainly(Choice::Approve)).todo(), Todo::Make(by));
}

#[test]
fn what_a_killed_daemon_had_begun_is_made_again_only_where_that_is_safe() {
    use ApprovalRule::{Always, Never};
    use Repeat::{Ask, Safe};
    let approve = || plainly(Choice::Approve);
    for (case, expected) in [
        (Case::of(tool(Never, Safe)).begun(), "make"),
        (Case::of(tool(Never, Ask)).begun(), AGAIN),
        (Case::of(tool(Always, Safe)).asked().given(approve()).begun(), "make"),
        (Case::of(tool(Always, Ask)).asked().given(approve()).begun(), AGAIN),
        (Case::of(tool(Never, Ask)).begun().asked(), "wait"),
        (Case::of(tool(Never, Ask)).begun().asked().given(approve()), "make"),
        (Case::of(tool(Never, Ask)).begun().asked().given(value(json!(1))), "reply 1"),
        // And it was killed once more while it made the call again.
        (Case::of(tool(Never, Ask)).begun().asked().given(approve()).begun(), AGAIN),
        // Nothing is called for these, so that they can be told again.
        (Case::of(Behind::Value(json!(5))).begun(), "reply 5"),
        (Case::of(Behind::Person).asked().given(value(json!(1))).begun(), "reply 1"),
        (Case::of(tool(Always, Ask)).asked().given(plainly(Choice::Deny)).begun(), "throw denied"),
        (Case::of(tool(Never, Ask)).denied().begun(), "throw policy_denied"),
        (Case::of(Behind::Value(json!(5))).stepping().asked().given(approve()).begun(), "reply 5"),
    ] {
        assert_eq!(case.word(), expected, "{:?}", case.journal);
    }
}

#[test]
fn what_has_a_result_is_never_made_again() {
    let thrown = Outcome::Thrown(Thrown::new("Denied", "no", "denied"));
    for outcome in [Outcome::Value(json!(1)), thrown] {
        let case = Case::of(tool(ApprovalRule::Never, Repeat::Safe)).begun().settled(outcome.clone());
        assert_eq!(case.todo(), Todo::Settled(outcome));
    }
}

#[test]
fn who_approved_always_is_not_asked_for_the_next_call_whatever_the_reason_was() {
    let mut case = Case::of(tool(ApprovalRule::Always, Repeat::Ask)).approved_by_policy().stepping();
    case = case.asked().given(plainly(Choice::ApproveAlways));
    case.journal.retain(|_| false);
    assert_eq!(case.word(), "make");
}
