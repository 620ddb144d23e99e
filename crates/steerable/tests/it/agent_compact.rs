//! Transcripts that become too long: compacted before a call, after an overflow, or because somebody asks.

use libtest_mimic::Trial;
use outrigger_steerable::agent::{Budgets, Steer};
use outrigger_steerable::chat::Role;
use outrigger_steerable::model::FailureKind;
use outrigger_steerable::tools::{Mode, Turns};
use serde_json::json;
use tokio::sync::mpsc;

use crate::agent_kit::{
    Answer, Bench, FakeTool, assert_sound, block_on, calls, fails, ok, says, status, user,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_transcript_that_is_too_long_is_summarised_before_the_next_call,
        a_summary_that_cannot_be_had_makes_room_by_dropping_old_outputs,
        an_overflow_compacts_and_tries_once_more,
        an_overflow_that_stays_is_the_end,
        somebody_who_asks_for_compaction_gets_it_at_the_next_boundary,
        a_summary_that_the_budget_does_not_cover_is_not_asked_for,
        a_resumed_turn_sees_the_summary_and_nothing_is_lost,
    ]
}

/// A tool whose output is long.
fn chatty(bytes: usize) -> FakeTool {
    FakeTool::new("look", Mode::Read, Turns::Together, move |_, _| async move { ok(&"x".repeat(bytes)) })
}

fn looks(id: &str) -> Answer {
    calls([(id, "look", json!({}))])
}

/// The texts of a prompt, the long ones shortened.
fn shape(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line.chars().take(60).collect()).collect()
}

fn a_transcript_that_is_too_long_is_summarised_before_the_next_call() {
    block_on(async {
        let answers = [looks("c1"), looks("c2"), looks("c3"), says("Two cats were seen."), says("done")];
        let mut bench = Bench::new(answers).with(chatty(4_000));
        let mut turn = bench.turn(&[user("Count the cats.")]);
        turn.system_prompt = Some("Be brief.".to_owned());
        turn.max_context_tokens = Some(2_500);
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert!(bench.log().contains(&"compaction smaller: true"), "{:?}", bench.log());
        // The fourth call is the one that writes the summary: it has no tools and reads the older part.
        let requests = bench.model.seen.lock().unwrap().clone();
        assert_eq!(requests[3].tools.len(), 0);
        assert!(requests[3].messages[1].plain_text().contains("[calls look {}]"));
        let prompt = shape(&bench.model.prompt(4));
        assert_eq!(prompt[0], "system: Be brief.");
        assert_eq!(prompt[1], "user: Count the cats.");
        assert_eq!(prompt[2], "user: [Summary of the earlier part of this conversation]\nTwo");
        assert_eq!(prompt[3], "assistant: [c3 look {}]");
        assert!(prompt[4].starts_with("tool c3: xxx"));
        assert_eq!(prompt.len(), 5);
        assert_sound(&requests[4].messages);
    });
}

fn a_summary_that_cannot_be_had_makes_room_by_dropping_old_outputs() {
    block_on(async {
        let answers = [looks("c1"), looks("c2"), looks("c3"), fails(FailureKind::Server), says("done")];
        let mut bench = Bench::new(answers).with(chatty(4_000));
        let mut turn = bench.turn(&[user("Count the cats.")]);
        turn.max_context_tokens = Some(2_500);
        assert_eq!(status(&bench.run(turn).await), "completed");
        let requests = bench.model.seen.lock().unwrap().clone();
        let lengths: Vec<usize> = requests[4]
            .messages
            .iter()
            .filter(|message| message.role == Role::Tool)
            .map(|message| message.plain_text().len())
            .collect();
        assert!(lengths[0] < 500 && lengths[2] == 4_000, "{lengths:?}");
        assert_sound(&requests[4].messages);
    });
}

fn an_overflow_compacts_and_tries_once_more() {
    block_on(async {
        let answers = [
            looks("c1"),
            looks("c2"),
            fails(FailureKind::ContextOverflow),
            says("A cat was seen."),
            says("done"),
        ];
        let mut bench = Bench::new(answers).with(chatty(4_000));
        let turn = bench.turn(&[user("Count the cats.")]);
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert!(bench.log().contains(&"compaction smaller: true"));
        assert_eq!(bench.model.prompt(4).len(), 4);
        assert_eq!(bench.log().last(), Some(&"round_end 3"));
    });
}

fn an_overflow_that_stays_is_the_end() {
    block_on(async {
        let overflow = || fails(FailureKind::ContextOverflow);
        let mut bench = Bench::new([looks("c1"), overflow(), overflow(), overflow()]).with(chatty(4_000));
        let turn = bench.turn(&[user("go")]);
        assert_eq!(status(&bench.run(turn).await), "context_overflow: the provider said no");

        // With nothing that could be made smaller, it is not tried again.
        let mut bench = Bench::new([overflow()]);
        let turn = bench.turn(&[user("go")]);
        assert_eq!(status(&bench.run(turn).await), "context_overflow: the provider said no");
        assert_eq!(bench.model.times_called(), 1);
    });
}

fn somebody_who_asks_for_compaction_gets_it_at_the_next_boundary() {
    block_on(async {
        let (ear, steering) = mpsc::channel(1);
        let told = ear.clone();
        let look = FakeTool::new("look", Mode::Read, Turns::Together, move |_, _| {
            let told = told.clone();
            async move {
                told.send(Steer::Compact).await.unwrap();
                ok(&"x".repeat(4_000))
            }
        });
        let both = calls([("c1", "look", json!({})), ("c2", "look", json!({}))]);
        let mut bench = Bench::new([both, says("done")]).with(look);
        let turn = bench.turn(&[user("go")]);
        assert_eq!(status(&bench.steered(turn, steering).await), "completed");
        let log = bench.log();
        let at = log.iter().position(|line| line.starts_with("compaction")).unwrap();
        assert_eq!(log[at - 1], "round_end 1");
        drop(ear);
    });
}

fn a_summary_that_the_budget_does_not_cover_is_not_asked_for() {
    block_on(async {
        let mut bench = Bench::new([looks("c1"), looks("c2"), looks("c3")]).with(chatty(4_000));
        let mut turn = bench.turn(&[user("go")]);
        turn.max_context_tokens = Some(2_500);
        // The three rounds cost about 3,100 by estimate; the writer of a summary would read 1,300 more.
        turn.budgets = Budgets { tokens: Some(4_000), ..Budgets::STANDARD };
        assert_eq!(status(&bench.run(turn).await), "budget_exhausted");
        assert_eq!(bench.model.times_called(), 3);
        assert!(bench.log().contains(&"compaction smaller: true"), "{:?}", bench.log());
    });
}

fn a_resumed_turn_sees_the_summary_and_nothing_is_lost() {
    block_on(async {
        let answers = [looks("c1"), looks("c2"), looks("c3"), says("Two cats were seen."), says("done")];
        let mut bench = Bench::new(answers).with(chatty(4_000));
        let mut turn = bench.turn(&[user("Count the cats.")]);
        turn.max_context_tokens = Some(2_500);
        bench.run(turn).await;
        let mut bench = bench.then([says("again")]);
        let turn = bench.turn(&[user("And now?")]);
        bench.run(turn).await;
        let prompt = shape(&bench.model.prompt(0));
        assert_eq!(prompt[1], "user: [Summary of the earlier part of this conversation]\nTwo");
        assert_eq!(prompt.len(), 6);
        let history = bench.store.history(&bench.record).await.unwrap();
        assert_eq!(history.len(), 10);
    });
}
