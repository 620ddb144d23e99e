//! Turns as sequences of events: what happens on the left, what the course says comes next on the right.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const NO_RULES: Rules =
    Rules { budgets: Budgets::STANDARD, max_tokens: None, max_context_tokens: None, schema: None };

fn budgets(rounds: Option<u64>, tokens: Option<u64>, tool_errors: Option<u64>) -> Rules {
    Rules { budgets: Budgets { rounds, tokens, tool_errors, ..Budgets::STANDARD }, ..NO_RULES }
}

fn asked(name: &str) -> Asked {
    let arguments = RawValue::from_string("{}".to_owned()).unwrap();
    Asked { call: ToolCall { id: "c1".to_owned(), name: name.to_owned(), arguments }, unread: None }
}

fn calls(name: &str) -> Spoken {
    Spoken { calls: vec![asked(name)], finish: Some("tool_calls".to_owned()), ..Spoken::default() }
}

fn says(text: &str) -> Spoken {
    Spoken { text: text.to_owned(), finish: Some("stop".to_owned()), ..Spoken::default() }
}

fn used(tokens: u64) -> Usage {
    Usage { prompt_tokens: tokens, total_tokens: tokens, ..Usage::default() }
}

fn overflow() -> Failure {
    Failure::new(FailureKind::ContextOverflow, "too long")
}

/// What comes next, in a few words.
fn next(course: &mut Course, prompt: u64) -> String {
    match course.next(prompt) {
        Next::RoundEnd(round) => format!("round {round} ends"),
        Next::Hear(said) => format!("hear {}", said.join("+")),
        Next::Repair(_) => "repair".to_owned(),
        Next::Compact => "compact".to_owned(),
        Next::Model(Cap::Asked(None)) => "model".to_owned(),
        Next::Model(Cap::Asked(Some(most))) => format!("model of {most} asked"),
        Next::Model(Cap::Budget(most)) => format!("model of {most} left"),
        Next::Tools(calls) => format!("tools {}", calls.len()),
        Next::End(End::Completed { reason, output }) => format!("completed {reason:?} {output:?}"),
        Next::End(End::Exhausted(Exhausted { budget, limit, used })) => {
            format!("exhausted {} {used}/{limit}", budget.word())
        }
        Next::End(End::Cancelled { reason }) => format!("cancelled {reason:?}"),
        Next::End(End::Failed { failure, reason }) => format!("failed {} {reason:?}", failure.kind.word()),
    }
}

fn fails(course: &mut Course, name: &str) -> Option<String> {
    course.result(&asked(name).call, &ToolResult::failure("no"), Blame::Tool)
}

#[test]
fn a_model_that_calls_a_tool_and_then_answers_takes_two_rounds() {
    let mut course = Course::new(NO_RULES);
    assert_eq!(next(&mut course, 1), "model");
    course.answered(calls("read_file"));
    assert_eq!(next(&mut course, 1), "tools 1");
    let data = serde_json::Map::new();
    assert_eq!(course.result(&asked("read_file").call, &ToolResult::success(data), Blame::Tool), None);
    course.acted();
    assert_eq!(next(&mut course, 1), "round 1 ends");
    assert_eq!(next(&mut course, 1), "model");
    course.answered(says("done"));
    assert_eq!(next(&mut course, 1), "round 2 ends");
    assert_eq!(next(&mut course, 1), "completed None None");
    assert_eq!(next(&mut course, 1), "completed None None");
}

#[test]
fn a_model_call_that_would_cross_the_token_budget_is_not_made() {
    for (limit, prompt, expected) in
        [(100, 99, "model of 1 left"), (100, 100, "exhausted tokens 0/100"), (0, 0, "exhausted tokens 0/0")]
    {
        let mut course = Course::new(budgets(None, Some(limit), None));
        assert_eq!(next(&mut course, prompt), expected, "{limit} {prompt}");
    }
    let mut course = Course::new(budgets(None, Some(100), None));
    assert_eq!(next(&mut course, 10), "model of 90 left");
    course.spent(used(60));
    course.answered(calls("read_file"));
    next(&mut course, 0);
    course.acted();
    next(&mut course, 0);
    assert_eq!(next(&mut course, 40), "exhausted tokens 60/100");
}

