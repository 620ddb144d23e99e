//! What the agent asks of a person: calls that need consent, and questions. Each waits until the run's log has an answer.

use outrigger_abp::govern::approvals::input_hash;
use outrigger_steerable::host::{Answers, Decision, Questions, Verdict};
use serde_json::{Map, Value, json};

use crate::backends::order::job::Window;
use crate::chat::ask::Asked;
use crate::runs::backend::NewApproval;
use crate::runs::state::Moment;
use crate::runs::{Answer, Choice, DefaultAnswer};

/// What a question is called where tools are.
const QUESTION: &str = "question";

/// A question as the daemon puts it to people.
pub(super) trait Put {
    /// As a person gets it.
    fn put(&self, key: String, deadline: Option<Moment>, window: Window) -> NewApproval;

    /// Gives the answer to whoever waits; they may have stopped waiting.
    fn give(self, answer: &Answer, by: &str);
}

impl Put for Asked {
    fn put(&self, key: String, deadline: Option<Moment>, window: Window) -> NewApproval {
        match self {
            Self::Approval { request, .. } => {
                let input = Value::Object(request.arguments.clone()).to_string();
                let why = request.reason.as_deref().filter(|reason| !reason.is_empty());
                let mode = if request.mode.is_empty() { "other" } else { request.mode.as_str() };
                NewApproval {
                    key,
                    tool: request.tool_name.clone(),
                    input_sha256: input_hash(&input),
                    input,
                    reason: why.map_or_else(|| format!("a call of the kind `{mode}`"), str::to_owned),
                    choices: vec![Choice::Approve, Choice::ApproveAlways, Choice::Edit, Choice::Deny],
                    deadline,
                    default: window.default,
                }
            }
            Self::Questions { questions, .. } => {
                let form = form(questions);
                let input = form.to_string();
                let reason =
                    questions.intro.clone().or_else(|| Some(questions.questions.first()?.question.clone()));
                NewApproval {
                    key,
                    tool: QUESTION.to_owned(),
                    input_sha256: input_hash(&input),
                    input,
                    reason: reason.unwrap_or_else(|| "the agent asks something".to_owned()),
                    choices: vec![Choice::Answer, Choice::Deny],
                    deadline,
                    default: DefaultAnswer::Deny,
                }
            }
        }
    }

    fn give(self, answer: &Answer, by: &str) {
        match self {
            Self::Approval { answer: waiting, .. } => drop(waiting.send(decision(answer, by))),
            Self::Questions { questions, answer: waiting } => {
                drop(waiting.send(filled(&questions, answer, by)));
            }
        }
    }
}

/// The questions, for a person.
fn form(questions: &Questions) -> Value {
    let one = |question: &outrigger_steerable::host::Question| json!({ "id": question.id, "question": question.question, "options": question.options });
    let all: Vec<Value> = questions.questions.iter().map(one).collect();
    json!({ "message": questions.intro, "questions": all })
}

/// What was said to a call, as the runtime takes it.
fn decision(answer: &Answer, by: &str) -> Decision {
    let reason = answer.reason.clone().unwrap_or_else(|| format!("{} by {by}", answer.choice.word()));
    let verdict = match answer.choice {
        Choice::Approve => Verdict::AllowOnce,
        Choice::ApproveAlways => Verdict::AllowForSession,
        Choice::Edit => match &answer.arguments {
            Some(Value::Object(arguments)) => {
                let decision = Decision::new(Verdict::AllowOnce).because(reason);
                return Decision { amended_arguments: Some(arguments.clone()), ..decision };
            }
            _ => {
                let why = "the arguments that were to be used instead are no JSON object";
                return Decision::new(Verdict::DenyOnce).because(why);
            }
        },
        // A result in the call's place is nothing that the runtime takes, and was not offered.
        Choice::Answer | Choice::Deny => Verdict::DenyOnce,
    };
    Decision::new(verdict).because(reason)
}

