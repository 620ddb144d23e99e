//! Heartbeats, overdue answers, broken channels: how a ready extension is found wanting.

use super::*;

#[test]
fn one_that_falls_silent_is_killed_after_its_last_chance() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(
        bench.after(39.0),
        "@10 ping 1 | @20 ready → unresponsive: heartbeat_missed, ping 2 | @30 ping 3"
    );
    assert_eq!(bench.after(1.0), "@40 kill");
    assert_eq!(bench.state(), State::Unresponsive);
    assert_eq!(
        bench.does("signal 9"),
        "persist, ended unhealthy by 9 counted, unresponsive → backoff: unhealthy"
    );
    assert_eq!(bench.life.view().missed, 3);
}

#[test]
fn with_a_limit_of_one_the_first_silence_is_the_last() {
    let mut bench = Bench::ready(LifeTerms { missed: NonZeroU32::MIN, ..desktop() });
    assert_eq!(bench.after(20.0), "@10 ping 1 | @20 ready → unresponsive: unhealthy, kill");
}

#[test]
fn an_answer_to_the_latest_ping_forgives_and_an_older_one_does_not() {
    let mut bench = Bench::ready(desktop());
    bench.after(25.0);
    assert_eq!(bench.does("pong 1"), "", "too late to count");
    assert_eq!(bench.does("pong 2"), "unresponsive → ready: heartbeat_answered");
    assert_eq!(bench.after(20.0), "@30 ping 3 | @40 ready → unresponsive: heartbeat_missed, ping 4");
    assert_eq!(bench.after(14.0), "@50 ping 5");
    assert_eq!(bench.after(1.0), "@60 kill");
}

#[test]
fn a_round_that_our_own_timer_was_late_for_is_not_counted() {
    let mut bench = Bench::ready(LifeTerms { missed: NonZeroU32::MIN, ..desktop() });
    assert_eq!(bench.after(10.0), "@10 ping 1");
    bench.sleep(20.1);
    assert_eq!(bench.does("tick"), "ping 2");
    assert_eq!(bench.does("pong 2"), "");
    assert_eq!(bench.after(10.0), "@40.1 ping 3");
    // Late by no more than an interval is late enough for the extension.
    bench.sleep(10.0 + 10.0);
    assert_eq!(bench.does("tick"), "ready → unresponsive: unhealthy, kill");
}

#[test]
fn an_overdue_answer_shows_and_does_not_kill_while_health_answers() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("overdue"), "ready → unresponsive: overdue");
    for round in 1..=20 {
        assert_eq!(bench.after(10.0), format!("@{}0 ping {round}", round));
        assert_eq!(bench.does(&format!("pong {round}")), "", "the other answer is still missing");
    }
    assert_eq!(bench.does("answered"), "unresponsive → ready: answered");
    assert_eq!(bench.does("answered"), "");
}

#[test]
fn one_that_says_it_leaves_has_ten_seconds() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("health_stopping"), "");
    assert_eq!(bench.after(9.9), "", "it is not pinged any more");
    assert_eq!(bench.does("exit 0"), "ended voluntary 0, ready → stopped: voluntary");

    let mut bench = Bench::ready(desktop());
    bench.does("health_stopping");
    bench.after(5.0);
    bench.does("health_stopping");
    assert_eq!(bench.after(5.0), "@10 ready → unresponsive: unhealthy, kill");
}

#[test]
fn one_that_does_not_know_health_is_incompatible_the_third_time() {
    let mut bench = Bench::ready(LifeTerms { missed: NonZeroU32::MIN, ..desktop() });
    for ping in 1..=2 {
        bench.after(10.0);
        assert_eq!(bench.does("health_unsupported"), "", "it lives, whatever it says: {ping}");
    }
    bench.after(10.0);
    assert_eq!(
        bench.does("health_unsupported"),
        "ready → stopping: incompatible, stop version_unsupported 3+2"
    );
    assert_eq!(bench.does("exit 0"), "ended incompatible 0, stopping → failed: incompatible");
}

#[test]
fn one_that_does_not_read_is_killed() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("broken write_stall"), "ready → unresponsive: write_stall, kill");
    assert_eq!(
        bench.does("signal 9"),
        "persist, ended write_stall by 9 counted, unresponsive → backoff: write_stall"
    );
}

#[test]
fn every_fault_is_a_crash_of_its_own_kind() {
    for kind in ["protocol_violation", "frame_overrun", "memory"] {
        let mut bench = Bench::ready(desktop());
        assert_eq!(bench.does(&format!("broken {kind}")), format!("ready → stopping: {kind}, kill"));
        assert_eq!(bench.life.view().detail, Some(format!("{kind} it was")));
        assert_eq!(
            bench.does("signal 9"),
            format!("persist, ended {kind} by 9 counted, stopping → backoff: {kind}")
        );
    }
}

#[test]
fn a_closed_channel_waits_a_moment_for_the_exit_that_explains_it() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("broken channel_lost"), "");
    assert_eq!(bench.after(0.4), "");
    assert_eq!(bench.does("exit 0"), "ended voluntary 0, ready → stopped: voluntary");

    let mut bench = Bench::ready(desktop());
    bench.does("broken channel_lost");
    assert_eq!(bench.after(0.5), "@0.5 ready → stopping: channel_lost, kill");
    assert_eq!(
        bench.does("signal 9"),
        "persist, ended channel_lost by 9 counted, stopping → backoff: channel_lost"
    );

    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    bench.does("spawned");
    bench.does("broken channel_lost");
    assert_eq!(bench.does("exit 76"), "ended incompatible 76, starting → failed: incompatible");
}
