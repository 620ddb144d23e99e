//! What a phone does: each line of the table, and the races between them.

use super::*;

const TO_PAUSING: &str = "ready → pausing: background, tell lifecycle.pausing";

/// A ready extension that is suspended, as the user has turned away.
fn suspended() -> Bench {
    let mut bench = Bench::ready(phone());
    assert_eq!(bench.does("bg"), "");
    assert_eq!(bench.after(0.25), format!("@0.25 {TO_PAUSING}"));
    assert_eq!(bench.does("paused"), "pausing → suspended: acknowledged, suspend");
    bench
}

#[test]
fn the_user_turns_away_and_comes_back() {
    let mut bench = suspended();
    assert_eq!(bench.after(3600.0), "", "nothing is asked of it");
    assert_eq!(bench.does("fg"), "");
    let back = bench.after(0.25);
    assert!(back.ends_with("suspended → resuming: foreground, tell lifecycle.resumed, probe 1"), "{back}");
    assert_eq!(bench.does("probed"), "resuming → ready: probe_answered, resume");
    // The heartbeat begins anew, and goes on counting.
    assert!(bench.after(10.0).ends_with("ping 2"));
    assert_eq!(bench.life.crashes().count(), 0);
}

#[test]
fn a_pause_that_is_not_acknowledged_takes_two_seconds() {
    let mut bench = Bench::ready(phone());
    bench.does("bg");
    assert_eq!(bench.after(2.2), format!("@0.25 {TO_PAUSING}"));
    assert_eq!(bench.after(10.0), "@2.25 pausing → suspended: pause_timeout, suspend");
    assert_eq!(bench.does("paused"), "", "late, and welcome");
}

#[test]
fn changes_that_follow_each_other_too_fast_are_one() {
    let mut bench = Bench::ready(phone());
    for _ in 0..100 {
        bench.does("bg");
        bench.does("fg");
    }
    assert_eq!(bench.after(5.0), "");
    bench.does("bg");
    assert_eq!(bench.after(0.1), "");
    bench.does("fg");
    assert_eq!(bench.after(0.1), "");
    bench.does("bg");
    // A burst without end cannot delay it: the first of it sets the time.
    assert_eq!(bench.after(0.05), format!("@5.25 {TO_PAUSING}"));
}

#[test]
fn a_user_who_comes_back_during_the_pause_skips_the_rest_of_it() {
    let mut bench = Bench::ready(phone());
    bench.does("bg");
    bench.after(0.25);
    bench.does("fg");
    // One thing at a time: it has not heard about the pause yet.
    assert_eq!(bench.after(0.25), "@0.5 pausing → resuming: foreground");
    assert_eq!(bench.does("paused"), "tell lifecycle.resumed, probe 1");
    assert_eq!(bench.does("pong 1"), "resuming → ready: probe_answered, resume");
}

#[test]
fn a_user_who_comes_and_goes_is_followed_one_step_at_a_time() {
    let mut bench = Bench::ready(phone());
    bench.does("bg");
    bench.after(0.25);
    bench.does("fg");
    bench.after(0.25);
    bench.does("bg");
    assert_eq!(bench.after(0.25), "", "it resumes first");
    assert_eq!(bench.after(1.5), "@2.25 tell lifecycle.resumed, probe 1", "the pause was never acknowledged");
    assert_eq!(bench.does("probed"), "resuming → ready: probe_answered, resume, ready → pausing: background");
    assert_eq!(bench.does("told resumed"), "tell lifecycle.pausing");
    assert_eq!(bench.does("paused"), "pausing → suspended: acknowledged, suspend");
}

#[test]
fn one_that_does_not_come_back_from_its_pause_was_taken() {
    let mut bench = suspended();
    bench.does("fg");
    bench.after(0.25);
    assert_eq!(bench.after(3.0), "@3.5 resuming → stopping: reclaimed, kill");
    assert_eq!(
        bench.does("signal 9"),
        "ended reclaimed by 9, stopping → reclaimed: reclaimed, \
         reclaimed → starting: resume_after_reclaim, spawn resume_after_reclaim"
    );
    assert_eq!((bench.life.view().reclaims, bench.life.crashes().count()), (1, 0));
}