/// What was said to questions, by their ids. A bare value answers a single one.
fn filled(questions: &Questions, answer: &Answer, by: &str) -> Result<Answers, String> {
    match (answer.choice, &answer.value) {
        (Choice::Answer, Some(Value::Object(answers))) => Ok(answers.clone()),
        (Choice::Answer, Some(value)) => match questions.questions.as_slice() {
            [only] => Ok(Map::from_iter([(only.id.clone(), value.clone())])),
            _ => Err("the answer does not say which question it is for".to_owned()),
        },
        (Choice::Answer, None)
        | (Choice::Approve | Choice::ApproveAlways | Choice::Edit | Choice::Deny, _) => {
            Err(answer.reason.clone().unwrap_or_else(|| format!("not answered, says {by}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use outrigger_steerable::host::{ApprovalRequest, Reverse};

    use super::*;
    use crate::chat::ask::Asker;

    fn answer(choice: Choice) -> Answer {
        Answer::plain(choice)
    }

    fn questions(ids: &[&str]) -> Questions {
        let all: Vec<Value> =
            ids.iter().map(|id| json!({ "id": id, "question": format!("{id}?") })).collect();
        serde_json::from_value(json!({ "intro": "First:", "questions": all })).unwrap()
    }

    #[test]
    fn every_choice_is_a_decision_of_the_runtime() {
        let edited = Answer { arguments: Some(json!({ "path": "b" })), ..answer(Choice::Edit) };
        let odd = Answer { arguments: Some(json!(["b"])), ..answer(Choice::Edit) };
        let cases = [
            (answer(Choice::Approve), "allow_once", "approve by me", false),
            (answer(Choice::ApproveAlways), "allow_for_session", "approve_always by me", false),
            (edited, "allow_once", "edit by me", true),
            (odd, "deny_once", "the arguments that were to be used instead are no JSON object", false),
            (answer(Choice::Deny), "deny_once", "deny by me", false),
            (Answer { reason: Some("no!".to_owned()), ..answer(Choice::Deny) }, "deny_once", "no!", false),
            (answer(Choice::Answer), "deny_once", "answer by me", false),
        ];
        for (answer, verdict, reason, amended) in cases {
            let given = decision(&answer, "me");
            let got = (given.verdict.word(), given.reason.as_deref(), given.amended_arguments.is_some());
            assert_eq!(got, (verdict, Some(reason), amended), "{answer:?}");
        }
    }

    #[test]
    fn questions_are_answered_by_their_ids_or_the_only_one_by_a_bare_value() {
        let said = |value: Value| Answer { value: Some(value), ..answer(Choice::Answer) };
        let (one, two) = (questions(&["a"]), questions(&["a", "b"]));
        let map = |value: Value| Ok(value.as_object().unwrap().clone());
        assert_eq!(filled(&two, &said(json!({ "a": 1, "b": 2 })), "me"), map(json!({ "a": 1, "b": 2 })));
        assert_eq!(filled(&one, &said(json!("yes")), "me"), map(json!({ "a": "yes" })));
        let unclear = Err("the answer does not say which question it is for".to_owned());
        assert_eq!(filled(&two, &said(json!("yes")), "me"), unclear);
        assert_eq!(filled(&one, &answer(Choice::Deny), "me"), Err("not answered, says me".to_owned()));
        assert_eq!(filled(&one, &answer(Choice::Answer), "me"), Err("not answered, says me".to_owned()));
    }

    #[tokio::test]
    async fn what_is_asked_is_put_whole_and_the_answer_comes_back() {
        let (asker, mut asked) = Asker::new();
        let window = Window { within: None, default: DefaultAnswer::Approve };
        let request: ApprovalRequest = serde_json::from_value(
            json!({ "toolName": "write_file", "arguments": { "path": "a" }, "mode": "safe_write" }),
        )
        .unwrap();
        let (decision, ()) = tokio::join!(asker.approve(request), async {
            let one = asked.recv().await.unwrap();
            let put = one.put("p1".to_owned(), None, window);
            assert_eq!((put.tool.as_str(), put.input.as_str()), ("write_file", r#"{"path":"a"}"#));
            assert_eq!(
                (put.reason.as_str(), put.default),
                ("a call of the kind `safe_write`", DefaultAnswer::Approve)
            );
            assert_eq!(put.input_sha256, input_hash(r#"{ "path": "a" }"#));
            one.give(&answer(Choice::Approve), "me");
        });
        assert_eq!(decision.verdict, Verdict::AllowOnce);
        let (answers, ()) = tokio::join!(asker.ask(questions(&["a"])), async {
            let one = asked.recv().await.unwrap();
            let put = one.put("p2".to_owned(), None, window);
            assert_eq!(
                (put.tool.as_str(), put.reason.as_str(), put.default),
                ("question", "First:", DefaultAnswer::Deny)
            );
            drop(one);
        });
        assert_eq!(answers, Err("nobody is here to answer".to_owned()));
    }
}
