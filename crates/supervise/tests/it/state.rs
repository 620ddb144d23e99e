//! The life of a child as event sequences, with no process at all.

use std::num::NonZeroU32;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_supervise::state::{
    Ask, Backoff, Counted, CrashLimit, Heartbeat, Machine, Moment, Policy, PolicyError, Restart, Retry,
};

use crate::state_script::{check, play};

pub(crate) fn trials() -> Vec<Trial> {
    crate::trials![
        a_child_is_ready_when_its_gate_opens,
        a_child_without_a_gate_is_ready_when_it_runs,
        a_child_that_is_never_ready_is_killed_at_the_deadline,
        ready_at_the_very_deadline_still_counts,
        the_deadline_starts_with_the_process_not_with_the_queue,
        exit_zero_before_ready_is_a_failure,
        exit_zero_after_ready_is_a_farewell,
        a_child_that_must_always_run_comes_back_after_a_farewell_without_counting,
        a_crash_is_followed_by_growing_waits,
        the_waits_are_spread_but_never_beyond_the_jitter,
        a_stable_stretch_makes_the_next_wait_the_first_one_again,
        a_missed_heartbeat_breaks_the_stable_stretch,
        the_crash_that_completes_the_loop_is_the_last,
        crashes_leave_the_window_one_by_one,
        a_crash_exactly_as_old_as_the_window_still_counts,
        crashes_of_an_earlier_host_count,
        a_child_that_crashes_slowly_for_ever_is_given_up,
        attempts_can_be_limited,
        a_policy_of_never_means_never,
        codes_that_say_it_cannot_help_end_it,
        a_program_that_cannot_be_started_is_not_tried_again,
        a_host_short_of_resources_waits_and_does_not_blame_the_child,
        an_unexplained_launch_failure_cannot_go_on_for_ever,
        a_stop_asks_then_terminates_then_kills,
        a_stop_without_anybody_to_ask_begins_with_sigterm,
        a_request_that_cannot_be_delivered_is_skipped,
        a_rung_without_a_budget_is_skipped,
        a_second_stop_means_now,
        a_stop_is_done_only_when_everything_is_reaped,
        a_stop_during_the_launch_withdraws_it,
        a_stop_during_the_launch_kills_what_came_too_late,
        a_stop_before_ready_does_not_ask,
        a_stop_during_backoff_ends_it_at_once,
        a_stop_while_it_is_killed_for_a_fault_prevents_the_restart,
        a_stop_while_it_restarts_prevents_the_restart,
        a_restart_is_neither_a_crash_nor_a_wait,
        a_restart_during_backoff_does_not_wait,
        a_child_that_answers_its_pings_lives,
        a_missed_ping_is_a_warning_and_an_answer_lifts_it,
        pings_missed_in_a_row_end_it,
        a_late_answer_is_not_taken_for_a_fresh_one,
        a_host_that_slept_does_not_blame_the_child,
        a_child_that_falls_silent_is_killed,
        silence_counts_only_while_a_stream_is_active,
        a_host_that_slept_does_not_count_the_silence,
        a_closed_channel_waits_for_the_exit_that_explains_it,
        a_closed_channel_without_an_exit_is_a_fault,
        a_child_that_breaks_its_protocol_is_killed_and_restarted,
        an_incompatible_child_is_not_tried_again,
        what_an_earlier_process_says_changes_nothing,
        a_crash_limit_that_could_never_trip_is_refused_with_the_arithmetic,
        a_crash_limit_that_just_can_trip_trips,
        times_of_zero_are_refused,
    ]
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn times(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("not zero")
}

fn retry() -> Retry {
    Retry {
        backoff: Backoff { first: Duration::from_millis(500), cap: secs(4), jitter_percent: 0 },
        stable_after: secs(300),
        max_attempts: None,
        crash_loop: CrashLimit { crashes: times(5), within: secs(600) },
        slow_crash: None,
        permanent_codes: vec![78],
    }
}

/// Ready within 10 s, restarted on failure, somebody can ask it to leave.
fn usual() -> Policy {
    Policy {
        ready_within: Some(secs(10)),
        heartbeat: Heartbeat::None,
        restart: Restart::OnFailure(retry()),
        ask: Ask::Session,
    }
}

fn with_retry(change: impl FnOnce(&mut Retry)) -> Policy {
    let mut changed = retry();
    change(&mut changed);
    Policy { restart: Restart::OnFailure(changed), ..usual() }
}

fn pinged() -> Policy {
    Policy { heartbeat: Heartbeat::WePing { every: secs(5), missed: times(3) }, ..usual() }
}

fn beating(counted: Counted) -> Policy {
    Policy { heartbeat: Heartbeat::TheyBeat { silence: secs(45), counted }, ..usual() }
}

fn a_child_is_ready_when_its_gate_opens() {
    check(usual(), "start spawned ready@0.1", "starting spawn#1 @0.1 ready");
}

fn a_child_without_a_gate_is_ready_when_it_runs() {
    check(Policy { ready_within: None, ..usual() }, "start spawned@1", "starting spawn#1 @1 ready");
}

fn a_child_that_is_never_ready_is_killed_at_the_deadline() {
    check(
        usual(),
        "start spawned signal(9)@11 spawned@12",
        "starting spawn#1 @10 stopping_kill kill @11 ended(startup_timeout→restart1+0.5) backoff @11.5 starting spawn#2",
    );
}

fn ready_at_the_very_deadline_still_counts() {
    check(usual(), "start spawned ready@10 wait@20", "starting spawn#1 @10 ready");
    check(usual(), "start spawned ready@10.001", "starting spawn#1 @10 stopping_kill kill");
}

fn the_deadline_starts_with_the_process_not_with_the_queue() {
    check(usual(), "start spawned@100 ready@109", "starting spawn#1 @109 ready");
}

fn exit_zero_before_ready_is_a_failure() {
    check(
        usual(),
        "start spawned exit(0)@1",
        "starting spawn#1 @1 ended(exit_before_ready→restart1+0.5) backoff",
    );
}

fn exit_zero_after_ready_is_a_farewell() {
    check(
        usual(),
        "start spawned ready exit(0)@1",
        "starting spawn#1 ready @1 ended(voluntary→voluntary) exited",
    );
}

fn a_child_that_must_always_run_comes_back_after_a_farewell_without_counting() {
    let always = Policy { restart: Restart::Always(retry()), ..usual() };
    let mut events = String::from("start");
    for _ in 0..20 {
        events.push_str(" spawned ready exit(0) wait@");
        events.push_str(&(events.matches("wait").count() * 10).to_string());
    }
    let followed = play(always, &events);
    assert_eq!(followed.matches("ended(voluntary→restart").count(), 20, "{followed}");
    assert!(followed.ends_with("starting spawn#21"), "{followed}");
    assert!(followed.contains("ended(voluntary→restart20+4)"), "{followed}");
}

fn a_crash_is_followed_by_growing_waits() {
    check(
        usual(),
        "start spawned ready exit(1) wait@1 spawned ready signal(11)@2 wait@3.5 spawned exit(2)@4 wait@6 spawned exit(2) wait",
        "starting spawn#1 ready ended(crash→restart1+0.5) backoff @0.5 starting spawn#2
         @1 ready @2 ended(crash→restart2+1) backoff @3 starting spawn#3
         @4 ended(exit_before_ready→restart3+2) backoff @6 starting spawn#4
         ended(exit_before_ready→restart4+4) backoff",
    );
}

fn the_waits_are_spread_but_never_beyond_the_jitter() {
    let mut jittered = retry();
    jittered.backoff.jitter_percent = 20;
    jittered.crash_loop = CrashLimit { crashes: times(1000), within: secs(100_000) };
    let policy = Policy { restart: Restart::OnFailure(jittered), ..usual() };
    let mut events = String::from("start");
    for round in 1..=200 {
        events.push_str(&format!(" spawned exit(1) wait@{}", round * 10));
    }
    let waits: Vec<f64> = play(policy, &events)
        .split('+')
        .skip(1)
        .map(|rest| rest.split(')').next().expect("a wait").parse().expect("a number"))
        .skip(3)
        .collect();
    assert_eq!(waits.len(), 197);
    assert!(waits.iter().all(|wait| (3.2..=4.8).contains(wait)), "{waits:?}");
    let (low, high) =
        waits.iter().fold((f64::MAX, f64::MIN), |(low, high), wait| (low.min(*wait), high.max(*wait)));
    assert!(low < 3.4 && high > 4.6, "they use the whole spread: {low} to {high}");
}

fn a_stable_stretch_makes_the_next_wait_the_first_one_again() {
    check(
        usual(),
        "start spawned ready exit(1) wait@0.5 spawned ready exit(1)@300.4 wait@301.4 spawned ready exit(1)@601.4",
        "starting spawn#1 ready ended(crash→restart1+0.5) backoff @0.5 starting spawn#2 ready
         @300.4 ended(crash→restart2+1) backoff @301.4 starting spawn#3 ready
         @601.4 ended(crash→restart1+0.5) backoff",
    );
}

fn a_missed_heartbeat_breaks_the_stable_stretch() {
    let policy = || Policy {
        heartbeat: Heartbeat::WePing { every: secs(5), missed: times(3) },
        ..with_retry(|retry| retry.stable_after = secs(20))
    };
    let life = |pongs: &str| {
        play(policy(), &format!("start spawned exit(1) wait@0.5 spawned ready {pongs} exit(1)@22"))
    };
    let steady = "pong(1)@5.6 pong(2)@10.6 pong(3)@15.6 pong(4)@20.6";
    assert!(life(steady).ends_with("ended(crash→restart1+0.5) backoff"), "{}", life(steady));
    let interrupted = steady.replace("pong(1)@5.6 ", "");
    assert!(life(&interrupted).ends_with("ended(crash→restart2+1) backoff"), "{}", life(&interrupted));
}

fn the_crash_that_completes_the_loop_is_the_last() {
    let policy = with_retry(|retry| retry.crash_loop = CrashLimit { crashes: times(3), within: secs(600) });
    check(
        policy,
        "start spawned exit(1) wait@0.5 spawned signal(9) wait@2 spawned exit(0) wait@1000 start spawned",
        "starting spawn#1 ended(exit_before_ready→restart1+0.5) backoff @0.5 starting spawn#2
         ended(exit_before_ready→restart2+1) backoff @1.5 starting spawn#3
         @2 ended(exit_before_ready→crash_loop) exited",
    );
}

fn crashes_leave_the_window_one_by_one() {
    let policy = with_retry(|retry| {
        retry.crash_loop = CrashLimit { crashes: times(3), within: secs(60) };
        retry.stable_after = secs(1);
    });
    // Crashes at 0, 50, 100, 150 and 151: any fixed window of 60 s that restarts its count would miss the last three or
    // stop too early; only the last three lie within 60 s of each other.
    check(
        policy,
        "start spawned ready exit(1) wait@0.5 spawned ready exit(1)@50 wait@50.5 spawned ready exit(1)@100 wait@100.5
         spawned ready exit(1)@150 wait@150.5 spawned ready exit(1)@151",
        "starting spawn#1 ready ended(crash→restart1+0.5) backoff @0.5 starting spawn#2 ready
         @50 ended(crash→restart1+0.5) backoff @50.5 starting spawn#3 ready
         @100 ended(crash→restart1+0.5) backoff @100.5 starting spawn#4 ready
         @150 ended(crash→restart1+0.5) backoff @150.5 starting spawn#5 ready
         @151 ended(crash→crash_loop) exited",
    );
}

fn a_crash_exactly_as_old_as_the_window_still_counts() {
    let policy = || with_retry(|retry| retry.crash_loop = CrashLimit { crashes: times(2), within: secs(60) });
    let life = |second: &str| {
        play(policy(), &format!("start spawned ready exit(1)@0 wait@0.5 spawned ready exit(1)@{second}"))
    };
    assert!(life("60").ends_with("@60 ended(crash→crash_loop) exited"), "{}", life("60"));
    assert!(life("60.001").ends_with("ended(crash→restart2+1) backoff"), "{}", life("60.001"));
}

fn crashes_of_an_earlier_host_count() {
    use outrigger_supervise::launch::Status;
    use outrigger_supervise::state::{Event, Happening, Incarnation, Phase, step};
    let mut machine = Machine::new(usual(), 1).expect("a good policy");
    machine.remember_crashes([400, 300, 200, 100].map(|ago| Moment::ORIGIN.before(secs(ago))));
    let of = |happening| Event::Of(Incarnation(1), happening);
    for event in [Event::Start, of(Happening::Spawned), of(Happening::Reaped(Status::Code(1)))] {
        step(&mut machine, event, Moment::ORIGIN);
    }
    assert_eq!((machine.phase(), machine.ended().map(|why| why.code())), (Phase::Exited, Some("crash_loop")));
}

fn a_child_that_crashes_slowly_for_ever_is_given_up() {
    let policy =
        with_retry(|retry| retry.slow_crash = Some(CrashLimit { crashes: times(20), within: secs(86_400) }));
    let mut events = String::from("start");
    for hour in 1..=30 {
        events.push_str(&format!(" spawned ready exit(1)@{} wait@{}", hour * 3600, hour * 3600 + 10));
    }
    let followed = play(policy, &events);
    assert!(followed.ends_with("spawn#20 @68410 ready @72000 ended(crash→slow_crash) exited"), "{followed}");
}

fn attempts_can_be_limited() {
    let policy = with_retry(|retry| retry.max_attempts = Some(times(1)));
    check(
        policy,
        "start spawned exit(1) wait@1 spawned exit(1)",
        "starting spawn#1 ended(exit_before_ready→restart1+0.5) backoff @0.5 starting spawn#2
         @1 ended(exit_before_ready→attempts_exhausted) exited",
    );
}

fn a_policy_of_never_means_never() {
    let never = Policy { restart: Restart::Never, ..usual() };
    check(never.clone(), "start spawned ready exit(1)", "starting spawn#1 ready ended(crash→crash) exited");
    check(
        never.clone(),
        "start spawned ready exit(0)",
        "starting spawn#1 ready ended(voluntary→voluntary) exited",
    );
    check(
        never,
        "start spawn_failed(resource)",
        "starting spawn#1 ended(host_resource→host_resource) exited",
    );
}

fn codes_that_say_it_cannot_help_end_it() {
    check(usual(), "start spawned ready exit(78)", "starting spawn#1 ready ended(crash→crash) exited");
    check(
        usual(),
        "start spawned exit(78)",
        "starting spawn#1 ended(exit_before_ready→exit_before_ready) exited",
    );
    check(
        usual(),
        "start spawned ready exit(77)",
        "starting spawn#1 ready ended(crash→restart1+0.5) backoff",
    );
}

fn a_program_that_cannot_be_started_is_not_tried_again() {
    check(
        usual(),
        "start spawn_failed(permanent)",
        "starting spawn#1 ended(spawn_failed→spawn_failed) exited",
    );
    check(usual(), "start spawn_failed(sandbox)", "starting spawn#1 ended(sandbox→sandbox) exited");
}

fn a_host_short_of_resources_waits_and_does_not_blame_the_child() {
    let mut events = String::from("start");
    for round in 1..=10 {
        events.push_str(&format!(" spawn_failed(resource) wait@{}", round * 10));
    }
    let followed = play(usual(), &events);
    assert!(
        followed.ends_with("ended(host_resource→restart10+4) backoff @94 starting spawn#11"),
        "{followed}"
    );
}

fn an_unexplained_launch_failure_cannot_go_on_for_ever() {
    let mut events = String::from("start");
    for round in 1..=5 {
        events.push_str(&format!(" spawn_failed(unexplained) wait@{}", round * 10));
    }
    let followed = play(usual(), &events);
    assert!(followed.ends_with("ended(launch_failed→crash_loop) exited"), "{followed}");
}

fn a_stop_asks_then_terminates_then_kills() {
    check(
        usual(),
        "start spawned ready stop@1 signal(9)@7",
        "starting spawn#1 ready @1 stopping_ask ask @4 stopping_term term @6 stopping_kill kill
         @7 ended(requested→requested) exited",
    );
    check(
        usual(),
        "start spawned ready stop@1 exit(0)@2",
        "starting spawn#1 ready @1 stopping_ask ask @2 ended(requested→requested) exited",
    );
    // A child that crashes on its way out was still asked to go.
    check(
        usual(),
        "start spawned ready stop@1 signal(15)@5",
        "starting spawn#1 ready @1 stopping_ask ask @4 stopping_term term @5 ended(requested→requested) exited",
    );
}

fn a_stop_without_anybody_to_ask_begins_with_sigterm() {
    check(
        Policy { ask: Ask::Skip, ..usual() },
        "start spawned ready stop@1 wait@3",
        "starting spawn#1 ready @1 stopping_term term @3 stopping_kill kill",
    );
}

fn a_request_that_cannot_be_delivered_is_skipped() {
    check(
        usual(),
        "start spawned ready stop@1 ask_refused ask_refused wait@3",
        "starting spawn#1 ready @1 stopping_ask ask stopping_term term @3 stopping_kill kill",
    );
}

fn a_rung_without_a_budget_is_skipped() {
    use outrigger_supervise::state::{Event, Happening, Incarnation, Ladder, Phase, Rung, step};
    let first_rung = |ask, term| {
        let mut machine = Machine::new(Policy { ready_within: None, ..usual() }, 1).expect("a good policy");
        let ladder = Ladder { ask: secs(ask), term: secs(term) };
        for event in [Event::Start, Event::Of(Incarnation(1), Happening::Spawned), Event::Stop(ladder)] {
            step(&mut machine, event, Moment::ORIGIN);
        }
        machine.phase()
    };
    assert_eq!(first_rung(1, 1), Phase::Stopping(Rung::Ask));
    assert_eq!(first_rung(0, 1), Phase::Stopping(Rung::Term));
    assert_eq!(first_rung(1, 0), Phase::Stopping(Rung::Ask));
    assert_eq!(first_rung(0, 0), Phase::Stopping(Rung::Kill));
}

fn a_second_stop_means_now() {
    check(
        usual(),
        "start spawned ready stop@1 stop@1.5 signal(9)",
        "starting spawn#1 ready @1 stopping_ask ask @1.5 stopping_kill kill ended(requested→requested) exited",
    );
    check(usual(), "start spawned ready stop!", "starting spawn#1 ready stopping_kill kill");
    check(usual(), "start spawned ready stop! stop! stop", "starting spawn#1 ready stopping_kill kill");
}

fn a_stop_is_done_only_when_everything_is_reaped() {
    check(
        usual(),
        "start spawned ready stop! wait@1000 stop signal(9)@1001",
        "starting spawn#1 ready stopping_kill kill @1001 ended(requested→requested) exited",
    );
}

fn a_stop_during_the_launch_withdraws_it() {
    check(
        usual(),
        "start stop stop stop! spawn_failed(cancelled)",
        "starting spawn#1 stopping_kill cancel#1 ended(requested→requested) exited",
    );
}

fn a_stop_during_the_launch_kills_what_came_too_late() {
    check(
        usual(),
        "start stop spawned ready signal(9)@1",
        "starting spawn#1 stopping_kill cancel#1 kill @1 ended(requested→requested) exited",
    );
}

fn a_stop_before_ready_does_not_ask() {
    check(
        usual(),
        "start spawned stop@1 ready wait@3 signal(9)",
        "starting spawn#1 @1 stopping_term term @3 stopping_kill kill ended(requested→requested) exited",
    );
}

fn a_stop_during_backoff_ends_it_at_once() {
    check(
        usual(),
        "start spawned exit(1) stop@0.1 wait@10",
        "starting spawn#1 ended(exit_before_ready→restart1+0.5) backoff @0.1 exited",
    );
    check(usual(), "stop start", "exited");
}

fn a_stop_while_it_is_killed_for_a_fault_prevents_the_restart() {
    check(
        usual(),
        "start spawned ready fault(write_stall) stop signal(9)@1 wait@100",
        "starting spawn#1 ready stopping_kill kill @1 ended(write_stall→requested) exited",
    );
}

fn a_stop_while_it_restarts_prevents_the_restart() {
    check(
        usual(),
        "start spawned ready restart@1 stop@3 wait@4 exit(0)@5",
        "starting spawn#1 ready @1 stopping_ask ask @4 stopping_term term @5 ended(restarted→requested) exited",
    );
    check(
        usual(),
        "start spawned ready restart@1 stop@2 stop@2.5 signal(9)",
        "starting spawn#1 ready @1 stopping_ask ask @2.5 stopping_kill kill ended(restarted→requested) exited",
    );
    check(
        usual(),
        "start spawned ready restart@1 stop!@2 signal(9)",
        "starting spawn#1 ready @1 stopping_ask ask @2 stopping_kill kill ended(restarted→requested) exited",
    );
    check(
        usual(),
        "start spawned ready fault(unhealthy) stop! signal(9)",
        "starting spawn#1 ready stopping_kill kill ended(unhealthy→requested) exited",
    );
}

fn a_restart_is_neither_a_crash_nor_a_wait() {
    let mut events = String::from("start");
    for _ in 0..10 {
        events.push_str(" spawned ready restart exit(0)");
    }
    let followed = play(usual(), &events);
    assert!(
        followed.ends_with("ready stopping_ask ask ended(restarted→respawn) starting spawn#11"),
        "{followed}"
    );
    check(usual(), "restart restart", "starting spawn#1");
}

fn a_restart_during_backoff_does_not_wait() {
    check(
        usual(),
        "start spawned exit(1) restart@0.1",
        "starting spawn#1 ended(exit_before_ready→restart1+0.5) backoff @0.1 starting spawn#2",
    );
}

fn a_child_that_answers_its_pings_lives() {
    check(
        pinged(),
        "start spawned ready pong(1)@5.1 pong(2)@10.1 pong(3)@15.1 wait@20",
        "starting spawn#1 ready @5 ping1 @10 ping2 @15 ping3 @20 ping4",
    );
}

fn a_missed_ping_is_a_warning_and_an_answer_lifts_it() {
    check(
        pinged(),
        "start spawned ready wait@10 pong(2)@11 wait@20 pong(4)@21 wait@25",
        "starting spawn#1 ready @5 ping1 @10 unresponsive ping2 @11 ready @15 ping3 @20 unresponsive ping4 @21 ready
         @25 ping5",
    );
}

fn pings_missed_in_a_row_end_it() {
    check(
        pinged(),
        "start spawned ready wait@100 signal(9)",
        "starting spawn#1 ready @5 ping1 @10 unresponsive ping2 @15 ping3 @20 stopping_kill kill
         @100 ended(unhealthy→restart1+0.5) backoff",
    );
}

fn a_late_answer_is_not_taken_for_a_fresh_one() {
    check(
        pinged(),
        "start spawned ready wait@10 pong(1)@10.5 pong(7) wait@15 pong(2)@15.5 wait@20",
        "starting spawn#1 ready @5 ping1 @10 unresponsive ping2 @15 ping3 @20 stopping_kill kill",
    );
}

fn a_host_that_slept_does_not_blame_the_child() {
    // The third ping was due at 15; the host woke up at 20.001, more than an interval late.
    check(
        pinged(),
        "start spawned ready wait@10 stall@20.001 wait@25.001 wait@30.001",
        "starting spawn#1 ready @5 ping1 @10 unresponsive ping2 @20.001 ping3 @25.001 ping4 @30.001 stopping_kill kill",
    );
    // Late by exactly one interval is late enough to count.
    check(
        pinged(),
        "start spawned ready wait@10 stall@20 wait@25",
        "starting spawn#1 ready @5 ping1 @10 unresponsive ping2 @20 ping3 @25 stopping_kill kill",
    );
}

fn a_child_that_falls_silent_is_killed() {
    check(
        beating(Counted::Always),
        "start spawned ready beat@30 beat@70 wait@200 signal(9)",
        "starting spawn#1 ready @115 stopping_kill kill @200 ended(unhealthy→restart1+0.5) backoff",
    );
    // A beat that the driver delivers late carries its own time, which never moves back what is known.
    check(
        beating(Counted::Always),
        "start spawned ready beat(20)@40 beat(10)@41 wait@64.9 wait@65",
        "starting spawn#1 ready @65 stopping_kill kill",
    );
}

fn silence_counts_only_while_a_stream_is_active() {
    check(
        beating(Counted::WhileStreaming),
        "start spawned ready wait@1000 stream+ stream-@1044 wait@2000 stream+ wait@3000",
        "starting spawn#1 ready @2045 stopping_kill kill",
    );
}

fn a_host_that_slept_does_not_count_the_silence() {
    check(
        beating(Counted::Always),
        "start spawned ready stall@91 wait@136",
        "starting spawn#1 ready @136 stopping_kill kill",
    );
}

fn a_closed_channel_waits_for_the_exit_that_explains_it() {
    check(
        usual(),
        "start spawned ready fault(channel_lost)@1 exit(3)@1.2",
        "starting spawn#1 ready @1.2 ended(crash→restart1+0.5) backoff",
    );
    check(
        usual(),
        "start spawned ready fault(channel_lost)@1 exit(0)@1.2",
        "starting spawn#1 ready @1.2 ended(voluntary→voluntary) exited",
    );
    check(
        usual(),
        "start spawned fault(channel_lost)@1 exit(0)@1.2",
        "starting spawn#1 @1.2 ended(exit_before_ready→restart1+0.5) backoff",
    );
}

fn a_closed_channel_without_an_exit_is_a_fault() {
    check(
        usual(),
        "start spawned ready fault(channel_lost)@1 fault(channel_lost)@1.4 signal(9)@2",
        "starting spawn#1 ready @1.5 stopping_kill kill @2 ended(channel_lost→restart1+0.5) backoff",
    );
    check(
        usual(),
        "start spawned fault(channel_lost)@1 signal(9)@2",
        "starting spawn#1 @1.5 stopping_kill kill @2 ended(channel_lost→restart1+0.5) backoff",
    );
}

fn a_child_that_breaks_its_protocol_is_killed_and_restarted() {
    for fault in ["protocol_violation", "write_stall", "unhealthy"] {
        check(
            usual(),
            &format!("start spawned ready fault({fault}) signal(9)"),
            &format!("starting spawn#1 ready stopping_kill kill ended({fault}→restart1+0.5) backoff"),
        );
    }
}

fn an_incompatible_child_is_not_tried_again() {
    check(
        usual(),
        "start spawned fault(incompatible) signal(9)",
        "starting spawn#1 stopping_kill kill ended(incompatible→incompatible) exited",
    );
}

fn what_an_earlier_process_says_changes_nothing() {
    check(
        usual(),
        "start spawned exit(1) wait@0.5 spawned ready#1 exit(1)#1 fault(protocol_violation)#1 spawned#1 ready@1",
        "starting spawn#1 ended(exit_before_ready→restart1+0.5) backoff @0.5 starting spawn#2 @1 ready",
    );
}

fn a_crash_limit_that_could_never_trip_is_refused_with_the_arithmetic() {
    // The trap of service managers: five failures of a 120 s start do not fit into 600 s, so it would loop for ever.
    let trap = Policy { ready_within: Some(secs(120)), ..usual() };
    let error = Machine::new(trap, 1).expect_err("it can never trip");
    assert_eq!(
        error.to_string(),
        "restart.crash_loop: 5 crashes within 600s can never happen: a child that fails at every ready deadline needs 612.5s \
         for 5 crashes (5 × 121s to start and be reaped, plus 7.5s of backoff), so it would be restarted for ever; make the \
         window at least 612.5s, or the deadline or the backoff shorter"
    );
}

fn a_crash_limit_that_just_can_trip_trips() {
    let window = Retry::shortest_window(retry().backoff, times(5), secs(120));
    assert_eq!(window, Duration::from_millis(612_500));
    let just = || with_retry(|retry| retry.crash_loop = CrashLimit { crashes: times(5), within: window });
    let mut events = String::from("start");
    let mut now = 0.0;
    for wait in [0.5, 1.0, 2.0, 4.0, 8.0] {
        now += 121.0;
        events.push_str(&format!(" spawned signal(9)@{now}"));
        now += wait;
        events.push_str(&format!(" wait@{now}"));
    }
    let followed = play(Policy { ready_within: Some(secs(120)), ..just() }, &events);
    assert!(followed.ends_with("ended(startup_timeout→crash_loop) exited"), "{followed}");
    let shorter = with_retry(|retry| {
        retry.crash_loop = CrashLimit { crashes: times(5), within: window - Duration::from_nanos(1) };
    });
    assert!(Machine::new(Policy { ready_within: Some(secs(120)), ..shorter }, 1).is_err());
    let for_ever = with_retry(|retry| {
        retry.crash_loop = CrashLimit { crashes: NonZeroU32::MAX, within: Duration::MAX };
        retry.backoff.cap = Duration::MAX;
    });
    assert!(Machine::new(for_ever, 1).is_ok(), "the largest numbers do not overflow");
    let patient = with_retry(|retry| {
        retry.backoff = Backoff { first: Duration::MAX, cap: Duration::MAX, jitter_percent: 50 };
        retry.crash_loop = CrashLimit { crashes: times(2), within: Duration::MAX };
    });
    let followed = play(patient, "start spawned exit(1)");
    assert!(followed.ends_with("backoff"), "nor does the longest wait: {followed}");
}

fn times_of_zero_are_refused() {
    let refused = |policy: Policy| Machine::new(policy, 1).expect_err("zero").to_string();
    assert_eq!(
        refused(Policy { ready_within: Some(Duration::ZERO), ..usual() }),
        "`ready.within` is zero; it must be longer, or be left out"
    );
    for heartbeat in [
        Heartbeat::WePing { every: Duration::ZERO, missed: times(1) },
        Heartbeat::TheyBeat { silence: Duration::ZERO, counted: Counted::Always },
    ] {
        assert!(refused(Policy { heartbeat, ..usual() }).contains("is zero"));
    }
    let first = with_retry(|retry| retry.backoff.first = Duration::ZERO);
    assert!(refused(first).contains("restart.backoff.first"));
    let cap = with_retry(|retry| retry.backoff.cap = Duration::from_millis(499));
    assert!(matches!(Machine::new(cap, 1), Err(PolicyError::CapBelowFirst { .. })));
    let jitter = |percent| Machine::new(with_retry(|retry| retry.backoff.jitter_percent = percent), 1);
    assert!(jitter(50).is_ok());
    assert_eq!(jitter(51).expect_err("too much"), PolicyError::Jitter { percent: 51 });
}
