//! A script again with the answers that it got: nothing is called, nobody is asked, and whatever it does otherwise ends it.

use std::collections::BTreeMap;

use super::outcome::{HostCall, Outcome};
use crate::runs::backend::Recorded;

/// A script that does not do what it did.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Diverged {
    #[error("the replay diverged at call {call}: it was `{was}` and is `{is}`")]
    Other { call: u64, was: String, is: String },
    #[error("the replay diverged at call {call}, `{is}`: the recording has no answer to it")]
    Unrecorded { call: u64, is: String },
}

/// What is answered next. Answers are given one by one in the order in which they came, so that a race is won by whoever won it then.
pub(super) fn next(
    waiting: &BTreeMap<u64, HostCall>,
    recorded: &[Recorded],
) -> Result<(u64, Outcome), Diverged> {
    for call in waiting.values() {
        let then = recorded.iter().find(|then| then.call == call.id);
        if let Some(then) = then
            && (then.capability != call.capability || then.args != call.args)
        {
            let was = crate::say::short(&format!("{}({})", then.capability, inside(&then.args.to_string())));
            return Err(Diverged::Other { call: call.id, was, is: call.text() });
        }
    }
    match recorded.iter().find(|then| waiting.contains_key(&then.call)) {
        Some(then) => Ok((then.call, Outcome::of_written(&then.outcome))),
        None => {
            let first = waiting.values().next();
            let (call, is) = first.map_or((0, String::new()), |call| (call.id, call.text()));
            Err(Diverged::Unrecorded { call, is })
        }
    }
}

fn inside(array: &str) -> &str {
    array.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(array)
}

#[cfg(test)]
mod tests {
    use outrigger_mustard::host::Plain;
    use outrigger_mustard::host::store::{CallId, Waiting};
    use serde_json::{Value, json};

    use super::*;

    fn waiting(calls: &[(u64, &str, f64)]) -> BTreeMap<u64, HostCall> {
        let call = |(id, name, arg): &(u64, &str, f64)| {
            let args = vec![Plain::Number(*arg)];
            (*id, HostCall::of(&Waiting { call: CallId(*id), capability: (*name).into(), args }))
        };
        calls.iter().map(call).collect()
    }

    fn recorded(call: u64, capability: &str, arg: i64, outcome: Result<Value, Value>) -> Recorded {
        Recorded { call, capability: capability.to_owned(), args: json!([arg]), outcome }
    }

    #[test]
    fn the_call_that_was_answered_first_is_answered_first() {
        let then = [recorded(2, "fast", 1, Ok(json!("b"))), recorded(1, "slow", 1, Ok(json!("a")))];
        let both = waiting(&[(1, "slow", 1.0), (2, "fast", 1.0)]);
        assert_eq!(next(&both, &then), Ok((2, Outcome::Value(json!("b")))));
        assert_eq!(next(&waiting(&[(1, "slow", 1.0)]), &then), Ok((1, Outcome::Value(json!("a")))));
    }

    #[test]
    fn another_call_or_other_arguments_or_one_call_more_are_told_with_the_number_of_the_call() {
        let then = [recorded(1, "f", 1, Ok(Value::Null))];
        let text = |calls: &[(u64, &str, f64)]| next(&waiting(calls), &then).unwrap_err().to_string();
        assert_eq!(text(&[(1, "f", 2.0)]), "the replay diverged at call 1: it was `f(1)` and is `f(2)`");
        assert_eq!(text(&[(1, "g", 1.0)]), "the replay diverged at call 1: it was `f(1)` and is `g(1)`");
        let more = "the replay diverged at call 2, `f(1)`: the recording has no answer to it";
        assert_eq!(text(&[(2, "f", 1.0)]), more);
    }

    #[test]
    fn what_was_thrown_is_thrown_again() {
        let error = json!({"name": "Denied", "message": "no", "code": "denied"});
        let then = [recorded(1, "f", 1, Err(error.clone()))];
        let (_, outcome) = next(&waiting(&[(1, "f", 1.0)]), &then).unwrap();
        assert_eq!(outcome.written(), Err(error));
    }
}