#[test]
fn the_host_s_own_limit_on_an_answer_stands_where_the_budget_covers_it() {
    let rules = |max_tokens| Rules { max_tokens, ..budgets(None, Some(100), None) };
    assert_eq!(next(&mut Course::new(rules(Some(50))), 50), "model of 50 asked");
    assert_eq!(next(&mut Course::new(rules(Some(50))), 51), "model of 49 left");
}

#[test]
fn an_answer_that_the_budget_cut_is_a_budget_s_end_and_one_that_the_host_cut_is_not() {
    let cut = || Spoken { finish: Some("length".to_owned()), ..says("and then") };
    let mut course = Course::new(budgets(None, Some(100), None));
    next(&mut course, 50);
    course.spent(used(100));
    course.answered(cut());
    assert_eq!(next(&mut course, 1), "round 1 ends");
    assert_eq!(next(&mut course, 1), "exhausted tokens 100/100");
    let mut course = Course::new(NO_RULES);
    next(&mut course, 50);
    course.answered(cut());
    next(&mut course, 1);
    assert_eq!(next(&mut course, 1), "completed Some(\"length\") None");
}

#[test]
fn rounds_are_counted_before_they_begin() {
    let mut course = Course::new(budgets(Some(1), None, None));
    assert_eq!(next(&mut course, 1), "model");
    course.answered(calls("read_file"));
    next(&mut course, 1);
    course.acted();
    next(&mut course, 1);
    assert_eq!(next(&mut course, 1), "exhausted rounds 1/1");
    assert_eq!(next(&mut Course::new(budgets(Some(0), None, None)), 1), "exhausted rounds 0/0");
}

#[test]
fn one_failed_call_more_than_is_put_up_with_ends_the_turn() {
    let mut course = Course::new(budgets(None, None, Some(1)));
    for (name, expected) in [("a", "model"), ("b", "exhausted tool_errors 2/1")] {
        course.answered(calls(name));
        next(&mut course, 1);
        fails(&mut course, name);
        course.acted();
        next(&mut course, 1);
        assert_eq!(next(&mut course, 1), expected);
    }
}

#[test]
fn what_a_person_refused_or_stopped_is_no_error_of_a_tool() {
    let mut course = Course::new(budgets(None, None, Some(0)));
    course.result(&asked("a").call, &ToolResult::failure("approval_denied"), Blame::Person);
    course.result(&asked("a").call, &ToolResult::failure("interrupted"), Blame::Nobody);
    assert_eq!(next(&mut course, 1), "model");
}

#[test]
fn the_same_failing_call_is_told_at_the_third_and_ends_the_turn_at_the_fifth_time() {
    let mut course = Course::new(NO_RULES);
    for time in 1..=5 {
        next(&mut course, 1);
        course.answered(calls("a"));
        next(&mut course, 1);
        let note = fails(&mut course, "a");
        assert_eq!(note.is_some(), time == 3 || time == 4, "{time}");
        course.acted();
        if time < 5 {
            assert_eq!(next(&mut course, 1), format!("round {time} ends"));
        }
    }
    assert_eq!(next(&mut course, 1), "failed unknown Some(\"repeated_failure\")");
}

#[test]
fn who_speaks_while_the_last_word_is_said_is_heard() {
    let mut course = Course::new(NO_RULES);
    next(&mut course, 1);
    course.steered("wait".to_owned());
    course.steered("and".to_owned());
    course.answered(says("done"));
    assert_eq!(next(&mut course, 1), "round 1 ends");
    assert_eq!(next(&mut course, 1), "hear wait+and");
    assert_eq!(next(&mut course, 1), "model");
}

