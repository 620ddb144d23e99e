//! Turns that are steered, cancelled, cut off and resumed: at every place where that can happen.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::agent::{self, ContentMode, Steer, SteerMode};
use outrigger_steerable::chat::{Message, Role};
use outrigger_steerable::protocol::{SpanStatus, TraceStatus};
use outrigger_steerable::store::Stored;
use outrigger_steerable::tools::{Mode, Turns};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::agent_kit::{
    Answer, Bench, FakeTool, assert_sound, block_on, calls, echo, hangs, line, ok, says, status, user,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        what_is_said_meanwhile_is_heard_when_the_calls_are_answered,
        what_is_said_while_the_last_word_is_spoken_goes_on_with_the_turn,
        an_interrupt_cuts_the_model_and_keeps_what_it_said,
        an_interrupt_stops_running_tools_and_those_that_wait,
        a_steer_says_itself_whether_it_interrupts,
        a_turn_that_is_over_takes_nothing_more,
        a_soft_timeout_is_told_while_the_model_is_silent,
        a_cancel_keeps_what_the_model_has_said,
        a_cancel_stops_a_tool_and_answers_its_call,
        a_listener_that_does_not_read_makes_the_turn_wait_and_a_cancel_ends_it,
        a_turn_that_is_cancelled_anywhere_leaves_a_transcript_that_goes_on,
        a_turn_whose_process_dies_anywhere_is_resumed_to_the_same_end,
    ]
}

fn say(content: &str, mode: Option<SteerMode>) -> Steer {
    Steer::Say { content: content.to_owned(), mode }
}

/// A tool that tells when it runs, and then never ends.
fn stuck(running: &Arc<Notify>) -> FakeTool {
    let running = Arc::clone(running);
    FakeTool::new("stuck", Mode::Read, Turns::Together, move |_, _| {
        let running = Arc::clone(&running);
        async move {
            running.notify_one();
            std::future::pending().await
        }
    })
}

fn what_is_said_meanwhile_is_heard_when_the_calls_are_answered() {
    block_on(async {
        let (ear, steering) = mpsc::channel(8);
        let told = ear.clone();
        let look = FakeTool::new("look", Mode::Read, Turns::Together, move |_, _| {
            let told = told.clone();
            async move {
                told.send(say("only the cat", None)).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
                ok("a cat and a dog")
            }
        });
        let mut bench = Bench::new([calls([("c1", "look", json!({}))]), says("done")]).with(look);
        let turn = bench.turn(&[user("go")]);
        assert_eq!(status(&bench.steered(turn, steering).await), "completed");
        assert_eq!(bench.log()[1..4], ["result c1 ok", "round_end 1", "steer only the cat"]);
        assert_eq!(bench.model.prompt(1)[2..], ["tool c1: a cat and a dog", "user: only the cat"]);
    });
}

fn what_is_said_while_the_last_word_is_spoken_goes_on_with_the_turn() {
    block_on(async {
        let (ear, steering) = mpsc::channel(8);
        ear.send(say("and the dog?", None)).await.unwrap();
        // It was said before the turn began to listen, which is as good as during the first answer.
        let mut bench = Bench::new([says("A dog too.")]);
        let turn = bench.turn(&[user("What is it?")]);
        bench.steered(turn, steering).await;
        assert_eq!(bench.model.prompt(0), ["user: What is it?", "user: and the dog?"]);

        let (ear, steering) = mpsc::channel(8);
        let mut bench = Bench::new([hangs("A "), says("A dog too.")]);
        let model = Arc::clone(&bench.model);
        let turn = bench.turn(&[user("What is it?")]);
        let speak = async {
            model.hanging.notified().await;
            ear.send(say("and the dog?", Some(SteerMode::Interrupt))).await.unwrap();
        };
        let (ended, ()) = tokio::join!(bench.steered(turn, steering), speak);
        assert_eq!(status(&ended), "completed");
    });
}

fn an_interrupt_cuts_the_model_and_keeps_what_it_said() {
    block_on(async {
        let (ear, steering) = mpsc::channel(8);
        let mut bench = Bench::new([hangs("It is a "), says("A dog.")]);
        let model = Arc::clone(&bench.model);
        let mut turn = bench.turn(&[user("What is it?")]);
        turn.steer_mode = SteerMode::Interrupt;
        let speak = async {
            model.hanging.notified().await;
            ear.send(say("It barks.", None)).await.unwrap();
        };
        let (ended, ()) = tokio::join!(bench.steered(turn, steering), speak);
        assert_eq!(status(&ended), "completed");
        let expected = ["user: What is it?", "assistant: It is a ", "user: It barks.", "assistant: A dog."];
        assert_eq!(bench.transcript().await, expected);
        assert!(bench.log().contains(&"steer It barks."));
        let spans = bench.trace().await.spans;
        assert_eq!(spans[1].status, SpanStatus::Cancelled);
    });
}