#[test]
fn one_that_dies_unseen_waits_for_the_user_and_is_no_crash() {
    let mut bench = suspended();
    assert_eq!(bench.does("signal 9"), "ended reclaimed by 9, suspended → reclaimed: reclaimed");
    assert_eq!(bench.after(3600.0), "");
    assert_eq!(bench.does("bg"), "");
    assert_eq!(bench.after(1.0), "", "still waiting");
    assert_eq!(bench.does("start lazy_event"), "");
    bench.does("fg");
    assert!(
        bench.after(0.25).ends_with("reclaimed → starting: resume_after_reclaim, spawn resume_after_reclaim")
    );
    bench.becomes_ready();
    assert_eq!(bench.life.crashes().count(), 0);
}

#[test]
fn one_that_dies_while_it_pauses_or_resumes_is_no_crash() {
    let mut bench = Bench::ready(phone());
    bench.does("bg");
    bench.after(0.25);
    assert_eq!(bench.does("exit 1"), "ended reclaimed 1, pausing → reclaimed: reclaimed");
    let mut bench = suspended();
    bench.does("fg");
    bench.after(0.25);
    assert!(bench.does("exit 1").starts_with("ended reclaimed 1, resuming → reclaimed: reclaimed"));
}

#[test]
fn one_that_may_run_in_the_background_is_told_and_watched_half_as_often() {
    let mut bench = Bench::ready(patient_phone());
    bench.does("bg");
    assert_eq!(bench.after(0.25), "@0.25 ready → ready: background, tell lifecycle.background");
    assert_eq!(bench.life.view().ground, Ground::Background);
    bench.does("told background");
    assert_eq!(bench.after(20.0), "@20.25 ping 1");
    bench.does("pong 1");
    bench.does("fg");
    assert_eq!(bench.after(0.25), "@20.5 ready → ready: foreground, tell lifecycle.resumed");
    assert_eq!(bench.does("pong 1"), "");
    assert_eq!(bench.after(10.0), "@30.5 ping 2");
}

#[test]
fn death_in_the_background_is_the_platforms_doing_and_leaving_is_not() {
    let background = || {
        let mut bench = Bench::ready(patient_phone());
        bench.does("bg");
        bench.after(0.25);
        bench
    };
    assert_eq!(background().does("signal 9"), "ended reclaimed by 9, ready → reclaimed: reclaimed");
    assert_eq!(background().does("exit 0"), "ended voluntary 0, ready → stopped: voluntary");
    let mut bench = background();
    bench.does("broken protocol_violation");
    assert_eq!(
        bench.does("signal 9"),
        "ended protocol_violation by 9, stopping → reclaimed: protocol_violation"
    );
}

#[test]
fn death_in_the_moment_of_turning_away_is_no_crash() {
    let mut bench = Bench::ready(phone());
    bench.does("bg");
    assert_eq!(bench.does("signal 9"), "ended reclaimed by 9, ready → reclaimed: reclaimed");
}

#[test]
fn death_under_the_users_eyes_is_a_crash() {
    let mut bench = Bench::ready(phone());
    assert_eq!(bench.does("signal 9"), "persist, ended crash by 9 counted, ready → backoff: crash");
}

#[test]
fn what_the_platform_says_it_took_is_no_crash_even_under_the_users_eyes() {
    let mut bench = Bench::ready(phone());
    assert_eq!(bench.does("reclaim"), "ready → stopping: reclaimed, kill");
    assert_eq!(
        bench.does("signal 9"),
        "ended reclaimed by 9, stopping → reclaimed: reclaimed, \
         reclaimed → starting: resume_after_reclaim, spawn resume_after_reclaim"
    );
}

#[test]
fn the_first_return_has_no_wait_and_the_second_has() {
    let mut bench = Bench::ready(phone());
    bench.does("reclaim");
    bench.does("signal 9");
    bench.becomes_ready();
    bench.does("reclaim");
    assert_eq!(
        bench.does("signal 9"),
        "ended reclaimed by 9, stopping → reclaimed: reclaimed, reclaimed → backoff: foreground"
    );
    let wait = bench.life.view().next_start.expect("it comes back").since(bench.now).as_secs_f64();
    assert!((0.8..=1.2).contains(&wait), "{wait}");
    assert!(
        bench.after(2.0).ends_with("backoff → starting: resume_after_reclaim, spawn resume_after_reclaim")
    );
}