#[test]
fn who_speaks_in_the_moment_of_the_end_is_heard_after_all() {
    let mut course = Course::new(NO_RULES);
    next(&mut course, 1);
    course.answered(says("done"));
    next(&mut course, 1);
    let Next::End(end) = course.next(1) else { panic!("it is over") };
    assert!(!course.heard_after_all(&end));
    course.steered("wait".to_owned());
    assert!(course.heard_after_all(&end));
    assert_eq!(next(&mut course, 1), "hear wait");
    course.cancelled(None);
    course.steered("wait".to_owned());
    let Next::End(end) = course.next(1) else { panic!("it is over") };
    assert!(!course.heard_after_all(&end));
}

#[test]
fn steering_waits_until_the_calls_of_the_round_are_answered() {
    let mut course = Course::new(NO_RULES);
    next(&mut course, 1);
    course.answered(calls("a"));
    course.steered("wait".to_owned());
    assert_eq!(next(&mut course, 1), "tools 1");
    course.acted();
    assert_eq!(next(&mut course, 1), "round 1 ends");
    assert_eq!(next(&mut course, 1), "hear wait");
}

#[test]
fn a_prompt_that_is_too_long_is_compacted_once_before_each_call() {
    let mut course = Course::new(Rules { max_context_tokens: Some(100), ..NO_RULES });
    assert_eq!(next(&mut course, 100), "model");
    course.answered(calls("a"));
    next(&mut course, 1);
    course.acted();
    next(&mut course, 1);
    assert_eq!(next(&mut course, 101), "compact");
    course.compacted(Compacted::Nothing);
    assert_eq!(next(&mut course, 101), "model");
}

#[test]
fn an_overflow_is_mended_once_and_does_not_count_as_a_round() {
    let mut course = Course::new(budgets(Some(1), None, None));
    next(&mut course, 1);
    course.failed(overflow());
    assert_eq!(next(&mut course, 1), "compact");
    course.compacted(Compacted::Smaller);
    assert_eq!(next(&mut course, 1), "model");
    course.failed(overflow());
    assert_eq!(next(&mut course, 1), "failed context_overflow None");
}

#[test]
fn an_overflow_with_nothing_to_compact_is_the_end() {
    let mut course = Course::new(NO_RULES);
    next(&mut course, 1);
    course.failed(overflow());
    next(&mut course, 1);
    course.compacted(Compacted::Nothing);
    assert_eq!(next(&mut course, 1), "failed context_overflow None");
}

#[test]
fn an_answer_that_does_not_fit_is_sent_back_twice() {
    let schema = RawValue::from_string(json!({"type": "integer"}).to_string()).unwrap();
    let rules = || Rules { schema: Some(schema.clone()), ..NO_RULES };
    let mut course = Course::new(rules());
    for round in 1..=2 {
        assert_eq!(next(&mut course, 1), "model");
        course.answered(says("one"));
        assert_eq!(next(&mut course, 1), format!("round {round} ends"));
        assert_eq!(next(&mut course, 1), "repair");
    }
    let mut mended = Course::new(rules());
    next(&mut mended, 1);
    mended.answered(says("7"));
    next(&mut mended, 1);
    assert_eq!(next(&mut mended, 1), "completed None Some(Number(7))");
    assert_eq!(next(&mut course, 1), "model");
    course.answered(says("one"));
    assert_eq!(next(&mut course, 1), "round 3 ends");
    assert_eq!(next(&mut course, 1), "failed invalid_request Some(\"invalid_output\")");
}

#[test]
fn a_terminal_result_is_the_last_word() {
    let mut course = Course::new(NO_RULES);
    next(&mut course, 1);
    course.answered(calls("a"));
    next(&mut course, 1);
    let result = ToolResult { terminal: Some(true), ..ToolResult::success(serde_json::Map::new()) };
    course.result(&asked("a").call, &result, Blame::Tool);
    assert!(course.is_over());
    course.acted();
    assert_eq!(next(&mut course, 1), "completed Some(\"terminal_result\") None");
}