fn an_interrupt_stops_running_tools_and_those_that_wait() {
    block_on(async {
        let (ear, steering) = mpsc::channel(8);
        let running = Arc::new(Notify::new());
        let waits = FakeTool::new("waits", Mode::Read, Turns::Alone, |_, _| async { ok("") });
        let made = Arc::clone(&waits.calls);
        let three =
            calls([("c1", "echo", json!({})), ("c2", "stuck", json!({})), ("c3", "waits", json!({}))]);
        let mut bench = Bench::new([three, says("Sorry.")])
            .with(echo("echo", Mode::Read))
            .with(stuck(&running))
            .with(waits);
        let turn = bench.turn(&[user("go")]);
        let speak = async {
            running.notified().await;
            // The quick one is done before anybody speaks.
            tokio::time::sleep(Duration::from_secs(1)).await;
            ear.send(say("Stop!", Some(SteerMode::Interrupt))).await.unwrap();
        };
        let (ended, ()) = tokio::join!(bench.steered(turn, steering), speak);
        assert_eq!(status(&ended), "completed");
        assert_eq!(made.load(Ordering::SeqCst), 0);
        assert_eq!(
            bench.transcript().await[2..],
            [
                "tool c1: {}",
                "tool c2: error: interrupted by the user",
                "tool c3: error: interrupted by the user",
                "user: Stop!",
                "assistant: Sorry.",
            ]
        );
        let tree = bench.trace().await;
        let span = tree.spans.iter().find(|span| span.name == "tool.stuck").unwrap();
        assert_eq!(span.status, SpanStatus::Cancelled);
    });
}

fn a_steer_says_itself_whether_it_interrupts() {
    block_on(async {
        let (ear, steering) = mpsc::channel(8);
        let running = Arc::new(Notify::new());
        let mut bench = Bench::new([calls([("c1", "stuck", json!({}))]), says("done")]).with(stuck(&running));
        let mut turn = bench.turn(&[user("go")]);
        turn.steer_mode = SteerMode::Interrupt;
        turn.tool_timeout = Duration::from_secs(9);
        let speak = async {
            running.notified().await;
            ear.send(say("When you have time.", Some(SteerMode::Boundary))).await.unwrap();
        };
        let (_, ()) = tokio::join!(bench.steered(turn, steering), speak);
        assert_eq!(bench.log()[1..4], ["result c1 tool_timeout", "round_end 1", "steer When you have time."]);
    });
}

fn a_turn_that_is_over_takes_nothing_more() {
    block_on(async {
        // With `final`, the last words are told when the turn is over; the end of the round just before that is not too late.
        for (at, taken, calls) in [("delta done", "not taken", 1), ("round_end 1", "taken", 2)] {
            let (ear, steering) = mpsc::channel(8);
            let mut bench = Bench::new([says("done"), says("done")]);
            bench.recorder.speaks_at = Some((at, ear));
            let mut turn = bench.turn(&[user("go")]);
            turn.content = ContentMode::Final;
            assert_eq!(status(&bench.steered(turn, steering).await), "completed");
            assert!(bench.log().contains(&taken), "{at}: {:?}", bench.log());
            assert_eq!(bench.model.times_called(), calls);
        }
    });
}

fn a_soft_timeout_is_told_while_the_model_is_silent() {
    block_on(async {
        let mut bench = Bench::new([hangs("Well ")]);
        let cancel = bench.cancel.clone();
        let mut turn = bench.turn(&[user("go")]);
        turn.soft_timeout = Some(Duration::from_secs(10));
        let stop = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            cancel.cancel();
        };
        let (ended, ()) = tokio::join!(bench.run(turn), stop);
        assert_eq!(status(&ended), "cancelled");
        assert_eq!(bench.log(), ["delta Well ", "soft_timeout"]);
    });
}

fn a_cancel_keeps_what_the_model_has_said() {
    block_on(async {
        let mut bench = Bench::new([hangs("It is a ")]);
        let (model, cancel) = (Arc::clone(&bench.model), bench.cancel.clone());
        let turn = bench.turn(&[user("What is it?")]);
        let stop = async {
            model.hanging.notified().await;
            cancel.cancel();
        };
        let (ended, ()) = tokio::join!(bench.run(turn), stop);
        assert_eq!(status(&ended), "cancelled");
        assert_eq!(bench.transcript().await, ["user: What is it?", "assistant: It is a "]);
        assert_eq!(bench.trace().await.trace.status, TraceStatus::Cancelled);
    });
}

fn a_cancel_stops_a_tool_and_answers_its_call() {
    block_on(async {
        let running = Arc::new(Notify::new());
        let mut bench = Bench::new([calls([("c1", "stuck", json!({}))])]).with(stuck(&running));
        let cancel = bench.cancel.clone();
        let turn = bench.turn(&[user("go")]);
        let stop = async {
            running.notified().await;
            cancel.cancel();
        };
        let (ended, ()) = tokio::join!(bench.run(turn), stop);
        assert_eq!(status(&ended), "cancelled");
        assert_eq!(bench.transcript().await[2..], ["tool c1: error: cancelled"]);
    });
}