#[test]
fn ten_losses_in_ten_minutes_under_the_users_eyes_are_a_crash() {
    let mut bench = Bench::ready(phone());
    for loss in 1..=14 {
        bench.does("reclaim");
        let said = bench.does("signal 9");
        assert_eq!(said.contains("counted"), loss >= 10, "loss {loss}: {said}");
        if loss < 14 {
            if let Some(due) = bench.life.view().next_start {
                bench.now = due;
                bench.does("tick");
            }
            bench.becomes_ready();
        }
        // A second each, beside the waits, keeps them all within ten minutes.
        bench.sleep(1.0);
    }
    assert_eq!(bench.life.view().disabled, Some(DisabledReason::CrashLoop));
}

#[test]
fn losses_in_the_background_are_never_a_crash() {
    let mut bench = Bench::ready(phone());
    for _ in 0..50 {
        bench.does("bg");
        bench.after(0.25);
        bench.does("signal 9");
        bench.does("fg");
        bench.after(0.25);
        if let Some(due) = bench.life.view().next_start {
            bench.now = due;
            bench.does("tick");
        }
        bench.becomes_ready();
    }
    assert_eq!((bench.life.crashes().count(), bench.life.view().reclaims), (0, 50));
}

#[test]
fn short_memory_is_passed_on_and_takes_what_the_user_does_not_see() {
    let mut bench = Bench::ready(phone());
    assert_eq!(bench.does("trim=critical"), "tell lifecycle.trim");
    let mut bench = suspended();
    assert_eq!(bench.does("trim=low"), "");
    assert_eq!(bench.does("trim=critical"), "suspended → stopping: reclaimed, stop policy 3+2");
    assert_eq!(bench.does("exit 0"), "ended reclaimed 0, stopping → reclaimed: reclaimed");
    bench.does("fg");
    assert!(bench.after(0.25).ends_with("spawn resume_after_reclaim"));
}

#[test]
fn a_hint_about_memory_does_not_replace_word_of_the_background() {
    let mut bench = Bench::ready(patient_phone());
    assert_eq!(bench.does("trim=low"), "tell lifecycle.trim");
    bench.does("bg");
    assert_eq!(bench.after(0.25), "@0.25 ready → ready: background", "one thing at a time");
    assert_eq!(bench.does("trim=moderate"), "");
    assert_eq!(bench.after(2.0), "@2 tell lifecycle.background");
}

#[test]
fn what_was_to_be_told_is_not_told_when_it_is_no_longer_so() {
    let mut bench = Bench::ready(phone());
    bench.does("trim=low");
    bench.does("bg");
    assert_eq!(bench.after(0.25), "@0.25 ready → pausing: background");
    assert_eq!(bench.does("freeze"), "pausing → suspended: freeze, suspend");
    assert_eq!(bench.after(60.0), "");
}

#[test]
fn a_frozen_extension_is_suspended_without_a_word() {
    let mut bench = Bench::ready(phone());
    assert_eq!(bench.does("freeze"), "ready → suspended: freeze, suspend");
    assert_eq!(bench.after(3600.0), "", "nobody can answer");
    assert_eq!(bench.does("stop"), "suspended → stopping: stop, stop stop 0+0", "and nobody can hear");

    let mut bench = Bench::ready(phone());
    bench.does("freeze");
    assert_eq!(bench.does("thaw"), "suspended → resuming: thaw, tell lifecycle.resumed, probe 1");
    assert_eq!(bench.does("freeze"), "resuming → suspended: freeze", "it was not let loose yet");
    assert_eq!(bench.after(60.0), "");
    bench.does("fg");
    assert!(bench.after(1.0).ends_with("suspended → resuming: foreground, tell lifecycle.resumed, probe 2"));
    assert_eq!(bench.does("pong 1"), "", "the answer to an earlier probe");
    assert_eq!(bench.does("pong 2"), "resuming → ready: probe_answered, resume");
}

#[test]
fn thawed_in_the_background_it_shows_that_it_lives_and_pauses_again() {
    let mut bench = suspended();
    bench.does("freeze");
    assert_eq!(bench.does("thaw"), "suspended → resuming: thaw, tell lifecycle.resumed, probe 1");
    bench.does("told resumed");
    assert_eq!(
        bench.does("probed"),
        "resuming → ready: probe_answered, resume, ready → pausing: background, tell lifecycle.pausing"
    );
}