#[test]
fn a_cancel_wins_over_whatever_else_was_to_come() {
    let mut course = Course::new(NO_RULES);
    next(&mut course, 1);
    course.answered(says("done"));
    course.steered("wait".to_owned());
    course.cancelled(None);
    assert_eq!(next(&mut course, 1), "cancelled None");
    course.acted();
    assert_eq!(next(&mut course, 1), "cancelled None");
}

/// Something that happens to a turn.
#[derive(Clone, Debug)]
enum Happens {
    Answer(Spoke),
    Fail(bool),
    Interrupt,
    Steer,
    Compact,
    Cancel,
    Spend(u64),
}

#[derive(Clone, Debug)]
enum Spoke {
    Words,
    Calls(u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (0u8..4).prop_map(|calls| Happens::Answer(Spoke::Calls(calls))),
        2 => Just(Happens::Answer(Spoke::Words)),
        1 => any::<bool>().prop_map(Happens::Fail),
        1 => Just(Happens::Interrupt),
        2 => Just(Happens::Steer),
        1 => Just(Happens::Compact),
        1 => Just(Happens::Cancel),
        2 => (0u64..400).prop_map(Happens::Spend),
    ]
}

proptest! {
    /// Whatever happens: no call of the model beyond a budget, nothing after the end, and no step that leads nowhere.
    #[test]
    fn no_sequence_of_events_crosses_a_budget_or_outlives_the_end(
        events in proptest::collection::vec(happens(), 0..60),
        limit in 1u64..2_000,
        most_rounds in 0u64..10,
        prompt in 0u64..300,
    ) {
        let rules = Rules { max_context_tokens: Some(250), ..budgets(Some(most_rounds), Some(limit), None) };
        let mut course = Course::new(rules);
        let mut events = events.into_iter();
        let (mut rounds, mut tokens, mut idle, mut over) = (0, 0, 0, false);
        for _ in 0..400 {
            let next = course.next(prompt);
            prop_assert!(!over || matches!(next, Next::End(_)), "{next:?} after the end");
            idle += 1;
            match next {
                Next::End(_) => over = true,
                Next::RoundEnd(_) | Next::Hear(_) | Next::Repair(_) => {}
                Next::Compact => course.compacted(Compacted::Smaller),
                Next::Tools(calls) => {
                    for asked in calls {
                        course.result(&asked.call, &ToolResult::failure("no"), Blame::Person);
                    }
                    course.acted();
                }
                Next::Model(cap) => {
                    idle = 0;
                    rounds += 1;
                    prop_assert!(rounds <= most_rounds);
                    let most = cap.max_tokens().unwrap_or(0);
                    prop_assert!(most > 0 && tokens + prompt + most <= limit, "{tokens} {prompt} {cap:?} {limit}");
                    loop {
                        match events.next() {
                            Some(Happens::Answer(Spoke::Words)) | None => break course.answered(says("done")),
                            Some(Happens::Answer(Spoke::Calls(count))) => {
                                let calls = (0..count).map(|_| asked("a")).collect();
                                break course.answered(Spoken { calls, ..Spoken::default() });
                            }
                            Some(Happens::Fail(true)) => {
                                rounds -= 1;
                                break course.failed(overflow());
                            }
                            Some(Happens::Fail(false)) => {
                                break course.failed(Failure::new(FailureKind::Auth, "no"));
                            }
                            Some(Happens::Interrupt) => {
                                course.steered("stop".to_owned());
                                break course.interrupted();
                            }
                            Some(Happens::Cancel) => break course.cancelled(None),
                            Some(Happens::Steer) => course.steered("more".to_owned()),
                            Some(Happens::Compact) => course.compact(),
                            Some(Happens::Spend(spent)) => {
                                tokens += spent;
                                course.spent(used(spent));
                            }
                        }
                    }
                }
            }
            prop_assert!(idle < 8, "no call of the model and no end in eight steps");
            if over && idle > 3 {
                break;
            }
        }
        prop_assert!(over);
    }
}