fn a_listener_that_does_not_read_makes_the_turn_wait_and_a_cancel_ends_it() {
    block_on(async {
        for at in 1..=long_heard().await {
            let mut bench = long_bench();
            bench.recorder.deaf_at = Some(at);
            let cancel = bench.cancel.clone();
            let mut turn = bench.turn(&[user("go")]);
            turn.soft_timeout = Some(Duration::from_secs(5));
            let stop = async {
                tokio::time::sleep(Duration::from_secs(60)).await;
                cancel.cancel();
            };
            let (ended, ()) = tokio::join!(bench.run(turn), stop);
            assert_eq!(status(&ended), "cancelled", "{at}");
            // One model call at most is a few words ahead of the one who does not read.
            assert!(bench.log().len() <= at + 3, "{at}: {:?}", bench.log());
            assert_sound(&messages(&bench).await);
        }
    });
}

/// A turn of four rounds with everything in it.
fn long_turn() -> [Answer; 4] {
    [
        Answer {
            says: "First. ".to_owned(),
            ..calls([("a1", "look", json!({})), ("a2", "look", json!({}))])
        },
        calls([("b1", "missing", json!({}))]),
        Answer {
            says: "Then. ".to_owned(),
            ..calls([("d1", "alone", json!({})), ("d2", "look", json!({}))])
        },
        says("That was it."),
    ]
}

fn long_bench() -> Bench {
    let alone = FakeTool::new("alone", Mode::Read, Turns::Alone, |_, _| async { ok("alone") });
    Bench::new(long_turn()).by_position().with(echo("look", Mode::Read)).with(alone)
}

async fn messages(bench: &Bench) -> Vec<Message> {
    let stored = bench.store.transcript(&bench.record).await.unwrap();
    stored.into_iter().map(|Stored { message, .. }| message).collect()
}

fn a_turn_that_is_cancelled_anywhere_leaves_a_transcript_that_goes_on() {
    block_on(async {
        let mut cut = 0;
        loop {
            let mut bench = long_bench();
            bench.recorder.cancel_at = Some((cut, bench.cancel.clone()));
            if cut == 0 {
                bench.cancel.cancel();
            }
            let turn = bench.turn(&[user("go")]);
            let ended = bench.run(turn).await;
            let transcript = messages(&bench).await;
            assert_sound(&transcript);
            assert_eq!(line(&transcript[0]), "user: go", "{cut}");
            let heard = bench.log().len();
            if heard < cut {
                assert_eq!(status(&ended), "completed");
                break;
            }
            assert_eq!(status(&ended), "cancelled", "{cut}: {:?}", bench.log());
            let mut bench = bench.then([says("Here I am.")]);
            let turn = bench.turn(&[user("go on")]);
            assert_eq!(status(&bench.run(turn).await), "completed", "{cut}");
            assert_sound(&messages(&bench).await);
            cut += 1;
        }
        // As many places as the whole turn has things to tell.
        assert_eq!(cut, long_heard().await + 1);
    });
}

async fn long_heard() -> usize {
    let mut bench = long_bench();
    let turn = bench.turn(&[user("go")]);
    bench.run(turn).await;
    bench.log().len()
}

/// Drops the turn after so many polls, as a killed process would; then resumes it with nothing new.
fn a_turn_whose_process_dies_anywhere_is_resumed_to_the_same_end() {
    block_on(async {
        let mut whole = long_bench();
        let turn = whole.turn(&[user("go")]);
        whole.run(turn).await;
        let whole = whole.transcript().await;

        let mut lengths = std::collections::BTreeSet::new();
        for polls in 0.. {
            let mut bench = long_bench();
            let died = {
                let (turn, world) = (bench.turn(&[user("go")]), bench.world());
                let (_ear, steering) = mpsc::channel(1);
                let mut run =
                    pin!(agent::run(turn, world, steering, bench.cancel.clone(), &mut bench.recorder));
                let mut died = true;
                for _ in 0..polls {
                    if run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                        died = false;
                        break;
                    }
                    // The tools run in tasks of their own.
                    tokio::task::yield_now().await;
                }
                died
            };
            let stored = bench.store.transcript(&bench.record).await.unwrap().len();
            lengths.insert(stored);
            let told = bench.log().iter().filter(|line| line.starts_with("result")).count();
            let kept = messages(&bench).await.iter().filter(|message| message.role == Role::Tool).count();
            assert!(told <= kept, "{polls}: a result was told that is not stored");

            let mut bench = Bench::new(long_turn()).by_position().resuming(bench);
            let turn = if stored == 0 { bench.turn(&[user("go")]) } else { bench.turn(&[]) };
            let ended = bench.run(turn).await;
            let transcript = bench.transcript().await;
            assert_sound(&messages(&bench).await);
            if ended.reason.as_deref() != Some("nothing_to_answer") {
                assert_eq!(status(&ended), "completed", "{polls}");
            }
            assert_eq!(transcript.len(), whole.len(), "{polls}: {transcript:#?}");
            for (seen, expected) in transcript.iter().zip(&whole) {
                let lost = seen.starts_with("tool") && seen.contains("interrupted");
                assert!(lost || seen == expected, "{polls}: {seen} instead of {expected}");
            }
            if !died {
                break;
            }
        }
        // Every message was at some time the last one.
        assert_eq!(lengths, (0..=whole.len()).collect());
    });
}