#[test]
fn a_start_stands_still_in_the_background_and_is_given_up_after_two_seconds() {
    let mut bench = Bench::admitted(phone());
    bench.does("start first");
    bench.does("spawned");
    bench.after(14.0);
    bench.does("bg");
    assert_eq!(bench.after(2.2), "", "the deadline of 15 s would have passed");
    assert_eq!(bench.after(1.0), "@16.25 starting → stopping: background, stop policy 0+2");
    assert_eq!(bench.does("signal 15"), "ended requested by 15, stopping → stopped: requested");
    assert_eq!(bench.life.view().detail.as_deref(), Some("waits_for_foreground"));
    bench.does("fg");
    assert!(bench.after(0.25).ends_with("stopped → starting: first, spawn first"));
    assert_eq!(bench.life.crashes().count(), 0);
}

#[test]
fn a_start_goes_on_where_it_was_when_the_user_comes_back() {
    let mut bench = Bench::admitted(phone());
    bench.does("start first");
    bench.does("spawned");
    bench.after(10.0);
    bench.does("bg");
    bench.after(1.25);
    bench.does("fg");
    // 15 s, of which 10.25 were spent before the background was believed.
    assert_eq!(bench.after(4.9), "");
    assert_eq!(bench.after(0.2), "@16.25 starting → stopping: startup_timeout, kill");
}

#[test]
fn one_that_may_run_in_the_background_starts_there_without_a_deadline() {
    let mut bench = Bench::admitted(patient_phone());
    bench.does("bg");
    bench.after(1.0);
    assert_eq!(bench.does("start first"), "stopped → starting: first, spawn first");
    bench.does("spawned");
    assert_eq!(bench.after(3600.0), "");
    assert_eq!(
        bench.does("initialized"),
        "starting → ready: initialized, ready → ready: background, tell lifecycle.background"
    );
    let mut bench = Bench::admitted(patient_phone());
    bench.does("bg");
    bench.after(1.0);
    bench.does("start first");
    bench.does("spawned");
    assert_eq!(bench.does("exit 1"), "ended reclaimed 1, starting → reclaimed: reclaimed");
}

#[test]
fn nothing_is_started_in_the_background_that_may_not_run_there() {
    let mut bench = Bench::admitted(phone());
    bench.does("bg");
    bench.after(1.0);
    assert_eq!(bench.does("start manual"), "");
    assert_eq!(bench.after(3600.0), "");
    bench.does("fg");
    assert!(bench.after(0.25).ends_with("stopped → starting: manual, spawn manual"));
    // A restart whose time comes in the background waits, too.
    bench.becomes_ready();
    bench.does("exit 1");
    bench.does("bg");
    let waited = bench.after(60.0);
    assert!(waited.ends_with("backoff → stopped: background"), "{waited}");
    bench.does("fg");
    assert!(bench.after(0.25).ends_with("stopped → starting: restart, spawn restart"));
}

#[test]
fn a_stop_ends_it_wherever_it_is() {
    let pausing = |bench: &mut Bench| {
        bench.does("bg");
        bench.after(0.25);
    };
    let mut bench = Bench::ready(phone());
    pausing(&mut bench);
    assert_eq!(bench.does("stop"), "pausing → stopping: stop, stop stop 3+2");
    assert_eq!(bench.does("paused"), "");
    assert_eq!(bench.does("exit 0"), "ended requested 0, stopping → stopped: requested");
    bench.does("fg");
    assert_eq!(bench.after(10.0), "", "nobody asked for it");

    let mut bench = suspended();
    bench.does("fg");
    bench.after(0.25);
    assert_eq!(bench.does("stop"), "resuming → stopping: stop, stop stop 3+2");

    let mut bench = suspended();
    assert_eq!(bench.does("stop"), "suspended → stopping: stop, stop stop 3+2");

    let mut bench = suspended();
    bench.does("signal 9");
    assert_eq!(bench.does("stop"), "reclaimed → stopped: stop");
    bench.does("fg");
    assert_eq!(bench.after(10.0), "");

    let mut bench = suspended();
    bench.does("signal 9");
    assert_eq!(bench.does("disable operator"), "persist, reclaimed → disabled: disable");
    bench.does("fg");
    assert_eq!(bench.after(10.0), "");
}
