//! Stopping: from every state, twice, and for good.

use super::*;

#[test]
fn a_ready_extension_is_asked_and_has_its_time() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("stop"), "ready → stopping: stop, stop stop 3+2");
    assert_eq!(bench.after(5.9), "");
    assert_eq!(bench.does("exit 0"), "ended requested 0, stopping → stopped: requested");
    assert_eq!(bench.does("stop"), "", "it is stopped");
    assert_eq!(bench.after(1e6), "");
}

#[test]
fn a_stop_whose_ladder_fails_is_bounded() {
    let mut bench = Bench::ready(desktop());
    bench.does("stop");
    assert_eq!(bench.after(1000.0), "@6 kill");
    assert_eq!(bench.does("signal 9"), "ended requested by 9, stopping → stopped: requested");
}

#[test]
fn a_second_stop_means_now_and_a_third_means_nothing() {
    let mut bench = Bench::ready(desktop());
    bench.does("stop");
    assert_eq!(bench.does("stop"), "kill");
    assert_eq!(bench.does("stop"), "");
    assert_eq!(bench.after(1000.0), "");
    assert_eq!(bench.does("signal 9"), "ended requested by 9, stopping → stopped: requested");
}

#[test]
fn a_stop_during_a_spawn_is_remembered() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    assert_eq!(bench.does("stop"), "starting → stopping: stop");
    assert_eq!(bench.does("spawned"), "stop stop 0+2");
    assert_eq!(bench.does("signal 15"), "ended requested by 15, stopping → stopped: requested");

    bench.does("start manual");
    bench.does("stop");
    bench.does("stop");
    assert_eq!(bench.does("spawned"), "kill");
    bench.does("signal 9");

    bench.does("start manual");
    bench.does("stop");
    assert_eq!(bench.does("unspawned other"), "ended requested, stopping → stopped: requested");
}

#[test]
fn a_start_that_nobody_wants_any_more_has_nobody_to_ask() {
    for phase in ["attached", "tick"] {
        let mut bench = Bench::admitted(desktop());
        bench.does("start first");
        bench.does("spawned");
        bench.does(phase);
        assert_eq!(bench.does("stop host_exit"), "starting → stopping: stop, stop host_exit 0+2");
        assert_eq!(bench.does("initialized"), "", "too late");
        assert_eq!(bench.does("exit 76"), "ended requested 76, stopping → stopped: requested");
    }
}

#[test]
fn a_stop_during_a_backoff_cancels_the_restart() {
    let mut bench = Bench::ready(desktop());
    bench.crash();
    assert_eq!(bench.does("stop"), "backoff → stopped: stop");
    assert_eq!(bench.after(1e6), "");
    let mut bench = Bench::ready(desktop());
    bench.crash();
    assert_eq!(bench.does("disable operator"), "persist, backoff → disabled: disable");
    assert_eq!(bench.after(1e6), "");
}

#[test]
fn one_that_is_being_killed_for_a_crash_does_not_come_back_after_a_stop() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("broken protocol_violation"), "ready → stopping: protocol_violation, kill");
    assert_eq!(bench.does("stop"), "");
    assert_eq!(
        bench.does("signal 9"),
        "persist, ended protocol_violation by 9 counted, stopping → stopped: protocol_violation"
    );
}

#[test]
fn a_start_during_a_stop_is_a_restart() {
    let mut bench = Bench::ready(desktop());
    bench.does("stop update");
    assert_eq!(bench.does("start manual"), "");
    assert_eq!(
        bench.does("exit 0"),
        "ended requested 0, stopping → stopped: requested, stopped → starting: manual, spawn manual"
    );
    bench.becomes_ready();
    bench.does("stop update");
    bench.does("start manual");
    assert_eq!(bench.does("stop"), "kill");
    assert_eq!(bench.does("signal 9"), "ended requested by 9, stopping → stopped: requested");
}

#[test]
fn a_disabled_extension_leaves_and_stays_away_until_it_is_enabled() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("disable operator"), "persist, ready → stopping: disable, stop disable 3+2");
    assert_eq!(bench.does("start manual"), "");
    assert_eq!(bench.does("exit 0"), "ended requested 0, stopping → disabled: requested");
    assert_eq!(bench.life.view().disabled, Some(DisabledReason::Operator));
    assert_eq!(bench.does("start manual"), "");
    assert_eq!(bench.does("enable"), "persist, disabled → stopped: enable");
    assert_eq!(bench.does("start manual"), "stopped → starting: manual, spawn manual");
}

#[test]
fn one_that_broke_the_rules_is_told_that_it_was_policy() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("disable policy_violation"), "persist, ready → stopping: disable, stop policy 3+2");
}

#[test]
fn to_be_disabled_while_leaving_is_no_second_stop() {
    let mut bench = Bench::ready(desktop());
    bench.does("stop");
    assert_eq!(bench.does("disable operator"), "persist");
    assert_eq!(bench.does("exit 0"), "ended requested 0, stopping → disabled: requested");
}

#[test]
fn there_is_nothing_to_stop_where_nothing_runs() {
    for refusal in ["invalid", "blocked", "unavailable", "needs_consent"] {
        let mut bench = Bench::new(desktop());
        bench.does(&format!("refused {refusal}"));
        assert_eq!((bench.does("stop"), bench.state().as_str()), (String::new(), refusal));
    }
    let mut bench = Bench::admitted(desktop());
    for (event, state) in [("disable operator", "disabled"), ("removed", "removed")] {
        bench.does(event);
        assert_eq!((bench.does("stop"), bench.state().as_str()), (String::new(), state));
    }
    let mut bench = Bench::ready(desktop());
    bench.does("exit 78");
    assert_eq!((bench.does("stop"), bench.state().as_str()), (String::new(), "failed"));
    let mut bench = Bench::ready(desktop());
    bench.does("stop");
    bench.does("exit 0");
    assert_eq!((bench.does("stop"), bench.state().as_str()), (String::new(), "stopped"));
}

#[test]
fn an_unresponsive_extension_is_stopped_like_any_other() {
    let mut bench = Bench::ready(desktop());
    bench.does("overdue");
    assert_eq!(bench.does("stop"), "unresponsive → stopping: stop, stop stop 3+2");
}
